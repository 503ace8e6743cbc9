//! The serial fraction: wall time that no number of cores would shorten, and the speed-up of the
//! rest.

use proctrace_findings::{
    Axis, Chart, ChartBody, Lines, Mark, Series, Table, Unit, count, counted,
};
use proctrace_stats::wilson;
use proctrace_wire::Quantity;

use crate::shares::percent;
use crate::shares::slices::{SPILL, Slice};

/// Maximum cores of the projection.
const CORES_MAX: u32 = 128;
/// Part of the time in which tasks could run, in percent; if they wait for a CPU for more than
/// that, bins show how many CPUs were available, not how many the job could use.
const STARVED_PERCENT: f64 = 20.0;
/// Minimum samples with which a fraction is worth printing: of 20 the 95 % interval of a half is 30 to 70 %.
const LOOKS_MIN: u64 = 20;

/// The wall time in which at most one CPU was used, or could have been used, and the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Serial {
    serial_ns: f64,
    parallel_ns: f64,
    /// CPU time outside the serial part.
    parallel_cpu_ns: f64,
    /// Number of bins or samples.
    n: u64,
}

impl Serial {
    /// Parts by CPU time used: the result depends on how many CPUs were available.
    pub(crate) fn by_cpu(slices: &[Slice]) -> Self {
        let mut serial = Self { n: slices.len() as u64, ..Self::default() };
        for slice in slices {
            if slice.cpu_ns <= slice.wall_ns * SPILL {
                serial.serial_ns += slice.wall_ns;
            } else {
                serial.parallel_ns += slice.wall_ns;
                serial.parallel_cpu_ns += slice.cpu_ns;
            }
        }
        serial
    }

    /// Parts by the tasks that demanded a CPU when sampled, running or not; `None` where there are
    /// too few samples. A single task uses at most one CPU, so any excess in its time is counted as
    /// parallel.
    pub(crate) fn by_looks(slices: &[Slice], looks: u64) -> Option<Self> {
        let mut serial = Self { n: looks, ..Self::default() };
        for slice in slices {
            let demand = slice.demand.filter(|_| looks >= LOOKS_MIN)?;
            serial.serial_ns += slice.wall_ns * demand.serial;
            serial.parallel_ns += slice.wall_ns * (1.0 - demand.serial);
            serial.parallel_cpu_ns += (slice.cpu_ns - slice.wall_ns * demand.single).max(0.0);
        }
        Some(serial)
    }

    fn wall_ns(&self) -> f64 {
        self.serial_ns + self.parallel_ns
    }

    /// Wall time on a number of cores, if the parallel part were perfectly divisible.
    fn on_ns(&self, cores: u32) -> f64 {
        self.serial_ns + self.parallel_cpu_ns / f64::from(cores.max(1))
    }

    /// Amdahl's bound: the speed-up over one core with unlimited cores.
    fn bound(&self) -> Option<f64> {
        (self.serial_ns > 0.0).then(|| self.on_ns(1) / self.serial_ns)
    }

    /// The bound at both ends of the 95 % interval of the serial fraction, as if samples were
    /// independent.
    fn bounds(&self) -> (f64, f64) {
        let share = self.serial_ns / self.wall_ns();
        let (low, high) = wilson(share, self.n as f64).unwrap_or((0.0, 1.0));
        let bound = |share: f64| 1.0 + self.parallel_cpu_ns / (share * self.wall_ns());
        (bound(high), bound(low))
    }

    /// The speed-up of this run if its parallel part took no time.
    fn faster(&self) -> Option<f64> {
        (self.serial_ns > 0.0).then(|| self.wall_ns() / self.serial_ns)
    }

    fn parallel_cpus(&self) -> Option<f64> {
        (self.parallel_ns > 0.0).then(|| self.parallel_cpu_ns / self.parallel_ns)
    }
}

fn starved(waiting_percent: Option<f64>) -> Option<f64> {
    waiting_percent.filter(|percent| *percent > STARVED_PERCENT)
}

pub(crate) fn serial_table(
    by_cpu: &Serial,
    by_looks: Option<&Serial>,
    waiting_percent: Option<f64>,
    bin_ns: u64,
) -> Table {
    let starved = starved(waiting_percent);
    let rows = [Some(by_cpu), by_looks];
    let table = Table::new("serial", "Serial time, which more cores do not shorten")
        .rows_need(&[Quantity::Forks, Quantity::Cpu, Quantity::Samples])
        .text("by", "by", ["CPU time of bins", "samples of tasks"])
        .whole("n", "n", Unit::Count, rows.map(|row| row.map(|serial| serial.n)))
        .real(
            "serial_ns",
            "serial",
            Unit::Nanoseconds,
            rows.map(|row| row.map(|serial| serial.serial_ns)),
        )
        .real(
            "serial_percent",
            "of wall",
            Unit::Percent,
            rows.map(|row| row.and_then(|serial| percent(serial.serial_ns, serial.wall_ns()))),
        )
        .real(
            "parallel_cpus",
            "rest CPUs",
            Unit::Cores,
            rows.map(|row| row.and_then(Serial::parallel_cpus)),
        )
        .real(
            "faster",
            "speed-up",
            Unit::Ratio,
            // Bins in which tasks waited for a CPU do not show what more CPUs would achieve.
            [by_cpu.faster().filter(|_| starved.is_none()), by_looks.and_then(Serial::faster)],
        )
        .needs(&[Quantity::RunDelay])
        .note(format!(
            "serial: wall time of the command in which at most one of its tasks uses a CPU, or \
             none: bins of {} s with at most {SPILL} CPUs in use, or samples with at most one task \
             running or runnable. rest CPUs: mean number in use in the remaining time. speed-up: \
             over this run, if the remaining time were zero.",
            bin_ns as f64 / 1e9
        ));
    match starved {
        Some(waiting) => table.note(format!(
            "Tasks waited for a CPU for {waiting:.0} % of the time they were running or runnable: \
             bins count as serial what would have run in parallel on more CPUs; samples do not."
        )),
        None => table,
    }
}

/// 1, 2, 4, ... and the requested number.
fn projected(cores: u32) -> Vec<u32> {
    let mut all: Vec<u32> = std::iter::successors(Some(1u32), |n| n.checked_mul(2))
        .take_while(|n| *n <= CORES_MAX)
        .collect();
    if let Err(at) = all.binary_search(&cores) {
        all.insert(at, cores);
    }
    all
}

/// The message shown instead of a projection.
fn too_few(looks: u64) -> String {
    format!(
        "No projection: n = {} samples of tasks; at least {LOOKS_MIN} are needed to estimate the \
         serial part. A smaller --interval gives more.",
        count(looks)
    )
}

/// `wanted`: the most tasks that any sample found running or runnable.
pub(crate) fn table(serial: Option<&Serial>, cores: u32, looks: u64, wanted: Option<u64>) -> Table {
    let rows = serial.map_or_else(Vec::new, |_| projected(cores));
    let serial_or_none = serial.copied().unwrap_or_default();
    let on_ns = |n: u32| serial_or_none.on_ns(n);
    let faster = |n: u32| (on_ns(n) > 0.0).then(|| on_ns(1) / on_ns(n));
    let table = Table::new("amdahl", "Projected speed-up with more cores, at best")
        .rows_need(&[Quantity::Forks, Quantity::Cpu, Quantity::Samples])
        .whole("cores", "cores", Unit::Cores, rows.iter().map(|n| u64::from(*n)))
        .real("wall_ns", "wall", Unit::Nanoseconds, rows.iter().map(|n| on_ns(*n)))
        .real("speedup", "speed-up", Unit::Ratio, rows.iter().map(|n| faster(*n)))
        .real(
            "efficiency_percent",
            "efficiency",
            Unit::Percent,
            rows.iter().map(|n| Some(100.0 * faster(*n)? / f64::from(*n))),
        )
        .needs(&[Quantity::Cpu]);
    let Some(serial) = serial else { return table.note(too_few(looks)) };
    let seen = wanted.map_or_else(String::new, |wanted| {
        format!(
            " No sample found more than {} running or runnable: beyond as many cores, it assumes that the rest could be \
             divided further than in this run.",
            counted(wanted, "task", "tasks")
        )
    });
    table
        .note(format!(
            "Amdahl (AFIPS 1967): the serial time, by n = {} samples of tasks, plus the CPU time \
             of the rest divided by the number of cores; an estimate. It assumes that the rest can \
             be divided without cost, and that the serial part keeps its length, waiting included. \
             speed-up: over one core. efficiency: speed-up / cores.{seen}",
            count(looks)
        ))
        .note(match serial.bound() {
            Some(bound) => {
                let (low, high) = serial.bounds();
                format!(
                    "With any number of cores, at most {bound:.1} times as fast as one: {low:.1} \
                     to {high:.1} by the 95 % interval of the serial share (Wilson), assuming \
                     independent samples."
                )
            }
            None => "All samples found two or more tasks running or runnable: no serial part is \
                     known."
                .into(),
        })
}

pub(crate) fn chart(serial: &Serial, cores: u32) -> Chart {
    let rows = projected(cores);
    let speedup = |n: &u32| {
        let on_ns = serial.on_ns(*n);
        (on_ns > 0.0).then(|| serial.on_ns(1) / on_ns)
    };
    let marks = serial
        .bound()
        .filter(|bound| *bound <= f64::from(CORES_MAX))
        .map(|bound| Mark { at: bound, name: "bound".into() });
    let body = Lines {
        x_axis: Axis::logarithmic("cores", Unit::Cores),
        y_axis: Axis::logarithmic("speed-up over one core", Unit::Ratio),
        x: rows.iter().map(|n| f64::from(*n)).collect(),
        series: vec![
            Series { name: "at best".into(), values: rows.iter().map(speedup).collect() },
            Series {
                name: "ideal".into(),
                values: rows.iter().map(|n| Some(f64::from(*n))).collect(),
            },
        ],
        stacked: false,
        points: true,
        marks: marks.into_iter().collect(),
        moments: vec![Mark { at: f64::from(cores), name: "requested".into() }],
    };
    Chart::new("amdahl", "Projected speed-up with more cores", ChartBody::Lines(body))
        .needs(&[Quantity::Forks, Quantity::Cpu, Quantity::Samples])
        .note(format!(
            "Serial and parallel part by n = {} samples of tasks in this run, assuming that the \
             work can be divided without cost.",
            count(serial.n)
        ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shares::slices::Demand;
    use proctrace_scenes::real;

    const S: f64 = 1e9;

    fn slice(cpus: f64, serial: f64, single: f64) -> Slice {
        Slice { wall_ns: S, cpu_ns: cpus * S, demand: Some(Demand { serial, single }) }
    }

    fn speedup(table: &Table, cores: u64) -> f64 {
        let row = (0..table.height())
            .find(|row| {
                table.named("cores").unwrap().values.get(*row)
                    == proctrace_findings::Cell::Whole(cores)
            })
            .unwrap();
        match table.named("speedup").unwrap().values.get(row) {
            proctrace_findings::Cell::Real(number) => number,
            other => panic!("{other:?}"),
        }
    }

    /// 4 s on one CPU and 4 s on three.
    fn four_and_four() -> Vec<Slice> {
        [[slice(1.0, 1.0, 1.0); 4], [slice(3.0, 0.0, 0.0); 4]].concat()
    }

    #[test]
    fn the_bound_is_amdahls() {
        // 4 s + 12 s of CPU time: 16 s on one core, 7 s on four, 4 s on any number.
        let serial = Serial::by_looks(&four_and_four(), 80).unwrap();
        assert_eq!((serial.on_ns(1), serial.on_ns(4)), (16.0 * S, 7.0 * S));
        assert_eq!(serial.bound(), Some(4.0));
        assert_eq!(Serial { n: 80, ..Serial::by_cpu(&four_and_four()) }, serial);
        let table = table(Some(&serial), 3, 80, Some(3));
        let cores = &table.named("cores").unwrap().values;
        assert_eq!((cores.len(), cores.get(2)), (9, proctrace_findings::Cell::Whole(3)));
        assert_eq!(speedup(&table, 3), 2.0);
        assert!(table.notes[0].contains("No sample found more than 3 tasks running or runnable"));
        // The Wilson interval of 40 of 80 is 39.3 to 60.7 %: of 8 s, beside 12 s.
        assert!(table.notes[1].contains("4.0 times as fast as one: 3.5 to 4.8 by"), "{table:?}");
    }

    #[test]
    fn it_does_not_depend_on_the_cpus_that_were_to_be_had() {
        // 2 s of one task, then 8 tasks of 1 s each: 10 s of CPU time of which 2 s are serial, on
        // one CPU, on two, and on one that is shared with other jobs.
        for (wall_s, cpus) in [(8, 1.0), (4, 2.0), (16, 0.5)] {
            let mut slices = vec![slice(1.0, 1.0, 1.0); 2];
            slices.extend(vec![slice(cpus, 0.0, 0.0); wall_s]);
            let serial = Serial::by_looks(&slices, 100).unwrap();
            assert!((serial.on_ns(1) - 10.0 * S).abs() < 1.0, "{serial:?}");
            assert!((serial.bound().unwrap() - 5.0).abs() < 1e-9, "{serial:?}");
            assert!((speedup(&table(Some(&serial), 2, 100, None), 8) - 10.0 / 3.0).abs() < 1e-9);
        }
    }

    #[test]
    fn what_one_task_cannot_have_used_is_of_the_rest() {
        // Samples that find none, one and two tasks in turn, where 1 CPU is used on average: a
        // third of the time has two, which use two thirds of the CPU time.
        let looks = [slice(1.0, 1.0, 0.0), slice(1.0, 1.0, 1.0), slice(1.0, 0.0, 0.0)];
        let serial = Serial::by_looks(&looks.repeat(10), 30).unwrap();
        assert!((serial.serial_ns / S - 20.0).abs() < 1e-9);
        assert!((serial.parallel_cpu_ns / S - 20.0).abs() < 1e-9);
    }

    #[test]
    fn few_looks_project_nothing() {
        assert_eq!(Serial::by_looks(&four_and_four(), LOOKS_MIN - 1), None);
        let unseen = Slice { demand: None, ..slice(1.0, 1.0, 1.0) };
        assert_eq!(Serial::by_looks(&[unseen], 0), None);
        let table = table(None, 3, 7, None);
        assert_eq!(table.height(), 0);
        assert!(table.notes[0].contains("n = 7 samples"), "{table:?}");
    }

    #[test]
    fn bins_of_a_starved_run_project_nothing() {
        let by_cpu = Serial::by_cpu(&four_and_four());
        let by_looks = Serial::by_looks(&four_and_four(), 80);
        let faster = |by: &str, waiting: f64| {
            let table = serial_table(&by_cpu, by_looks.as_ref(), Some(waiting), 1_000_000_000);
            assert_eq!(real(&table, "by", by, "serial_percent"), Some(50.0));
            assert_eq!(real(&table, "by", by, "parallel_cpus"), Some(3.0));
            real(&table, "by", by, "faster")
        };
        assert_eq!(faster("CPU time of bins", STARVED_PERCENT), Some(2.0));
        assert_eq!(faster("CPU time of bins", 61.0), None);
        assert_eq!(faster("samples of tasks", 61.0), Some(2.0));
        // Without samples that row has no values.
        let table = serial_table(&by_cpu, None, None, 1_000_000_000);
        assert_eq!(real(&table, "by", "samples of tasks", "serial_percent"), None);
    }
}
