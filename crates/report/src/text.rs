//! A report for a terminal: a summary that fits one screen of 80 by 24, then the tables.

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use proctrace_findings::{Category, Class, Findings, Health, Outcome, Run, Summary};

use crate::data::wrap;
use crate::ends;
use crate::escape::terminal;
use crate::number::{bytes, count, counted, percent, time};
use crate::style::Style;
use crate::table::shorten;
use crate::tables::{
    by_cpu, counts, detached, in_order_of_cpu, lookups, others, push_correlations, push_memory,
    push_table, spawners, title_of,
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
    // The title and the heading of the table are above its rows, the line of what is not in it below.
    let room = SCREEN.saturating_sub(out.lines().count() + 2);
    if room == 0 {
        return out;
    }
    let shown = SUMMARY_ROWS.min(style.rows).min(room.saturating_sub(1).max(1));
    let categories = in_order_of_cpu(&findings.categories);
    push_table(&mut out, style, "Programs, by CPU time", &by_cpu(&categories, shown));
    if out.lines().count() < SCREEN {
        out.extend(others(&categories, shown, style.width));
    }
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
    if let Some(ends) = findings.ends.as_ref().filter(|ends| ends.any_abnormal()) {
        let title = title_of("Ends other than exit 0", ends.by_program.len(), style.rows);
        out.push('\n');
        push_table(&mut out, style, &title, &ends::table(ends, style.rows));
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
        return balanced(health, style);
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
    for law in health.laws.iter().filter(|law| law.is_broken()) {
        lines.push(format!(
            "BOOKS: not so: {}: {} {unit} against {} {unit}",
            law.says,
            law.found.unwrap_or_default(),
            law.expected.unwrap_or_default(),
            unit = law.unit
        ));
    }
    let lines = lines.into_iter().map(|line| style.alarm(&terminal(&line)));
    lines.collect()
}

/// Only laws that were checked are kept.
fn balanced(health: &Health, style: Style) -> Vec<String> {
    let unchecked: Vec<&str> =
        health.laws.iter().filter(|law| law.holds.is_none()).map(|law| law.name).collect();
    if unchecked.is_empty() {
        return vec!["Nothing lost, the books balance.".to_owned()];
    }
    let text = format!(
        "Nothing lost, the books balance as far as checked: {} of {} laws (not {}; proctrace check \
         says why).",
        health.laws_checked(),
        health.laws.len(),
        unchecked.join(", ")
    );
    wrap(&text, style.width)
}

// ---- the figures ----

/// The rows of the summary: a heading, and what is known.
fn figures(findings: &Findings, width: usize) -> Vec<(&'static str, String)> {
    let s = &findings.summary;
    let mut rows = vec![("CPU", cpu(findings))];
    rows.extend(unseen(s).map(|text| ("", text)));
    let mut execs = known(s.execs, |n| counted(n, "exec", "execs"), "execs");
    if let Some(failed) = s.execs_failed.filter(|failed| *failed > 0) {
        let _ = write!(execs, " ({} failed)", count(failed));
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
    let ends = findings.ends.as_ref().and_then(|ends| ends::summary(ends, width));
    rows.extend(ends.map(|text| ("Ends", text)));
    rows.push(("Memory", memory(s)));
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

const NOT_KNOWN: &str = "not known";

fn known(figure: Option<u64>, text: impl FnOnce(u64) -> String, name: &str) -> String {
    figure.map_or_else(|| format!("{name} {NOT_KNOWN}"), text)
}

/// CPU time, and how it is divided.
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
            let _ = write!(text, "   user and system {NOT_KNOWN} ({few})");
        }
    }
    if let Some(efficiency) = s.efficiency_percent {
        let cores = counted(u64::from(findings.run.cores), "core", "cores");
        let _ = write!(text, " · {efficiency:.0} % of {cores}");
    }
    text
}

fn memory(s: &Summary) -> String {
    let mut parts = Vec::new();
    parts.push(match (s.maxrss_bytes, &s.maxrss_program) {
        (Some(peak), Some(program)) => {
            format!("largest program {} ({})", bytes(peak), shorten(&terminal(program), 24))
        }
        (Some(peak), None) => format!("largest program {}", bytes(peak)),
        (None, _) => format!("largest program {NOT_KNOWN}"),
    });
    if let Some((major, minor)) = s.faults_major.zip(s.faults_minor) {
        let major = counted(major, "major fault", "major faults");
        parts.push(format!("{major}, {} minor", count(minor)));
    }
    parts.join(" · ")
}

/// What `time` cannot see.
fn unseen(s: &Summary) -> Option<String> {
    let (waited, all_ns) = (s.waited_cpu_ns?, s.cpu_ns?);
    let (unwaited_ns, detached_ns) = (s.unwaited_cpu_ns?, s.detached_cpu_ns?);
    // A shell that does not wait for the last of a pipe is not worth a line.
    if unwaited_ns < all_ns / 1000 && detached_ns < all_ns / 1000 {
        return None;
    }
    let mut text = format!("`time` sees {} of it", time(waited));
    if let Some(detached) = s.detached_processes.filter(|detached| *detached > 0) {
        let _ = write!(
            text,
            " · {} ({})",
            counted(detached, "process outlived its parent", "processes outlived their parents"),
            time(detached_ns),
        );
    } else {
        let _ = write!(text, " · {} was never waited for", time(unwaited_ns));
    }
    Some(text)
}

fn concurrency(s: &Summary) -> String {
    let Some(peak) = s.peak_tasks else { return format!("most at one time {NOT_KNOWN}") };
    let mut text = format!("up to {} alive", counted(peak, "task", "tasks"));
    if let Some(running) = s.peak_running {
        let _ = write!(text, ", {} running", count(running));
    }
    if let Some(life) = s.median_life_ns
        && s.processes > Some(2)
    {
        let _ = write!(text, " · half the processes live < {}", time(life));
    }
    if let Some(alive) = s.alive_processes.filter(|alive| *alive > 0) {
        let _ = write!(text, " · {} never ended", count(alive));
    }
    text
}

/// Look-ups are opens, stats, accesses and more; of those that succeed, only opens are counted. So
/// only of opens can a share be given, and it must not look like one of all look-ups.
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
mod tests {
    use super::*;
    use proctrace_findings::{
        Correlations, DirectoryMisses, Knowledge, Known, Law, Loss, Memory, ProcessMemory, Run,
        Spawner,
    };

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
            processes: Some(n),
            forked: Some(n),
            threads: Some(n),
            execs: Some(n),
            cpu_ns: Some(n),
            user_ns: Some(n / 2),
            system_ns: Some(n / 2),
            system_percent: Some(99.0),
            system_low_percent: Some(98.0),
            system_high_percent: Some(100.0),
            ticks: Some(1e9),
            lookups_failed: Some(n),
            median_life_ns: Some(n),
            maxrss_bytes: Some(n),
            main_spawner: name.clone(),
            main_spawner_processes: Some(n - 1),
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
            known: Vec::new(),
            summary: Summary {
                cpu_ns: Some(n),
                user_ns: Some(n / 2),
                system_ns: Some(n / 2),
                ticks: Some(1e9),
                system_low_percent: Some(49.0),
                system_high_percent: Some(51.0),
                waited_system_ns: Some(n / 6),
                efficiency_percent: Some(1e9),
                waited_cpu_ns: Some(n / 3),
                unwaited_cpu_ns: Some(n / 3),
                detached_processes: Some(n),
                detached_cpu_ns: Some(n),
                processes: Some(n),
                threads: Some(n),
                execs: Some(n),
                execs_failed: Some(n),
                peak_tasks: Some(n),
                peak_processes: Some(n),
                peak_running: Some(n),
                median_life_ns: Some(n),
                lookups_failed: Some(n),
                lookups_of_no_link: Some(0),
                lookups_in_vain: Some(n),
                lookups_failed_by_family: [("open".to_owned(), n)].into(),
                opens: Some(n),
                switches_voluntary: Some(n),
                switches_involuntary: Some(n),
                faults_minor: Some(n),
                faults_major: Some(n),
                read_bytes: Some(n),
                write_bytes: Some(n),
                run_delay_ns: Some(n),
                maxrss_bytes: Some(n),
                maxrss_program: Some(name.clone()),
                alive_processes: Some(n),
            },
            categories: vec![category; 12],
            spawners: vec![
                Spawner {
                    parent: name.clone(),
                    child: name.clone(),
                    processes: n,
                    cpu_ns: Some(n),
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
            ends: Some(crate::ends::tests::extreme(&name, n)),
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
            holds: Some(false),
            not_checked: None,
            expected: Some(3.0),
            found: Some(2.0),
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
        (s.peak_tasks, s.detached_processes) = (Some(119), Some(1));
        (s.cpu_ns, s.unwaited_cpu_ns, s.detached_cpu_ns) = (Some(10), Some(5), Some(5));
        (s.lookups_failed, s.lookups_of_no_link) = (Some(9_000), Some(2_000));
        s.lookups_in_vain = Some(7_000);
        let text = summary(&findings, Style { width: 200, ..Style::default() });
        assert!(text.contains("up to 119 tasks alive"), "{text}");
        assert!(text.contains("1 process outlived its parent"), "{text}");
        assert!(text.contains("7,000 failed look-ups"), "{text}");
    }

    #[test]
    fn what_is_not_known_is_no_zero() {
        let mut findings = extreme();
        let s = &mut findings.summary;
        (s.lookups_in_vain, s.read_bytes, s.execs, s.opens) = (None, None, None, None);
        s.lookups_failed_by_family.clear();
        (s.user_ns, s.system_ns) = (None, None);
        findings.known = vec![Known {
            quantity: "split",
            state: Knowledge::Absent,
            why: Some("3 scheduler ticks hit the recording, and 30 are the least".into()),
        }];
        findings.health.laws = vec![Law {
            name: "lookups",
            says: "every failed look-up that a task counted has a record",
            holds: None,
            not_checked: Some("left out by --misses".into()),
            expected: None,
            found: None,
            unit: "look-ups",
        }];
        let text = summary(&findings, Style { width: 200, ..Style::default() });
        for line in [
            "Wasted   failed look-ups not known\n",
            "Storage  not known\n",
            " · execs not known (",
            "user and system not known (3 scheduler ticks hit the recording)",
            "the books balance as far as checked: 0 of 1 laws (not lookups;",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn a_share_of_opens_is_not_one_of_all_look_ups() {
        let mut findings = findings(1_000);
        let s = &mut findings.summary;
        (s.lookups_in_vain, s.opens, s.execs) = (Some(24_139), Some(13_546), Some(501));
        s.lookups_failed_by_family =
            [("open".to_owned(), 12_004), ("stat".to_owned(), 12_135)].into();
        let says = "24,139 failed look-ups, 48.2 per exec · 47 % of opens failed (12,004)";
        assert_eq!(wasted(&findings.summary), says);
        // Stats alone have no share: nobody counts those that succeed.
        findings.summary.lookups_failed_by_family = [("stat".to_owned(), 24_139)].into();
        assert!(wasted(&findings.summary).ends_with(" · 0 % of opens failed (0)"));
    }

    #[test]
    fn programs_come_by_cpu_time_and_the_numerous_are_named_below() {
        let mut findings = findings(1_000);
        let program = |name: &str, processes: u64, cpu_ms: u64| Category {
            name: name.to_owned(),
            processes: Some(processes),
            cpu_ns: Some(cpu_ms * 1_000_000),
            user_ns: Some(cpu_ms * 1_000_000),
            system_ns: Some(0),
            system_percent: Some(0.0),
            main_spawner: "make".to_owned(),
            main_spawner_processes: Some(processes),
            ..findings.categories[0].clone()
        };
        findings.categories = vec![
            program("tr", 900, 1),
            program("sed", 800, 2),
            program("sh", 10, 3),
            program("gcc", 9, 4),
            program("make", 8, 5),
            program("ar", 7, 6),
            program("ld", 6, 79),
            program("cc1", 5, 900),
        ];
        let style = Style { width: 200, ..Style::default() };
        let text = summary(&findings, style);
        let table = text.split("Programs, by CPU time\n").nth(1).unwrap();
        let lines: Vec<&str> = table.lines().collect();
        let cells: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(cells[..7], ["cc1", "900", "ms", "90", "%", "0", "%"], "{text}");
        assert!(lines[2].trim_start().starts_with("ld "), "{text}");
        assert_eq!(lines[7], "  and 2 more, most processes first: 900 tr, 800 sed");
        assert_eq!(lines.len(), 8);
        findings.categories.truncate(3);
        assert!(!summary(&findings, style).contains("more, most processes"));
    }

    #[test]
    fn a_matrix_is_printed_where_it_tells_something() {
        let mut findings = findings(1_000);
        let told = |findings: &Findings| full(findings, Style::default()).contains("Pearson r");
        findings.correlations.n = 11;
        findings.correlations.r_low = vec![vec![None, Some(-1.0)], vec![Some(-1.0), None]];
        assert!(!told(&findings));
        let text = full(&findings, Style::default());
        assert!(text.contains("too little to tell\n  n = 11 bins of "), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        findings.correlations.n = 30;
        assert!(told(&findings));
        // However many bins: without an interval no one knows what a coefficient is worth.
        findings.correlations.r_low = vec![vec![None; 2]; 2];
        assert!(!told(&findings));
    }

    #[test]
    fn memory_tells_peaks_from_looks() {
        let mut findings = findings(1_000);
        let process = |program: &str, peak_mb: Option<u64>, rss_mb: u64| ProcessMemory {
            pid: 7,
            program: program.to_owned(),
            peak_rss_bytes: peak_mb.map(|mb| mb * 1_000_000),
            rss_bytes: rss_mb * 1_000_000,
            pss_bytes: rss_mb * 1_000_000,
            uss_bytes: 0,
            shared_bytes: 0,
            swap_bytes: 0,
        };
        findings.memory = Some(Memory {
            interval_ns: 5_000_000_000,
            passes: 3,
            peak_pss_bytes: 190_000_000,
            rss_bytes_then: 190_000_000,
            uss_bytes_then: 0,
            processes_then: 2,
            processes: vec![process("make", Some(200), 190), process("cc1", Some(346), 178)],
            processes_not_looked_at: 12,
            peak_rss_bytes_not_looked_at: Some(120_000_000),
        });
        let text = full(&findings, Style { width: 200, ..Style::default() });
        let memory = text.split("Memory of processes\n").nth(1).unwrap();
        let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let lines: Vec<&str> = memory.lines().collect();
        assert_eq!(cells(lines[0])[..3], ["peak", "RSS", "PSS"]);
        assert_eq!(cells(lines[1])[..4], ["346", "MB", "178", "MB"], "{memory}");
        assert!(
            memory.contains("at the look with the largest PSS, of one every 5.00 s"),
            "{memory}"
        );
        assert!(memory.contains("no look found 12 other processes: peak RSS up to 120 MB"));
    }

    #[test]
    fn rows_are_as_many_as_asked_for() {
        let text = full(&extreme(), Style { rows: 3, ..Style::default() });
        assert!(text.contains("System commands (the first 3 of 12)"), "{text}");
        let text = full(&extreme(), Style { rows: usize::MAX, ..Style::default() });
        assert!(!text.contains("the first"));
    }
}
