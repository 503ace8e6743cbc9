//! Processes that take the place on the critical path of those that are gone: what advice gained is less by that.

use std::collections::BTreeMap;

use proctrace_classify::fast::Bits;

use super::evidence::{Evidence, name};

/// Percentage of the wall time below which a time is noise.
const NOTICEABLE_PERCENT: u64 = 1;

/// Time on the critical path of the changed job, for each piece of advice, given its processes in the job before, of
/// others that ran beside them before, and could not be waited for any shorter.
///
/// Where a loop of sleeps was on the path, it is now the process that it waited for. `concerned` says for both
/// recordings which processes are accounted for otherwise.
pub(super) fn taken_over_ns(
    (before, after): (&Evidence<'_>, &Evidence<'_>),
    concerned: (&Bits, &Bits),
    advised: &[Vec<u32>],
) -> Vec<u64> {
    let mut taken_ns = vec![0_u64; advised.len()];
    let others = |evidence: &Evidence<'_>, concerned: &Bits| {
        let mut path_ns: BTreeMap<&str, u64> = BTreeMap::new();
        for (process, spent) in evidence.on_path() {
            if spent.own_ns > 0 && !concerned.contains(process as usize) {
                *path_ns.entry(name(evidence, process)).or_default() += spent.own_ns;
            }
        }
        path_ns.into_iter().map(|(name, ns)| (name.to_owned(), ns)).collect::<BTreeMap<_, _>>()
    };
    let (was, is) = (others(before, concerned.0), others(after, concerned.1));
    for (name, is_ns) in is {
        let more_ns = is_ns.saturating_sub(was.get(&name).copied().unwrap_or(0));
        if more_ns < before.wall_ns / 100 * NOTICEABLE_PERCENT {
            continue;
        }
        let lives = lives(before, concerned.0, &name);
        let beside: Vec<u64> =
            advised.iter().map(|processes| on_path_beside_ns(before, processes, &lives)).collect();
        let all_ns: u64 = beside.iter().fold(0, |sum, ns| sum.saturating_add(*ns));
        for (taken_ns, beside_ns) in taken_ns.iter_mut().zip(&beside) {
            let part = u128::from(more_ns) * u128::from(*beside_ns) / u128::from(all_ns.max(1));
            // Not more than it had itself.
            *taken_ns = taken_ns.saturating_add((part as u64).min(*beside_ns));
        }
    }
    taken_ns
}

/// Times in which processes of this name live, in order, without overlaps.
fn lives(evidence: &Evidence<'_>, concerned: &Bits, called: &str) -> Vec<(u64, u64)> {
    let all = evidence.processes().map(|(process, _)| process);
    let mut lives: Vec<(u64, u64)> = all
        .filter(|process| {
            !concerned.contains(*process as usize) && name(evidence, *process) == called
        })
        .map(|process| (evidence.process(process).born_ns, evidence.ended_ns(process)))
        .collect();
    lives.sort_unstable();
    let mut apart: Vec<(u64, u64)> = Vec::new();
    for (born_ns, ended_ns) in lives {
        match apart.last_mut() {
            Some((_, until_ns)) if *until_ns >= born_ns => *until_ns = ended_ns.max(*until_ns),
            _ => apart.push((born_ns, ended_ns)),
        }
    }
    apart
}

/// The time of these processes on the path within these lives.
fn on_path_beside_ns(evidence: &Evidence<'_>, processes: &[u32], lives: &[(u64, u64)]) -> u64 {
    let parts = evidence.path.iter().flat_map(|path| &path.parts).filter(|part| {
        let process = evidence.recording.tasks()[part.task as usize].process();
        u32::try_from(process).is_ok_and(|process| processes.binary_search(&process).is_ok())
    });
    let beside = |(begin_ns, end_ns): (u64, u64)| -> u64 {
        let first = lives.partition_point(|(_, ended_ns)| *ended_ns <= begin_ns);
        let these = lives[first..].iter().take_while(|(born_ns, _)| *born_ns < end_ns);
        these
            .map(|(born_ns, ended_ns)| {
                (*ended_ns).min(end_ns).saturating_sub((*born_ns).max(begin_ns))
            })
            .sum()
    };
    parts.map(|part| beside((part.begin_ns, part.end_ns))).fold(0, u64::saturating_add)
}
