//! `shared-writer`: one busy process for which several others wait: a writer, a server, a holder of a lock.

use std::collections::BTreeSet;

use proctrace_classify::fast::FastMap;
use proctrace_findings::{Advice, Gain, counted, time};
use proctrace_overview::path::{Doing, Part};
use proctrace_recording::waits::{Wait, Waker, of_task};
use proctrace_wire::WaitFor;

use super::Found;
use super::evidence::{Evidence, more};

/// Tasks that wait for it in the course of the job.
const TASKS_MIN: usize = 3;
/// Minimum of them that wait at the same time. The others do what they do themselves.
const AT_ONCE_MIN: usize = 2;

/// Times of one process on the path while others wait for it, by what it does.
#[derive(Debug, Clone, Copy, Default)]
struct Busy {
    /// Running, or waiting for storage.
    working_ns: u64,
    /// Ready, without a CPU.
    ready_ns: u64,
}

/// Per process for which at least three tasks of other processes, not started by it, waited at a pipe, a socket, a lock or a
/// semaphore: the time on the critical path in which it is busy and at least two of them wait for it. A task that
/// is woken by another one of them waited for it, too: the kernel wakes one, which wakes the next.
///
/// With B, that time, W, the CPU time of those that wait, and k cores, but not more than tasks that wait: middle
/// B - (B + W)/k, as if all of the work were spread evenly over the cores; high B - B/k and its waits for a CPU, as if
/// the others' work took no time, and several processes got the CPUs for which one has to wait; low 0, as something else may be as slow. Not more than is gained if the
/// process takes no time at all. CPU: nothing, as the same work is done elsewhere.
pub(super) fn find(evidence: &Evidence<'_>) -> Vec<Found> {
    let Some(path) = &evidence.path else { return Vec::new() };
    let mut servers: FastMap<u32, BTreeSet<u32>> = FastMap::default();
    for wait in evidence.recording.waits().unwrap_or_default() {
        let client = evidence.recording.tasks()[wait.task as usize].process() as u32;
        // Who reads what its own children write (a program that unpacks its input by `gzip -cd`) or hands out their work
        // is what they are there for.
        if let Some(server) = ended_by(evidence, wait)
            && evidence.pays(evidence.path_ns(server), 0)
            && !evidence.descends_from(client, server)
        {
            servers.entry(server).or_default().insert(wait.task);
        }
    }
    servers.retain(|_, tasks| tasks.len() >= TASKS_MIN);
    let advice = servers.into_iter().filter_map(|(server, tasks)| {
        let times = at_once(&waits(evidence, server, &tasks));
        advice(evidence, server, &tasks, busy(evidence, &path.parts, server, &times))
    });
    let mut found: Vec<Found> = advice.collect();
    found.sort_by(|one, other| one.advice.evidence.cmp(&other.advice.evidence));
    found
}

/// The process that ended a wait for what another process hands out; not one that thereby ended itself.
fn ended_by(evidence: &Evidence<'_>, wait: &Wait) -> Option<u32> {
    let hands_out = matches!(
        wait.waits_for,
        WaitFor::Pipe | WaitFor::Socket | WaitFor::Futex | WaitFor::FileLock | WaitFor::Queue
    );
    let Waker::Task(waker) = wait.waker() else { return None };
    let process = |task: u32| evidence.recording.tasks()[task as usize].process() as u32;
    let server = process(waker);
    (hands_out && !wait.waker_ended() && server != process(wait.task)).then_some(server)
}

/// Begin and end of the waits of these tasks that the server or one of them ended.
fn waits(evidence: &Evidence<'_>, server: u32, tasks: &BTreeSet<u32>) -> Vec<(u64, u64)> {
    let all = tasks
        .iter()
        .flat_map(|task| of_task(evidence.recording.waits().unwrap_or_default(), *task));
    let concerns = |wait: &&Wait| {
        let by_one_of_them = matches!(wait.waker(), Waker::Task(waker) if tasks.contains(&waker));
        ended_by(evidence, wait).is_some_and(|by| by == server || by_one_of_them)
    };
    all.filter(concerns).map(|wait| (wait.since_ns(), wait.woken_ns())).collect()
}

/// Times at which at least two tasks wait, in order.
fn at_once(waits: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let begins = waits.iter().map(|(since_ns, _)| (*since_ns, true));
    let ends = waits.iter().map(|(_, woken_ns)| (*woken_ns, false));
    let mut changes: Vec<(u64, bool)> = begins.chain(ends).collect();
    // At the same time ends come first: one that waits again at once does not wait twice.
    changes.sort_unstable();
    let (mut number, mut begin_ns, mut times) = (0_usize, 0, Vec::new());
    for (time_ns, begins) in changes {
        let before = number;
        number = if begins { number + 1 } else { number.saturating_sub(1) };
        if before < AT_ONCE_MIN && number >= AT_ONCE_MIN {
            begin_ns = time_ns;
        } else if before >= AT_ONCE_MIN && number < AT_ONCE_MIN && time_ns > begin_ns {
            times.push((begin_ns, time_ns));
        }
    }
    times
}

/// Activity of a process on the path in these times.
fn busy(evidence: &Evidence<'_>, parts: &[Part], server: u32, times: &[(u64, u64)]) -> Busy {
    let mut busy = Busy::default();
    let of_server =
        |part: &&Part| evidence.recording.tasks()[part.task as usize].process() as u32 == server;
    for part in parts.iter().filter(of_server) {
        let first = times.partition_point(|(_, end_ns)| *end_ns <= part.begin_ns);
        let within = times[first..].iter().take_while(|(begin_ns, _)| *begin_ns < part.end_ns);
        let both_ns: u64 = within
            .map(|(begin_ns, end_ns)| part.end_ns.min(*end_ns) - part.begin_ns.max(*begin_ns))
            .sum();
        match part.doing {
            Doing::Running | Doing::Waiting(WaitFor::Disk) => busy.working_ns += both_ns,
            Doing::WaitingForCpu => busy.ready_ns += both_ns,
            Doing::Waiting(_) => {}
        }
    }
    busy
}

fn advice(
    evidence: &Evidence<'_>,
    server: u32,
    tasks: &BTreeSet<u32>,
    Busy { working_ns, ready_ns }: Busy,
) -> Option<Found> {
    let recording = evidence.recording;
    let cores = u64::from(recording.header().cpus).min(tasks.len() as u64);
    let all_ns = working_ns + ready_ns;
    if cores < 2 || !evidence.pays(all_ns, 0) {
        return None;
    }
    let mut others: Vec<u32> =
        tasks.iter().map(|task| recording.tasks()[*task as usize].process() as u32).collect();
    others.sort_unstable();
    others.dedup();
    let others_ns: u64 = others
        .iter()
        .fold(0, |sum, process| sum.saturating_add(evidence.process(*process).cpu.total_ns()));
    let earlier_ns = evidence.earlier_without(&[server])?.ns;
    let even_ns = working_ns.saturating_add(others_ns) / cores;
    let middle_ns = working_ns.saturating_sub(even_ns).min(earlier_ns);
    if !evidence.pays(middle_ns, 0) {
        return None;
    }
    let advice = Advice {
        kind: "shared-writer",
        what: format!(
            "Let those that wait do the work of {} themselves, or divide it among several",
            evidence.called(server)
        ),
        evidence: format!(
            "{} of {} such as {} wait for it, two or more at a time while it is busy for {} of \
             the critical path, {:.0} % of the wall time",
            counted(tasks.len() as u64, "task", "tasks"),
            counted(others.len() as u64, "process", "processes"),
            evidence.called(others[0]),
            time(all_ns),
            100.0 * all_ns as f64 / evidence.wall_ns.max(1) as f64,
        ),
        processes: 1 + others.len() as u64,
        commands: evidence.first_words(&[server]),
        wall_ns: Gain::new(0, middle_ns, more((all_ns - working_ns / cores).min(earlier_ns)))
            .at_most(evidence.wall_ns),
        method: format!(
            "wall: its time on the critical path while two or more wait for it, less an even \
             share of it for each of {cores} cores (high), and of their own CPU time (middle); low \
             is 0, as something else may be as slow"
        ),
        risk: "the order of what is written may change; each needs its own output or buffer".into(),
        check: "record again: nobody waits for it (`report --section critical-path`)".into(),
        ..Advice::default()
    };
    Some(Found::about(vec![server], advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_which_two_wait() {
        let waits = [(10, 20), (15, 30), (20, 25), (40, 50), (50, 60)];
        assert_eq!(at_once(&waits), [(15, 20), (20, 25)]);
        assert_eq!(at_once(&[]), []);
    }
}
