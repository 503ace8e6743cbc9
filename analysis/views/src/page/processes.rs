//! The tables of processes, programs and threads.

use proctrace_classify::labels::class_name;
use proctrace_findings::{Figure, LeftOut, PackedColumn, PackedTable};
use proctrace_overview::figures::OfProcesses;
use proctrace_recording::Recording;
use proctrace_recording::books::detached::is_detached;
use proctrace_recording::process::Process;
use proctrace_wire::Quantity;

use super::strings::Strings;
use super::{STEPS_MAX, THREADS_MAX, known, since, unknown, wide};
use crate::gantt::lanes::Lanes;

/// Every process, in order of birth. A parent is given as the distance to it.
pub(super) fn processes(
    recording: &Recording,
    list_of: &[Option<u64>],
    strings: &mut Strings,
) -> PackedTable {
    let rows = recording.processes();
    let mut table = PackedTable::new("processes", rows.len());
    let back = |at: usize, to: Option<usize>| wide(at).checked_sub(wide(to?));
    let end = recording.recorded_ns();
    let born = |p: &Process| since(recording, p.born_ns).min(end);
    let shape = |run: Option<u32>| Some(recording.runs().get(run? as usize)?.template);
    table.columns = vec![
        PackedColumn::ascending("start_ns", rows.iter().map(|p| Some(born(p)))),
        PackedColumn::of("life_ns", rows.iter().map(Process::life_ns)),
        PackedColumn::of("program", rows.iter().map(|p| Some(wide(p.program())))),
        PackedColumn::of("parent", rows.iter().enumerate().map(|(at, p)| back(at, p.parent()))),
        PackedColumn::ascending("pid", rows.iter().map(|p| u64::try_from(p.pid).ok())),
        PackedColumn::of("status", rows.iter().map(|p| p.status().map(u64::from))),
        PackedColumn::of("detached", rows.iter().map(|p| is_detached(recording, p).then_some(1))),
        PackedColumn::of("reaper", rows.iter().enumerate().map(|(at, p)| back(at, p.reaper()))),
        PackedColumn::of("spawner", rows.iter().map(|p| recording.spawner_of(p).map(wide))),
        PackedColumn::of("role", {
            rows.iter().map(|p| strings.number_of(recording.role_of(p)?)).collect::<Vec<_>>()
        }),
        known(recording, &[Quantity::Argv], "shape", || {
            let text = |p: &Process| recording.templates().get(shape(p.run())? as usize);
            rows.iter().map(|p| strings.number_of(text(p)?)).collect::<Vec<_>>()
        }),
        known(recording, &[Quantity::Forks], "threads", || {
            rows.iter().map(|p| Some(wide(p.tasks().len()).saturating_sub(1)))
        }),
        known(recording, &[Quantity::Execs], "execs", || rows.iter().map(|p| Some(p.execs.into()))),
        PackedColumn::of("misses", list_of.iter().copied()),
    ];
    if !recording.steps().all.is_empty() {
        // Of those that have none in the page, the step that they are a part of, which comes before.
        let step = |at: usize| {
            let step = recording.steps().of_process(u32::try_from(at).ok()?)?;
            recording.steps().up(step).find(|step| (*step as usize) < STEPS_MAX).map(u64::from)
        };
        table.columns.push(PackedColumn::of("step", (0..rows.len()).map(step)));
    }
    figures(recording, &mut table);
    table
}

/// Adds the figures of processes.
fn figures(recording: &Recording, table: &mut PackedTable) {
    let all = OfProcesses::new(recording, 0..recording.processes().len());
    for figure in Figure::ALL.into_iter().filter(|figure| !figure.is_raw()) {
        table.columns.push(match all.column(figure) {
            Some(values) => PackedColumn::of(figure.name(), values),
            None => unknown(recording, figure.needs(), figure.name()),
        });
    }
}

/// Every program, with its category, class and lane.
pub(super) fn programs(recording: &Recording, lanes: &Lanes, strings: &mut Strings) -> PackedTable {
    let programs = recording.programs();
    let mut table = PackedTable::new("programs", programs.len());
    let category = |at: usize| recording.category_of_programs().get(at).copied();
    let who = recording.knows().all(&Quantity::WHO);
    let mut text = |of: &dyn Fn(usize) -> Option<String>| -> Vec<Option<u64>> {
        (0..programs.len()).map(|at| strings.number_of(&of(at)?)).collect()
    };
    let names = text(&|at| Some(programs[at].name.clone()).filter(|_| who));
    let categories = text(&|at| recording.categories().get(category(at)?).cloned());
    let classes = text(&|at| Some(class_name(programs[at].class).to_owned()));
    table.columns = vec![
        PackedColumn::of("name", names),
        PackedColumn::of("category", categories),
        PackedColumn::of("class", classes),
        PackedColumn::of(
            "lane",
            (0..programs.len()).map(|at| Some(wide(lanes.of_category(category(at)?)))),
        ),
    ];
    table
}

/// Threads other than the first of each process, by process.
pub(super) fn threads(recording: &Recording, left_out: &mut Vec<LeftOut>) -> PackedTable {
    let all = |process: &Process| {
        let tasks: Vec<usize> = process.tasks().collect();
        tasks.into_iter().filter(|task| recording.tasks()[*task].is_thread)
    };
    let of = recording.tasks().iter().filter(|task| task.is_thread).count();
    let tasks: Vec<usize> = recording.processes().iter().flat_map(all).take(THREADS_MAX).collect();
    if tasks.len() < of {
        left_out.push(LeftOut { what: "threads", shown: wide(tasks.len()), of: wide(of) });
    }
    let end = recording.recorded_ns();
    let rows = || tasks.iter().map(|at| &recording.tasks()[*at]);
    let mut table = PackedTable::new("threads", tasks.len());
    table.columns = vec![
        PackedColumn::ascending("process", rows().map(|task| Some(wide(task.process())))),
        PackedColumn::ascending(
            "tid",
            rows().map(|task| task.tid().and_then(|tid| u64::try_from(tid).ok())),
        ),
        PackedColumn::ascending(
            "start_ns",
            rows().map(|task| Some(since(recording, task.born_ns).min(end))),
        ),
        PackedColumn::of(
            "life_ns",
            rows().map(|task| Some(task.ended_ns()?.saturating_sub(task.born_ns))),
        ),
        known(recording, &[Quantity::Cpu], "cpu_ns", || rows().map(|task| Some(task.cpu_used().0))),
    ];
    table
}
