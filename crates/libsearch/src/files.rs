//! The files that a search meets: what is at a path.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::elf::Elf;

/// Symbolic links that are followed for one path, as in path_resolution(7).
const LINKS_MAX: usize = 40;
/// How much of a text file is read.
const TEXT_MAX: u64 = 64 << 10;

/// A file, whatever its name: device and inode number.
pub type Identity = (u64, u64);

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing (ENOENT), or nothing that can be read (EACCES).
    Nothing,
    /// Nothing, as the path leads through a file or is too long (ENOTDIR, ENAMETOOLONG).
    Unreachable,
    /// Nothing, as symbolic links lead in a circle (ELOOP).
    Circle,
    /// A directory.
    Directory,
    /// A file that is no ELF file, or a damaged one.
    Other,
    /// An executable or a library.
    Object(Identity, Arc<Elf>),
}

impl Found {
    /// Whether open(2) or stat(2) would succeed.
    pub fn exists(&self) -> bool {
        !matches!(self, Self::Nothing | Self::Unreachable | Self::Circle)
    }
}

/// A view of the files that a program could open. All paths are absolute.
pub trait Files {
    /// What is at this path.
    fn at(&self, path: &[u8]) -> Found;

    /// The first 64 KiB of a text file; `None` if it cannot be read.
    fn text(&self, _path: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// What /proc/self/exe says in a process that was started by this path: the path without symbolic
    /// links. `None` without /proc; then the linker does not know the program's $ORIGIN.
    fn executable(&self, path: &[u8]) -> Option<Vec<u8>> {
        Some(path.to_vec())
    }
}

/// The files below a directory, as a process sees them whose root it is. Each is read once.
#[derive(Debug)]
pub struct Root {
    root: PathBuf,
    read: Mutex<HashMap<Identity, Option<Arc<Elf>>>>,
}

impl Root {
    /// The files below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), read: Mutex::default() }
    }

    /// The path of a file outside of the root, with all symbolic links resolved inside.
    fn resolve(&self, path: &[u8]) -> Result<PathBuf, Found> {
        let mut rest: Vec<PathBuf> = vec![PathBuf::from(OsStr::from_bytes(path))];
        let mut resolved = self.root.clone();
        let mut links = 0;
        while let Some(next) = rest.pop() {
            let mut components = next.components();
            let first = components.next();
            let after = components.as_path();
            if !after.as_os_str().is_empty() {
                rest.push(after.to_owned());
            }
            match first {
                None | Some(Component::CurDir | Component::Prefix(_)) => {}
                Some(Component::RootDir) => resolved.clone_from(&self.root),
                Some(Component::ParentDir) => {
                    if !resolved.is_dir() {
                        return Err(Found::Unreachable);
                    }
                    if resolved != self.root {
                        resolved.pop();
                    }
                }
                Some(Component::Normal(name)) => {
                    let candidate = resolved.join(name);
                    let metadata = std::fs::symlink_metadata(&candidate);
                    let kind = metadata.map_err(|error| absence(&error))?.file_type();
                    if kind.is_symlink() {
                        links += 1;
                        if links > LINKS_MAX {
                            return Err(Found::Circle);
                        }
                        rest.push(std::fs::read_link(&candidate).map_err(|_| Found::Nothing)?);
                    } else {
                        resolved = candidate;
                    }
                }
            }
        }
        Ok(resolved)
    }

    fn elf(&self, path: &Path, identity: Identity) -> Option<Arc<Elf>> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let elf = read.entry(identity).or_insert_with(|| {
            let file = std::fs::File::open(path).ok()?;
            Elf::read(file).ok().map(Arc::new)
        });
        elf.clone()
    }
}

/// Why nothing is at a path.
fn absence(error: &std::io::Error) -> Found {
    match error.kind() {
        ErrorKind::NotADirectory | ErrorKind::InvalidFilename => Found::Unreachable,
        _ => Found::Nothing,
    }
}

impl Files for Root {
    fn at(&self, path: &[u8]) -> Found {
        let resolved = match self.resolve(path) {
            Ok(resolved) => resolved,
            Err(nothing) => return nothing,
        };
        let Ok(metadata) = std::fs::metadata(&resolved) else { return Found::Nothing };
        if metadata.is_dir() {
            return Found::Directory;
        }
        // Opening a FIFO would wait for its writer, and reading some files of /proc for what comes; these
        // have no size.
        if !metadata.is_file() || metadata.len() == 0 {
            return Found::Other;
        }
        let identity = (metadata.dev(), metadata.ino());
        self.elf(&resolved, identity).map_or(Found::Other, |elf| Found::Object(identity, elf))
    }

    fn text(&self, path: &[u8]) -> Option<Vec<u8>> {
        let resolved = self.resolve(path).ok()?;
        let metadata = std::fs::metadata(&resolved).ok()?;
        // As above: neither a FIFO nor a device, and no file of /proc.
        if !metadata.is_file() || metadata.len() == 0 {
            return metadata.is_file().then(Vec::new);
        }
        let mut text = Vec::new();
        let file = std::fs::File::open(&resolved).ok()?;
        file.take(TEXT_MAX).read_to_end(&mut text).ok()?;
        Some(text)
    }

    fn executable(&self, path: &[u8]) -> Option<Vec<u8>> {
        if self.at(b"/proc/self") != Found::Directory {
            return None;
        }
        let resolved = self.resolve(path).ok()?;
        let inside = resolved.strip_prefix(&self.root).ok()?;
        Some([b"/", inside.as_os_str().as_bytes()].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_stay_below_the_root() {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(root.path().join("usr/lib")).expect("directories");
        std::fs::copy("/proc/self/exe", root.path().join("usr/lib/a.so")).expect("a copy");
        symlink("/usr/lib", root.path().join("lib")).expect("an absolute link");
        symlink("../../../usr/lib/a.so", root.path().join("usr/lib/b.so"))
            .expect("a relative link");
        symlink("loop", root.path().join("loop")).expect("a circle");
        let files = Root::new(root.path());
        assert!(matches!(files.at(b"/lib/a.so"), Found::Object(..)));
        assert_eq!(files.at(b"/lib/b.so"), files.at(b"/usr/../lib/a.so"));
        assert_eq!(files.at(b"/lib"), Found::Directory);
        assert_eq!(files.at(b"/loop"), Found::Circle);
        assert_eq!(files.at(b"/etc/passwd"), Found::Nothing);
        std::fs::write(root.path().join("text"), "#!/bin/sh\n").expect("a file");
        assert_eq!(files.at(b"/text"), Found::Other);
        for path in [&b"/text/a.so"[..], b"/text/../lib/a.so", &[b"/", &[b'a'; 256][..]].concat()] {
            assert_eq!(files.at(path), Found::Unreachable);
        }
    }

    #[test]
    fn texts_are_read_up_to_a_limit() {
        let root = tempfile::tempdir().expect("a directory");
        let files = Root::new(root.path());
        std::fs::write(root.path().join("long"), vec![b'a'; 100_000]).expect("a file");
        assert_eq!(files.text(b"/long").map(|text| text.len()), Some(65_536));
        std::fs::write(root.path().join("empty"), "").expect("a file");
        assert_eq!(files.text(b"/empty"), Some(Vec::new()));
        assert_eq!(files.text(b"/"), None);
        assert_eq!(files.text(b"/none"), None);
    }

    #[test]
    fn executables_are_known_by_their_real_path_where_there_is_proc() {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(root.path().join("bin")).expect("a directory");
        std::fs::write(root.path().join("bin/a"), "").expect("a file");
        symlink("/bin/a", root.path().join("b")).expect("a link");
        let files = Root::new(root.path());
        assert_eq!(files.executable(b"/b"), None);
        std::fs::create_dir_all(root.path().join("proc/self")).expect("a directory");
        assert_eq!(files.executable(b"/b"), Some(b"/bin/a".to_vec()));
        assert_eq!(files.executable(b"/c"), None);
    }
}
