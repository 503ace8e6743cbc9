//! The text of redacted advice: a sentence for each kind.
//!
//! The text that `advise` writes contains command lines, paths and roles. It is not searched for them: redacted
//! advice consists of these sentences and of redacted names of commands.

const SENTENCES: &[(&str, &str)] = &[
    (
        "detached-cpu",
        "End it with the process that started it, or wait for it, as it runs on by itself",
    ),
    ("failed-again", "Find out why it fails, or do not try it again"),
    ("known-cure", "There is a known cure"),
    ("large-fork", "Start its commands by posix_spawn(3) or vfork(2)"),
    ("make-without-j", "Run make with -j"),
    ("memory-peak", "Run those with most memory one after the other"),
    ("overcommit", "Start fewer tasks at a time"),
    ("polling", "Wait for the event instead of polling for it"),
    ("repeated-command", "Run it once and keep the result"),
    ("repeated-opens", "Remember what was opened or is not there, instead of looking again"),
    ("search-in-vain", "Search fewer directories for libraries"),
    ("serial-process", "Divide its work, or do it while others run, as it computes alone"),
    ("serial-stretch", "Run them at the same time"),
    ("shared-writer", "Let those that wait do its work, or divide it among several"),
    ("short-commands", "Let the shell do it itself"),
    ("startup-cost", "Start it once for all its work, as it mostly loads libraries"),
    ("straggler", "Divide the work more evenly, or start the longest first"),
    ("timer-in-path", "Do without it, or wait for the event that it stands for"),
    ("wrappers", "Start it without its wrapper"),
];

/// Sentence on what to do about a kind of finding, if it is known.
pub(crate) fn sentence(kind: &str) -> Option<&'static str> {
    SENTENCES.iter().find(|(name, _)| *name == kind).map(|(_, says)| *says)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_kind_has_a_sentence() {
        let page = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
            .join("../../docs/advice.md");
        let page = std::fs::read_to_string(page).unwrap();
        let kinds = page.split_once("\n## Kinds\n").unwrap().1.split("\n## ").next().unwrap();
        let kinds: BTreeSet<&str> =
            kinds.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
        // What follows a colon is names.
        assert!(SENTENCES.iter().all(|(_, says)| !says.contains(':')));
        assert_eq!(kinds, SENTENCES.iter().map(|(kind, _)| *kind).collect());
    }
}
