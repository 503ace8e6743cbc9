//! Attributes tasks to the payload, for tracers that record the whole machine: only the payload's
//! events count.

use std::collections::{HashMap, HashSet};
use std::fs;

/// All existing tasks, so that their later children are not attributed to the payload.
pub(super) fn alive() -> HashSet<u64> {
    let numbers = |directory: &str| {
        fs::read_dir(directory)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect::<Vec<u64>>()
    };
    let processes = numbers("/proc").into_iter();
    processes.flat_map(|pid| numbers(&format!("/proc/{pid}/task"))).collect()
}

/// The parent relation of tasks, as reported by a tracer.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    root: u64,
    others: &'a HashSet<u64>,
    /// For each id the tasks that had it, by position of their report, and their parents.
    births: HashMap<u64, Vec<(usize, u64)>>,
    /// Position of the report of the root's first child: earlier events are not the payload's.
    start: Option<usize>,
    /// True if tasks of unknown parentage that did not exist before belong to the payload.
    orphans: bool,
}

/// Maximum number of events by which one precedes the birth of its task: with several CPUs it may be reported slightly
/// before; but not so early that an id is reused.
const DISORDER: usize = 100;

impl<'a> Tree<'a> {
    /// The tree of `root`, where `others` existed before its first action. For a tool that reports
    /// forks, `orphans` belong to the payload: otherwise a tool that lost a fork would be charged
    /// with the lost exit as well.
    pub(super) fn new(root: u64, others: &'a HashSet<u64>, orphans: bool) -> Self {
        Self { root, others, births: HashMap::new(), start: None, orphans }
    }

    /// Adds a task and its parent, reported as the `at`-th event; must be called in this order.
    pub(super) fn add(&mut self, child: u64, parent: u64, at: usize) {
        if parent == self.root {
            self.start.get_or_insert(at);
        }
        self.births.entry(child).or_default().push((at, parent));
    }

    /// Returns whether the task that had this id at some event belongs to the payload.
    pub(super) fn holds(&self, task: u64, at: usize) -> bool {
        let (mut task, mut at) = (task, at);
        // Ids are reused, so old parents could form a cycle.
        for _ in 0..1000 {
            if task == self.root {
                return true;
            }
            // A parent whose id is not visible is in another pid namespace.
            if task == 0 {
                return false;
            }
            let births = self.births.get(&task).map_or(&[][..], Vec::as_slice);
            let until = births.partition_point(|(birth, _)| *birth <= at.saturating_add(DISORDER));
            let Some((birth, parent)) = births[..until].last().or(births.first()) else {
                let begun = self.start.is_none_or(|start| at >= start);
                return self.orphans && begun && !self.others.contains(&task);
            };
            (task, at) = (*parent, *birth);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_and_orphans_are_held_and_strangers_are_not() {
        let others = HashSet::from([1, 50]);
        let mut tree = Tree::new(100, &others, true);
        for (at, (child, parent)) in
            [(101, 100), (102, 101), (60, 50), (61, 60), (70, 0)].into_iter().enumerate()
        {
            tree.add(child, parent, at);
        }
        assert!(tree.holds(100, 9) && tree.holds(102, 9));
        assert!(!tree.holds(50, 9) && !tree.holds(61, 9));
        assert!(tree.holds(103, 9) && !tree.holds(70, 9));
        tree.orphans = false;
        assert!(tree.holds(102, 9) && !tree.holds(103, 9));
    }

    #[test]
    fn a_number_is_whose_it_was_at_the_time() {
        let others = HashSet::from([50]);
        let mut tree = Tree::new(100, &others, true);
        let later = 5 * DISORDER;
        tree.add(200, 100, 20);
        tree.add(200, 50, later);
        assert!(tree.holds(200, 10), "told of before its birth");
        assert!(tree.holds(200, 30));
        assert!(!tree.holds(200, later + 1));
    }

    #[test]
    fn nothing_is_the_payloads_before_it_begins() {
        let others = HashSet::new();
        let mut tree = Tree::new(100, &others, true);
        tree.add(61, 60, 0);
        tree.add(101, 100, 5);
        tree.add(62, 61, 6);
        assert!(!tree.holds(60, 1) && !tree.holds(61, 9) && !tree.holds(62, 9));
        assert!(tree.holds(103, 9));
    }

    #[test]
    fn a_ring_ends() {
        let others = HashSet::new();
        let mut tree = Tree::new(1, &others, true);
        tree.add(2, 3, 0);
        tree.add(3, 2, 1);
        assert!(!tree.holds(2, 2));
    }
}
