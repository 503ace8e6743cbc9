//! `overcommit`: the command waits for a CPU, because more of its tasks want to run than there are cores.

use proctrace_findings::{Advice, Gain, count, time};

use super::Found;
use super::evidence::{Evidence, more};
use super::model::Cut;
use crate::path::Doing;

/// The whole recording.
///
/// Wall: at most the time on the critical path in which a task was ready and had no CPU; middle, half of
/// what the recorded order of births and wake-ups gains without all waits for CPUs; low 0: with fewer tasks at
/// a time the same work needs the same CPU time. CPU: not known, 0.
pub(super) fn find(evidence: &Evidence<'_>) -> Vec<Found> {
    let parts = evidence.path.iter().flat_map(|path| &path.parts);
    let waiting = parts.filter(|part| part.doing == Doing::WaitingForCpu);
    let waited_ns: u64 = waiting.map(|part| part.end_ns - part.begin_ns).sum();
    if !evidence.pays(waited_ns, 0) {
        return Vec::new();
    }
    // Otherwise it is other jobs on the machine that take the CPUs.
    let cores = evidence.recording.header.cpus;
    let Some(peak) = evidence.recording.peak_running.filter(|peak| *peak > cores.into()) else {
        return Vec::new();
    };
    let Some(earlier_ns) = evidence.earlier_ns(Cut::CpuWaits) else { return Vec::new() };
    let used = &evidence.recording.totals.used;
    let advice = Advice {
        kind: "overcommit",
        what: format!("Start fewer tasks at a time: as many as there are cores, {cores}, less what else runs"),
        evidence: format!(
            "on its critical path the command waits {} for a CPU; up to {} of its tasks want to run; {} \
             involuntary context switches",
            time(waited_ns),
            count(peak),
            count(used.nivcsw)
        ),
        processes: evidence.recording.processes.len() as u64,
        wall_ns: Gain::new(0, earlier_ns.min(waited_ns) / 2, more(waited_ns)).at_most(evidence.wall_ns),
        method: "wall: time on the critical path without a CPU (high); half of what is gained if nothing \
                 waits for a CPU (middle); low is 0, as the same work needs the same CPU time"
            .into(),
        risk: "other jobs on the machine take CPUs, too: then nothing changes".into(),
        check: "record with fewer workers; `proctrace series` compares several numbers".into(),
        ..Advice::default()
    };
    vec![Found { advice, processes: Vec::new() }]
}
