//! The properties of a dynamic linker: what it searches besides the directories that it is given.

use crate::list::Tokens;

/// Sub-directories that the linker tries in each directory before the directory itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Sub-directories of glibc-hwcaps that the CPU supports, in order: "x86-64-v3" (glibc 2.33 and
    /// later).
    pub hwcaps: Vec<Vec<u8>>,
    /// Names whose combinations are tried as well, before glibc 2.37: "tls", "x86_64".
    pub legacy: Vec<Vec<u8>>,
}

/// Maximum number of legacy names, as there is a sub-directory for each of their combinations.
const LEGACY_MAX: usize = 6;

impl Capabilities {
    /// The sub-directories, in the order in which they are tried; the last is the directory itself.
    pub fn subdirectories(&self) -> Vec<Vec<u8>> {
        let hwcaps = self.hwcaps.iter().map(|name| [b"glibc-hwcaps/", &name[..], b"/"].concat());
        let mut all: Vec<Vec<u8>> = hwcaps.collect();
        let names = &self.legacy[..self.legacy.len().min(LEGACY_MAX)];
        // All names first, then every other combination, none last: the bits of a number that counts
        // down, the first name being the highest.
        for chosen in (0..1_u32 << names.len()).rev() {
            let mut path = Vec::new();
            for (at, name) in names.iter().enumerate() {
                if chosen >> (names.len() - 1 - at) & 1 == 1 {
                    path.extend_from_slice(name);
                    path.push(b'/');
                }
            }
            all.push(path);
        }
        all
    }

    /// The directory of which one is such a sub-directory; the directory itself is one. It is empty if the sub-directory is
    /// named alone, as that of the current directory.
    pub fn list_directory<'a>(&self, directory: &'a [u8]) -> &'a [u8] {
        let found = self.subdirectories().iter().find_map(|sub| {
            let sub = sub.strip_suffix(b"/").unwrap_or(sub);
            let rest = directory.strip_suffix(sub)?;
            if sub.is_empty() || rest.is_empty() { Some(rest) } else { rest.strip_suffix(b"/") }
        });
        // The last of them is no sub-directory at all, which fits any directory.
        found.unwrap_or(directory)
    }
}

/// The same for a linker that is not known: without the names of variants of the processor, and of old ones
/// (dl-hwcaps.c, dl-load.c).
pub fn list_directory(mut directory: &[u8]) -> &[u8] {
    while let Some(slash) = directory.iter().rposition(|byte| *byte == b'/') {
        let (above, name) = (&directory[..slash], &directory[slash + 1..]);
        let is_variant = matches!(
            name,
            b"glibc-hwcaps" | b"tls" | b"x86_64" | b"haswell" | b"xeon_phi" | b"avx512_1"
        ) || name.starts_with(b"x86-64-v");
        if !is_variant || above.is_empty() {
            break;
        }
        directory = above;
    }
    directory
}

/// A dynamic linker, as it describes itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Linker {
    /// Sub-directories that it tries in each directory.
    pub capabilities: Capabilities,
    /// The directories that it searches last, in order.
    pub default_directories: Vec<Vec<u8>>,
    /// $LIB and $PLATFORM; $ORIGIN differs from object to object.
    pub tokens: Tokens,
}

impl Linker {
    /// Reads what `ld.so --help` prints (glibc 2.33 and later).
    pub fn of_help(help: &str) -> Self {
        let mut linker = Self::default();
        let mut legacy_hwcaps = Vec::new();
        let mut part = "";
        for line in help.lines() {
            let Some(entry) = line.strip_prefix("  ") else {
                part = line;
                continue;
            };
            let (name, notes) = entry.split_once(" (").unwrap_or((entry, ""));
            let searched = notes.contains("searched");
            if part.starts_with("Shared library search path")
                && notes.contains("system search path")
            {
                linker.default_directories.push(name.as_bytes().to_vec());
            } else if part.starts_with("Subdirectories of glibc-hwcaps") && searched {
                linker.capabilities.hwcaps.push(name.as_bytes().to_vec());
            } else if part.starts_with("Legacy HWCAP") {
                if notes.contains("AT_PLATFORM") {
                    linker.tokens.platform = name.as_bytes().to_vec();
                }
                if searched {
                    legacy_hwcaps.push(name.as_bytes().to_vec());
                }
            }
        }
        // "tls" is the first component of every combination, whatever the order of the list.
        legacy_hwcaps.sort_by_key(|name| name != b"tls");
        linker.capabilities.legacy = legacy_hwcaps;
        let lib = linker.default_directories.first();
        linker.tokens.lib =
            lib.map_or_else(Vec::new, |first| first.strip_prefix(b"/").unwrap_or(first).to_vec());
        linker
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "Usage: ...\n\
        \n\
        Shared library search path:\n  (libraries located via /etc/ld.so.cache)\n  \
        /lib/x86_64-linux-gnu (system search path)\n  /usr/lib (system search path)\n\
        \n\
        Subdirectories of glibc-hwcaps directories, in priority order:\n  x86-64-v4\n  \
        x86-64-v3 (supported, searched)\n\
        \n\
        Legacy HWCAP subdirectories under library search path directories:\n  \
        x86_64 (AT_PLATFORM; supported, searched)\n  tls (supported, searched)\n  avx512_1\n";

    #[test]
    fn a_linker_describes_itself() {
        let linker = Linker::of_help(HELP);
        assert_eq!(linker.tokens.lib, b"lib/x86_64-linux-gnu");
        assert_eq!(linker.tokens.platform, b"x86_64");
        assert_eq!(linker.default_directories.len(), 2);
        let tried = linker.capabilities.subdirectories();
        let tried: Vec<_> = tried.iter().map(|path| String::from_utf8_lossy(path)).collect();
        assert_eq!(tried, ["glibc-hwcaps/x86-64-v3/", "tls/x86_64/", "tls/", "x86_64/", ""]);
        assert_eq!(Linker::of_help("").capabilities.subdirectories(), [b""]);
    }

    #[test]
    fn variants_count_for_the_directory_they_lie_in() {
        for (searched, directory) in [
            ("/opt/a/glibc-hwcaps/x86-64-v3", "/opt/a"),
            ("/opt/a/tls/x86_64/x86_64", "/opt/a"),
            ("/opt/tls/lib", "/opt/tls/lib"),
            ("/tls", "/tls"),
            ("tls", "tls"),
            ("", ""),
        ] {
            assert_eq!(list_directory(searched.as_bytes()), directory.as_bytes(), "{searched}");
        }
    }
}
