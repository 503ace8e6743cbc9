//! Parser of what an ELF file tells the dynamic linker about its libraries.

use object::elf::{
    DF_1_NODEFLIB, DF_1_PIE, DT_FLAGS_1, DT_NEEDED, DT_NULL, DT_RPATH, DT_RUNPATH, DT_SONAME,
    DT_STRSZ, DT_STRTAB, ET_DYN, ET_EXEC, FileHeader32, FileHeader64, PN_XNUM, PT_DYNAMIC,
    PT_INTERP, PT_LOAD,
};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{Endianness, FileKind, ReadRef};
use thiserror::Error;

/// Maximum number of libraries that one object can name; more are an error.
const NEEDED_MAX: usize = 10_000;
/// Maximum length of all names and lists of one object together; more is an error. The kernel allows
/// 128 KiB for a list in the environment.
const TEXT_MAX: usize = 512 << 10;

/// Maximum size of a dynamic section: 10,000 entries and as many others.
const DYNAMIC_MAX: u64 = 1 << 20;
/// Maximum length of the path of an interpreter: PATH_MAX, as in the kernel's fs/binfmt_elf.c.
const INTERPRETER_MAX: u64 = 4096;

/// The dynamic section of an executable or a library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Elf {
    /// True if it is for 64 bits.
    pub is_64: bool,
    /// Its machine: `e_machine` of elf(5).
    pub machine: u16,
    /// True if it is an executable: ET_EXEC, or position-independent with DF_1_PIE. glibc does not load one as a
    /// library.
    pub is_executable: bool,
    /// True if it has a dynamic section, as all libraries have.
    pub is_dynamic: bool,
    /// Its interpreter: the dynamic linker. `None` in libraries and static executables.
    pub interpreter: Option<Vec<u8>>,
    /// DT_NEEDED: the libraries that it asks for, in order.
    pub needed: Vec<Vec<u8>>,
    /// DT_SONAME: the name by which others ask for it.
    pub soname: Option<Vec<u8>>,
    /// DT_RPATH, unless DT_RUNPATH exists, which replaces it.
    pub rpath: Option<Vec<u8>>,
    /// DT_RUNPATH.
    pub runpath: Option<Vec<u8>>,
    /// DF_1_NODEFLIB: neither the cache nor the default directories are searched for it.
    pub no_default_directories: bool,
}

/// Reason why a file has no readable dynamic section.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ElfError {
    /// It is not an ELF file.
    #[error("not an ELF file")]
    Foreign,
    /// Its headers or its dynamic section are damaged.
    #[error("damaged ELF file: {0}")]
    Damaged(String),
}

impl From<object::Error> for ElfError {
    fn from(error: object::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}

impl Elf {
    /// Reads a file, no more of it than needed.
    ///
    /// # Errors
    /// As [`Elf::parse`].
    pub fn read(file: std::fs::File) -> Result<Self, ElfError> {
        Self::parse(&object::ReadCache::new(file))
    }

    /// Parses a file: its bytes, or an `object::ReadCache` that reads no more of it than needed.
    ///
    /// # Errors
    /// If it is no ELF file, or a damaged one. A static executable is no error: it needs nothing.
    pub fn parse<'a>(bytes: impl ReadRef<'a>) -> Result<Self, ElfError> {
        match FileKind::parse(bytes) {
            Ok(FileKind::Elf32) => parse::<FileHeader32<Endianness>, _>(bytes, false),
            Ok(FileKind::Elf64) => parse::<FileHeader64<Endianness>, _>(bytes, true),
            _ => Err(ElfError::Foreign),
        }
    }
}

fn parse<'a, H, R>(bytes: R, is_64: bool) -> Result<Elf, ElfError>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'a>,
{
    let header = H::parse(bytes)?;
    let endian = header.endian()?;
    if header.e_phnum(endian) == PN_XNUM {
        return Err(ElfError::Damaged("it has too many segments".to_owned()));
    }
    let segments = header.program_headers(endian, bytes)?;
    let is_too_long = segments.iter().any(|segment| {
        let size: u64 = segment.p_filesz(endian).into();
        match segment.p_type(endian) {
            PT_INTERP => size > INTERPRETER_MAX,
            PT_DYNAMIC => size > DYNAMIC_MAX,
            _ => false,
        }
    });
    if is_too_long {
        return Err(ElfError::Damaged("a segment is too long".to_owned()));
    }
    let mut elf = Elf { is_64, machine: header.e_machine(endian), ..Elf::default() };
    elf.is_executable = match header.e_type(endian) {
        ET_EXEC => true,
        ET_DYN => false,
        _ => return Err(ElfError::Damaged("neither executable nor library".to_owned())),
    };
    for segment in segments {
        if segment.p_type(endian) == PT_INTERP {
            elf.interpreter = segment.interpreter(endian, bytes)?.map(<[u8]>::to_vec);
        }
    }
    let Some(dynamic) = segments.iter().find(|segment| segment.p_type(endian) == PT_DYNAMIC) else {
        return Ok(elf);
    };
    elf.is_dynamic = true;
    let entries = dynamic.dynamic(endian, bytes)?.unwrap_or_default();
    let end = entries.iter().position(|entry| entry.d_tag(endian).into() == DT_NULL);
    let entries = &entries[..end.unwrap_or(entries.len())];
    // Of several entries, both linkers take the last.
    let value = |tag: i64| {
        let entry = entries.iter().rev().find(|entry| entry.d_tag(endian).into() == tag)?;
        Some(entry.d_val(endian).into())
    };
    let (Some(address), Some(size)) = (value(DT_STRTAB), value(DT_STRSZ)) else {
        return Ok(elf);
    };
    let offset = segments
        .iter()
        .filter(|segment| segment.p_type(endian) == PT_LOAD)
        .find_map(|segment| {
            let (from, length) = (segment.p_vaddr(endian).into(), segment.p_filesz(endian).into());
            let within = address.checked_sub(from).filter(|within| *within < length)?;
            within.checked_add(segment.p_offset(endian).into())
        })
        .ok_or_else(|| ElfError::Damaged("the string table is in no segment".to_owned()))?;
    let mut strings = Strings { bytes, offset, size, left: TEXT_MAX };
    let mut named = |tag: i64| value(tag).map(|at| strings.at(at)).transpose();
    elf.soname = named(DT_SONAME)?;
    elf.runpath = named(DT_RUNPATH)?;
    elf.rpath = if elf.runpath.is_some() { None } else { named(DT_RPATH)? };
    let flags: u64 = value(DT_FLAGS_1).unwrap_or(0);
    elf.no_default_directories = flags & u64::from(DF_1_NODEFLIB) != 0;
    elf.is_executable |= flags & u64::from(DF_1_PIE) != 0;
    for entry in entries.iter().filter(|entry| entry.d_tag(endian).into() == DT_NEEDED) {
        if elf.needed.len() == NEEDED_MAX {
            return Err(ElfError::Damaged("it names too many libraries".to_owned()));
        }
        elf.needed.push(strings.at(entry.d_val(endian).into())?);
    }
    Ok(elf)
}

/// The string table, of which only so much is read.
struct Strings<R> {
    bytes: R,
    offset: u64,
    size: u64,
    left: usize,
}

impl<'a, R: ReadRef<'a>> Strings<R> {
    fn at(&mut self, at: u64) -> Result<Vec<u8>, ElfError> {
        let error = || ElfError::Damaged("a name is not in the string table".to_owned());
        let most = self.size.checked_sub(at).ok_or_else(error)?;
        let from = self.offset.checked_add(at).ok_or_else(error)?;
        let until = from.checked_add(most).ok_or_else(error)?;
        // An `object::ReadCache` reads only 4,096 bytes of a string; lists can be longer.
        let text = match self.bytes.read_bytes_at_until(from..until, 0) {
            Ok(text) => text,
            Err(()) => {
                let length = self.bytes.len().map_err(|()| error())?;
                let most = most.min(length.saturating_sub(from)).min(self.left as u64 + 1);
                let bytes = self.bytes.read_bytes_at(from, most).map_err(|()| error())?;
                let end = bytes.iter().position(|byte| *byte == 0).ok_or_else(error)?;
                &bytes[..end]
            }
        };
        self.left = self.left.checked_sub(text.len()).ok_or_else(error)?;
        Ok(text.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn own() -> Vec<u8> {
        std::fs::read("/proc/self/exe").expect("our own executable")
    }

    #[test]
    fn our_own_executable_needs_libc() {
        let elf = Elf::parse(&own()[..]).expect("an ELF file");
        assert!(elf.needed.iter().any(|name| name.starts_with(b"libc.so")), "{elf:?}");
        assert!(elf.interpreter.is_some_and(|path| path.starts_with(b"/lib")));
        assert_eq!(Elf::parse(&b"#!/bin/sh\n"[..]), Err(ElfError::Foreign));
        assert_eq!(Elf::parse(&b""[..]), Err(ElfError::Foreign));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn damage_is_an_error_or_another_file(
            changes in proptest::collection::vec((0_usize..4096, any::<u8>()), 1..40),
            length in 0_usize..8192,
        ) {
            // The headers and the dynamic section of a small library are within its first pages.
            let mut bytes = own();
            for (at, byte) in changes {
                if let Some(old) = bytes.get_mut(at) {
                    *old = byte;
                }
            }
            let _ = Elf::parse(&bytes[..]);
            let _ = Elf::parse(&bytes[..length.min(bytes.len())]);
        }
    }
}
