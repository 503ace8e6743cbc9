//! Caches that the changed job fills: its next run gains more than this one.

use proctrace_classify::fast::Bits;
use proctrace_findings::counted;

use super::Found;
use super::evidence::Evidence;
use super::names::first_word;
use super::rules::Cure;

/// Programs that keep what compilers make.
const COMPILER_CACHES: [&str; 2] = ["ccache", "sccache"];
/// Minimum compilers or modules of a cache that is filled: some modules are never found.
const FILLED_MIN: u64 = 5;

/// The caches that the changed job seems to fill, a phrase each.
pub(super) fn filled(before: &Evidence<'_>, after: &Evidence<'_>) -> Vec<String> {
    let compilers = (under_cache(before), under_cache(after));
    let modules = (modules_not_found(before), modules_not_found(after));
    let is_new = |(before, after): (u64, u64)| after >= FILLED_MIN && after / 2 >= before;
    let mut filled = Vec::new();
    if is_new(compilers) {
        let runs = counted(compilers.1, "compiler still ran", "compilers still ran");
        filled.push(format!("ccache ({runs} under it)"));
    }
    if is_new(modules) {
        let modules = counted(modules.1, "module was", "modules were");
        filled.push(format!("__pycache__ ({modules} not found in it)"));
    }
    filled
}

/// Returns whether the changed job uses the cache that is the cure, and the job before it did not.
pub(super) fn is_taken(
    cure: &Cure,
    (before, found): (&Evidence<'_>, &Found),
    after: &Evidence<'_>,
) -> bool {
    let uses = |evidence: &Evidence<'_>| {
        // autoconf hands `--cache-file=/dev/null` to what it configures below.
        let mut lines = evidence.recording.templates().iter();
        lines.any(|line| cure.is_taken_by(line) && !line.contains("=/dev/null"))
    };
    !found.processes.is_empty() && uses(after) && !uses(before)
}

/// Compilers proper that run below a cache of them.
fn under_cache(evidence: &Evidence<'_>) -> u64 {
    let is_cache = |process: u32| {
        evidence.command(process).is_some_and(|command| COMPILER_CACHES.contains(&command))
            || evidence.spawner(process).is_some_and(|spawner| {
                let line = evidence.recording.templates().get(spawner as usize);
                line.is_some_and(|line| COMPILER_CACHES.contains(&first_word(line)))
            })
    };
    let compiles = |process: u32| {
        evidence.command(process).is_some_and(|it| ["cc1", "cc1plus", "clang"].contains(&it))
    };
    // Parents precede their children; only a broken trace contradicts.
    let mut is_below = Bits::default();
    let mut count = 0;
    for (process, it) in evidence.processes() {
        let below =
            it.parent().is_some_and(|parent| is_below.contains(parent)) || is_cache(process);
        if below {
            is_below.insert(process as usize);
        }
        count += u64::from(below && compiles(process));
    }
    count
}

/// Modules of Python that were not found compiled.
fn modules_not_found(evidence: &Evidence<'_>) -> u64 {
    let missed = evidence.recording.missed_paths().into_iter().flat_map(|missed| &missed.paths);
    let is_module = |path: &[u8]| {
        path.ends_with(b".pyc") && path.windows(13).any(|part| part == b"/__pycache__/")
    };
    missed.filter(|missed| is_module(&missed.path)).count() as u64
}
