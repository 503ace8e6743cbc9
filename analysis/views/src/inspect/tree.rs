//! The process tree, with siblings of the same command line as one row.

use std::cmp::Reverse;
use std::collections::HashMap;

use proctrace_findings::{ProcessTree, TreeRow};
use proctrace_overview::details::since;
use proctrace_overview::steps::group_of;
use proctrace_recording::Recording;
use proctrace_recording::error::AnalysisError;
use proctrace_recording::lines::Distinct;
use proctrace_wire::Quantity;

use super::find::of_serial;
use super::relatives::{self, Shape};
use super::{clock_time, is_alive};

/// The part of the tree that is shown, and its form.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TreeView {
    /// Only the processes that were alive at this time, since the start of the recording.
    pub at_ns: Option<u64>,
    /// Only the process with this serial and its descendants.
    pub root: Option<u32>,
    /// Only rows with fewer rows than this above them.
    pub depth: Option<u32>,
    /// Only rows with at least this percentage of the CPU time or of the processes, with what is below
    /// them.
    pub min_percent: f64,
    /// At most this number of rows, those that come first in the order.
    pub rows: Option<usize>,
    /// The order of siblings.
    pub sort: TreeSort,
    /// Only rows of steps, each with the processes that are no other row's.
    pub steps: bool,
}

/// The order of siblings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TreeSort {
    /// Most CPU time first.
    #[default]
    Cpu,
    /// Most processes first.
    Processes,
    /// In order of birth.
    Birth,
}

/// Siblings with the same command line, and everything below them.
#[derive(Debug, Clone, Copy)]
struct Node {
    parent: Option<usize>,
    shape: Shape,
    /// The step that the first of them begins.
    step: Option<u32>,
    depth: u32,
    siblings: u64,
    /// Processes without those below it: the siblings, and in a tree of steps what belongs to them.
    own: u64,
    processes: u64,
    own_cpu_ns: u64,
    cpu_ns: u64,
    first_ns: u64,
    last_ns: u64,
    first: usize,
}

/// The process tree.
///
/// # Errors
/// If there is no such process or time in the recording.
pub fn tree(recording: &Recording, view: &TreeView) -> Result<ProcessTree, AnalysisError> {
    let root = view.root.map(|serial| of_serial(recording, serial)).transpose()?;
    let at_ns = view.at_ns.map(|at_ns| clock_time(recording, at_ns)).transpose()?;
    let (nodes, lines) = nodes(recording, root, at_ns, view.steps);
    let roots = || nodes.iter().filter(|node| node.parent.is_none());
    let processes = roots().map(|node| node.processes).fold(0, u64::saturating_add);
    let cpu_ns = roots().map(|node| node.cpu_ns).fold(0, u64::saturating_add);
    Ok(ProcessTree {
        at_ns: view.at_ns,
        of_steps: view.steps,
        processes,
        cpu_ns: recording.knows().some(&[Quantity::Cpu], cpu_ns),
        rows: Rows { recording, view, nodes: &nodes, lines: &lines, processes, cpu_ns }.all(),
        not_known: recording.knows().why_not(&[
            Quantity::Forks,
            Quantity::Execs,
            Quantity::Argv,
            Quantity::Cpu,
        ]),
    })
}

/// All groups of siblings, and the command lines of each; parents precede their children.
fn nodes(
    recording: &Recording,
    root: Option<usize>,
    at_ns: Option<u64>,
    of_steps: bool,
) -> (Vec<Node>, Vec<Distinct>) {
    let mut nodes: Vec<Node> = Vec::new();
    let mut lines: Vec<Distinct> = Vec::new();
    let mut places: HashMap<Place, usize> = HashMap::new();
    let mut groups: HashMap<String, u32> = HashMap::new();
    let mut node_of: Vec<Option<usize>> = Vec::with_capacity(recording.processes().len());
    // With a root, whether the process is the root or below it.
    let mut inside: Vec<bool> = Vec::with_capacity(recording.processes().len());
    for (at, process) in recording.processes().iter().enumerate() {
        let parent = relatives::parent(recording, at);
        inside.push(
            root.is_none_or(|root| root == at)
                || parent.is_some_and(|parent| root.is_some() && inside[parent]),
        );
        let is_shown = inside[at] && at_ns.is_none_or(|time_ns| is_alive(process, time_ns));
        if !is_shown {
            node_of.push(None);
            continue;
        }
        let reaper = process.reaper().filter(|reaper| *reaper < at);
        let above = [parent, reaper.filter(|_| at_ns.is_some())].into_iter().flatten();
        let parent = above.filter(|_| root != Some(at)).find_map(|above| node_of[above]);
        let step = begun(recording, at);
        if let (true, None, Some(parent)) = (of_steps, step, parent) {
            let node = &mut nodes[parent];
            node.own += 1;
            node.own_cpu_ns = node.own_cpu_ns.saturating_add(process.cpu.total_ns());
            node.last_ns = node.last_ns.max(process.ended_ns().unwrap_or(recording.last_ns()));
            node_of.push(Some(parent));
            continue;
        }
        let shape = Shape::of(recording, process);
        let group = step.map(|step| {
            let new = u32::try_from(groups.len()).unwrap_or(u32::MAX);
            *groups.entry(group_of(&recording.steps().all[step as usize])).or_insert(new)
        });
        // Of a tree of steps, those of a group are siblings whatever they run.
        let like = Some(shape).filter(|_| !of_steps || step.is_none());
        let place = *places.entry(Place { parent, group, like }).or_insert(nodes.len());
        if place == nodes.len() {
            let depth = parent.map_or(0, |parent| nodes[parent].depth.saturating_add(1));
            nodes.push(Node {
                parent,
                shape,
                step,
                depth,
                siblings: 0,
                own: 0,
                processes: 0,
                own_cpu_ns: 0,
                cpu_ns: 0,
                first_ns: u64::MAX,
                last_ns: 0,
                first: at,
            });
            lines.push(Distinct::default());
        }
        lines[place].add(recording, process);
        let node = &mut nodes[place];
        node.siblings += 1;
        node.own += 1;
        node.own_cpu_ns = node.own_cpu_ns.saturating_add(process.cpu.total_ns());
        node.first_ns = node.first_ns.min(process.born_ns);
        node.last_ns = node.last_ns.max(process.ended_ns().unwrap_or(recording.last_ns()));
        node_of.push(Some(place));
    }
    for at in (0..nodes.len()).rev() {
        let node = &mut nodes[at];
        node.processes = node.processes.saturating_add(node.own);
        node.cpu_ns = node.cpu_ns.saturating_add(node.own_cpu_ns);
        let node = *node;
        if let Some(parent) = node.parent {
            let parent = &mut nodes[parent];
            parent.processes = parent.processes.saturating_add(node.processes);
            parent.cpu_ns = parent.cpu_ns.saturating_add(node.cpu_ns);
            parent.first_ns = parent.first_ns.min(node.first_ns);
            parent.last_ns = parent.last_ns.max(node.last_ns);
        }
    }
    (nodes, lines)
}

/// What siblings that are one row have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    parent: Option<usize>,
    /// The group of the steps that they begin.
    group: Option<u32>,
    like: Option<Shape>,
}

/// The step that a process begins.
fn begun(recording: &Recording, at: usize) -> Option<u32> {
    let at = u32::try_from(at).ok()?;
    let step = recording.steps().of_process(at)?;
    let run = recording.runs().get(recording.steps().all[step as usize].run as usize)?;
    (run.process == at).then_some(step)
}

/// Selects the nodes that become rows, and puts them in order.
struct Rows<'a> {
    recording: &'a Recording,
    view: &'a TreeView,
    nodes: &'a [Node],
    lines: &'a [Distinct],
    processes: u64,
    cpu_ns: u64,
}

impl Rows<'_> {
    fn all(&self) -> Vec<TreeRow> {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        let mut roots = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            node.parent.map_or(&mut roots, |parent| &mut children[parent]).push(at);
        }
        let chosen = self.chosen();
        let mut rows = Vec::new();
        // A tree may be as deep as it has processes, so there is no recursion. The last is the next.
        let mut open: Vec<Next> = Vec::new();
        self.open(&roots, &chosen, &mut open);
        while let Some(next) = open.pop() {
            match next {
                Next::Node(at) => {
                    rows.push(self.row(at));
                    self.open(&children[at], &chosen, &mut open);
                }
                Next::LeftOut(all) => rows.push(self.left_out(&all)),
            }
        }
        rows
    }

    /// Puts siblings on the stack, the first on top, and those that are left out below all others.
    fn open(&self, siblings: &[usize], chosen: &[bool], open: &mut Vec<Next>) {
        let (mut shown, left_out): (Vec<usize>, Vec<usize>) =
            siblings.iter().copied().partition(|at| chosen[*at]);
        if !left_out.is_empty() {
            open.push(Next::LeftOut(left_out));
        }
        shown.sort_by_key(|at| self.rank(*at));
        open.extend(shown.into_iter().rev().map(Next::Node));
    }

    /// One flag a node: true if it has a row. A node weighs at least as much as each of those below
    /// it, and precedes them: the parent of a chosen node is chosen.
    fn chosen(&self) -> Vec<bool> {
        let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
        let is_wanted = |node: &Node| {
            let most = share(node.processes, self.processes).max(share(node.cpu_ns, self.cpu_ns));
            self.view.depth.is_none_or(|depth| node.depth < depth) && most >= self.view.min_percent
        };
        let mut wanted: Vec<usize> =
            (0..self.nodes.len()).filter(|at| is_wanted(&self.nodes[*at])).collect();
        let by_processes = self.view.sort == TreeSort::Processes;
        wanted.sort_by_key(|at| {
            let node = &self.nodes[*at];
            let weight = if by_processes { node.processes } else { node.cpu_ns };
            (Reverse(weight), *at)
        });
        wanted.truncate(self.view.rows.unwrap_or(usize::MAX));
        let mut chosen = vec![false; self.nodes.len()];
        wanted.into_iter().for_each(|at| chosen[at] = true);
        chosen
    }

    /// The place of a node among its siblings.
    fn rank(&self, at: usize) -> (Reverse<u64>, u64, usize) {
        let node = &self.nodes[at];
        match self.view.sort {
            TreeSort::Cpu => (Reverse(node.cpu_ns), node.first_ns, at),
            TreeSort::Processes => (Reverse(node.processes), node.first_ns, at),
            TreeSort::Birth => (Reverse(0), node.first_ns, at),
        }
    }

    fn row(&self, at: usize) -> TreeRow {
        let node = &self.nodes[at];
        let one = (node.siblings == 1).then(|| &self.recording.processes()[node.first]);
        let cpu = |ns| self.recording.knows().some(&[Quantity::Cpu], ns);
        TreeRow {
            depth: node.depth,
            command: Some(node.shape.text(self.recording, &self.lines[at])),
            step: node.step.map(|step| {
                let step = &self.recording.steps().all[step as usize];
                if one.is_some() { step.named.name.clone() } else { group_of(step) }
            }),
            left_out: 0,
            siblings: node.siblings,
            processes: node.processes,
            own_cpu_ns: cpu(node.own_cpu_ns),
            cpu_ns: cpu(node.cpu_ns),
            first_ns: since(self.recording, node.first_ns),
            last_ns: since(self.recording, node.last_ns),
            pid: one.map(|process| process.pid),
            serial: one.map(|process| process.serial),
        }
    }

    /// One row for siblings that have none of their own.
    fn left_out(&self, all: &[usize]) -> TreeRow {
        let nodes = || all.iter().map(|at| &self.nodes[*at]);
        let sum = |of: fn(&Node) -> u64| nodes().map(of).fold(0, u64::saturating_add);
        let cpu = |ns| self.recording.knows().some(&[Quantity::Cpu], ns);
        TreeRow {
            depth: nodes().map(|node| node.depth).next().unwrap_or(0),
            command: None,
            step: None,
            left_out: all.len() as u64,
            siblings: sum(|node| node.siblings),
            processes: sum(|node| node.processes),
            own_cpu_ns: cpu(sum(|node| node.own_cpu_ns)),
            cpu_ns: cpu(sum(|node| node.cpu_ns)),
            first_ns: since(self.recording, nodes().map(|node| node.first_ns).min().unwrap_or(0)),
            last_ns: since(self.recording, nodes().map(|node| node.last_ns).max().unwrap_or(0)),
            pid: None,
            serial: None,
        }
    }
}

/// The next item in the order of rows.
enum Next {
    Node(usize),
    LeftOut(Vec<usize>),
}
