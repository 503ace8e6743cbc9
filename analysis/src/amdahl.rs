//! The part of the wall time that no number of cores would shorten, and what they could do about the
//! rest.

use std::collections::BTreeMap;

use proctrace_findings::{Axis, Chart, ChartBody, Lines, Mark, Series, Table, Unit};

use crate::concurrency::{SPILL, Slice, percent};

/// Cores of the projection.
const CORES_MAX: u32 = 128;
/// If tasks wait for a CPU for more of the time in which they could run, bins show how many CPUs were
/// to be had, not how many the job could use.
const STARVED_PERCENT: f64 = 20.0;

/// The part of the wall time in which at most one CPU was used, and the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Serial {
    serial_ns: f64,
    parallel_ns: f64,
    /// CPU time in the rest.
    parallel_cpu_ns: f64,
    bins: usize,
}

impl Serial {
    pub(crate) fn of(slices: &[Slice]) -> Self {
        let mut serial = Self { bins: slices.len(), ..Self::default() };
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

    fn wall_ns(&self) -> f64 {
        self.serial_ns + self.parallel_ns
    }

    /// How long it would take on so many cores, if its parallel part could be divided at will.
    fn on_ns(&self, cores: u32) -> f64 {
        self.serial_ns + self.parallel_cpu_ns / f64::from(cores.max(1))
    }

    /// Amdahl's bound: against one core, on as many as one likes.
    fn bound(&self) -> Option<f64> {
        (self.serial_ns > 0.0).then(|| self.on_ns(1) / self.serial_ns)
    }
}

/// Of the looks, those that found at most one task running or runnable.
fn serial_share(looks: &BTreeMap<u32, u64>) -> Option<f64> {
    let all: u64 = looks.values().sum();
    let alone: u64 = looks.range(..=1).map(|(_, count)| count).sum();
    (all > 0).then(|| alone as f64 / all as f64)
}

fn starved(waiting_percent: Option<f64>) -> Option<f64> {
    waiting_percent.filter(|percent| *percent > STARVED_PERCENT)
}

/// What no number of cores could do better: by bins, or by looks where tasks wait for a CPU.
fn conclusion(
    serial: &Serial,
    looks: &BTreeMap<u32, u64>,
    waiting_percent: Option<f64>,
) -> Option<String> {
    let bound = serial.bound();
    let Some(waiting) = starved(waiting_percent) else {
        return Some(format!("No number of cores makes it more than {:.2} times as fast.", bound?));
    };
    let mut says = format!(
        "Tasks waited for a CPU in {waiting:.0} % of the time in which they could run: bins take for \
         serial what would have run at once, and this table says too little."
    );
    match serial_share(looks) {
        Some(share) if share > 0.0 => says.push_str(&format!(
            " By looks at tasks {:.0} % of the wall time is serial: no number of cores makes it more than \
             {:.1} times as fast as it was here.",
            100.0 * share,
            1.0 / share
        )),
        Some(_) => says.push_str(" By looks at tasks nothing of it is serial."),
        None => says.push_str(" Without samples nothing better is known."),
    }
    Some(says)
}

pub(crate) fn serial_table(serial: &Serial, looks: &BTreeMap<u32, u64>, bin_ns: u64) -> Table {
    let all: u64 = looks.values().sum();
    let share = serial_share(looks);
    let looked_ns = share.map(|share| share * serial.wall_ns());
    let faster = |serial_ns: f64| (serial_ns > 0.0).then(|| serial.wall_ns() / serial_ns);
    let cpus = (serial.parallel_ns > 0.0).then(|| serial.parallel_cpu_ns / serial.parallel_ns);
    Table::new("serial", "What no number of cores would shorten")
        .text("by", "by", ["CPU time of bins", "looks at tasks"])
        .whole("n", "n", Unit::Count, [serial.bins as u64, all])
        .real("serial_ns", "serial", Unit::Nanoseconds, [Some(serial.serial_ns), looked_ns])
        .real(
            "serial_percent",
            "of wall",
            Unit::Percent,
            [percent(serial.serial_ns, serial.wall_ns()), share.map(|share| 100.0 * share)],
        )
        .real("parallel_cpus", "else CPUs", Unit::Cores, [cpus, None])
        .real(
            "faster",
            "faster",
            Unit::Ratio,
            [faster(serial.serial_ns), looked_ns.and_then(faster)],
        )
        .note(format!(
            "Serial: wall time of the command in which at most one of its tasks uses a CPU, also \
             that in which none does: bins of {} s with at most {SPILL} CPUs in use, or looks that \
             find at most one task running or runnable. Else CPUs: how many are in use on average \
             in the rest. Faster: this run against one whose rest takes no time. Where others use the \
             machine too, tasks wait for a CPU, and only looks tell that they would have run at once.",
            bin_ns as f64 / 1e9
        ))
}

/// 1, 2, 4, ... and what was asked for.
fn projected(cores: u32) -> Vec<u32> {
    let mut all: Vec<u32> = std::iter::successors(Some(1u32), |n| n.checked_mul(2))
        .take_while(|n| *n <= CORES_MAX)
        .collect();
    if let Err(at) = all.binary_search(&cores) {
        all.insert(at, cores);
    }
    all
}

pub(crate) fn table(
    serial: &Serial,
    cores: u32,
    looks: &BTreeMap<u32, u64>,
    waiting_percent: Option<f64>,
) -> Table {
    let rows = projected(cores);
    let faster = |n: u32| {
        let on_ns = serial.on_ns(n);
        (on_ns > 0.0).then(|| serial.on_ns(1) / on_ns)
    };
    let table = Table::new("amdahl", "How much faster more cores could make it, at best")
        .whole("cores", "cores", Unit::Cores, rows.iter().map(|n| u64::from(*n)))
        .real("wall_ns", "wall", Unit::Nanoseconds, rows.iter().map(|n| serial.on_ns(*n)))
        .real("speedup", "faster than one", Unit::Ratio, rows.iter().map(|n| faster(*n)))
        .real(
            "efficiency_percent",
            "cores in use",
            Unit::Percent,
            rows.iter().map(|n| Some(100.0 * faster(*n)? / f64::from(*n))),
        )
        .note(
            "Amdahl (AFIPS 1967): the serial time, by CPU time of bins, and the CPU time of the \
             rest over the cores. It assumes that the rest can be divided at will at no cost, and \
             that the serial part stays as long as it is, waiting included.",
        );
    match conclusion(serial, looks, waiting_percent) {
        Some(says) => table.note(says),
        None => table,
    }
}

pub(crate) fn chart(serial: &Serial, cores: u32, waiting_percent: Option<f64>) -> Chart {
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
        y_axis: Axis::logarithmic("times as fast as on one", Unit::Ratio),
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
        moments: vec![Mark { at: f64::from(cores), name: "asked for".into() }],
    };
    let chart =
        Chart::new("amdahl", "How much faster more cores could make it", ChartBody::Lines(body))
            .note(
                "Serial and parallel part as measured in this run; nothing is lost by dividing it.",
            );
    match starved(waiting_percent) {
        Some(waiting) => chart.note(format!(
            "Tasks waited for a CPU in {waiting:.0} % of the time in which they could run: more cores \
             could make it faster than this."
        )),
        None => chart,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::real;

    const S: f64 = 1e9;

    /// 4 s on one CPU and 4 s on three.
    fn four_and_four() -> Serial {
        let slice = |cpus: f64| Slice { wall_ns: S, cpu_ns: cpus * S };
        Serial::of(
            &[[1.0; 4], [3.0; 4]].as_flattened().iter().copied().map(slice).collect::<Vec<_>>(),
        )
    }

    #[test]
    fn the_bound_is_amdahls() {
        // 4 s + 12 s of CPU time: 16 s on one core, 7 s on four, 4 s on any number.
        let serial = four_and_four();
        assert_eq!((serial.on_ns(1), serial.on_ns(4)), (16.0 * S, 7.0 * S));
        assert_eq!(serial.bound(), Some(4.0));
        let table = table(&serial, 3, &BTreeMap::new(), Some(STARVED_PERCENT));
        let cores = &table.named("cores").unwrap().values;
        assert_eq!((cores.len(), cores.get(2)), (9, proctrace_findings::Cell::Whole(3)));
        let speedup = &table.named("speedup").unwrap().values;
        assert_eq!(speedup.get(2), proctrace_findings::Cell::Real(2.0));
        assert!(table.notes[1].contains("4.00 times"));
    }

    #[test]
    fn a_starved_run_is_judged_by_looks() {
        let looks = BTreeMap::from([(1, 10), (8, 30)]);
        let says = conclusion(&four_and_four(), &looks, Some(61.0)).unwrap();
        assert!(says.starts_with("Tasks waited for a CPU in 61 %"), "{says}");
        assert!(says.contains("25 % of the wall time is serial"), "{says}");
        assert!(says.contains("more than 4.0 times as fast as it was here"), "{says}");
        let chart = chart(&four_and_four(), 3, Some(61.0));
        assert!(chart.notes.iter().any(|note| note.contains("61 %")));
    }

    #[test]
    fn half_of_the_looks_are_half_of_the_time() {
        let looks = BTreeMap::from([(0, 10), (1, 20), (2, 5), (7, 25)]);
        let table = serial_table(&four_and_four(), &looks, 1_000_000_000);
        for by in ["CPU time of bins", "looks at tasks"] {
            assert_eq!(real(&table, "by", by, "serial_percent"), Some(50.0));
            assert_eq!(real(&table, "by", by, "faster"), Some(2.0));
        }
        assert_eq!(real(&table, "by", "CPU time of bins", "parallel_cpus"), Some(3.0));
        // Without looks nothing is said by them.
        let table = serial_table(&four_and_four(), &BTreeMap::new(), 1_000_000_000);
        assert_eq!(real(&table, "by", "looks at tasks", "serial_percent"), None);
    }
}
