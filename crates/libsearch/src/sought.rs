//! Object of a failed look-up, as far as its path and the kind of its call tell: the part of the model that needs no
//! files.

use proctrace_wire::Family;

use crate::capabilities::list_directory;

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

/// Returns whether a directory is one that linkers search last: that of glibc on Debian or on Fedora, or of musl. A library
/// that is not there either was found nowhere, unless somebody has put the directory before others.
pub fn is_searched_last(directory: &[u8]) -> bool {
    matches!(directory, b"/usr/lib" | b"/usr/lib64")
}

/// Returns whether glibc searches a directory that no list names: one of the system's, or one for variants of the
/// processor below it.
pub fn is_searched_by_default(directory: &[u8]) -> bool {
    let directory = list_directory(directory);
    let below = directory.strip_prefix(b"/usr").unwrap_or(directory);
    match below.strip_prefix(b"/lib/") {
        // Debian: x86_64-linux-gnu, arm-linux-gnueabihf.
        Some(name) => name.windows(10).any(|part| part == b"-linux-gnu") && !name.contains(&b'/'),
        None => matches!(below, b"/lib" | b"/lib64"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_has_directories_of_its_own() {
        for directory in [
            "/lib",
            "/usr/lib64",
            "/usr/lib/tls/x86_64",
            "/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v3",
            "/usr/lib/arm-linux-gnueabihf",
        ] {
            assert!(is_searched_by_default(directory.as_bytes()), "{directory}");
        }
        for directory in [
            "/opt/lib",
            "/usr/local/lib",
            "/usr/lib/jvm",
            "/usr/lib/x86_64-linux-gnu/gtk-3.0",
            "",
            "/",
        ] {
            assert!(!is_searched_by_default(directory.as_bytes()), "{directory}");
        }
        assert!(is_searched_last(b"/usr/lib") && !is_searched_last(b"/lib"));
    }

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
