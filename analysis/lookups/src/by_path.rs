//! Causes of failed look-ups that are not of the dynamic linker's start: by the path and the environment.

use proctrace_libsearch::{Linker, Sought};
use proctrace_wire::{Call, Family};

use crate::own_lists::Lists;
use crate::starts::Start;

/// The kind of a failed look-up of a library that neither the model nor a list explains.
pub(crate) const UNEXPLAINED: &str = "unexplained";

/// Surroundings of a process by which its failed look-ups are judged.
pub(crate) struct Surroundings<'a> {
    pub(crate) environment: &'a [(Vec<u8>, Vec<u8>)],
    pub(crate) start: Option<&'a Start>,
    pub(crate) linker: &'a Linker,
    pub(crate) lists: Option<&'a Lists>,
}

impl Surroundings<'_> {
    /// The kind of cause, and its entry or directory.
    pub(crate) fn cause_of(&self, path: &[u8], call: Call) -> (&'static str, Vec<u8>) {
        let family = Family::of(call);
        let sought = Sought::of(family, path);
        if sought == Sought::LinkersFile && path == b"/etc/ld.so.preload" {
            return ("ld.so.preload", path.to_vec());
        }
        let directory = match path.iter().rposition(|byte| *byte == b'/') {
            None => &b""[..],
            Some(0) => b"/",
            Some(at) => &path[..at],
        };
        if sought == Sought::Library {
            return self.library(directory, path);
        }
        // What asks whether a file can be executed: execvp(3) and shells.
        let asks = matches!(family, Some(Family::Exec | Family::Stat | Family::Access));
        if asks && let Some(entry) = entry_of(self.variable(b"PATH"), directory) {
            return ("PATH", entry);
        }
        if let Some(cause) = self.lists.and_then(|lists| lists.cause_of(path)) {
            return cause;
        }
        if let Some(entry) = self.python(path) {
            return entry;
        }
        let of_locale =
            [&b"/usr/lib/locale"[..], b"/usr/share/locale", b"/usr/lib/x86_64-linux-gnu/gconv"];
        if let Some(place) = of_locale.into_iter().find(|place| path.starts_with(place)) {
            return ("locale", place.to_vec());
        }
        // dlopen(3) asks whether directories exist, as a start does.
        if sought == Sought::Existence
            && let Some((kind, entry)) = self.searched_directory(path)
        {
            return (if self.start.is_some() { "dlopen" } else { kind }, entry);
        }
        ("other", named(directory))
    }

    fn variable(&self, name: &[u8]) -> &[u8] {
        let found = self.environment.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_slice()).unwrap_or_default()
    }

    fn library(&self, directory: &[u8], path: &[u8]) -> (&'static str, Vec<u8>) {
        if let Some((kind, entry)) = self.searched_directory(directory) {
            return (if self.start.is_some() { "dlopen" } else { kind }, entry);
        }
        if let Some(entry) = self.python(path) {
            return entry;
        }
        match self.start {
            None => ("not modelled", named(directory)),
            // dlopen(3) of a path, which needs no search.
            Some(_) if directory.starts_with(b"/") => ("dlopen by path", directory.to_vec()),
            Some(_) => (UNEXPLAINED, named(directory)),
        }
    }

    /// The entry of a list, or the default directory, of which this is the directory or a sub-directory
    /// that the linker tries, and its kind.
    fn searched_directory(&self, directory: &[u8]) -> Option<(&'static str, Vec<u8>)> {
        let plain = self.linker.capabilities.list_directory(directory);
        for candidate in [plain, directory] {
            if let Some(entry) = entry_of(self.variable(b"LD_LIBRARY_PATH"), candidate) {
                return Some(("LD_LIBRARY_PATH", entry));
            }
            if self.linker.default_directories.iter().any(|default| default == candidate) {
                return Some(("default", candidate.to_vec()));
            }
            let own = self.start.is_some_and(|start| {
                start.search.loaded.iter().any(|object| {
                    object.iter().rposition(|byte| *byte == b'/').map(|at| &object[..at])
                        == Some(candidate)
                })
            });
            if own {
                return Some(("default", candidate.to_vec()));
            }
        }
        None
    }

    /// Modules of Python, which are searched in all directories of sys.path.
    fn python(&self, path: &[u8]) -> Option<(&'static str, Vec<u8>)> {
        let list = self.variable(b"PYTHONPATH").split(|byte| *byte == b':');
        for entry in list.filter(|entry| !entry.is_empty()) {
            if path.starts_with(entry) {
                return Some(("PYTHONPATH", entry.to_vec()));
            }
        }
        let at = path.windows(11).position(|window| window == b"/lib/python")?;
        let end = path[at + 5..].iter().position(|byte| *byte == b'/').map(|end| at + 5 + end);
        Some(("python", path[..end.unwrap_or(path.len())].to_vec()))
    }
}

/// A directory as it is shown: that of a path without a slash is the current one.
fn named(directory: &[u8]) -> Vec<u8> {
    if directory.is_empty() { b".".to_vec() } else { directory.to_vec() }
}

/// The entry of a list that names this directory, as it was written. An empty entry is the current
/// directory, in which the linker looks names up as they are.
fn entry_of(list: &[u8], directory: &[u8]) -> Option<Vec<u8>> {
    let plain = |path: &[u8]| -> usize {
        let slashes = path.iter().rev().take_while(|byte| **byte == b'/').count();
        // The root directory is not the current one.
        (path.len() - slashes).max(usize::from(slashes > 0))
    };
    let mut entries = list.split(|byte| matches!(byte, b':' | b';'));
    let same = |entry: &&[u8]| entry[..plain(entry)] == directory[..plain(directory)];
    (!list.is_empty()).then(|| entries.find(same)).flatten().map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(path: &str, call: Call) -> (&'static str, String) {
        let variable =
            |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        let environment = [
            variable("PATH", "/usr/local/bin:/usr/bin/"),
            variable("LD_LIBRARY_PATH", "/opt/lib::/srv/lib/"),
            variable("PYTHONPATH", "/opt/python"),
        ];
        let capabilities = proctrace_libsearch::Capabilities {
            hwcaps: vec![b"x86-64-v3".to_vec()],
            legacy: vec![b"tls".to_vec()],
        };
        let linker = Linker {
            capabilities,
            default_directories: vec![b"/usr/lib".to_vec()],
            ..Linker::default()
        };
        let surroundings =
            Surroundings { environment: &environment, start: None, linker: &linker, lists: None };
        let (kind, entry) = surroundings.cause_of(path.as_bytes(), call);
        (kind, String::from_utf8(entry).expect("UTF-8"))
    }

    #[test]
    fn paths_have_causes() {
        for (path, call, kind, entry) in [
            ("/usr/bin/cc", Call::Execve, "PATH", "/usr/bin/"),
            ("/usr/local/bin/cc", Call::Newfstatat, "PATH", "/usr/local/bin"),
            ("/opt/lib/libm.so.6", Call::Openat, "LD_LIBRARY_PATH", "/opt/lib"),
            ("/srv/lib/tls/libm.so.6", Call::Openat, "LD_LIBRARY_PATH", "/srv/lib/"),
            ("/srv/lib/tls", Call::Newfstatat, "LD_LIBRARY_PATH", "/srv/lib/"),
            ("glibc-hwcaps/x86-64-v3/libm.so", Call::Openat, "LD_LIBRARY_PATH", ""),
            ("libm.so", Call::Openat, "LD_LIBRARY_PATH", ""),
            ("/usr/lib/libm.so.6", Call::Openat, "default", "/usr/lib"),
            ("/opt/python/json.py", Call::Newfstatat, "PYTHONPATH", "/opt/python"),
            ("/usr/lib/python3.11/x.cpython-311.so", Call::Openat, "python", "/usr/lib/python3.11"),
            ("/usr/lib/locale/C.UTF-8/LC_ALL", Call::Openat, "locale", "/usr/lib/locale"),
            ("/etc/ld.so.preload", Call::Access, "ld.so.preload", "/etc/ld.so.preload"),
            ("/etc/ld.so.preload", Call::Openat, "other", "/etc"),
            ("/opt/lib/libm.so.bak", Call::Openat, "other", "/opt/lib"),
            ("/home/me/.profile", Call::Openat, "other", "/home/me"),
            ("/home/me/libmine.so", Call::Openat, "not modelled", "/home/me"),
            ("/libmine.so", Call::Openat, "not modelled", "/"),
            ("/tmp", Call::Readlink, "other", "/"),
            ("Makefile", Call::Openat, "other", "."),
        ] {
            assert_eq!(cause(path, call), (kind, entry.to_owned()), "{path}");
        }
    }
}
