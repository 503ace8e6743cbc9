//! The rows that prmon would have written about a recording: the same columns, from exact records.

use proctrace_findings::{Prmon, PrmonColumn, PrmonMachine, Unit};
use proctrace_wire::Quantity;
use proctrace_wire::Quantity::{Cpu, Forks, Io, Memory, Samples, Split};

use proctrace_overview::passes::with_readings;
use proctrace_recording::Recording;
use proctrace_recording::bin_series::BinSeries;

const SECOND_NS: u64 = 1_000_000_000;
/// Most rows of a recording without memory readings.
const ROWS_MAX: u64 = 20_000;

/// Sums over all processes at one moment.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    time_ns: u64,
    rss_bytes: u64,
    pss_bytes: u64,
    swap_bytes: u64,
    vmem_bytes: u64,
}

/// The recording as prmon would have written it: a row for each pass of memory readings, at most one a
/// second; without such readings a row each second. Columns that are not known are left out.
pub fn prmon(recording: &Recording) -> Prmon {
    let all = if recording.knows().all(&[Memory]) { passes(recording) } else { seconds(recording) };
    let header = recording.header();
    let unix_s = |row: &Row| {
        let since_ns = row.time_ns.saturating_sub(header.started_ns);
        header.started_unix_ns.saturating_add(since_ns) / SECOND_NS
    };
    // Of several in a second the last one, because the first column is a key.
    let mut rows: Vec<Row> = Vec::with_capacity(all.len());
    for row in &all {
        match rows.last_mut() {
            Some(last) if unix_s(last) >= unix_s(row) => *last = *row,
            _ => rows.push(*row),
        }
    }
    let made = Columns { recording, all: &all, rows: &rows };
    let mut columns = vec![PrmonColumn {
        name: "Time",
        values: rows.iter().map(unix_s).collect(),
        max: None,
        average: None,
        unit: Unit::Count,
    }];
    columns.push(made.wall());
    columns.extend(made.memory());
    columns.extend(made.transferred());
    columns.extend(made.cpu());
    columns.extend(made.alive());
    let processor = &header.processor;
    let machine = PrmonMachine {
        model: processor.model.clone(),
        cpus: processor.cpus,
        sockets: processor.sockets,
        cores_per_socket: processor.cores_per_socket,
        threads_per_core: processor.threads_per_core,
        memory_bytes: header.memory_bytes,
    };
    Prmon { columns, machine, recorder: header.recorder.clone() }
}

fn passes(recording: &Recording) -> Vec<Row> {
    let row = |(pass, readings): (proctrace_overview::passes::Pass, Vec<_>)| {
        let sum = |of: fn(&proctrace_wire::layout::Memory) -> u64| {
            let readings: &Vec<&proctrace_recording::process::MemoryReading> = &readings;
            readings.iter().fold(0, |sum: u64, reading| sum.saturating_add(of(&reading.record)))
        };
        Row {
            time_ns: pass.time_ns,
            rss_bytes: pass.rss_bytes,
            pss_bytes: pass.pss_bytes,
            swap_bytes: sum(|memory| memory.swap_bytes),
            vmem_bytes: sum(|memory| memory.vmem_bytes),
        }
    };
    with_readings(recording, |_| true).into_iter().map(row).collect()
}

fn seconds(recording: &Recording) -> Vec<Row> {
    let length_ns = recording.recorded_ns();
    let step_ns = SECOND_NS.max(length_ns / ROWS_MAX);
    let time_ns = |at: u64| recording.first_ns().saturating_add(at.saturating_mul(step_ns));
    let row = |time_ns| Row { time_ns, ..Row::default() };
    let ends = std::iter::once(row(recording.last_ns()));
    (0..length_ns / step_ns).map(|at| row(time_ns(at))).chain(ends).collect()
}

struct Columns<'a> {
    recording: &'a Recording,
    /// All moments.
    all: &'a [Row],
    /// Rows that are written.
    rows: &'a [Row],
}

impl Columns<'_> {
    fn knows(&self, needs: &[Quantity]) -> bool {
        self.recording.knows().all(needs)
    }

    fn wall(&self) -> PrmonColumn {
        let (first_ns, all_ns) = (self.recording.first_ns(), self.recording.recorded_ns());
        let values = self.rows.iter().map(|row| row.time_ns.saturating_sub(first_ns) / SECOND_NS);
        sum_of("wtime", values.collect(), all_ns / SECOND_NS, None, Unit::Nanoseconds)
    }

    fn memory(&self) -> Vec<PrmonColumn> {
        if !self.knows(&[Memory]) {
            return Vec::new();
        }
        let column = |name, of: fn(&Row) -> u64| {
            let kib = |row: &Row| of(row) / 1024;
            self.level(name, kib, Unit::Bytes)
        };
        let mut columns = vec![
            column("pss", |row| row.pss_bytes),
            column("rss", |row| row.rss_bytes),
            column("swap", |row| row.swap_bytes),
        ];
        // Older recordings do not have it, and no process is without.
        if self.all.iter().any(|row| row.vmem_bytes > 0) {
            columns.push(column("vmem", |row| row.vmem_bytes));
        }
        columns
    }

    fn transferred(&self) -> Vec<PrmonColumn> {
        if !self.recording.knows().sums(&[Forks, Io, Samples]) {
            return Vec::new();
        }
        let used = &self.recording.totals().used;
        let seconds = self.recording.recorded_ns() as f64 / SECOND_NS as f64;
        [
            ("rchar", BinSeries::CallReadBytes, used.rchar),
            ("read_bytes", BinSeries::ReadBytes, used.read_bytes),
            ("wchar", BinSeries::CallWriteBytes, used.wchar),
            ("write_bytes", BinSeries::WriteBytes, used.write_bytes),
        ]
        .into_iter()
        .map(|(name, binned, total)| {
            let values = self.sums(binned, 1.0, total);
            let rate = (seconds > 0.0).then(|| total as f64 / seconds);
            sum_of(name, values, total, rate, Unit::Bytes)
        })
        .collect()
    }

    fn cpu(&self) -> Vec<PrmonColumn> {
        if !self.recording.knows().sums(&[Forks, Cpu, Split, Samples]) {
            return Vec::new();
        }
        let cpu: proctrace_replay::CpuTime =
            self.recording.processes().iter().map(|process| process.cpu).sum();
        [("stime", BinSeries::System, cpu.system_ns), ("utime", BinSeries::User, cpu.user_ns)]
            .into_iter()
            .map(|(name, binned, total_ns)| {
                let total = total_ns / SECOND_NS;
                let values = self.sums(binned, SECOND_NS as f64, total);
                sum_of(name, values, total, None, Unit::Nanoseconds)
            })
            .collect()
    }

    /// Live processes, and threads in addition to the first of each.
    fn alive(&self) -> Vec<PrmonColumn> {
        if !self.knows(&[Forks]) {
            return Vec::new();
        }
        let processes = self.recording.processes().iter();
        let processes = Alive::of(processes.map(|process| (process.born_ns, process.ended_ns())));
        let threads = self.recording.tasks().iter().filter(|task| task.is_thread);
        let threads = Alive::of(threads.map(|task| (task.born_ns, task.ended_ns())));
        vec![
            self.level("nprocs", |row| processes.at(row.time_ns), Unit::Count),
            self.level("nthreads", |row| threads.at(row.time_ns), Unit::Count),
        ]
    }

    /// A quantity that rises and falls.
    fn level(&self, name: &'static str, of: impl Fn(&Row) -> u64, unit: Unit) -> PrmonColumn {
        let all = || self.all.iter().map(&of);
        let n = self.all.len() as f64;
        PrmonColumn {
            name,
            values: self.rows.iter().map(&of).collect(),
            max: Some(all().max().unwrap_or(0)),
            average: Some(all().map(|value| value as f64).sum::<f64>() / n.max(1.0)),
            unit,
        }
    }

    /// The sum of a quantity from the start to each row, in this unit; spread evenly within a bin.
    fn sums(&self, quantity: BinSeries, unit: f64, most: u64) -> Vec<u64> {
        let bins = self.recording.bins();
        let values = bins.of(quantity);
        let mut sums = vec![0.0];
        for value in values {
            sums.push(sums[sums.len() - 1] + value);
        }
        let until = |row: &Row| {
            let since_ns = row.time_ns.saturating_sub(bins.start_ns);
            let width_ns = bins.width_ns.max(1);
            let bin = usize::try_from(since_ns / width_ns).unwrap_or(usize::MAX);
            let Some(value) = values.get(bin) else { return most };
            let part = (since_ns % width_ns) as f64 / width_ns as f64;
            // Sums of parts may be less than a whole number by a rounding error.
            let sum = (sums[bin] + value * part) / unit;
            ((sum + sum * 1e-13 + 1e-6) as u64).min(most)
        };
        self.rows.iter().map(until).collect()
    }
}

/// A quantity that only grows, with its value at the end.
fn sum_of(
    name: &'static str,
    values: Vec<u64>,
    total: u64,
    average: Option<f64>,
    unit: Unit,
) -> PrmonColumn {
    PrmonColumn { name, values, max: Some(total), average, unit }
}

/// Births and ends, in order of time.
struct Alive {
    births_ns: Vec<u64>,
    ends_ns: Vec<u64>,
}

impl Alive {
    fn of(lives: impl Iterator<Item = (u64, Option<u64>)> + Clone) -> Self {
        let mut births_ns: Vec<u64> = lives.clone().map(|(born_ns, _)| born_ns).collect();
        let mut ends_ns: Vec<u64> = lives.filter_map(|(_, ended_ns)| ended_ns).collect();
        births_ns.sort_unstable();
        ends_ns.sort_unstable();
        Self { births_ns, ends_ns }
    }

    fn at(&self, time_ns: u64) -> u64 {
        let until = |times: &[u64]| times.partition_point(|at_ns| *at_ns <= time_ns) as u64;
        until(&self.births_ns).saturating_sub(until(&self.ends_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MB, MS, S, Scene};

    fn column<'a>(prmon: &'a Prmon, name: &str) -> &'a PrmonColumn {
        prmon.columns.iter().find(|column| column.name == name).unwrap()
    }

    #[test]
    fn rows_are_passes_and_sums_end_with_the_totals() {
        let mut scene = Scene::new(2, 100 * MS);
        scene.header().started_unix_ns = 5_000 * S;
        scene.header().memory_interval_ns = Some(500 * MS);
        scene.fork(0, 1, 2).thread(0, 1, 3);
        // Two passes in the same second, and one later.
        for (at_ns, pss) in [(2 * S, 10), (2 * S + 600 * MS, 30), (4 * S, 20)] {
            scene.memory(at_ns, 1, (40 * MB, pss * MB, MB));
            scene.memory(at_ns + MS, 2, (40 * MB, pss * MB, MB));
        }
        scene.exit_with(3 * S, 2, (2 * S, S), |exit| exit.rchar = 10_000);
        scene.exit(6 * S, 3, (0, 0)).exit(6 * S, 1, (0, 0));
        let prmon = prmon(&scene.load(None));
        assert_eq!(column(&prmon, "Time").values, [5_002, 5_004]);
        assert_eq!(column(&prmon, "wtime").values, [2, 4]);
        assert_eq!(column(&prmon, "wtime").max, Some(6));
        let pss = column(&prmon, "pss");
        assert_eq!((&pss.values[..], pss.max), (&[60 << 10, 40 << 10][..], Some(60 << 10)));
        assert_eq!(pss.average, Some(f64::from(120 << 10) / 3.0));
        assert_eq!(column(&prmon, "nprocs").values, [2, 1]);
        assert_eq!(column(&prmon, "nthreads").values, [1, 1]);
        assert_eq!(column(&prmon, "utime").max, Some(2));
        assert_eq!(column(&prmon, "stime").values[1], 1);
        let rchar = column(&prmon, "rchar");
        assert_eq!((rchar.max, rchar.average), (Some(10_000), Some(10_000.0 / 6.0)));
        assert!(rchar.values.is_sorted() && rchar.values[1] == 10_000, "{rchar:?}");
        // Scenes have none.
        assert!(prmon.columns.iter().all(|column| column.name != "vmem"));
        assert!(prmon.columns.iter().all(|column| column.values.len() == 2));
    }

    #[test]
    fn without_memory_there_is_a_row_each_second() {
        let mut scene = Scene::new(2, 100 * MS);
        scene.exit(5 * S / 2, 1, (S, 0));
        let prmon = prmon(&scene.load(None));
        assert_eq!(column(&prmon, "wtime").values, [0, 1, 2]);
        assert!(prmon.columns.iter().all(|column| column.name != "pss"));
    }
}
