//! Chains of programs, each started by the one above it, with the usage of their last processes.

use std::collections::HashMap;

use proctrace_recording::Recording;
use proctrace_recording::split::Divided;

/// Maximum depth of a stack: a tree may be as deep as it has processes.
pub const DEPTH_MAX: u32 = 64;
/// Placeholder for the rest of a stack that was cut.
const CUT: u32 = u32::MAX;

/// A program below a chain of other programs.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    /// The chain above, by its number, which is smaller.
    pub parent: Option<u32>,
    /// The number of the program, or of none for the rest of a chain that was cut.
    pub program: u32,
    depth: u32,
    pub processes: u64,
    pub used: Divided,
    /// Lifetimes of these processes, of those alive at the end up to the last record.
    pub life_ns: u64,
}

/// Chains of programs from the root, with the usage of their last processes.
#[derive(Debug, Default)]
pub struct Tree {
    pub nodes: Vec<Node>,
    children: HashMap<(Option<u32>, u32), u32>,
}

impl Tree {
    pub fn of(recording: &Recording) -> Self {
        let mut tree = Self::default();
        // The node of each process: below its forker's program at the time of the fork.
        let mut above: Vec<Option<u32>> = Vec::with_capacity(recording.processes().len());
        let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        for process in recording.processes() {
            // With CLONE_PARENT the forker is not the parent (clone(2)). A forker that never called
            // exec is in the run of one of its ancestors, and so in the same chain. Forkers precede
            // the processes they fork.
            let run = process.spawned_in().and_then(|run| recording.runs().get(run as usize));
            let forker = run.map(|run| run.process as usize).or(process.parent());
            let spawner = forker.and_then(|forker| above.get(forker).copied());
            let own = match (spawner, recording.spawner_of(process)) {
                (Some(above), Some(program)) => Some(tree.child(above, number(program))),
                _ => None,
            };
            above.push(own);
            let node = tree.child(own, number(process.program()));
            let node = &mut tree.nodes[node as usize];
            node.processes += 1;
            node.used.add(&recording.divided_of(process));
            let ended_ns = process.ended_ns().unwrap_or(recording.last_ns());
            let life_ns = ended_ns.saturating_sub(process.born_ns.max(recording.first_ns()));
            node.life_ns = node.life_ns.saturating_add(life_ns);
        }
        tree
    }

    /// The node of a program below a chain; the chain itself if it ends in the same program.
    fn child(&mut self, parent: Option<u32>, program: u32) -> u32 {
        let mut program = program;
        let mut depth = 0;
        if let Some(at) = parent {
            let above = self.nodes[at as usize];
            if above.program == program || above.program == CUT {
                return at;
            }
            depth = above.depth + 1;
            if depth >= DEPTH_MAX {
                program = CUT;
            }
        }
        if let Some(node) = self.children.get(&(parent, program)) {
            return *node;
        }
        let node = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let used = Divided::default();
        self.nodes.push(Node { parent, program, depth, processes: 0, used, life_ns: 0 });
        self.children.insert((parent, program), node);
        node
    }

    /// The programs from the root to a node, joined by `;`.
    pub fn stack(&self, recording: &Recording, node: &Node) -> String {
        let mut names = vec![name(recording, node.program)];
        let mut above = node.parent;
        while let Some(at) = above {
            let node = &self.nodes[at as usize];
            names.push(name(recording, node.program));
            above = node.parent;
        }
        names.reverse();
        names.join(";")
    }

    /// The nodes of largest weight, and the total weight of the others.
    pub fn heaviest(
        &self,
        weight: impl Fn(&Node) -> u64,
        at_most: usize,
    ) -> (Vec<(&Node, u64)>, u64) {
        let mut heavy: Vec<(usize, u64)> =
            self.nodes.iter().map(weight).enumerate().filter(|(_, weight)| *weight > 0).collect();
        heavy.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        let rest = heavy.iter().skip(at_most).fold(0, |sum: u64, (_, w)| sum.saturating_add(*w));
        heavy.truncate(at_most);
        (heavy.into_iter().map(|(at, weight)| (&self.nodes[at], weight)).collect(), rest)
    }
}

/// The name of a program as a frame: frames are separated by `;`.
pub fn name(recording: &Recording, program: u32) -> String {
    let program = recording.programs().get(program as usize);
    program.map_or_else(|| "…".to_owned(), |program| program.name.replace([';', '\n'], ","))
}
