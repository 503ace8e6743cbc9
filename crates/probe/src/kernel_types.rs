//! The kernel's type information, and the types in it that programs are relocated and attached by.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;

use aya::{Btf, Endianness};
use memchr::memmem;

use crate::btf_extract::{Extracts, extract, names_in_object};
use crate::error::{ProbeError, root_cause};
use crate::hooks::NAMES_ATTACHED_TO;
use crate::mapping::Mapping;

/// BTF of the kernel itself, as it is.
pub(crate) enum KernelTypes {
    /// Linux 6.16 and later allow mmap here (commit a539e2a6d51d), which saves a copy of 5 MB.
    Mapped(Mapping, usize),
    Read(Vec<u8>),
}

impl KernelTypes {
    pub(crate) fn open() -> io::Result<Self> {
        let mut file = File::open("/sys/kernel/btf/vmlinux")?;
        let len = file.metadata()?.len() as usize;
        if let Ok(mapping) = Mapping::of_file(file.as_fd(), len) {
            return Ok(Self::Mapped(mapping, len));
        }
        let mut bytes = Vec::with_capacity(len);
        file.read_to_end(&mut bytes)?;
        Ok(Self::Read(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            // SAFETY: the kernel never changes its type information.
            Self::Mapped(mapping, len) => unsafe { mapping.bytes(0, *len) },
            Self::Read(bytes) => bytes,
        }
    }

    /// True if a type or function has this name, which ends in NUL there.
    pub(crate) fn have(&self, name: &[u8]) -> bool {
        memmem::find(self.bytes(), &[b"\0", name, b"\0"].concat()).is_some()
    }
}

/// The kernel's type information.
pub(crate) struct KernelBtf {
    /// The types that the programs refer to, for relocation.
    pub(crate) named: Btf,
    /// The ids of attach targets.
    pub(crate) attachable: Btf,
}

/// The types of the kernel that `object`, one of our compiled BPF objects, needs.
pub(crate) fn kernel_btf(object: &[u8]) -> Result<KernelBtf, ProbeError> {
    let types = KernelTypes::open().map_err(|error| ProbeError::NoBtf(error.to_string()))?;
    let parse = |bytes: &[u8]| {
        Btf::parse(bytes, Endianness::default())
            .map_err(|error| ProbeError::NoBtf(root_cause(&error)))
    };
    let whole = types.bytes();
    let names = names_in_object(object);
    match names.and_then(|names| extract(whole, &names, NAMES_ATTACHED_TO)) {
        Some(Extracts { named, attachable }) => {
            Ok(KernelBtf { named: parse(&named)?, attachable: parse(&attachable)? })
        }
        None => Ok(KernelBtf { named: parse(whole)?, attachable: parse(whole)? }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_whole() {
        let types = KernelTypes::open().unwrap();
        assert!(types.have(b"task_struct") && types.have(b"do_exit"));
        assert!(!types.have(b"task_struc") && !types.have(b"proctrace_is_no_type"));
    }
}
