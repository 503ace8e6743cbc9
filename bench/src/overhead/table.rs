//! The results as tables of at most 100 columns, one per payload.

use proctrace_findings::Table;
use proctrace_report::{Style, table_text};
use proctrace_stats::{FEWEST_FOR_MEDIAN_INTERVAL, MedianInterval, median_interval};

use super::counts::Counts;
use super::results::{PayloadResults, Results, Row};

/// All tables, with the notes needed to interpret them.
pub(super) fn render(results: &Results) -> String {
    let machine = &results.machine;
    let mut text = format!(
        "{}, {} CPUs ({}), {}\n\
        Multiples of the bare run: median over n pairs of runs, with its interval of at least 95 % by order\n\
        statistics (n < {FEWEST_FOR_MEDIAN_INTERVAL}: range). CPU: payload and tracer, including its start and stop; +pay: payload\n\
        only; own: tracer, as % of the payload; mem: peak memory of the tracer, MB; out: its output, MB;\n\
        B/r: bytes per record; seen: forks, execs, exits, failed opens (! missing or too many, - not\n\
        reported by the tool, ? not declared).\n",
        machine.kernel, machine.cpus, machine.processor, machine.date
    );
    let style = Style { width: 100, lines: 24, rows: usize::MAX, colour: false };
    for payload in &results.payloads {
        text.push('\n');
        text.push_str(&table_text(&table(payload), style));
    }
    if !results.left_out.is_empty() {
        let (tracers, reasons): (Vec<_>, Vec<_>) = results.left_out.clone().into_iter().unzip();
        let table = Table::new("left_out", "Not compared")
            .text("tracer", "tracer", tracers)
            .text("reason", "reason", reasons);
        text.push('\n');
        text.push_str(&table_text(&table, style));
    }
    text
}

/// The tracers of a payload.
fn table(payload: &PayloadResults) -> Table {
    let rows: Vec<_> =
        payload.rows.iter().filter_map(|row| Some((row, row.summary.as_ref()?))).collect();
    let declared = payload.declared;
    let mut table = Table::new("payload", format!("{}: {}", payload.name, payload.command))
        .text("tracer", "", rows.iter().map(|(row, _)| row.tracer.clone()))
        .figures("pairs", "n", rows.iter().map(|(row, _)| row.pairs.len().to_string()))
        .figures("wall", "wall", rows.iter().map(|(_, s)| interval(s.payload_wall)))
        .figures("all_cpu", "CPU", rows.iter().map(|(_, s)| interval(s.all_cpu)))
        .figures("payload_cpu", "+pay", rows.iter().map(|(_, s)| three(s.payload_cpu.median)))
        .figures("own", "own %", rows.iter().map(|(_, s)| two(100.0 * s.tracer_cpu.median)))
        .figures("peak", "mem", rows.iter().map(|(_, s)| optional(s.tracer_peak_bytes, 1e6)))
        .figures(
            "output",
            "out",
            rows.iter().map(|(_, s)| match s.output_bytes.median {
                0.0 => "-".to_owned(),
                bytes => two(bytes / 1e6),
            }),
        )
        .figures(
            "bytes_per_record",
            "B/r",
            rows.iter().map(|(_, s)| optional(s.bytes_per_record, 1.0)),
        )
        .figures(
            "lost",
            "lost",
            rows.iter().map(|(row, _)| lost(row).map_or("-".to_owned(), |lost| lost.to_string())),
        )
        .text("seen", "seen", rows.iter().map(|(row, _)| counts(row, declared).letters(declared)))
        .note(bare(payload));
    for row in &payload.rows {
        for remark in remarks(row, declared) {
            table = table.note(format!("{} {remark}", row.tracer));
        }
    }
    table
}

/// The bare runs, and the events that the payload declares.
fn bare(payload: &PayloadResults) -> String {
    let bare = payload.rows.iter().flat_map(|row| &row.pairs).map(|pair| &pair.bare);
    let (walls, cpus): (Vec<f64>, Vec<f64>) =
        bare.map(|bare| (bare.payload_wall_ns as f64, bare.payload_cpu_ns as f64)).unzip();
    let seconds = |values: &[f64]| match median_interval(values) {
        Some(estimate) => format!("{} s", three(estimate.median / 1e9)),
        None => "-".to_owned(),
    };
    let declared = payload.declared.kinds().map(|(_, name, count)| match count {
        Some(count) => format!("{count} {name}"),
        None => format!("? {name}"),
    });
    format!("bare {}, CPU {}; {}", seconds(&walls), seconds(&cpus), declared.join(", "))
}

/// Counts that a tracer saw: in the first round where it was wrong, or in the last.
fn counts(row: &Row, declared: Counts) -> Counts {
    let mut seen = row.pairs.iter().map(|pair| pair.traced.seen.counts);
    let wrong = seen.clone().find(|counts| !counts.differences(declared).is_empty());
    wrong.or_else(|| seen.next_back()).unwrap_or_default()
}

fn lost(row: &Row) -> Option<u64> {
    row.pairs.iter().map(|pair| pair.traced.seen.lost).max().flatten()
}

fn remarks(row: &Row, declared: Counts) -> Vec<String> {
    let mut remarks = Vec::new();
    let parts = row.summary.as_ref().and_then(|s| Some((s.following_cpu?, s.loading_ns?)));
    if let Some((following, loading)) = parts {
        let (following, loading) = (100.0 * following.median, loading.median / 1e9);
        remarks.push(format!(
            "used {loading:.2} s of its own CPU time for loading; the rest is {following:.2} %"
        ));
    }
    let differences = counts(row, declared).differences(declared);
    if row.summary.is_some() && !differences.is_empty() {
        remarks.push(format!("saw {}", differences.join(", ")));
    }
    remarks.extend(row.stopped.clone());
    remarks
}

fn optional(estimate: Option<MedianInterval>, unit: f64) -> String {
    estimate.map_or("-".to_owned(), |estimate| two(estimate.median / unit))
}

fn interval(estimate: MedianInterval) -> String {
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
        assert!(text.contains("0  fxe?\n"), "{text}");
        assert!(text.contains("1000000  fx!?\n"), "{text}");
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
