//! Arguments, paths and names as the kernel keeps them.

use proctrace_wire::layout::{EXEC_ARGV_CAPPED, EXEC_ARGV_FAULT};

use crate::emit::PATH_MAX;
use crate::text::Strings;

/// The arguments as the kernel keeps them, and the bits for what is missing.
pub(crate) fn block_of(argv: Option<&Strings>) -> (Vec<u8>, u32) {
    let Some(argv) = argv else { return (Vec::new(), EXEC_ARGV_FAULT) };
    let mut block = Vec::new();
    for string in &argv.strings {
        block.extend_from_slice(&string.bytes);
        block.push(0);
    }
    (block, if argv.lacks_something() { EXEC_ARGV_CAPPED } else { 0 })
}

/// A path together with the directory it starts from, if that is known.
pub(crate) fn whole(path: &[u8], from: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") || from.is_empty() || path.len() + from.len() >= PATH_MAX {
        return path.to_vec();
    }
    let path = path.strip_prefix(b"./").unwrap_or(path);
    let from = from.strip_suffix(b"/").unwrap_or(from);
    [from, b"/", path].concat()
}

/// A name as the kernel keeps it: cut, and with a NUL at its end.
pub(crate) fn comm_of(name: &[u8]) -> [u8; 16] {
    let mut comm = [0; 16];
    let short = &name[..name.len().min(15)];
    comm[..short.len()].copy_from_slice(short);
    comm
}
