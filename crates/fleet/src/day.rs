//! Days of the calendar, in UTC.

use std::time::{Duration, UNIX_EPOCH};

/// The last second of the year 9999: later ones have no such name.
const LAST_S: u64 = 253_402_300_799;

/// The day of a time since 1970: YYYY-MM-DD.
pub fn of_unix_s(seconds: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_secs(seconds.min(LAST_S));
    let mut text = humantime::format_rfc3339_seconds(time).to_string();
    text.truncate("YYYY-MM-DD".len());
    text
}

/// True if a text is such a day, as far as a name of a directory goes.
pub fn is_day(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 10
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_date() {
        // date -u -d @SECONDS +%F
        for (seconds, day) in [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (1_795_445_074, "2026-11-23"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(of_unix_s(seconds), day);
            assert!(is_day(day));
        }
        for wrong in ["", "2026-1-01", "2026-11-2x", "../../../x", "2026/11/23"] {
            assert!(!is_day(wrong), "{wrong}");
        }
        assert_eq!(of_unix_s(u64::MAX), "9999-12-31");
    }
}
