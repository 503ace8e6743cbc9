//! Remarks of strace besides calls, from which nothing follows: messages, stack traces (`-k`), dumps of data
//! (`-e read=…`), and the table of `-C`.

use crate::numbers::{after_comm, decimal};
use crate::syscalls::is_a_call;
use crate::text::find;

/// Text behind `strace: `, before which the path stands by which strace was called.
pub(crate) fn without_own_name(body: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b"strace: ";
    if let Some(rest) = body.strip_prefix(NAME) {
        return Some(rest);
    }
    let at = find(body, 0, NAME)?;
    let path = &body[..at];
    let is_path = path.ends_with(b"/") && !path.contains(&b' ') && !path.contains(&b'(');
    is_path.then(|| &body[at + NAME.len()..])
}

/// True for what strace 4 says of `Process 7`.
pub(crate) fn is_of_old_versions(rest: &[u8]) -> bool {
    rest == b" suspended"
        || rest == b" resumed"
        || rest.starts_with(b" resumed (parent ") && rest.ends_with(b" ready)")
}

/// True if a line without a call is one that strace writes.
pub(crate) fn is_known(line: &[u8]) -> bool {
    is_personality(line) || is_frame(line) || is_dump(line) || is_of_table(line)
}

/// `[ Process PID=12079 runs in 32 bit mode. ]`
fn is_personality(line: &[u8]) -> bool {
    let inside =
        line.strip_prefix(b"[ Process PID=").and_then(|rest| rest.strip_suffix(b" mode. ]"));
    let after = inside.and_then(decimal).map(|(rest, _)| after_comm(rest));
    after.is_some_and(|rest| rest.starts_with(b" runs in "))
}

/// A frame of a stack trace: ` > /lib/libc.so.6(execve+0x7) [0xd0ad7] file.c:12`.
fn is_frame(line: &[u8]) -> bool {
    // The space before it has been taken for that before a time.
    let frame = line.strip_prefix(b" > ").or_else(|| line.strip_prefix(b"> "));
    let Some(frame) = frame else { return false };
    let texts: [&[u8]; 3] =
        [b"no matching address range", b"unexpected_backtracing_error", b"backtracing_error"];
    if texts.iter().any(|text| frame.starts_with(text)) {
        return true;
    }
    find(frame, 0, b"[0x").is_some_and(|at| frame[at..].contains(&b']'))
}

/// A line of dumped data: ` | 00000  7f 45 4c 46 02 01 01 03  00 00 00 00 00 00 00 00  .ELF............ |`, or the buffer
/// that precedes several: ` * 12 bytes in buffer 0`.
fn is_dump(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    if let Some(rest) = line.strip_prefix(b"* ") {
        return decimal(rest).is_some_and(|(rest, _)| rest.starts_with(b" bytes in "));
    }
    if line.starts_with(b"| <Cannot fetch ") || line.starts_with(b"= ") && line.ends_with(b"bytes")
    {
        return true;
    }
    let inside = line.strip_prefix(b"| ").and_then(|rest| rest.strip_suffix(b" |"));
    let Some(inside) = inside else { return false };
    let offset = inside.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    offset >= 5 && inside[offset..].starts_with(b"  ")
}

/// A line of the table that `-C` writes at the end: its head, a rule, or a row, whose columns `-U` chooses.
fn is_of_table(line: &[u8]) -> bool {
    if line.starts_with(b"System call usage summary for ") {
        return true;
    }
    let words = || line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let is_rule = |word: &[u8]| word.len() >= 5 && word.iter().all(|byte| *byte == b'-');
    if words().count() >= 2 && words().all(is_rule) {
        return true;
    }
    let is_number = |word: &[u8]| word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let is_name = |word: &[u8]| word == b"total" || is_a_call(word);
    let (numbers, names) = (
        words().filter(|word| is_number(word)).count(),
        words().filter(|word| is_name(word)).count(),
    );
    let count = words().count();
    // In the table, names are in the last column or, with -U, in any.
    if names == 1 && numbers + 1 == count && numbers >= 1 {
        return true;
    }
    let is_head = |word: &[u8]| {
        matches!(
            word,
            b"%" | b"time"
                | b"seconds"
                | b"usecs/call"
                | b"calls"
                | b"errors"
                | b"syscall"
                | b"shortest"
                | b"longest"
                | b"wall-total"
                | b"wall-min"
                | b"wall-max"
                | b"wall-avg"
        )
    };
    count >= 2 && words().all(is_head) && words().any(|word| word == b"syscall")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_strace_writes_besides_calls_is_known() {
        for line in [
            "[ Process PID=12079 runs in 32 bit mode. ]",
            "[ Process PID=12079<sh> runs in x32 mode. ]",
            " > /usr/lib/libc.so.6(execve+0x7) [0xd0ad7]",
            " > /usr/lib/libc.so.6(__brk+0x7) [0x1fc47] ../sysdeps/brk.c:37",
            " > /usr/bin/true() [0x23f0]",
            " > no matching address range",
            " | 00000  7f 45 4c 46 02 01 01 03  00 00 00 00 00 00 00 00  .ELF............ |",
            " * 5 bytes in buffer 0",
            "% time     seconds  usecs/call     calls    errors syscall",
            "------ ----------- ----------- --------- --------- ----------------",
            " 48.21    0.000202         202         1           execve",
            "100.00    0.000419           3       110         5 total",
            "syscall              calls",
            "System call usage summary for 32 bit mode:",
        ] {
            assert!(is_known(line.as_bytes()), "{line}");
        }
        for line in [
            "a line of a program",
            " > quoted text",
            "| a | b |",
            "-----",
            "12 files",
            "48.21 0.1 elapsed",
            "[ Process PID=x runs in 32 bit mode. ]",
            "",
        ] {
            assert!(!is_known(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn strace_names_itself_as_it_was_called() {
        let of = |line: &'static str| without_own_name(line.as_bytes());
        assert_eq!(of("strace: x"), Some(&b"x"[..]));
        assert_eq!(of("/usr/bin/strace: x"), Some(&b"x"[..]));
        assert_eq!(of("see strace: x"), None);
        assert_eq!(of("my/file (strace: x"), None);
    }
}
