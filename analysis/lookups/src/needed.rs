//! Absolute paths in place of names: what an application's own objects need, so that no list is searched
//! for it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use proctrace_libsearch::{Cause, Elf, Files, Found, Identity};

use crate::uses::Uses;

/// An object whose needed libraries are to be named by their paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// The object.
    pub file: Vec<u8>,
    /// Each name with the absolute path that replaces it, in the object's order.
    pub replace: Vec<(Vec<u8>, Vec<u8>)>,
    /// Names for which other starts of it find other files.
    pub disputed: Vec<Vec<u8>>,
}

/// Today's files, with other needed libraries.
pub(crate) struct Absolute<'a> {
    today: &'a dyn Files,
    changed: HashMap<Identity, Arc<Elf>>,
    pub(crate) rewrites: Vec<Rewrite>,
}

impl<'a> Absolute<'a> {
    /// The application's objects with the paths at which the most common start finds their libraries.
    pub(crate) fn of(uses: &Uses<'a>) -> Self {
        let today = uses.system().files;
        let mut objects: HashMap<Identity, (Arc<Elf>, Rewrite)> = HashMap::new();
        for used in uses.all() {
            let mut paths: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
            for found in used.found() {
                let listed = matches!(
                    found.cause,
                    Cause::LibraryPath(_) | Cause::Rpath(..) | Cause::Runpath(..)
                );
                // The linker would expand a dollar sign.
                let plain = found.path.starts_with(b"/") && !found.path.contains(&b'$');
                if listed && plain && !is_of_system(found.path) {
                    paths.entry(found.name).or_insert(found.path);
                }
            }
            for file in used.loaded().filter(|file| file.starts_with(b"/") && !is_of_system(file)) {
                if let Found::Object(identity, elf) = today.at(file) {
                    let (elf, rewrite) = objects.entry(identity).or_insert_with(|| {
                        let file = file.to_vec();
                        (elf, Rewrite { file, replace: Vec::new(), disputed: Vec::new() })
                    });
                    for name in &elf.needed {
                        rewrite.take(name, paths.get(name.as_slice()).copied(), today);
                    }
                }
            }
        }
        objects.retain(|_, (_, rewrite)| !rewrite.replace.is_empty());
        let changed = objects.iter().map(|(identity, (elf, rewrite))| {
            let mut elf = Elf::clone(elf);
            for (name, path) in &rewrite.replace {
                elf.needed.iter_mut().filter(|needed| *needed == name).for_each(|needed| {
                    needed.clone_from(path);
                });
            }
            (*identity, Arc::new(elf))
        });
        let changed = changed.collect();
        let mut rewrites: Vec<Rewrite> =
            objects.into_values().map(|(_, rewrite)| rewrite).collect();
        rewrites.sort_by(|a, b| a.file.cmp(&b.file));
        Self { today, changed, rewrites }
    }
}

impl Rewrite {
    fn take(&mut self, name: &[u8], path: Option<&[u8]>, today: &dyn Files) {
        let Some(path) = path else { return };
        match self.replace.iter().find(|(known, _)| known == name) {
            None => self.replace.push((name.to_vec(), path.to_vec())),
            Some((_, known)) if known != path && today.at(known) != today.at(path) => {
                if !self.disputed.iter().any(|known| known == name) {
                    self.disputed.push(name.to_vec());
                }
            }
            Some(_) => {}
        }
    }
}

impl Files for Absolute<'_> {
    fn at(&self, path: &[u8]) -> Found {
        match self.today.at(path) {
            Found::Object(identity, elf) => {
                let changed = self.changed.get(&identity).map(Arc::clone);
                Found::Object(identity, changed.unwrap_or(elf))
            }
            found => found,
        }
    }

    fn bytes(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.today.bytes(path)
    }

    fn real(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.today.real(path)
    }

    fn executable(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.today.executable(path)
    }
}

/// Returns whether a file belongs to the system's packages, which are not to be changed.
fn is_of_system(path: &[u8]) -> bool {
    const OF_SYSTEM: [&[u8]; 8] =
        [b"/usr/", b"/lib/", b"/lib64/", b"/lib32/", b"/libx32/", b"/bin/", b"/sbin/", b"/etc/"];
    !path.starts_with(b"/usr/local/") && OF_SYSTEM.iter().any(|place| path.starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::is_of_system;

    #[test]
    fn packages_of_the_system_are_left_alone() {
        for path in ["/usr/bin/ls", "/lib64/libc.so.6", "/usr/lib/x86_64-linux-gnu/libz.so.1"] {
            assert!(is_of_system(path.as_bytes()), "{path}");
        }
        for path in ["/usr/local/lib/libz.so", "/opt/x/lib/libx.so", "/home/me/usr/bin/x"] {
            assert!(!is_of_system(path.as_bytes()), "{path}");
        }
    }
}
