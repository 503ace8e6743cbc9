//! Tables of analysis cost: medians by size, and the exponent of their growth.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::replicate::Replica;

/// How a program's run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// It was killed, and the values are those up to then.
    OutOfTime,
}

/// One run of one program.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) outcome: Outcome,
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
    pub(super) runs: Vec<Run>,
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

    fn median(&self, of: impl Fn(&Run) -> f64) -> f64 {
        let mut values: Vec<f64> = self.runs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }
}

/// One trace and its measurements.
#[derive(Debug, Clone)]
pub(super) struct Size {
    pub(super) replica: Replica,
    pub(super) measured: Vec<Measured>,
}

pub(super) const HEADING: &str = "   records      trace  program            wall      CPU  records/s  peak RSS  B/record     SVG";

/// A line per program.
pub(super) fn rows(size: &Size) -> String {
    let mut out = String::new();
    let records = size.replica.records as f64;
    for (at, measured) in size.measured.iter().enumerate() {
        // Only in the first line.
        let (count, trace) = if at == 0 {
            (size.replica.records.to_string(), megabytes(size.replica.trace_bytes as f64))
        } else {
            (String::new(), String::new())
        };
        let (wall_s, rss_bytes) = (measured.wall_s(), measured.rss_bytes());
        let svg = measured.runs[0].output_bytes.map_or_else(String::new, |b| megabytes(b as f64));
        let late = measured.runs.iter().any(|run| run.outcome == Outcome::OutOfTime);
        let line = format!(
            "{count:>10} {trace:>10}  {:<14} {wall_s:>6.2} s {:>6.2} s {:>8.2} M {:>9} {:>9.0} {svg:>7}{}",
            measured.name,
            measured.cpu_s(),
            records / wall_s / 1e6,
            megabytes(rss_bytes),
            rss_bytes / records,
            if late { "  out of time" } else { "" },
        );
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Growth from each size to the next: the exponent of time and memory over the number of records,
/// and the cost per additional record.
pub(super) fn growth(sizes: &[Size]) -> String {
    let mut out = String::new();
    for pair in sizes.windows(2) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "\nfrom {} to {} records: time and memory grow as its power of\n{:<16}{:>8}{:>8}{:>10}{:>23}",
            pair[0].replica.records,
            pair[1].replica.records,
            "program",
            "wall",
            "CPU",
            "memory",
            "B per further record"
        );
        for (small, large) in pair[0].measured.iter().zip(&pair[1].measured) {
            let grown = Growth::between(&pair[0], small, &pair[1], large);
            let _ = writeln!(
                out,
                "{:<16}{:>8.2}{:>8.2}{:>10.2}{:>23.0}",
                small.name, grown.wall, grown.cpu, grown.rss, grown.further_bytes
            );
        }
    }
    out
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

fn megabytes(bytes: f64) -> String {
    let megabytes = bytes / 1e6;
    if megabytes < 10.0 { format!("{megabytes:.1} MB") } else { format!("{megabytes:.0} MB") }
}

/// All values.
pub(super) fn json(sizes: &[Size]) -> Value {
    let run = |run: &Run| {
        json!({
            "done": run.outcome == Outcome::Done,
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
        let run = |wall_s| Run {
            outcome: Outcome::Done,
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
        let text = [HEADING, &rows(&sizes[0]), &rows(&sizes[1]), &growth(&sizes)].join("\n");
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}
