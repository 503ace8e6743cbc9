//! `straggler`: one of several workers that ends much later than the others.

use proctrace_findings::{Advice, Gain, counted, time};

use super::Found;
use super::counter::coordinates;
use super::evidence::{Evidence, more, name};
use super::names::{first_word, short};

/// Minimum number of workers: of fewer, none can be told from the others.
const WORKERS_MIN: usize = 3;
/// Workers that use less of a core wait for most of their lives, and how much they compute tells nothing.
const BUSY_MIN: f64 = 0.2;
/// Minimum part of the time of all for which it is alone: one in this many.
const PART_OF_ALL: u64 = 5;

/// Per group of workers: children of one process with the same command, whose lives overlap.
///
/// With E, the time from the second-latest end to the latest, and n workers: high E, as if it had ended with
/// the second-latest; middle E (n-1)/n, as if its rest were spread over all; low 0, as work may not be
/// divisible. Not more than its time on the critical path. CPU: nothing.
pub(super) fn find(evidence: &Evidence<'_>) -> Vec<Found> {
    if evidence.path.is_none() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (process, _) in evidence.processes() {
        if evidence.children(process).len() >= WORKERS_MIN
            && !evidence.own_template(process).is_some_and(coordinates)
            && evidence.pays(evidence.path_below_ns(process), 0)
        {
            let groups = groups(evidence, process);
            found.extend(groups.iter().filter_map(|group| advice(evidence, process, group)));
        }
    }
    found
}

fn groups(evidence: &Evidence<'_>, parent: u32) -> Vec<Vec<u32>> {
    let mut groups: Vec<(u64, Vec<u32>)> = Vec::new();
    for child in evidence.children(parent) {
        let born_ns = evidence.process(*child).born_ns;
        let ended_ns = evidence.ended_ns(*child);
        let joined = groups.last_mut().filter(|(until_ns, workers)| {
            born_ns < *until_ns
                && workers.last().is_some_and(|last| is_alike(evidence, *last, *child))
        });
        match joined {
            Some((until_ns, workers)) => {
                *until_ns = ended_ns.max(*until_ns);
                workers.push(*child);
            }
            None => groups.push((ended_ns, vec![*child])),
        }
    }
    groups.into_iter().map(|(_, workers)| workers).filter(|it| it.len() >= WORKERS_MIN).collect()
}

/// Returns whether two children do the same work: the same program or script, or both a fork of their parent.
fn is_alike(evidence: &Evidence<'_>, one: u32, other: u32) -> bool {
    name(evidence, one) == name(evidence, other)
}

fn advice(evidence: &Evidence<'_>, parent: u32, workers: &[u32]) -> Option<Found> {
    let mut ends: Vec<(u64, u32)> =
        workers.iter().map(|worker| (evidence.ended_ns(*worker), *worker)).collect();
    ends.sort_unstable();
    let [.., (second_ns, _), (last_ns, last)] = ends[..] else { return None };
    let born_ns = evidence.process(workers[0]).born_ns;
    // A pool that starts the next worker when one has ended is no group that is waited for together.
    let together = ends[0].0 > evidence.process(*workers.last()?).born_ns;
    let alone_ns = (last_ns - second_ns).min(evidence.path_below_ns(last));
    if !together || alone_ns < last_ns.saturating_sub(born_ns) / PART_OF_ALL {
        return None;
    }
    // A monitor beside the workers, or one that waits for something, has no work to divide.
    let busy = |worker: u32| {
        evidence.cpu_below_ns[worker as usize] as f64 / evidence.life_ns(worker).max(1) as f64
    };
    let mut others: Vec<f64> = ends[..ends.len() - 1].iter().map(|(_, it)| busy(*it)).collect();
    others.sort_by(f64::total_cmp);
    let usual = others[others.len() / 2];
    if usual > BUSY_MIN && busy(last) < usual / 2.0 {
        return None;
    }
    let number = workers.len() as u64;
    let command = evidence.recording.line_of(evidence.process(last));
    let line = evidence.recording.line_of(evidence.process(parent));
    let advice = Advice {
        kind: "straggler",
        what: format!(
            "Divide the work of `{}` more evenly, or start the longest first",
            short(command)
        ),
        evidence: format!(
            "of {} of `{}`, that of pid {} runs {} longer than all others",
            counted(number, "worker", "workers"),
            short(line),
            evidence.process(last).pid,
            time(last_ns - second_ns),
        ),
        commands: vec![first_word(command).to_owned()],
        processes: number,
        wall_ns: Gain::new(0, alone_ns / number * (number - 1), more(alone_ns)),
        method:
            "wall: from the second-latest end to the latest (high), less one share of it if it is \
                 spread over all workers (middle); low is 0, as work may not be divisible"
                .into(),
        risk: "smaller parts mean more starts".into(),
        check: "record again: the workers end closer together".into(),
        ..Advice::default()
    };
    let mut processes = workers.to_vec();
    processes.sort_unstable();
    Some(Found::about(processes, advice))
}
