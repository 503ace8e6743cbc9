//! Chains of programs with their numbers, in the order of a flame graph.

use indexmap::IndexSet;
use proctrace_findings::TimelineStack;

use crate::Weight;

/// A chain of programs and the processes at its end.
#[derive(Debug)]
struct Node {
    parent: Option<u32>,
    name: u32,
    cpu_ns: Option<u64>,
    wall_ns: u64,
    processes: u64,
}

/// All chains, and the names of programs, each once.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    nodes: Vec<Node>,
    pub(crate) names: IndexSet<String>,
}

/// A chain with its number.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Weighed {
    /// Numbers of the names, from the root.
    pub(crate) frames: Vec<u32>,
    pub(crate) value: u64,
}

impl Stacks {
    /// The number of a name.
    pub(crate) fn number_of(&mut self, name: &str) -> u32 {
        let known = self.names.get_index_of(name);
        let number = known.unwrap_or_else(|| self.names.insert_full(name.to_owned()).0);
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    pub(crate) fn add(&mut self, stack: &TimelineStack<'_>) {
        let name = self.number_of(stack.program);
        // A chain that did not come before would make a circle.
        let parent = stack.parent.filter(|parent| (*parent as usize) < self.nodes.len());
        let (processes, cpu_ns, wall_ns) = (stack.processes, stack.cpu_ns, stack.wall_ns);
        self.nodes.push(Node { parent, name, cpu_ns, wall_ns, processes });
    }

    /// True if the value is known of every chain.
    pub(crate) fn knows(&self, weight: Weight) -> bool {
        weight != Weight::Cpu || self.nodes.iter().all(|node| node.cpu_ns.is_some())
    }

    /// The chains of which the value is not 0, those with the same beginning together. Times are
    /// multiples of `unit_ns`; what rounding takes from one chain is given to a later one.
    pub(crate) fn weighed(&self, weight: Weight, unit_ns: u64) -> Vec<Weighed> {
        let mut chains: Vec<(Vec<u32>, u64)> = Vec::new();
        for node in &self.nodes {
            let value = match weight {
                Weight::Cpu => node.cpu_ns.unwrap_or(0),
                Weight::Wall => node.wall_ns,
                Weight::Processes => node.processes,
            };
            if value > 0 {
                chains.push((self.frames(node), value));
            }
        }
        chains.sort();
        let unit = if weight == Weight::Processes { 1 } else { unit_ns };
        let mut sum: u128 = 0;
        let weighed = chains.into_iter().map(|(frames, value)| {
            let before = sum / u128::from(unit);
            sum += u128::from(value);
            let value = sum / u128::from(unit) - before;
            Weighed { frames, value: u64::try_from(value).unwrap_or(u64::MAX) }
        });
        weighed.filter(|stack| stack.value > 0).collect()
    }

    fn frames(&self, node: &Node) -> Vec<u32> {
        let mut frames = vec![node.name];
        let mut above = node.parent;
        while let Some(node) = above.and_then(|at| self.nodes.get(at as usize)) {
            frames.push(node.name);
            above = node.parent;
        }
        frames.reverse();
        frames
    }
}
