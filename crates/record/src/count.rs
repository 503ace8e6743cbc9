//! Counting records as they arrive, so that a recording can be summarized without reading it back.

use std::collections::BTreeMap;

use proctrace_wire::{Frame, Kind, Record};

/// Numbers of records received, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    records: [u64; Kind::ALL.len()],
    /// Traced processes, including the command.
    pub processes: u64,
    /// Traced threads, excluding the first of each process.
    pub threads: u64,
}

impl Counts {
    /// Traced tasks.
    pub fn tasks(&self) -> u64 {
        self.processes + self.threads
    }

    /// Records of this kind.
    pub fn records(&self, kind: Kind) -> u64 {
        self.records[kind as usize - 1]
    }

    /// Records by the name of their kind, without zero counts.
    pub fn by_name(&self) -> BTreeMap<String, u64> {
        Kind::ALL
            .into_iter()
            .filter(|kind| self.records(*kind) > 0)
            .map(|kind| (kind.name().to_owned(), self.records(kind)))
            .collect()
    }

    /// Counts a record that was received.
    #[inline]
    pub fn add(&mut self, frame: Frame<'_>) {
        // Kinds are numbered from 1.
        let Some(count) = self.records.get_mut(usize::from(frame.head.kind).wrapping_sub(1)) else {
            return;
        };
        *count += 1;
        if [Kind::Attach as u16, Kind::Fork as u16].contains(&frame.head.kind) {
            match Record::decode(frame) {
                Ok(Record::Fork(fork)) if fork.is_thread() => self.threads += 1,
                Ok(Record::Attach(attach)) if attach.is_thread() => {
                    self.threads += 1;
                }
                _ => self.processes += 1,
            }
        }
    }
}
