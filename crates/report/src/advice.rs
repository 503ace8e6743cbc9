//! Advice as text: what to do, what it gains, and why, in 80 columns.

use std::fmt::Write as _;

use proctrace_findings::{Advice, Advised, Gain, Observed};

use crate::data::wrap;
use crate::escape::terminal;
use crate::number::time;
use crate::style::Style;

/// Column at which the words begin.
const INDENT: usize = 11;

/// All advice, best first.
pub fn advice_text(advised: &Advised, style: Style) -> String {
    let mut out = String::new();
    if !advised.has_path {
        out.push_str(
            "The critical path is not known (no waits, or not the whole command, recorded):\n\
             gains of wall time are bounded by lifetimes only.\n\n",
        );
    }
    if advised.advice.is_empty() {
        let _ = writeln!(out, "Nothing here pays more than {} %.", advised.min_percent);
        return out;
    }
    let _ = writeln!(
        out,
        "Wall time {}, CPU time {}. Predicted gains, with their range:",
        time(advised.wall_ns),
        time(advised.cpu_ns)
    );
    for (advice, place) in advised.advice.iter().zip(1..) {
        out.push('\n');
        push(&mut out, advised, advice, place, style);
    }
    out
}

fn push(out: &mut String, advised: &Advised, advice: &Advice, place: usize, style: Style) {
    let head = format!("{place}. {}: {}", advice.kind, advice.what);
    for (at, line) in wrapped(&head, style.width.saturating_sub(3)).iter().enumerate() {
        let line = if at == 0 { style.bold(line) } else { format!("   {}", style.bold(line)) };
        let _ = writeln!(out, "{line}");
    }
    let mut row = |label: &str, words: &str| {
        let lines = wrapped(words, style.width.saturating_sub(INDENT));
        for (at, line) in lines.iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            let _ = writeln!(out, "   {label:<8}{line}");
        }
    };
    row("wall", &gain(advice.wall_ns, advised.wall_ns));
    row("CPU", &gain(advice.cpu_ns, advised.cpu_ns));
    row("seen", &advice.evidence);
    row("method", &advice.method);
    row("risk", &advice.risk);
    row("check", &advice.check);
    if let Some(better) = advice.part_of {
        row("note", &format!("mostly the same processes as {better}: the gains do not add up"));
    }
}

/// A gain with its range and its part of the whole: "1.20 s (0.90 s to 1.50 s), 34 %".
fn gain(gain: Gain, whole_ns: u64) -> String {
    if gain.high == 0 {
        return "nothing".to_owned();
    }
    let percent = 100.0 * gain.middle as f64 / whole_ns.max(1) as f64;
    format!("{} ({} to {}), {percent:.1} %", time(gain.middle), time(gain.low), time(gain.high))
}

/// What was predicted and what is observed.
pub fn observed_text(observed: &Observed, style: Style) -> String {
    let mut out = String::new();
    let (wall, cpu) = (
        change(observed.wall_before_ns, observed.wall_after_ns),
        change(observed.cpu_before_ns, observed.cpu_after_ns),
    );
    let _ = writeln!(out, "Observed in total:\n   wall    {wall}\n   CPU     {cpu}");
    if observed.advice.is_empty() {
        let _ = writeln!(out, "\nBefore, nothing paid more than {} %.", observed.min_percent);
    }
    for (one, place) in observed.advice.iter().zip(1..) {
        let advice = &one.advice;
        out.push('\n');
        let head = format!("{place}. {}: {}", advice.kind, advice.what);
        for (at, line) in wrapped(&head, style.width.saturating_sub(3)).iter().enumerate() {
            let line = if at == 0 { style.bold(line) } else { format!("   {}", style.bold(line)) };
            let _ = writeln!(out, "{line}");
        }
        let _ = writeln!(
            out,
            "   predicted  wall {}\n              CPU  {}",
            less(advice.wall_ns, observed.wall_before_ns),
            less(advice.cpu_ns, observed.cpu_before_ns)
        );
        if advice.commands.is_empty() {
            continue;
        }
        let (before, after) = (one.processes_before, one.processes_after);
        let _ = writeln!(out, "   observed   processes of these commands {before} -> {after}");
        let cpu = change(one.commands_cpu_before_ns, one.commands_cpu_after_ns);
        let _ = writeln!(out, "              their CPU  {cpu}");
        if let (Some(before), Some(after)) =
            (one.commands_path_before_ns, one.commands_path_after_ns)
        {
            let _ = writeln!(out, "              their path {}", change(before, after));
        }
    }
    out
}

/// A gain as a change, like [`change`].
fn less(of: Gain, whole_ns: u64) -> String {
    let sign = if of.high == 0 { "" } else { "-" };
    format!("{sign}{}", gain(of, whole_ns))
}

/// "1.20 s -> 0.80 s, -400 ms (-33.3 %)".
fn change(before_ns: u64, after_ns: u64) -> String {
    let sign = if after_ns > before_ns { '+' } else { '-' };
    let by_ns = before_ns.abs_diff(after_ns);
    let percent = 100.0 * by_ns as f64 / before_ns.max(1) as f64;
    format!(
        "{} -> {}, {sign}{} ({sign}{percent:.1} %)",
        time(before_ns),
        time(after_ns),
        time(by_ns)
    )
}

/// Advice in one line each, for a summary.
pub(crate) fn lines(advised: &Advised, width: usize) -> Vec<String> {
    let one = |advice: &Advice| {
        let gains = if advice.wall_ns.middle > 0 {
            let percent = 100.0 * advice.wall_ns.middle as f64 / advised.wall_ns.max(1) as f64;
            format!("-{} wall ({percent:.0} %)", time(advice.wall_ns.middle))
        } else {
            let percent = 100.0 * advice.cpu_ns.middle as f64 / advised.cpu_ns.max(1) as f64;
            format!("-{} CPU ({percent:.0} %)", time(advice.cpu_ns.middle))
        };
        let line = format!("{gains} {}: {}", advice.kind, terminal(&advice.what));
        begins(&line, width)
    };
    advised.advice.iter().map(one).collect()
}

/// The beginning of a line that is too long: what follows is not needed to recognize it.
fn begins(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let head: String = line.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", head.trim_end())
}

fn wrapped(words: &str, width: usize) -> Vec<String> {
    let words = terminal(words);
    let mut lines = Vec::new();
    for line in wrap(&words, width) {
        // A word may be longer than the line: a path.
        let mut rest: Vec<char> = line.chars().collect();
        while rest.len() > width {
            let tail = rest.split_off(width);
            lines.push(rest.iter().collect());
            rest = tail;
        }
        lines.push(rest.iter().collect());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advised(advice: Vec<Advice>) -> Advised {
        Advised {
            wall_ns: 2_000_000_000,
            cpu_ns: 1_000_000_000,
            has_path: true,
            min_percent: 1.0,
            advice,
        }
    }

    fn some() -> Advice {
        Advice {
            kind: "polling",
            what: format!("wait for {}", "x".repeat(200)),
            evidence: "\x1b[31m`sh` runs `sleep #`".to_owned(),
            wall_ns: Gain { low: 0, middle: 200_000_000, high: 400_000_000 },
            part_of: Some(1),
            ..Advice::default()
        }
    }

    fn plain(width: usize) -> Style {
        Style { width, rows: 10, colour: false }
    }

    #[test]
    fn lines_fit_and_names_cannot_control_the_terminal() {
        let text = advice_text(&advised(vec![some()]), plain(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!text.contains('\x1b'), "{text:?}");
        assert!(text.contains("wall    200 ms (0 s to 400 ms), 10.0 %"), "{text}");
        assert!(text.contains("CPU     nothing") && text.contains("same processes as 1"), "{text}");
    }

    #[test]
    fn nothing_is_said_plainly() {
        let text = advice_text(&advised(Vec::new()), plain(80));
        assert_eq!(text, "Nothing here pays more than 1 %.\n");
    }

    #[test]
    fn a_summary_has_a_line_for_each() {
        let lines = lines(&advised(vec![some()]), 60);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("-200 ms wall (10 %) polling: wait for x"), "{}", lines[0]);
        assert!(lines[0].chars().count() <= 60);
    }
}
