//! Waits of one process, and its part of the critical path.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use proctrace_findings::{PathShare, PathStretch, WaitGroup};
use proctrace_recording::Recording;
use proctrace_recording::process::Process;
use proctrace_recording::waits::{Wait, Waker, of_task};
use proctrace_wire::Quantity;

use super::{relative, since};
use crate::details::waited::{Waited, waker};
use crate::path::{CriticalPath, Doing, words};

/// The times off the CPU of a process by reason, the longest first; `None` if they are not known.
pub fn waits(recording: &Recording, process: &Process) -> Option<Vec<WaitGroup>> {
    if !recording.knows().all(&[Quantity::Waits]) {
        return None;
    }
    let mut sums: BTreeMap<&'static str, (Waited, HashMap<String, u64>)> = BTreeMap::new();
    let tasks = process.tasks().filter_map(|task| u32::try_from(task).ok());
    for wait in tasks.flat_map(|task| of_task(recording.waits().unwrap_or_default(), task)) {
        let (waited, by) = sums.entry(words::object(wait.waits_for)).or_default();
        waited.add(recording, wait);
        *by.entry(ended_by(recording, wait)).or_default() += 1;
    }
    let mut groups: Vec<WaitGroup> =
        sums.into_iter().map(|(what, (waited, by))| group(recording, what, waited, by)).collect();
    groups.sort_by_key(|group| Reverse(group.asleep_ns.saturating_add(group.for_cpu_ns)));
    Some(groups)
}

fn group(
    recording: &Recording,
    waits_for: &'static str,
    waited: Waited,
    by: HashMap<String, u64>,
) -> WaitGroup {
    let mut ended_by: Vec<(String, u64)> = by.into_iter().collect();
    ended_by.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    WaitGroup {
        waits_for,
        count: waited.count,
        asleep_ns: waited.asleep_ns,
        for_cpu_ns: waited.for_cpu_ns,
        longest_ns: waited.longest_ns,
        longest_since_ns: since(recording, waited.longest_since_ns),
        longest_ended_by: waited.waker.map(|at| relative(recording, at)),
        ended_by,
    }
}

/// The ender of a wait, in words.
fn ended_by(recording: &Recording, wait: &Wait) -> String {
    let own = recording.tasks().get(wait.task as usize).map(|task| task.process());
    match wait.waker() {
        Waker::Task(_) => match waker(recording, wait.waker()) {
            Some(at) if Some(at) == own => "itself".to_owned(),
            Some(at) => recording.program_of(&recording.processes()[at]).name.clone(),
            None => "unknown".to_owned(),
        },
        Waker::Outside(pid) => format!("pid {pid}, outside"),
        Waker::Interrupt => "an interrupt".to_owned(),
        Waker::None => "the scheduler".to_owned(),
        Waker::Unknown => "unknown".to_owned(),
    }
}

/// The part of the critical path that is a process's; `None` if the path is not known.
pub fn path(recording: &Recording, at: usize) -> Option<PathShare> {
    let path = CriticalPath::of(recording)?;
    let mut share = PathShare::default();
    for part in &path.parts {
        if recording.tasks().get(part.task as usize).map(|task| task.process()) != Some(at) {
            continue;
        }
        let length_ns = part.end_ns.saturating_sub(part.begin_ns);
        let sum = match part.doing {
            Doing::Running => &mut share.running_ns,
            Doing::WaitingForCpu => &mut share.waiting_for_cpu_ns,
            Doing::Waiting(_) => &mut share.waiting_ns,
        };
        *sum = sum.saturating_add(length_ns);
        share.path_ns = share.path_ns.saturating_add(length_ns);
        let (begin_ns, doing) = (since(recording, part.begin_ns), part.doing.says());
        match share.stretches.last_mut() {
            Some(last)
                if last.doing == doing
                    && last.begin_ns.saturating_add(last.length_ns) == begin_ns =>
            {
                last.length_ns = last.length_ns.saturating_add(length_ns);
            }
            _ => share.stretches.push(PathStretch { begin_ns, length_ns, doing }),
        }
    }
    Some(share)
}
