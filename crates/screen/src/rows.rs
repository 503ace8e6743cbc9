//! The rows of the tree: which processes, in which order, how deep.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use proctrace_live::{Process, View};

use crate::{Screen, Sort};

/// The time that rates are about.
const WINDOW_NS: u64 = 2_000_000_000;

/// A row of the tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) serial: u32,
    pub(crate) depth: usize,
    /// Processes that are folded into it.
    pub(crate) folded: usize,
    /// True if the filter matches it, and not only one below it.
    pub(crate) is_match: bool,
    /// Its own figures, with those of the processes that are folded into it.
    pub(crate) figures: Figures,
    /// Set if it is about processes that have ended lately.
    pub(crate) ended: Option<Ended>,
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

    /// The figures of a process that has ended: its peak memory, and the CPU time of the last window,
    /// of which it has as much as it lived in it.
    fn of_ended(process: &Process, now_ns: u64) -> Self {
        let begin_ns = now_ns.saturating_sub(WINDOW_NS);
        let ended_ns = process.end.map_or(now_ns, |(ended_ns, _)| ended_ns);
        let life_ns = ended_ns.saturating_sub(process.started_ns).max(1);
        let lately_ns = ended_ns.saturating_sub(process.started_ns.max(begin_ns)).min(life_ns);
        let share =
            if process.started_ns >= begin_ns { 1.0 } else { lately_ns as f64 / life_ns as f64 };
        Self {
            processes: 0,
            tasks: 0,
            cpu_ns: process.used.run_ns,
            cpu_rate: process.used.run_ns as f64 * share * 1e9 / WINDOW_NS as f64,
            rss_bytes: process.maxrss_bytes,
            lookups_failed: process.lookups_failed,
            is_match: false,
        }
    }

    /// Adds an ended process, which had its memory at another time.
    fn add_ended(&mut self, other: &Self) {
        let most = self.rss_bytes.max(other.rss_bytes);
        self.add(other);
        self.rss_bytes = most;
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

/// Processes that have ended lately, had the same program and hang below the same process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ended {
    pub(crate) processes: u64,
    /// Those that did not end with 0.
    pub(crate) failed: u64,
}

/// The ended processes of a row.
#[derive(Debug, Clone, Copy)]
struct Group {
    /// The last of them, which stands for all.
    serial: u32,
    ended: Ended,
    figures: Figures,
}

/// Subject of a row.
#[derive(Debug, Clone, Copy)]
enum Item {
    Living(u32),
    Ended(Group),
}

/// The rows of all processes that are alive, and of those that have ended lately: many of these never
/// live long enough to be seen. If there is a filter, of those that it matches and their ancestors.
/// Siblings are in the order of their subtrees.
pub(crate) fn rows(view: &View, screen: &Screen) -> Vec<Row> {
    let mut ended = ended(view, screen);
    let (own, whole) = figures(view, screen, &ended);
    let sort = screen.sort(super::Pane::Processes);
    let mut in_order = |serials: Vec<u32>, below: Option<u32>| {
        let living = serials.into_iter().filter(|s| whole.get(s).is_some_and(|f| f.is_match));
        let dead = ended.remove(&below).unwrap_or_default().into_values().map(Item::Ended);
        let mut items: Vec<Item> = living.map(Item::Living).chain(dead).collect();
        items.sort_by_cached_key(|item| match item {
            Item::Living(serial) => order(&whole[serial], *serial, sort, view),
            Item::Ended(group) => order(&group.figures, group.serial, sort, view),
        });
        items
    };
    let mut rows = Vec::new();
    // The next row is the last.
    let mut stack: Vec<(Item, usize)> =
        in_order(view.roots().collect(), None).into_iter().rev().map(|item| (item, 0)).collect();
    while let Some((item, depth)) = stack.pop() {
        let serial = match item {
            Item::Living(serial) => serial,
            Item::Ended(Group { serial, ended, figures }) => {
                rows.push(Row {
                    serial,
                    depth,
                    folded: 0,
                    is_match: true,
                    figures,
                    ended: Some(ended),
                });
                continue;
            }
        };
        let Some(process) = view.process(serial) else { continue };
        let is_folded = screen.folded.contains(&serial) && !process.children.is_empty();
        let figures = if is_folded { whole[&serial] } else { own[&serial] };
        let folded = if is_folded { figures.processes.saturating_sub(1) } else { 0 };
        let is_match = own[&serial].is_match;
        rows.push(Row { serial, depth, folded, is_match, figures, ended: None });
        if !is_folded {
            let children = in_order(process.children.iter().copied().collect(), Some(serial));
            stack.extend(children.into_iter().rev().map(|child| (child, depth + 1)));
        }
    }
    rows
}

/// The processes that have ended lately and that the filter matches, by the living process that they hang below and by program.
fn ended(view: &View, screen: &Screen) -> HashMap<Option<u32>, BTreeMap<u32, Group>> {
    let mut groups = HashMap::<_, BTreeMap<u32, Group>>::new();
    if screen.is_over {
        return groups;
    }
    for process in view.ended_lately().filter(|process| is_match(view, screen, process)) {
        let below = groups.entry(view.living_ancestor(process)).or_default();
        // The last comes first.
        let group = below.entry(process.program).or_insert_with(|| Group {
            serial: process.serial,
            ended: Ended::default(),
            figures: Figures::default(),
        });
        group.ended.processes += 1;
        group.ended.failed += u64::from(process.end.is_some_and(|(_, status)| status != 0));
        group.figures.add_ended(&Figures::of_ended(process, view.now_ns()));
    }
    groups
}

fn is_match(view: &View, screen: &Screen, process: &Process) -> bool {
    screen.filter.is_empty()
        || screen.matches(&process.title())
        || screen.matches(&process.pid.to_string())
        || screen.matches(program(view, process))
}

type BySerial = HashMap<u32, Figures>;

/// The figures of each process, and of each subtree. Without recursion: a tree may be deep.
fn figures(
    view: &View,
    screen: &Screen,
    ended: &HashMap<Option<u32>, BTreeMap<u32, Group>>,
) -> (BySerial, BySerial) {
    let now_ns = view.now_ns();
    let mut own = HashMap::new();
    let mut parents_first: Vec<u32> = view.roots().collect();
    let mut at = 0;
    while let Some(serial) = parents_first.get(at).copied() {
        at += 1;
        let Some(process) = view.process(serial) else { continue };
        let mut figures = Figures::of(process, now_ns);
        figures.is_match = is_match(view, screen, process);
        own.insert(serial, figures);
        parents_first.extend(&process.children);
    }
    let mut whole: BySerial = own.clone();
    for above in ended.keys().flatten() {
        if let Some(above) = whole.get_mut(above) {
            above.is_match = true;
        }
    }
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
