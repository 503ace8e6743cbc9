//! The files that a search meets: what is at a path.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::elf::Elf;

/// Symbolic links that are followed for one path, as in path_resolution(7).
const LINKS_MAX: usize = 40;

/// A file, whatever its name: device and inode number.
pub type Identity = (u64, u64);

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing, or nothing that can be read.
    Nothing,
    /// A directory.
    Directory,
    /// A file that is no ELF file, or a damaged one.
    Other,
    /// An executable or a library.
    Object(Identity, Arc<Elf>),
}

/// A view of the files that a program could open.
pub trait Files {
    /// What is at this path, which is absolute or relative to the program's working directory.
    fn at(&self, path: &[u8]) -> Found;
}

/// The files below a directory, as a process sees them whose root it is. Each is read once.
#[derive(Debug)]
pub struct Root {
    root: PathBuf,
    cwd: PathBuf,
    read: Mutex<HashMap<Identity, Option<Arc<Elf>>>>,
}

impl Root {
    /// The files below `root`, for a process whose working directory is `cwd` (absolute, as the process
    /// sees it).
    pub fn new(root: impl Into<PathBuf>, cwd: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), cwd: cwd.into(), read: Mutex::default() }
    }

    /// The path of a file outside of the root, with all symbolic links resolved inside; `None` if it
    /// does not exist or links lead in a circle.
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let mut rest: Vec<PathBuf> = vec![self.cwd.join(path)];
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
                    if resolved != self.root {
                        resolved.pop();
                    }
                }
                Some(Component::Normal(name)) => {
                    let candidate = resolved.join(name);
                    let kind = std::fs::symlink_metadata(&candidate).ok()?.file_type();
                    if kind.is_symlink() {
                        links += 1;
                        if links > LINKS_MAX {
                            return None;
                        }
                        rest.push(std::fs::read_link(&candidate).ok()?);
                    } else {
                        resolved = candidate;
                    }
                }
            }
        }
        Some(resolved)
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

impl Files for Root {
    fn at(&self, path: &[u8]) -> Found {
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        let Some(resolved) = self.resolve(path) else { return Found::Nothing };
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
        let files = Root::new(root.path(), "/usr");
        assert!(matches!(files.at(b"/lib/a.so"), Found::Object(..)));
        assert_eq!(files.at(b"/lib/b.so"), files.at(b"lib/a.so"));
        assert_eq!(files.at(b"/lib"), Found::Directory);
        assert_eq!(files.at(b"/loop"), Found::Nothing);
        assert_eq!(files.at(b"/etc/passwd"), Found::Nothing);
        std::fs::write(root.path().join("text"), "#!/bin/sh\n").expect("a file");
        assert_eq!(files.at(b"/text"), Found::Other);
    }
}
