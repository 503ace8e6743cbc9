//! Ends of processes: those that failed, and those that a signal killed.

use proctrace_findings::{EndStep, Ends, Table, Unit, Values, counted};
use proctrace_overview::options::{Content, Options};
use proctrace_wire::Quantity;

use crate::analysis::Analysis;

pub(crate) fn section(analysis: &Analysis<'_>, _: &Options) -> Content {
    let ends = analysis.ends();
    let all = &ends.by_program;
    let known = |parent: &String| (!parent.is_empty()).then(|| parent.clone());
    let parents = all.iter().map(|end| known(&end.example_parent));
    let mut table = Table::new("ends", "Processes that did not exit with 0, worst first")
        .rows_need(&Quantity::WHO)
        .text("program", "program", all.iter().map(|end| end.program.clone()))
        .text("how", "how", all.iter().map(|end| end.how.clone()))
        .whole("processes", "processes", Unit::Count, all.iter().map(|end| Some(end.processes)))
        .whole("core_dumps", "core dumps", Unit::Count, all.iter().map(|end| Some(end.core_dumps)))
        .figures("example_pid", "first pid", all.iter().map(|end| end.example_pid.to_string()))
        .column("example_parent", "started by", Unit::Text, Values::Text(parents.collect()))
        .note(format!(
            "{} exited with 0, {} with another status; killed by a signal: {}.",
            counted(ends.succeeded, "process", "processes"),
            ends.failed,
            ends.signalled
        ));
    if ends.unknown > 0 {
        table = table.note(format!(
            "Exit status of {} unknown: still running when the recording ended, or record lost.",
            counted(ends.unknown, "process", "processes")
        ));
    }
    Content { tables: vec![chain(&ends.cause), table, signals(ends)], charts: Vec::new() }
}

/// Table of the processes that made the command fail.
fn chain(steps: &[EndStep]) -> Table {
    let of = || steps.iter();
    let certain = of().enumerate().map(|(at, step)| match (at, step.is_certain) {
        (0, _) => None,
        (_, true) => Some("certain".to_owned()),
        (_, false) => Some("likely".to_owned()),
    });
    Table::new("end_chain", "Why the command failed, first cause first")
        .rows_need(&Quantity::WHO)
        .whole("time_ns", "at", Unit::Nanoseconds, of().map(|step| step.time_ns))
        .text("program", "program", of().map(|step| step.program.clone()))
        .figures("pid", "pid", of().map(|step| step.pid.to_string()))
        .text("how", "how", of().map(|step| step.how.clone()))
        .column("because", "because of the above", Unit::Text, Values::Text(certain.collect()))
        .column("sent_by", "sent by", Unit::Text, Values::Text(of().map(by).collect()))
        .note(
            "Causes are concluded. Certain: it ended at once with the same status, which tells \
             something (not 1 or 2, except of a shell with -e and of compilers), or has a status for \
             it (make, xargs, timeout); else likely.",
        )
}

fn by(step: &EndStep) -> Option<String> {
    step.sent_by.clone()
}

/// Processes that were ended by a signal.
fn signals(ends: &Ends) -> Table {
    let of = || ends.fatal_signals.iter();
    let senders = of().map(|signal| signal.sent_by.clone()).collect();
    Table::new("fatal_signals", "Processes ended by a signal")
        .rows_need(&Quantity::WHO)
        .whole("time_ns", "at", Unit::Nanoseconds, of().map(|signal| signal.time_ns))
        .text("program", "program", of().map(|signal| signal.program.clone()))
        .figures("pid", "pid", of().map(|signal| signal.pid.to_string()))
        .text("signal", "signal", of().map(|signal| signal.signal.clone()))
        .column("sent_by", "sent by", Unit::Text, Values::Text(senders))
}
