//! Every table of a recording, and its columns.

use super::columns::{
    BINS, EXEC_ID, PROCESS_ID, PROCESSES, STEP_ID, THREAD_ID, THREADS, TIME_NS, column,
};
use super::schema::{ColumnKind, TableSchema};

use ColumnKind::{F64, Flag, I32, I64, Text, Texts, U32, U64};

/// Every table, most useful first.
pub const TABLES: &[TableSchema] = &[
    TableSchema {
        name: "processes",
        says: "A process (thread group), from its creation to the exit of its last thread.",
        columns: &PROCESSES,
    },
    TableSchema {
        name: "threads",
        says: "A task: a thread of a process, including its first.",
        columns: &THREADS,
    },
    TableSchema {
        name: "execs",
        says: "A successful exec, or a program that was already running when the recording began.",
        columns: &[
            column("exec_id", U32, "The exec: its number in this recording."),
            PROCESS_ID,
            STEP_ID,
            TIME_NS,
            column(
                "recorded",
                Flag,
                "False for a program that was already running when the recording began.",
            ),
            column("program", Text, "The program, as named by the rules."),
            column("category", Text, "The category of that program."),
            column("class", Text, "command, framework or program."),
            column("path", Text, "The path as given to execve."),
            column("interpreter", Text, "The interpreter of the #! line; null if there is none."),
            column("exe", Text, "The executed file, resolved."),
            column("cwd", Text, "The working directory."),
            column("argv", Texts, "The arguments."),
            column("argv_truncated", Flag, "Whether arguments are missing."),
            column("command_line", Text, "The arguments, separated by spaces."),
            column(
                "command_shape",
                Text,
                "The command line with numbers and random characters replaced by #.",
            ),
            column(
                "environment_id",
                U64,
                "The environment it was given; null if it was not recorded.",
            ),
            column(
                "failed_lookups",
                I64,
                "Failed look-ups until the next exec of the process, or its end.",
            ),
            column(
                "loading_failed_lookups",
                I64,
                "Of these, those while its libraries were loaded, as estimated from the failed \
                 look-ups.",
            ),
            column(
                "loaded_ns",
                I64,
                "Time from the exec to the last of these: a lower bound of the time to load its \
                 libraries; null if there was none.",
            ),
        ],
    },
    TableSchema {
        name: "lookups",
        says: "A failed look-up of a path.",
        columns: &[
            PROCESS_ID,
            STEP_ID,
            THREAD_ID,
            EXEC_ID,
            column(
                "time_ns",
                I64,
                "Time since the start of the recording, up to one scheduler tick early: several \
                 look-ups may have the same time.",
            ),
            column(
                "program",
                Text,
                "The program of the process at that time, or the one it ran last if that is not \
                 known.",
            ),
            column("call", Text, "The system call."),
            column("family", Text, "open, stat, access, readlink, chdir; null for other calls."),
            column("errno", Text, "The error, for example ENOENT."),
            column("path", Text, "The path as given to the call; null if it could not be read."),
            column("directory", Text, "The path without its last component."),
            column(
                "in_vain",
                Flag,
                "False for a readlink of an existing path that is not a link, which was found, and for \
                 a mark.",
            ),
        ],
    },
    TableSchema {
        name: "failed_execs",
        says: "A failed exec, usually part of a search along PATH.",
        columns: &[
            PROCESS_ID,
            STEP_ID,
            THREAD_ID,
            EXEC_ID,
            TIME_NS,
            column(
                "program",
                Text,
                "The program of the process at that time, or the one it ran last if that is not \
                 known.",
            ),
            column("errno", Text, "The error, for example ENOENT."),
            column("path", Text, "The path as given to execve; null if it could not be read."),
            column("directory", Text, "The path without its last component."),
        ],
    },
    TableSchema {
        name: "environments",
        says: "A variable of a recorded environment: the search variables, and those named by \
               --env.",
        columns: &[
            column("environment_id", U64, "The environment."),
            column("name", Text, "The name of the variable."),
            column("value", Text, "Its value."),
        ],
    },
    TableSchema {
        name: "renames",
        says: "A task that set its own name (prctl(PR_SET_NAME)).",
        columns: &[THREAD_ID, PROCESS_ID, TIME_NS, column("name", Text, "The new name.")],
    },
    TableSchema {
        name: "samples",
        says: "A live task in one round of samples, with its counters since its creation.",
        columns: &[
            THREAD_ID,
            PROCESS_ID,
            STEP_ID,
            TIME_NS,
            column(
                "state",
                Text,
                "running (or runnable), sleeping, uninterruptible, stopped, or another state.",
            ),
            column("cpu_ns", I64, "CPU time until that time: exact."),
            column(
                "user_ticks_ns",
                I64,
                "Kernel ticks that found it in user mode, times the tick period.",
            ),
            column("system_ticks_ns", I64, "The same in kernel mode."),
            column("run_delay_ns", I64, "Time it waited for a CPU (runnable, not running)."),
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
            STEP_ID,
            TIME_NS,
            column("rss_bytes", I64, "Resident memory."),
            column(
                "pss_bytes",
                I64,
                "Proportional set size: each shared page counts in equal parts for the processes \
                 that share it.",
            ),
            column("uss_bytes", I64, "Unique set size: memory not shared with other processes."),
            column("shared_bytes", I64, "Memory shared with other processes."),
            column("swap_bytes", I64, "Swapped-out memory."),
            column("vmem_bytes", I64, "Address space in use; null in recordings that lack it."),
        ],
    },
    TableSchema {
        name: "opened_files",
        says: "A process's successful opens of one file (record --opens).",
        columns: &[
            PROCESS_ID,
            STEP_ID,
            column("opens", I64, "Number of opens."),
            column("reads", Flag, "Whether it was opened for reading."),
            column("writes", Flag, "Whether it was opened for writing."),
            column("first_ns", I64, "Time of the first, since the start of the recording."),
            column("last_ns", I64, "Time of the last."),
            column("path", Text, "The path of the file, with symbolic links resolved."),
        ],
    },
    TableSchema {
        name: "waits",
        says: "A time that a thread spent off the CPU: asleep, then waiting for a CPU (record \
               --waits).",
        columns: &[
            THREAD_ID,
            PROCESS_ID,
            STEP_ID,
            column("start_ns", I64, "When it left its CPU, since the start of the recording."),
            column("asleep_ns", I64, "How long it was asleep; 0 if it was ready to run."),
            column("cpu_wait_ns", I64, "How long it then waited for a CPU."),
            column(
                "waits_for",
                Text,
                "cpu, child, vfork, pipe, socket, futex, disk, timer, poll, file_lock, signal, \
                 device, queue, stopped or other.",
            ),
            column(
                "woken_by",
                Text,
                "task (of the recording), outside (another task), interrupt (a timer, a device \
                 or the network), none (it was not asleep) or unknown.",
            ),
            column("waker_thread_id", U32, "The thread of the recording that woke it."),
            column("waker_pid", I32, "Pid of the process that woke it."),
            column("waker_ended", Flag, "Whether it was the end of that thread which woke it."),
        ],
    },
    TableSchema {
        name: "signals",
        says: "A signal that usually ends a process, such as SIGTERM, and its sender.",
        columns: &[
            PROCESS_ID,
            STEP_ID,
            TIME_NS,
            column("signal_name", Text, "Its name: SIGTERM."),
            column("code", I32, "si_code of sigaction(2); 128: sent by the kernel."),
            column(
                "sent_by",
                Text,
                "In whose context it was sent: task (of the recording), outside, or interrupt (a timer). If code is above 0, the kernel sent it on its own account.",
            ),
            column("sender_pid", I32, "Pid of the sender."),
            column("sender_name", Text, "Name of the sender."),
        ],
    },
    TableSchema {
        name: "marks",
        says: "A moment that the payload named, by `proctrace mark` or by a look-up \
               (docs/marks.md), and the phase that begins with it.",
        columns: &[
            column("mark", U32, "Its number, from 1, in order of time."),
            TIME_NS,
            column("until_ns", I64, "Time of the next mark, or the end of the recording."),
            column("text", Text, "Its text."),
            column("phase", Text, "The text, with #2 and so on if it is a repeated one."),
            column("set_by", Text, "command (`proctrace mark`) or look-up."),
            PROCESS_ID,
            STEP_ID,
            column(
                "setter_id",
                U32,
                "process_id of the process that ran the command, or looked up.",
            ),
            column("setter", Text, "The program that this process ran last."),
        ],
    },
    TableSchema {
        name: "steps",
        says: "A unit of work that whoever coordinates the job has named (docs/steps.md): a program run and all that it starts.",
        columns: &[
            column("step_id", U32, "Its number, in order of their beginnings."),
            column("step", Text, "Its name."),
            column(
                "step_group",
                Text,
                "Its group: as given, or the name without a number at its end and with # in place of others.",
            ),
            column("part_of_id", U32, "step_id of the step that it is a part of; null for none."),
            column(
                "named_by",
                Text,
                "How it got its name: environment (PROCTRACE_STEP), span (TRACEPARENT), mark, table (--steps) or rule.",
            ),
            column(
                "coordinator",
                Text,
                "The rules of which program gave it, as make; null if none did.",
            ),
            PROCESS_ID,
            column("begin_ns", I64, "Time at which it began."),
            column(
                "end_ns",
                I64,
                "Time at which its first process ended (of a mark: its last one); null if it was alive at the end.",
            ),
            column(
                "processes",
                I64,
                "Its processes, with those of its parts. What they used is in the table of processes, by step_id.",
            ),
            column(
                "exit_code",
                I32,
                "Exit code of its first process; null if a signal killed it, and if it is not known.",
            ),
            column(
                "written_peak_bytes",
                I64,
                "Largest sum of the sizes of files below the job's directory that it and its parts wrote last; null if not known.",
            ),
        ],
    },
    TableSchema {
        name: "step_files",
        says: "A step's use of one file below the job's directory (record --opens).",
        columns: &[
            column("step_id", U32, "The innermost step."),
            column("reads", Flag, "Whether it opened the file for reading."),
            column("writes", Flag, "Whether it opened the file for writing."),
            column("first_ns", I64, "Time of its first open."),
            column("last_ns", I64, "Time of its last open."),
            column(
                "path",
                Text,
                "Path of the file below the directory in which the command was launched.",
            ),
            column(
                "size_bytes",
                I64,
                "Largest size of the file when a task closed it that could write it; null if none did, or if that is not known.",
            ),
        ],
    },
    TableSchema {
        name: "bins",
        says: "All recorded processes in one bin of time; all bins have the same width.",
        columns: &BINS,
    },
    TableSchema {
        name: "category_bins",
        says: "The processes of one category in one of the bins; no row if they were inactive.",
        columns: &[
            column("bin", U32, "The bin."),
            column("category", Text, "The category."),
            column("user_ns", F64, "User time in it."),
            column("system_ns", F64, "System time in it."),
            column("processes_born", I64, "Processes created in it."),
        ],
    },
    TableSchema {
        name: "losses",
        says: "Lost records; no rows if none were lost.",
        columns: &[
            column("kind", Text, "The kind of record."),
            column("reason", Text, "The reason."),
            column("cpu", U32, "The CPU."),
            column("records", I64, "The number of lost records."),
        ],
    },
    TableSchema {
        name: "recording",
        says: "The recording itself: one row.",
        columns: &[
            column("command", Texts, "The recorded command; empty if there was none."),
            column("host", Text, "The host name."),
            column("kernel", Text, "The kernel version."),
            column("cpus", I64, "The number of CPUs."),
            column("cwd", Text, "The working directory of the recorder."),
            column("started_unix_ns", I64, "Start of the recording, since 1970-01-01 UTC."),
            column(
                "wall_ns",
                I64,
                "From its start to the exit of the command, or to the last record.",
            ),
            column("recorded_ns", I64, "From its start to the last record."),
            column("interval_ns", I64, "Time between two rounds of samples."),
            column(
                "exit_code",
                I32,
                "The exit status of the command; null if a signal killed it, there was none, or the recording was cut short.",
            ),
            column("signal", I32, "The signal that killed the command."),
            column("complete", Flag, "Whether the recording was finished properly."),
            column("lost_records", I64, "Number of lost records."),
            column("processes", I64, "Processes; null if forks are not known."),
            column("threads", I64, "Threads in addition to the first of each process."),
            column("execs", I64, "Successful execs during the recording."),
            column("cpu_ns", I64, "CPU time of every task: exact."),
            column("user_ns", I64, "User time: estimated from pooled ticks."),
            column("system_ns", I64, "System time, likewise."),
        ],
    },
];

impl TableSchema {
    /// The table of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        TABLES.iter().find(|table| table.name == name)
    }
}

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
