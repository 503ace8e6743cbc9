//! The critical-path section: what the wall time of the command was spent on.

mod chart;

use proctrace_findings::{Table, Unit, Values};
use proctrace_overview::options::{Content, Options};
use proctrace_overview::path::phases::{Phase, Spent};
use proctrace_overview::path::steps::Step;
use proctrace_overview::path::{Doing, Explained};
use proctrace_overview::path_findings::{Group, groups};
use proctrace_recording::Recording;
use proctrace_wire::Quantity;

use crate::analysis::Analysis;
use crate::shares::percent;

/// Quantities that the path needs.
const NEEDS: &[Quantity] = &[Quantity::Forks, Quantity::Execs, Quantity::Waits];

pub(crate) fn section(of: &Analysis<'_>, options: &Options) -> Content {
    let recording = of.recording;
    let nothing = Explained::default();
    let path = of.path();
    let charts = path.map(|path| chart::chart(recording, &path.steps));
    let path = path.unwrap_or(&nothing);
    let by_program = groups(&path.steps, |step| step.program as usize);
    let category = |step: &Step| category_of(recording, step.program);
    let by_category = groups(&path.steps, category);
    let program = |at: usize| &*recording.programs()[at].name;
    let named_category = |at: usize| recording.categories().get(at).map_or("", |name| &**name);
    let wall_ns = recording.wall_ns();
    let mut tables = vec![
        phases_table(recording, &path.phases, options.cores(recording)),
        groups_table("path_programs", "program", program, &by_program, wall_ns),
        groups_table("path_categories", "category", named_category, &by_category, wall_ns),
        stretches_table(recording, &path.steps),
        steps_table(recording, &path.steps),
    ];
    if recording.root().is_none() {
        // Without waits there is a note already.
        for table in tables.iter_mut().filter(|_| recording.knows().all(&[Quantity::Waits])) {
            table.notes = vec!["No command was launched: no end to go back from.".to_owned()];
        }
    }
    Content { tables, charts: charts.into_iter().collect() }
}

fn category_of(recording: &Recording, program: u32) -> usize {
    recording.category_of_programs().get(program as usize).copied().unwrap_or(0)
}

fn phases_table(recording: &Recording, phases: &[Phase], cores: u32) -> Table {
    let of = || phases.iter();
    let wall_ns = recording.wall_ns();
    let process = |phase: &Phase| &recording.processes()[phase.process.unwrap_or(phase.command)];
    let name = |phase: &Phase| {
        let program = &*recording.program_of(process(phase)).name;
        match phase.process {
            Some(_) => program.to_owned(),
            None => format!("{program} itself"),
        }
    };
    let since = |time_ns: u64| time_ns - recording.first_ns();
    let used = |phase: &Phase| phase.cpu_ns / phase.spent.all_ns().max(1) as f64;
    let line = of().map(|phase| Some(recording.line_of(process(phase)).to_owned()));
    let table = Table::new("path_phases", "Where the wall time went, by child of the command")
        .rows_need(NEEDS)
        .text("phase", "phase", of().map(name))
        .whole("pid", "pid", Unit::Text, of().map(|phase| u64::try_from(process(phase).pid).ok()))
        .detail()
        .column("command_line", "command line", Unit::Text, Values::Text(line.collect()))
        .needs(&[Quantity::Argv])
        .detail()
        .whole("begin_ns", "begin", Unit::Nanoseconds, of().map(|phase| since(phase.begin_ns)))
        .whole("end_ns", "end", Unit::Nanoseconds, of().map(|phase| since(phase.end_ns)))
        .detail();
    spent_columns(table, wall_ns, of().map(|phase| phase.spent))
        .detail_of("path_running_ns")
        .real("cores_in_use", "cores used", Unit::Cores, of().map(used))
.needs(&[Quantity::Cpu, Quantity::Samples])
        .real(
            "cores_idle",
            "idle",
            Unit::Cores,
            of().map(|phase| (f64::from(cores) - used(phase)).max(0.0)),
        )
.needs(&[Quantity::Cpu, Quantity::Samples])
        .longest_by("path_ns")
        .note(
            "A phase is a child of the command with its descendants; the first process with several \
             children counts as the command, because those above it only wrap it. on path: while \
             the phase was on the critical path, so that the sum is the wall time. cores used: \
             by all processes during that time, from the samples.",
        )
}

/// The time on the path, and its parts.
fn spent_columns(table: Table, wall_ns: u64, spent: impl Iterator<Item = Spent> + Clone) -> Table {
    let of = || spent.clone();
    table
        .whole("path_ns", "on path", Unit::Nanoseconds, of().map(|spent| spent.all_ns()))
        .real(
            "wall_percent",
            "of wall",
            Unit::Percent,
            of().map(|spent| percent(spent.all_ns() as f64, wall_ns as f64)),
        )
        .whole("path_running_ns", "running", Unit::Nanoseconds, of().map(|spent| spent.running_ns))
        .whole(
            "path_waiting_for_cpu_ns",
            "for a CPU",
            Unit::Nanoseconds,
            of().map(|spent| spent.waiting_for_cpu_ns),
        )
        .whole("path_waiting_ns", "waiting", Unit::Nanoseconds, of().map(|spent| spent.waiting_ns))
}

fn groups_table<'a>(
    name: &'static str,
    first: &'static str,
    name_of: impl Fn(usize) -> &'a str,
    groups: &[(usize, Group)],
    wall_ns: u64,
) -> Table {
    let of = || groups.iter();
    let table = Table::new(name, format!("The critical path by {first}")).rows_need(NEEDS).text(
        first,
        first,
        of().map(|(at, _)| name_of(*at)),
    );
    spent_columns(table, wall_ns, of().map(|(_, group)| group.spent))
        .whole("times", "times", Unit::Count, of().map(|(_, group)| group.times))
        .note(
            "for a CPU: ready to run, but without a CPU. waiting: for something that no process of \
             the recording did, such as a timer. times: how often the path came here.",
        )
}

/// Consecutive steps of one process and program.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    first: Step,
    end_ns: u64,
    spent: Spent,
}

fn stretches(steps: &[Step]) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for step in steps {
        match stretches.last_mut() {
            Some(last)
                if (last.first.process, last.first.program) == (step.process, step.program) =>
            {
                last.end_ns = step.end_ns;
                last.spent.add(step);
            }
            _ => {
                let mut spent = Spent::default();
                spent.add(step);
                stretches.push(Stretch { first: *step, end_ns: step.end_ns, spent });
            }
        }
    }
    stretches
}

fn stretches_table(recording: &Recording, steps: &[Step]) -> Table {
    let stretches = stretches(steps);
    let of = || stretches.iter();
    let table =
        who(recording, "path_stretches", "The critical path from process to process", || {
            of().map(|stretch| &stretch.first)
        });
    spent_columns(table, recording.wall_ns(), of().map(|stretch| stretch.spent))
        .longest_by("path_ns")
        .note("In order of time; if there is no room for all, the longest.")
}

fn steps_table(recording: &Recording, steps: &[Step]) -> Table {
    let of = || steps.iter();
    let threshold = match recording.header().waits_min_ns {
        Some(ns) => proctrace_findings::time(ns),
        None => "the threshold".to_owned(),
    };
    let reason = |step: &Step| match step.doing {
        Doing::Waiting(reason) => Some(reason.name().to_owned()),
        Doing::Running | Doing::WaitingForCpu => None,
    };
    who(recording, "critical_path", "The critical path, every part", of)
        .whole("duration_ns", "for", Unit::Nanoseconds, of().map(Step::length_ns))
        .text("doing", "what", of().map(|step| step.doing.says()))
        .column("waits_for", "for", Unit::Text, Values::Text(of().map(reason).collect()))
        .detail()
        .longest_by("duration_ns")
        .note(format!(
            "From the end of the command back to its start: a process that was asleep is followed \
             by the one that woke it, a new process by its forker. Parts do not overlap and add up \
             to the wall time. running includes times off the CPU below {threshold}, except waits \
             for the end of another task, which are recorded however short they are."
        ))
}

/// The columns that say when, and which process.
fn who<'a, I: Iterator<Item = &'a Step>>(
    recording: &Recording,
    name: &'static str,
    title: &str,
    of: impl Fn() -> I,
) -> Table {
    let process = |step: &Step| &recording.processes()[step.process as usize];
    let category =
        |step: &Step| recording.categories().get(category_of(recording, step.program)).cloned();
    Table::new(name, title)
        .rows_need(NEEDS)
        .whole(
            "begin_ns",
            "begin",
            Unit::Nanoseconds,
            of().map(|step| step.begin_ns - recording.first_ns()),
        )
        .whole("pid", "pid", Unit::Text, of().map(|step| u64::try_from(process(step).pid).ok()))
        .text(
            "program",
            "program",
            of().map(|step| &*recording.programs()[step.program as usize].name),
        )
        .column("category", "category", Unit::Text, Values::Text(of().map(category).collect()))
        .detail()
}

#[cfg(test)]
mod tests;
