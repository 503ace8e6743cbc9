//! The results as tables of at most 100 columns, one per payload.

use std::fmt::Write as _;

use super::counts::Counts;
use super::results::{PayloadResults, Results, Row};
use crate::bench::stats::{Estimate, FEWEST_FOR_INTERVAL};

/// All tables, with the notes needed to interpret them.
pub(super) fn render(results: &Results) -> String {
    let machine = &results.machine;
    let mut text = format!(
        "{}, {} CPUs ({}), {}\n\
        Multiples of the bare run: median over n pairs of runs and its interval of at least 95 % by order\n\
        statistics, for n < {FEWEST_FOR_INTERVAL} the range. CPU is of payload and tracer, its start and stop included;\n\
        +pay is the payload's CPU alone, own the tracer's as % of the payload's, mem the tracer's peak and\n\
        out its output in MB, B/r bytes a record. seen: forks, execs, exits, failed opens; ! not all (or\n\
        too many), - not given by the tool, ? not declared.\n",
        machine.kernel, machine.cpus, machine.processor, machine.date
    );
    for payload in &results.payloads {
        text.push_str(&render_payload(payload));
    }
    if !results.left_out.is_empty() {
        text.push_str("\nNot compared\n");
        for (tracer, reason) in &results.left_out {
            writeln_to(&mut text, &format!("  {tracer:<16}{reason}"));
        }
    }
    text
}

fn render_payload(payload: &PayloadResults) -> String {
    let mut text = format!("\n{}: {}\n", payload.name, payload.command);
    let bare = payload.rows.iter().flat_map(|row| &row.pairs).map(|pair| &pair.bare);
    let (walls, cpus): (Vec<f64>, Vec<f64>) =
        bare.map(|bare| (bare.payload_wall_ns as f64, bare.payload_cpu_ns as f64)).unzip();
    let seconds = |values: &[f64]| match crate::bench::stats::estimate(values) {
        Some(estimate) => format!("{} s", three(estimate.median / 1e9)),
        None => "-".to_owned(),
    };
    let declared = payload.declared.kinds().map(|(_, name, count)| match count {
        Some(count) => format!("{count} {name}"),
        None => format!("? {name}"),
    });
    writeln_to(
        &mut text,
        &format!("bare {}, CPU {}; {}", seconds(&walls), seconds(&cpus), declared.join(", ")),
    );
    writeln_to(
        &mut text,
        &format!(
            "  {:<14}{:>2} {:>19} {:>19} {:>6}{:>6}{:>5}{:>6}{:>6}{:>7} seen",
            "", "n", "wall", "CPU", "+pay", "own %", "mem", "out", "B/r", "lost"
        ),
    );
    for row in &payload.rows {
        render_row(&mut text, row, payload.declared);
    }
    text
}

fn render_row(text: &mut String, row: &Row, declared: Counts) {
    if let (Some(summary), Some(last)) = (&row.summary, row.pairs.last()) {
        let optional = |estimate: Option<Estimate>, unit: f64| {
            estimate.map_or("-".to_owned(), |estimate| two(estimate.median / unit))
        };
        let traced = row.pairs.iter().map(|pair| &pair.traced.seen);
        // Failures in any round are shown.
        let seen = traced
            .clone()
            .find(|seen| !seen.counts.differences(declared).is_empty())
            .unwrap_or(&last.traced.seen);
        let lost = traced.map(|seen| seen.lost).max().flatten();
        let nothing = summary.output_bytes.median == 0.0;
        let letters = seen.counts.letters(declared);
        let line = format!(
            "  {:<14}{:>2} {:>19} {:>19} {:>6}{:>6}{:>5}{:>6}{:>6}{:>7} {letters}",
            row.tracer,
            row.pairs.len(),
            interval(summary.payload_wall),
            interval(summary.all_cpu),
            three(summary.payload_cpu.median),
            two(100.0 * summary.tracer_cpu.median),
            optional(summary.tracer_peak_bytes, 1e6),
            if nothing { "-".to_owned() } else { two(summary.output_bytes.median / 1e6) },
            optional(summary.bytes_per_record, 1.0),
            lost.map_or("-".to_owned(), |lost| lost.to_string()),
        );
        writeln_to(text, &line);
        if let (Some(following), Some(loading)) = (summary.following_cpu, summary.loading_ns) {
            let (following, loading) = (100.0 * following.median, loading.median / 1e9);
            let line =
                format!("of its own, loading took {loading:.2} s; the rest is {following:.2} %");
            writeln_to(text, &format!("  {:<16} {line}", ""));
        }
        let differences = seen.counts.differences(declared);
        if !differences.is_empty() {
            writeln_to(text, &format!("  {:<16} saw {}", "", differences.join(", ")));
        }
    }
    if let Some(reason) = &row.stopped {
        writeln_to(text, &format!("  {:<16} {reason}", row.tracer));
    }
}

/// Writing to a string cannot fail.
fn writeln_to(text: &mut String, line: &str) {
    let _ = writeln!(text, "{}", line.trim_end());
}

fn interval(estimate: Estimate) -> String {
    if estimate.n == 1 {
        return three(estimate.median);
    }
    format!("{} [{} {}]", three(estimate.median), three(estimate.low), three(estimate.high))
}

/// A number with three significant digits; near 1 one more, since there the excess over 1 matters.
fn three(value: f64) -> String {
    match value {
        value if (0.5..1.9995).contains(&value) => format!("{value:.3}"),
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// A number with lower precision.
fn two(value: f64) -> String {
    match value {
        value if value < 9.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::results::{Machine, summarise, tests::pair};
    use super::*;

    fn results() -> Results {
        let pairs = vec![pair(2), pair(3), pair(133)];
        let mut lossy = pairs.clone();
        lossy[1].traced.seen.counts.exits = Some(1);
        lossy[1].traced.seen.lost = Some(1_000_000);
        let row = |tracer: &str, pairs: Vec<_>, stopped: Option<&str>| Row {
            tracer: tracer.to_owned(),
            summary: summarise(&pairs),
            pairs,
            stopped: stopped.map(str::to_owned),
        };
        let declared = Counts { failed_opens: None, ..Counts::all(2, 2, 2, 0) };
        Results {
            machine: Machine {
                kernel: "Linux 6.18".to_owned(),
                processor: "some".to_owned(),
                cpus: 2,
                date: "today".to_owned(),
                tracers: BTreeMap::new(),
            },
            left_out: BTreeMap::from([("prmon".to_owned(), "prmon is not installed".to_owned())]),
            payloads: vec![PayloadResults {
                name: "spawn".to_owned(),
                command: "spawn 2000 /bin/true".to_owned(),
                declared,
                rows: vec![
                    row("proctrace", pairs, None),
                    row("strace seccomp", lossy, Some("timed out after 30 s")),
                ],
            }],
        }
    }

    #[test]
    fn tables_fit_and_say_what_went_wrong() {
        let text = render(&results());
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
        assert!(text.contains("spawn: spawn 2000 /bin/true\n"), "{text}");
        assert!(text.contains("3.00 [2.00 133]"), "{text}");
        assert!(text.contains("0 fxe?\n"), "{text}");
        assert!(text.contains("1000000 fx!?\n"), "{text}");
        assert!(text.contains("saw 1 of 2 exits\n"), "{text}");
        assert!(text.contains("timed out after 30 s\n"), "{text}");
        assert!(text.contains("prmon is not installed\n"), "{text}");
    }

    #[test]
    fn numbers_have_few_digits() {
        let written = [0.8349, 1.0, 2.0, 9.996, 22.93, 99.96, 132.88].map(three);
        assert_eq!(written, ["0.835", "1.000", "2.00", "10.0", "22.9", "100", "133"]);
        assert_eq!([0.04, 9.96, 412.3].map(two), ["0.0", "10", "412"]);
    }
}
