//! Independence of processes that ran one after the other: whether they could have run at once.

use proctrace_classify::fast::FastMap;
use proctrace_recording::opened::OpenedFiles;
use proctrace_wire::Quantity;

use super::evidence::Evidence;
use super::names::{first_word, script};
use super::rules::AdviceRules;

/// Knowledge about the independence of processes that ran one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Independence {
    /// None of them needs what another one has made.
    Known,
    /// One of them does, or several write the same file.
    Refuted,
    Unknown,
}

/// Judges independence by what the programs are known for, unless the files that they opened, if these were recorded, contradict.
/// These alone do not show it: what is renamed has another path when it is written.
pub(super) fn independence(
    evidence: &Evidence<'_>,
    rules: &AdviceRules,
    row: &[u32],
) -> Independence {
    if evidence.recording.knows().all(&[Quantity::OpenedFiles]) && share_files(evidence, row) {
        return Independence::Refuted;
    }
    let known = |process: &u32| {
        let template = evidence.own_template(*process);
        template.is_some_and(|of| rules.is_independent(script(of).unwrap_or(first_word(of))))
    };
    if row.iter().all(known) { Independence::Known } else { Independence::Unknown }
}

/// Returns whether one of them writes a file that another one opens.
fn share_files(evidence: &Evidence<'_>, row: &[u32]) -> bool {
    let mut member: FastMap<u32, usize> = FastMap::default();
    for (at, process) in row.iter().enumerate() {
        for one in evidence.with_descendants(&[*process]) {
            member.insert(one, at);
        }
    }
    let opened = evidence.recording.opened();
    opened.into_iter().flat_map(OpenedFiles::by_file).any(|(path, uses)| {
        let theirs =
            || uses.iter().filter_map(|used| Some((*member.get(&used.process)?, used.modes.write)));
        let is_file = !path.starts_with(b"/dev/") && !path.starts_with(b"/proc/");
        let writer = theirs().find(|(_, writes)| *writes).filter(|_| is_file);
        writer.is_some_and(|(writer, _)| theirs().any(|(at, _)| at != writer))
    })
}
