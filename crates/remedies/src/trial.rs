//! A trial of a remedy: the environment that has it, the figures that are compared, and what they do not tell.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use proctrace_analysis::{Applied, misses};
use proctrace_findings::{Findings, Libs, Outcome, Trial, TrialRun};
use proctrace_report::number::counted;

/// The variable that a remedy changes.
pub fn variable(remedy: &str) -> &'static str {
    if remedy == "path" { "PATH" } else { "LD_LIBRARY_PATH" }
}

/// An environment with the remedy, whose links have been made.
pub fn changed(applied: &Applied<'_>, plain: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let name = variable(applied.remedy);
    let was = plain.iter().find(|(known, _)| known == name);
    let was = was.map(|(_, value)| value.as_bytes()).filter(|value| !value.is_empty());
    let list = applied.list(was).map(|list| (name.into(), OsString::from_vec(list)));
    plain.iter().filter(|(known, _)| known != name).cloned().chain(list).collect()
}

/// The figures of a run that are compared for a remedy.
pub fn figures(remedy: &str, outcome: Outcome, findings: &Findings, found: &Libs) -> TrialRun {
    let summary = &findings.summary;
    let (misses, dlopen_misses) = misses(found, remedy);
    TrialRun {
        outcome,
        misses,
        dlopen_misses,
        lookups_failed: summary.lookups_in_vain,
        opens: summary.opens,
        lookups: summary.opens.zip(summary.lookups_in_vain).map(|(a, b)| a.saturating_add(b)),
        cpu_ns: summary.cpu_ns,
        system_ns: summary.system_ns,
        wall_ns: findings.run.wall_ns.unwrap_or_default(),
    }
}

/// Notes that are needed to interpret a trial.
pub fn notes(trial: &Trial) -> Vec<String> {
    let (before, after) = (trial.before.outcome, trial.after.outcome);
    let mut notes = Vec::new();
    if before != after {
        notes.push(format!(
            "the command {before} without the remedy, but {after} with it: the figures are not comparable"
        ));
    } else if before != Outcome::Code(0) {
        notes.push(format!("the command {before}, with and without the remedy"));
    }
    let mut about = |starts: u64, one: &str, several: &str, what: &str| {
        if starts > 0 {
            notes.push(format!("{} {what}", counted(starts, one, several)));
        }
    };
    about(
        trial.unreached_starts,
        "start was",
        "starts were",
        "without the remedy, because a program of the command sets its own list: apply the remedy there",
    );
    about(
        trial.repeated_starts,
        "start had",
        "starts had",
        "directories behind the links that these replace, because a program of the command adds them: \
         what no run has asked for is still searched there",
    );
    about(
        trial.starts_not_modelled,
        "start was",
        "starts were",
        "not modelled; these look-ups are not compared",
    );
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_analysis::Fixes;

    #[test]
    fn only_the_variable_of_the_remedy_changes() {
        let pair = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let plain = [pair("A", "1"), pair("PATH", "/none:/bin"), pair("B", "2")];
        let change = proctrace_analysis::ListChange {
            was: b"/none:/bin".to_vec(),
            becomes: Some(b"/bin".to_vec()),
            starts: 1,
            programs: Vec::new(),
        };
        let mut fixes = Fixes::default();
        fixes.paths.push(change);
        let applied = Applied { remedy: "path", fixes: &fixes, farm: b"/farm" };
        let changed = changed(&applied, &plain);
        assert_eq!(changed, [pair("A", "1"), pair("B", "2"), pair("PATH", "/bin")]);
        assert_eq!(variable("farm"), "LD_LIBRARY_PATH");
    }
}
