//! Days of the calendar, in UTC.

/// The day of a time since 1970: YYYY-MM-DD.
pub fn of_unix_s(seconds: u64) -> String {
    // The civil calendar in eras of 400 years, with years that begin in March:
    // https://howardhinnant.github.io/date_algorithms.html#civil_from_days
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
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
        of_unix_s(u64::MAX);
    }
}
