//! The schema of the tables of a recording: their names, columns, types and meanings.
//!
//! This is a public interface: columns may be added, but neither renamed nor redefined.

use polars::prelude::DataType;

/// A table.
#[derive(Debug, Clone, Copy)]
pub struct TableSchema {
    /// Its name.
    pub name: &'static str,
    /// What a row represents.
    pub says: &'static str,
    /// Its columns.
    pub columns: &'static [ColumnSchema],
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct ColumnSchema {
    /// Its name, with its unit as suffix if it has one.
    pub name: &'static str,
    /// The type of its values.
    pub kind: ColumnKind,
    /// What it contains, and when it is null.
    pub says: &'static str,
}

/// The type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// An identifier, up to 2^32.
    U32,
    /// An identifier, up to 2^64.
    U64,
    /// An integer. Quantities have this type although none is negative: their differences may be.
    I64,
    /// An integer below 2^31.
    I32,
    /// A floating-point number.
    F64,
    /// True or false.
    Flag,
    /// Any string: bytes that are not UTF-8 appear as `\xHH`.
    Text,
    /// A list of strings.
    Texts,
}

impl ColumnKind {
    /// Its SQL type name.
    pub fn sql(self) -> &'static str {
        match self {
            Self::U32 => "INTEGER UNSIGNED",
            Self::U64 => "BIGINT UNSIGNED",
            Self::I64 => "BIGINT",
            Self::I32 => "INTEGER",
            Self::F64 => "DOUBLE",
            Self::Flag => "BOOLEAN",
            Self::Text => "TEXT",
            Self::Texts => "TEXT[]",
        }
    }

    pub(crate) fn dtype(self) -> DataType {
        match self {
            Self::U32 => DataType::UInt32,
            Self::U64 => DataType::UInt64,
            Self::I64 => DataType::Int64,
            Self::I32 => DataType::Int32,
            Self::F64 => DataType::Float64,
            Self::Flag => DataType::Boolean,
            Self::Text => DataType::String,
            Self::Texts => DataType::List(Box::new(DataType::String)),
        }
    }
}

impl ColumnSchema {
    /// The unit of its values, derived from its name.
    pub fn unit(&self) -> Option<&'static str> {
        const UNITS: [(&str, &str); 3] = [("_ns", "ns"), ("_bytes", "B"), ("_percent", "%")];
        UNITS.iter().find(|(ending, _)| self.name.ends_with(ending)).map(|(_, unit)| *unit)
    }
}

impl TableSchema {
    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&'static ColumnSchema> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The table of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        TABLES.iter().find(|table| table.name == name)
    }
}

/// The contents of docs/tables.md: every table and column.
pub fn tables_markdown() -> String {
    let mut out = String::from(INTRODUCTION);
    for table in TABLES {
        out.push_str(&format!("\n## `{}`\n\n{}\n\n", table.name, table.says));
        out.push_str("| column | type | unit | what it holds |\n|---|---|---|---|\n");
        for column in table.columns {
            out.push_str(&format!(
                "| `{}` | {} | {} | {} |\n",
                column.name,
                column.kind.sql(),
                column.unit().unwrap_or_default(),
                column.says
            ));
        }
    }
    out
}

const INTRODUCTION: &str = "\
# The tables of a recording

`proctrace query` asks these tables by SQL, `proctrace export` writes them as Parquet, Arrow or CSV.
[queries.md](queries.md) has examples. This page is made from the code, and a test holds it to that.

* Every table of an answer or a file has one more column, `recording`, which names the recording: its
  file without directory and ending, or the path as given where two would be the same.
* `process_id`, `thread_id` and `exec_id` are numbers within one recording: join by these and by
  `recording`. Pids are used again and are no keys.
* Times count from the start of the recording; `recording.started_unix_ns` says when that was.
* Units are the endings of names: `_ns`, `_bytes`, `_percent`.
* What a recording does not know is null, never 0: what was left out (`record --misses none`), lost, or
  never happened (the signal of a process that exited by itself).
* Bytes of paths and arguments that are no UTF-8 appear as `\\xHH`; [formats.md](formats.md) says what CSV and JSON do with
  control characters and formulas. Lists are JSON in CSV.
* In SQL whole numbers are BIGINT, those that are INTEGER here as well: their differences may be negative.
* The schema is an interface: columns are added, and neither renamed nor given another meaning.
";

const fn column(name: &'static str, kind: ColumnKind, says: &'static str) -> ColumnSchema {
    ColumnSchema { name, kind, says }
}

use ColumnKind::{F64, Flag, I32, I64, Text, Texts, U32, U64};

const PROCESS_ID: ColumnSchema =
    column("process_id", U32, "The process: its number in this recording, which no other has.");
const THREAD_ID: ColumnSchema =
    column("thread_id", U32, "The task: its number in this recording, which no other has.");
const EXEC_ID: ColumnSchema = column(
    "exec_id",
    U32,
    "The exec that the process had last called by then; null before its first.",
);
const TIME_NS: ColumnSchema = column("time_ns", I64, "When, from the start of the recording.");

/// Every table, most useful first.
pub const TABLES: &[TableSchema] = &[
    TableSchema {
        name: "processes",
        says: "A process (thread group), from its birth to the exit of its last thread.",
        columns: &[
            PROCESS_ID,
            column("pid", I32, "Its pid; pids are used again."),
            column(
                "parent_id",
                U32,
                "process_id of the parent that it was born to; null for the command and where that is not of the recording.",
            ),
            column(
                "reaper_id",
                U32,
                "process_id of the one that could wait for it when it ended: its parent, or who adopted it; null where that is not of the recording.",
            ),
            column("depth", I64, "Forks from the command down."),
            column(
                "program",
                Text,
                "What it ran last; what its parent ran if it never called exec.",
            ),
            column("category", Text, "The category that program counts in."),
            column(
                "class",
                Text,
                "command (of the system), framework (an experiment's software) or program (any other).",
            ),
            column("role", Text, "What tells it from others that run the same, if anything does."),
            column(
                "command_shape",
                Text,
                "Shape of its last command line: numbers and random characters written as #; null if it never ran anything of its own or its parent's that was recorded.",
            ),
            column(
                "exec_id",
                U32,
                "The exec that it ended in: its own last one, or that of its parent if it never called exec.",
            ),
            column(
                "execs",
                I64,
                "How often it called exec with success; null where execs are not known.",
            ),
            column(
                "forked",
                Flag,
                "Whether it never called exec: a fork that goes on with its parent's program.",
            ),
            column(
                "spawner",
                Text,
                "The program that started it; null where that is not of the recording.",
            ),
            column("spawner_shape", Text, "Shape of the command line of that program."),
            column("spawner_exec_id", U32, "The exec that its parent was in then."),
            column("threads", I64, "Threads beside its first."),
            column("start_ns", I64, "When it was born, from the start of the recording."),
            column("end_ns", I64, "When its last thread exited; null if that was not recorded."),
            column("life_ns", I64, "end_ns - start_ns."),
            column(
                "exit_code",
                I32,
                "Its exit status; null if a signal killed it or its end was not recorded.",
            ),
            column("signal", I32, "The signal that killed it."),
            column(
                "core_dump",
                Flag,
                "Whether it left a core dump; null if its end was not recorded.",
            ),
            column("detached", Flag, "Whether it was still there when its parent had gone."),
            column("cpu_ns", I64, "CPU time of its threads while recorded: exact."),
            column(
                "user_ns",
                I64,
                "User time: estimated from pooled ticks; sums over many processes are good, single short ones are not.",
            ),
            column("system_ns", I64, "System time, likewise; user_ns + system_ns = cpu_ns."),
            column(
                "user_ticks_ns",
                I64,
                "The kernel's ticks that hit it in user mode, times their distance.",
            ),
            column("system_ticks_ns", I64, "The same in kernel mode."),
            column(
                "children_waited_cpu_ns",
                I64,
                "CPU time of children that it had waited for; null unless its end was recorded.",
            ),
            column("run_delay_ns", I64, "Time its threads were runnable without a CPU."),
            column("voluntary_switches", I64, "Voluntary context switches."),
            column("involuntary_switches", I64, "Involuntary context switches."),
            column("migrations", I64, "Moves of its threads to another CPU."),
            column("minor_faults", I64, "Minor page faults."),
            column("major_faults", I64, "Major page faults."),
            column("read_bytes", I64, "Bytes read from storage."),
            column("write_bytes", I64, "Bytes written to storage."),
            column(
                "read_call_bytes",
                I64,
                "Bytes read by system calls, from the page cache and pipes as well.",
            ),
            column("write_call_bytes", I64, "Bytes written by system calls."),
            column(
                "peak_rss_bytes",
                I64,
                "Peak resident memory of what it ran last; of one that never ended, the last sample of it.",
            ),
            column("opens", I64, "Successful opens."),
            column(
                "failed_lookups",
                I64,
                "Failed look-ups as recorded, without readlinks of what is no link; null where a family of calls is not known.",
            ),
        ],
    },
    TableSchema {
        name: "threads",
        says: "A task: a thread of a process, its first included.",
        columns: &[
            THREAD_ID,
            PROCESS_ID,
            column("tid", I32, "Its thread id; null where the record of its birth was lost."),
            column("first", Flag, "Whether the process was born with it."),
            column("start_ns", I64, "When it was born, from the start of the recording."),
            column("end_ns", I64, "When it exited; null if that was not recorded."),
            column("cpu_ns", I64, "CPU time while recorded: exact."),
            column(
                "user_ticks_ns",
                I64,
                "The kernel's ticks that hit it in user mode, times their distance.",
            ),
            column("system_ticks_ns", I64, "The same in kernel mode."),
            column("run_delay_ns", I64, "Time it was runnable without a CPU."),
            column("voluntary_switches", I64, "Voluntary context switches."),
            column("involuntary_switches", I64, "Involuntary context switches."),
            column("migrations", I64, "Moves to another CPU."),
            column("minor_faults", I64, "Minor page faults."),
            column("major_faults", I64, "Major page faults."),
            column("read_bytes", I64, "Bytes read from storage."),
            column("write_bytes", I64, "Bytes written to storage."),
            column("read_call_bytes", I64, "Bytes read by system calls."),
            column("write_call_bytes", I64, "Bytes written by system calls."),
            column("opens", I64, "Successful opens; null if its end was not recorded."),
        ],
    },
    TableSchema {
        name: "execs",
        says: "A successful exec, or what was running when the recording began.",
        columns: &[
            column("exec_id", U32, "The exec: its number in this recording."),
            PROCESS_ID,
            TIME_NS,
            column(
                "recorded",
                Flag,
                "False for what was already running when the recording began.",
            ),
            column("program", Text, "The program, as the rules name it."),
            column("category", Text, "The category that program counts in."),
            column("class", Text, "command, framework or program."),
            column("path", Text, "The path as given to execve."),
            column("interpreter", Text, "The interpreter of the #! line; null if there is none."),
            column("exe", Text, "The file that runs, resolved."),
            column("cwd", Text, "The working directory."),
            column("argv", Texts, "The arguments."),
            column("argv_truncated", Flag, "Whether arguments are missing."),
            column("command_line", Text, "The arguments with a space between them."),
            column(
                "command_shape",
                Text,
                "The same with numbers and random characters written as #.",
            ),
            column(
                "environment_id",
                U64,
                "The environment it was given; null where none was kept.",
            ),
            column(
                "failed_lookups",
                I64,
                "Failed look-ups until the next exec of the process, or its end.",
            ),
            column(
                "loading_failed_lookups",
                I64,
                "Of them, those while its libraries were loaded, as far as failed look-ups tell.",
            ),
            column(
                "loaded_ns",
                I64,
                "From the exec to the last of these: a lower bound of the time to load its libraries; null if there was none.",
            ),
        ],
    },
    TableSchema {
        name: "lookups",
        says: "A failed look-up of a path.",
        columns: &[
            PROCESS_ID,
            THREAD_ID,
            EXEC_ID,
            column(
                "time_ns",
                I64,
                "When, from the start of the recording: up to a tick of the scheduler early, so that several have \
                 the same.",
            ),
            column(
                "program",
                Text,
                "What the process ran then; what it ran last where that is not known.",
            ),
            column("call", Text, "The system call."),
            column("family", Text, "open, stat, access, readlink, chdir; null for other calls."),
            column("errno", Text, "The error, as ENOENT."),
            column("path", Text, "The path as given to the call; null where it could not be read."),
            column("directory", Text, "All of it before the last component."),
            column(
                "in_vain",
                Flag,
                "False for a readlink of what is there but no link: nothing was looked for in vain.",
            ),
        ],
    },
    TableSchema {
        name: "failed_execs",
        says: "A failed exec: mostly a search along PATH.",
        columns: &[
            PROCESS_ID,
            THREAD_ID,
            EXEC_ID,
            TIME_NS,
            column(
                "program",
                Text,
                "What the process ran then; what it ran last where that is not known.",
            ),
            column("errno", Text, "The error, as ENOENT."),
            column("path", Text, "The path as given to execve; null where it could not be read."),
            column("directory", Text, "All of it before the last component."),
        ],
    },
    TableSchema {
        name: "environments",
        says: "A variable of an environment that was kept: the search variables, and those that --env names.",
        columns: &[
            column("environment_id", U64, "The environment."),
            column("name", Text, "The name of the variable."),
            column("value", Text, "Its value."),
        ],
    },
    TableSchema {
        name: "renames",
        says: "A task that gave itself a name (prctl(PR_SET_NAME)).",
        columns: &[THREAD_ID, PROCESS_ID, TIME_NS, column("name", Text, "The new name.")],
    },
    TableSchema {
        name: "samples",
        says: "A live task at one pass of samples; its counters since its birth.",
        columns: &[
            THREAD_ID,
            PROCESS_ID,
            TIME_NS,
            column(
                "state",
                Text,
                "running (or runnable), sleeping, uninterruptible, stopped, or another.",
            ),
            column("cpu_ns", I64, "CPU time until then: exact."),
            column(
                "user_ticks_ns",
                I64,
                "The kernel's ticks that hit it in user mode, times their distance.",
            ),
            column("system_ticks_ns", I64, "The same in kernel mode."),
            column("run_delay_ns", I64, "Time it was runnable without a CPU."),
            column("voluntary_switches", I64, "Voluntary context switches."),
            column("involuntary_switches", I64, "Involuntary context switches."),
            column("minor_faults", I64, "Minor page faults."),
            column("major_faults", I64, "Major page faults."),
            column("read_bytes", I64, "Bytes read from storage."),
            column("write_bytes", I64, "Bytes written to storage."),
            column("read_call_bytes", I64, "Bytes read by system calls."),
            column("write_call_bytes", I64, "Bytes written by system calls."),
            column("rss_bytes", I64, "Resident memory of its process."),
        ],
    },
    TableSchema {
        name: "memory",
        says: "The memory of a process at one reading (record --memory).",
        columns: &[
            PROCESS_ID,
            TIME_NS,
            column("rss_bytes", I64, "Resident memory."),
            column(
                "pss_bytes",
                I64,
                "The same with each shared page divided by those that share it.",
            ),
            column("uss_bytes", I64, "Memory of its own."),
            column("shared_bytes", I64, "Memory that others share."),
            column("swap_bytes", I64, "Memory that is swapped out."),
        ],
    },
    TableSchema {
        name: "bins",
        says: "The whole tree in a stretch of time; all stretches are of one length.",
        columns: &[
            column("bin", U32, "Its number, from 0."),
            column("start_ns", I64, "When it begins, from the start of the recording."),
            column("width_ns", I64, "How long it is."),
            column(
                "user_ns",
                F64,
                "User time used in it: estimated from pooled ticks, spread evenly between readings.",
            ),
            column("system_ns", F64, "System time, likewise."),
            column("voluntary_switches", F64, "Voluntary context switches."),
            column("involuntary_switches", F64, "Involuntary context switches."),
            column("read_bytes", F64, "Bytes read from storage."),
            column("write_bytes", F64, "Bytes written to storage."),
            column("read_call_bytes", F64, "Bytes read by system calls."),
            column("write_call_bytes", F64, "Bytes written by system calls."),
            column("minor_faults", F64, "Minor page faults."),
            column("major_faults", F64, "Major page faults."),
            column("run_delay_ns", F64, "Time tasks were runnable without a CPU."),
            column("forks", I64, "Births of tasks, threads included."),
            column("execs", I64, "Successful execs."),
            column("exits", I64, "Ends of tasks, threads included."),
            column("failed_lookups", I64, "Failed look-ups, without readlinks of what is no link."),
            column(
                "running",
                F64,
                "Tasks running or runnable: mean of the samples; null before the first.",
            ),
            column("sleeping", F64, "Tasks asleep, likewise."),
            column("uninterruptible", F64, "Tasks in uninterruptible sleep, likewise."),
            column("live", F64, "Tasks that live: mean over the time, exact."),
        ],
    },
    TableSchema {
        name: "category_bins",
        says: "What the processes of one category did in one of the bins; no row where they did nothing.",
        columns: &[
            column("bin", U32, "The bin."),
            column("category", Text, "The category."),
            column("user_ns", F64, "User time used in it."),
            column("system_ns", F64, "System time used in it."),
            column("processes_born", I64, "Processes born in it."),
        ],
    },
    TableSchema {
        name: "losses",
        says: "Records that were lost; no row is the best news.",
        columns: &[
            column("kind", Text, "The kind of record."),
            column("reason", Text, "Why."),
            column("cpu", U32, "On which CPU."),
            column("records", I64, "How many."),
        ],
    },
    TableSchema {
        name: "recording",
        says: "The recording itself: one row.",
        columns: &[
            column("command", Texts, "The command that was recorded; empty where none was."),
            column("host", Text, "The machine."),
            column("kernel", Text, "Its kernel."),
            column("cpus", I64, "Its CPUs."),
            column("cwd", Text, "The working directory of the recorder."),
            column("started_unix_ns", I64, "When the recording began, since 1970."),
            column(
                "wall_ns",
                I64,
                "From its start to the exit of the command, or to the last record.",
            ),
            column("recorded_ns", I64, "From its start to the last record."),
            column("interval_ns", I64, "The time between two passes of samples."),
            column(
                "exit_code",
                I32,
                "The exit status of the command; null if a signal killed it, there was none, or the recording was cut short.",
            ),
            column("signal", I32, "The signal that killed the command."),
            column("complete", Flag, "Whether the recording was ended in order."),
            column("lost_records", I64, "Records that were lost."),
            column("processes", I64, "Processes; null where forks are not known."),
            column("threads", I64, "Threads beside each process's first."),
            column("execs", I64, "Successful execs while recording."),
            column("cpu_ns", I64, "CPU time of every task: exact."),
            column("user_ns", I64, "User time: estimated from pooled ticks."),
            column("system_ns", I64, "System time, likewise."),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_lower_case() {
        let plain = |name: &str| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        let tables: BTreeSet<&str> = TABLES.iter().map(|table| table.name).collect();
        assert_eq!(tables.len(), TABLES.len());
        for table in TABLES {
            let columns: BTreeSet<&str> = table.columns.iter().map(|column| column.name).collect();
            assert_eq!(columns.len(), table.columns.len(), "{}", table.name);
            for column in table.columns {
                assert!(plain(column.name), "{}.{}", table.name, column.name);
                assert!(column.says.ends_with('.'), "{}.{}", table.name, column.name);
            }
        }
    }

    #[test]
    fn a_column_has_one_type_wherever_it_is() {
        let mut kinds = std::collections::BTreeMap::new();
        for (table, column) in TABLES.iter().flat_map(|t| t.columns.iter().map(move |c| (t, c))) {
            // Bins spread usage evenly, so their values are fractional.
            if table.name.ends_with("bins") {
                continue;
            }
            let kind = kinds.entry(column.name).or_insert(column.kind);
            assert_eq!(*kind, column.kind, "{}.{}", table.name, column.name);
        }
    }
}
