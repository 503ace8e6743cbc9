//! `timer-in-path`: waits for a point in time that the command waited for, and that are no polling loop.

use std::collections::BTreeMap;

use proctrace_findings::{Advice, Gain, counted, time};

use super::Found;
use super::evidence::{Evidence, first_word, less, more};
use super::model::Cut;

/// A process with several threads computes if it has a core for this part of its life: one in this many.
const PART_OF_LIFE: u64 = 4;

/// Per command line: the time in which its timers were on the critical path.
///
/// Wall: at most that time; at least what the recorded order of births and wake-ups gains if these timers
/// take no time, as something else may take as long. CPU: nothing.
pub(super) fn find(evidence: &Evidence<'_>, polls: &[u32]) -> Vec<Found> {
    let mut groups: BTreeMap<&str, (u64, u64, Vec<u32>)> = BTreeMap::new();
    for (process, begin_ns, end_ns) in evidence.timers() {
        let timer_ns = end_ns - begin_ns;
        if polls.binary_search(&process).is_ok() || computes_meanwhile(evidence, process) {
            continue;
        }
        let template = evidence.recording.template_of(evidence.process(process)).unwrap_or("");
        let (waits, sum_ns, processes) = groups.entry(template).or_default();
        *waits += 1;
        *sum_ns += timer_ns;
        processes.push(process);
    }
    let advice = groups.into_iter().filter_map(|(template, (waits, sum_ns, mut processes))| {
        if !evidence.pays(sum_ns, 0) {
            return None;
        }
        processes.sort_unstable();
        processes.dedup();
        advice(evidence, template, (waits, sum_ns), processes)
    });
    advice.collect()
}

/// Whether other threads of a process compute while one waits for a point in time, as that of a runtime which looks after
/// the others (sysmon of Go, garbage collectors): without the pauses, nothing would be earlier.
fn computes_meanwhile(evidence: &Evidence<'_>, process: u32) -> bool {
    let it = evidence.process(process);
    it.tasks().len() > 1 && it.cpu.total_ns() > evidence.life_ns(process) / PART_OF_LIFE
}

fn advice(
    evidence: &Evidence<'_>,
    template: &str,
    (waits, sum_ns): (u64, u64),
    processes: Vec<u32>,
) -> Option<Found> {
    let first = *processes.first()?;
    let earlier_ns = evidence.earlier_ns(Cut::Timers(&evidence.tasks(&processes)))?.min(sum_ns);
    let spawner = evidence.spawner_line(first);
    // A program that does more than wait is needed for that.
    let is_all = matches!(first_word(template), "sleep" | "usleep");
    let advice = Advice {
        kind: "timer-in-path",
        what: format!(
            "Do without {}{}, or wait for the event that {} for",
            if is_all { "" } else { "the pauses of " },
            evidence.lines(&processes),
            if is_all { "it stands" } else { "they stand" },
        ),
        evidence: format!(
            "the command waits {} of its wall time for {} of {}, started by `{spawner}`",
            time(sum_ns),
            counted(waits, "timer", "timers"),
            evidence.lines(&processes),
        ),
        commands: vec![super::evidence::first_word(template).to_owned()],
        processes: processes.len() as u64,
        wall_ns: Gain::new(less(earlier_ns), earlier_ns.midpoint(sum_ns), more(sum_ns))
            .at_most(evidence.wall_ns),
        method:
            "wall: time of these timers on the critical path (high), and what is left of it if \
                 everything else takes as long as before (low)"
                .into(),
        risk: "whatever the delay is for may not be ready yet".into(),
        check: "record without it; if something fails, wait for that instead".into(),
        ..Advice::default()
    };
    Some(Found::about(processes, advice).keyed(template))
}
