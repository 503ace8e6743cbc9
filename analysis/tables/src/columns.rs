//! Columns that several tables have, and those of processes, threads and bins.

use proctrace_findings::Figure;
use proctrace_recording::bin_series::{BinKind, BinSeries};

use super::schema::{ColumnKind, ColumnSchema};

pub(super) const fn column(
    name: &'static str,
    kind: ColumnKind,
    says: &'static str,
) -> ColumnSchema {
    ColumnSchema { name, kind, says }
}

use ColumnKind::{F64, Flag, I32, I64, Text, U32};

pub(super) const PROCESS_ID: ColumnSchema =
    column("process_id", U32, "The process: its number, unique within the recording.");
pub(super) const THREAD_ID: ColumnSchema =
    column("thread_id", U32, "The task: its number, unique within the recording.");
pub(super) const EXEC_ID: ColumnSchema = column(
    "exec_id",
    U32,
    "The most recent exec of the process at that time; null before its first.",
);
pub(super) const STEP_ID: ColumnSchema = column(
    "step_id",
    U32,
    "The innermost step that the process belongs to; null if it belongs to none.",
);
pub(super) const TIME_NS: ColumnSchema =
    column("time_ns", I64, "Time since the start of the recording.");

const OF_PROCESSES: &[ColumnSchema] = &[
    PROCESS_ID,
    column("pid", I32, "Its pid; pids are reused."),
    column(
        "parent_id",
        U32,
        "process_id of the parent that created it; null for the command, and if the parent \
                 is not part of the recording.",
    ),
    column(
        "reaper_id",
        U32,
        "process_id of the process that could wait for it when it ended: its parent, or \
                 the process that adopted it; null if that is not part of the recording.",
    ),
    column("depth", I64, "Number of forks between the command and it."),
    column(
        "program",
        Text,
        "The program it ran last; its parent's program if it never called exec.",
    ),
    column("category", Text, "The category of that program."),
    column(
        "class",
        Text,
        "command (a system command), framework (an experiment's software) or program (any \
                 other).",
    ),
    column(
        "role",
        Text,
        "Its role among processes that run the same program; null if it has none.",
    ),
    column(
        "command_shape",
        Text,
        "Shape of its last command line, with numbers and random characters replaced by #; \
                 null if neither its own nor its parent's command line was recorded.",
    ),
    column("exec_id", U32, "Its last exec, or that of its parent if it never called exec."),
    STEP_ID,
    column("execs", I64, "Its successful execs; null if execs are not known."),
    column(
        "forked",
        Flag,
        "Whether it never called exec: a fork that continues with its parent's program.",
    ),
    column(
        "spawner",
        Text,
        "The program that started it; null if that is not part of the recording.",
    ),
    column("spawner_shape", Text, "Shape of the command line of that program."),
    column("spawner_exec_id", U32, "The most recent exec of its parent at that time."),
    column("threads", I64, "Threads in addition to its first."),
    column(
        "start_ns",
        I64,
        "Time of its creation, since the start of the recording: negative if it was there \
                 before, null if it is not known.",
    ),
    column("end_ns", I64, "Time of the exit of its last thread; null if that was not recorded."),
    column("life_ns", I64, "end_ns - start_ns."),
    column(
        "exit_code",
        I32,
        "Its exit status; null if a signal killed it or its end was not recorded.",
    ),
    column("signal", I32, "The signal that killed it."),
    column("core_dump", Flag, "Whether it left a core dump; null if its end was not recorded."),
    column("detached", Flag, "Whether it outlived its parent."),
];

const OF_THREADS: &[ColumnSchema] = &[
    THREAD_ID,
    PROCESS_ID,
    STEP_ID,
    column("tid", I32, "Its thread id; null if the record of its creation was lost."),
    column("first", Flag, "Whether it is the first thread of the process."),
    column(
        "start_ns",
        I64,
        "Time of its creation, since the start of the recording; null for threads that \
                 were there before.",
    ),
    column("end_ns", I64, "Time of its exit; null if that was not recorded."),
];

pub(super) const PROCESSES: [ColumnSchema; OF_PROCESSES.len() + Figure::ALL.len()] =
    with_figures(OF_PROCESSES, false);

pub(super) const THREADS: [ColumnSchema; OF_THREADS.len() + figures_of_threads()] =
    with_figures(OF_THREADS, true);

/// Columns, followed by one for each figure of a process, or of a thread.
const fn with_figures<const N: usize>(
    columns: &[ColumnSchema],
    of_threads: bool,
) -> [ColumnSchema; N] {
    let mut all = [PROCESS_ID; N];
    let mut at = 0;
    while at < columns.len() {
        all[at] = columns[at];
        at += 1;
    }
    let mut next = 0;
    while next < Figure::ALL.len() {
        let figure = Figure::ALL[next];
        let says = match of_threads {
            true => figure.says_of_thread(),
            false => Some(figure.says()),
        };
        if let Some(says) = says {
            all[at] = column(figure.name(), I64, says);
            at += 1;
        }
        next += 1;
    }
    assert!(at == N);
    all
}

const fn figures_of_threads() -> usize {
    let (mut count, mut next) = (0, 0);
    while next < Figure::ALL.len() {
        count += Figure::ALL[next].says_of_thread().is_some() as usize;
        next += 1;
    }
    count
}

const OF_BINS: &[ColumnSchema] = &[
    column("bin", U32, "Its number, from 0."),
    column("start_ns", I64, "Its start, since the start of the recording."),
    column("width_ns", I64, "Its width."),
];

/// Columns of a bin, followed by one for each quantity over time.
pub(super) const BINS: [ColumnSchema; OF_BINS.len() + BinSeries::SHOWN.len()] = {
    let mut all = [PROCESS_ID; OF_BINS.len() + BinSeries::SHOWN.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < OF_BINS.len() {
            OF_BINS[at]
        } else {
            let quantity = BinSeries::SHOWN[at - OF_BINS.len()];
            let kind = match quantity.kind() {
                BinKind::Events => I64,
                _ => F64,
            };
            column(quantity.name(), kind, quantity.says())
        };
        at += 1;
    }
    all
};
