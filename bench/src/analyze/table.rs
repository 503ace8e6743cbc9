//! Tables of analysis cost: medians by size, and the exponent of their growth.

use proctrace_findings::Table;
use proctrace_report::number::{bytes, count};
use proctrace_report::{Style, table_text};
use proctrace_stats::median;
use serde_json::{Value, json};

use super::replicate::Replica;

/// End of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunEnd {
    Done,
    /// It was killed, and the values are those up to then.
    OutOfTime,
}

/// One run of one program, measured.
#[derive(Debug, Clone)]
pub(super) struct Measurement {
    pub(super) end: RunEnd,
    pub(super) wall_s: f64,
    pub(super) user_s: f64,
    pub(super) system_s: f64,
    pub(super) rss_bytes: u64,
    pub(super) faults_major: u64,
    /// Size of its output file, if there is one.
    pub(super) output_bytes: Option<u64>,
}

/// All runs of one program on one trace.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub(super) name: &'static str,
    pub(super) runs: Vec<Measurement>,
}

impl Measured {
    pub(super) fn wall_s(&self) -> f64 {
        self.median(|run| run.wall_s)
    }

    fn cpu_s(&self) -> f64 {
        self.median(|run| run.user_s + run.system_s)
    }

    fn rss_bytes(&self) -> f64 {
        self.median(|run| run.rss_bytes as f64)
    }

    fn median(&self, of: impl Fn(&Measurement) -> f64) -> f64 {
        median(&self.runs.iter().map(of).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    }
}

/// One trace and its measurements.
#[derive(Debug, Clone)]
pub(super) struct Size {
    pub(super) replica: Replica,
    pub(super) measured: Vec<Measured>,
}

const STYLE: Style = Style { width: 100, lines: 24, rows: usize::MAX, colour: false };

/// The programs on one trace.
pub(super) fn rows(size: &Size) -> String {
    let replica = &size.replica;
    let records = replica.records as f64;
    let measured = || size.measured.iter();
    let title = format!("{} records, {}", count(replica.records), bytes(replica.trace_bytes));
    let svg = |m: &Measured| m.runs[0].output_bytes.map_or_else(String::new, bytes);
    let late = |m: &Measured| m.runs.iter().any(|run| run.end == RunEnd::OutOfTime);
    let table = Table::new("programs", title)
        .text("program", "", measured().map(|m| m.name))
        .figures("wall", "wall", measured().map(|m| format!("{:.2} s", m.wall_s())))
        .figures("cpu", "CPU", measured().map(|m| format!("{:.2} s", m.cpu_s())))
        .figures(
            "rate",
            "records/s",
            measured().map(|m| format!("{:.2} M", records / m.wall_s() / 1e6)),
        )
        .figures("rss", "peak RSS", measured().map(|m| bytes(m.rss_bytes() as u64)))
        .figures(
            "per_record",
            "B/record",
            measured().map(|m| format!("{:.0}", m.rss_bytes() / records)),
        )
        .figures("svg", "SVG", measured().map(svg))
        .text("end", "", measured().map(|m| if late(m) { "timed out" } else { "" }));
    table_text(&table, STYLE) + "\n"
}

/// Growth from each size to the next: the exponent of time and memory over the number of records,
/// and the cost per additional record.
pub(super) fn growth(sizes: &[Size]) -> String {
    let tables = sizes.windows(2).map(|pair| {
        let grown: Vec<_> = (pair[0].measured.iter().zip(&pair[1].measured))
            .map(|(small, large)| Growth::between(&pair[0], small, &pair[1], large))
            .collect();
        let power = |of: fn(&Growth) -> f64| grown.iter().map(move |g| format!("{:.2}", of(g)));
        let (from, to) = (pair[0].replica.records, pair[1].replica.records);
        let title = format!("Exponents of growth from {} to {} records", count(from), count(to));
        let table = Table::new("growth", title)
            .text("program", "", pair[0].measured.iter().map(|m| m.name))
            .figures("wall", "wall", power(|g| g.wall))
            .figures("cpu", "CPU", power(|g| g.cpu))
            .figures("rss", "memory", power(|g| g.rss))
            .figures(
                "further",
                "bytes per additional record",
                grown.iter().map(|g| format!("{:.0}", g.further_bytes)),
            );
        table_text(&table, STYLE)
    });
    tables.collect::<Vec<_>>().join("\n")
}

struct Growth {
    wall: f64,
    cpu: f64,
    rss: f64,
    /// Bytes per additional record.
    further_bytes: f64,
}

impl Growth {
    fn between(a: &Size, small: &Measured, b: &Size, large: &Measured) -> Self {
        let (from, to) = (a.replica.records as f64, b.replica.records as f64);
        let power = |small: f64, large: f64| exponent((from, small), (to, large));
        Self {
            wall: power(small.wall_s(), large.wall_s()),
            cpu: power(small.cpu_s(), large.cpu_s()),
            rss: power(small.rss_bytes(), large.rss_bytes()),
            further_bytes: (large.rss_bytes() - small.rss_bytes()) / (to - from),
        }
    }
}

/// The exponent k of y ~ x^k through two points: 1 is linear.
fn exponent(from: (f64, f64), to: (f64, f64)) -> f64 {
    (to.1 / from.1).ln() / (to.0 / from.0).ln()
}

/// All values.
pub(super) fn json(sizes: &[Size]) -> Value {
    let run = |run: &Measurement| {
        json!({
            "done": run.end == RunEnd::Done,
            "wall_s": run.wall_s,
            "user_s": run.user_s,
            "system_s": run.system_s,
            "rss_bytes": run.rss_bytes,
            "faults_major": run.faults_major,
            "output_bytes": run.output_bytes,
        })
    };
    let program = |size: &Size, measured: &Measured| {
        let records = size.replica.records as f64;
        json!({
            "name": measured.name,
            "wall_s": measured.wall_s(),
            "cpu_s": measured.cpu_s(),
            "records_per_s": records / measured.wall_s(),
            "rss_bytes": measured.rss_bytes(),
            "rss_bytes_per_record": measured.rss_bytes() / records,
            "rounds": measured.runs.iter().map(run).collect::<Vec<_>>(),
        })
    };
    let size = |size: &Size| {
        json!({
            "records": size.replica.records,
            "kinds": size.replica.kinds,
            "tasks": size.replica.tasks,
            "copies": size.replica.copies,
            "trace_bytes": size.replica.trace_bytes,
            "programs": size.measured.iter().map(|m| program(size, m)).collect::<Vec<_>>(),
        })
    };
    let grown = |pair: &[Size]| {
        let programs = pair[0].measured.iter().zip(&pair[1].measured).map(|(small, large)| {
            let grown = Growth::between(&pair[0], small, &pair[1], large);
            json!({
                "name": small.name,
                "wall_exponent": grown.wall,
                "cpu_exponent": grown.cpu,
                "rss_exponent": grown.rss,
                "rss_bytes_per_further_record": grown.further_bytes,
            })
        });
        json!({
            "from_records": pair[0].replica.records,
            "to_records": pair[1].replica.records,
            "programs": programs.collect::<Vec<_>>(),
        })
    };
    json!({
        "sizes": sizes.iter().map(size).collect::<Vec<_>>(),
        "growth": sizes.windows(2).map(grown).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(records: u64, wall_s: f64, rss_bytes: u64) -> Size {
        let run = |wall_s| Measurement {
            end: RunEnd::Done,
            wall_s,
            user_s: wall_s / 2.0,
            system_s: 0.0,
            rss_bytes,
            faults_major: 0,
            output_bytes: Some(12_345_678),
        };
        Size {
            replica: Replica {
                copies: 1,
                records,
                tasks: 1,
                trace_bytes: 188_000_000,
                kinds: [("exit".to_owned(), records)].into(),
            },
            measured: vec![Measured {
                name: "report --gantt",
                // unsorted, with one outlier
                runs: vec![run(wall_s * 50.0), run(wall_s / 2.0), run(wall_s)],
            }],
        }
    }

    #[test]
    fn powers_are_found_again() {
        assert!((exponent((10.0, 3.0), (1000.0, 300.0)) - 1.0).abs() < 1e-12);
        assert!((exponent((10.0, 3.0), (1000.0, 30_000.0)) - 2.0).abs() < 1e-12);
        assert!((exponent((10.0, 3.0), (1000.0, 3.0))).abs() < 1e-12);
    }

    #[test]
    fn medians_leave_out_what_is_far_off() {
        let sizes = [size(1_000_000, 2.0, 50_000_000), size(10_000_000, 40.0, 410_000_000)];
        let json = json(&sizes);
        assert_eq!(json["sizes"][1]["programs"][0]["wall_s"], 40.0);
        assert_eq!(json["sizes"][1]["programs"][0]["records_per_s"], 250_000.0);
        let grown = &json["growth"][0]["programs"][0];
        assert!((grown["wall_exponent"].as_f64().unwrap() - 1.301).abs() < 1e-3, "{grown}");
        assert_eq!(grown["rss_bytes_per_further_record"], 40.0);
    }

    #[test]
    fn no_line_is_longer_than_100_columns() {
        let sizes = [size(1_000_000, 2.0, 5_000_000_000), size(10_000_000, 4000.0, 50_000_000_000)];
        let text = [rows(&sizes[0]), rows(&sizes[1]), growth(&sizes)].join("\n");
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}
