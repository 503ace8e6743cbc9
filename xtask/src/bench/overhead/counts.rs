//! How many events there were, by kind: declared by a payload, or seen by a tracer.

use serde::{Deserialize, Serialize};

/// Events by kind; none where a tool does not give that kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Tasks made, threads included.
    pub(crate) forks: Option<u64>,
    pub(crate) execs: Option<u64>,
    /// Tasks ended, threads included.
    pub(crate) exits: Option<u64>,
    /// Calls of open(2) and its kin that failed.
    pub(crate) failed_opens: Option<u64>,
}

/// What a tracer gave in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) counts: Counts,
    /// All records or lines of its output, of whatever kind.
    pub(crate) records: Option<u64>,
    /// What it says it lost; none where it would not say.
    pub(crate) lost: Option<u64>,
}

impl Counts {
    /// All four kinds.
    pub(crate) fn all(forks: u64, execs: u64, exits: u64, failed_opens: u64) -> Self {
        Self {
            forks: Some(forks),
            execs: Some(execs),
            exits: Some(exits),
            failed_opens: Some(failed_opens),
        }
    }

    /// Letter, name and number of each kind.
    pub(crate) fn kinds(self) -> [(char, &'static str, Option<u64>); 4] {
        [
            ('f', "forks", self.forks),
            ('x', "execs", self.execs),
            ('e', "exits", self.exits),
            ('o', "failed opens", self.failed_opens),
        ]
    }

    /// Without what is not the payload's: the stop watch's own exec and exit.
    pub(crate) fn without(self, execs: u64, exits: u64) -> Self {
        let less = |count: Option<u64>, by| count.map(|count| count.saturating_sub(by));
        Self { execs: less(self.execs, execs), exits: less(self.exits, exits), ..self }
    }

    /// One letter for each kind: itself where all were seen, `!` where not, `-` where the tool does
    /// not give it, `?` where nobody knows how many there were.
    pub(crate) fn letters(self, declared: Self) -> String {
        let pairs = self.kinds().into_iter().zip(declared.kinds());
        pairs
            .map(|((letter, _, seen), (_, _, declared))| match (seen, declared) {
                (None, _) => '-',
                (_, None) => '?',
                (Some(seen), Some(declared)) if seen == declared => letter,
                _ => '!',
            })
            .collect()
    }

    /// What differs, in words; empty if nothing does.
    pub(crate) fn differences(self, declared: Self) -> Vec<String> {
        let pairs = self.kinds().into_iter().zip(declared.kinds());
        pairs
            .filter_map(|((_, name, seen), (_, _, declared))| match (seen, declared) {
                (Some(seen), Some(declared)) if seen != declared => {
                    Some(format!("{seen} of {declared} {name}"))
                }
                _ => None,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_tell_what_is_complete() {
        let declared = Counts::all(2, 2, 2, 300);
        assert_eq!(declared.letters(declared), "fxeo");
        let seen = Counts { forks: None, execs: Some(2), exits: Some(1), failed_opens: Some(300) };
        assert_eq!(seen.letters(declared), "-x!o");
        assert_eq!(seen.differences(declared), ["1 of 2 exits"]);
        let unknown = Counts { failed_opens: None, ..declared };
        assert_eq!(declared.letters(unknown), "fxe?");
        assert_eq!(declared.differences(unknown), Vec::<String>::new());
    }

    #[test]
    fn the_stop_watch_is_taken_off() {
        assert_eq!(Counts::all(3, 4, 4, 5).without(1, 1), Counts::all(3, 3, 3, 5));
        assert_eq!(Counts::default().without(1, 1), Counts::default());
    }
}
