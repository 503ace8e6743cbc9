//! The mount tables that jobs share: each is recorded once for the node, and written to every job that has
//! processes in that namespace.

use std::collections::HashMap;

use proctrace_wire::Kind;
use proctrace_wire::layout::{Head, MountsFixed};
use zerocopy::FromBytes;

/// With more namespaces than this, those that no live job uses are forgotten.
const NAMESPACES_MAX: usize = 256;

/// The records of the last table of each namespace.
#[derive(Debug, Default)]
pub(crate) struct SharedMounts {
    tables: HashMap<u32, Vec<Vec<u8>>>,
    /// That of the recorder.
    own: Option<u32>,
}

impl SharedMounts {
    /// Keeps a record of a table; returns its namespace.
    pub(crate) fn keep(&mut self, record: &[u8]) -> Option<u32> {
        let (fixed, _) = MountsFixed::read_from_prefix(record).ok()?;
        // The recorder's own table is the first.
        if fixed.head.task == 0 && self.own.is_none() {
            self.own = Some(fixed.mount_namespace);
        }
        let table = self.tables.entry(fixed.mount_namespace).or_default();
        if fixed.offset == 0 {
            table.clear();
        }
        table.push(record.to_vec());
        Some(fixed.mount_namespace)
    }

    /// The namespace of the recorder.
    pub(crate) fn own(&self) -> Option<u32> {
        self.own
    }

    /// The records of a namespace.
    pub(crate) fn of(&self, namespace: u32) -> &[Vec<u8>] {
        self.tables.get(&namespace).map_or(&[], Vec::as_slice)
    }

    /// Forgets the tables that nobody uses, if there are many.
    pub(crate) fn prune(&mut self, is_used: impl Fn(u32) -> bool) {
        if self.tables.len() > NAMESPACES_MAX {
            let own = self.own;
            self.tables.retain(|namespace, _| Some(*namespace) == own || is_used(*namespace));
        }
    }
}

/// A record of a mount table, as one that was read through this task of a job.
pub(crate) fn through(record: &[u8], task: u32) -> Vec<u8> {
    let mut copy = record.to_vec();
    let at = std::mem::offset_of!(Head, task);
    if let Some(place) = copy.get_mut(at..at + 4) {
        place.copy_from_slice(&task.to_le_bytes());
    }
    debug_assert_eq!(copy.first(), Some(&(Kind::Mounts as u8)));
    copy
}

#[cfg(test)]
mod tests {
    use proctrace_wire::IntoBytes;

    use super::*;

    fn record(namespace: u32, task: u32, offset: u32) -> Vec<u8> {
        let head = Head { kind: Kind::Mounts as u16, size: 32, task, time_ns: 1 };
        let fixed =
            MountsFixed { head, mount_namespace: namespace, offset, bytes: 0, total_bytes: 8 };
        fixed.as_bytes().to_vec()
    }

    #[test]
    fn the_last_table_of_a_namespace_is_kept() {
        let mut mounts = SharedMounts::default();
        assert_eq!(mounts.keep(&record(4, 0, 0)), Some(4));
        for offset in [0, 8, 0, 8] {
            assert_eq!(mounts.keep(&record(5, 7, offset)), Some(5));
        }
        assert_eq!(mounts.keep(b"short"), None);
        assert_eq!((mounts.own(), mounts.of(4).len(), mounts.of(5).len()), (Some(4), 1, 2));
        assert_eq!(through(&record(5, 7, 0), 9), record(5, 9, 0));
    }

    #[test]
    fn tables_of_jobs_that_are_gone_are_forgotten() {
        let mut mounts = SharedMounts::default();
        mounts.keep(&record(1, 0, 0));
        for namespace in 2..=300 {
            mounts.keep(&record(namespace, 7, 0));
        }
        mounts.prune(|namespace| namespace == 299);
        assert_eq!([1, 2, 299].map(|namespace| mounts.of(namespace).len()), [1, 0, 1]);
    }
}
