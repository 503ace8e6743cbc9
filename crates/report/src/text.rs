//! A report for a terminal: a summary that fits one screen of 80 by 24, then the tables.

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use proctrace_findings::{After, Cell, Findings, Health, Outcome, Run, Summary, Table};

use crate::advice;
use crate::data::{table_text, wrap};
use crate::ends;
use crate::escape::terminal;
use crate::number::{bytes, count, counted, percent, time};
use crate::path;
use crate::style::Style;
use crate::table::shorten;
use crate::tables::{by_cpu, in_order_of_cpu, others, push_table};
use crate::words::begins;

/// Maximum rows of the table in the summary, so that the summary fits one screen.
const SUMMARY_ROWS: usize = 6;
/// Rows of that table that are worth more than a second line of advice.
const ROWS_MIN: usize = 3;
/// Lines of the screen.
const SCREEN: usize = 24;
/// Lines for the table with at least one row, and an empty line above: if there are no more, the lines
/// about the wall time are left out.
const TABLE_LINES: usize = 5;

/// The summary: at most 24 lines if there is nothing to warn about.
pub fn summary(findings: &Findings, style: Style) -> String {
    let mut out = String::new();
    for line in header(findings, style) {
        out.push_str(&line);
        out.push('\n');
    }
    let width = style.width.saturating_sub(INDENT);
    let lines_of = |text: &str| parts_in_lines(text, width);
    let mut rows = figures(findings, width);
    let used: usize = rows.iter().map(|(_, text)| lines_of(text).len()).sum();
    let free = (SCREEN - TABLE_LINES).saturating_sub(out.lines().count() + used);
    let wall = findings.critical_path.iter().flat_map(|path| path::summary(path, width));
    let first = rows.iter().position(|(label, _)| *label == "Tasks").unwrap_or(0);
    rows.splice(first..first, wall.take(free));
    for (label, text) in rows {
        for (at, line) in lines_of(&text).iter().enumerate() {
            // Writing to a String cannot fail.
            let label = if at == 0 { label } else { "" };
            let _ = writeln!(out, "  {label:<9}{line}");
        }
    }
    out.push('\n');
    // Two lines are reserved: the table's heading above the rows, and the line of omitted programs
    // below.
    let advised = findings.advice.as_ref();
    let mut advice = advised.map(|it| advice::lines(it, width)).unwrap_or_default();
    let categories = in_order_of_cpu(&findings.categories);
    // The second-best advice makes room for programs: `proctrace advise` has it, too.
    let rows = categories.len().min(ROWS_MIN);
    let table_lines = 2 + rows + usize::from(categories.len() > rows);
    while advice.len() > 1 && out.lines().count() + table_lines + 1 + advice.len() > SCREEN {
        advice.pop();
    }
    // With an empty line above them.
    let advice_lines = if advice.is_empty() { 0 } else { advice.len() + 1 };
    let room = SCREEN.saturating_sub(out.lines().count() + advice_lines + 2);
    if room == 0 {
        push_advice(&mut out, &advice);
        return out;
    }
    let shown = SUMMARY_ROWS.min(style.rows).min(room.saturating_sub(1).max(1));
    push_table(&mut out, style, "Programs, by CPU time", &by_cpu(&categories, shown));
    if out.lines().count() + advice_lines < SCREEN {
        out.extend(others(&categories, shown, style.width));
    }
    push_advice(&mut out, &advice);
    out
}

/// The best advice; `proctrace advise` says more.
fn push_advice(out: &mut String, advice: &[String]) {
    for (at, line) in advice.iter().enumerate() {
        if at == 0 && !out.ends_with("\n\n") {
            out.push('\n');
        }
        let label = if at == 0 { "Advice" } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "  {label:<9}{line}");
    }
}

/// Column at which the values of the summary begin.
const INDENT: usize = 11;

/// Joins the parts with " · ", and wraps only between parts: a truncated number would be wrong.
fn parts_in_lines(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in text.split(" · ") {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 3 + part.chars().count() <= width => {
                line.push_str(" · ");
                line.push_str(part);
            }
            _ if part.chars().count() > width => lines.extend(wrap(part, width)),
            _ => lines.push(part.to_owned()),
        }
    }
    lines
}

/// The summary and these tables, each with its essential notes; `--section` shows all notes.
pub fn full(findings: &Findings, tables: &[Table], style: Style) -> String {
    let mut out = summary(findings, style);
    for table in tables {
        let parts = if table.name == BY_CLASS { by_class(table) } else { vec![table.clone()] };
        for mut table in parts {
            let mut others = 0;
            table.notes.retain(|note| {
                others += usize::from(!note.starts_with(NOT_KNOWN_NOTE));
                others <= 1
            });
            out.push('\n');
            out.push_str(&table_text(&table, style));
        }
    }
    out.push_str(
        "\nMore: --all for complete tables, --section NAME for other tables with all notes\n\
         (--section list for the names), --gantt OUT.svg for a chart, --json for scripts\n",
    );
    out
}

/// The table that is split by class.
const BY_CLASS: &str = "programs";
const CLASSES: [(&str, &str); 3] = [
    ("framework", "The experiment's software"),
    ("command", "System commands"),
    ("program", "Other programs"),
];
/// Prefix of the note that lists missing values and the reason.
const NOT_KNOWN_NOTE: &str = "Not known";

/// Splits a table of programs by class; the notes appear only below the last part.
fn by_class(table: &Table) -> Vec<Table> {
    let mut parts: Vec<Table> = CLASSES
        .into_iter()
        .map(|(class, title)| {
            let mut part = table.rows_where("class", class);
            // If no rule categorised any of these programs, the column would be constant.
            let rows = part.height();
            part.columns.retain(|column| {
                column.name != "category"
                    || (0..rows).any(|row| column.values.get(row) != Cell::Text("other"))
            });
            part.title = title.to_owned();
            part
        })
        .filter(|part| part.height() > 0)
        .collect();
    if let Some((_, others)) = parts.split_last_mut() {
        others.iter_mut().for_each(|part| part.notes.clear());
    }
    parts
}

// ---- the header: what was recorded, when, and whether to trust it ----

fn header(findings: &Findings, style: Style) -> Vec<String> {
    let run = &findings.run;
    let outcome = match run.outcome {
        Some(Outcome::Code(code)) => format!(" · exit {code}"),
        Some(Outcome::Signal(signal)) => format!(" · killed by signal {signal}"),
        None if run.command.is_empty() || findings.health.recording_now => String::new(),
        None => " · end not recorded".to_owned(),
    };
    let mut lines = vec![style.bold(&shorten(&subject(run), style.width))];
    let cores = match run.cores {
        0 => String::new(),
        cores => format!(" · {}", counted(u64::from(cores), "core", "cores")),
    };
    let took = format!("{}{cores}{outcome}", duration(run));
    lines.extend(parts_in_lines(&took, style.width));
    lines.extend(run.after.as_ref().map(|after| shorten(&waited(after), style.width)));
    lines.push(shorten(&when_and_where(run), style.width));
    lines.extend(health(findings, style));
    for spot in &findings.blind_spots {
        let mut line = format!("Blind spot: {}", spot.says);
        if !spot.programs.is_empty() {
            let _ = write!(line, " ({})", spot.programs.join(", "));
        }
        lines.extend(wrap(&terminal(&line), style.width));
    }
    lines
}

/// When and on which machine, as far as that is known: an imported log may have neither.
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

/// How long the command ran itself.
fn duration(run: &Run) -> String {
    format!("{} wall", time(run.wall_ns))
}

/// How long the recording went on after that, and for whom: "then 12.0 s until `sleep 600` (pid 4711) ended".
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

fn health(findings: &Findings, style: Style) -> Vec<String> {
    let health = &findings.health;
    if health.is_good() {
        return balanced(health, style);
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
fn balanced(health: &Health, style: Style) -> Vec<String> {
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

// ---- the key figures ----

/// The rows of the summary: a label and the known values.
fn figures(findings: &Findings, width: usize) -> Vec<(&'static str, String)> {
    let s = &findings.summary;
    // How it ended comes first: who has a job that failed asks nothing else.
    let mut rows = Vec::new();
    let ends = findings.ends.as_ref().and_then(|ends| ends::summary(ends, width));
    rows.extend(ends.map(|text| ("Ends", text)));
    let cause = findings.ends.as_ref().and_then(ends::cause);
    rows.extend(cause.map(|text| ("Cause", text)));
    rows.push(("CPU", cpu(findings)));
    rows.extend(unseen(s).map(|text| ("", text)));
    let mut execs = known(s.execs, |n| counted(n, "exec", "execs"), "execs");
    if let Some(failed) = s.execs_failed.filter(|failed| *failed > 0) {
        let _ = write!(execs, " ({} tried in vain along PATH)", count(failed));
    }
    rows.push((
        "Tasks",
        format!(
            "{} · {} · {execs}",
            known(s.processes, |n| counted(n, "process", "processes"), "processes"),
            known(s.threads, |n| counted(n, "thread", "threads"), "threads"),
        ),
    ));
    rows.push(("", concurrency(s)));
    rows.extend(phases(findings, width).map(|text| ("Phases", text)));
    rows.push(("Memory", memory(findings)));
    rows.push((
        "Storage",
        match s.read_bytes.zip(s.write_bytes) {
            Some((read, written)) => format!("{} read · {} written", bytes(read), bytes(written)),
            None => NOT_KNOWN.to_owned(),
        },
    ));
    let switches = match s.switches_voluntary.zip(s.switches_involuntary) {
        Some((voluntary, involuntary)) => {
            format!("{} voluntary, {} involuntary", count(voluntary), count(involuntary))
        }
        None => NOT_KNOWN.to_owned(),
    };
    let delay = s.run_delay_ns.map(|ns| format!(" · {} spent waiting for a CPU", time(ns)));
    rows.push(("Switches", switches + &delay.unwrap_or_default()));
    rows.push(("Wasted", wasted(s)));
    rows
}

/// The longest phases between marks in order of time, as many as fit on a line.
fn phases(findings: &Findings, width: usize) -> Option<String> {
    let all = findings.phases.as_deref().filter(|all| !all.is_empty())?;
    let mut longest: Vec<usize> = (0..all.len()).collect();
    longest.sort_by_key(|at| std::cmp::Reverse(all[*at].wall_ns()));
    let line = |chosen: &[usize]| {
        let mut chosen = chosen.to_vec();
        chosen.sort_unstable();
        let part = |at: &usize| {
            let name = shorten(&terminal(&all[*at].name), PHASE_WIDTH);
            format!("{name} {}", time(all[*at].wall_ns()))
        };
        let mut parts: Vec<String> = chosen.iter().map(part).collect();
        if chosen.len() < all.len() {
            parts.push(format!("{} more", count((all.len() - chosen.len()) as u64)));
        }
        parts.join(" · ")
    };
    let fits = |n: &usize| line(&longest[..*n]).chars().count() <= width;
    let most = (1..=all.len().min(SUMMARY_ROWS)).rev().find(fits).unwrap_or(1);
    Some(line(&longest[..most]))
}

/// Maximum length of a phase's name in the summary.
const PHASE_WIDTH: usize = 24;

const NOT_KNOWN: &str = "not known";

fn known(figure: Option<u64>, text: impl FnOnce(u64) -> String, name: &str) -> String {
    figure.map_or_else(|| format!("{name} {NOT_KNOWN}"), text)
}

/// CPU time and how it is divided.
fn cpu(findings: &Findings) -> String {
    let s = &findings.summary;
    let Some(cpu_ns) = s.cpu_ns else { return NOT_KNOWN.to_owned() };
    let mut text = time(cpu_ns);
    match s.user_ns.zip(s.system_ns) {
        Some((user_ns, system_ns)) => {
            let _ = write!(text, "   user {} · system {}", time(user_ns), time(system_ns));
            let middle = percent(system_ns, cpu_ns);
            let _ = match s.system_low_percent.zip(s.system_high_percent) {
                Some((low, high)) => write!(text, " ({middle}, {low:.0}-{high:.0})"),
                None => write!(text, " ({middle})"),
            };
        }
        None => {
            let why = findings.known.iter().find(|known| known.quantity == "split");
            let few = why.and_then(|known| known.why.as_deref()).unwrap_or_default();
            let few = few.split(',').next().unwrap_or_default();
            let _ = write!(text, " · user and system {NOT_KNOWN} ({few})");
        }
    }
    if let Some(efficiency) = s.efficiency_percent {
        let cores = counted(u64::from(findings.run.cores), "core", "cores");
        let _ = write!(text, " · {efficiency:.0} % of {cores}");
    }
    text
}

fn memory(findings: &Findings) -> String {
    let s = &findings.summary;
    let mut parts = Vec::new();
    // Of the sums over a tree, no process's own is known.
    if let (None, Some(all)) = (s.maxrss_bytes, &findings.memory) {
        let (pss, rss) = (bytes(all.peak_pss_bytes), bytes(all.rss_bytes_then));
        return format!(
            "largest PSS of all together {pss} (RSS {rss}) at {}",
            time(all.peak_pss_at_ns)
        );
    }
    parts.push(match (s.maxrss_bytes, &s.maxrss_program) {
        (Some(peak), Some(program)) => {
            format!("largest peak RSS {} ({})", bytes(peak), shorten(&terminal(program), 24))
        }
        (Some(peak), None) => format!("largest peak RSS {}", bytes(peak)),
        (None, _) => format!("largest peak RSS {NOT_KNOWN}"),
    });
    if let Some((major, minor)) = s.faults_major.zip(s.faults_minor) {
        let major = counted(major, "major fault", "major faults");
        parts.push(format!("{major}, {} minor", count(minor)));
    }
    parts.join(" · ")
}

/// CPU time that `time` does not report.
fn unseen(s: &Summary) -> Option<String> {
    let (waited, all_ns) = (s.waited_cpu_ns?, s.cpu_ns?);
    let (unwaited_ns, detached_ns) = (s.unwaited_cpu_ns?, s.detached_cpu_ns?);
    // Negligible amounts, as from a shell that does not wait for the last process of a pipeline,
    // are not reported.
    if unwaited_ns < all_ns / 1000 && detached_ns < all_ns / 1000 {
        return None;
    }
    let mut text = format!("`time` reports {} of it", time(waited));
    if let Some(detached) = s.detached_processes.filter(|detached| *detached > 0) {
        let _ = write!(
            text,
            " · {} ({})",
            counted(detached, "process outlived its parent", "processes outlived their parents"),
            time(detached_ns),
        );
    } else {
        let _ = write!(text, " · {} in processes never waited for", time(unwaited_ns));
    }
    Some(text)
}

fn concurrency(s: &Summary) -> String {
    let Some(peak) = s.peak_tasks else { return format!("peak number of tasks {NOT_KNOWN}") };
    let mut text = format!("up to {} alive", counted(peak, "task", "tasks"));
    if let Some(running) = s.peak_running {
        let _ = write!(text, ", {} running", count(running));
    }
    if let Some(life) = s.median_life_ns
        && s.processes > Some(2)
    {
        let _ = write!(text, " · median lifetime {}", time(life));
    }
    if let Some(alive) = s.alive_processes.filter(|alive| *alive > 0) {
        let _ = write!(text, " · {} alive at the end", count(alive));
    }
    text
}

/// Look-ups include opens, stats, accesses and more, but successes are counted only for opens. So a
/// percentage exists only for opens, and must not be mistaken for one of all look-ups.
fn wasted(s: &Summary) -> String {
    let mut text = match s.lookups_in_vain {
        Some(lookups) => counted(lookups, "failed look-up", "failed look-ups"),
        None => {
            let known: Vec<String> = s
                .lookups_failed_by_family
                .iter()
                .map(|(family, n)| format!("{} by {family}", count(*n)))
                .collect();
            match known.is_empty() {
                true => format!("failed look-ups {NOT_KNOWN}"),
                false => format!("failed look-ups {}, others {NOT_KNOWN}", known.join(", ")),
            }
        }
    };
    if let Some((lookups, execs)) = s.lookups_in_vain.zip(s.execs)
        && execs > 0
    {
        let _ = write!(text, ", {:.1} per exec", lookups as f64 / execs as f64);
    }
    if let Some(hits) = s.opens {
        let failed_opens = s.lookups_failed_by_family.get("open").copied().unwrap_or(0);
        let opens = failed_opens.saturating_add(hits);
        if opens > 0 {
            let share = percent(failed_opens, opens);
            let _ = write!(text, " · {share} of opens failed ({})", count(failed_opens));
        }
    }
    text
}

#[cfg(test)]
mod tests;
