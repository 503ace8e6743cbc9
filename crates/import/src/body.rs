//! The text of a line of strace after its time: a call, the rest of one, a signal, an end, or a remark. A line
//! counts only as a whole: what merely begins like one of these was written by somebody else, or is not all there.

use crate::names::signal;
use crate::numbers::{after_comm, decimal, id};
use crate::remark;
use crate::syscalls::is_a_call;
use crate::text::find;

/// The content of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body<'a> {
    /// A call, with what follows its parenthesis: whole, or up to the mark that its end follows on a later line.
    Call { name: &'a [u8], text: &'a [u8] },
    /// The end of a call that began on an earlier line.
    Resumed { name: &'a [u8], text: &'a [u8] },
    /// A call of this name without an end and without such a mark.
    Cut { name: &'a [u8], text: &'a [u8] },
    /// A signal arrived.
    Signal { text: &'a [u8] },
    /// The task ended, with this status of wait(2).
    Ended { status: u32 },
    /// Another thread of the process called exec and takes over this pid.
    Superseded { by: i32 },
    /// strace began to follow a task, with others if the process had more than one.
    Attached { pid: i32, tasks: u64 },
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
            Some(b'-') if is_signal(body) => Self::Signal { text: body },
            Some(b'<') => resumed(body).unwrap_or(Self::Other),
            Some(b'a'..=b'z' | b'_' | b'?') => call(body).unwrap_or_else(|| message(body)),
            None => Self::Remark,
            _ => message(body),
        }
    }

    /// True if strace wrote the line, as far as its body shows.
    pub(crate) fn is_whole(&self) -> bool {
        !matches!(self, Self::Cut { .. } | Self::Other)
    }

    /// True if it is about what a task did.
    pub(crate) fn is_of_a_task(&self) -> bool {
        matches!(
            self,
            Self::Call { .. }
                | Self::Resumed { .. }
                | Self::Signal { .. }
                | Self::Ended { .. }
                | Self::Superseded { .. }
        )
    }
}

fn call(body: &[u8]) -> Option<Body<'_>> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'?';
    let end = body.iter().position(|byte| !is_name(byte))?;
    let (name, rest) = body.split_at(end);
    // strace 4 writes `???? (`.
    let text = rest.strip_prefix(b"(").or_else(|| rest.strip_prefix(b" ("))?;
    if !is_a_call(name) || rest.starts_with(b" ") && name.first() != Some(&b'?') {
        return None;
    }
    Some(if is_whole(text) { Body::Call { name, text } } else { Body::Cut { name, text } })
}

fn resumed(body: &[u8]) -> Option<Body<'_>> {
    let rest = body.strip_prefix(b"<... ")?;
    let end = rest.iter().position(|byte| *byte == b' ')?;
    let text = rest[end..].strip_prefix(b" resumed>")?;
    let name = &rest[..end];
    // A thread that is ended by another's exec or exit: `<... futex resumed>) = ?`
    (is_a_call(name) && is_whole(text)).then_some(Body::Resumed { name, text })
}

/// True if what follows the parenthesis of a call ends as a call does.
fn is_whole(text: &[u8]) -> bool {
    // Where its end follows, on a line of its own.
    if text.ends_with(b" ...>") {
        let marks: [&[u8]; 3] = [b"<unfinished ...>", b"<detached ...>", b"<pid changed to "];
        let from = text.len().saturating_sub(40);
        if marks.iter().any(|mark| find(text, from, mark).is_some()) {
            return true;
        }
    }
    // The last one is it, unless a path contains another.
    let mut until = text.len();
    for _ in 0..4 {
        let Some(at) = text[..until].windows(2).rposition(|pair| pair == b"= ") else {
            return false;
        };
        let before = text[..at].trim_ascii_end();
        if before.len() < at && before.ends_with(b")") && is_result(&text[at + 2..]) {
            return true;
        }
        until = at + 1;
    }
    false
}

/// True if a text is what a call returned, with everything that strace may write after it: an error, its description,
/// a path, a time.
fn is_result(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_hexadecimal = digits.starts_with(b"0x");
    let number = match digits.strip_prefix(b"0x") {
        Some(digits) => digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count() + 2,
        None if digits.starts_with(b"?") => 1,
        None => digits.iter().take_while(|byte| byte.is_ascii_digit()).count(),
    };
    if number == 0 || is_hexadecimal && number == 2 {
        return false;
    }
    let after = &digits[number..];
    let Some((first, _)) = after.split_first() else { return true };
    let next = after.trim_ascii_start();
    let is_begun = match first {
        b'<' | b'(' => true,
        b' ' => match next.first() {
            Some(b'(' | b'<' | b'[' | b'/') => true,
            Some(b'E') => next.get(1).is_some_and(u8::is_ascii_uppercase),
            // `-e kvm=vcpu+`
            Some(b'V') => return next.starts_with(b"VCPU"),
            _ => false,
        },
        _ => false,
    };
    is_begun && matches!(after.last(), Some(b')' | b'>' | b']' | b'/'))
}

/// `--- SIGCHLD {si_signo=…} ---`, `--- SIGCHLD (Child exited) @ 0 (0) ---`, `--- stopped by SIGTTOU ---`.
fn is_signal(body: &[u8]) -> bool {
    let inside = body.strip_prefix(b"--- ").and_then(|rest| rest.strip_suffix(b" ---"));
    let Some(inside) = inside else { return false };
    if let Some(name) = inside.strip_prefix(b"stopped by ") {
        return is_signal_name(name);
    }
    let end = inside.iter().position(|byte| *byte == b' ').unwrap_or(inside.len());
    let (name, after) = inside.split_at(end);
    is_signal_name(name) && matches!(after.get(1), Some(b'{' | b'(' | b'@'))
}

fn is_signal_name(name: &[u8]) -> bool {
    let is_of_name =
        |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    name.strip_prefix(b"SIG").is_some_and(|rest| !rest.is_empty() && rest.iter().all(is_of_name))
}

fn ended(body: &[u8]) -> Option<Body<'_>> {
    let said = body.strip_prefix(b"+++ ")?.strip_suffix(b" +++")?;
    if let Some(code) = said.strip_prefix(b"exited with ") {
        let (rest, code) = decimal(code)?;
        return (rest.is_empty())
            .then_some(Body::Ended { status: u32::try_from(code & 0xff).ok()? << 8 });
    }
    if let Some(killed) = said.strip_prefix(b"killed by ") {
        let end = killed.iter().position(|byte| *byte == b' ').unwrap_or(killed.len());
        let core = match &killed[end..] {
            b"" => 0,
            b" (core dumped)" => 0x80,
            _ => return None,
        };
        return Some(Body::Ended { status: u32::try_from(signal(&killed[..end])?).ok()? | core });
    }
    let by = said.strip_prefix(b"superseded by execve in pid ")?;
    let (rest, by) = decimal(by)?;
    after_comm(rest).is_empty().then_some(Body::Superseded { by: id(by)? })
}

/// Message of strace itself.
fn message(body: &[u8]) -> Body<'_> {
    let own = remark::without_own_name(body);
    let said = own.unwrap_or(body);
    let bare = said.strip_prefix(b"[ ").and_then(|said| said.strip_suffix(b" ]")).unwrap_or(said);
    if let Some(rest) = bare.strip_prefix(b"Process ")
        && let Some((rest, pid)) = decimal(rest)
        && let Some(pid) = id(pid)
    {
        let rest = after_comm(rest);
        if let Some(rest) = rest.strip_prefix(b" attached") {
            if let Some(tasks) = attached(rest) {
                return Body::Attached { pid, tasks };
            }
        } else if rest == b" detached" {
            return Body::Detached;
        } else if remark::is_of_old_versions(rest) {
            return Body::Remark;
        }
    }
    if own.is_some() || remark::is_known(body) { Body::Remark } else { Body::Other }
}

/// The number of tasks of a process that strace attached to.
fn attached(rest: &[u8]) -> Option<u64> {
    if matches!(rest, b"" | b" (waiting for parent)") {
        return Some(1);
    }
    let (rest, tasks) = decimal(rest.strip_prefix(b" with ")?)?;
    matches!(rest, b" threads" | b" thread").then_some(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_told_apart() {
        let of = |text: &'static str| Body::of(text.as_bytes());
        assert_eq!(of("openat(2) = 3"), Body::Call { name: b"openat", text: b"2) = 3" });
        assert_eq!(of("<... read resumed>) = 3"), Body::Resumed { name: b"read", text: b") = 3" });
        assert_eq!(of("+++ exited with 3 +++"), Body::Ended { status: 0x300 });
        assert_eq!(of("+++ killed by SIGSEGV (core dumped) +++"), Body::Ended { status: 0x8b });
        assert_eq!(of("+++ killed by SIGKILL +++"), Body::Ended { status: 9 });
        assert_eq!(of("+++ superseded by execve in pid 7 +++"), Body::Superseded { by: 7 });
        for signal in [
            "--- SIGCHLD {si_pid=3} ---",
            "--- SIGRT_2 (Real-time signal 0) @ 0 (0) ---",
            "--- stopped by SIGTTOU ---",
        ] {
            assert_eq!(of(signal), Body::Signal { text: signal.as_bytes() });
        }
        let attached = |tasks| Body::Attached { pid: 9, tasks };
        assert_eq!(of("strace: Process 9 attached"), attached(1));
        assert_eq!(of("/opt/bin/strace: Process 9 attached"), attached(1));
        assert_eq!(of("strace: Process 9 attached with 6 threads"), attached(6));
        assert_eq!(of("Process 9 attached (waiting for parent)"), attached(1));
        assert_eq!(of("[ Process 9 attached ]"), attached(1));
        assert_eq!(of("strace: Process 9<sh> detached"), Body::Detached);
        for remark in [
            "strace: attach: ptrace(PTRACE_SEIZE, 7): Operation not permitted",
            "[ Process PID=12079 runs in 32 bit mode. ]",
            "Process 7 resumed (parent 6 ready)",
            "",
        ] {
            assert_eq!(of(remark), Body::Remark, "{remark}");
        }
    }

    #[test]
    fn what_only_begins_like_a_line_of_strace_is_not_one() {
        for other in [
            "hello world",
            "+++ exited",
            "+++ exited with 0 +++ maybe",
            "+++ x +++",
            "<... x",
            "<... elapsed resumed>) = 3",
            "<... read resumed> at last",
            "12",
            "Hello (world)",
            "elapsed(3) = 5",
            "elapsed, 1 of 3 done",
            "--- results ---",
            "--- SIGNIFICANT ---",
            "Process 9 attached to the queue",
            "[ Process 9 runs fast ]",
            "retry (3) = 5",
        ] {
            assert_eq!(Body::of(other.as_bytes()), Body::Other, "{other}");
        }
        for cut in [
            "openat(AT_FDCWD, \"x\", O_RDONLY",
            "openat(AT_FDCWD, \"x\", O_RDONLY) failed",
            "openat(AT_FDCWD, \"x\", O_RDONLY) = 3 oops",
            "read(3, \"a) = 0\", 5",
            "write(2, \"hello\\n\", 6hello",
            "read(3) = 0.5",
            "read(3) = 0x",
        ] {
            let body = Body::of(cut.as_bytes());
            assert!(matches!(body, Body::Cut { .. }), "{cut}: {body:?}");
        }
    }

    #[test]
    fn calls_end_in_many_ways() {
        for whole in [
            "exit_group(0)           = ?",
            "exit_group(0 <unfinished ...>)  = ?",
            "read(0,  <unfinished ...>",
            "execve(\"/x\", [\"x\"], 0x7f /* 3 vars */ <pid changed to 100 ...>",
            "wait4(-1,  <detached ...>",
            "openat(AT_FDCWD, \"x\", O_RDONLY) = 3</a) = b>",
            "openat(AT_FDCWD, \"x\", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000008>",
            "openat(AT_FDCWD, \"x\", O_RDONLY) = -1 EACCES (Permission denied) (INJECTED)",
            "ioctl(3, 0x1) = -1 (errno 530)",
            "ioctl(3, 0x1) = -1 (errno 18446744073709551595)",
            "pause() = ? ERESTARTNOHAND (To be restarted if no handler)",
            "read(3) = ? <unavailable>",
            "mmap(NULL, 5) = 0x7f0000001000 <0.000012>",
            "poll([{fd=3}], 1, 5) = 0 (Timeout)",
            "pselect6(4, [3]) = 1 (in [3], left {tv_sec=1, tv_nsec=5})",
            "open(\"/dev/pts/0\", O_RDWR) = 3</dev/pts/0<char 136:0>>",
            "fork() = 2 /* 4711 in strace's PID NS */",
            "openat(AT_FDCWD [u:r], \"x\" [u:r], O_RDONLY) = 3 [u:r:t]",
            "umask(022) = 022",
            "syscall_0x1ff(0, 0) = -1 ENOSYS (Function not implemented)",
            "????( <unfinished ...>",
        ] {
            let body = Body::of(whole.as_bytes());
            assert!(matches!(body, Body::Call { .. }), "{whole}: {body:?}");
        }
    }
}
