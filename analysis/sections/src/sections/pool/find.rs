//! Finds pools: children of one process that ran concurrently for long and did the same.

use std::collections::HashMap;

use proctrace_overview::options::Options;
use proctrace_recording::Recording;
use proctrace_recording::process::Process;

/// A worker lives for at least this part of the recording; if the parent was named, of its
/// lifetime.
pub(crate) const LIFE_PERCENT_MIN: u64 = 5;

/// Processes that work concurrently for the same parent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pool {
    /// Index of the parent.
    pub(crate) parent: usize,
    /// Number of the program that each executes; `None` if they are forks that never called exec.
    pub(crate) program: Option<usize>,
    /// Workers by number.
    pub(crate) workers: Vec<Worker>,
    /// Indices of concurrent siblings whose role has no number: a writer.
    pub(crate) others: Vec<usize>,
}

/// A worker of a pool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Worker {
    /// Index of the process.
    pub(crate) process: usize,
    /// Number from its role, otherwise its position in birth order.
    pub(crate) number: u64,
    /// Its role, or "worker" with its number.
    pub(crate) name: String,
}

/// End of a process, or of the recording.
pub(crate) fn end_ns(recording: &Recording, process: &Process) -> u64 {
    process.ended_ns().unwrap_or(recording.last_ns()).max(process.born_ns)
}

fn life_ns(recording: &Recording, process: &Process) -> u64 {
    end_ns(recording, process) - process.born_ns
}

/// Every pool of at least `fewest` workers, ordered by the CPU time of its own processes, largest
/// first.
pub(crate) fn pools(recording: &Recording, options: &Options, fewest: usize) -> Vec<Pool> {
    let mut families: HashMap<(usize, Option<usize>), Vec<usize>> = HashMap::new();
    for (at, process) in recording.processes().iter().enumerate() {
        let Some(parent) = process.parent() else { continue };
        let within_ns = match &options.pool {
            None => recording.recorded_ns(),
            Some(named) => {
                let parent = &recording.processes()[parent];
                if recording.program_of(parent).name != *named {
                    continue;
                }
                life_ns(recording, parent)
            }
        };
        let least_ns = within_ns / 100 * LIFE_PERCENT_MIN;
        if life_ns(recording, process) > least_ns {
            let program = (process.execs > 0).then_some(process.program());
            families.entry((parent, program)).or_default().push(at);
        }
    }
    let mut pools: Vec<Pool> = families
        .into_iter()
        .flat_map(|((parent, program), children)| {
            side_by_side(recording, &children)
                .into_iter()
                .filter(|together| program.is_none() || all_at_once(recording, together))
                .map(|together| pool(recording, parent, program, together))
                .collect::<Vec<_>>()
        })
        .filter(|pool| pool.workers.len() >= fewest)
        .collect();
    pools.sort_by_cached_key(|pool| {
        (std::cmp::Reverse(pool.cpu_ns(recording)), pool.workers[0].process)
    });
    pools
}

/// Children in birth order, split wherever all earlier ones have ended before the next is born.
fn side_by_side(recording: &Recording, children: &[usize]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut busy_until_ns = 0;
    for child in children {
        let process = &recording.processes()[*child];
        match groups.last_mut() {
            Some(group) if process.born_ns < busy_until_ns => group.push(*child),
            _ => groups.push(vec![*child]),
        }
        busy_until_ns = busy_until_ns.max(end_ns(recording, process));
    }
    groups
}

/// True if all were alive at one time. Programs that are started one after the other as slots
/// become free are not a pool but a queue.
fn all_at_once(recording: &Recording, children: &[usize]) -> bool {
    let lives = || children.iter().map(|child| &recording.processes()[*child]);
    let last_born = lives().map(|process| process.born_ns).max();
    let first_ended = lives().map(|process| end_ns(recording, process)).min();
    last_born < first_ended
}

/// Distinguishes workers from siblings with another role. Where fewer than two have a number in
/// their role, roles are not conclusive, and all are workers in birth order.
fn pool(
    recording: &Recording,
    parent: usize,
    program: Option<usize>,
    children: Vec<usize>,
) -> Pool {
    let role = |child: usize| recording.role_of(&recording.processes()[child]);
    let numbers: Vec<Option<u64>> =
        children.iter().map(|child| role(*child).and_then(number_in)).collect();
    let numbered = numbers.iter().flatten().count();
    let of_writers = |child: &usize| role(*child).is_some_and(is_writer);
    let mut pool = Pool { parent, program, workers: Vec::new(), others: Vec::new() };
    for (child, number) in children.iter().zip(numbers) {
        match number {
            Some(number) if numbered >= 2 => {
                let name = role(*child).unwrap_or_default().to_owned();
                pool.workers.push(Worker { process: *child, number, name });
            }
            _ if numbered >= 2 || of_writers(child) => pool.others.push(*child),
            _ => {
                let number = pool.workers.len() as u64;
                let name = format!("worker {number}");
                pool.workers.push(Worker { process: *child, number, name });
            }
        }
    }
    pool.workers.sort_by_key(|worker| (worker.number, worker.process));
    pool
}

/// The digits at the end of a role: 3 of "worker_3".
pub(crate) fn number_in(role: &str) -> Option<u64> {
    let digits = role.len() - role.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    role[role.len() - digits..].parse().ok()
}

/// "shared_writer", "SharedWriter", "shared writer".
pub(crate) fn is_writer(role: &str) -> bool {
    role.to_ascii_lowercase().trim_end().ends_with("writer")
}

impl Pool {
    /// CPU time of the workers and their siblings, without descendants.
    pub(crate) fn cpu_ns(&self, recording: &Recording) -> u64 {
        let workers = self.workers.iter().map(|worker| worker.process);
        workers
            .chain(self.others.iter().copied())
            .map(|child| recording.processes()[child].cpu.total_ns())
            .fold(0, u64::saturating_add)
    }

    /// The process that writes for the others: the one whose role is that of a writer, or the only
    /// one whose role is not a worker's.
    pub(crate) fn writer(&self, recording: &Recording) -> Option<usize> {
        let named = |child: &&usize| {
            recording.role_of(&recording.processes()[**child]).is_some_and(is_writer)
        };
        match (self.others.iter().find(named), &self.others[..]) {
            (Some(writer), _) | (None, [writer]) => Some(*writer),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::pool::testing::{Tape, Used};

    fn programs(pools: &[Pool]) -> Vec<(usize, Vec<usize>)> {
        pools
            .iter()
            .map(|pool| (pool.parent, pool.workers.iter().map(|w| w.process).collect()))
            .collect()
    }

    #[test]
    fn numbers_and_writers_are_read_from_roles() {
        assert_eq!(number_in("worker_12"), Some(12));
        assert_eq!(number_in("worker 3"), Some(3));
        assert_eq!(number_in("shared_writer"), None);
        assert_eq!(number_in("worker99999999999999999999999"), None);
        assert!(is_writer("shared_writer") && is_writer("SharedWriter") && !is_writer("worker_1"));
    }

    #[test]
    fn forks_that_overlap_are_a_pool_and_short_ones_are_not_of_it() {
        let mut tape = Tape::new("job");
        for (child, begin, end) in [(2, 100, 900), (3, 110, 950), (4, 200, 230), (5, 960, 1000)] {
            tape.fork(begin, 1, child).exit(end, child, Used::ms(10));
        }
        let recording = tape.exit(1000, 1, Used::ms(1)).recording();
        let found = pools(&recording, &Options::default(), 2);
        assert_eq!(programs(&found), [(0, vec![1, 2])]);
        assert_eq!(found[0].workers[1].name, "worker 1");
        assert_eq!(pools(&recording, &Options::default(), 3), []);
    }

    #[test]
    fn two_rounds_are_two_pools_and_the_costlier_comes_first() {
        let mut tape = Tape::new("job");
        for (child, begin, end, cpu) in
            [(2, 100, 400, 50), (3, 100, 400, 50), (4, 500, 900, 300), (5, 510, 890, 300)]
        {
            tape.fork(begin, 1, child).exit(end, child, Used::ms(cpu));
        }
        let found = pools(&tape.exit(1000, 1, Used::ms(1)).recording(), &Options::default(), 2);
        assert_eq!(programs(&found), [(0, vec![3, 4]), (0, vec![1, 2])]);
    }

    #[test]
    fn programs_started_together_are_a_pool_and_a_queue_of_them_is_none() {
        let mut tape = Tape::new("driver");
        for (child, begin, end, program) in [
            (2, 100, 900, "/opt/o2/device"),
            (3, 120, 950, "/opt/o2/device"),
            (4, 100, 300, "/opt/o2/other"),
            (5, 250, 500, "/opt/o2/other"),
            (6, 450, 800, "/opt/o2/other"),
        ] {
            tape.fork(begin, 1, child).exec(begin + 1, child, program);
            tape.exit(end, child, Used::ms(10));
        }
        let recording = tape.exit(1000, 1, Used::ms(1)).recording();
        let found = pools(&recording, &Options::default(), 2);
        assert_eq!(programs(&found), [(0, vec![1, 2])]);
        assert!(found[0].program.is_some());
    }

    #[test]
    fn a_parent_that_is_named_makes_its_own_life_the_measure() {
        let mut tape = Tape::new("runner");
        tape.fork(0, 1, 2).exec(1, 2, "/opt/job/athena");
        for (child, end) in [(3, 60), (4, 65)] {
            tape.fork(40, 2, child).exit(end, child, Used::ms(10));
        }
        tape.exit(80, 2, Used::ms(1));
        let recording = tape.exit(10_000, 1, Used::ms(1)).recording();
        let named = |name: &str| Options { pool: Some(name.into()), ..Options::default() };
        assert_eq!(programs(&pools(&recording, &Options::default(), 2)), []);
        assert_eq!(programs(&pools(&recording, &named("athena"), 2)), [(1, vec![2, 3])]);
        assert_eq!(programs(&pools(&recording, &named("runner"), 2)), []);
    }

    #[test]
    fn roles_tell_workers_from_writers() {
        let mut tape = Tape::new("athena");
        for child in 2..=5 {
            tape.fork(100, 1, child).exit(900, child, Used::ms(10));
        }
        let mut recording = tape.exit(1000, 1, Used::ms(1)).recording();
        recording
            .replace_roles(["worker_1", "shared_writer", "worker_0"].map(String::from).to_vec());
        for (process, role) in [(1, Some(0)), (2, Some(1)), (3, Some(2)), (4, None)] {
            recording.processes_mut()[process].set_role(role);
        }
        let found = pools(&recording, &Options::default(), 2);
        assert_eq!(programs(&found), [(0, vec![3, 1])]);
        assert_eq!(found[0].others, [2, 4]);
        assert_eq!(found[0].writer(&recording), Some(2));
    }
}
