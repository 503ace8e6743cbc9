//! Memory of a pool over time: how much is shared, and the cost of un-sharing at the end.

use proctrace_findings::{Axis, Chart, ChartBody, Lines, Series, Table, Unit, count};
use proctrace_overview::passes::{Pass, passes};
use proctrace_recording::Recording;
use proctrace_wire::Quantity;

use crate::sections::pool::moments;
use crate::sections::pool::phases::Moments;
use crate::sections::pool::tree::{Part, Tree};

/// The end of the loop in which finalisation may already have begun: a worker un-shares its pages
/// before its exit, not at it. A fraction of the loop, and at least two readings.
const LOOP_END_PERCENT: u64 = 10;

/// Memory readings of a pool over time: all of it, and only its workers.
pub(crate) struct MemoryReadings {
    all: Vec<Pass>,
    workers: Vec<Pass>,
    interval_ns: u64,
}

impl MemoryReadings {
    /// `None` if the recording has no memory readings.
    pub(crate) fn of(recording: &Recording, tree: &Tree) -> Option<Self> {
        let interval_ns = recording.header().memory_interval_ns?;
        let all = passes(recording, |process| tree.part(process).is_some());
        let workers = passes(recording, |process| tree.part(process) == Some(Part::Worker));
        (!all.is_empty()).then_some(Self { all, workers, interval_ns })
    }

    /// Passes in an interval, and those of the workers.
    fn within(&self, begin_ns: u64, end_ns: u64) -> (Vec<&Pass>, Vec<&Pass>) {
        let of = |passes: &'_ [Pass]| -> Vec<usize> {
            (0..passes.len())
                .filter(|at| (begin_ns..end_ns).contains(&passes[*at].time_ns))
                .collect()
        };
        (
            of(&self.all).into_iter().map(|at| &self.all[at]).collect(),
            of(&self.workers).into_iter().map(|at| &self.workers[at]).collect(),
        )
    }
}

/// A part of the pool's lifetime, represented by one of its passes.
struct Row {
    what: &'static str,
    looks: u64,
    pass: Pass,
    shared_percent: Option<f64>,
}

/// The pass with the median PSS.
fn typical(passes: &[&Pass]) -> Option<Pass> {
    let mut sorted: Vec<&Pass> = passes.to_vec();
    sorted.sort_by_key(|pass| pass.pss_bytes);
    sorted.get(sorted.len().checked_sub(1)? / 2).map(|pass| **pass)
}

fn largest(passes: &[&Pass]) -> Option<Pass> {
    passes.iter().max_by_key(|pass| pass.pss_bytes).map(|pass| **pass)
}

fn last(passes: &[&Pass]) -> Option<Pass> {
    passes.last().map(|pass| **pass)
}

/// The fraction of resident memory that is shared with other processes.
fn shared_percent(pass: &Pass) -> Option<f64> {
    (pass.rss_bytes > 0)
        .then(|| 100.0 * (1.0 - pass.uss_bytes.min(pass.rss_bytes) as f64 / pass.rss_bytes as f64))
}

fn rows(readings: &MemoryReadings, moments: &Moments) -> Vec<Row> {
    let loop_ns = moments.first_exit_ns - moments.loop_begin_ns;
    let margin_ns = (loop_ns / 100 * LOOP_END_PERCENT).max(readings.interval_ns.saturating_mul(2));
    let calm_end_ns = moments.first_exit_ns.saturating_sub(margin_ns).max(moments.loop_begin_ns);
    let mut rows = Vec::new();
    let mut add = |what, begin_ns, end_ns, choose: fn(&[&Pass]) -> Option<Pass>| {
        let (all, workers) = readings.within(begin_ns, end_ns);
        if let Some(pass) = choose(&all) {
            let shared_percent = choose(&workers).as_ref().and_then(shared_percent);
            rows.push(Row { what, looks: all.len() as u64, pass, shared_percent });
        }
    };
    add("before the first fork", moments.begin_ns, moments.first_fork_ns, largest);
    add("loop, median", moments.loop_begin_ns, calm_end_ns, typical);
    add("loop, last reading", moments.loop_begin_ns, calm_end_ns, last);
    add("workers finalise", calm_end_ns, moments.last_exit_ns, largest);
    add("after the last worker", moments.last_exit_ns, u64::MAX, largest);
    rows
}

/// The pool's memory in each phase.
pub(crate) fn table(readings: &MemoryReadings, moments: &Moments) -> Table {
    let rows = rows(readings, moments);
    let pss = |what: &str| rows.iter().find(|row| row.what == what).map(|row| row.pass.pss_bytes);
    let mut table = Table::new("pool_memory", "Memory of the pool")
        .rows_need(&[Quantity::Forks, Quantity::Execs, Quantity::Memory])
        .text("phase", "when", rows.iter().map(|row| row.what))
        .whole("looks", "readings", Unit::Count, rows.iter().map(|row| row.looks))
        .whole("processes", "processes", Unit::Count, rows.iter().map(|row| row.pass.processes))
        .whole("pss_bytes", "PSS", Unit::Bytes, rows.iter().map(|row| row.pass.pss_bytes))
        .whole("rss_bytes", "RSS", Unit::Bytes, rows.iter().map(|row| row.pass.rss_bytes))
        .whole("uss_bytes", "USS", Unit::Bytes, rows.iter().map(|row| row.pass.uss_bytes))
        .real("shared_percent", "shared", Unit::Percent, rows.iter().map(|row| row.shared_percent))
        .note(
            "Sums over the pool at one reading: the one with the largest PSS; for the loop, the \
             one with the median PSS, and the last. shared: 1 - USS/RSS of the workers.",
        );
    if let (Some(loop_bytes), Some(end_bytes)) = (pss("loop, median"), pss("workers finalise"))
        && loop_bytes > 0
    {
        let ratio = end_bytes as f64 / loop_bytes as f64;
        table = table.note(format!(
            "While workers finalise, the pool takes {ratio:.2} times the median PSS of the loop. \
             This phase starts {LOOP_END_PERCENT} % of the loop, or two readings if that is \
             longer, before the first exit."
        ));
    }
    table
}

/// PSS, RSS and USS over time, and the sharing among workers.
pub(crate) fn charts(recording: &Recording, readings: &MemoryReadings, at: &Moments) -> Vec<Chart> {
    let since = |pass: &Pass| pass.time_ns.saturating_sub(recording.first_ns()) as f64;
    let bytes = |name: &str, of: fn(&Pass) -> u64| Series {
        name: name.into(),
        values: readings.all.iter().map(|pass| Some(of(pass) as f64)).collect(),
    };
    let lines = |x: Vec<f64>, y_axis: Axis, series: Vec<Series>| {
        ChartBody::Lines(Lines {
            x_axis: Axis::linear("time", Unit::Nanoseconds),
            y_axis,
            x,
            series,
            stacked: false,
            points: false,
            marks: Vec::new(),
            moments: moments(recording, at),
        })
    };
    let mut charts = vec![
        Chart::new(
            "pool_memory",
            "Memory of the pool",
            lines(
                readings.all.iter().map(since).collect(),
                Axis::linear("memory", Unit::Bytes),
                vec![
                    bytes("PSS", |pass| pass.pss_bytes),
                    bytes("RSS", |pass| pass.rss_bytes),
                    bytes("USS", |pass| pass.uss_bytes),
                ],
            ),
        )
        .needs(&[Quantity::Forks, Quantity::Execs, Quantity::Memory])
        .note(format!(
            "n = {} readings of the parent, its workers and all processes they started.",
            count(readings.all.len() as u64)
        )),
    ];
    if !readings.workers.is_empty() {
        let shared = Series {
            name: "shared by workers".into(),
            values: readings.workers.iter().map(shared_percent).collect(),
        };
        let body = lines(
            readings.workers.iter().map(since).collect(),
            Axis::linear("share of RSS", Unit::Percent),
            vec![shared],
        );
        charts.push(
            Chart::new("pool_sharing", "Memory shared by workers", body)
                .needs(&[Quantity::Forks, Quantity::Execs, Quantity::Memory])
                .note(format!(
                    "1 - USS/RSS, n = {} readings of the workers.",
                    count(readings.workers.len() as u64)
                )),
        );
    }
    charts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::pool::find::pools;
    use crate::sections::pool::testing::{Tape, Used};
    use proctrace_overview::options::Options;

    const MB: u64 = 1_000_000;

    /// Two workers that share 80 % in the loop, and half of that at the end.
    #[test]
    fn sharing_and_un_sharing_by_hand() {
        let mut tape = Tape::new("athena");
        tape.memory_every(50);
        tape.memory(50, 1, (300 * MB, 300 * MB, 300 * MB));
        tape.fork(100, 1, 2).fork(110, 1, 3);
        for at_ms in [200, 400] {
            tape.memory(at_ms, 1, (300 * MB, 120 * MB, 10 * MB));
            tape.memory(at_ms + 1, 2, (100 * MB, 60 * MB, 20 * MB));
            tape.memory(at_ms + 2, 3, (100 * MB, 60 * MB, 20 * MB));
        }
        tape.memory(960, 1, (300 * MB, 150 * MB, 10 * MB));
        tape.memory(961, 2, (100 * MB, 90 * MB, 60 * MB));
        tape.memory(962, 3, (100 * MB, 90 * MB, 60 * MB));
        tape.exit(980, 2, Used::ms(1)).exit(990, 3, Used::ms(1));
        let recording = tape.exit(1000, 1, Used::ms(1)).recording();
        let pool = &pools(&recording, &Options::default(), 2)[0];
        let moments = Moments::of(&recording, pool);
        let readings = MemoryReadings::of(&recording, &Tree::of(&recording, pool)).unwrap();
        let rows: Vec<_> = rows(&readings, &moments)
            .iter()
            .map(|row| {
                let shared = row.shared_percent.map(f64::round);
                (row.what, row.looks, row.pass.pss_bytes / MB, shared)
            })
            .collect();
        assert_eq!(
            rows,
            [
                ("before the first fork", 1, 300, None),
                ("loop, median", 2, 240, Some(80.0)),
                ("loop, last reading", 2, 240, Some(80.0)),
                ("workers finalise", 1, 330, Some(40.0)),
            ]
        );
        let table = table(&readings, &moments);
        assert!(table.notes[1].contains("1.38 times"), "{:?}", table.notes);
        assert_eq!(charts(&recording, &readings, &moments).len(), 2);
    }

    #[test]
    fn without_looks_there_is_nothing_to_say() {
        let mut tape = Tape::new("athena");
        tape.fork(100, 1, 2).fork(110, 1, 3).exit(900, 2, Used::ms(1)).exit(900, 3, Used::ms(1));
        let recording = tape.recording();
        let pool = &pools(&recording, &Options::default(), 2)[0];
        assert!(MemoryReadings::of(&recording, &Tree::of(&recording, pool)).is_none());
    }
}
