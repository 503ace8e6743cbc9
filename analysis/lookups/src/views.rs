//! The files that a process saw whose root or mount namespace differs from ours: each of its mounts is
//! found among our own, where the same part of the same file system is mounted.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proctrace_libsearch::{Cache, Files};
use proctrace_replay::{Mount, MountTable};

use crate::mounts::{Mounts, Root};

/// A mount point as a process sees it, and the directory mounted there as we see it, if we do.
pub type SeenMount = (PathBuf, Option<PathBuf>);

/// Makes a view of files from mounts.
pub type MakeView<'a> = &'a dyn Fn(Vec<SeenMount>) -> Arc<dyn Files>;

/// The files of a root, and the cache of its dynamic linker.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) cache: Arc<Cache>,
}

/// Files that are borrowed or shared.
pub(crate) enum SomeFiles<'a> {
    Ours(&'a dyn Files),
    Others(Arc<dyn Files>),
}

impl SomeFiles<'_> {
    pub(crate) fn get(&self) -> &dyn Files {
        match self {
            Self::Ours(files) => *files,
            Self::Others(files) => &**files,
        }
    }
}

/// The views of all roots of a recording.
pub(crate) struct Views<'a> {
    recorded: Mounts,
    /// The mounts of our own namespace.
    today: MountTable,
    make: MakeView<'a>,
    known: RefCell<HashMap<Arc<Root>, Option<View>>>,
}

impl<'a> Views<'a> {
    pub(crate) fn new(recorded: Mounts, today: MountTable, make: MakeView<'a>) -> Self {
        Self { recorded, today, make, known: RefCell::default() }
    }

    /// Returns whether a root is that of the recorder, whose files are those of today. Without mount tables, every
    /// namespace is taken for the recorder's.
    pub(crate) fn is_ours(&self, root: Option<&Root>) -> bool {
        let is_own = |namespace| self.recorded.own.is_none_or(|own| own == namespace);
        root.is_none_or(|root| is_own(root.namespace) && root.path == b"/")
    }

    /// The files of a root: `ours`, or those of another root; `None` if its mounts were not recorded.
    pub(crate) fn files<'b>(
        &self,
        root: Option<&Arc<Root>>,
        ours: &'b dyn Files,
    ) -> Option<SomeFiles<'b>> {
        match root.filter(|root| !self.is_ours(Some(&***root))) {
            None => Some(SomeFiles::Ours(ours)),
            Some(root) => self.of(root).map(|view| SomeFiles::Others(view.files)),
        }
    }

    /// The files of another root; `None` if its mounts were not recorded.
    pub(crate) fn of(&self, root: &Arc<Root>) -> Option<View> {
        let mut known = self.known.borrow_mut();
        let view = known.entry(Arc::clone(root)).or_insert_with(|| {
            let table = self.recorded.table(root.namespace)?;
            let files = (self.make)(seen_mounts(table, &root.path, &self.today));
            let cache = files.bytes(b"/etc/ld.so.cache");
            let cache = cache.and_then(|bytes| Cache::parse(&bytes).ok()).unwrap_or_default();
            Some(View { files, cache: Arc::new(cache) })
        });
        view.clone()
    }

    pub(crate) fn recorded(&self) -> &Mounts {
        &self.recorded
    }
}

/// The mounts at and below the root of a process, each with its directory in our namespace.
fn seen_mounts(table: &MountTable, root: &[u8], today: &MountTable) -> Vec<SeenMount> {
    let root = path(root);
    // Without the mounts that a later one at the same point covers.
    let visible = table.mounts.iter().filter(|mount| table.of(&mount.point) == Some(mount));
    let mut seen: Vec<SeenMount> = visible
        .filter_map(|mount| {
            let point = path(&mount.point);
            let inside =
                point.strip_prefix(&root).ok().filter(|rest| !rest.as_os_str().is_empty())?;
            Some((Path::new("/").join(inside), directory_of(mount, Path::new(""), today)))
        })
        .collect();
    let at_root = table
        .of(root.as_os_str().as_encoded_bytes())
        .and_then(|mount| directory_of(mount, root.strip_prefix(path(&mount.point)).ok()?, today));
    seen.push((PathBuf::from("/"), at_root));
    seen
}

/// Directory at which we see a directory of a mounted file system.
fn directory_of(mount: &Mount, below: &Path, today: &MountTable) -> Option<PathBuf> {
    let wanted = joined(path(&mount.inside), below);
    today.mounts.iter().find_map(|ours| {
        let is_same = ours.device == mount.device
            && ours.fs_type == mount.fs_type
            && ours.source == mount.source;
        if !is_same {
            return None;
        }
        let rest = wanted.strip_prefix(path(&ours.inside)).ok()?;
        let directory = joined(path(&ours.point), rest);
        // It may be covered by another mount.
        let visible = today.of(directory.as_os_str().as_encoded_bytes()) == Some(ours);
        visible.then_some(directory)
    })
}

/// Like `join`, which adds a slash for an empty path.
fn joined(path: PathBuf, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() { path } else { path.join(rest) }
}

fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(table: &[u8], root: &str) -> Vec<(String, Option<String>)> {
        let today = b"1 0 254:0 / / - ext4 /dev/vda\n2 1 0:50 / /srv/image - overlay image\n\
            3 1 254:1 /export /data - ext4 /dev/vdb\n4 1 0:9 / /data/covered - tmpfs none\n";
        let text = |path: PathBuf| path.display().to_string();
        let mut seen: Vec<_> = seen_mounts(
            &MountTable::parse(1, table),
            root.as_bytes(),
            &MountTable::parse(2, today),
        )
        .into_iter()
        .map(|(point, directory)| (text(point), directory.map(text)))
        .collect();
        seen.sort();
        seen
    }

    fn mounts(expected: &[(&str, Option<&str>)]) -> Vec<(String, Option<String>)> {
        let text = |(point, directory): &(&str, Option<&str>)| {
            ((*point).to_owned(), directory.map(str::to_owned))
        };
        expected.iter().map(text).collect()
    }

    #[test]
    fn mounts_are_found_by_file_system_and_directory() {
        let container =
            b"1 0 0:50 / / - overlay image\n2 1 254:1 /export/job /work - ext4 /dev/vdb\n\
            3 1 254:1 /other /elsewhere - ext4 /dev/vdb\n4 1 0:77 / /tmp - tmpfs none\n\
            5 1 254:1 /export/covered /c - ext4 /dev/vdb\n";
        let expected = mounts(&[
            ("/", Some("/srv/image")),
            ("/c", None),
            ("/elsewhere", None),
            ("/tmp", None),
            ("/work", Some("/data/job")),
        ]);
        assert_eq!(seen(container, "/"), expected);
    }

    #[test]
    fn a_root_in_our_own_namespace_sees_what_is_below_it() {
        let ours = b"1 0 254:0 / / - ext4 /dev/vda\n2 1 0:50 / /srv/image - overlay image\n\
            3 1 254:1 /export /srv/root/data - ext4 /dev/vdb\n";
        let expected = mounts(&[("/", Some("/srv/root")), ("/data", Some("/data"))]);
        assert_eq!(seen(ours, "/srv/root"), expected);
        assert_eq!(seen(ours, "/srv/image"), mounts(&[("/", Some("/srv/image"))]));
    }
}
