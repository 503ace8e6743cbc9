//! Events that a payload reports as processed, read from the lines of its logs.

use regex::bytes::{Regex, RegexBuilder};

/// Expression for the line that AthenaMP's workers write when they end.
pub const ATHENA_EVENTS: &str =
    r"Number of events processed:\s*(?<events>\d+),\s*Event Loop Time:\s*(?<seconds>[0-9.]+)\s*sec";

/// Maximum size of a compiled expression, in bytes.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// Expression that extracts an event count from a line.
#[derive(Debug, Clone)]
pub struct EventPattern {
    regex: Regex,
    events: usize,
    seconds: Option<usize>,
}

/// Errors of an expression for events.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// It is not well-formed.
    #[error("invalid regular expression for events: {0}")]
    Syntax(#[from] regex::Error),
    /// It has no group to extract a number from.
    #[error(
        "the regular expression for events has no group; put the number of events in parentheses"
    )]
    NoGroup,
}

/// Events found in one log.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Events {
    /// The sum over all matching lines; `None` if there are none.
    pub events: Option<u64>,
    /// The longest event loop time in a matching line.
    pub loop_ns: Option<u64>,
    /// Matching lines.
    pub lines: u64,
}

/// The events reported in the log of one worker.
#[derive(Debug, Clone, PartialEq)]
pub struct EventLog {
    /// Its path, as it was found.
    pub path: String,
    /// Events found in it.
    pub events: Events,
}

impl EventPattern {
    /// An expression that matches a line. The number of events is its group `events`, or the first;
    /// the seconds of the event loop are its group `seconds`, or the second.
    ///
    /// # Errors
    /// If it is not well-formed, too large when compiled, or has no group.
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        let regex = RegexBuilder::new(pattern).size_limit(REGEX_BYTES_MAX).build()?;
        let named = |wanted: &str| regex.capture_names().position(|name| name == Some(wanted));
        let groups = regex.captures_len() - 1;
        if groups == 0 {
            return Err(PatternError::NoGroup);
        }
        let events = named("events").unwrap_or(1);
        let seconds = named("seconds").or_else(|| (groups >= 2 && events == 1).then_some(2));
        Ok(Self { regex, events, seconds })
    }

    /// Adds the counts in a line to those found before. A number that does not fit into 64 bits is
    /// ignored.
    pub fn read(&self, line: &[u8], found: &mut Events) {
        let Some(groups) = self.regex.captures(line) else { return };
        let text = |group: usize| {
            groups.get(group).and_then(|group| std::str::from_utf8(group.as_bytes()).ok())
        };
        let Some(events) = text(self.events).and_then(|text| text.parse::<u64>().ok()) else {
            return;
        };
        found.lines += 1;
        found.events = Some(found.events.unwrap_or(0).saturating_add(events));
        let seconds = self.seconds.and_then(text).and_then(|text| text.parse::<f64>().ok());
        if let Some(seconds) = seconds.filter(|s| s.is_finite() && *s >= 0.0) {
            // The conversion to u64 saturates.
            let loop_ns = (seconds * 1e9) as u64;
            found.loop_ns = Some(found.loop_ns.unwrap_or(0).max(loop_ns));
        }
    }
}

impl EventLog {
    /// The number of the worker that a log belongs to, by its path: the digits at the end of the
    /// last component that has any before a dot, starting with the file's own name: 3 for
    /// `worker_3/AthenaMP.log` and for `log.worker-3.txt`.
    pub fn number(&self) -> Option<u64> {
        self.path.rsplit('/').find_map(|component| {
            component.split('.').rev().find_map(|part| {
                let name = part.trim_end_matches(|c: char| c.is_ascii_digit());
                // A bare number is a date or a pid, not a worker's name.
                if name.is_empty() { None } else { part[name.len()..].parse().ok() }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(pattern: &str, text: &str) -> Events {
        let pattern = EventPattern::new(pattern).unwrap();
        let mut found = Events::default();
        text.lines().for_each(|line| pattern.read(line.as_bytes(), &mut found));
        found
    }

    #[test]
    fn a_worker_says_how_many_and_how_long() {
        let log =
            "AthenaMP 12:00 INFO Number of events processed: 137, Event Loop Time: 12.5sec.\n";
        let found = read(ATHENA_EVENTS, log);
        assert_eq!(found, Events { events: Some(137), loop_ns: Some(12_500_000_000), lines: 1 });
        assert_eq!(read(ATHENA_EVENTS, "nothing here\n"), Events::default());
    }

    #[test]
    fn lines_add_up_and_the_longest_time_counts() {
        let found = read(r"(\d+) events in (\S+) s", "3 events in 1 s\nx\n4 events in 0.5 s\n");
        assert_eq!(found, Events { events: Some(7), loop_ns: Some(1_000_000_000), lines: 2 });
        assert_eq!(read(r"took (?<s>\d+): (?<events>\d+)", "took 9: 5").events, Some(5));
    }

    #[test]
    fn useless_expressions_say_why() {
        assert!(EventPattern::new("events").unwrap_err().to_string().contains("parentheses"));
        assert!(EventPattern::new("(").unwrap_err().to_string().contains("invalid"));
        assert!(EventPattern::new(r"(\w{1000}{1000})").is_err());
    }

    #[test]
    fn logs_belong_to_workers_by_their_path() {
        let number =
            |path: &str| EventLog { path: path.into(), events: Events::default() }.number();
        assert_eq!(number("worker_3/AthenaMP.log"), Some(3));
        assert_eq!(number("/job/run2/worker_12/AthenaMP.log"), Some(12));
        assert_eq!(number("log.worker-3.txt"), Some(3));
        assert_eq!(number("AthenaMP.log"), None);
        assert_eq!(number("2026/log"), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read(line: Vec<u8>, digits in "[0-9]{1,40}") {
            let pattern = EventPattern::new(ATHENA_EVENTS).unwrap();
            let mut found = Events::default();
            pattern.read(&line, &mut found);
            let line = format!("Number of events processed: {digits}, Event Loop Time: {digits}sec");
            pattern.read(line.as_bytes(), &mut found);
            pattern.read(line.as_bytes(), &mut found);
            prop_assert_eq!(found.events.is_some(), digits.parse::<u64>().is_ok());
        }

        #[test]
        fn any_path_has_a_number_or_none(path in ".{0,60}") {
            let _ = EventLog { path, events: Events::default() }.number();
        }
    }
}
