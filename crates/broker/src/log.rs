//! The log of a broker: one line for each event, whatever clients send, and not too many of one user.

use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::time::{Duration, Instant, SystemTime};

/// Characters of a line.
const LINE_MAX: usize = 400;

/// Lines of a user in [`PERIOD`].
const LINES_MAX: u32 = 40;

/// Time after which a user may have as many lines again.
const PERIOD: Duration = Duration::from_secs(10);

/// Maximum number of users whose lines are counted at a time; of others, all together.
const USERS_MAX: usize = 1024;

/// A log. Each user has its own share of it, so that one cannot fill a disk or hide what others do.
pub(crate) struct Log {
    out: Box<dyn Write + Send>,
    /// True if whoever reads the log notes the time.
    is_dated: bool,
    users: HashMap<Option<u32>, Share>,
}

/// The lines of a user in the present period.
#[derive(Debug, Clone, Copy)]
struct Share {
    since: Instant,
    written: u32,
    left_out: u32,
}

impl Log {
    pub(crate) fn new(out: Box<dyn Write + Send>, is_dated: bool) -> Self {
        Self { out, is_dated, users: HashMap::new() }
    }

    /// Writes a line about the service itself.
    pub(crate) fn say(&mut self, what: fmt::Arguments<'_>) {
        self.write(&printable(&what.to_string()));
    }

    /// Writes a line about a user, unless it has had too many.
    pub(crate) fn say_of(&mut self, user: u32, what: fmt::Arguments<'_>) {
        self.say_of_at(user, what, Instant::now());
    }

    fn say_of_at(&mut self, user: u32, what: fmt::Arguments<'_>, now: Instant) {
        self.close_periods(now);
        let known = self.users.contains_key(&Some(user)) || self.users.len() < USERS_MAX;
        let user = known.then_some(user);
        let share = self.users.entry(user).or_insert(Share { since: now, written: 0, left_out: 0 });
        if share.written >= LINES_MAX {
            share.left_out = share.left_out.saturating_add(1);
            return;
        }
        share.written += 1;
        self.write(&printable(&what.to_string()));
    }

    /// Says what was left out of periods that are over.
    fn close_periods(&mut self, now: Instant) {
        let is_over = |share: &Share| now.saturating_duration_since(share.since) >= PERIOD;
        let over: Vec<(Option<u32>, Share)> = self
            .users
            .iter()
            .filter(|(_, share)| is_over(share))
            .map(|(user, share)| (*user, *share))
            .collect();
        for (user, share) in over {
            self.users.remove(&user);
            if share.left_out > 0 {
                let who = user.map_or("other users".to_owned(), |user| format!("user {user}"));
                let lines = if share.left_out == 1 { "line" } else { "lines" };
                self.write(&format!("{who}: {} more {lines} left out", share.left_out));
            }
        }
    }

    fn write(&mut self, line: &str) {
        // A log that cannot be written must not end recordings.
        let _ = match self.is_dated {
            true => writeln!(self.out, "proctrace-broker: {line}"),
            false => {
                let now = humantime::format_rfc3339_seconds(SystemTime::now());
                writeln!(self.out, "{now} proctrace-broker: {line}")
            }
        };
        let _ = self.out.flush();
    }
}

/// One line without control characters, such as those that end lines or change colours, and without those that
/// change the direction of text, cut to [`LINE_MAX`] characters.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::new();
    let mut room = LINE_MAX;
    for character in text.chars() {
        let is_plain = matches!(character, '\'' | '"' | '\\');
        let shown: String = match is_plain {
            true => character.to_string(),
            false => character.escape_debug().collect(),
        };
        let Some(left) = room.checked_sub(shown.chars().count()) else {
            out.push('…');
            break;
        };
        room = left;
        out.push_str(&shown);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    use proptest::prelude::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_user_has_its_share_of_the_lines() {
        let kept = Kept::default();
        let mut log = Log::new(Box::new(kept.clone()), true);
        let lines = || String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let begin = Instant::now();
        for _ in 0..1000 {
            log.say_of_at(1, format_args!("refused"), begin);
        }
        log.say_of_at(2, format_args!("records"), begin);
        assert_eq!(lines().lines().count(), LINES_MAX as usize + 1);
        log.say_of_at(2, format_args!("records again"), begin + PERIOD);
        let text = lines();
        assert!(text.contains("user 1: 960 more lines left out"), "{text}");
        assert!(text.ends_with("records again\n"), "{text}");
        // Many users have no more than one share beyond those that are counted.
        for user in 0..5_000 {
            log.say_of_at(user, format_args!("x"), begin + PERIOD);
        }
        assert!(log.users.len() <= USERS_MAX + 1);
        assert!(lines().lines().count() <= USERS_MAX * LINES_MAX as usize);
    }

    #[test]
    fn a_line_cannot_be_forged() {
        let text = "x\nuser 0 records rm\u{1b}[31m\u{202e}\u{85} it's \"quoted\" \\x41";
        let line = printable(text);
        assert_eq!(line, "x\\nuser 0 records rm\\u{1b}[31m\\u{202e}\\u{85} it's \"quoted\" \\x41");
        assert_eq!(printable(&"A".repeat(32_000)).chars().count(), LINE_MAX + 1);
    }

    proptest! {
        #[test]
        fn any_text_is_one_line(text: String) {
            let line = printable(&text);
            prop_assert!(line.chars().count() <= LINE_MAX + 1);
            prop_assert!(!line.chars().any(char::is_control));
        }
    }
}
