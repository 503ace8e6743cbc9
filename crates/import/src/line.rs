//! One line of a log of strace: the task, the time, and what it says.

use crate::names::signal;
use crate::text::find;

/// pids are smaller: PID_MAX_LIMIT of the kernel.
const PID_MAX: u64 = 1 << 22;
/// A time in seconds below this is a difference (`-r`): it would be in 1973.
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

/// A line taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub(crate) pid: Option<i32>,
    pub(crate) stamp: Option<Stamp>,
    pub(crate) body: &'a [u8],
}

impl<'a> Line<'a> {
    pub(crate) fn of(line: &'a [u8]) -> Self {
        let (pid, rest) = pid(line);
        let (stamp, body) = stamp(rest.trim_ascii_start());
        Line { pid, stamp, body }
    }
}

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body<'a> {
    /// A call, with what follows its parenthesis, complete or without its end.
    Call { name: &'a [u8], text: &'a [u8] },
    /// The end of a call that began on an earlier line.
    Resumed { name: &'a [u8], text: &'a [u8] },
    /// A signal arrived.
    Signal { text: &'a [u8] },
    /// The task ended, with this status of wait(2).
    Ended { status: u32 },
    /// Another thread of the process called exec and takes over this pid.
    Superseded { by: i32 },
    /// strace began to follow a task.
    Attached { pid: i32 },
    /// strace stopped following a task.
    Detached,
    /// Something else that strace says, and that matters to nobody.
    Remark,
    /// Not understood.
    Other,
}

impl<'a> Body<'a> {
    pub(crate) fn of(body: &'a [u8]) -> Self {
        match body.first() {
            Some(b'+') => ended(body).unwrap_or(Self::Other),
            Some(b'-') if body.starts_with(b"--- ") && body.ends_with(b" ---") => {
                Self::Signal { text: body }
            }
            Some(b'<') => resumed(body).unwrap_or(Self::Other),
            Some(b'a'..=b'z' | b'_' | b'?') => call(body).unwrap_or_else(|| message(body)),
            None => Self::Remark,
            _ => message(body),
        }
    }
}

fn call(body: &[u8]) -> Option<Body<'_>> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'?';
    let end = body.iter().position(|byte| !is_name(byte))?;
    let text = body[end..].strip_prefix(b"(")?;
    Some(Body::Call { name: &body[..end], text })
}

fn resumed(body: &[u8]) -> Option<Body<'_>> {
    let rest = body.strip_prefix(b"<... ")?;
    let end = rest.iter().position(|byte| *byte == b' ')?;
    let text = rest[end..].strip_prefix(b" resumed>")?;
    Some(Body::Resumed { name: &rest[..end], text })
}

fn ended(body: &[u8]) -> Option<Body<'_>> {
    let said = body.strip_prefix(b"+++ ")?;
    let said = said.get(..find(said, 0, b" +++")?)?;
    if let Some(code) = said.strip_prefix(b"exited with ") {
        let code = decimal(code)?.1;
        return Some(Body::Ended { status: u32::try_from(code & 0xff).ok()? << 8 });
    }
    if let Some(killed) = said.strip_prefix(b"killed by ") {
        let end = killed.iter().position(|byte| *byte == b' ').unwrap_or(killed.len());
        let core = if killed[end..].starts_with(b" (core dumped)") { 0x80 } else { 0 };
        return Some(Body::Ended { status: u32::try_from(signal(&killed[..end])?).ok()? | core });
    }
    let by = said.strip_prefix(b"superseded by execve in pid ")?;
    Some(Body::Superseded { by: id(decimal(by)?.1)? })
}

/// What strace itself says.
fn message(body: &[u8]) -> Body<'_> {
    let own = body.strip_prefix(b"strace: ");
    let said = own.unwrap_or(body);
    if let Some(rest) = said.strip_prefix(b"Process ")
        && let Some((rest, pid)) = decimal(rest)
        && let Some(pid) = id(pid)
    {
        if after_comm(rest).starts_with(b" attached") {
            return Body::Attached { pid };
        }
        if after_comm(rest).starts_with(b" detached") {
            return Body::Detached;
        }
    }
    if own.is_some() { Body::Remark } else { Body::Other }
}

/// A line that strace's message about a new task interrupts: what precedes the message, and the task.
pub(crate) fn interrupted(line: &[u8]) -> Option<(&[u8], i32)> {
    const MESSAGE: &[u8] = b"strace: Process ";
    if !line.ends_with(b" attached") {
        return None;
    }
    let at = (1..line.len()).rev().find(|at| line[*at..].starts_with(MESSAGE))?;
    let (_, pid) = decimal(&line[at + MESSAGE.len()..])?;
    // Between lines it is a line of its own.
    (!line[at..].is_empty()).then_some((&line[..at], id(pid)?))
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

/// `--decode-pids=comm` prints names after pids: `123<sh>`.
fn after_comm(rest: &[u8]) -> &[u8] {
    if !rest.starts_with(b"<") {
        return rest;
    }
    let end = rest.iter().position(|byte| *byte == b'>');
    end.and_then(|end| rest.get(end + 1..)).unwrap_or(rest)
}

/// A number as a pid.
pub(crate) fn id(number: u64) -> Option<i32> {
    i32::try_from(number).ok().filter(|pid| *pid > 0 && number <= PID_MAX)
}

fn stamp(rest: &[u8]) -> (Option<Stamp>, &[u8]) {
    let Some((after, first)) = decimal(rest) else { return (None, rest) };
    let (stamp, after) = match after.first() {
        Some(b':') => match of_day(first, after) {
            Some(found) => found,
            None => return (None, rest),
        },
        Some(b'.') => match fraction_ns(&after[1..]) {
            Some((after, ns)) => (seconds(first, ns), after),
            None => return (None, rest),
        },
        // Seconds without a fraction: larger than any pid.
        Some(b' ') if first >= UNIX_MIN_S => (seconds(first, 0), after),
        _ => return (None, rest),
    };
    let Some(body) = after.strip_prefix(b" ") else { return (None, rest) };
    (Some(stamp), without_difference(body.trim_ascii_start()))
}

/// `-r` beside an absolute time: `12:00:00.000000 (+     0.000123) `.
fn without_difference(body: &[u8]) -> &[u8] {
    if !body.starts_with(b"(+") {
        return body;
    }
    let end = body.iter().position(|byte| *byte == b')');
    end.and_then(|end| body.get(end + 1..)).unwrap_or(body).trim_ascii_start()
}

fn seconds(seconds: u64, ns: u64) -> Stamp {
    let total = seconds.saturating_mul(SECOND_NS).saturating_add(ns);
    if seconds >= UNIX_MIN_S { Stamp::Unix(total) } else { Stamp::SinceLast(total) }
}

/// The rest of `12:34:56.123456`.
fn of_day(hours: u64, after_hours: &[u8]) -> Option<(Stamp, &[u8])> {
    let (rest, minutes) = decimal(after_hours.strip_prefix(b":")?)?;
    let (rest, seconds) = decimal(rest.strip_prefix(b":")?)?;
    if hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    let whole = (hours * 3600 + minutes * 60 + seconds) * SECOND_NS;
    match rest.strip_prefix(b".") {
        Some(rest) => {
            let (rest, ns) = fraction_ns(rest)?;
            Some((Stamp::OfDay(whole + ns), rest))
        }
        None => Some((Stamp::OfDay(whole), rest)),
    }
}

fn fraction_ns(text: &[u8]) -> Option<(&[u8], u64)> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=9).contains(&digits) {
        return None;
    }
    let (rest, number) = decimal(text)?;
    let scale = u32::try_from(9 - digits).ok()?;
    Some((rest, number * 10_u64.pow(scale)))
}

/// The number at the start, and what follows.
pub(crate) fn decimal(text: &[u8]) -> Option<(&[u8], u64)> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=18).contains(&digits) {
        return None;
    }
    let (number, rest) = text.split_at(digits);
    Some((rest, number.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> (Option<i32>, Option<Stamp>, &str) {
        let Line { pid, stamp, body } = Line::of(line.as_bytes());
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
            ("12:00:00.000123 (+     0.1) x(", (None, Some(noon), "x(")),
            ("25:00:00 x(", (None, None, "25:00:00 x(")),
            ("99999999999 x(", (None, Some(Stamp::Unix(u64::MAX)), "x(")),
            ("[pid x] y", (None, None, "[pid x] y")),
            ("", (None, None, "")),
        ] {
            assert_eq!(of(line), wanted, "{line}");
        }
    }

    #[test]
    fn bodies_are_told_apart() {
        let of = |text: &'static str| Body::of(text.as_bytes());
        assert_eq!(of("a_1(2) = 3"), Body::Call { name: b"a_1", text: b"2) = 3" });
        assert_eq!(of("<... a resumed>) = 3"), Body::Resumed { name: b"a", text: b") = 3" });
        assert_eq!(of("+++ exited with 3 +++"), Body::Ended { status: 0x300 });
        assert_eq!(of("+++ killed by SIGSEGV (core dumped) +++"), Body::Ended { status: 0x8b });
        assert_eq!(of("+++ killed by SIGKILL +++"), Body::Ended { status: 9 });
        assert_eq!(of("+++ superseded by execve in pid 7 +++"), Body::Superseded { by: 7 });
        assert_eq!(
            of("--- SIGCHLD {si_pid=3} ---"),
            Body::Signal { text: b"--- SIGCHLD {si_pid=3} ---" }
        );
        assert_eq!(of("strace: Process 9 attached"), Body::Attached { pid: 9 });
        assert_eq!(of("Process 9 attached (waiting for parent)"), Body::Attached { pid: 9 });
        assert_eq!(of("strace: Process 9 detached"), Body::Detached);
        assert_eq!(of("strace: attach: ptrace"), Body::Remark);
        for other in ["hello world", "+++ exited", "<... x", "12", "Hello (world)", "+++ x +++"] {
            assert_eq!(of(other), Body::Other, "{other}");
        }
    }

    #[test]
    fn a_message_may_interrupt_a_line() {
        let line = b"clone(flags=SIGCHLDstrace: Process 12 attached";
        assert_eq!(interrupted(line), Some((&b"clone(flags=SIGCHLD"[..], 12)));
        assert_eq!(interrupted(b"strace: Process 12 attached"), None);
        assert_eq!(interrupted(b"x"), None);
    }
}
