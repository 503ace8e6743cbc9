//! The kernel's type information, as it is.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;

use memchr::memmem;

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
