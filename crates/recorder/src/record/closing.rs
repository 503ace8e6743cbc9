//! Messages of `record` on stderr when a recording is over.

use std::path::Path;

use proctrace_record::{Finished, Origin, Phase};
use proctrace_report::fit::cut;
use proctrace_report::number::{bytes, count, counted, time};
use proctrace_trace::{self as trace, LossCount};
use proctrace_wire::escape::to_text;
use proctrace_wire::{Kind, LossReason, Outcome};

use crate::args::{DEFAULT_TRACE, RecordArgs};
use crate::output::Written;
use crate::say;

/// Prints the closing lines on stderr. Lost records and remaining processes are reported even with
/// --quiet.
pub(super) fn tell(
    args: &RecordArgs,
    header: &trace::Header,
    finished: &Finished,
    written: &Written,
) {
    let lost: u64 = finished.losses.iter().map(|loss| loss.count).sum();
    if !args.quiet {
        let ended_ns =
            finished.payload.as_ref().map_or(finished.ended_ns, |payload| payload.exited_ns);
        say::note(&format!(
            "{}, {}, {} · {} lost · {} ({})",
            counted(finished.counts.processes, "process", "processes"),
            counted(finished.counts.threads, "thread", "threads"),
            time(ended_ns.saturating_sub(header.started_ns)),
            count(lost),
            written.path.display(),
            bytes(written.bytes),
        ));
        tell_kept(written);
        if let Some(waited) = waited(finished, ended_ns) {
            say::note(&waited);
        }
    }
    if let Some(held_up) = finished.held_up.filter(|_| !args.quiet) {
        say::note(&format!(
            "tasks waited {} for the recorder, {} in total (--on-full block)",
            counted(held_up.times, "time", "times"),
            time(held_up.total_ns),
        ));
    }
    // A job that went wrong by being recorded is told from one that would have gone wrong anyway.
    finished.restraints.iter().for_each(|restraint| say::note(restraint));
    for loss in totals(&finished.losses) {
        say::note(&loss);
    }
    if lost > 0 {
        let full = finished.losses.iter().any(|loss| loss.reason == LossReason::RingFull);
        let advice = if full { "; a larger --ring-size may help" } else { "" };
        say::note(&format!("the trace is incomplete{advice}"));
    }
    // Processes that were running before the recording are expected to continue.
    if !finished.alive.is_empty() && !args.command.is_empty() {
        say::note(&alive(finished));
    }
    if !args.quiet {
        say::note(&next(finished, &written.path));
    }
}

/// Last line: how the command ended, and what to do next.
fn next(finished: &Finished, trace: &Path) -> String {
    let ended = match finished.payload.as_ref().map(|payload| payload.outcome) {
        Some(Outcome::Code(code)) => format!("exit {code}; "),
        Some(Outcome::Signal(signal)) => format!("killed by signal {signal}; "),
        None => String::new(),
    };
    let trace = trace.display();
    let named =
        if trace.to_string() == DEFAULT_TRACE { String::new() } else { format!(" {trace}") };
    format!("{ended}next: proctrace report{named}")
}

/// Says under which name an earlier trace was kept.
pub fn tell_kept(written: &Written) {
    if let Some(kept) = &written.kept {
        let path = written.path.display();
        say::note(&format!("the previous {path} was renamed to {}", kept.display()));
    }
}

/// One line per kind and reason, summed over the CPUs.
pub(crate) fn totals(losses: &[LossCount]) -> Vec<String> {
    let mut totals = std::collections::BTreeMap::new();
    for loss in losses {
        *totals.entry((loss.kind, loss.reason)).or_insert(0) += loss.count;
    }
    totals
        .into_iter()
        .map(|((kind, reason), number)| {
            format!(
                "lost {} of kind {kind} ({}){}",
                counted(number, "record", "records"),
                reason.name(),
                Kind::missing_with(kind.name())
            )
        })
        .collect()
}

fn alive(finished: &Finished) -> String {
    const SHOWN: usize = 5;
    let mut names: Vec<String> =
        finished.alive.iter().take(SHOWN).map(|alive| named(alive.pid, &alive.origin)).collect();
    if finished.alive.len() > SHOWN {
        names.push(format!("{} more", finished.alive.len() - SHOWN));
    }
    let names = names.join(", ");
    format!("still running at the end of the recording: {names}; use --grace to wait longer")
}

/// Note on whom the recording waited for after the command's end, at `exited_ns`, and how long.
fn waited(finished: &Finished, exited_ns: u64) -> Option<String> {
    let last = finished.straggler.as_ref()?;
    let wait = time(last.ended_ns.saturating_sub(exited_ns));
    Some(format!("then {wait} until {} ended", named(last.pid, &last.origin)))
}

/// A process by its command line, its pid and the phase in which it was born.
fn named(pid: i32, origin: &Origin) -> String {
    const COLUMNS_MAX: usize = 60;
    let name = match &origin.command {
        Some(command) => format!("`{}`", cut(command, COLUMNS_MAX)),
        None => {
            let comm = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
            to_text(comm.trim_ascii_end()).into_owned()
        }
    };
    let phase = match &origin.phase {
        Phase::Unknown => String::new(),
        Phase::BeforeMarks => ", started before the first mark".to_owned(),
        Phase::Of(text) => format!(", started in phase `{text}`"),
    };
    format!("{name} (pid {pid}{phase})")
}
