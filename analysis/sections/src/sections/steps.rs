//! Steps: what each unit of work of the job's coordinator ran and used, by group and one by one.

use proctrace_findings::{Figure, Table, Unit, Values, counted};
use proctrace_overview::options::{Content, Options};
use proctrace_overview::step_needs::declared_needs;
use proctrace_overview::step_path::{Along, Stretch, by_needs, by_waits, slacks};
use proctrace_overview::steps::{StepGroup, StepSum, group_of, groups, sums};
use proctrace_recording::Recording;
use proctrace_wire::Quantity;

use crate::analysis::Analysis;
use crate::shares::percent;

/// Quantities without which it is not known which process belongs to which step.
const ROWS: &[Quantity] = &[Quantity::Forks, Quantity::Execs, Quantity::Argv];
/// Without times there is no chain.
const CHAIN: &[Quantity] = &[Quantity::Forks, Quantity::Execs, Quantity::Argv, Quantity::Times];
/// Nor without waits a critical path.
const PATH: &[Quantity] =
    &[Quantity::Forks, Quantity::Execs, Quantity::Argv, Quantity::Times, Quantity::Waits];

pub(crate) fn section(of: &Analysis<'_>, _: &Options) -> Content {
    let recording = of.recording;
    let sums = sums(recording);
    let groups = groups(recording, &sums);
    let needs = declared_needs(recording);
    let mut tables =
        vec![groups_table(recording, &groups), steps_table(recording, &sums, needs.as_deref())];
    if let Some(needs) = needs.as_deref().filter(|_| !sums.is_empty()) {
        let chain = by_needs(recording, &sums, needs);
        let table =
            Table::new("step_chain", "What the end waited for, by declared needs").rows_need(CHAIN);
        tables.insert(1, stretches_table(recording, table, &chain).note(
            "Each step after the one of those it needs that ended last. A step waits for a slot if all that it needs has ended, and \
             it begins only when another one ends.",
        ));
    }
    if let Some(path) = of.path().filter(|_| !sums.is_empty()) {
        let chain = by_waits(recording, &path.steps);
        let table = Table::new("step_path", "The critical path, by steps").rows_need(PATH);
        tables.insert(1, stretches_table(recording, table, &chain));
    }
    Content { tables, charts: Vec::new() }
}

/// Stretches of a chain, in order of time.
fn stretches_table(recording: &Recording, table: Table, stretches: &[Stretch]) -> Table {
    let of = || stretches.iter();
    let name = |step: u32| &*recording.steps().all[step as usize].named.name;
    let what = |stretch: &Stretch| match stretch.along {
        Along::Step(step) => name(step).to_owned(),
        Along::Slot(step) => format!("{} waits for a slot", name(step)),
        Along::Coordinator => "the coordinator".to_owned(),
        Along::Short(number) => counted(number, "short stretch", "short stretches"),
    };
    let step = |stretch: &Stretch| match stretch.along {
        Along::Step(step) | Along::Slot(step) => Some(name(step).to_owned()),
        Along::Coordinator | Along::Short(_) => None,
    };
    let kind = |stretch: &Stretch| match stretch.along {
        Along::Step(_) => "step",
        Along::Slot(_) => "slot",
        Along::Coordinator => "coordinator",
        Along::Short(_) => "short",
    };
    let since = |time_ns: u64| time_ns.saturating_sub(recording.first_ns());
    table
        .text("what", "step", of().map(what))
        .column("step", "step", Unit::Text, Values::Text(of().map(step).collect()))
        .detail()
        .text("kind", "kind", of().map(kind))
        .detail()
        .whole("begin_ns", "begin", Unit::Nanoseconds, of().map(|of| since(of.begin_ns)))
        .whole("wall_ns", "wall", Unit::Nanoseconds, of().map(Stretch::length_ns))
        .real(
            "percent",
            "of the wall",
            Unit::Percent,
            of().map(|of| percent(of.length_ns() as f64, recording.wall_ns() as f64)),
        )
        .longest_by("wall_ns")
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
    match recording.knows().all(&[Quantity::Memory]) {
        // There is no room for both.
        true => table.needs(&[Quantity::Memory]).detail_of("peak_rss_bytes"),
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
        .whole("retried", "tried again", Unit::Count, of().map(|group| group.retried))
        .detail()
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
    let again: Vec<&StepGroup> = groups.iter().filter(|group| group.retried > 0).collect();
    let table = match &again[..] {
        [] => table,
        [first, others @ ..] => {
            // Without the number, which is in the column: a note with one is left out where anything is not known.
            let more = if others.is_empty() { "" } else { " and others" };
            table.note(format!("Started again after a failure: {}{more}.", first.name))
        }
    };
    with_peak_pss(table, recording, of().map(|group| group.peak_pss_bytes))
}

fn steps_table(
    recording: &Recording,
    sums: &[StepSum],
    needs: Option<&[Option<Vec<u32>>]>,
) -> Table {
    let slacks = needs.map(|needs| slacks(recording.steps(), sums, needs));
    let steps = &recording.steps().all;
    let mut order: Vec<usize> = (0..steps.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(sums[*at].wall_ns()));
    let of = || order.iter().map(|at| (&steps[*at], &sums[*at]));
    let figure = |figure: Figure| of().map(move |(_, sum)| sum.figures[figure]);
    let whole = |at: Option<u32>| at.map(|at| steps[at as usize].named.name.clone());
    let process =
        |run: u32| &recording.processes()[recording.runs()[run as usize].process as usize];
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
            of().map(|(_, sum)| sum.begin_ns.saturating_sub(recording.first_ns())),
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
    let table = match &slacks {
        None => table,
        Some(slacks) => table
            .whole("slack_ns", "slack", Unit::Nanoseconds, order.iter().map(|at| slacks[*at]))
            .note("slack: how much later it could have ended without the last one ending later, by what is declared."),
    };
    let table = match recording.steps().left_out {
        0 => table,
        left_out => table.note(format!(
            "{} not told apart, being too many or too deep within each other: what they used is in those around them.",
            counted(left_out, "step is", "steps are")
        )),
    };
    with_peak_pss(table, recording, of().map(|(_, sum)| sum.peak_pss_bytes))
}
