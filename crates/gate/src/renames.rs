//! Programs that have another name after, and what is called after them: a script that was renamed has not vanished.

use std::collections::{BTreeMap, BTreeSet};

use proctrace_findings::{Metrics, without_numbers};

/// Programs of each side that are compared, those with most processes first.
const CANDIDATES_MAX: usize = 64;
/// Characters of a name that are compared.
const NAME_MAX: usize = 64;
/// The part of its characters that two similar names have in common, in order.
const SIMILAR: f64 = 0.6;
/// The part of what two programs start that both start.
const SAME_CHILDREN: f64 = 0.5;
/// Number of passes: a renamed script may be started by another one.
const PASSES: usize = 8;

/// The name after of each program that seems to have been renamed.
pub(crate) type Renamed = BTreeMap<String, String>;

/// Finds programs that only one side has, with similar names or the same ending, that the same programs start, and that
/// start mostly the same ones.
///
/// `counts` has the number of processes of each program before and after, `pairs` those of each pair of parent and child.
pub(crate) fn renamed(
    counts: &[(String, (f64, f64))],
    pairs: &[(String, String, (f64, f64))],
) -> Renamed {
    let candidates = |of: fn((f64, f64)) -> Option<f64>| {
        let counted = counts.iter();
        let mut found: Vec<(&str, f64)> =
            counted.filter_map(|(name, counts)| Some((&**name, of(*counts)?))).collect();
        found.sort_by(|one, other| other.1.total_cmp(&one.1));
        found.truncate(CANDIDATES_MAX);
        found
    };
    let vanished = candidates(|(before, after)| (before > 0.0 && after == 0.0).then_some(before));
    let appeared = candidates(|(before, after)| (before == 0.0 && after > 0.0).then_some(after));
    let mut renamed = Renamed::new();
    if vanished.is_empty() || appeared.is_empty() {
        return renamed;
    }
    let kin = Kin::of(pairs);
    for _ in 0..PASSES {
        let mut pairs: Vec<(f64, &str, &str)> = Vec::new();
        for (old, was) in vanished.iter().filter(|(old, _)| !renamed.contains_key(*old)) {
            let taken = |new: &str| renamed.values().any(|known| known == new);
            for (new, is) in appeared.iter().filter(|(new, _)| !taken(new)) {
                let score = kin.score(&renamed, (old, *was), (new, *is));
                pairs.extend(score.map(|score| (score, *old, *new)));
            }
        }
        pairs.sort_by(|one, other| other.0.total_cmp(&one.0));
        let before = renamed.len();
        for (_, old, new) in pairs {
            if !renamed.contains_key(old) && !renamed.values().any(|known| known == new) {
                renamed.insert(old.to_owned(), new.to_owned());
            }
        }
        if renamed.len() == before {
            break;
        }
    }
    renamed
}

/// Finds groups of steps that only one side has, and that are called after a program that was renamed.
pub(crate) fn renamed_groups(
    before: &BTreeSet<&str>,
    after: &BTreeSet<&str>,
    programs: &Renamed,
) -> Renamed {
    let is_new = |group: &String| after.contains(&**group) && !before.contains(&**group);
    let found = |group: &str| {
        programs.iter().flat_map(|(old, new)| called_after(group, old, new)).find(&is_new)
    };
    let gone = before.iter().filter(|group| !after.contains(*group));
    gone.filter_map(|group| Some(((*group).to_owned(), found(group)?))).collect()
}

/// What a group could be called that begins with the name of a program, if that program has another one: numbers of names
/// are `#` in groups, unless the group was named as such.
fn called_after(group: &str, old: &str, new: &str) -> Vec<String> {
    let end = group.find(' ').unwrap_or(group.len());
    let begin = group[..end].rfind('/').map_or(0, |slash| slash + 1);
    let named = &group[begin..end];
    if named != old && named != without_numbers(old) {
        return Vec::new();
    }
    let with = |name: &str| format!("{}{name}{}", &group[..begin], &group[end..]);
    vec![with(new), with(&without_numbers(new))]
}

/// Figures in which programs and groups of steps have the names that they have after.
pub(crate) fn with_new_names(metrics: &Metrics, programs: &Renamed, groups: &Renamed) -> Metrics {
    let mut metrics = metrics.clone();
    for (label, value) in metrics.metrics.iter_mut().flat_map(|metric| &mut metric.labels) {
        let renamed = match &**label {
            "command" | "parent" | "child" => programs,
            "group" => groups,
            _ => continue,
        };
        if let Some(new) = renamed.get(value) {
            value.clone_from(new);
        }
    }
    metrics
}

/// Parents and children of programs, on each side.
#[derive(Default)]
struct Kin {
    parents: [BTreeMap<String, BTreeSet<String>>; 2],
    children: [BTreeMap<String, BTreeSet<String>>; 2],
}

impl Kin {
    fn of(pairs: &[(String, String, (f64, f64))]) -> Self {
        let mut kin = Self::default();
        for (parent, child, counts) in pairs {
            for (at, count) in [counts.0, counts.1].into_iter().enumerate() {
                if count > 0.0 {
                    kin.parents[at].entry(child.clone()).or_default().insert(parent.clone());
                    kin.children[at].entry(parent.clone()).or_default().insert(child.clone());
                }
            }
        }
        kin
    }

    /// Likelihood that a program has only another name; None if it has not.
    fn score(
        &self,
        renamed: &Renamed,
        (old, was): (&str, f64),
        (new, is): (&str, f64),
    ) -> Option<f64> {
        let similarity = similarity(old, new);
        if similarity < SIMILAR && !(ending(old).is_some() && ending(old) == ending(new)) {
            return None;
        }
        let today = |names: Option<&BTreeSet<String>>| -> BTreeSet<String> {
            let name = |name: &String| match name {
                // It may start itself.
                name if name == old => new.to_owned(),
                name => renamed.get(name).unwrap_or(name).clone(),
            };
            names.into_iter().flatten().map(name).collect()
        };
        let after = |of: &[BTreeMap<String, BTreeSet<String>>; 2]| {
            of[1].get(new).cloned().unwrap_or_default()
        };
        let parents = (today(self.parents[0].get(old)), after(&self.parents));
        if parents.0 != parents.1 {
            return None;
        }
        let children = (today(self.children[0].get(old)), after(&self.children));
        let both = children.0.intersection(&children.1).count() as f64;
        let any = children.0.union(&children.1).count() as f64;
        // The recorded command is the recorded command, whatever it starts now.
        let is_command = parents.0.is_empty() && was == 1.0 && is == 1.0;
        let same = match any {
            0.0 if was != is => return None,
            0.0 => 1.0,
            any => both / any,
        };
        (same >= SAME_CHILDREN || is_command).then_some(same + similarity)
    }
}

/// The ending of a script's name.
fn ending(name: &str) -> Option<&str> {
    let (stem, ending) = name.rsplit_once('.')?;
    let is_ending = ending.len() <= 5 && ending.bytes().all(|it| it.is_ascii_alphabetic());
    (!stem.is_empty() && !ending.is_empty() && is_ending).then_some(ending)
}

/// The longest common subsequence of two names, in relation to the longer one.
fn similarity(one: &str, other: &str) -> f64 {
    let one: Vec<char> = one.chars().take(NAME_MAX).collect();
    let other: Vec<char> = other.chars().take(NAME_MAX).collect();
    let mut row = vec![0_usize; other.len() + 1];
    for letter in &one {
        let mut diagonal = 0;
        for (at, known) in other.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if letter == known { diagonal + 1 } else { above.max(row[at]) };
            diagonal = above;
        }
    }
    row[other.len()] as f64 / one.len().max(other.len()).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_is_called_after_a_renamed_program_has_its_new_name() {
        let programs = Renamed::from([("tool-1".to_owned(), "mytool-2".to_owned())]);
        let of = |before: &[&'static str], after: &[&'static str]| {
            let [before, after] = [before, after].map(|groups| groups.iter().copied().collect());
            renamed_groups(&before, &after, &programs).into_iter().collect::<Vec<_>>()
        };
        let names = |old: &str, new: &str| vec![(old.to_owned(), new.to_owned())];
        assert_eq!(of(&["tool-1", "x"], &["mytool-2", "x"]), names("tool-1", "mytool-2"));
        assert_eq!(of(&["tool-#"], &["mytool-#"]), names("tool-#", "mytool-#"));
        assert_eq!(
            of(&["./tool-# -v a"], &["./mytool-# -v a", "mytool-#"]),
            names("./tool-# -v a", "./mytool-# -v a")
        );
        // Given names stay, and so does a group that both sides have.
        for (before, after) in [
            (&["tool"][..], &["mytool"][..]),
            (&["a tool-1"], &["a mytool-2"]),
            (&["tool-1"], &["tool-1", "mytool-2"]),
            (&["tool-1", "mytool-2"], &["mytool-2"]),
            (&["tool-1"], &[]),
        ] {
            assert_eq!(of(before, after), []);
        }
    }

    #[test]
    fn names_are_compared_by_what_they_have_in_common() {
        assert_eq!(similarity("tool", "tool"), 1.0);
        assert_eq!(similarity("", ""), 0.0);
        assert!(similarity("taskwrapper", "task-wrapper-2") > SIMILAR);
        assert!(similarity("make", "ninja") < SIMILAR);
        assert_eq!(
            (ending("a.sh"), ending(".sh"), ending("x-1.2"), ending("x")),
            (Some("sh"), None, None, None)
        );
    }
}
