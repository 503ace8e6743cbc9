//! Event counts by kind: declared by a payload, or observed by a tracer.

use serde::{Deserialize, Serialize};

/// Events by kind; None for kinds that a tool does not report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Tasks created, including threads.
    pub(crate) forks: Option<u64>,
    pub(crate) execs: Option<u64>,
    /// Tasks ended, including threads.
    pub(crate) exits: Option<u64>,
    /// Failed calls of open(2) and its variants.
    pub(crate) failed_opens: Option<u64>,
}

/// Observations of a tracer in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) counts: Counts,
    /// All records or output lines of any kind.
    pub(crate) records: Option<u64>,
    /// Lost records as reported by the tracer; None if it does not report them.
    pub(crate) lost: Option<u64>,
}

impl Counts {
    /// Counts of all four kinds.
    pub(crate) fn all(forks: u64, execs: u64, exits: u64, failed_opens: u64) -> Self {
        Self {
            forks: Some(forks),
            execs: Some(execs),
            exits: Some(exits),
            failed_opens: Some(failed_opens),
        }
    }

    /// Letter, name and count of each kind.
    pub(crate) fn kinds(self) -> [(char, &'static str, Option<u64>); 4] {
        [
            ('f', "forks", self.forks),
            ('x', "execs", self.execs),
            ('e', "exits", self.exits),
            ('o', "failed opens", self.failed_opens),
        ]
    }

    /// Counts without the stopwatch's own exec and exit.
    pub(crate) fn without(self, execs: u64, exits: u64) -> Self {
        let less = |count: Option<u64>, by| count.map(|count| count.saturating_sub(by));
        Self { execs: less(self.execs, execs), exits: less(self.exits, exits), ..self }
    }

    /// One letter per kind: itself if all events were seen, `!` if not, `-` if the tool does not
    /// report it, `?` if the true number is unknown.
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

    /// The differences as text; empty if there are none.
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
