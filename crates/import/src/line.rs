//! The beginning of a line of strace: the task, the time, and what further options put before the call.

use crate::body::Body;
use crate::numbers::{after_comm, decimal, id};

/// Minimum seconds of a Unix time: a smaller number is a difference (`-r`), as it would be in 1973.
const UNIX_MIN_S: u64 = 100_000_000;
const SECOND_NS: u64 = 1_000_000_000;
pub(crate) const DAY_NS: u64 = 86_400 * SECOND_NS;

/// The time of a line, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// Since 1970 (`-ttt`).
    Unix(u64),
    /// Since midnight (`-t`, `-tt`).
    OfDay(u64),
    /// Since the line before (`-r`).
    SinceLast(u64),
}

/// Kind of time that a line has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    None,
    Unix,
    OfDay,
    SinceLast,
}

/// Form of what precedes the call: the same on all lines that one strace writes, except the pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Style {
    kind: Kind,
    /// Digits after the point of the time.
    digits: u8,
    /// A difference beside an absolute time (`-r` with `-t`).
    difference: bool,
    /// The number of the call (`-n`).
    number: bool,
    /// The instruction pointer (`-i`).
    pointer: bool,
}

impl Style {
    pub(crate) fn has_time(self) -> bool {
        self.kind != Kind::None
    }
}

/// A line taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub(crate) pid: Option<i32>,
    pub(crate) stamp: Option<Stamp>,
    pub(crate) style: Style,
    pub(crate) body: &'a [u8],
}

impl<'a> Line<'a> {
    pub(crate) fn of(line: &'a [u8]) -> Self {
        let (pid, rest) = pid(line);
        let rest = without_context(rest.trim_ascii_start());
        let (stamp, digits, rest) = stamp(rest, pid.is_some() || line.first() == Some(&b' '));
        let kind = match stamp {
            None => Kind::None,
            Some(Stamp::Unix(_)) => Kind::Unix,
            Some(Stamp::OfDay(_)) => Kind::OfDay,
            Some(Stamp::SinceLast(_)) => Kind::SinceLast,
        };
        let (difference, rest) = without_difference(rest);
        let (number, rest) = without_brackets(rest, is_number);
        let (pointer, body) = without_brackets(rest, is_pointer);
        Line { pid, stamp, style: Style { kind, digits, difference, number, pointer }, body }
    }

    /// True if strace wrote this before the body: a pid, a time, or both.
    pub(crate) fn has_leader(&self) -> bool {
        self.pid.is_some() || self.stamp.is_some()
    }

    pub(crate) fn says(&self) -> Body<'a> {
        Body::of(self.body)
    }
}

fn pid(line: &[u8]) -> (Option<i32>, &[u8]) {
    if let Some(rest) = line.strip_prefix(b"[pid ") {
        if let Some((rest, number)) = decimal(rest.trim_ascii_start())
            && let Some(rest) = after_comm(rest).strip_prefix(b"] ")
        {
            return (id(number), rest);
        }
        return (None, line);
    }
    if let Some((rest, number)) = decimal(line)
        && let Some(rest) = after_comm(rest).strip_prefix(b" ")
        && let Some(pid) = id(number)
    {
        return (Some(pid), rest);
    }
    (None, line)
}

/// `--secontext` prints the context of the task before the time: `[unconfined_t] `.
fn without_context(rest: &[u8]) -> &[u8] {
    let is_of_context = |byte: &u8| byte.is_ascii_alphanumeric() || b"_:.,!-".contains(byte);
    let is_context = |inside: &[u8]| {
        inside.iter().all(is_of_context) && inside.iter().any(u8::is_ascii_alphabetic)
    };
    without_brackets(rest, |inside| is_context(inside) && !is_pointer(inside)).1
}

/// The time, the digits after its point, and what follows. Seconds without a fraction are told from a pid where
/// they are `second` or behind a space.
fn stamp(rest: &[u8], second: bool) -> (Option<Stamp>, u8, &[u8]) {
    let none = (None, 0, rest);
    let Some((after, first)) = decimal(rest) else { return none };
    let (stamp, digits, after) = match after.first() {
        Some(b':') => match of_day(first, after) {
            Some(found) => found,
            None => return none,
        },
        Some(b'.') => match fraction_ns(&after[1..]) {
            Some((after, digits, ns)) => (seconds(first, ns), digits, after),
            None => return none,
        },
        // Seconds without a fraction: larger than any pid, or `-r`.
        Some(b' ') if first >= UNIX_MIN_S || second => (seconds(first, 0), 0, after),
        _ => return none,
    };
    match after.strip_prefix(b" ") {
        Some(body) => (Some(stamp), digits, body.trim_ascii_start()),
        None => none,
    }
}

/// `-r` beside an absolute time: `12:00:00.000000 (+     0.000123) `.
fn without_difference(body: &[u8]) -> (bool, &[u8]) {
    let difference = || {
        let rest = body.strip_prefix(b"(+")?.trim_ascii_start();
        let (rest, _) = decimal(rest)?;
        let rest = match rest.strip_prefix(b".") {
            Some(rest) => fraction_ns(rest)?.0,
            None => rest,
        };
        rest.strip_prefix(b")")
    };
    match difference() {
        Some(rest) => (true, rest.trim_ascii_start()),
        None => (false, body),
    }
}

/// Rest behind `[…] `, if what is inside is as wanted.
fn without_brackets(rest: &[u8], wanted: impl Fn(&[u8]) -> bool) -> (bool, &[u8]) {
    let inside = || {
        let inside = rest.strip_prefix(b"[")?;
        let end = inside.iter().take(256).position(|byte| *byte == b']')?;
        let after = inside[end + 1..].strip_prefix(b" ")?;
        wanted(inside[..end].trim_ascii_start()).then_some(after)
    };
    match inside() {
        Some(after) => (true, after.trim_ascii_start()),
        None => (false, rest),
    }
}

/// Four or more digits for the number of a call, or question marks.
fn is_number(inside: &[u8]) -> bool {
    let is_unknown = !inside.is_empty() && inside.len() < 8 && inside.iter().all(|it| *it == b'?');
    let is_number = (1..8).contains(&inside.len()) || inside.len() == 10;
    is_unknown || is_number && inside.iter().all(u8::is_ascii_digit)
}

/// 8 or 16 digits, fewer in old versions, which pad them with spaces.
fn is_pointer(inside: &[u8]) -> bool {
    let is_unknown = inside.len() >= 8 && inside.iter().all(|byte| *byte == b'?');
    is_unknown || (4..=16).contains(&inside.len()) && inside.iter().all(u8::is_ascii_hexdigit)
}

fn seconds(seconds: u64, ns: u64) -> Stamp {
    let total = seconds.saturating_mul(SECOND_NS).saturating_add(ns);
    if seconds >= UNIX_MIN_S { Stamp::Unix(total) } else { Stamp::SinceLast(total) }
}

/// The rest of `12:34:56.123456`.
fn of_day(hours: u64, after_hours: &[u8]) -> Option<(Stamp, u8, &[u8])> {
    let (rest, minutes) = decimal(after_hours.strip_prefix(b":")?)?;
    let (rest, seconds) = decimal(rest.strip_prefix(b":")?)?;
    if hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    let whole = (hours * 3600 + minutes * 60 + seconds) * SECOND_NS;
    match rest.strip_prefix(b".") {
        Some(rest) => {
            let (rest, digits, ns) = fraction_ns(rest)?;
            Some((Stamp::OfDay(whole + ns), digits, rest))
        }
        None => Some((Stamp::OfDay(whole), 0, rest)),
    }
}

/// Rest behind the fraction, the number of its digits, and nanoseconds.
fn fraction_ns(text: &[u8]) -> Option<(&[u8], u8, u64)> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=9).contains(&digits) {
        return None;
    }
    let (rest, number) = decimal(text)?;
    let scale = u32::try_from(9 - digits).ok()?;
    Some((rest, u8::try_from(digits).ok()?, number * 10_u64.pow(scale)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> (Option<i32>, Option<Stamp>, &str) {
        let Line { pid, stamp, body, .. } = Line::of(line.as_bytes());
        (pid, stamp, std::str::from_utf8(body).unwrap())
    }

    #[test]
    fn a_line_begins_with_a_task_and_a_time_or_neither() {
        let noon = Stamp::OfDay(43_200 * SECOND_NS + 123_000);
        let unix = Stamp::Unix(1_700_000_000 * SECOND_NS + 5_000);
        for (line, wanted) in [
            ("read(3) = 0", (None, None, "read(3) = 0")),
            ("12  read(3) = 0", (Some(12), None, "read(3) = 0")),
            ("[pid  12] read(3) = 0", (Some(12), None, "read(3) = 0")),
            ("[pid 12<sh>] read(3) = 0", (Some(12), None, "read(3) = 0")),
            ("12<a b> read(3) = 0", (Some(12), None, "read(3) = 0")),
            ("12:00:00.000123 read(3) = 0", (None, Some(noon), "read(3) = 0")),
            ("12 12:00:00 x(", (Some(12), Some(Stamp::OfDay(43_200 * SECOND_NS)), "x(")),
            ("[pid 7] 1700000000.000005 x(", (Some(7), Some(unix), "x(")),
            ("1700000000.000005 x(", (None, Some(unix), "x(")),
            ("1700000000 x(", (None, Some(Stamp::Unix(1_700_000_000 * SECOND_NS)), "x(")),
            ("7     0.000005 x(", (Some(7), Some(Stamp::SinceLast(5_000)), "x(")),
            ("     0.000005 x(", (None, Some(Stamp::SinceLast(5_000)), "x(")),
            ("     2 x(", (None, Some(Stamp::SinceLast(2 * SECOND_NS)), "x(")),
            ("7          2 x(", (Some(7), Some(Stamp::SinceLast(2 * SECOND_NS)), "x(")),
            ("12:00:00.000123 (+     0.1) x(", (None, Some(noon), "x(")),
            ("12:00:00.000123 (+     3) x(", (None, Some(noon), "x(")),
            ("12:00:00.000123 (+ x) x(", (None, Some(noon), "(+ x) x(")),
            ("7 12:00:00.000123 [  59] x(", (Some(7), Some(noon), "x(")),
            ("7 12:00:00.000123 [00007fec8ad7d49b] x(", (Some(7), Some(noon), "x(")),
            ("7 12:00:00.000123 [????????????????] x(", (Some(7), Some(noon), "x(")),
            ("7 12:00:00.000123 [ 257] [00007fec8ad7d49b] x(", (Some(7), Some(noon), "x(")),
            ("[    7fec8ad7d49b] x(", (None, None, "x(")),
            ("7 [unconfined_t] 12:00:00.000123 x(", (Some(7), Some(noon), "x(")),
            ("7 [u:r:t:s0-s0:c0.c1] x(", (Some(7), None, "x(")),
            ("25:00:00 x(", (None, None, "25:00:00 x(")),
            ("99999999999 x(", (None, Some(Stamp::Unix(u64::MAX)), "x(")),
            ("[pid x] y", (None, None, "[pid x] y")),
            ("", (None, None, "")),
        ] {
            assert_eq!(of(line), wanted, "{line}");
        }
    }

    #[test]
    fn lines_of_one_strace_begin_alike() {
        let style = |line: &str| Line::of(line.as_bytes()).style;
        let first = style("[pid 7] 12:00:00.000123 x(");
        assert_eq!(first, style("13:00:00.000000 y("));
        for other in [
            "13:00:00 x(",
            "13:00:00.123 x(",
            "1700000000.000005 x(",
            "13:00:00.000000 (+     0.000001) x(",
            "13:00:00.000000 [  59] x(",
            "13:00:00.000000 [00007fec8ad7d49b] x(",
            "x(",
        ] {
            assert_ne!(first, style(other), "{other}");
        }
    }
}
