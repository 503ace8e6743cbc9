//! The head of a report: what was recorded, how it ended, when and where, and whether to trust it.

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use proctrace_findings::{After, Findings, Health, Outcome, Run, signal_name};

use crate::escape::terminal;
use crate::fit::{columns, wrap};
use crate::number::{counted, time};
use crate::style::Style;
use crate::table::shorten;
use crate::words::begins;

/// The lines of the head: how it ended comes first, since who has a job that failed asks nothing else.
pub(crate) fn head(findings: &Findings, style: Style) -> Vec<String> {
    let run = &findings.run;
    let mut parts = Vec::new();
    parts.extend(outcome(findings));
    parts.push(duration(run));
    if run.cores > 0 {
        parts.push(counted(u64::from(run.cores), "core", "cores"));
    }
    if findings.health.is_good() {
        parts.push("no records lost".to_owned());
    }
    let mut lines = vec![style.bold(&shorten(&subject(run), style.width))];
    lines.extend(parts_in_lines(&parts.join(" · "), style.width));
    lines.extend(run.after.as_ref().map(|after| shorten(&waited(after), style.width)));
    lines.push(shorten(&when_and_where(run), style.width));
    lines.extend(faults(&findings.health, style));
    for spot in &findings.blind_spots {
        let mut line = format!("Blind spot: {}", spot.says);
        if !spot.programs.is_empty() {
            let _ = write!(line, " ({})", spot.programs.join(", "));
        }
        lines.extend(wrap(&terminal(&line), style.width));
    }
    lines
}

/// Outcome of the command; `None` if there was none, or if it still runs.
fn outcome(findings: &Findings) -> Option<String> {
    let run = &findings.run;
    match run.outcome {
        Some(Outcome::Code(code)) => Some(format!("exit {code}")),
        Some(Outcome::Signal(signal)) => Some(format!("killed by {}", signal_name(signal))),
        None if run.command.is_empty() || findings.health.recording_now => None,
        None => Some("end not recorded".to_owned()),
    }
}

/// Joins the parts with " · ", and wraps only between parts: a truncated number would be wrong.
pub(crate) fn parts_in_lines(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in text.split(" · ") {
        match lines.last_mut() {
            Some(line) if columns(line) + 3 + columns(part) <= width => {
                line.push_str(" · ");
                line.push_str(part);
            }
            _ if columns(part) > width => lines.extend(wrap(part, width)),
            _ => lines.push(part.to_owned()),
        }
    }
    lines
}

/// Time and machine of the recording, as far as they are known: an imported log may have neither.
fn when_and_where(run: &Run) -> String {
    let started = UNIX_EPOCH + Duration::from_nanos(run.started_unix_ns);
    let started = humantime::format_rfc3339_seconds(started).to_string();
    let started = match run.started_unix_ns {
        0 => "Date not known".to_owned(),
        _ => started.replace('T', " ").replace('Z', " UTC"),
    };
    if run.host.is_empty() && run.kernel.is_empty() {
        return format!("{started}, machine not known: an imported log");
    }
    format!("{started} on {}, Linux {}", terminal(&run.host), terminal(&run.kernel))
}

/// The recorded command, processes or system.
fn subject(run: &Run) -> String {
    let mut subject = match &*run.scope {
        _ if !run.command.is_empty() => terminal(&run.command.join(" ")).into_owned(),
        "system" => "the whole machine".to_owned(),
        "pids" => "processes that were already running".to_owned(),
        "tree" => "a tree of processes as one".to_owned(),
        _ => String::new(),
    };
    if let Some(cgroup) = run.cgroup.as_ref().filter(|_| run.command.is_empty()) {
        let _ = write!(
            subject,
            "{}cgroup {}",
            if subject.is_empty() { "" } else { " and " },
            terminal(cgroup)
        );
    }
    subject
}

/// Time for which the command itself ran.
fn duration(run: &Run) -> String {
    run.wall_ns.map_or_else(|| "no times".to_owned(), |wall_ns| format!("{} wall", time(wall_ns)))
}

/// Time for which the recording went on after that, and for whom: "then 12.0 s until `sleep 600` (pid 4711)
/// ended".
fn waited(after: &After) -> String {
    let wait = time(after.wait_ns);
    let Some(last) = &after.last else {
        return format!("then {wait} until the last descendant ended");
    };
    let name = terminal(last.command.as_deref().unwrap_or(&last.program));
    let phase = match last.phase.as_deref() {
        Some("(before)") => ", started before the first mark".to_owned(),
        Some(phase) => format!(", started in phase `{}`", terminal(phase)),
        None => String::new(),
    };
    let others = match after.others {
        0 => String::new(),
        others => format!(" and {}", counted(others, "other", "others")),
    };
    let (until, ended) = match last.life_ns {
        Some(_) => ("until", " ended"),
        None => ("with", " still running"),
    };
    format!("then {wait} {until} `{}` (pid {}{phase}){others}{ended}", begins(&name, 40), last.pid)
}

/// Lines on what makes the recording doubtful.
fn faults(health: &Health, style: Style) -> Vec<String> {
    if health.is_good() {
        return Vec::new();
    }
    let mut lines = Vec::new();
    if health.recording_now {
        lines.push("STILL RECORDING: values cover only what has been written so far.".to_owned());
    } else if !health.complete {
        lines.push("INCOMPLETE: the recorder did not finish this trace.".to_owned());
    }
    for loss in &health.losses {
        lines.push(format!(
            "LOST: {} of kind {} ({})",
            counted(loss.count, "record", "records"),
            loss.kind,
            loss.reason
        ));
    }
    const SHOWN: usize = 3;
    for damage in health.damage.iter().take(SHOWN) {
        lines.push(format!("DAMAGED: {damage}"));
    }
    if health.damage.len() > SHOWN {
        lines.push(format!("DAMAGED: and in {} more places", health.damage.len() - SHOWN));
    }
    for law in health.laws.iter().filter(|law| law.is_broken()) {
        lines.push(format!(
            "CHECK FAILED: {}: found {}, expected {} {unit}",
            law.says,
            law.found.unwrap_or_default(),
            law.expected.unwrap_or_default(),
            unit = law.unit
        ));
    }
    let lines = lines.into_iter().map(|line| style.alarm(&terminal(&line)));
    lines.collect()
}

/// The status of the consistency laws; those not checked do not count as holding.
pub(crate) fn balanced(health: &Health, style: Style) -> Vec<String> {
    let unchecked: Vec<&str> =
        health.laws.iter().filter(|law| law.holds.is_none()).map(|law| law.name).collect();
    if unchecked.is_empty() {
        return vec!["No records lost; all consistency checks passed.".to_owned()];
    }
    let text = format!(
        "No records lost; {} of {} consistency checks passed (not checked: {}; proctrace check \
         gives the reasons).",
        health.laws_checked(),
        health.laws.len(),
        unchecked.join(", ")
    );
    wrap(&text, style.width)
}
