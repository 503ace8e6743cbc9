//! Object of a failed look-up, as far as its path and the kind of its call tell: the part of the model that needs no
//! files.

use proctrace_wire::Family;

/// Object that a failed look-up sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sought {
    /// A library in a directory: linkers open it, and ask nothing before.
    Library,
    /// A file of the linker's own that is seldom there, such as /etc/ld.so.preload.
    LinkersFile,
    /// The existence of something, never of a library: linkers ask whether a directory exists in which they did not
    /// find one.
    Existence,
    /// Something else.
    Else,
}

impl Sought {
    /// Returns what a call of this family sought at a path.
    pub fn of(family: Option<Family>, path: &[u8]) -> Self {
        match family {
            Some(Family::Open) if is_library(path) => Self::Library,
            // ld.so(8): preload, and nohwcap on Debian.
            Some(Family::Access) if path.starts_with(b"/etc/ld.so.") => Self::LinkersFile,
            Some(Family::Stat) => Self::Existence,
            _ => Self::Else,
        }
    }
}

/// Returns whether a path names a shared library: its name ends in .so, or in .so. and a version, each part of which
/// begins with a digit, as in libLLVM.so.19.1-rust-1.83.0-stable and liblapack.so.3gf.
pub fn is_library(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name.ends_with(b".so")
        || name.windows(4).rposition(|part| part == b".so.").is_some_and(|at| {
            let mut parts = name[at + 4..].split(|byte| *byte == b'.');
            let begins = parts.all(|part| part.first().is_some_and(u8::is_ascii_digit));
            begins && !name.ends_with(b"~")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_have_versions() {
        for name in [
            "libc.so",
            "/a/libc.so.6",
            "libCore.so.6.30.04",
            "a.so.b.so",
            "liblapack.so.3gf",
            "libLLVM.so.19.1-rust-1.83.0-stable",
        ] {
            assert!(is_library(name.as_bytes()), "{name}");
        }
        for name in [
            "libc.a",
            "libc.so.conf",
            "ld.so.cache",
            "so",
            "x.so.bak",
            "a.so/b",
            "libc.so.6~",
            "libc.so.6.bak",
            "libc.so.",
            "",
        ] {
            assert!(!is_library(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn the_call_tells_what_the_path_does_not() {
        for (family, path, expected) in [
            (Some(Family::Open), "/a/libc.so.6", Sought::Library),
            (Some(Family::Open), "/a/libc.so.6.bak", Sought::Else),
            (Some(Family::Open), "/etc/ld.so.preload", Sought::Else),
            (Some(Family::Access), "/etc/ld.so.preload", Sought::LinkersFile),
            (Some(Family::Access), "/etc/hosts", Sought::Else),
            (Some(Family::Stat), "/a/libc.so.6", Sought::Existence),
            (Some(Family::Stat), "/a", Sought::Existence),
            (Some(Family::Readlink), "/a/libc.so.6", Sought::Else),
            (None, "/a/libc.so.6", Sought::Else),
        ] {
            assert_eq!(Sought::of(family, path.as_bytes()), expected, "{family:?} {path}");
        }
    }
}
