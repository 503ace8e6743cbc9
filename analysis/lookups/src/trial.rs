//! A remedy that is tried: what a list becomes with it, where it did not take effect, and how its runs compare.

use proctrace_findings::{Libs, Outcome, Remedy, Trial, TrialRun};
use proctrace_stats::median;

use crate::farm::FarmPlan;
use crate::lists::ListChange;
use crate::remedies::Fixes;

/// Remedies about libraries that can be tried, the one that changes least first.
const OF_LIBRARIES: [&str; 6] = ["drop", "reorder", "clean", "farm", "farm-system", "merge"];

/// The remedy about libraries with which fewest look-ups are predicted to fail; of equal ones that which changes least.
pub fn best_of(remedies: &[Remedy]) -> Option<&Remedy> {
    let of_name = |name| remedies.iter().find(|remedy| remedy.name == name);
    OF_LIBRARIES.into_iter().filter_map(of_name).min_by_key(|remedy| {
        remedy.predicted_misses.saturating_add(remedy.predicted_dlopen_misses.unwrap_or(0))
    })
}

/// A remedy with what carries it out, applied from outside.
#[derive(Debug, Clone, Copy)]
pub struct Applied<'a> {
    /// Its name.
    pub remedy: &'static str,
    /// Worked out without it.
    pub fixes: &'a Fixes,
    /// Directory of its links, if it has some.
    pub farm: &'a [u8],
}

impl Applied<'_> {
    fn plan(&self) -> Option<&FarmPlan> {
        self.fixes.plan(self.remedy)
    }

    /// The list with the remedy; `None` if nothing is left of it.
    pub fn list(&self, was: Option<&[u8]>) -> Option<Vec<u8>> {
        match self.plan() {
            Some(plan) => Some(plan.list(self.farm, was.unwrap_or_default())),
            None => self.changed(was?),
        }
    }

    /// A list with a remedy that only changes lists.
    fn changed(&self, was: &[u8]) -> Option<Vec<u8>> {
        if self.remedy == "path" {
            let change = self.fixes.paths.iter().find(|change| change.was == was);
            let becomes = change.and_then(|change| change.becomes.clone());
            return becomes.or_else(|| Some(was.to_vec()));
        }
        self.fixes.library_path(self.remedy, was)
    }

    /// Starts with a list to which the remedy was not applied, of a run with it.
    fn unreached(&self, last: &Fixes) -> u64 {
        let lists = if self.remedy == "path" { &last.paths } else { &last.library_paths };
        starts(lists, |was| match self.plan() {
            Some(_) => entries(was).next() != Some(self.farm),
            None => self.changed(was).as_deref() != Some(was),
        })
    }

    /// Starts whose list has directories behind the links that these replace, of a run with the remedy.
    fn repeated(&self, last: &Fixes) -> u64 {
        let Some(plan) = self.plan().filter(|_| self.remedy == "merge") else { return 0 };
        let is_replaced = |entry: &[u8]| plan.replaced.iter().any(|replaced| replaced == entry);
        starts(&last.library_paths, |was| entries(was).any(is_replaced))
    }

    /// The comparison of runs without and with the remedy, of which the last found this.
    pub fn trial(
        &self,
        remedy: &Remedy,
        (before, after): (&[TrialRun], &[TrialRun]),
        (found, fixes): (&Libs, &Fixes),
    ) -> Trial {
        Trial {
            remedy: remedy.name,
            about: remedy.about,
            runs: before.len() as u64,
            predicted_misses: remedy.predicted_misses,
            predicted_dlopen_misses: remedy.predicted_dlopen_misses,
            predicted_lookups_failed: before.first().and_then(|run| predicted_in_all(remedy, run)),
            before: medians(before),
            after: medians(after),
            unreached_starts: self.unreached(fixes),
            repeated_starts: self.repeated(fixes),
            starts_not_modelled: found.starts_not_modelled,
        }
    }
}

impl Fixes {
    /// The directory of links of the remedy of this name, "farm", "farm-system" or "merge".
    pub fn plan(&self, remedy: &str) -> Option<&FarmPlan> {
        match remedy {
            "farm" => Some(&self.farm),
            "farm-system" => Some(&self.farm_system),
            "merge" => Some(&self.merge),
            _ => None,
        }
    }
}

/// The failed look-ups of a run that a remedy is about, at starts and by dlopen(3).
pub fn misses(found: &Libs, remedy: &str) -> (u64, u64) {
    let at_starts = match remedy {
        "path" => {
            let of_path = found.causes.iter().filter(|cause| cause.kind == "PATH");
            of_path.map(|cause| cause.misses).sum()
        }
        _ => found.confirmed_library_misses.saturating_add(found.unexplained_library_misses),
    };
    let none = found.remedies.iter().find(|remedy| remedy.name == "none");
    (at_starts, none.and_then(|none| none.predicted_dlopen_misses).unwrap_or_default())
}

fn entries(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| matches!(byte, b':' | b';'))
}

fn starts(lists: &[ListChange], which: impl Fn(&[u8]) -> bool) -> u64 {
    lists.iter().filter(|change| which(&change.was)).map(|change| change.starts).sum()
}

/// All failed look-ups with a remedy about libraries: the others stay as they were in the run from which it
/// is worked out.
fn predicted_in_all(remedy: &Remedy, run: &TrialRun) -> Option<u64> {
    let later = remedy.predicted_dlopen_misses?;
    let others = run.lookups_failed?.checked_sub(run.misses)?.checked_sub(run.dlopen_misses)?;
    Some(others.saturating_add(remedy.predicted_misses).saturating_add(later))
}

/// The medians of the figures, and how the last run ended.
fn medians(runs: &[TrialRun]) -> TrialRun {
    let some = |of: fn(&TrialRun) -> Option<u64>| -> Option<u64> {
        let values: Option<Vec<f64>> = runs.iter().map(|run| Some(of(run)? as f64)).collect();
        Some(median(&values?)? as u64)
    };
    TrialRun {
        outcome: runs.last().map_or(Outcome::Code(0), |run| run.outcome),
        misses: some(|run| Some(run.misses)).unwrap_or_default(),
        dlopen_misses: some(|run| Some(run.dlopen_misses)).unwrap_or_default(),
        lookups_failed: some(|run| run.lookups_failed),
        opens: some(|run| run.opens),
        lookups: some(|run| run.lookups),
        cpu_ns: some(|run| run.cpu_ns),
        system_ns: some(|run| run.system_ns),
        wall_ns: some(|run| Some(run.wall_ns)).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(misses: u64, opens: Option<u64>) -> TrialRun {
        TrialRun { misses, opens, lookups_failed: Some(100), ..medians(&[]) }
    }

    fn remedy(name: &'static str, misses: u64, later: Option<u64>) -> Remedy {
        Remedy {
            name,
            about: "libraries",
            does: String::new(),
            risk: "",
            today_misses: 100,
            predicted_misses: misses,
            saves_ns: None,
            predicted_dlopen_misses: later,
        }
    }

    fn change(was: &str, starts: u64) -> ListChange {
        ListChange { was: was.into(), becomes: Some(b"/b".into()), starts, programs: Vec::new() }
    }

    #[test]
    fn the_best_remedy_leaves_least_and_changes_least() {
        let all = [
            remedy("none", 0, None),
            remedy("merge", 5, Some(1)),
            remedy("clean", 6, None),
            remedy("needed", 1, None),
            remedy("farm", 5, Some(2)),
        ];
        assert_eq!(best_of(&all).map(|remedy| remedy.name), Some("clean"));
        assert_eq!(best_of(&all[..1]), None);
    }

    #[test]
    fn trials_compare_medians() {
        let fixes = Fixes { paths: vec![change("/a:/b", 3), change("/c", 4)], ..Fixes::default() };
        let last = Fixes { paths: vec![change("/b", 2), change("/c", 1)], ..Fixes::default() };
        let applied = Applied { remedy: "path", fixes: &fixes, farm: b"/farm" };
        assert_eq!(applied.list(Some(b"/a:/b")), Some(b"/b".to_vec()));
        assert_eq!((applied.list(Some(b"/x")), applied.list(None)), (Some(b"/x".to_vec()), None));
        let before = [run(10, Some(7)), run(30, Some(9)), run(20, Some(8)), run(40, Some(6))];
        let after = [run(1, None), run(2, Some(1))];
        let found = (&Libs::default(), &last);
        let trial = applied.trial(&remedy("path", 4, Some(0)), (&before, &after), found);
        assert_eq!((trial.before.misses, trial.before.opens), (25, Some(7)));
        assert_eq!((trial.after.misses, trial.after.opens), (1, None));
        assert_eq!((trial.runs, trial.predicted_lookups_failed), (4, Some(94)));
        // Of /c, which would become /b, one start still had it.
        assert_eq!((trial.unreached_starts, trial.repeated_starts), (1, 0));
    }

    #[test]
    fn directories_of_links_come_first_and_alone() {
        let merge = FarmPlan { replaced: vec![b"/a".to_vec()], ..FarmPlan::default() };
        let fixes = Fixes { merge, ..Fixes::default() };
        let applied = Applied { remedy: "merge", fixes: &fixes, farm: b"/farm" };
        assert_eq!(applied.list(Some(b"/a:/b")), Some(b"/farm:/b".to_vec()));
        assert_eq!(applied.list(None), Some(b"/farm".to_vec()));
        let library_paths = vec![change("/farm:/b", 1), change("/farm;/a", 2), change("/b", 4)];
        let last = Fixes { library_paths, ..Fixes::default() };
        assert_eq!((applied.unreached(&last), applied.repeated(&last)), (4, 2));
    }
}
