//! Renames of directories: which path a file has now that was opened by number again.
//!
//! What is opened by number has the path of its first open. eBPF gives the same number to a file whose directory has another
//! name since, because its inode and the directory's entry for it are the same.

use std::cmp::Reverse;
use std::rc::Rc;

use proctrace_classify::fast::FastMap;

use super::file_numbers::{Numbers, Room};

/// Bytes of paths that are searched for renamed directories, all together.
const SEARCHED_MAX: usize = 1 << 32;
/// Names whose paths are remembered.
const FOUND_MAX: usize = 1 << 20;
/// Longer ones than any in a record.
const PATH_MAX: usize = 1 << 14;

/// A file by a name that it had at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Name {
    file: u32,
    /// Number of renames before.
    renames: u32,
}

/// Number of renames before this one, and path since.
type Since = (u32, Rc<[u8]>);

#[derive(Default)]
pub(super) struct Directories {
    renames: u32,
    /// By path before.
    since: FastMap<Vec<u8>, Vec<Since>>,
    /// Numbers of files by earlier names, and after how many renames they have been found.
    found: FastMap<Name, (u32, u32)>,
    searched: usize,
}

impl Directories {
    /// A file by the name that it has now.
    pub(super) fn name(&self, file: u32) -> Name {
        Name { file, renames: self.renames }
    }

    /// What may be a directory was renamed. Returns whether there is room for it.
    pub(super) fn moved(
        &mut self,
        from: &[u8],
        to: &[u8],
        is_exchange: bool,
        room: &mut Room,
    ) -> bool {
        if !room.take(2 * (from.len() + to.len()) + 2 * size_of::<(Vec<u8>, Vec<u8>)>()) {
            return false;
        }
        let mut add = |from: &[u8], to: &[u8]| {
            let renames = self.since.entry(from.to_vec()).or_default();
            renames.push((self.renames, to.into()));
        };
        add(from, to);
        if is_exchange {
            add(to, from);
        }
        self.renames += 1;
        true
    }

    /// The number of the file that has this name since; that of its name before if there are too many renames.
    pub(super) fn now(&mut self, name: Name, numbers: &mut Numbers, room: &mut Room) -> u32 {
        let known = self.found.get(&name).copied();
        let (renames, mut file) = known.unwrap_or((name.renames, name.file));
        if renames == self.renames {
            return file;
        }
        if let Some(path) = self.path_since(numbers.path(file), renames) {
            file = room.number(&path, numbers).unwrap_or(file);
        }
        if known.is_some() || self.found.len() < FOUND_MAX {
            self.found.insert(name, (self.renames, file));
        }
        file
    }

    /// The path that a file has since, of one that it had after this many renames; `None` if it is the same.
    fn path_since(&mut self, path: &[u8], mut renames: u32) -> Option<Vec<u8>> {
        let mut since = None;
        loop {
            let path = since.as_deref().unwrap_or(path);
            let ends = || path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            self.searched = self.searched.saturating_add(ends().count() * path.len());
            if self.searched > SEARCHED_MAX || path.len() > PATH_MAX {
                return None;
            }
            // The first rename since of a directory above it.
            let next = ends()
                .filter_map(|(end, _)| {
                    let all = self.since.get(&path[..end])?;
                    let (at, to) = all.get(all.partition_point(|(at, _)| *at < renames))?;
                    Some((*at, end, to))
                })
                .min_by_key(|(at, end, _)| (*at, Reverse(*end)));
            let Some((at, end, to)) = next else { return since };
            renames = at + 1;
            since = Some([to, &path[end..]].concat());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene(Directories, Numbers, Room);

    impl Scene {
        fn new() -> Self {
            Self(Directories::default(), Numbers::default(), Room::default())
        }

        fn name(&mut self, path: &str) -> Name {
            self.0.name(self.1.of(path.as_bytes()).unwrap())
        }

        fn moved(&mut self, from: &str, to: &str, is_exchange: bool) {
            assert!(self.0.moved(from.as_bytes(), to.as_bytes(), is_exchange, &mut self.2));
        }

        fn now(&mut self, name: Name) -> String {
            let file = self.0.now(name, &mut self.1, &mut self.2);
            String::from_utf8(self.1.path(file).to_vec()).unwrap()
        }
    }

    #[test]
    fn a_name_follows_the_renames_since() {
        let mut scene = Scene::new();
        let first = scene.name("/w/d.tmp/e/y");
        let beside = scene.name("/w/d.tmpx");
        scene.moved("/w/d.tmp", "/w/d", false);
        // Another directory of the same name.
        let second = scene.name("/w/d.tmp/e/y");
        assert_eq!(scene.now(first), "/w/d/e/y");
        scene.moved("/w/d/e", "/w/f", false);
        scene.moved("/w/f/y", "/w/f/z", false);
        assert_eq!(scene.now(first), "/w/f/y", "what is renamed itself is another entry");
        assert_eq!(scene.now(second), "/w/d.tmp/e/y");
        assert_eq!(scene.now(beside), "/w/d.tmpx");
        scene.moved("/w", "/v", false);
        assert_eq!(scene.now(first), "/v/f/y");
        assert_eq!(scene.now(second), "/v/d.tmp/e/y");
    }

    #[test]
    fn directories_change_places() {
        let mut scene = Scene::new();
        let (one, other) = (scene.name("/w/a/x"), scene.name("/w/b/x"));
        scene.moved("/w/a", "/w/b", true);
        assert_eq!((scene.now(one).as_str(), scene.now(other).as_str()), ("/w/b/x", "/w/a/x"));
        scene.moved("/w/a", "/w/b", true);
        assert_eq!((scene.now(one).as_str(), scene.now(other).as_str()), ("/w/a/x", "/w/b/x"));
    }

    /// A directory below a link that leads to it makes a path longer each time.
    #[test]
    fn paths_do_not_grow_without_bound() {
        let mut scene = Scene::new();
        let name = scene.name("/a/x");
        for _ in 0..20 {
            scene.moved("/a", &format!("/a/{}", "b".repeat(4000)), false);
        }
        assert_eq!(scene.now(name), "/a/x");
    }
}
