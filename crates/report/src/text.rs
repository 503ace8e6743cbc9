//! A report for a terminal: a summary that fits one screen of 80 by 24, then the tables.

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use proctrace_findings::{Category, Class, Findings, Outcome, Run, Summary};

use crate::data::wrap;
use crate::ends;
use crate::escape::terminal;
use crate::number::{bytes, count, counted, percent, time};
use crate::style::Style;
use crate::table::shorten;
use crate::tables::{
    by_processes, counts, detached, lookups, push_correlations, push_memory, push_table, spawners,
    title_of,
};

/// Rows of the summary's own table, so that it all fits a screen.
const SUMMARY_ROWS: usize = 6;
/// Lines of a screen.
const SCREEN: usize = 24;

/// The summary: at most 24 lines when all is well.
pub fn summary(findings: &Findings, style: Style) -> String {
    let mut out = String::new();
    for line in header(findings, style) {
        out.push_str(&line);
        out.push('\n');
    }
    let width = style.width.saturating_sub(INDENT);
    for (label, text) in figures(findings, width) {
        let lines = parts_in_lines(&text, width);
        for (at, line) in lines.iter().enumerate() {
            // Writing to a String cannot fail.
            let label = if at == 0 { label } else { "" };
            let _ = writeln!(out, "  {label:<9}{line}");
        }
    }
    out.push('\n');
    // An empty line, the title and the heading of the table are above its rows.
    let room = SCREEN.saturating_sub(out.lines().count() + 2).max(1);
    let shown = SUMMARY_ROWS.min(style.rows).min(room);
    push_table(&mut out, style, "Most processes", &by_processes(&findings.categories, shown));
    out
}

/// Where the figures of the summary begin.
const INDENT: usize = 11;

/// A line of parts with " · " between them, broken there if it is too long: a figure that is cut is
/// a wrong one.
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

/// The summary and every table.
pub fn full(findings: &Findings, style: Style) -> String {
    let mut out = summary(findings, style);
    let of_class = |class: Class| -> Vec<Category> {
        findings.categories.iter().filter(|c| c.class == class).cloned().collect()
    };
    for (class, title) in [
        (Class::Framework, "The experiment's software"),
        (Class::Command, "System commands"),
        (Class::Program, "Other programs"),
    ] {
        let categories = of_class(class);
        if !categories.is_empty() {
            let title = title_of(title, categories.len(), style.rows);
            out.push('\n');
            push_table(&mut out, style, &title, &counts(&categories, style.rows));
        }
    }
    if findings.ends.any_abnormal() {
        let title = title_of("Ends other than exit 0", findings.ends.by_program.len(), style.rows);
        out.push('\n');
        push_table(&mut out, style, &title, &ends::table(&findings.ends, style.rows));
    }
    if !findings.spawners.is_empty() {
        let title = title_of("Who starts what", findings.spawners.len(), style.rows);
        out.push('\n');
        push_table(&mut out, style, &title, &spawners(findings, style.rows));
    }
    if !findings.lookups.is_empty() {
        let title = title_of("Failed look-ups", findings.lookups.len(), style.rows);
        out.push('\n');
        push_table(&mut out, style, &title, &lookups(findings, style.rows));
    }
    if !findings.detached.is_empty() {
        let title = title_of("Outlived their parent", findings.detached.len(), style.rows);
        out.push('\n');
        push_table(&mut out, style, &title, &detached(findings, style.rows));
    }
    if let Some(memory) = &findings.memory {
        out.push('\n');
        push_memory(&mut out, style, memory);
    }
    out.push('\n');
    push_correlations(&mut out, style, &findings.correlations);
    out.push_str(
        "\nMore: --all for whole tables, --gantt OUT.svg for a picture, --json for scripts\n",
    );
    out
}

// ---- the head: what, when, and whether to trust it ----

fn header(findings: &Findings, style: Style) -> Vec<String> {
    let run = &findings.run;
    let outcome = match run.outcome {
        Some(Outcome::Code(code)) => format!(" · exit {code}"),
        Some(Outcome::Signal(signal)) => format!(" · killed by signal {signal}"),
        None if run.command.is_empty() || findings.health.recording_now => String::new(),
        None => " · end not recorded".to_owned(),
    };
    let started = UNIX_EPOCH + Duration::from_nanos(run.started_unix_ns);
    let started = humantime::format_rfc3339_seconds(started).to_string();
    let mut lines = vec![style.bold(&shorten(&subject(run), style.width))];
    let took =
        format!("{} · {}{outcome}", duration(run), counted(u64::from(run.cores), "core", "cores"));
    lines.extend(parts_in_lines(&took, style.width));
    lines.push(shorten(
        &format!(
            "{} on {}, Linux {}",
            started.replace('T', " ").replace('Z', " UTC"),
            terminal(&run.host),
            terminal(&run.kernel)
        ),
        style.width,
    ));
    lines.extend(health(findings, style));
    for spot in &findings.blind_spots {
        let mut line = format!("Not seen: {}", spot.says);
        if !spot.programs.is_empty() {
            let _ = write!(line, " ({})", spot.programs.join(", "));
        }
        lines.extend(wrap(&terminal(&line), style.width));
    }
    lines
}

/// What was recorded.
fn subject(run: &Run) -> String {
    let mut subject = match &*run.scope {
        _ if !run.command.is_empty() => terminal(&run.command.join(" ")).into_owned(),
        "system" => "the whole machine".to_owned(),
        "pids" => "processes that were running already".to_owned(),
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

/// How long the command took, and its descendants if they took noticeably longer.
fn duration(run: &Run) -> String {
    if run.recorded_ns > run.wall_ns + run.wall_ns / 50 + 20_000_000 {
        format!("{} wall ({} with descendants)", time(run.wall_ns), time(run.recorded_ns))
    } else {
        format!("{} wall", time(run.wall_ns))
    }
}

fn health(findings: &Findings, style: Style) -> Vec<String> {
    let health = &findings.health;
    if health.is_good() {
        return vec!["Nothing lost, the books balance.".to_owned()];
    }
    let mut lines = Vec::new();
    if health.recording_now {
        lines.push("STILL RECORDING: this is what has been written so far.".to_owned());
    } else if !health.complete {
        lines.push("INCOMPLETE: the recorder did not get to finish this trace.".to_owned());
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
    for law in health.laws.iter().filter(|law| !law.holds) {
        lines.push(format!(
            "BOOKS: not so: {}: {} {unit} against {} {unit}",
            law.says,
            law.found,
            law.expected,
            unit = law.unit
        ));
    }
    let lines = lines.into_iter().map(|line| style.alarm(&terminal(&line)));
    lines.collect()
}

// ---- the figures ----

fn figures(findings: &Findings, width: usize) -> Vec<(&'static str, String)> {
    let (run, s) = (&findings.run, &findings.summary);
    let mut rows = vec![(
        "CPU",
        format!(
            "{}   user {} · system {} ({}) · {:.0} % of {}",
            time(s.cpu_ns),
            time(s.user_ns),
            time(s.system_ns),
            percent(s.system_ns, s.cpu_ns),
            s.efficiency_percent,
            counted(u64::from(run.cores), "core", "cores"),
        ),
    )];
    rows.extend(unseen(s).map(|text| ("", text)));
    let mut execs = counted(s.execs, "exec", "execs");
    if s.execs_failed > 0 {
        let _ = write!(execs, " ({} failed)", count(s.execs_failed));
    }
    rows.push((
        "Tasks",
        format!(
            "{} · {} · {execs}",
            counted(s.processes, "process", "processes"),
            counted(s.threads, "thread", "threads"),
        ),
    ));
    rows.push(("", concurrency(s)));
    rows.extend(ends::summary(&findings.ends, width).map(|text| ("Ends", text)));
    rows.push((
        "Memory",
        format!(
            "largest program {} ({}) · {}, {} minor",
            bytes(s.maxrss_bytes),
            shorten(&terminal(&s.maxrss_program), 24),
            counted(s.faults_major, "major fault", "major faults"),
            count(s.faults_minor),
        ),
    ));
    rows.push((
        "Storage",
        format!("{} read · {} written", bytes(s.read_bytes), bytes(s.write_bytes)),
    ));
    rows.push((
        "Switches",
        format!(
            "{} voluntary, {} involuntary · {} spent waiting for a CPU",
            count(s.switches_voluntary),
            count(s.switches_involuntary),
            time(s.run_delay_ns),
        ),
    ));
    rows.push(("Wasted", wasted(s)));
    rows
}

/// What `time` cannot see.
fn unseen(s: &Summary) -> Option<String> {
    let waited = s.waited_cpu_ns?;
    // A shell that does not wait for the last of a pipe is not worth a line.
    if s.unwaited_cpu_ns < s.cpu_ns / 1000 && s.detached_cpu_ns < s.cpu_ns / 1000 {
        return None;
    }
    let mut text = format!("`time` sees {} of it", time(waited));
    if s.detached_processes > 0 {
        let _ = write!(
            text,
            " · {} ({})",
            counted(
                s.detached_processes,
                "process outlived its parent",
                "processes outlived their parents"
            ),
            time(s.detached_cpu_ns),
        );
    } else {
        let _ = write!(text, " · {} was never waited for", time(s.unwaited_cpu_ns));
    }
    Some(text)
}

fn concurrency(s: &Summary) -> String {
    let mut text = format!("up to {} alive", counted(s.peak_tasks, "task", "tasks"));
    if let Some(running) = s.peak_running {
        let _ = write!(text, ", {} running", count(running));
    }
    if let Some(life) = s.median_life_ns
        && s.processes > 2
    {
        let _ = write!(text, " · half the processes live < {}", time(life));
    }
    if s.alive_processes > 0 {
        let _ = write!(text, " · {} never ended", count(s.alive_processes));
    }
    text
}

fn wasted(s: &Summary) -> String {
    let mut text = counted(s.lookups_in_vain, "failed look-up", "failed look-ups");
    let failed_opens = s.lookups_failed_by_family.get("open").copied().unwrap_or(0);
    let opens = failed_opens.saturating_add(s.opens);
    if opens > 0 {
        let _ = write!(text, " · {} of all opens", percent(failed_opens, opens));
    }
    if s.execs > 0 {
        let _ = write!(text, " · {:.1} per exec", s.lookups_in_vain as f64 / s.execs as f64);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::{Correlations, DirectoryMisses, Health, Law, Loss, Run, Spawner};

    /// Findings in which every number has as many digits as it can.
    fn extreme() -> Findings {
        findings(u64::MAX / 2)
    }

    /// Findings in which every number is about this one.
    fn findings(n: u64) -> Findings {
        let name = "a\u{1b}[31mname-".repeat(20);
        let category = Category {
            class: Class::Command,
            group: "compiler".into(),
            name: name.clone(),
            processes: n,
            forked: n,
            threads: n,
            execs: n,
            user_ns: n / 2,
            system_ns: n / 2,
            lookups_failed: n,
            median_life_ns: Some(n),
            maxrss_bytes: n,
            main_spawner: name.clone(),
            main_spawner_processes: n - 1,
        };
        Findings {
            run: Run {
                command: vec![name.clone(); 5],
                scope: "command".into(),
                cgroup: None,
                cwd: "/".into(),
                host: name.clone(),
                kernel: name.clone(),
                started_unix_ns: 1_795_257_927_350_632_731,
                outcome: Some(Outcome::Signal(11)),
                cores: u32::MAX,
                wall_ns: n / 2,
                recorded_ns: n,
            },
            health: Health {
                complete: true,
                recording_now: false,
                lost: 0,
                losses: Vec::new(),
                damage: Vec::new(),
                laws: Vec::new(),
            },
            summary: Summary {
                cpu_ns: n,
                user_ns: n / 2,
                system_ns: n / 2,
                efficiency_percent: 1e9,
                waited_cpu_ns: Some(n / 3),
                unwaited_cpu_ns: n / 3,
                detached_processes: n,
                detached_cpu_ns: n,
                processes: n,
                threads: n,
                execs: n,
                execs_failed: n,
                peak_tasks: n,
                peak_processes: n,
                peak_running: Some(n),
                median_life_ns: Some(n),
                lookups_failed: n,
                lookups_of_no_link: 0,
                lookups_in_vain: n,
                lookups_failed_by_family: [("open".to_owned(), n)].into(),
                opens: n,
                switches_voluntary: n,
                switches_involuntary: n,
                faults_minor: n,
                faults_major: n,
                read_bytes: n,
                write_bytes: n,
                run_delay_ns: n,
                maxrss_bytes: n,
                maxrss_program: name.clone(),
                alive_processes: n,
            },
            categories: vec![category; 12],
            spawners: vec![
                Spawner {
                    parent: name.clone(),
                    child: name.clone(),
                    processes: n,
                    cpu_ns: n,
                    per_second: 1e6,
                };
                12
            ],
            lookups: vec![
                DirectoryMisses {
                    directory: name.clone(),
                    family: "readlink".into(),
                    errno: "ENAMETOOLONG".into(),
                    count: n,
                    processes: n,
                };
                12
            ],
            ends: crate::ends::tests::extreme(&name, n),
            detached: Vec::new(),
            memory: None,
            blind_spots: Vec::new(),
            correlations: Correlations {
                series: vec!["system CPU".into(), "user CPU".into()],
                r: vec![vec![Some(1.0), Some(-1.0)], vec![Some(-1.0), None]],
                n: 9,
                bin_ns: n,
                ..Correlations::default()
            },
        }
    }

    #[test]
    fn a_summary_fits_a_screen_whatever_it_says() {
        for n in [1, 1_000_000, 99_000_000_000] {
            let text = summary(&findings(n), Style::default());
            assert!(text.lines().count() <= 24, "{text}");
        }
    }

    #[test]
    fn no_figure_is_cut_whatever_it_is() {
        let text = summary(&extreme(), Style::default());
        assert!(!text.contains('\u{1b}'));
        let end = text.lines().position(str::is_empty).unwrap();
        for line in text.lines().take(end) {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(text.contains("\n           9,223,372,036,854,775,807 threads\n"), "{text}");
        assert_eq!(parts_in_lines("a 1 · b 2 · c 3", 9), ["a 1 · b 2", "c 3"]);
    }

    #[test]
    fn what_is_wrong_is_said_first() {
        let mut findings = extreme();
        findings.health.complete = false;
        findings.health.losses =
            vec![Loss { kind: "fork".into(), reason: "ring_full".into(), count: 12 }];
        findings.health.damage = vec!["a block is corrupt at byte 7".into(); 9];
        findings.health.laws = vec![Law {
            name: "births",
            says: "every task that was made has exited or is still there",
            holds: false,
            expected: 3.0,
            found: 2.0,
            unit: "tasks",
        }];
        let text = full(&findings, Style { colour: true, ..Style::default() });
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[4].contains("INCOMPLETE"));
        assert!(lines[4].starts_with("\u{1b}[1;31m"));
        assert!(lines[5].contains("LOST: 12 records of kind fork (ring_full)"), "{}", lines[5]);
        assert!(lines[9].contains("and in 6 more places"), "{}", lines[9]);
        assert!(lines[10].contains("BOOKS"), "{}", lines[10]);
    }

    #[test]
    fn counts_say_of_what_and_agree_with_their_nouns() {
        let mut findings = extreme();
        let s = &mut findings.summary;
        (s.peak_tasks, s.detached_processes) = (119, 1);
        (s.cpu_ns, s.unwaited_cpu_ns, s.detached_cpu_ns) = (10, 5, 5);
        (s.lookups_failed, s.lookups_of_no_link, s.lookups_in_vain) = (9_000, 2_000, 7_000);
        let text = summary(&findings, Style { width: 200, ..Style::default() });
        assert!(text.contains("up to 119 tasks alive"), "{text}");
        assert!(text.contains("1 process outlived its parent"), "{text}");
        assert!(text.contains("7,000 failed look-ups"), "{text}");
    }

    #[test]
    fn rows_are_as_many_as_asked_for() {
        let text = full(&extreme(), Style { rows: 3, ..Style::default() });
        assert!(text.contains("System commands (the first 3 of 12)"), "{text}");
        let text = full(&extreme(), Style { rows: usize::MAX, ..Style::default() });
        assert!(!text.contains("the first"));
    }
}
