//! The processes that were alive at some time as text.

use std::fmt::Write as _;

use proctrace_findings::{Alive, AliveProcess, bytes, counted, time};

use crate::escape::terminal;
use crate::number::or_dash;
use crate::style::Style;
use crate::table::{Align, Table};
use crate::words::{command_line, push_words};

/// Maximum uncertainty of a CPU time that is shown as exact.
const EXACT_NS: u64 = 1_000_000;

/// The list, one line for each process.
pub fn alive_text(alive: &Alive, style: Style) -> String {
    let all = counted(alive.processes.len() as u64, "process", "processes");
    let title = match alive.to_ns {
        None => format!("{all} alive at {}", time(alive.from_ns)),
        Some(to_ns) => format!("{all} alive from {} to {}", time(alive.from_ns), time(to_ns)),
    };
    let mut out = format!("{}\n", style.bold(&title));
    let age = if alive.to_ns.is_some() { "lived" } else { "age" };
    let mut columns = vec![("pid", Align::Right), ("ppid", Align::Right)];
    if alive.to_ns.is_none() {
        columns.push(("state", Align::Left));
    }
    columns.extend([(age, Align::Right), ("CPU", Align::Right), ("RSS", Align::Right)]);
    columns.push(("command", Align::Left));
    let mut table = Table::new(&columns).without_prefixes();
    let shown = alive.processes.len().min(style.rows);
    for process in &alive.processes[..shown] {
        let mut cells = vec![process.pid.to_string(), or_dash(process.ppid, |pid| pid.to_string())];
        if alive.to_ns.is_none() {
            cells.push(state(process));
        }
        cells.extend([time(process.age_ns), cpu(process), or_dash(process.rss_bytes, bytes)]);
        cells.push(terminal(&command(process)).into_owned());
        table.row(cells);
    }
    for line in table.lines(style.width) {
        let _ = writeln!(out, "{line}");
    }
    if shown < alive.processes.len() {
        let more = (alive.processes.len() - shown) as u64;
        let _ = writeln!(out, "  … {}: --all, or --top N", counted(more, "more row", "more rows"));
    }
    push_notes(&mut out, alive, style);
    out
}

fn push_notes(out: &mut String, alive: &Alive, style: Style) {
    out.push('\n');
    let mut says = String::new();
    match (alive.to_ns, alive.waits_min_ns) {
        (None, Some(min_ns)) => {
            let _ = write!(
                says,
                "state: R runs, or was off the CPU for less than {}; S and D wait; of several \
                 threads, that of the most active. ",
                time(min_ns)
            );
        }
        (None, None) => {
            let _ = write!(
                says,
                "state: at the nearest reading, of one every {}. ",
                time(alive.interval_ns)
            );
        }
        (Some(_), _) => says.push_str("lived, CPU: within the interval. "),
    }
    let _ = write!(
        says,
        "CPU ~: interpolated between readings, birth and end; ≥: no later reading. RSS: at the last \
         reading of that program; -: there was none. Readings: one every {}.",
        time(alive.interval_ns)
    );
    if alive.processes.iter().any(|process| process.is_fork) {
        says.push_str(" (fork): it has not called exec, and has the arguments of its forker.");
    }
    push_words(out, "", &says, style);
    if let Some(why) = &alive.not_known {
        push_words(out, "Unknown", why, style);
    }
}

/// "S a child", as ps(1) abbreviates states.
fn state(process: &AliveProcess) -> String {
    match (process.state, process.waits_for) {
        (None, _) => "-".to_owned(),
        (Some('R'), Some(_)) => "R no CPU".to_owned(),
        (Some(letter), Some(object)) => format!("{letter} {object}"),
        (Some(letter), None) => letter.to_string(),
    }
}

fn cpu(process: &AliveProcess) -> String {
    let all = (process.cpu_low_ns, process.cpu_ns, process.cpu_high_ns);
    let (Some(low_ns), Some(likely_ns), Some(high_ns)) = all else { return "-".to_owned() };
    let sign = match high_ns.saturating_sub(low_ns) {
        0..=EXACT_NS => "",
        _ if likely_ns == low_ns && process.ended_ns.is_none() => "≥",
        _ => "~",
    };
    format!("{sign}{}", time(likely_ns))
}

fn command(process: &AliveProcess) -> String {
    let mut text = match &process.arguments {
        Some(arguments) => command_line(arguments),
        // As ps(1) shows what has no arguments.
        None => format!("[{}]", process.program),
    };
    if process.is_fork {
        text = format!("(fork) {text}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process() -> AliveProcess {
        AliveProcess {
            pid: 4711,
            age_ns: 2_000_000_000,
            state: Some('S'),
            waits_for: Some("a child"),
            cpu_ns: Some(450_000_000),
            cpu_low_ns: Some(400_000_000),
            cpu_high_ns: Some(500_000_000),
            arguments: Some(vec!["sh".to_owned(), "-c".to_owned(), "a\nb".to_owned()]),
            ..AliveProcess::default()
        }
    }

    #[test]
    fn what_is_interpolated_or_unknown_is_marked() {
        let exact = AliveProcess {
            cpu_low_ns: Some(450_000_000),
            cpu_high_ns: Some(450_500_000),
            ppid: Some(1),
            state: None,
            rss_bytes: Some(12_000_000),
            is_fork: true,
            ..process()
        };
        let unknown =
            AliveProcess { cpu_ns: None, arguments: None, program: "x".into(), ..process() };
        let processes = vec![process(), exact, unknown];
        let alive = Alive { from_ns: 2_500_000_000, processes, ..Alive::default() };
        let text = alive_text(&alive, Style::default());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "3 processes alive at 2.50 s");
        let row = |at: usize| lines[at].split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(row(2), "4711 - S a child 2.00 s ~450 ms - sh -c 'a\\nb'");
        assert_eq!(row(3), "4711 1 - 2.00 s 450 ms 12.0 MB (fork) sh -c 'a\\nb'");
        assert_eq!(row(4), "4711 - S a child 2.00 s - - [x]");
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
    }
}
