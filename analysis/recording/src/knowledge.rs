//! The quantities that a recording contains, and those that each result needs: a result whose
//! quantities are not known is left out, never computed from the zeros that stand in for them.

use std::collections::BTreeMap;

use proctrace_findings::{Knowledge as State, Known, Loss, MetricFamily};
use proctrace_trace::{Header, Knowledge, SCOPE_TREE};
use proctrace_wire::{Kind, Quantity};

use Quantity::Forks;

/// Knowledge of each quantity.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Knows {
    absent: BTreeMap<Quantity, String>,
    estimates: BTreeMap<Quantity, String>,
    bounds: BTreeMap<Quantity, String>,
    /// True if the source read sums over a whole tree of processes.
    sums_tree: bool,
}

impl Knows {
    /// The initial state, as declared in the header.
    pub fn of(header: &Header) -> Self {
        let method = |quantity| match header.knows(quantity) {
            Knowledge::Estimate { method } => Some((quantity, method)),
            Knowledge::Exact | Knowledge::Absent { .. } => None,
        };
        Self {
            absent: header.absent(),
            estimates: Quantity::ALL.iter().copied().filter_map(method).collect(),
            bounds: BTreeMap::new(),
            sums_tree: header.scope == SCOPE_TREE,
        }
    }

    /// Marks a quantity as unknown.
    pub fn lacks(&mut self, quantity: Quantity, reason: String) {
        self.absent.entry(quantity).or_insert(reason);
    }

    /// Marks a quantity as estimated.
    pub fn estimates(&mut self, quantity: Quantity, method: String) {
        self.estimates.entry(quantity).or_insert(method);
    }

    /// Marks a quantity as a lower bound.
    pub fn bounds(&mut self, quantity: Quantity, why: &str) {
        self.bounds.entry(quantity).or_insert_with(|| why.to_owned());
    }

    /// True if all of these are known, exactly or not.
    pub fn all(&self, needs: &[Quantity]) -> bool {
        !needs.iter().any(|quantity| self.absent.contains_key(quantity))
    }

    /// The value, if every quantity it needs is known.
    pub fn some<T>(&self, needs: &[Quantity], figure: T) -> Option<T> {
        self.all(needs).then_some(figure)
    }

    /// True if sums over all tasks are known. They lack those whose births are not known, unless the source read the
    /// sums themselves.
    pub fn sums(&self, needs: &[Quantity]) -> bool {
        let is_needed = |need: &&Quantity| **need != Forks || !self.sums_tree;
        !needs.iter().filter(is_needed).any(|quantity| self.absent.contains_key(quantity))
    }

    /// The sum over all tasks, if it is known.
    pub fn sum<T>(&self, needs: &[Quantity], figure: T) -> Option<T> {
        self.sums(needs).then_some(figure)
    }

    /// True if the source read sums over a whole tree, of which one process in the recording has all.
    pub fn is_of_a_tree(&self) -> bool {
        self.sums_tree
    }

    /// True if what a metric needs is known.
    pub fn knows_metric(&self, family: &MetricFamily) -> bool {
        if family.is_sum { self.sums(family.needs) } else { self.all(family.needs) }
    }

    /// True if the failures of a family of calls, given by name, are known.
    pub fn knows_family(&self, family: &str) -> bool {
        !self.absent.keys().any(|quantity| quantity.family() == Some(family))
    }

    /// The reason a quantity is not known; None if it is.
    pub(crate) fn why_absent(&self, quantity: Quantity) -> Option<&str> {
        self.absent.get(&quantity).map(String::as_str)
    }

    /// The reason quantities are not known, each once: "failed stats are not known (left out by --misses)".
    pub fn why_not(&self, needs: &[Quantity]) -> Option<String> {
        let missing =
            needs.iter().filter_map(|quantity| Some((quantity, self.absent.get(quantity)?)));
        let mut says: Vec<(&str, Vec<&str>)> = Vec::new();
        for (quantity, reason) in missing {
            match says.iter_mut().find(|(known, _)| known == reason) {
                Some((_, quantities)) if quantities.contains(&quantity.says()) => {}
                Some((_, quantities)) => quantities.push(quantity.says()),
                None => says.push((reason, vec![quantity.says()])),
            }
        }
        let says: Vec<String> = says
            .into_iter()
            .map(|(reason, quantities)| format!("{}: {reason}", quantities.join(", ")))
            .collect();
        (!says.is_empty()).then(|| says.join("; "))
    }

    /// The state of every quantity, in the form of the findings. Lost records turn exact quantities
    /// into lower bounds.
    pub fn findings(&self, losses: &[Loss]) -> Vec<Known> {
        let state = |quantity: Quantity| {
            if let Some(reason) = self.absent.get(&quantity) {
                return (State::Absent, Some(reason.clone()));
            }
            if let Some(method) = self.estimates.get(&quantity) {
                return (State::Estimate, Some(method.clone()));
            }
            if let Some(why) = self.bounds.get(&quantity) {
                return (State::LowerBound, Some(why.clone()));
            }
            let lost: u64 = losses
                .iter()
                .filter(|loss| {
                    quantity
                        .is_lost_with(Kind::ALL.into_iter().find(|kind| kind.name() == loss.kind))
                })
                .fold(0, |lost, loss| lost.saturating_add(loss.count));
            match lost {
                0 => (State::Exact, None),
                1 => (State::LowerBound, Some("1 record was lost".to_owned())),
                lost => (State::LowerBound, Some(format!("{lost} records were lost"))),
            }
        };
        Quantity::ALL
            .into_iter()
            .map(|quantity| {
                let (state, why) = state(quantity);
                Known { quantity: quantity.name(), state, why }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use Quantity::{Cpu, LookupsOpen, LookupsStat, Memory, Samples};

    #[test]
    fn reasons_are_told_once() {
        let mut knows = Knows::default();
        for quantity in [LookupsOpen, LookupsStat] {
            knows.lacks(quantity, "left out by --misses".into());
        }
        knows.lacks(Memory, "recorded without --memory".into());
        assert_eq!(
            knows.why_not(&[LookupsOpen, Memory, LookupsStat, Forks, LookupsOpen]).as_deref(),
            Some(
                "failed opens, failed stats: left out by --misses; memory over time: recorded \
                 without --memory"
            )
        );
        assert_eq!(knows.why_not(&[Forks]), None);
        assert!(knows.knows_metric(MetricFamily::named("total_cpu_seconds").unwrap()));
        knows.lacks(Forks, "not in a log of prmon".into());
        assert!(
            !knows.knows_metric(MetricFamily::named("total_cpu_seconds").unwrap())
                && !knows.sums(&[Forks, Cpu])
        );
        knows.sums_tree = true;
        assert!(
            knows.knows_metric(MetricFamily::named("total_cpu_seconds").unwrap())
                && knows.sums(&[Forks, Cpu])
        );
        assert!(
            !knows.knows_metric(MetricFamily::named("detached_cpu_seconds").unwrap())
                && !knows.all(&[Forks, Cpu])
        );
        assert!(!knows.sums(&[Forks, Memory]));
        assert_eq!((knows.some(&[Cpu], 1), knows.some(&[Cpu, Memory], 1)), (Some(1), None));
    }

    #[test]
    fn losses_make_lower_bounds() {
        let loss = |kind: Kind| Loss { kind: kind.name().into(), reason: "ring".into(), count: 3 };
        let of = |kind, quantity: Quantity| {
            let known = Knows::default().findings(&[loss(kind)]);
            known.into_iter().find(|known| known.quantity == quantity.name()).unwrap().state
        };
        assert_eq!(of(Kind::Fork, Cpu), State::LowerBound);
        assert_eq!(of(Kind::LookupFailed, Cpu), State::Exact);
        assert_eq!(of(Kind::LookupFailed, LookupsStat), State::LowerBound);
        assert_eq!(of(Kind::Sample, Samples), State::LowerBound);
    }
}
