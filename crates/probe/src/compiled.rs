//! The compiled BPF objects, which lie packed in the binary: unpacked, the one of a recording has 0.9 MB.

static PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/proctrace.bpf.o.zst"));
static WHO: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/who.bpf.o.zst"));

/// The programs of a recording.
pub(crate) fn programs() -> Vec<u8> {
    unpacked(PROGRAMS)
}

/// The iterators that say who a process is.
pub(crate) fn who() -> Vec<u8> {
    unpacked(WHO)
}

/// What reads ELF files wants them aligned to 8 bytes, which each allocator's blocks of this length are.
fn unpacked(packed: &[u8]) -> Vec<u8> {
    zstd::decode_all(packed).expect("the build packed it, or a test unpacks it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_elf_files() {
        for object in [programs(), who()] {
            assert!(object.starts_with(b"\x7fELF"));
            assert!(object.as_ptr().cast::<u64>().is_aligned());
        }
    }
}
