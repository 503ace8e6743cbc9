//! Mounts in the namespaces of a recording, and the places to which paths of processes lead.

use std::collections::HashMap;

use proctrace_replay::{Assembler, Body, Event, Mount, MountTable};
use proctrace_wire::Record;

/// Root from which the paths of a process lead.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Root {
    /// Inode number of the mount namespace.
    pub(crate) namespace: u32,
    /// The root directory in the namespace.
    pub(crate) path: Vec<u8>,
}

/// The mounts of each namespace over the whole recording.
#[derive(Debug, Default)]
pub(crate) struct Mounts {
    tables: HashMap<u32, MountTable>,
    /// The namespace of the recorder, which is that of processes without a recorded place.
    pub(crate) own: Option<u32>,
}

impl Mounts {
    /// Takes the mount tables among the records of the lifecycle. Those of one namespace are put together, because a
    /// file system may be mounted on its first use (autofs), or unmounted before the end: the latest table covers the
    /// ones before.
    pub(crate) fn take(&mut self, assembler: &mut Assembler, record: Record<'_>) {
        if !matches!(record, Record::Mounts(..)) {
            return;
        }
        assembler.take(record, &mut |event: Event| {
            if let Body::Mounts(table) = event.body {
                if event.task == 0 {
                    self.own.get_or_insert(table.namespace);
                }
                self.add(table);
            }
        });
    }

    fn add(&mut self, mut table: MountTable) {
        let Some(before) = self.tables.remove(&table.namespace) else {
            self.tables.insert(table.namespace, table);
            return;
        };
        let is_gone = |mount: &Mount| !table.mounts.iter().any(|other| other.point == mount.point);
        let mut mounts: Vec<Mount> = before.mounts.into_iter().filter(is_gone).collect();
        mounts.append(&mut table.mounts);
        self.tables.insert(table.namespace, MountTable { mounts, ..table });
    }

    /// The mount to which a path belongs that a process with this root looks up.
    pub(crate) fn of(&self, root: Option<&Root>, path: &[u8]) -> Option<&Mount> {
        if !path.starts_with(b"/") {
            return None;
        }
        let namespace = root.map(|root| root.namespace).or(self.own)?;
        let table = self.tables.get(&namespace)?;
        match root.map(|root| &root.path[..]) {
            None | Some(b"/") => table.of(path),
            Some(root) => table.of(&[root, path].concat()),
        }
    }

    pub(crate) fn table(&self, namespace: u32) -> Option<&MountTable> {
        self.tables.get(&namespace)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const FIRST: &[u8] = b"1 0 254:0 / / - ext4 /dev/vda\n\
        2 1 0:50 / /cvmfs - autofs auto\n3 1 0:51 / /mnt - nfs4 server:/x\n";
    const LATER: &[u8] = b"1 0 254:0 / / - ext4 /dev/vda\n2 1 0:50 / /cvmfs - autofs auto\n\
        4 2 0:52 / /cvmfs/alice.cern.ch - fuse cvmfs2\n";

    /// Our namespace, in which a file system was mounted on its first use, and that of a container.
    pub(crate) fn recorded() -> Mounts {
        let mut mounts = Mounts { own: Some(7), ..Mounts::default() };
        mounts.add(MountTable::parse(7, FIRST));
        mounts.add(MountTable::parse(7, LATER));
        mounts.add(MountTable::parse(8, b"9 0 0:60 / / - overlay image\n"));
        mounts
    }

    #[test]
    fn what_was_mounted_at_any_time_is_found() {
        let mounts = recorded();
        let type_of = |root: Option<&Root>, path: &str| {
            mounts.of(root, path.as_bytes()).map(|m| String::from_utf8(m.fs_type.clone()).unwrap())
        };
        for (path, expected) in [
            ("/usr/lib", Some("ext4")),
            ("/cvmfs/alice.cern.ch/lib", Some("fuse")),
            ("/cvmfs/other", Some("autofs")),
            ("/mnt/data", Some("nfs4")),
            ("lib", None),
        ] {
            assert_eq!(type_of(None, path).as_deref(), expected, "{path}");
        }
        let root = |namespace, path: &str| Root { namespace, path: path.as_bytes().to_vec() };
        assert_eq!(type_of(Some(&root(8, "/")), "/mnt/data").as_deref(), Some("overlay"));
        assert_eq!(type_of(Some(&root(7, "/mnt")), "/usr/lib").as_deref(), Some("nfs4"));
        assert_eq!(type_of(Some(&root(9, "/")), "/usr/lib"), None);
    }
}
