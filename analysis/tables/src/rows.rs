//! The tables that are in memory once a recording is loaded: processes, threads, bins, losses and
//! the recording itself.

use std::ops::Range;

use polars::prelude::*;
use proctrace_classify::labels::class_name;
use proctrace_findings::{Class, Figure};
use proctrace_overview::figures::{OfProcesses, of_threads};
use proctrace_recording::Recording;
use proctrace_recording::bin_series::{BinKind, BinSeries};
use proctrace_recording::books::detached::is_detached;
use proctrace_recording::books::waits::Accounting;
use proctrace_recording::opened::FileUse;
use proctrace_recording::process::Process;
use proctrace_recording::task::Task;
use proctrace_replay::Usage;
use proctrace_wire::escape::to_text;
use proctrace_wire::layout::LOSS_ANY_CPU;
use proctrace_wire::{Kind, LossReason, Outcome, Quantity, dumped_core};

use crate::error::TableError;
use crate::frame::{Frame, Wanted, Words};
use crate::schema::TableSchema;

/// The dictionaries of name columns, built once for all rows.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) programs: Words,
    pub(crate) categories: Words,
    pub(crate) classes: Words,
    pub(crate) roles: Words,
    pub(crate) templates: Words,
    class_of: Vec<u32>,
    depths: Vec<u32>,
}

const CLASSES: [Class; 3] = [Class::Command, Class::Framework, Class::Program];

impl Names {
    pub(crate) fn of(recording: &Recording) -> Self {
        let class = |class: Class| CLASSES.iter().position(|known| *known == class).unwrap_or(0);
        Self {
            programs: Words::new(recording.programs().iter().map(|program| &*program.name)),
            categories: Words::new(recording.categories()),
            classes: Words::new(CLASSES.map(class_name)),
            roles: Words::new(recording.roles()),
            templates: Words::new(recording.templates()),
            depths: recording.depths(),
            class_of: recording.programs().iter().map(|p| number(class(p.class))).collect(),
        }
    }

    pub(crate) fn class_of(&self, program: usize) -> Option<u32> {
        self.class_of.get(program).copied()
    }
}

pub(crate) fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Time since the start of the recording.
pub(crate) fn since(recording: &Recording, time_ns: u64) -> u64 {
    time_ns.saturating_sub(recording.first_ns())
}

pub(crate) fn category_of(recording: &Recording, program: usize) -> Option<u32> {
    recording.category_of_programs().get(program).copied().map(number)
}

/// Rows for a range of processes.
pub(crate) fn processes(
    recording: &Recording,
    names: &Names,
    schema: &'static TableSchema,
    wanted: &Wanted,
    range: Range<usize>,
) -> Result<DataFrame, TableError> {
    let rows = &recording.processes()[range.clone()];
    let mut frame = Frame::new(schema, wanted, rows.len());
    let serial = |at: usize| recording.processes().get(at).map(|process| process.serial);
    frame.values("process_id", || rows.iter().map(|p| p.serial).collect());
    frame.values("pid", || rows.iter().map(|p| p.pid).collect());
    frame.options("parent_id", || rows.iter().map(|p| serial(p.parent()?)).collect());
    frame.options("reaper_id", || rows.iter().map(|p| serial(p.reaper()?)).collect());
    frame.values("depth", || names.depths[range.clone()].to_vec());
    programs_of_processes(&mut frame, recording, names, rows);
    lives_of_processes(&mut frame, recording, rows);
    let figures = OfProcesses::new(recording, range);
    for figure in Figure::ALL {
        frame.figure(figure, || figures.column(figure));
    }
    frame.finish()
}

/// The dictionary of opened files.
pub(crate) fn opened_paths(recording: &Recording) -> Words {
    let paths = recording.opened().into_iter().flat_map(|opened| &opened.paths);
    Words::new(paths.map(|path| to_text(path)))
}

/// Uses of opened files.
pub(crate) fn opened_uses(recording: &Recording) -> &[FileUse] {
    recording.opened().map_or(&[], |opened| &opened.uses)
}

/// Rows for a range of the uses of opened files.
pub(crate) fn opened_files(
    recording: &Recording,
    paths: &Words,
    schema: &'static TableSchema,
    wanted: &Wanted,
    range: Range<usize>,
) -> Result<DataFrame, TableError> {
    let rows = &opened_uses(recording)[range];
    let mut frame = Frame::new(schema, wanted, rows.len());
    let serial = |at: u32| recording.processes().get(at as usize).map(|process| process.serial);
    frame.options("process_id", || rows.iter().map(|used| serial(used.process)).collect());
    let step = |used: &FileUse| recording.steps().of_process(used.process);
    frame.options("step_id", || rows.iter().map(step).collect());
    frame.values("opens", || rows.iter().map(|used| u64::from(used.opens)).collect());
    frame.values("reads", || rows.iter().map(|used| used.modes.read).collect());
    frame.values("writes", || rows.iter().map(|used| used.modes.write).collect());
    frame.values("first_ns", || rows.iter().map(|used| since(recording, used.first_ns)).collect());
    frame.values("last_ns", || rows.iter().map(|used| since(recording, used.last_ns)).collect());
    frame.words("path", paths, || rows.iter().map(|used| Some(used.file)).collect());
    frame.finish()
}

/// Adds the programs of processes, and those that started them.
fn programs_of_processes(
    frame: &mut Frame<'_>,
    recording: &Recording,
    names: &Names,
    rows: &[Process],
) {
    let knows = recording.knows();
    let (who, execs) = (knows.all(&Quantity::WHO), knows.all(&[Quantity::Execs]));
    let argv = knows.all(&[Quantity::Argv]);
    let program = |number: usize| who.then(|| u32::try_from(number).ok()).flatten();
    let shape = |run: Option<u32>| argv.then_some(recording.runs().get(run? as usize)?.template);
    frame.words("program", &names.programs, || rows.iter().map(|p| program(p.program())).collect());
    frame.words("category", &names.categories, || {
        let of = |p: &Process| category_of(recording, p.program()).filter(|_| who);
        rows.iter().map(of).collect()
    });
    frame.words("class", &names.classes, || {
        rows.iter().map(|p| names.class_of(p.program()).filter(|_| who)).collect()
    });
    frame.words("role", &names.roles, || rows.iter().map(|p| p.role()).collect());
    frame
        .words("command_shape", &names.templates, || rows.iter().map(|p| shape(p.run())).collect());
    frame.options("exec_id", || rows.iter().map(|p| p.run()).collect());
    frame.options("step_id", || {
        (0..rows.len()).map(|at| recording.steps().of_process(number(at))).collect()
    });
    frame.known("execs", execs, || rows.iter().map(|p| p.execs).collect());
    frame.known("forked", execs, || rows.iter().map(|p| p.execs == 0).collect());
    frame.words("spawner", &names.programs, || {
        rows.iter().map(|p| program(recording.spawner_of(p)?)).collect()
    });
    frame.words("spawner_shape", &names.templates, || {
        rows.iter().map(|p| shape(p.spawned_in())).collect()
    });
    frame.options("spawner_exec_id", || rows.iter().map(|p| p.spawned_in()).collect());
    frame.known("threads", knows.all(&[Quantity::Forks]), || {
        rows.iter().map(|p| number(p.tasks().len()).saturating_sub(1)).collect()
    });
}

/// Adds begin, end and outcome of processes.
fn lives_of_processes(frame: &mut Frame<'_>, recording: &Recording, rows: &[Process]) {
    let at = |time_ns: u64| since(recording, time_ns);
    let outcome = |p: &Process| p.status().map(Outcome::of_status);
    // Before 0 if it was there before.
    let start =
        |p: &Process| Some(p.started_ns()?.wrapping_sub(recording.first_ns()).cast_signed());
    frame.options("start_ns", || rows.iter().map(start).collect());
    frame.options("end_ns", || rows.iter().map(|p| p.ended_ns().map(at)).collect());
    frame.options("life_ns", || rows.iter().map(|p| p.life_ns()).collect());
    frame.options("exit_code", || rows.iter().map(|p| outcome(p)?.code()).collect());
    frame.options("signal", || rows.iter().map(|p| outcome(p)?.signal()).collect());
    frame.options("core_dump", || rows.iter().map(|p| p.status().map(dumped_core)).collect());
    frame.values("detached", || rows.iter().map(|p| is_detached(recording, p)).collect());
}

/// Rows for a range of threads.
pub(crate) fn threads(
    recording: &Recording,
    schema: &'static TableSchema,
    wanted: &Wanted,
    range: Range<usize>,
) -> Result<DataFrame, TableError> {
    let rows = &recording.tasks()[range];
    let used: Vec<Usage> = rows.iter().map(Task::used).collect();
    let mut frame = Frame::new(schema, wanted, rows.len());
    frame.values("thread_id", || rows.iter().map(|t| t.serial).collect());
    frame.values("process_id", || {
        rows.iter().map(|t| recording.processes()[t.process()].serial).collect()
    });
    let step = |task: &Task| recording.steps().of_process(number(task.process()));
    frame.options("step_id", || rows.iter().map(step).collect());
    frame.options("tid", || rows.iter().map(|t| t.tid()).collect());
    frame.values("first", || rows.iter().map(|t| !t.is_thread).collect());
    // Of threads that were there before, it is not kept.
    let start = |t: &Task| {
        let process = &recording.processes()[t.process()];
        let started_ns = if !t.is_thread {
            process.started_ns()
        } else {
            (t.forked || !process.was_there()).then_some(t.born_ns)
        };
        Some(started_ns?.wrapping_sub(recording.first_ns()).cast_signed())
    };
    frame.options("start_ns", || rows.iter().map(start).collect());
    frame
        .options("end_ns", || rows.iter().map(|t| Some(since(recording, t.ended_ns()?))).collect());
    for figure in Figure::ALL.into_iter().filter(|figure| figure.says_of_thread().is_some()) {
        frame.figure(figure, || of_threads(recording, figure, rows, &used));
    }
    frame.finish()
}

/// Activity of the whole tree per bin.
pub(crate) fn bins(
    recording: &Recording,
    schema: &'static TableSchema,
    wanted: &Wanted,
) -> Result<DataFrame, TableError> {
    let (bins, knows) = (recording.bins(), recording.knows());
    let len = bins.len();
    let mut frame = Frame::new(schema, wanted, len);
    frame.values("bin", || (0..len).map(number).collect());
    frame.values("start_ns", || (0..len as u64).map(|bin| bin * bins.width_ns).collect());
    frame.values("width_ns", || vec![bins.width_ns; len]);
    for quantity in BinSeries::SHOWN {
        let (name, known) = (quantity.name(), knows.all(quantity.needs()));
        let values = bins.of(quantity);
        match quantity.kind() {
            BinKind::Amount | BinKind::Mean => frame.known(name, known, || values.to_vec()),
            BinKind::Events => {
                // Far below the range in which a float would round.
                frame.known(name, known, || values.iter().map(|value| *value as u64).collect());
            }
            BinKind::Sampled => {
                let from = bins.known_from(quantity);
                let value = |(at, value): (usize, &f64)| (known && at >= from).then_some(*value);
                frame.options(name, || values.iter().enumerate().map(value).collect());
            }
        }
    }
    frame.finish()
}

/// The same by category, without bins in which a category was inactive.
pub(crate) fn category_bins(
    recording: &Recording,
    names: &Names,
    schema: &'static TableSchema,
    wanted: &Wanted,
) -> Result<DataFrame, TableError> {
    let knows = recording.knows();
    let mut rows: Vec<(u32, u32, f64, f64, u64)> = Vec::new();
    if knows.all(&Quantity::WHO) {
        for (category, bins) in recording.bins().categories.iter().enumerate() {
            for (bin, user_ns) in bins.user_ns.iter().enumerate() {
                let (system_ns, born) = (bins.system_ns[bin], bins.processes[bin] as u64);
                if *user_ns != 0.0 || system_ns != 0.0 || born != 0 {
                    rows.push((number(bin), number(category), *user_ns, system_ns, born));
                }
            }
        }
    }
    rows.sort_unstable_by_key(|row| (row.0, row.1));
    let split = knows.all(&[Quantity::Cpu, Quantity::Split]);
    let mut frame = Frame::new(schema, wanted, rows.len());
    frame.values("bin", || rows.iter().map(|row| row.0).collect());
    frame.words("category", &names.categories, || rows.iter().map(|row| Some(row.1)).collect());
    frame.known("user_ns", split, || rows.iter().map(|row| row.2).collect());
    frame.known("system_ns", split, || rows.iter().map(|row| row.3).collect());
    frame.values("processes_born", || rows.iter().map(|row| row.4).collect());
    frame.finish()
}

/// Lost records.
pub(crate) fn losses(
    recording: &Recording,
    schema: &'static TableSchema,
    wanted: &Wanted,
) -> Result<DataFrame, TableError> {
    let losses = recording.counts().losses.iter();
    let mut rows: Vec<((u16, u16, u32), u64)> =
        losses.filter(|(_, count)| **count > 0).map(|(key, count)| (*key, *count)).collect();
    rows.sort_unstable();
    let mut frame = Frame::new(schema, wanted, rows.len());
    frame.options("kind", || {
        rows.iter().map(|row| Kind::from_number(row.0.0).map(Kind::name)).collect()
    });
    frame.options("reason", || {
        rows.iter().map(|row| LossReason::from_number(row.0.1).map(LossReason::name)).collect()
    });
    frame.options("cpu", || {
        rows.iter().map(|row| Some(row.0.2).filter(|cpu| *cpu != LOSS_ANY_CPU)).collect()
    });
    frame.values("records", || rows.iter().map(|row| row.1).collect());
    frame.finish()
}

/// The recording itself.
pub(crate) fn recording(
    recording: &Recording,
    schema: &'static TableSchema,
    wanted: &Wanted,
) -> Result<DataFrame, TableError> {
    let header = recording.header();
    let accounting = Accounting::of(recording);
    let summary = proctrace_overview::summary::summary(recording, &accounting);
    let outcome = recording.trailer().and_then(|trailer| trailer.payload.as_ref());
    let outcome = outcome.map(|payload| payload.outcome);
    let (code, signal) = (outcome.and_then(Outcome::code), outcome.and_then(Outcome::signal));
    let lost = recording.counts().losses.values().copied().fold(0, u64::saturating_add);
    let mut frame = Frame::new(schema, wanted, 1);
    frame.lists("command", || vec![Some(header.command.iter().map(String::as_str).collect())]);
    frame.options("host", || vec![Some(header.host.clone()).filter(|host| !host.is_empty())]);
    frame.options("kernel", || vec![Some(header.kernel.clone()).filter(|it| !it.is_empty())]);
    frame.options("cpus", || vec![Some(header.cpus).filter(|cpus| *cpus > 0)]);
    frame.options("cwd", || vec![Some(header.cwd.clone()).filter(|cwd| !cwd.is_empty())]);
    frame.options("started_unix_ns", || {
        vec![Some(header.started_unix_ns).filter(|started_ns| *started_ns > 0)]
    });
    frame.values("wall_ns", || vec![recording.wall_ns()]);
    frame.values("recorded_ns", || vec![recording.recorded_ns()]);
    frame.values("interval_ns", || vec![header.interval_ns]);
    frame.options("exit_code", || vec![code]);
    frame.options("signal", || vec![signal]);
    frame.values("complete", || vec![recording.trailer().is_some()]);
    frame.values("lost_records", || vec![lost]);
    frame.options("processes", || vec![summary.processes]);
    frame.options("threads", || vec![summary.threads]);
    frame.options("execs", || vec![summary.execs]);
    frame.options("cpu_ns", || vec![summary.cpu_ns]);
    frame.options("user_ns", || vec![summary.user_ns]);
    frame.options("system_ns", || vec![summary.system_ns]);
    frame.finish()
}
