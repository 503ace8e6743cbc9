//! Limits of groups of steps in a first budget: how many steps, how many of them fail, and the longest wall time.

use std::fmt::Write as _;

use super::counts::{Counts, Slack};
use super::{UNLISTED, round_up, sample, toml_key, written};
use crate::side::{Key, Side};

/// Maximum number of groups with a rule of their own.
const GROUPS: usize = 20;

/// Groups whose longest wall time is suggested as a limit.
const LONGEST: usize = 3;

/// Writes limits of the number of steps, and of those that fail, if there are any steps.
pub(super) fn push_counts(counts: &mut Counts, side: &Side<'_>) {
    let steps = largest(side, "step_runs");
    if steps.is_empty() {
        return;
    }
    counts.text.push_str(STEPS_COMMENT);
    let unlisted = match steps.get(GROUPS) {
        // Of groups that cannot be told from new ones.
        Some((most, _)) => {
            format!("{{ absolute = {}, unmatched = \"allow\" }}", written(most.max(UNLISTED) * 2.0))
        }
        None => "{ absolute = 0, severity = \"warn\", unmatched = \"allow\" }".to_owned(),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(counts.text, "'step_runs{{group=\"*\"}}' = {unlisted}");
    for (_, key) in steps.iter().take(GROUPS) {
        counts.push(side, *key, Slack::None);
    }
    let mut failed = largest(side, "step_failures");
    failed.retain(|(greatest, _)| *greatest > 0.0);
    counts.text.push_str(if failed.is_empty() { NONE_FAILED } else { SOME_FAILED });
    let unlisted = failed.get(GROUPS).map_or(0.0, |(most, _)| *most);
    let _ = writeln!(
        counts.text,
        "'step_failures{{group=\"*\"}}' = {{ absolute = {}, unmatched = \"allow\" }}",
        written(unlisted)
    );
    for (_, key) in failed.iter().take(GROUPS) {
        counts.push(side, *key, Slack::None);
    }
}

/// Suggests limits of the longest steps, as comments: elapsed time is limited only by whoever wants that.
pub(super) fn push_wall(out: &mut String, side: &Side<'_>) {
    for (greatest, key) in largest(side, "step_longest_wall_seconds").into_iter().take(LONGEST) {
        let (name, ceiling) = (toml_key(&key.to_string()), round_up(greatest * 2.0, 2));
        // Writing to a String cannot fail.
        let _ = writeln!(out, "# {name} = {{ absolute = {ceiling}, severity = \"warn\" }}");
    }
}

/// The metrics of a family that every run knows, each with its greatest value, the largest first.
fn largest<'a>(side: &Side<'a>, family: &str) -> Vec<(f64, Key<'a>)> {
    let mut keys: Vec<(f64, Key<'a>)> =
        side.family(family).filter_map(|key| Some((sample(side, key)?.greatest, key))).collect();
    keys.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    keys
}

const STEPS_COMMENT: &str = "
# Steps by group (docs/steps.md). The first rule is for any other group, so that a new one is
# noticed. One that is gone leaves a rule that matches nothing, which is reported as well.
";

const NONE_FAILED: &str = "# No step may fail, of whichever group.\n";

const SOME_FAILED: &str = "# No step may fail, but for groups of which some did.\n";
