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
/// Maximum number of bytes that are read of a file: the cache of a system with ten thousand libraries.
const BYTES_MAX: u64 = 1 << 20;
/// Maximum number of names in a directory that is listed.
const NAMES_MAX: usize = 100_000;

/// A file, whatever its name: device and inode number.
pub type Identity = (u64, u64);

/// Object at a path, or the reason why there is none.
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
    /// Returns whether open(2) or stat(2) would succeed.
    pub fn exists(&self) -> bool {
        !matches!(self, Self::Nothing | Self::Unreachable | Self::Circle)
    }
}

/// A view of the files that a program could open. All paths are absolute.
pub trait Files {
    /// The object at this path.
    fn at(&self, path: &[u8]) -> Found;

    /// The first MiB of a file; `None` if it cannot be read.
    fn bytes(&self, _path: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// A path without symbolic links; `None` if nothing is there.
    fn real(&self, _path: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// The names in a directory, sorted; `None` if it cannot be read or has more than 100,000.
    fn names(&self, _path: &[u8]) -> Option<Vec<Vec<u8>>> {
        None
    }

    /// Path that /proc/self/exe gives in a process that was started by this path: the path without symbolic links.
    /// `None` without /proc; then the linker does not know the program's $ORIGIN.
    fn executable(&self, path: &[u8]) -> Option<Vec<u8>> {
        Some(path.to_vec())
    }
}

/// The files that a process sees: those below the directory that is its root, or in directories that are
/// mounted in its mount namespace. Each is read once.
#[derive(Debug)]
pub struct Root {
    /// Mount points, the longest first, and the directories mounted there, as this process sees them;
    /// `None` for those that it does not see.
    mounts: Vec<(PathBuf, Option<PathBuf>)>,
    read: Mutex<HashMap<Identity, Option<Arc<Elf>>>>,
}

impl Root {
    /// The files below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self::of_mounts(vec![(PathBuf::from("/"), Some(root.into()))])
    }

    /// The files in these directories, which are mounted at these points; what is at points without a
    /// directory is not known.
    pub fn of_mounts(mut mounts: Vec<(PathBuf, Option<PathBuf>)>) -> Self {
        mounts.sort_by_key(|(point, _)| std::cmp::Reverse(point.components().count()));
        Self { mounts, read: Mutex::default() }
    }

    /// Path by which this process sees a path without symbolic links.
    fn outside(&self, inside: &Path) -> Option<PathBuf> {
        let (rest, directory) = self.mounts.iter().find_map(|(point, directory)| {
            Some((inside.strip_prefix(point).ok()?, directory.as_ref()))
        })?;
        // Joining an empty path would add a slash, which is wrong after a file.
        let directory = directory?;
        Some(if rest.as_os_str().is_empty() { directory.clone() } else { directory.join(rest) })
    }

    /// A path without symbolic links, inside, and where this process sees it.
    fn resolve(&self, path: &[u8]) -> Result<(PathBuf, PathBuf), Found> {
        let mut rest: Vec<PathBuf> = vec![PathBuf::from(OsStr::from_bytes(path))];
        let mut inside = PathBuf::from("/");
        let mut links = 0;
        let outside = |inside: &Path| self.outside(inside).ok_or(Found::Nothing);
        while let Some(next) = rest.pop() {
            let mut components = next.components();
            let first = components.next();
            let after = components.as_path();
            if !after.as_os_str().is_empty() {
                rest.push(after.to_owned());
            }
            match first {
                None | Some(Component::CurDir | Component::Prefix(_)) => {}
                Some(Component::RootDir) => inside = PathBuf::from("/"),
                Some(Component::ParentDir) => {
                    if !outside(&inside)?.is_dir() {
                        return Err(Found::Unreachable);
                    }
                    inside.pop();
                }
                Some(Component::Normal(name)) => {
                    let candidate = inside.join(name);
                    let seen = outside(&candidate)?;
                    let metadata = std::fs::symlink_metadata(&seen);
                    let kind = metadata.map_err(|error| absence(&error))?.file_type();
                    if kind.is_symlink() {
                        links += 1;
                        if links > LINKS_MAX {
                            return Err(Found::Circle);
                        }
                        rest.push(std::fs::read_link(&seen).map_err(|_| Found::Nothing)?);
                    } else {
                        inside = candidate;
                    }
                }
            }
        }
        let outside = outside(&inside)?;
        Ok((inside, outside))
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

/// Reason why nothing is at a path.
fn absence(error: &std::io::Error) -> Found {
    match error.kind() {
        ErrorKind::NotADirectory | ErrorKind::InvalidFilename => Found::Unreachable,
        _ => Found::Nothing,
    }
}

impl Files for Root {
    fn at(&self, path: &[u8]) -> Found {
        let resolved = match self.resolve(path) {
            Ok((_, outside)) => outside,
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

    fn bytes(&self, path: &[u8]) -> Option<Vec<u8>> {
        let (_, resolved) = self.resolve(path).ok()?;
        let metadata = std::fs::metadata(&resolved).ok()?;
        // As above: neither a FIFO nor a device, and no file of /proc.
        if !metadata.is_file() || metadata.len() == 0 {
            return metadata.is_file().then(Vec::new);
        }
        let mut bytes = Vec::new();
        let file = std::fs::File::open(&resolved).ok()?;
        file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    fn real(&self, path: &[u8]) -> Option<Vec<u8>> {
        let (inside, outside) = self.resolve(path).ok()?;
        outside.exists().then(|| inside.into_os_string().into_encoded_bytes())
    }

    fn names(&self, path: &[u8]) -> Option<Vec<Vec<u8>>> {
        let (_, resolved) = self.resolve(path).ok()?;
        let mut names = Vec::new();
        for entry in std::fs::read_dir(resolved).ok()? {
            if names.len() == NAMES_MAX {
                return None;
            }
            names.push(entry.ok()?.file_name().into_encoded_bytes());
        }
        names.sort_unstable();
        Some(names)
    }

    fn executable(&self, path: &[u8]) -> Option<Vec<u8>> {
        if self.at(b"/proc/self") != Found::Directory {
            return None;
        }
        let (inside, _) = self.resolve(path).ok()?;
        Some(inside.into_os_string().into_encoded_bytes())
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
    fn files_are_read_up_to_a_limit() {
        let root = tempfile::tempdir().expect("a directory");
        let files = Root::new(root.path());
        std::fs::write(root.path().join("long"), vec![b'a'; 3 << 20]).expect("a file");
        assert_eq!(files.bytes(b"/long").map(|bytes| bytes.len()), Some(1 << 20));
        assert_eq!(files.bytes(b"/"), None);
        assert_eq!(files.bytes(b"/none"), None);
        std::fs::write(root.path().join("empty"), "").expect("a file");
        assert_eq!(files.bytes(b"/empty"), Some(Vec::new()));
    }

    #[test]
    fn names_are_those_of_the_directory_that_a_link_leads_to() {
        let root = tempfile::tempdir().expect("a directory");
        let files = Root::new(root.path());
        std::fs::create_dir(root.path().join("d")).expect("a directory");
        for name in ["b.so", "a.so"] {
            std::fs::write(root.path().join("d").join(name), "x").expect("a file");
        }
        symlink("/d", root.path().join("link")).expect("a link");
        assert_eq!(files.names(b"/link"), Some(vec![b"a.so".to_vec(), b"b.so".to_vec()]));
        assert_eq!(files.names(b"/d/a.so"), None);
        assert_eq!(files.names(b"/none"), None);
    }

    #[test]
    fn mounted_directories_cover_what_is_below_them() {
        let place = tempfile::tempdir().expect("a directory");
        let at = |path: &str| place.path().join(path);
        std::fs::create_dir_all(at("root/mnt/a")).expect("directories");
        std::fs::create_dir_all(at("other")).expect("directories");
        std::fs::write(at("root/mnt/covered"), "x").expect("a file");
        std::fs::write(at("other/seen"), "x").expect("a file");
        symlink("/mnt/../mnt/seen", at("root/link")).expect("a link");
        let files = Root::of_mounts(vec![
            ("/".into(), Some(at("root"))),
            ("/mnt".into(), Some(at("other"))),
            ("/unseen".into(), None),
        ]);
        assert_eq!(files.at(b"/mnt/seen"), Found::Other);
        assert_eq!(files.at(b"/link"), Found::Other);
        assert_eq!(files.at(b"/mnt/covered"), Found::Nothing);
        assert_eq!(files.at(b"/unseen/seen"), Found::Nothing);
        assert_eq!(files.at(b"/mnt"), Found::Directory);
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
