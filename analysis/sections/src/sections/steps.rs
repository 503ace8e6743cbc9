//! Steps: what each unit of work of the job's coordinator ran and used, by group and one by one.

use proctrace_findings::{Figure, Table, Unit, Values, counted};
use proctrace_overview::options::{Content, Options};
use proctrace_overview::steps::{StepGroup, StepSum, group_of, groups, sums};
use proctrace_recording::Recording;
use proctrace_wire::Quantity;

/// Quantities without which it is not known which process belongs to which step.
const ROWS: &[Quantity] = &[Quantity::Forks, Quantity::Execs, Quantity::Argv];

pub(crate) fn section(recording: &Recording, _: &Options) -> Content {
    let sums = sums(recording);
    let groups = groups(recording, &sums);
    Content {
        tables: vec![groups_table(recording, &groups), steps_table(recording, &sums)],
        charts: Vec::new(),
    }
}

fn system_percent(figures: &proctrace_findings::Figures) -> Option<f64> {
    let (system_ns, cpu_ns) = (figures[Figure::SystemNs]?, figures[Figure::CpuNs]?);
    (cpu_ns > 0).then(|| system_ns as f64 * 100.0 / cpu_ns as f64)
}

/// Adds the peak of PSS, to text only if memory was read.
fn with_peak_pss(
    table: Table,
    recording: &Recording,
    peaks: impl Iterator<Item = Option<u64>>,
) -> Table {
    let table = table.whole("peak_pss_bytes", "peak PSS", Unit::Bytes, peaks);
    match recording.knows.all(&[Quantity::Memory]) {
        true => table.needs(&[Quantity::Memory]),
        false => table.detail(),
    }
}

fn groups_table(recording: &Recording, groups: &[StepGroup]) -> Table {
    let of = || groups.iter();
    let figure = |figure: Figure| of().map(move |group| group.figures[figure]);
    let table = Table::new("step_groups", "Groups of steps, most wall time first")
        .rows_need(ROWS)
        .text("group", "group", of().map(|group| &*group.name))
        .whole("steps", "steps", Unit::Count, of().map(|group| group.steps))
        .whole("failed", "failed", Unit::Count, of().map(|group| group.failed))
        .whole("wall_ns", "wall", Unit::Nanoseconds, of().map(|group| group.wall_ns))
        .detail()
        .whole("median_wall_ns", "median", Unit::Nanoseconds, of().map(|group| group.median_wall_ns))
        .whole("longest_wall_ns", "longest", Unit::Nanoseconds, of().map(|group| group.longest_wall_ns))
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, figure(Figure::CpuNs))
        .needs(Figure::CpuNs.needs())
        .real("cores_in_use", "cores", Unit::Cores, of().map(StepGroup::cores_in_use))
        .needs(&[Quantity::Cpu, Quantity::Times])
        .real("system_percent", "system", Unit::Percent, of().map(|group| system_percent(&group.figures)))
        .needs(Figure::SystemNs.needs())
        .detail()
        .whole("processes", "processes", Unit::Count, of().map(|group| group.processes))
        .whole("failed_lookups", "look-ups", Unit::Count, figure(Figure::FailedLookups))
        .needs(Figure::FailedLookups.needs())
        .detail()
        .whole("peak_rss_bytes", "peak RSS", Unit::Bytes, figure(Figure::PeakRssBytes))
        .needs(Figure::PeakRssBytes.needs())
        .whole("read_bytes", "read", Unit::Bytes, figure(Figure::ReadBytes))
        .needs(Figure::ReadBytes.needs())
        .detail()
        .whole("write_bytes", "written", Unit::Bytes, figure(Figure::WriteBytes))
        .needs(Figure::WriteBytes.needs())
        .detail()
        .longest_by("wall_ns")
        .note(
            "A step is a program and all that it starts, named by whoever starts it. cores: CPU by wall, those in use on average; \
             peak RSS: of the largest process, peak PSS: of all at one time.",
        );
    with_peak_pss(table, recording, of().map(|group| group.peak_pss_bytes))
}

fn steps_table(recording: &Recording, sums: &[StepSum]) -> Table {
    let steps = &recording.steps.all;
    let mut order: Vec<usize> = (0..steps.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(sums[*at].wall_ns()));
    let of = || order.iter().map(|at| (&steps[*at], &sums[*at]));
    let figure = |figure: Figure| of().map(move |(_, sum)| sum.figures[figure]);
    let whole = |at: Option<u32>| at.map(|at| steps[at as usize].named.name.clone());
    let process = |run: u32| &recording.processes[recording.runs[run as usize].process as usize];
    let ended = |sum: &StepSum| match (sum.has_ended, sum.outcome) {
        (false, _) => Some("runs".to_owned()),
        (true, outcome) => outcome.map(|outcome| outcome.name().into_owned()),
    };
    let table = Table::new("steps", "Steps, longest first")
        .rows_need(ROWS)
        .text("step", "step", of().map(|(step, _)| &*step.named.name))
        .text("group", "group", of().map(|(step, _)| group_of(step)))
        .detail()
        .column(
            "part_of",
            "part of",
            Unit::Text,
            Values::Text(of().map(|(step, _)| whole(step.parent)).collect()),
        )
        .detail()
        .text("named_by", "named by", of().map(|(step, _)| step.named.by.name()))
        .detail()
        .figures("pid", "pid", of().map(|(step, _)| process(step.run).pid.to_string()))
        .detail()
        .whole(
            "begin_ns",
            "begin",
            Unit::Nanoseconds,
            of().map(|(_, sum)| sum.begin_ns.saturating_sub(recording.first_ns)),
        )
        .whole("wall_ns", "wall", Unit::Nanoseconds, of().map(|(_, sum)| sum.wall_ns()))
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, figure(Figure::CpuNs))
        .needs(Figure::CpuNs.needs())
        .real("cores_in_use", "cores", Unit::Cores, of().map(|(_, sum)| sum.cores_in_use()))
        .needs(&[Quantity::Cpu, Quantity::Times])
        .whole("processes", "processes", Unit::Count, of().map(|(_, sum)| sum.processes))
        .whole("failed_lookups", "look-ups", Unit::Count, figure(Figure::FailedLookups))
        .needs(Figure::FailedLookups.needs())
        .detail()
        .whole("peak_rss_bytes", "peak RSS", Unit::Bytes, figure(Figure::PeakRssBytes))
        .needs(Figure::PeakRssBytes.needs())
        .column(
            "ended",
            "ended",
            Unit::Text,
            Values::Text(of().map(|(_, sum)| ended(sum)).collect()),
        )
        .longest_by("wall_ns")
        .note("Processes and what they used include those of steps within a step.");
    let table = match recording.steps.left_out {
        0 => table,
        left_out => table.note(format!(
            "{} not told apart, being too many or too deep within each other: what they used is in those around them.",
            counted(left_out, "step is", "steps are")
        )),
    };
    with_peak_pss(table, recording, of().map(|(_, sum)| sum.peak_pss_bytes))
}
