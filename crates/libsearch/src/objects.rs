//! The objects of a process: its program and the libraries that were loaded.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::elf::Elf;
use crate::files::Identity;

/// A loaded object: `struct link_map` of glibc, `struct dso` of musl.
pub(crate) struct Object {
    pub(crate) path: Arc<[u8]>,
    pub(crate) elf: Arc<Elf>,
    /// The object that asked for it.
    pub(crate) loader: Option<usize>,
}

impl Object {
    pub(crate) fn new(path: &[u8], elf: Arc<Elf>, loader: Option<usize>) -> Self {
        Self { path: path.into(), elf, loader }
    }
}

/// The objects of a process in the order in which they were loaded, by the names that glibc knows.
#[derive(Default)]
pub(crate) struct Objects {
    all: Vec<Object>,
    names: HashSet<Vec<u8>>,
    identities: HashMap<Identity, usize>,
}

impl Objects {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Object> {
        self.all.get(at)
    }

    /// The files of all objects.
    pub(crate) fn paths(&self) -> Vec<Vec<u8>> {
        self.all.iter().map(|object| object.path.to_vec()).collect()
    }

    /// Returns whether an object goes by this name: the path of its file, its DT_SONAME, or a name that it was asked
    /// for by.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.names.contains(name)
    }

    /// Adds an object; without an identity, the file can be loaded once more.
    pub(crate) fn add(&mut self, object: Object, identity: Option<Identity>) {
        self.names.extend([object.path.to_vec()].into_iter().chain(object.elf.soname.clone()));
        if let Some(identity) = identity {
            self.identities.entry(identity).or_insert(self.all.len());
        }
        self.all.push(object);
    }

    pub(crate) fn add_named(&mut self, object: Object, identity: Identity, name: &[u8]) {
        self.add(object, Some(identity));
        self.names.insert(name.to_vec());
    }

    /// Gives the object with this file another name; false if there is none.
    pub(crate) fn alias(&mut self, identity: Identity, name: &[u8]) -> bool {
        let is_known = self.identities.contains_key(&identity);
        if is_known {
            self.names.insert(name.to_vec());
        }
        is_known
    }
}
