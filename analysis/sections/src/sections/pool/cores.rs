//! CPUs in use over time: by each worker, by a writer, and beyond the requested cores.

use proctrace_findings::{
    Axis, Chart, ChartBody, Figure, Lines, Mark, Series, Table, Unit, count, counted,
};
use proctrace_recording::Recording;
use proctrace_recording::bin_series::BinSeries;
use proctrace_wire::Quantity;

use crate::sections::pool::find::{Pool, end_ns};
use crate::sections::pool::moments;
use crate::sections::pool::phases::{Moments, Phase};
use crate::sections::pool::tree::Tree;
use crate::shares::slices::SPILL;

/// Maximum workers with an area of their own in the chart.
const AREAS_MAX: usize = 8;
/// Maximum points along the time axis of a chart.
const POINTS_MAX: usize = 600;
/// Minimum use of a CPU, in percent, of a writer that is saturated.
const BUSY_PERCENT: f64 = 95.0;

/// The bins of the recording in a pool's lifetime.
fn bins_of(recording: &Recording, at: &Moments) -> std::ops::Range<usize> {
    recording.bins().bin_of(at.begin_ns)..recording.bins().bin_of(at.end_ns) + 1
}

/// Minimum part of the recorded time, in percent, of a stretch that is relevant for a job.
const OUTSIDE_MIN_PERCENT: u64 = 1;

/// A stretch recorded outside the pool's lifetime, as a phase; `None` if it is short.
pub(crate) fn outside(
    recording: &Recording,
    name: &'static str,
    begin_ns: u64,
    end_ns: u64,
) -> Option<Phase> {
    let least_ns = recording.recorded_ns() / 100 * OUTSIDE_MIN_PERCENT;
    if end_ns.saturating_sub(begin_ns) <= least_ns {
        return None;
    }
    let bins = recording.bins();
    let (user, system) = (bins.of(BinSeries::User), bins.of(BinSeries::System));
    let cpu_ns = (bins.bin_of(begin_ns)..=bins.bin_of(end_ns))
        .map(|bin| {
            let from_ns = bins.start_ns.saturating_add(bins.width_ns.saturating_mul(bin as u64));
            let to_ns = from_ns.saturating_add(bins.width_ns);
            let overlap_ns = to_ns.min(end_ns).saturating_sub(from_ns.max(begin_ns));
            (user[bin] + system[bin]) * overlap_ns as f64 / bins.width_ns as f64
        })
        .sum();
    Some(Phase {
        name,
        begin_ns,
        end_ns,
        cpu_ns,
        workers_cpu_ns: 0.0,
        others_cpu_ns: 0.0,
        parallel: false,
    })
}

/// CPU use beyond the requested cores.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Overcommit {
    /// CPUs in use on average.
    mean: f64,
    /// CPUs in use in the busiest bin.
    peak: f64,
    /// Time in which more CPUs were in use than requested.
    over_ns: f64,
    /// CPU time in excess of the requested cores.
    excess_ns: f64,
    wall_ns: f64,
}

impl Overcommit {
    pub(crate) fn of(recording: &Recording, at: &Moments, cores: u32) -> Self {
        let bins = recording.bins();
        let width_ns = bins.width_ns as f64;
        let (user, system) = (bins.of(BinSeries::User), bins.of(BinSeries::System));
        let mut found = Self::default();
        for bin in bins_of(recording, at) {
            let used = (user[bin] + system[bin]) / width_ns;
            found.wall_ns += width_ns;
            found.mean += used * width_ns;
            found.peak = found.peak.max(used);
            if used > f64::from(cores) * SPILL {
                found.over_ns += width_ns;
                found.excess_ns += (used - f64::from(cores)) * width_ns;
            }
        }
        found.mean /= found.wall_ns.max(1.0);
        found
    }
}

/// Requested cores compared with CPUs in use during the pool's lifetime.
pub(crate) fn cores_table(recording: &Recording, at: &Moments, cores: u32) -> Table {
    let found = Overcommit::of(recording, at, cores);
    let over_percent = 100.0 * found.over_ns / found.wall_ns.max(1.0);
    Table::new("pool_cores", "Cores")
        .rows_need(&[Quantity::Forks, Quantity::Execs, Quantity::Cpu, Quantity::Samples])
        .whole("requested_cores", "requested", Unit::Cores, [u64::from(cores)])
        .real("mean_cores", "mean", Unit::Cores, [found.mean])
        .real("peak_cores", "peak", Unit::Cores, [found.peak])
        .real("over_percent", "over-committed", Unit::Percent, [over_percent])
        .real("excess_ns", "excess CPU", Unit::Nanoseconds, [found.excess_ns])
        .note(format!(
            "All tasks recorded during the pool's lifetime, n = {} bins of {} ms. over-committed: \
             time with more than {SPILL} times the requested cores (--cores) in use; the margin \
             allows for samples of several tasks not being simultaneous.",
            count(bins_of(recording, at).len() as u64),
            recording.bins().width_ns / 1_000_000,
        ))
}

/// The load of the writer; `None` if the pool has none.
pub(crate) fn writer(
    recording: &Recording,
    pool: &Pool,
    tree: &Tree,
    at: &Moments,
) -> Option<(Table, Chart)> {
    let writer = pool.writer(recording)?;
    let process = &recording.processes()[writer];
    let name = recording.role_of(process).unwrap_or("writer").to_owned();
    let series = tree.cpu_by_bin(recording, 1, |head| (head == writer).then_some(0));
    let width_ns = recording.bins().width_ns as f64;
    let busy: Vec<f64> = series[0].iter().map(|cpu_ns| 100.0 * cpu_ns / width_ns).collect();
    // Bins that are entirely within its lifetime, and of those the bins of the loop.
    let whole = |begin_ns: u64, end_ns: u64| {
        let first = recording.bins().bin_of(begin_ns) + 1;
        first..recording.bins().bin_of(end_ns).max(first)
    };
    let life = whole(process.born_ns, end_ns(recording, process));
    let in_loop = whole(
        at.loop_begin_ns.max(process.born_ns),
        at.first_exit_ns.min(end_ns(recording, process)),
    );
    let mean = |bins: std::ops::Range<usize>| {
        let n = bins.len();
        (n > 0).then(|| busy[bins].iter().sum::<f64>() / n as f64)
    };
    let full = busy[in_loop.clone()].iter().filter(|busy| **busy >= BUSY_PERCENT).count();
    let full_percent = (!in_loop.is_empty()).then(|| 100.0 * full as f64 / in_loop.len() as f64);
    let cpu_ns = tree.cpu_of_heads(recording).get(&writer).copied().unwrap_or(0);
    let wanted_ns =
        process.tasks().map(|task| recording.tasks()[task].used()).fold(0, |sum: u64, used| {
            sum.saturating_add(used.run_ns).saturating_add(used.run_delay_ns)
        });
    let life_ns = end_ns(recording, process) - process.born_ns;
    let wanted_percent = (life_ns > 0).then(|| 100.0 * wanted_ns as f64 / life_ns as f64);
    let table = Table::new("pool_writer", "The writer")
        .rows_need(&[Quantity::Forks, Quantity::Execs, Quantity::Cpu, Quantity::Samples])
        .text("role", "role", [name.clone()])
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, [cpu_ns])
        .needs(Figure::CpuNs.needs())
        .real("busy_percent", "busy", Unit::Percent, [mean(life)])
        .real("busy_in_loop_percent", "in the loop", Unit::Percent, [mean(in_loop.clone())])
        .real("full_percent", "saturated", Unit::Percent, [full_percent])
        .real("wanted_percent", "demand", Unit::Percent, [wanted_percent])
        .needs(&[Quantity::RunDelay])
        .note(format!(
            "busy: CPU time / wall time, 100 % for one CPU. saturated: share of the loop's {} bins \
             with at least {BUSY_PERCENT:.0} %, in which workers wait for the writer. demand: time \
             in which its tasks ran or waited for a CPU.",
            in_loop.len()
        ));
    let shown = bins_of(recording, at);
    let (x, values) = coarse(recording, shown, &[busy]);
    let chart = Chart::new(
        "pool_writer",
        "Load of the writer",
        ChartBody::Lines(Lines {
            x_axis: Axis::linear("time", Unit::Nanoseconds),
            y_axis: Axis::linear("CPU use", Unit::Percent),
            x,
            series: vec![named(&name, values.into_iter().next().unwrap_or_default())],
            stacked: false,
            points: false,
            marks: vec![Mark { at: 100.0, name: "one CPU".into() }],
            moments: moments(recording, at),
        }),
    )
    .needs(&[Quantity::Forks, Quantity::Execs, Quantity::Cpu, Quantity::Samples]);
    Some((table, chart))
}

fn named(name: &str, values: Vec<f64>) -> Series {
    Series { name: name.to_owned(), values: values.into_iter().map(Some).collect() }
}

/// Means over groups of bins, so that a chart gets no more points than it can show, and the
/// midpoint of each since the start of the recording.
fn coarse(
    recording: &Recording,
    shown: std::ops::Range<usize>,
    series: &[Vec<f64>],
) -> (Vec<f64>, Vec<Vec<f64>>) {
    let together = shown.len().div_ceil(POINTS_MAX).max(1);
    let width_ns = recording.bins().width_ns as f64;
    let offset_ns = recording.bins().start_ns.saturating_sub(recording.first_ns()) as f64;
    let starts = || shown.clone().step_by(together);
    let last = |start: usize| (start + together).min(shown.end);
    let x =
        starts().map(|start| offset_ns + (start + last(start)) as f64 / 2.0 * width_ns).collect();
    let means = |values: &Vec<f64>| {
        starts()
            .map(|start| {
                let bins = &values[start..last(start)];
                bins.iter().sum::<f64>() / bins.len() as f64
            })
            .collect()
    };
    (x, series.iter().map(means).collect())
}

/// CPUs in use over time: parent, workers, others, and processes outside the pool.
pub(crate) fn chart(
    recording: &Recording,
    pool: &Pool,
    tree: &Tree,
    at: &Moments,
    cores: u32,
) -> Chart {
    let parent = &recording.processes()[pool.parent];
    let mut names = vec![recording.program_of(parent).name.clone()];
    let mut group_of = std::collections::HashMap::from([(pool.parent, 0)]);
    if pool.workers.len() <= AREAS_MAX {
        for worker in &pool.workers {
            group_of.insert(worker.process, names.len());
            names.push(worker.name.clone());
        }
    } else {
        group_of.extend(pool.workers.iter().map(|worker| (worker.process, names.len())));
        names.push(format!("{} workers", pool.workers.len()));
    }
    for other in &pool.others {
        group_of.insert(*other, names.len());
        let role = recording.role_of(&recording.processes()[*other]);
        names.push(role.unwrap_or("other child").to_owned());
    }
    let mut series = tree.cpu_by_bin(recording, names.len(), |head| group_of.get(&head).copied());
    let width_ns = recording.bins().width_ns as f64;
    series.iter_mut().flatten().for_each(|cpu| *cpu /= width_ns);
    let (user, system) =
        (recording.bins().of(BinSeries::User), recording.bins().of(BinSeries::System));
    let rest: Vec<f64> = (0..recording.bins().len())
        .map(|bin| {
            let pool: f64 = series.iter().map(|series| series[bin]).sum();
            ((user[bin] + system[bin]) / width_ns - pool).max(0.0)
        })
        .collect();
    // The two methods spread short processes differently; a small difference is not other work.
    if rest.iter().sum::<f64>() > 0.01 * series.iter().flatten().sum::<f64>() {
        names.push("everything else".into());
        series.push(rest);
    }
    let (x, series) = coarse(recording, bins_of(recording, at), &series);
    Chart::new(
        "pool_cpu",
        "CPUs in use by the pool",
        ChartBody::Lines(Lines {
            x_axis: Axis::linear("time", Unit::Nanoseconds),
            y_axis: Axis::linear("CPUs in use", Unit::Cores),
            x,
            series: names.iter().zip(series).map(|(name, values)| named(name, values)).collect(),
            stacked: true,
            points: false,
            marks: vec![Mark {
                at: f64::from(cores),
                name: format!("{} requested", counted(u64::from(cores), "core", "cores")),
            }],
            moments: moments(recording, at),
        }),
    )
    .needs(&[Quantity::Forks, Quantity::Execs, Quantity::Cpu, Quantity::Samples])
    .note("Each area includes the processes started by the named one.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::pool::find::pools;
    use crate::sections::pool::testing::{MS, Tape, Used};
    use proctrace_overview::options::Options;

    /// Two workers and a writer that use one CPU each from 100 to 900 ms, and half a CPU after
    /// that.
    fn recording() -> Recording {
        let mut tape = Tape::new("athena");
        for child in 2..=4 {
            tape.fork(100, 1, child).sample(900, child, 800);
            tape.exit(1000, child, Used::ms(850));
        }
        let mut recording = tape.exit(1100, 1, Used::default()).recording();
        recording
            .replace_roles(["worker_0", "worker_1", "shared_writer"].map(String::from).to_vec());
        for role in 0..3 {
            recording.processes_mut()[role + 1].set_role(u32::try_from(role).ok());
        }
        recording
    }

    #[test]
    fn over_commit_is_time_above_what_was_asked_for() {
        let recording = recording();
        let pool = &pools(&recording, &Options::default(), 2)[0];
        let at = Moments::of(&recording, pool);
        let found = Overcommit::of(&recording, &at, 2);
        // 3 CPUs for 800 of 1,100 ms.
        assert!((found.over_ns / 800e6 - 1.0).abs() < 1e-6, "{found:?}");
        assert!((found.excess_ns / 800e6 - 1.0).abs() < 1e-6, "{found:?}");
        assert!((found.peak - 3.0).abs() < 1e-6 && (found.mean - 2550.0 / 1100.0).abs() < 1e-6);
        assert_eq!(Overcommit::of(&recording, &at, 3).over_ns, 0.0);
    }

    #[test]
    fn a_writer_is_as_busy_as_its_cpu_time() {
        let recording = recording();
        let pool = &pools(&recording, &Options::default(), 2)[0];
        let tree = Tree::of(&recording, pool);
        let at = Moments::of(&recording, pool);
        let (table, _) = writer(&recording, pool, &tree, &at).unwrap();
        let value = |name: &str| match table.named(name).unwrap().values.get(0) {
            proctrace_findings::Cell::Real(value) => value,
            other => panic!("{other:?}"),
        };
        // Of 89 whole bins of its lifetime 79 are full and 10 half full; the loop is the same.
        assert!((value("busy_percent") - 100.0 * 84.0 / 89.0).abs() < 0.01);
        assert!((value("full_percent") - 100.0 * 79.0 / 89.0).abs() < 0.01);
        assert_eq!(
            table.named("role").unwrap().values.get(0),
            proctrace_findings::Cell::Text("shared_writer")
        );
    }

    #[test]
    fn what_lies_outside_has_the_cpu_time_of_its_bins() {
        let recording = recording();
        let at = |ms: u64| recording.first_ns() + ms * MS;
        // Three CPUs from 855 to 900 ms, and half of each after.
        let found = outside(&recording, "after", at(855), at(1000)).unwrap();
        assert!((found.cpu_ns / 1e6 - (135.0 + 150.0)).abs() < 1e-6, "{found:?}");
        assert_eq!(outside(&recording, "after", at(1000), at(1005)), None);
        assert_eq!(outside(&recording, "after", at(1000), at(900)), None);
    }

    #[test]
    fn areas_add_up_to_what_was_used() {
        let recording = recording();
        let pool = &pools(&recording, &Options::default(), 2)[0];
        let at = Moments::of(&recording, pool);
        let chart = chart(&recording, pool, &Tree::of(&recording, pool), &at, 4);
        let ChartBody::Lines(lines) = chart.body else { panic!("no lines") };
        let names: Vec<&str> = lines.series.iter().map(|series| &*series.name).collect();
        assert_eq!(names, ["athena", "worker_0", "worker_1", "shared_writer"]);
        let all: f64 = lines.series.iter().flat_map(|series| &series.values).flatten().sum();
        let seconds = all * recording.bins().width_ns as f64 / 1e9;
        assert!((seconds - 2.55).abs() < 1e-4, "{seconds}");
    }
}
