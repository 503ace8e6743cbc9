//! Groups of processes that ran the same program and have the same spawner, and their lifetimes.
//!
//! A median needs all values of a group at once. polars keeps a list of them for each group and
//! copies it in each step of a query: five times the memory of the lifetimes themselves. Here they
//! are contiguous in one vector, by program and within that by group, and each median is found in
//! its part.

use proctrace_classify::fast::FastMap;
use proctrace_recording::Recording;
use proctrace_recording::process::Process;
use proctrace_stats::lower_median;

/// Properties shared by the processes of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// Number of the program they ran last.
    pub program: u32,
    /// Number of the program that forked them, and of its command line's template if it called
    /// exec.
    pub spawner: Option<u32>,
    pub shape: Option<u32>,
    /// They never called exec.
    pub forked: bool,
}

impl Group {
    fn of(recording: &Recording, process: &Process) -> Self {
        let spawner = recording.spawner_of(process).map(number);
        let run = process.spawned_in().and_then(|run| recording.runs().get(run as usize));
        Self {
            program: number(process.program()),
            spawner,
            shape: spawner.and(run).map(|run| run.template),
            forked: process.execs == 0,
        }
    }
}

/// The groups of a recording's processes.
#[derive(Debug, Default)]
pub struct Groups {
    pub groups: Vec<Group>,
    /// Group number of each process.
    pub of_process: Vec<u32>,
}

impl Groups {
    pub fn of(recording: &Recording) -> Self {
        let mut numbers: FastMap<Group, u32> = FastMap::default();
        let mut groups = Vec::new();
        let of_process = recording.processes().iter().map(|process| {
            let group = Group::of(recording, process);
            *numbers.entry(group).or_insert_with(|| {
                groups.push(group);
                number(groups.len() - 1)
            })
        });
        let of_process = of_process.collect();
        Self { groups, of_process }
    }
}

/// The lower medians of the lifetimes of ended processes, in nanoseconds: values that occurred.
#[derive(Debug, Default)]
pub struct Medians {
    /// Values by group number.
    pub of_group: Vec<Option<u64>>,
    /// Values by program number.
    pub of_program: FastMap<u32, u64>,
    pub of_all: Option<u64>,
}

impl Medians {
    pub fn of(recording: &Recording, groups: &Groups) -> Self {
        let lives = || {
            let processes = recording.processes().iter().zip(&groups.of_process);
            processes.filter_map(|(process, group)| Some((*group as usize, process.life_ns()?)))
        };
        let groups = &groups.groups;
        let mut lens = vec![0; groups.len()];
        lives().for_each(|(group, _)| lens[group] += 1);
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_unstable_by_key(|at| groups[*at]);
        // Position of the next lifetime of each group.
        let mut next = vec![0; groups.len()];
        let mut all = 0;
        for at in &order {
            next[*at] = all;
            all += lens[*at];
        }
        let mut lives_ns = vec![0; all];
        for (group, life_ns) in lives() {
            lives_ns[next[group]] = life_ns;
            next[group] += 1;
        }
        let mut medians = Self { of_group: vec![None; groups.len()], ..Self::default() };
        let mut begin = 0;
        for of_program in order.chunk_by(|a, b| groups[*a].program == groups[*b].program) {
            let program_begin = begin;
            for at in of_program {
                medians.of_group[*at] = lower_median(&mut lives_ns[begin..begin + lens[*at]]);
                begin += lens[*at];
            }
            if let Some(median_ns) = lower_median(&mut lives_ns[program_begin..begin]) {
                medians.of_program.insert(groups[of_program[0]].program, median_ns);
            }
        }
        medians.of_all = lower_median(&mut lives_ns);
        medians
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
