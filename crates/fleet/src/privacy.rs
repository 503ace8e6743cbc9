//! Privacy of each column of a fleet: what it says about people and experiments, and what redaction
//! makes of it.

use crate::redact::names::{BELOW, PROGRAMS, ROOTS, SYSTEM_ROOTS};
use crate::schema::FLEET_TABLES;

/// Treatment of a column by `--redact`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redacted {
    /// Nothing: a figure, or one of a fixed list of words.
    Kept,
    /// Nothing: a label is written as it was given.
    Label,
    /// Kept if it was given as a label; hashed if it is from the environment.
    UnlessLabel,
    /// It is a keyed hash.
    Hashed,
    /// Names are hashed, except for those of every system.
    Names,
    /// It is less exact.
    Coarser,
    /// It is a hash in any case.
    HashedAlways,
}

impl Redacted {
    fn says(self) -> &'static str {
        match self {
            Self::Kept => "the same",
            Self::Label => "the same: labels are written as given",
            Self::UnlessLabel => "hashed, unless a label gives it",
            Self::Hashed => "hashed",
            Self::Names => "names hashed, except for those of every system",
            Self::Coarser => "rounded down to the hour",
            Self::HashedAlways => "the same: always a keyed hash, or null",
        }
    }
}

/// The statement about a column: table, column, what redaction does, and why.
pub type Statement = (&'static str, &'static str, Redacted, &'static str);

use Redacted::{Coarser, Hashed, HashedAlways, Kept, Label, Names, UnlessLabel};

const FIGURE: &str = "A figure of the job.";
const SUM: &str = "A figure of processes.";

/// All of them.
pub const PRIVACY: &[Statement] = &[
    ("jobs", "job", Hashed, "Without a key, who guesses host and command could test that."),
    ("jobs", "day", Kept, "Trends need it."),
    ("jobs", "site", UnlessLabel, "From the environment it may be a host or a user's repository."),
    ("jobs", "queue", UnlessLabel, "From the environment it may name a group or a workflow."),
    ("jobs", "batch_system", Kept, "One of nine names, or a label."),
    ("jobs", "batch_id", Hashed, "It finds the user in the records of the batch system."),
    ("jobs", "user_hash", HashedAlways, "To count the jobs of a user; names are never written."),
    ("jobs", "release", UnlessLabel, "From the environment it is a commit, which may be public."),
    ("jobs", "labels", Label, "Who summarizes says them on purpose."),
    (
        "jobs",
        "command",
        Names,
        "Arguments are hashed one by one, so that equal commands are equal.",
    ),
    ("jobs", "started_unix_us", Coarser, "The exact start finds a job in lists of jobs."),
    ("jobs", "wall_us", Kept, FIGURE),
    ("jobs", "recorded_us", Kept, FIGURE),
    ("jobs", "cores", Kept, FIGURE),
    ("jobs", "cpu_us", Kept, FIGURE),
    ("jobs", "system_us", Kept, FIGURE),
    ("jobs", "waited_cpu_us", Kept, FIGURE),
    ("jobs", "unwaited_cpu_us", Kept, FIGURE),
    ("jobs", "batch_cpu_us", Kept, FIGURE),
    ("jobs", "sampled_cpu_us", Kept, FIGURE),
    ("jobs", "unseen_cpu_us", Kept, FIGURE),
    ("jobs", "late_cpu_us", Kept, FIGURE),
    ("jobs", "outside_cpu_us", Kept, FIGURE),
    ("jobs", "hidden_cpu_us", Kept, FIGURE),
    ("jobs", "processes", Kept, FIGURE),
    ("jobs", "threads", Kept, FIGURE),
    ("jobs", "execs", Kept, FIGURE),
    ("jobs", "failed_lookups", Kept, FIGURE),
    ("jobs", "peak_rss_bytes", Kept, FIGURE),
    ("jobs", "run_delay_us", Kept, FIGURE),
    ("jobs", "read_bytes", Kept, FIGURE),
    ("jobs", "write_bytes", Kept, FIGURE),
    ("jobs", "exit_code", Kept, FIGURE),
    ("jobs", "lost_records", Kept, FIGURE),
    ("jobs", "sound", Kept, FIGURE),
    ("jobs", "not_known", Kept, "Names of quantities, from a fixed list."),
    ("jobs", "partial", Kept, FIGURE),
    ("jobs", "before_cpu_us", Kept, FIGURE),
    ("jobs", "batch_id_from", Kept, "One of three words."),
    ("jobs", "claimed_batch_id", Hashed, "As batch_id."),
    ("jobs", "claimed_user_hash", HashedAlways, "As user_hash."),
    ("jobs", "claimed_job_name", Hashed, "Names of jobs tell what is worked on."),
    ("programs", "job", Hashed, "As in jobs."),
    ("programs", "site", UnlessLabel, "As in jobs."),
    ("programs", "program", Names, "Scripts and executables are named after work and people."),
    ("programs", "class", Kept, "One of three words."),
    ("programs", "spawner", Names, "As program."),
    ("programs", "processes", Kept, SUM),
    ("programs", "cpu_us", Kept, SUM),
    ("programs", "system_us", Kept, SUM),
    ("programs", "short_cpu_us", Kept, SUM),
    ("programs", "failed", Kept, SUM),
    ("programs", "failed_cpu_us", Kept, SUM),
    ("programs", "failed_lookups", Kept, SUM),
    ("programs", "lives_1ms", Kept, SUM),
    ("programs", "lives_10ms", Kept, SUM),
    ("programs", "lives_100ms", Kept, SUM),
    ("programs", "lives_1s", Kept, SUM),
    ("misses", "job", Hashed, "As in jobs."),
    ("misses", "site", UnlessLabel, "As in jobs."),
    (
        "misses",
        "directory",
        Names,
        "Home and work directories, names of software and its versions.",
    ),
    ("misses", "errno", Kept, "The name of an error."),
    ("misses", "misses", Kept, SUM),
    ("advice", "job", Hashed, "As in jobs."),
    ("advice", "site", UnlessLabel, "As in jobs."),
    ("advice", "kind", Kept, "One of the kinds of docs/advice.md."),
    (
        "advice",
        "what",
        Names,
        "A fixed sentence for each kind, and names of commands as in programs.",
    ),
    ("advice", "processes", Kept, SUM),
    ("advice", "wall_us", Kept, SUM),
    ("advice", "wall_low_us", Kept, SUM),
    ("advice", "cpu_us", Kept, SUM),
    ("step_groups", "job", Hashed, "As in jobs."),
    ("step_groups", "site", UnlessLabel, "As in jobs."),
    ("step_groups", "step_group", Hashed, "Groups are named after commands and work."),
    ("step_groups", "steps", Kept, SUM),
    ("step_groups", "cores", Kept, FIGURE),
    ("step_groups", "memory_peak_bytes", Kept, FIGURE),
    ("step_groups", "memory_from", Kept, "One of three words."),
    ("step_groups", "written_peak_bytes", Kept, FIGURE),
    ("step_groups", "wall_max_us", Kept, FIGURE),
];

/// The statement about a column.
fn statement(table: &str, column: &str) -> Option<&'static Statement> {
    PRIVACY.iter().find(|(of, name, ..)| (*of, *name) == (table, column))
}

/// The tables of columns in docs/privacy.md. A column without a statement has an empty row.
pub fn privacy_markdown() -> String {
    let mut out = String::new();
    for table in FLEET_TABLES {
        out.push_str(&format!(
            "### `{}`\n\n| column | with `--redact` | why |\n|---|---|---|\n",
            table.name
        ));
        for column in table.columns {
            let says = statement(table.name, column.name);
            let (redacted, why) = says.map_or(("", ""), |(_, _, it, why)| (it.says(), *why));
            out.push_str(&format!("| `{}` | {redacted} | {why} |\n", column.name));
        }
        out.push('\n');
    }
    out
}

/// The lists of names in docs/privacy.md that redaction keeps.
pub fn kept_names_markdown() -> String {
    let list = |names: &[&str]| {
        let mut out = String::new();
        let mut width = 0;
        for name in names {
            if width > 0 && width + name.len() > 110 {
                out.push('\n');
                width = 0;
            }
            out.push_str(if width == 0 { "    " } else { " " });
            out.push_str(name);
            width += name.len() + 1;
        }
        out
    };
    let roots: Vec<String> = SYSTEM_ROOTS.iter().map(|name| format!("`/{name}`")).collect();
    format!(
        "Directories of the root:\n\n{}\n\nNames in these of them, {}:\n\n{}\n\nPrograms:\n\n{}\n",
        list(ROOTS),
        roots.join(", "),
        list(BELOW),
        list(PROGRAMS)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_one_statement_and_no_other_has() {
        for table in FLEET_TABLES {
            for column in table.columns {
                let found = PRIVACY.iter().filter(|it| (it.0, it.1) == (table.name, column.name));
                assert_eq!(
                    found.count(),
                    1,
                    "{}.{} needs a statement on privacy",
                    table.name,
                    column.name
                );
            }
        }
        let columns: usize = FLEET_TABLES.iter().map(|table| table.columns.len()).sum();
        assert_eq!(PRIVACY.len(), columns);
    }
}
