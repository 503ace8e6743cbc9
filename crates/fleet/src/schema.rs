//! The tables of a fleet: their names, columns, types and meanings.
//!
//! This is a public interface: columns may be added, but neither renamed nor redefined.

use proctrace_analysis::ColumnKind::{Flag, I32, I64, Text};
use proctrace_analysis::{ColumnKind, ColumnSchema, TableSchema, table_markdown};

/// All tables of a fleet.
pub const FLEET_TABLES: &[TableSchema] = &[JOBS, PROGRAMS, MISSES, ADVICE, STEP_GROUPS];

/// The table of that name.
pub fn table_named(name: &str) -> Option<&'static TableSchema> {
    FLEET_TABLES.iter().find(|table| table.name == name)
}

/// The tables as sections of docs/fleet.md.
pub fn fleet_markdown() -> String {
    FLEET_TABLES.iter().map(table_markdown).collect()
}

const fn column(name: &'static str, kind: ColumnKind, says: &'static str) -> ColumnSchema {
    ColumnSchema { name, kind, says }
}

const JOB: ColumnSchema = column("job", Text, "The job: the same for all rows of one recording.");
const DAY: ColumnSchema =
    column("day", Text, "Day on which it began, in UTC: YYYY-MM-DD; null if that is not known.");
const SITE: ColumnSchema = column("site", Text, "The site at which it ran.");

/// One row for each job.
pub(crate) const JOBS: TableSchema = TableSchema {
    name: "jobs",
    says: "A job: one recording.",
    columns: &[
        JOB,
        DAY,
        SITE,
        column("queue", Text, "The queue or partition."),
        column(
            "batch_system",
            Text,
            "alien, dirac, panda, condor, slurm, pbs, github, gitlab or jenkins.",
        ),
        column("batch_id", Text, "The job's identifier in the batch system."),
        column("user_hash", Text, "Keyed hash of the user; null without a key."),
        column("release", Text, "Version of the software: --label release=NAME, or a commit."),
        column("labels", Text, "All other labels: name=value, separated by spaces."),
        column("command", Text, "The command line, at most 120 characters of it."),
        column("started_unix_us", I64, "Start of the recording, since 1970-01-01 UTC."),
        column("wall_us", I64, "From its start to the exit of the command, or to the last record."),
        column(
            "recorded_us",
            I64,
            "From its start to the last record: longer where processes outlive the command.",
        ),
        column("cores", I64, "CPUs that the job asked for, or else those that it could use."),
        column("cpu_us", I64, "CPU time of all tasks: exact."),
        column("system_us", I64, "The part of it in the kernel: estimated from pooled ticks."),
        column(
            "waited_cpu_us",
            I64,
            "CPU time by wait(2), and so by time(1) and many batch systems.",
        ),
        column("unwaited_cpu_us", I64, "CPU time of processes that nobody in the tree waited for."),
        column("batch_cpu_us", I64, "CPU time by the batch system: --batch-cpu; otherwise null."),
        column("sampled_cpu_us", I64, "CPU time that prmon would have reported, read every 30 s."),
        column("unseen_cpu_us", I64, "Missing there: processes between two readings."),
        column("late_cpu_us", I64, "Missing there: after the last reading."),
        column("outside_cpu_us", I64, "Missing there: processes no longer in the tree."),
        column(
            "hidden_cpu_us",
            I64,
            "Missing there: live children of threads, which prmon does not read.",
        ),
        column("processes", I64, "Processes."),
        column("threads", I64, "Threads in addition to the first of each process."),
        column("execs", I64, "Successful execs."),
        column("failed_lookups", I64, "Failed look-ups of paths that do not exist."),
        column("peak_rss_bytes", I64, "Largest peak of resident memory of one program."),
        column("run_delay_us", I64, "Time that tasks waited for a CPU."),
        column("read_bytes", I64, "Bytes read from storage."),
        column("write_bytes", I64, "Bytes written to storage."),
        column("exit_code", I32, "Exit status of the command; 128 + N if signal N killed it."),
        column("lost_records", I64, "Records lost during recording."),
        column(
            "sound",
            Flag,
            "Whether it was finished, can be read, breaks no conservation law, and is not partial.",
        ),
        column("not_known", Text, "Quantities that the recording lacks, separated by spaces."),
        column("partial", Flag, "Whether a part of the job may be missing: docs/node.md."),
        column("before_cpu_us", I64, "CPU time of its cgroup before it was recorded."),
        column("batch_id_from", Text, "label, cgroup, or environment, which the job can choose."),
        column("claimed_batch_id", Text, "batch_id by its environment."),
        column("claimed_user_hash", Text, "user_hash by its environment."),
        column("claimed_job_name", Text, "SLURM_JOB_NAME."),
    ],
};

/// One row for each program and spawner of a job.
pub(crate) const PROGRAMS: TableSchema = TableSchema {
    name: "programs",
    says: "The processes of a job that ran one program last and were started by one other. Pairs with the \
           least CPU time are one row, whose program is null, where there are too many.",
    columns: &[
        JOB,
        SITE,
        column("program", Text, "The program; null for all other pairs."),
        column("class", Text, "command (of the system), framework (of an experiment) or program."),
        column("spawner", Text, "The program that started it; null if that is not recorded."),
        column("processes", I64, "Processes."),
        column("cpu_us", I64, "CPU time: exact."),
        column("system_us", I64, "The part of it in the kernel: estimated from pooled ticks."),
        column("short_cpu_us", I64, "CPU time of those that lived less than 10 ms."),
        column("failed", I64, "Those that ended by a signal or with a status other than 0."),
        column("failed_cpu_us", I64, "CPU time of those of them that lived for 10 ms or longer."),
        column("failed_lookups", I64, "Their failed look-ups."),
        column("lives_1ms", I64, "Those that lived less than 1 ms."),
        column("lives_10ms", I64, "From 1 ms to less than 10 ms."),
        column("lives_100ms", I64, "From 10 ms to less than 100 ms."),
        column(
            "lives_1s",
            I64,
            "From 100 ms to less than 1 s; the rest lived longer, or to the end.",
        ),
    ],
};

/// One row for each directory that a job searched in vain.
pub(crate) const MISSES: TableSchema = TableSchema {
    name: "misses",
    says: "Failed look-ups of a job in one directory, by errno: those with most, and \
           one row for all others, whose directory is null.",
    columns: &[
        JOB,
        SITE,
        column("directory", Text, "The directory; null for all others."),
        column("errno", Text, "The error: ENOENT."),
        column("misses", I64, "Failed look-ups."),
    ],
};

/// One row for each piece of advice.
pub(crate) const ADVICE: TableSchema = TableSchema {
    name: "advice",
    says: "What to change in a job, as proctrace advise says; without what is part of better advice, and what may gain nothing.",
    columns: &[
        JOB,
        SITE,
        column("kind", Text, "What was found: docs/advice.md lists all."),
        column("what", Text, "What to do."),
        column("processes", I64, "Processes concerned."),
        column("wall_us", I64, "Predicted reduction of wall time."),
        column("wall_low_us", I64, "At least this much."),
        column("cpu_us", I64, "Predicted reduction of CPU time."),
    ],
};

/// One row for each group of steps.
pub(crate) const STEP_GROUPS: TableSchema = TableSchema {
    name: "step_groups",
    says: "What the steps of one group needed that is scheduled on its own (docs/steps.md): those with the longest steps.",
    columns: &[
        JOB,
        SITE,
        column("step_group", Text, "The group."),
        column("steps", I64, "Its steps that have ended."),
        column("cores", I64, "CPUs that the busiest of them needed."),
        column("memory_peak_bytes", I64, "Largest peak of memory of one of them."),
        column(
            "memory_from",
            Text,
            "What that is: PSS, RSS of one process, or at most (the sum of peaks at one time).",
        ),
        column(
            "written_peak_bytes",
            I64,
            "Largest sum of sizes of files that one of them wrote below the job's directory.",
        ),
        column("wall_max_us", I64, "The longest of them."),
    ],
};
