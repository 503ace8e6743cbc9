//! Names derived from paths and arguments.

use proctrace_wire::escape::to_text;

use crate::fast::FastIndexSet;

/// The last component of a path.
pub fn base(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Everything before the last component: "/" for a file in the root directory, "." without a slash.
pub fn directory(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|byte| *byte == b'/') {
        None => b".",
        Some(0) => b"/",
        Some(at) => &path[..at],
    }
}

/// Interned strings, by number.
#[derive(Debug, Default)]
pub struct Names {
    names: FastIndexSet<String>,
}

impl Names {
    pub fn number_of(&mut self, name: &str) -> u32 {
        let known = self.names.get_index_of(name);
        let number = known.unwrap_or_else(|| self.names.insert_full(name.to_owned()).0);
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    pub fn count(&self) -> usize {
        self.names.len()
    }

    pub fn into_inner(self) -> Vec<String> {
        self.names.into_iter().collect()
    }
}

pub fn text(bytes: &[u8]) -> String {
    to_text(bytes).into_owned()
}

/// A task's name: 16 bytes, ended by NUL.
pub fn comm(bytes: &[u8; 16]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    text(&bytes[..end])
}

/// The symbolic name, such as ENOENT for 2; the number if it has none.
pub fn errno(number: u16) -> String {
    let errno = nix::errno::Errno::from_raw(i32::from(number));
    if errno == nix::errno::Errno::UnknownErrno {
        format!("errno {number}")
    } else {
        format!("{errno:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart() {
        assert_eq!(base(b"/usr/bin/sed"), b"sed");
        assert_eq!(base(b"sed"), b"sed");
        assert_eq!(base(b"dir/"), b"");
        assert_eq!(directory(b"/usr/lib/libc.so"), b"/usr/lib");
        assert_eq!(directory(b"/vmlinuz"), b"/");
        assert_eq!(directory(b"Makefile"), b".");
        assert_eq!(directory(b""), b".");
    }

    #[test]
    fn errnos_have_names() {
        assert_eq!(errno(2), "ENOENT");
        assert_eq!(errno(13), "EACCES");
        assert_eq!(errno(4000), "errno 4000");
    }
}
