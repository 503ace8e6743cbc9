//! Lines of a log that were not understood: the first lines, and how many.

use std::collections::BTreeMap;

use proctrace_trace::LossCount;
use proctrace_wire::{Kind, LossReason};

/// Lines that are named.
const NAMED: usize = 5;
/// Characters shown of one.
const SHOWN: usize = 48;

/// A line that was not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// The log.
    pub log: String,
    /// The line, from 1.
    pub line: u64,
    /// Its beginning.
    pub text: String,
}

/// All lines that were not understood.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Doubts {
    /// The first ones.
    pub first: Vec<Doubt>,
    /// Number of such lines.
    pub lines: u64,
    lost: BTreeMap<Kind, u64>,
}

impl Doubts {
    /// A line was not understood; `lost` is the kind of record that it would have become, if it is one
    /// that strace wrote.
    pub(crate) fn note(&mut self, log: &str, line: u64, text: &[u8], lost: Option<Kind>) {
        self.lines = self.lines.saturating_add(1);
        if self.first.len() < NAMED {
            let text = String::from_utf8_lossy(text);
            let mut shown: String = text.chars().take(SHOWN).collect();
            if shown.len() < text.len() {
                shown.push('…');
            }
            self.first.push(Doubt { log: log.to_owned(), line, text: shown });
        }
        if let Some(kind) = lost {
            self.lose(kind, 1);
        }
    }

    /// Counts records that are missing.
    pub(crate) fn lose(&mut self, kind: Kind, count: u64) {
        if count > 0 {
            let lost = self.lost.entry(kind).or_default();
            *lost = lost.saturating_add(count);
        }
    }

    pub(crate) fn losses(&self) -> Vec<LossCount> {
        let loss = |(kind, count): (&Kind, &u64)| LossCount {
            kind: *kind,
            reason: LossReason::Unreadable,
            cpu: None,
            count: *count,
        };
        self.lost.iter().map(loss).collect()
    }
}
