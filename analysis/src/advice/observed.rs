//! What was predicted from one recording, and what a recording of the changed job shows.

use proctrace_findings::{Advised, Observed, ObservedAdvice};

use super::evidence::{Evidence, runs};
use crate::recording::Recording;

/// Compares both recordings, for the commands of each piece of advice and as a whole.
pub fn observed(before: &Recording, after: &Recording, predicted: Advised) -> Observed {
    let (before, after) = (Evidence::of(before, 0.0), Evidence::of(after, 0.0));
    let observe = |advice: proctrace_findings::Advice| {
        let (processes_before, commands_cpu_before_ns, commands_path_before_ns) =
            of_commands(&before, &advice.commands);
        let (processes_after, commands_cpu_after_ns, commands_path_after_ns) =
            of_commands(&after, &advice.commands);
        ObservedAdvice {
            advice,
            processes_before,
            processes_after,
            commands_cpu_before_ns,
            commands_cpu_after_ns,
            commands_path_before_ns,
            commands_path_after_ns,
        }
    };
    Observed {
        wall_before_ns: before.wall_ns,
        wall_after_ns: after.wall_ns,
        cpu_before_ns: before.cpu_ns,
        cpu_after_ns: after.cpu_ns,
        peak_before_bytes: before.peak_bytes(),
        peak_after_bytes: after.peak_bytes(),
        min_percent: predicted.min_percent,
        together: predicted.together,
        advice: predicted.advice.into_iter().map(observe).collect(),
    }
}

/// Number of processes that ran one of the commands last, their CPU time, and their time on the critical path,
/// if there is one.
fn of_commands(evidence: &Evidence<'_>, commands: &[String]) -> (u64, u64, Option<u64>) {
    let templates = &evidence.recording.templates;
    let is_one = |line: &String| commands.iter().any(|command| runs(line, command));
    let concerned: Vec<bool> = templates.iter().map(is_one).collect();
    let (mut processes, mut cpu_ns, mut path_ns) = (0, 0_u64, 0_u64);
    for (number, process) in evidence.processes() {
        let run = process.run().and_then(|run| evidence.recording.runs.get(run as usize));
        if run.is_some_and(|run| process.execs > 0 && concerned[run.template as usize]) {
            processes += 1;
            cpu_ns = cpu_ns.saturating_add(process.cpu.total_ns());
            path_ns = path_ns.saturating_add(evidence.path_ns[number as usize]);
        }
    }
    (processes, cpu_ns, evidence.path.is_some().then_some(path_ns))
}
