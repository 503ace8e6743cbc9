//! Comparison of two sides without a budget: the before/after table, and what vanished, appeared,
//! grew and shrank.

mod steps;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use proctrace_findings::{MetricFamily, Metrics, Worse};
use proctrace_report::escape;
use serde::Serialize;
use strum::IntoStaticStr;

use crate::numbers::{Numbers, Sample};
use crate::renames::{renamed, renamed_groups, with_new_names};
use crate::side::{Key, RunMetrics, Side, busier, family_keys};
pub use steps::StepChange;

/// The kind of change of a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, Serialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Fate {
    /// It became zero.
    Vanished,
    /// It was zero before.
    Appeared,
    /// It increased.
    Grew,
    /// It decreased.
    Shrank,
}

impl Fate {
    /// The kind of change of these numbers; None if there is none.
    fn of(numbers: &Numbers) -> Option<Self> {
        match (numbers.before?.centre, numbers.after.centre) {
            (before, after) if before == after => None,
            (0.0, _) => Some(Self::Appeared),
            (_, 0.0) => Some(Self::Vanished),
            (before, after) if after > before => Some(Self::Grew),
            _ => Some(Self::Shrank),
        }
    }
}

/// The comparison of two sides, each with one or more runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diff {
    /// Names of the recordings before.
    pub before: Vec<String>,
    /// Names of the recordings after.
    pub after: Vec<String>,
    /// The table of totals: processes, threads, CPU time, memory.
    pub rows: Vec<Row>,
    /// Programs that seem to have another name after, under which the other tables have them.
    pub renames: Vec<Rename>,
    /// Commands whose count changed, the largest change first.
    pub commands: Vec<CommandChange>,
    /// Pairs of parent and child program whose count changed, the largest change first.
    pub spawns: Vec<SpawnChange>,
    /// Directories in which the number of failed look-ups changed, the largest change first.
    pub directories: Vec<DirectoryChange>,
    /// Phases between marks that either side has, in order of time; of the same name.
    pub phases: Vec<PhaseChange>,
    /// Groups of steps that changed by more than their runs differ, the largest change of wall time first.
    pub steps: Vec<StepChange>,
    /// True if all recordings are complete and satisfy the consistency laws.
    pub trusted: bool,
    /// Caveats: recordings that cannot be trusted, different machines.
    pub doubts: Vec<String>,
}

/// A program that seems to have been renamed: the same programs start it, and it starts mostly the same ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rename {
    /// Its name before.
    pub before: String,
    /// Its name after.
    pub after: String,
    /// Number of its processes.
    pub processes: Option<Numbers>,
    /// Their CPU time, in seconds.
    pub cpu_seconds: Option<Numbers>,
}

/// A row of the table of totals.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// A heading for readers: "failed look-ups".
    pub label: &'static str,
    /// The metric's name.
    pub metric: &'static str,
    /// The direction that is worse.
    pub worse: Worse,
    /// The numbers; None if only one side has the metric.
    pub numbers: Option<Numbers>,
    /// Before; None if it was not measured.
    pub before: Option<Sample>,
    /// After; None if it was not measured.
    pub after: Option<Sample>,
    /// True if a recording before does not know the metric.
    pub unknown_before: bool,
    /// True if a recording after does not know the metric.
    pub unknown_after: bool,
}

impl Row {
    /// True if it is zero or missing on both sides and of a metric that is zero for most jobs.
    fn is_of_nothing(&self) -> bool {
        let none = |sample: Option<Sample>| sample.is_none_or(|sample| sample.greatest == 0.0);
        RARE.contains(&self.metric) && none(self.before) && none(self.after)
    }
}

/// A command whose number of processes changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommandChange {
    /// The last program of the processes.
    pub command: String,
    /// The kind of change.
    pub fate: Fate,
    /// Number of processes.
    pub processes: Numbers,
    /// Their CPU time, in seconds.
    pub cpu_seconds: Option<Numbers>,
}

/// A pair of parent and child program whose count changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpawnChange {
    /// The program the parent was running.
    pub parent: String,
    /// The last program the child ran.
    pub child: String,
    /// The kind of change.
    pub fate: Fate,
    /// Number of processes.
    pub processes: Numbers,
}

/// A directory in which the number of failed look-ups changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectoryChange {
    /// The searched directory.
    pub directory: String,
    /// The call family: "open", "stat".
    pub kind: String,
    /// The kind of change.
    pub fate: Fate,
    /// Number of failed look-ups.
    pub lookups: Numbers,
}

/// A phase between marks of the payload, on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseChange {
    /// Its name.
    pub phase: String,
    /// Wall time in seconds; 0 on a side that does not have the phase.
    pub wall_seconds: Option<Numbers>,
    /// CPU time in seconds.
    pub cpu_seconds: Option<Numbers>,
    /// Processes born in it.
    pub processes: Option<Numbers>,
    /// Failed look-ups.
    pub failed_lookups: Option<Numbers>,
    /// Peak of the total PSS in bytes.
    pub peak_pss_bytes: Option<Numbers>,
}

/// The rows of the table of totals: a heading and a metric.
const ROWS: &[(&str, &str)] = &[
    ("processes, threads", "total_tasks"),
    ("processes", "total_processes"),
    ("commands", "total_commands"),
    ("framework processes", "total_framework_processes"),
    ("threads", "total_threads"),
    ("execs", "total_execs"),
    ("failed look-ups", "total_failed_lookups"),
    ("detached processes", "total_detached"),
    ("failed processes", "total_failed"),
    ("CPU time, user", "total_cpu_user_seconds"),
    ("CPU time, system", "total_cpu_system_seconds"),
    ("CPU time", "total_cpu_seconds"),
    ("waiting for a CPU", "run_delay_seconds"),
    ("wall time", "wall_seconds"),
    ("largest peak RSS", "peak_rss_bytes"),
    ("peak total PSS", "peak_pss_bytes"),
];

/// Rows that are omitted if both sides have none: most jobs have no framework.
const RARE: [&str; 1] = ["total_framework_processes"];

/// Errors of a comparison of two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DiffError {
    /// There is no recording before.
    #[error("no recording of the side before: give at least one")]
    NothingBefore,
    /// There is no recording after.
    #[error("no recording of the side after: give at least one")]
    NothingAfter,
}

impl Diff {
    /// Compares two sides.
    ///
    /// # Errors
    ///
    /// If either side has no recording.
    pub fn of(before: &[RunMetrics], after: &[RunMetrics]) -> Result<Self, DiffError> {
        if before.is_empty() {
            return Err(DiffError::NothingBefore);
        }
        if after.is_empty() {
            return Err(DiffError::NothingAfter);
        }
        let sides = Sides {
            before: Side::of(before.iter().map(|run| &run.metrics)),
            after: Side::of(after.iter().map(|run| &run.metrics)),
        };
        let renamed = renamed(&sides.counted(), &sides.pairs());
        let groups = renamed_groups(&groups(&sides.before), &groups(&sides.after), &renamed);
        let of_before: Vec<Cow<'_, Metrics>> = before
            .iter()
            .map(|run| match renamed.is_empty() {
                true => Cow::Borrowed(&run.metrics),
                false => Cow::Owned(with_new_names(&run.metrics, &renamed, &groups)),
            })
            .collect();
        let sides = Sides {
            before: Side::of(of_before.iter().map(|metrics| &**metrics)),
            after: Side::of(after.iter().map(|run| &run.metrics)),
        };
        let name = |run: &RunMetrics| run.name.clone();
        Ok(Self {
            before: before.iter().map(name).collect(),
            after: after.iter().map(name).collect(),
            rows: ROWS
                .iter()
                .filter_map(|(label, metric)| sides.row(label, metric))
                .filter(|row| !row.is_of_nothing())
                .collect(),
            renames: renamed.into_iter().map(|names| sides.rename(names)).collect(),
            commands: sides.commands(),
            spawns: sides.spawns(),
            directories: sides.directories(),
            phases: sides.phases(),
            steps: sides.steps(),
            trusted: before.iter().chain(after).all(|run| run.metrics.doubts.is_empty()),
            doubts: doubts(before, after),
        })
    }

    /// The row of a metric.
    pub fn row(&self, metric: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.metric == metric)
    }

    /// The comparison as JSON with a trailing line feed.
    ///
    /// # Errors
    ///
    /// None known: all fields are serialisable.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        escape::json_text(self)
    }
}

/// The groups of steps of a side.
fn groups<'a>(side: &Side<'a>) -> BTreeSet<&'a str> {
    side.family("step_runs").filter_map(|key| key.label("group")).collect()
}

fn doubts(before: &[RunMetrics], after: &[RunMetrics]) -> Vec<String> {
    let mut doubts: Vec<String> = before
        .iter()
        .chain(after)
        .filter(|run| !run.metrics.doubts.is_empty())
        .map(|run| format!("{} cannot be trusted: {}", run.name, run.metrics.doubts.join("; ")))
        .collect();
    let mut cores: BTreeMap<u32, &str> = BTreeMap::new();
    let known = before.iter().chain(after).filter(|run| run.metrics.cores > 0);
    for run in known {
        cores.entry(run.metrics.cores).or_insert(&run.name);
    }
    if cores.len() > 1 {
        let list: Vec<String> =
            cores.iter().map(|(cores, name)| format!("{name} with {cores}")).collect();
        doubts.push(format!("recorded with different numbers of CPUs: {}", list.join(", ")));
    }
    doubts.extend(busier(before, after));
    doubts
}

struct Sides<'a> {
    before: Side<'a>,
    after: Side<'a>,
}

impl<'a> Sides<'a> {
    /// Every program, with the numbers of its processes before and after.
    fn counted(&self) -> Vec<(String, (f64, f64))> {
        let keys = family_keys(&[&self.before, &self.after], "command_processes").into_iter();
        keys.filter_map(|key| Some((key.label("command")?.to_owned(), self.counts(key)?))).collect()
    }

    /// Every pair of parent and child, with its numbers before and after.
    fn pairs(&self) -> Vec<(String, String, (f64, f64))> {
        let keys = family_keys(&[&self.before, &self.after], "spawns").into_iter();
        keys.filter_map(|key| {
            let (parent, child) = (key.label("parent")?, key.label("child")?);
            Some((parent.to_owned(), child.to_owned(), self.counts(key)?))
        })
        .collect()
    }

    fn counts(&self, key: Key<'_>) -> Option<(f64, f64)> {
        let numbers = self.numbers(key)?;
        let before = numbers.before.map_or(0.0, |before| before.centre);
        Some((before, numbers.after.centre))
    }

    fn rename(&self, (before, after): (String, String)) -> Rename {
        let labels = [("command".to_owned(), after.clone())];
        let of = |family: &str| {
            let keys = family_keys(&[&self.before, &self.after], family).into_iter();
            let mut same = keys.filter(|key| key.labels == labels);
            self.numbers(same.next()?)
        };
        let (processes, cpu_seconds) = (of("command_processes"), of("command_cpu_seconds"));
        Rename { before, after, processes, cpu_seconds }
    }

    fn row(&self, label: &'static str, metric: &'static str) -> Option<Row> {
        let family = MetricFamily::named(metric)?;
        let key = Key::new(metric, &[])?;
        let (before, after) = (self.before.values(key), self.after.values(key));
        let (unknown_before, unknown_after) = (self.before.lacks(key), self.after.lacks(key));
        // Memory over time is recorded only on request, so its absence is not reported.
        let is_missed = (unknown_before || unknown_after) && metric != "peak_pss_bytes";
        if before.is_none() && after.is_none() && !is_missed {
            return None;
        }
        let sample = |values: Option<&Vec<f64>>| Sample::of(family.kind, values?);
        Some(Row {
            label,
            metric: family.name,
            worse: family.worse,
            before: sample(before.as_ref()),
            after: sample(after.as_ref()),
            unknown_before,
            unknown_after,
            numbers: before
                .zip(after)
                .and_then(|(before, after)| Numbers::of(family.kind, Some(&before), &after)),
        })
    }

    fn numbers(&self, key: Key<'_>) -> Option<Numbers> {
        let (before, after) = (self.before.values(key)?, self.after.values(key)?);
        Numbers::of(key.family().kind, Some(&before), &after)
    }

    /// Metrics of a family that changed, the largest change first.
    fn changed(&self, family: &str) -> Vec<(Key<'a>, Fate, Numbers)> {
        let mut changed: Vec<(Key<'a>, Fate, Numbers)> =
            family_keys(&[&self.before, &self.after], family)
                .into_iter()
                .filter_map(|key| {
                    let numbers = self.numbers(key)?;
                    Some((key, Fate::of(&numbers)?, numbers))
                })
                .collect();
        // Keys were sorted before, and the sort is stable.
        let size = |numbers: &Numbers| numbers.change.unwrap_or(0.0).abs();
        changed.sort_by(|(_, _, a), (_, _, b)| size(b).total_cmp(&size(a)));
        changed
    }

    fn commands(&self) -> Vec<CommandChange> {
        self.changed("command_processes")
            .into_iter()
            .map(|(key, fate, processes)| CommandChange {
                command: key.label("command").unwrap_or_default().to_owned(),
                fate,
                processes,
                cpu_seconds: Key::new("command_cpu_seconds", key.labels)
                    .and_then(|key| self.numbers(key)),
            })
            .collect()
    }

    fn spawns(&self) -> Vec<SpawnChange> {
        self.changed("spawns")
            .into_iter()
            .map(|(key, fate, processes)| SpawnChange {
                parent: key.label("parent").unwrap_or_default().to_owned(),
                child: key.label("child").unwrap_or_default().to_owned(),
                fate,
                processes,
            })
            .collect()
    }

    /// Phases in the order of the side after, then what only the other has.
    fn phases(&self) -> Vec<PhaseChange> {
        let mut keys: Vec<Key<'a>> =
            family_keys(&[&self.before, &self.after], "phase_wall_seconds").into_iter().collect();
        let begin = |side: &Side<'a>, key: &Key<'a>| {
            let values = side.values(Key::new("phase_begin_seconds", key.labels)?)?;
            Sample::of(key.family().kind, &values).map(|sample| sample.centre)
        };
        let has = |side: &Side<'a>, key: &Key<'a>| {
            side.family("phase_begin_seconds").any(|known| known.labels == key.labels)
        };
        keys.sort_by(|a, b| {
            let place = |key: &Key<'a>| {
                let is_gone = !has(&self.after, key);
                let side = if is_gone { &self.before } else { &self.after };
                (is_gone, begin(side, key).unwrap_or(0.0))
            };
            let (a, b) = (place(a), place(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        let of = |family: &str, key: Key<'a>| {
            Key::new(family, key.labels).and_then(|key| self.numbers(key))
        };
        let change = |key: Key<'a>| PhaseChange {
            phase: key.label("phase").unwrap_or_default().to_owned(),
            wall_seconds: of("phase_wall_seconds", key),
            cpu_seconds: of("phase_cpu_seconds", key),
            processes: of("phase_processes", key),
            failed_lookups: of("phase_failed_lookups", key),
            peak_pss_bytes: of("phase_peak_pss_bytes", key)
                .filter(|n| n.after.greatest > 0.0 || n.before.is_some_and(|b| b.greatest > 0.0)),
        };
        keys.into_iter().map(change).collect()
    }

    fn directories(&self) -> Vec<DirectoryChange> {
        self.changed("directory_failed_lookups")
            .into_iter()
            .map(|(key, fate, lookups)| DirectoryChange {
                directory: key.label("directory").unwrap_or_default().to_owned(),
                kind: key.label("kind").unwrap_or_default().to_owned(),
                fate,
                lookups,
            })
            .collect()
    }
}
