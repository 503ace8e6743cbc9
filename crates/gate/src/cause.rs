//! The cause that several findings have in common, in one sentence with its numbers.

use std::borrow::Cow;

use proctrace_findings::MetricFamily;

use crate::growth::{Changes, Grown};
use crate::pattern::quoted;
use crate::side::Key;
use crate::sources::{Source, Who};
use crate::verdict::{Cause, CauseKind};
use crate::words::{self, signed_count};

/// Programs that are named in a headline.
const NAMED: usize = 3;

/// The cause of findings that this source explains, most of all by doing more of this; the worst of them is about `key`.
pub(crate) fn cause(
    source: &Source<'_>,
    kind: CauseKind,
    key: Option<Key<'_>>,
    changes: &Changes<'_, '_>,
) -> Cause {
    let (program, directory, step) = match source.who {
        Who::Program(name) => (Some(name), None, source.step(kind, changes)),
        Who::Directory(path) => (None, Some(path), None),
        Who::Step(group) => (None, None, Some(group)),
    };
    let text = match (source.who, kind) {
        (Who::Program(name), CauseKind::Starts) => starts(source, name, changes),
        (Who::Program(name), _) => inside(source, name, kind, changes),
        (Who::Directory(path), _) => searched(source, path, changes),
        (Who::Step(group), _) => steps(group, key, changes),
    };
    Cause {
        kind,
        program: program.map(str::to_owned),
        directory: directory.map(str::to_owned),
        step: step.map(str::to_owned),
        text,
    }
}

/// The programs that findings with this cause concern.
pub(crate) fn programs(source: &Source<'_>, kind: CauseKind) -> Vec<String> {
    match (source.who, kind) {
        (Who::Program(origin), CauseKind::Starts) => {
            // Those that the headline names first.
            let mut started: Vec<&Grown<'_>> = source.started.iter().collect();
            started
                .sort_by_key(|program| (program.name == origin, program.spawner != Some(origin)));
            started.iter().map(|program| program.name.to_owned()).collect()
        }
        (Who::Program(name), _) => vec![name.to_owned()],
        (Who::Directory(_) | Who::Step(_), _) => Vec::new(),
    }
}

/// "+12 sed, started by build.sh: 130 -> 142 processes".
fn starts(source: &Source<'_>, origin: &str, changes: &Changes<'_, '_>) -> String {
    let is_fork = |program: &Grown<'_>| program.name == origin && program.spawner == Some(origin);
    // Those that it starts itself, rather than what these start; its own forks last.
    let direct = |program: &&Grown<'_>| program.spawner == Some(origin);
    let mut named: Vec<&Grown<'_>> = source.started.iter().filter(direct).collect();
    if named.is_empty() {
        named = source.started.iter().collect();
    }
    let forks_only = named.iter().all(|program| is_fork(program));
    named.retain(|program| forks_only || !is_fork(program));
    let Some(first) = named.first() else { return String::new() };
    let more = |program: &Grown<'_>| match changes.has_baseline() {
        true => signed_count(program.more()),
        false => words::count_of(program.more()),
    };
    let mut text: Vec<String> = named
        .iter()
        .take(NAMED)
        .map(|program| format!("{} {}", more(program), name(program.name)))
        .collect();
    if named.len() > NAMED {
        text.push(format!("{} more", named.len() - NAMED));
    }
    let mut text = text.join(", ");
    if !changes.has_baseline() {
        text.push_str(" too many");
    }
    if first.spawner == Some(origin) {
        let how = if forks_only { "forked" } else { "started" };
        text.push_str(&format!(", {how} by {}", name(origin)));
    }
    text.push_str(&in_steps(source, CauseKind::Starts, changes));
    let numbers = total("total_processes", "processes", changes)
        .or_else(|| total("total_execs", "execs", changes))
        .or_else(|| {
            let key = Key::new("execs", first.key.labels)?;
            let processes = Key::new("command_processes", first.key.labels)?;
            [key, processes].iter().find_map(|key| arrow(*key, changes))
        });
    match numbers {
        Some(numbers) => format!("{text}: {numbers}"),
        None => text,
    }
}

/// The total of a family with its unit, if it increased: "130 -> 142 processes".
fn total(family: &str, unit: &str, changes: &Changes<'_, '_>) -> Option<String> {
    let key = Key::new(family, &[])?;
    changes.change(key).filter(|change| change.by > 0.0)?;
    arrow_of(key, unit, changes)
}

/// "12 -> 24 threads"; without a baseline "24 threads, at most 12".
fn arrow_of(key: Key<'_>, unit: &str, changes: &Changes<'_, '_>) -> Option<String> {
    let numbers = arrow(key, changes)?;
    Some(match numbers.split_once(", at most ") {
        Some((value, limit)) => format!("{value} {unit}, at most {limit}"),
        None => format!("{numbers} {unit}"),
    })
}

/// "12 -> 24"; without a baseline "24, at most 12".
fn arrow(key: Key<'_>, changes: &Changes<'_, '_>) -> Option<String> {
    let change = changes.change(key)?;
    let value = |value| words::value(key.family(), value);
    Some(match (change.before, changes.limit(key)) {
        (Some(before), _) => format!("{} -> {}", value(before), value(change.after)),
        (None, Some(limit)) => format!("{}, at most {}", value(change.after), value(limit)),
        (None, None) => value(change.after),
    })
}

/// Increase within a program itself: "program pool: threads per process 8 -> 16 (80 -> 160
/// threads)".
fn inside(
    source: &Source<'_>,
    program: &str,
    kind: CauseKind,
    changes: &Changes<'_, '_>,
) -> String {
    let program = format!("{}{}", name(program), in_steps(source, kind, changes));
    let (family, what) = match kind {
        CauseKind::Threads => ("command_threads", "threads"),
        CauseKind::CpuTime => ("command_cpu_seconds", "CPU time"),
        CauseKind::FailedLookups => ("command_failed_lookups", "failed look-ups"),
        CauseKind::Detached => ("detached_processes", "detached processes"),
        CauseKind::Failed => ("failed_processes", "failed processes"),
        CauseKind::Starts | CauseKind::Steps => ("command_processes", "processes"),
    };
    let key = source.key.and_then(|key| Key::new(family, key.labels));
    let Some((key, numbers)) = key.and_then(|key| Some((key, arrow(key, changes)?))) else {
        return format!("program {program}: more {what}");
    };
    let Some(each) = per_process(key, changes) else {
        return format!("program {program}: {what} {numbers}");
    };
    if kind == CauseKind::Threads {
        let numbers = arrow_of(key, "threads", changes).unwrap_or(numbers);
        format!("program {program}: threads per process {each} ({numbers})")
    } else {
        format!("program {program}: {what} {numbers} (per process {each})")
    }
}

/// "8 -> 16": a figure of a program per process; None if it has a single process and nothing else
/// is to be said, or if the number of processes is not known.
fn per_process(key: Key<'_>, changes: &Changes<'_, '_>) -> Option<String> {
    let family = key.family();
    let (before, after) = changes.per_process(family.name, key);
    let after = words::value(family, after?);
    if changes.is_single(key) && family.name != "command_threads" {
        return None;
    }
    Some(match before {
        Some(before) => format!("{} -> {after}", words::value(family, before)),
        None if changes.has_baseline() => format!("0 -> {after}"),
        None => after,
    })
}

/// "+150 failed look-ups in /opt/lib: 300 -> 450".
fn searched(source: &Source<'_>, path: &str, changes: &Changes<'_, '_>) -> String {
    let below: std::collections::BTreeSet<&str> = source
        .directories
        .iter()
        .filter_map(|key| key.label("directory"))
        .filter(|directory| *directory != path)
        .collect();
    let below = match below.len() {
        0 => String::new(),
        1 => " and a directory below it".to_owned(),
        n => format!(" and {n} directories below it"),
    };
    let family = MetricFamily::named("directory_failed_lookups");
    let (mut before, mut after) = (0.0, 0.0);
    for change in source.directories.iter().filter_map(|key| changes.change(*key)) {
        before += change.before.unwrap_or(0.0);
        after += change.after;
    }
    let value = |value| family.map_or_else(String::new, |family| words::value(family, value));
    let (more, path, after) = (source.inside.lookups, name(path), value(after));
    if changes.has_baseline() {
        let (more, before) = (signed_count(more), value(before));
        format!("{more} failed look-ups in {path}{below}: {before} -> {after}")
    } else {
        format!("{} failed look-ups too many in {path}{below}: {after}", words::count_of(more))
    }
}

/// " in steps of sim", if it is known in which ones.
fn in_steps(source: &Source<'_>, kind: CauseKind, changes: &Changes<'_, '_>) -> String {
    source
        .step(kind, changes)
        .map_or_else(String::new, |group| format!(" in steps of {}", name(group)))
}

/// "+12 steps of sim: 4 -> 16"; "steps of sim: wall time 8.00 s -> 16.0 s (4 -> 5 steps)".
fn steps(group: &str, key: Option<Key<'_>>, changes: &Changes<'_, '_>) -> String {
    let group = name(group);
    let runs = key.and_then(|key| Key::new("step_runs", key.labels));
    let more = runs.and_then(|runs| changes.change(runs)).filter(|change| change.by > 0.0);
    let arrow_of_runs = runs.and_then(|runs| arrow(runs, changes)).unwrap_or_default();
    let what = match key.map_or("", |key| key.family().name) {
        "step_failures" => "failures",
        "step_wall_seconds" => "wall time",
        "step_longest_wall_seconds" => "longest wall time",
        "step_cpu_seconds" => "CPU time",
        "step_peak_pss_bytes" => "peak PSS",
        "step_processes" if more.is_none() => "processes",
        _ => {
            let by = more.map_or(0.0, |change| change.by);
            return match more.and_then(|change| change.before) {
                Some(0.0) => {
                    format!("{} steps of {group}, a new group: {arrow_of_runs}", signed_count(by))
                }
                Some(_) => format!("{} steps of {group}: {arrow_of_runs}", signed_count(by)),
                None => {
                    format!("{} steps of {group} too many: {arrow_of_runs}", words::count_of(by))
                }
            };
        }
    };
    let numbers = key.and_then(|key| arrow(key, changes)).unwrap_or_default();
    match more.and_then(|change| change.before) {
        Some(0.0) => format!("steps of {group}, a new group: {what} {numbers}"),
        Some(_) => format!("steps of {group}: {what} {numbers} ({arrow_of_runs} steps)"),
        None => format!("steps of {group}: {what} {numbers}"),
    }
}

/// A name in a sentence: in quotation marks unless it looks like a name.
fn name(text: &str) -> Cow<'_, str> {
    let is_plain =
        |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '/' | '@' | '=' | ',');
    if !text.is_empty() && text.chars().all(is_plain) {
        text.into()
    } else {
        format!("\"{}\"", quoted(text)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_reads_like_a_sentence_is_quoted() {
        assert_eq!(name("o2-sim_1.sh"), "o2-sim_1.sh");
        assert_eq!(name("a b: +3"), "\"a b: +3\"");
        assert_eq!(name("x\"*"), "\"x\\\"\\*\"");
        assert_eq!(name(""), "\"\"");
    }
}
