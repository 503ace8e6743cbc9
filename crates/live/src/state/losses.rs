//! Records that the recorder could not keep.

use std::collections::BTreeMap;

use proctrace_wire::layout::Loss;
use proctrace_wire::{Kind, LossReason};

/// Maximum number of counts: a sound trace has a few for each CPU; more come only from a hostile one.
const COUNTS_MAX: usize = 1 << 16;

/// Losses by kind, reason and CPU.
#[derive(Debug, Clone, Default)]
pub struct Losses {
    /// The latest count of each: they are counted since the start.
    counts: BTreeMap<(u16, u16, u32), u64>,
}

impl Losses {
    pub(crate) fn note(&mut self, loss: &Loss) {
        let key = (loss.kind, loss.reason, loss.cpu);
        if self.counts.len() < COUNTS_MAX || self.counts.contains_key(&key) {
            let count = self.counts.entry(key).or_default();
            *count = loss.count.max(*count);
        }
    }

    /// Lost records of all kinds.
    pub fn total(&self) -> u64 {
        self.counts.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Kind, reason and number, summed over the CPUs; the largest first.
    pub fn by_kind(&self) -> Vec<(String, String, u64)> {
        let mut sums = BTreeMap::<(u16, u16), u64>::new();
        for ((kind, reason, _), count) in &self.counts {
            let sum = sums.entry((*kind, *reason)).or_default();
            *sum = sum.saturating_add(*count);
        }
        let name = |name: Option<&str>, number| name.map_or(format!("{number}"), str::to_owned);
        let mut rows: Vec<_> = sums
            .into_iter()
            .map(|((kind, reason), count)| {
                let kind = name(Kind::from_number(kind).map(Kind::name), kind);
                let reason = name(LossReason::from_number(reason).map(LossReason::name), reason);
                (kind, reason, count)
            })
            .collect();
        rows.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.cmp(b)));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn counts_of_each_cpu_are_since_the_start() {
        let mut losses = Losses::default();
        for (cpu, count) in [(0, 3), (1, 4), (0, 5)] {
            let mut loss = Loss::new_zeroed();
            (loss.kind, loss.reason, loss.cpu, loss.count) = (2, 1, cpu, count);
            losses.note(&loss);
        }
        assert_eq!(losses.total(), 9);
        assert_eq!(losses.by_kind(), [("fork".to_owned(), "ring_full".to_owned(), 9)]);
    }
}
