//! Whether processes that ran one after the other could have run at once.

use std::collections::BTreeMap;

use proctrace_trace::Quantity;

use super::evidence::Evidence;
use super::rules::AdviceRules;

/// What is known of processes that ran one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Independence {
    /// None of them needs what another one has made.
    Known,
    /// One of them does, or several write the same file.
    Refuted,
    Unknown,
}

/// By the files that they opened, if these were recorded; otherwise by what their programs are known for.
pub(super) fn independence(
    evidence: &Evidence<'_>,
    rules: &AdviceRules,
    row: &[u32],
) -> Independence {
    if evidence.recording.knows.all(&[Quantity::OpenedFiles]) {
        return by_files(evidence, row);
    }
    let known = |process: &u32| {
        evidence.command(*process).is_some_and(|command| rules.is_independent(command))
    };
    if row.iter().all(known) { Independence::Known } else { Independence::Unknown }
}

/// A file that one of them writes must not be one that another one opens.
fn by_files(evidence: &Evidence<'_>, row: &[u32]) -> Independence {
    let mut member: BTreeMap<u32, usize> = BTreeMap::new();
    for (at, process) in row.iter().enumerate() {
        for one in evidence.with_descendants(&[*process]) {
            member.insert(one, at);
        }
    }
    let opened = &evidence.recording.opened;
    for (path, uses) in opened.by_file() {
        if path.starts_with(b"/dev/") || path.starts_with(b"/proc/") {
            continue;
        }
        let theirs =
            || uses.iter().filter_map(|used| Some((*member.get(&used.process)?, used.modes.write)));
        let Some((writer, _)) = theirs().find(|(_, writes)| *writes) else { continue };
        if theirs().any(|(at, _)| at != writer) {
            return Independence::Refuted;
        }
    }
    // Some paths are not known.
    if opened.others > 0 { Independence::Unknown } else { Independence::Known }
}
