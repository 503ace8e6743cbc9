//! /etc/ld.so.cache: the libraries that ldconfig has found, by name.

use std::collections::BTreeMap;

use thiserror::Error;

/// The format since glibc 2.2, which may follow an older one in the same file (sysdeps/generic/
/// dl-cache.h).
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEADER_BYTES: usize = 48;
const ENTRY_BYTES: usize = 24;

/// Flags of entries for the libraries of 64-bit programs: FLAG_ELF_LIBC6 and the architecture.
const X86_64: u32 = 0x0303;
const AARCH64: u32 = 0x0a03;

/// The names in a cache, each with the path that the linker would open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cache {
    paths: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Reason why a file is no cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CacheError {
    /// It lacks the magic number of the format.
    #[error("not a cache of glibc 2.2 or later")]
    Foreign,
    /// A table or a name lies outside the file.
    #[error("damaged cache")]
    Damaged,
}

impl Cache {
    /// Parses a cache. Entries for other architectures than 64-bit x86 and ARM are left out, and so
    /// are those below glibc-hwcaps: the linker prefers one of these to the plain entry only where the
    /// CPU supports it, and both are found without a search.
    ///
    /// # Errors
    /// If it is not a cache, or a damaged one.
    pub fn parse(bytes: &[u8]) -> Result<Self, CacheError> {
        let start = bytes
            .windows(MAGIC.len())
            .position(|window| window == MAGIC)
            .ok_or(CacheError::Foreign)?;
        let bytes = &bytes[start..];
        let number = |at: usize| -> Option<u32> {
            let four = bytes.get(at..at.checked_add(4)?)?;
            Some(u32::from_le_bytes(four.try_into().ok()?))
        };
        let text = |at: u32| -> Option<&[u8]> {
            let rest = bytes.get(usize::try_from(at).ok()?..)?;
            Some(&rest[..rest.iter().position(|byte| *byte == 0)?])
        };
        let entries = number(MAGIC.len()).ok_or(CacheError::Damaged)? as usize;
        if entries.saturating_mul(ENTRY_BYTES) > bytes.len() {
            return Err(CacheError::Damaged);
        }
        let mut paths = BTreeMap::new();
        for entry in 0..entries {
            let at = HEADER_BYTES + entry * ENTRY_BYTES;
            let field = |nth: usize| number(at + 4 * nth).ok_or(CacheError::Damaged);
            let (flags, key, value) = (field(0)?, field(1)?, field(2)?);
            let has_capability = (field(4)?, field(5)?) != (0, 0);
            if !matches!(flags, X86_64 | AARCH64) || has_capability {
                continue;
            }
            let key = text(key).ok_or(CacheError::Damaged)?;
            let value = text(value).ok_or(CacheError::Damaged)?;
            paths.entry(key.to_vec()).or_insert_with(|| value.to_vec());
        }
        Ok(Self { paths })
    }

    /// The path of a library.
    pub fn path_of(&self, library: &[u8]) -> Option<&[u8]> {
        self.paths.get(library).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn this_systems_cache_has_libc() {
        let bytes = std::fs::read("/etc/ld.so.cache").expect("a system with glibc");
        let cache = Cache::parse(&bytes).expect("a cache");
        let libc = cache.path_of(b"libc.so.6").expect("libc");
        assert!(libc.ends_with(b"/libc.so.6"), "{libc:?}");
        assert_eq!(Cache::parse(b"ld.so-1.7.0"), Err(CacheError::Foreign));
        assert_eq!(Cache::parse(&bytes[..60]), Err(CacheError::Damaged));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_cache_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = Cache::parse(&[MAGIC, &bytes].concat());
        }
    }
}
