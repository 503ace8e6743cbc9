//! The recorder's own mount table, which every job needs, and tables of other namespaces on their way.

use proctrace_wire::layout::{Head, MountsFixed};
use zerocopy::FromBytes;

/// The records of the recorder's own table. Those of other namespaces are repeated for each process that is the
/// first there, and go to its job.
#[derive(Debug, Default)]
pub(crate) struct OwnMounts {
    namespace: Option<u32>,
    records: Vec<Vec<u8>>,
}

impl OwnMounts {
    /// Looks at a record of a table, and keeps it if it is of the own one; returns its namespace.
    pub(crate) fn keep(&mut self, record: &[u8]) -> Option<u32> {
        let (fixed, _) = MountsFixed::read_from_prefix(record).ok()?;
        // The recorder's own table is the first.
        if fixed.head.task == 0 && self.namespace.is_none() {
            self.namespace = Some(fixed.mount_namespace);
        }
        if self.namespace == Some(fixed.mount_namespace) {
            if fixed.offset == 0 {
                self.records.clear();
            }
            self.records.push(record.to_vec());
        }
        Some(fixed.mount_namespace)
    }

    /// The namespace, and its table.
    pub(crate) fn table(&self) -> Option<(u32, &[Vec<u8>])> {
        Some((self.namespace?, &self.records))
    }
}

/// A record of a mount table, as one that was read through this task of a job.
pub(crate) fn through(record: &[u8], task: u32) -> Vec<u8> {
    let mut copy = record.to_vec();
    let at = std::mem::offset_of!(Head, task);
    if let Some(place) = copy.get_mut(at..at + 4) {
        place.copy_from_slice(&task.to_le_bytes());
    }
    copy
}

#[cfg(test)]
mod tests {
    use proctrace_wire::{IntoBytes, Kind};

    use super::*;

    fn record(namespace: u32, task: u32, offset: u32) -> Vec<u8> {
        let head = Head { kind: Kind::Mounts as u16, size: 32, task, time_ns: 1 };
        let mount_namespace = namespace;
        MountsFixed { head, mount_namespace, offset, bytes: 0, total_bytes: 8 }.as_bytes().to_vec()
    }

    #[test]
    fn the_last_of_the_own_tables_is_kept() {
        let mut mounts = OwnMounts::default();
        for offset in [0, 8, 0] {
            assert_eq!(mounts.keep(&record(4, 0, offset)), Some(4));
        }
        assert_eq!(mounts.keep(&record(5, 7, 0)), Some(5));
        assert_eq!(mounts.keep(b"short"), None);
        let (namespace, records) = mounts.table().expect("it was told");
        assert_eq!((namespace, records), (4, &[record(4, 0, 0)][..]));
        assert_eq!(through(&record(5, 7, 0), 9), record(5, 9, 0));
    }
}
