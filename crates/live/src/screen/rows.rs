//! The rows of the tree: which processes, in which order, how deep.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{Screen, Sort};
use crate::state::{Process, View};

/// A row of the tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) serial: u32,
    pub(crate) depth: usize,
    /// Processes that are folded into it.
    pub(crate) folded: usize,
    /// Whether the filter matches it, and not only one below it.
    pub(crate) is_match: bool,
    /// Its own figures, with those of the processes that are folded into it.
    pub(crate) figures: Figures,
}

/// The figures of one process, or of a subtree.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    pub(crate) processes: usize,
    pub(crate) tasks: u64,
    pub(crate) cpu_ns: u64,
    /// CPU time per second, in nanoseconds.
    pub(crate) cpu_rate: f64,
    pub(crate) rss_bytes: Option<u64>,
    pub(crate) lookups_failed: u64,
    is_match: bool,
}

impl Figures {
    fn of(process: &Process, now_ns: u64) -> Self {
        Self {
            processes: 1,
            tasks: process.tasks.into(),
            cpu_ns: process.used.run_ns,
            cpu_rate: process.cpu.per_second(now_ns),
            rss_bytes: process.rss_bytes,
            lookups_failed: process.lookups_failed,
            is_match: false,
        }
    }

    fn add(&mut self, other: &Self) {
        self.processes = self.processes.saturating_add(other.processes);
        self.tasks = self.tasks.saturating_add(other.tasks);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.cpu_rate += other.cpu_rate;
        self.rss_bytes = match (self.rss_bytes, other.rss_bytes) {
            (Some(this), Some(other)) => Some(this.saturating_add(other)),
            (this, other) => this.or(other),
        };
        self.lookups_failed = self.lookups_failed.saturating_add(other.lookups_failed);
        self.is_match |= other.is_match;
    }
}

/// The rows of all processes that are alive, or of those that the filter matches and their
/// ancestors. Siblings are in the order of their subtrees.
pub(crate) fn rows(view: &View, screen: &Screen) -> Vec<Row> {
    let (own, whole) = figures(view, screen);
    let sort = screen.sort(super::Pane::Processes);
    let in_order = |serials: Vec<u32>| {
        let mut serials: Vec<u32> =
            serials.into_iter().filter(|s| whole.get(s).is_some_and(|f| f.is_match)).collect();
        serials.sort_by_cached_key(|serial| order(&whole[serial], *serial, sort, view));
        serials
    };
    let mut rows = Vec::new();
    // The next row is the last.
    let mut stack: Vec<(u32, usize)> =
        in_order(view.roots().collect()).into_iter().rev().map(|serial| (serial, 0)).collect();
    while let Some((serial, depth)) = stack.pop() {
        let Some(process) = view.process(serial) else { continue };
        let is_folded = screen.folded.contains(&serial) && !process.children.is_empty();
        let figures = if is_folded { whole[&serial] } else { own[&serial] };
        let folded = if is_folded { figures.processes.saturating_sub(1) } else { 0 };
        rows.push(Row { serial, depth, folded, is_match: own[&serial].is_match, figures });
        if !is_folded {
            let children = in_order(process.children.iter().copied().collect());
            stack.extend(children.into_iter().rev().map(|child| (child, depth + 1)));
        }
    }
    rows
}

type BySerial = HashMap<u32, Figures>;

/// The figures of each process, and of each subtree. Without recursion: a tree may be deep.
fn figures(view: &View, screen: &Screen) -> (BySerial, BySerial) {
    let now_ns = view.now_ns();
    let mut own = HashMap::new();
    let mut parents_first: Vec<u32> = view.roots().collect();
    let mut at = 0;
    while let Some(serial) = parents_first.get(at).copied() {
        at += 1;
        let Some(process) = view.process(serial) else { continue };
        let mut figures = Figures::of(process, now_ns);
        figures.is_match = screen.filter.is_empty()
            || screen.matches(&process.title())
            || screen.matches(&process.pid.to_string())
            || screen.matches(program(view, process));
        own.insert(serial, figures);
        parents_first.extend(&process.children);
    }
    let mut whole: BySerial = own.clone();
    for serial in parents_first.iter().rev() {
        let Some(subtree) = whole.get(serial).copied() else { continue };
        let parent = view.process(*serial).and_then(|process| process.parent);
        if let Some(parent) = parent.and_then(|parent| whole.get_mut(&parent)) {
            parent.add(&subtree);
        }
    }
    (own, whole)
}

/// The name of the program that a process runs.
pub(crate) fn program<'a>(view: &'a View, process: &Process) -> &'a str {
    view.programs.get(process.program).map_or("", |program| &program.name.name)
}

fn order(figures: &Figures, serial: u32, sort: Sort, view: &View) -> (Reverse<u64>, i32, u32) {
    let value = match sort {
        // Saturates; rates are far below the limit.
        Sort::Recent => figures.cpu_rate as u64,
        Sort::Cpu => figures.cpu_ns,
        Sort::Memory => figures.rss_bytes.unwrap_or(0),
        Sort::Failed => figures.lookups_failed,
        Sort::Count | Sort::Name => 0,
    };
    (Reverse(value), view.process(serial).map_or(0, |process| process.pid), serial)
}
