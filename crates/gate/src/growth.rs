//! Increases from one side to the other: figures, programs, and who started more of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::numbers::Sample;
use crate::side::{Key, Side, family_keys};

/// A figure before and after.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Change {
    /// Before; None without a baseline.
    pub(crate) before: Option<f64>,
    pub(crate) after: f64,
    /// The change from before; without a baseline, the excess over the limit.
    pub(crate) by: f64,
}

/// The changes of all figures.
#[derive(Debug)]
pub(crate) struct Changes<'s, 'a> {
    before: Option<&'s Side<'a>>,
    after: &'s Side<'a>,
    /// Absolute limits that are exceeded. They replace the baseline if there is none.
    limits: BTreeMap<Key<'a>, f64>,
}

/// Families by program, directory or group of steps, each with the total that tells whether an absent one is zero: files with metrics
/// may have been reduced to those that a budget names.
const TOTALS: &[(&str, &str)] = &[
    ("execs", "total_execs"),
    ("command_processes", "total_processes"),
    ("command_threads", "total_threads"),
    ("detached_processes", "total_detached"),
    ("failed_processes", "total_failed"),
    ("command_cpu_seconds", "total_cpu_seconds"),
    ("command_failed_lookups", "total_failed_lookups"),
    ("directory_failed_lookups", "total_failed_lookups"),
    ("spawns", "total_processes"),
    ("step_runs", "total_processes"),
    ("step_failures", "total_processes"),
    ("step_wall_seconds", "total_processes"),
    ("step_longest_wall_seconds", "total_processes"),
    ("step_cpu_seconds", "total_processes"),
    ("step_processes", "total_processes"),
    ("step_peak_pss_bytes", "total_processes"),
];

impl<'s, 'a> Changes<'s, 'a> {
    pub(crate) fn of(
        before: Option<&'s Side<'a>>,
        after: &'s Side<'a>,
        limits: BTreeMap<Key<'a>, f64>,
    ) -> Self {
        Self { before, after, limits }
    }

    pub(crate) fn has_baseline(&self) -> bool {
        self.before.is_some()
    }

    /// The change of a figure; None if it is not known.
    pub(crate) fn change(&self, key: Key<'_>) -> Option<Change> {
        let after = centre(self.after, key)?;
        match self.before {
            Some(side) => {
                let before = centre(side, key).filter(|_| is_complete(side, key.family().name))?;
                Some(Change { before: Some(before), after, by: after - before })
            }
            None => Some(Change { before: None, after, by: after - self.limit(key)? }),
        }
    }

    /// The exceeded limit of a figure, if there is no baseline.
    pub(crate) fn limit(&self, key: Key<'_>) -> Option<f64> {
        self.limits.get::<Key<'_>>(&key).copied()
    }

    /// The change of a figure of a program.
    pub(crate) fn of_program(&self, family: &str, program: Key<'_>) -> Option<Change> {
        self.change(Key::new(family, program.labels)?)
    }

    /// Increase of a figure of a program; 0 if it did not, or if that is not known.
    pub(crate) fn more(&self, family: &str, program: Key<'_>) -> f64 {
        self.of_program(family, program).map_or(0.0, |change| change.by.max(0.0))
    }

    /// A figure of a program per process: before, and after.
    pub(crate) fn per_process(&self, family: &str, program: Key<'_>) -> (Option<f64>, Option<f64>) {
        let per = |side: &Side<'_>| {
            let figure = centre(side, Key::new(family, program.labels)?)?;
            let processes = centre(side, Key::new("command_processes", program.labels)?)?;
            (processes > 0.0).then(|| figure / processes)
        };
        (self.before.and_then(per), per(self.after))
    }

    /// True if a single process runs this program, before as well.
    pub(crate) fn is_single(&self, program: Key<'_>) -> bool {
        let processes = Key::new("command_processes", program.labels);
        let is_one = |side: &Side<'_>| processes.and_then(|key| centre(side, key)) == Some(1.0);
        self.before.is_none_or(is_one) && is_one(self.after)
    }

    /// The part of an increase that more processes of the program explain: as many as there are more,
    /// each using what one used before. Without a baseline, what one uses now, because the increase
    /// itself is not known unless there is a limit.
    pub(crate) fn expected(&self, family: &str, program: Key<'_>, more_processes: f64) -> f64 {
        let (before, after) = self.per_process(family, program);
        let expected = before.or(after).unwrap_or(0.0) * more_processes;
        match self.of_program(family, program) {
            None if !self.has_baseline() => expected,
            change => expected.min(change.map_or(0.0, |change| change.by.max(0.0))),
        }
    }

    /// Every figure of a family that either side has.
    pub(crate) fn keys(&self, family: &str) -> BTreeSet<Key<'a>> {
        let sides: Vec<&Side<'a>> = self.before.into_iter().chain([self.after]).collect();
        family_keys(&sides, family)
    }

    /// Parents that started each program more often than before. Without a baseline, who starts it,
    /// unless limits of pairs are exceeded.
    fn starts(&self, programs: &BTreeMap<&'a str, Key<'a>>) -> Starts<'a> {
        let mut starts = Starts::new();
        let keys = self.keys("spawns");
        let of_limits = keys.iter().any(|key| self.limit(*key).is_some());
        for key in keys {
            let (Some(parent), Some(child)) = (key.label("parent"), key.label("child")) else {
                continue;
            };
            let more = match self.change(key) {
                Some(change) => change.by,
                None if self.before.is_none() && !of_limits => {
                    centre(self.after, key).unwrap_or(0.0)
                }
                None => 0.0,
            };
            if more > 0.0 {
                let each = programs.get(parent).map_or(0.0, |parent| self.each(key, *parent));
                starts.entry(child).or_default().push(Starter { parent, more, each });
            }
        }
        starts
    }

    /// Number of children of a pair for each execution of the parent; before, if there were any.
    fn each(&self, pair: Key<'_>, parent: Key<'_>) -> f64 {
        let per = |side: &Side<'_>| {
            let children = centre(side, pair)?;
            let execs = centre(side, Key::new("execs", parent.labels)?)?;
            (execs > 0.0).then(|| children / execs)
        };
        self.before.and_then(per).or_else(|| per(self.after)).unwrap_or(0.0)
    }
}

/// A program that started another one more often than before.
#[derive(Debug, Clone, Copy)]
struct Starter<'a> {
    parent: &'a str,
    /// Increase of its starts.
    more: f64,
    /// Number of starts for each execution of it.
    each: f64,
}

/// Starters by child.
type Starts<'a> = BTreeMap<&'a str, Vec<Starter<'a>>>;

/// True if the figures of a family are complete on this side, so that an absent one is zero.
fn is_complete(side: &Side<'_>, family: &str) -> bool {
    let Some((_, total)) = TOTALS.iter().find(|(name, _)| *name == family) else { return true };
    // A single process neither has a parent nor is a step of another one.
    let none = if *total == "total_processes" && family != "command_processes" { 1.0 } else { 0.0 };
    side.family(family).next().is_some()
        || Key::new(total, &[]).and_then(|key| centre(side, key)).is_some_and(|total| total <= none)
}

fn centre(side: &Side<'_>, key: Key<'_>) -> Option<f64> {
    Sample::of(key.family().kind, &side.values(key)?).map(|sample| sample.centre)
}

/// A program of which more processes ran, or that was executed more often.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grown<'a> {
    /// One of its metrics, for its labels.
    pub(crate) key: Key<'a>,
    pub(crate) name: &'a str,
    pub(crate) processes: f64,
    pub(crate) execs: f64,
    /// The program that started most of the additional ones.
    pub(crate) spawner: Option<&'a str>,
    /// The program that does something else than before: the spawner, or the one that started more
    /// of that.
    pub(crate) origin: &'a str,
}

impl Grown<'_> {
    /// Size of the increase.
    pub(crate) fn more(&self) -> f64 {
        self.processes.max(self.execs)
    }
}

/// All programs that grew, the largest increase first.
pub(crate) fn grown<'a>(changes: &Changes<'_, 'a>) -> Vec<Grown<'a>> {
    let keys: BTreeMap<&'a str, Key<'a>> = ["execs", "command_processes"]
        .iter()
        .flat_map(|family| changes.keys(family))
        .filter_map(|key| Some((key.label("command")?, key)))
        .collect();
    let starts = changes.starts(&keys);
    let mut grown: Vec<Grown<'a>> = keys
        .into_iter()
        .map(|(name, key)| Grown {
            key,
            name,
            processes: changes.more("command_processes", key),
            execs: changes.more("execs", key),
            spawner: None,
            origin: name,
        })
        .filter(|program| program.more() > 0.0)
        .collect();
    for program in &mut grown {
        program.spawner = spawner_of(program, &starts).map(|starter| starter.parent);
    }
    grown.sort_by(|a, b| b.more().total_cmp(&a.more()));
    let by_name: BTreeMap<&'a str, Grown<'a>> =
        grown.iter().map(|program| (program.name, *program)).collect();
    for program in &mut grown {
        program.origin = origin_of(program.name, &by_name, &starts);
    }
    adopt_wrappers(&mut grown);
    grown
}

/// The parent that started most of the additional processes of a program: if it was executed more
/// often, another program rather than itself.
fn spawner_of<'a>(program: &Grown<'_>, starts: &Starts<'a>) -> Option<Starter<'a>> {
    let parents = starts.get(program.name)?;
    let most = |others_only: bool| {
        let of = parents.iter().filter(|one| !others_only || one.parent != program.name);
        of.max_by(|a, b| a.more.total_cmp(&b.more)).copied()
    };
    let other = if program.execs > 0.0 { most(true) } else { None };
    other.or_else(|| most(false))
}

/// Goes from a program to its spawner as long as more executions of that explain it: a compiler
/// driver that is started more often starts more compilers, and does nothing else than before.
fn origin_of<'a>(
    name: &'a str,
    grown: &BTreeMap<&'a str, Grown<'a>>,
    starts: &Starts<'a>,
) -> &'a str {
    let mut seen = BTreeSet::from([name]);
    let mut at = name;
    while let Some(starter) = grown.get(at).and_then(|program| spawner_of(program, starts)) {
        let spawner = starter.parent;
        let more = grown.get(spawner).map_or(0.0, |spawner| spawner.execs);
        let follows = more > 0.0 && 2.0 * starter.each * more >= starter.more;
        if !follows || !seen.insert(spawner) {
            return spawner;
        }
        at = spawner;
    }
    at
}

/// A program that was executed and then replaced by another one, such as env(1), has no processes
/// and so no parent: it belongs to the program that was executed equally often.
fn adopt_wrappers(grown: &mut [Grown<'_>]) {
    for at in 0..grown.len() {
        let wrapper = grown[at];
        if wrapper.spawner.is_some() || wrapper.processes > 0.0 {
            continue;
        }
        let same = grown.iter().find(|other| {
            other.spawner.is_some() && (other.more() - wrapper.more()).abs() < f64::EPSILON
        });
        if let Some(same) = same {
            grown[at].origin = same.origin;
        }
    }
}

#[cfg(test)]
mod tests {
    use proctrace_findings::{FAMILIES, Kind};

    use super::*;

    /// Sums by something that a run may have none of; a largest value of none is not known.
    #[test]
    fn counts_of_what_may_be_absent_have_a_total() {
        let labels = ["command", "directory", "parent", "group"];
        for family in FAMILIES {
            let may_be_absent = family.labels.iter().any(|label| labels.contains(label));
            if may_be_absent && family.kind == Kind::Count {
                assert!(TOTALS.iter().any(|(name, _)| *name == family.name), "{}", family.name);
            }
        }
        for (name, total) in TOTALS {
            for name in [name, total] {
                assert!(FAMILIES.iter().any(|family| family.name == *name), "{name}");
            }
        }
    }
}
