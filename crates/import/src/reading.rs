//! Reading one log line by line: what strace wrote as lines, and what programs wrote between them. If strace writes to
//! stderr, messages and output of programs may stand within a line as well as before it.

use std::io::{self, BufRead, Cursor, Read};

use proctrace_wire::Kind;

use crate::body::Body;
use crate::call::Role;
use crate::error::ImportError;
use crate::line::{DAY_NS, Line, Stamp, Style};
use crate::numbers::{decimal, id};
use crate::remark;
use crate::style::{style_of, without_colours};
use crate::text::find;

/// Maximum length of a line that is read: the arguments of an exec have at most 6 MiB, each byte at most four
/// characters.
const LINE_MAX: u64 = 32 << 20;
/// Lines that a program may write while a call is waiting for its end.
const BETWEEN_MAX: u32 = 1 << 12;
/// Bytes that are compared with such a call, whose arguments may be long.
const COMPARED_MAX: usize = 64 << 20;
/// Places in a line at which strace may begin to write.
const PLACES_MAX: usize = 16;
/// Maximum length of a line that is searched for such places.
const SEARCHED_MAX: usize = 1 << 16;

/// Writer of the current line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// strace, and it is whole.
    ByStrace,
    /// Not strace as far as it shows; or strace, but it is damaged, and would have become a record of this kind.
    Otherwise(Option<Kind>),
}

/// The beginning of a call whose end has not come yet, and the number of its line.
struct Held {
    line: Vec<u8>,
    number: u64,
    /// Lines of others since.
    between: u32,
    /// Bytes that were compared with it.
    compared: usize,
}

/// The current line of a log.
pub(crate) struct Reading {
    pub(crate) name: String,
    /// Task of lines without pid.
    pub(crate) anonymous: i32,
    /// True if all lines are of that task.
    pub(crate) is_of_one: bool,
    reader: Box<dyn BufRead>,
    style: Option<Style>,
    line: Vec<u8>,
    held: Option<Held>,
    /// A line that was read before its time.
    next: Option<(Vec<u8>, u64, bool)>,
    pub(crate) number: u64,
    read: u64,
    moments: Moments,
    /// The time of the line; that of the line before if it has none.
    pub(crate) moment_ns: u64,
    is_too_long: bool,
    /// The end of the log cuts the line.
    pub(crate) is_cut: bool,
    pub(crate) written: Written,
}

impl Reading {
    /// A log by its beginning and what follows, with the task of lines without pid; `is_of_one` if it is that of all.
    pub(crate) fn of(
        name: String,
        (beginning, rest): (Vec<u8>, Box<dyn BufRead>),
        day_ns: u64,
        (anonymous, is_of_one): (i32, bool),
    ) -> Self {
        let style = style_of(&beginning);
        let reader = Box::new(Cursor::new(beginning).chain(rest));
        Self { anonymous, is_of_one, ..Self::new(name, reader, style, day_ns) }
    }

    /// The beginning of a log by itself.
    pub(crate) fn of_beginning(beginning: Vec<u8>) -> Self {
        Self::of(String::new(), (beginning, Box::new(io::empty())), 0, (0, false))
    }

    fn new(name: String, reader: Box<dyn BufRead>, style: Option<Style>, day_ns: u64) -> Self {
        Self {
            name,
            anonymous: 0,
            is_of_one: false,
            reader,
            style,
            line: Vec::new(),
            held: None,
            next: None,
            number: 0,
            read: 0,
            moments: Moments { day_ns, last: None },
            moment_ns: 0,
            is_too_long: false,
            is_cut: false,
            written: Written::ByStrace,
        }
    }

    /// Reads the next line; false at the end.
    pub(crate) fn advance(&mut self) -> Result<bool, ImportError> {
        loop {
            if !self.next_raw()? {
                // What the end of the log cuts has not happened.
                return Ok(self.give_up(None));
            }
            if self.is_too_long {
                self.written = Written::Otherwise(self.loss());
                return Ok(true);
            }
            without_colours(&mut self.line);
            if self.decide() {
                return Ok(true);
            }
        }
    }

    /// Decides who wrote the line; false if the next one has to be read first.
    fn decide(&mut self) -> bool {
        self.skip_what_precedes();
        if let Some((before, pid)) = interrupted(&self.line) {
            if self.held.is_none() {
                self.held = Some(Held {
                    line: before.to_vec(),
                    number: self.number,
                    between: 0,
                    compared: 0,
                });
            }
            self.line = format!("strace: Process {pid} attached").into_bytes();
            self.written = Written::ByStrace;
            return true;
        }
        let line = Line::of(&self.line);
        let (has_leader, style, stamp) = (line.has_leader(), line.style, line.stamp);
        let said = line.says();
        let (is_of_a_task, is_whole) = (said.is_of_a_task(), said.is_whole());
        let is_cut_call = matches!(said, Body::Cut { .. });
        let fits = self.style.is_none_or(|known| known == style);
        if let Some(held) = &mut self.held {
            let begins = has_leader || self.style.is_some_and(|style| !style.has_time());
            if (is_of_a_task || is_cut_call) && fits && begins {
                // It is not going to be continued.
                let line = std::mem::take(&mut self.line);
                self.next = Some((line, self.number, self.is_cut));
                return self.give_up(Some(()));
            }
            if !has_leader && continues(&held.line, &self.line) {
                let rest = std::mem::take(&mut self.line);
                self.line = std::mem::take(&mut held.line);
                self.line.extend_from_slice(&rest);
                self.held = None;
                return self.decide();
            }
            held.between += 1;
            held.compared = held.compared.saturating_add(held.line.len() + self.line.len());
            if held.between > BETWEEN_MAX || held.compared > COMPARED_MAX {
                let line = std::mem::take(&mut self.line);
                self.next = Some((line, self.number, self.is_cut));
                return self.give_up(Some(()));
            }
        }
        if is_of_a_task && fits {
            self.style.get_or_insert(style);
            if let Some(stamp) = stamp {
                self.moment_ns = self.moments.of(stamp);
            }
            self.written = Written::ByStrace;
        } else if is_of_a_task {
            // Of another strace, perhaps: what it says is not lost without a word.
            let lost = self.loss().filter(|_| stamp.is_some());
            self.written = Written::Otherwise(lost);
        } else if is_whole || remark::is_known(&self.line) {
            self.written = Written::ByStrace;
        } else if is_cut_call && fits && !self.is_cut && self.held.is_none() {
            let line = std::mem::take(&mut self.line);
            self.held = Some(Held { line, number: self.number, between: 0, compared: 0 });
            return false;
        } else {
            self.written = Written::Otherwise(None);
        }
        true
    }

    /// Makes the call that has no end the current line; false if there is none. `damaged`: others follow it.
    fn give_up(&mut self, damaged: Option<()>) -> bool {
        let Some(held) = self.held.take() else { return false };
        (self.line, self.number) = (held.line, held.number);
        self.written = Written::Otherwise(damaged.and_then(|()| self.loss()));
        self.is_cut = damaged.is_none();
        true
    }

    /// The kind of record that the line would have become, if it is what strace writes of a call.
    fn loss(&self) -> Option<Kind> {
        let line = Line::of(&self.line);
        if self.style.is_some_and(|style| style.has_time()) && line.stamp.is_none() {
            return None;
        }
        match line.says() {
            Body::Call { name, text } | Body::Cut { name, text } if begins_as_a_call(text) => {
                Role::of(name).kind()
            }
            Body::Resumed { name, .. } => Role::of(name).kind(),
            _ => None,
        }
    }

    /// A program has written to the same line without ending it: `10 %… 12:00:00.000001 close(3) = 0`.
    fn skip_what_precedes(&mut self) {
        let Some(style) = self.style else { return };
        let is_strace = |line: &[u8]| {
            let line = Line::of(line);
            line.style == style && line.has_leader() && line.says() != Body::Other
        };
        let may_begin = |at: usize| {
            let before = self.line[at - 1];
            self.line[at..].starts_with(b"[pid ")
                || style.has_time() && self.line[at].is_ascii_digit() && !before.is_ascii_digit()
        };
        if self.line.len() > SEARCHED_MAX || Line::of(&self.line).says() != Body::Other {
            return;
        }
        let places = (1..self.line.len()).filter(|at| may_begin(*at)).take(PLACES_MAX);
        if let Some(at) = places.into_iter().find(|at| is_strace(&self.line[*at..])) {
            self.line.drain(..at);
        }
    }

    fn next_raw(&mut self) -> Result<bool, ImportError> {
        self.line.clear();
        self.is_too_long = false;
        if let Some((line, number, is_cut)) = self.next.take() {
            (self.line, self.number, self.is_cut) = (line, number, is_cut);
            return Ok(true);
        }
        let fail = |source| ImportError::Read { name: self.name.clone(), source };
        let read =
            self.reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut self.line).map_err(fail)?;
        if read == 0 {
            return Ok(false);
        }
        self.read += 1;
        self.number = self.read;
        let has_end = self.line.last() == Some(&b'\n');
        self.is_too_long = read as u64 == LINE_MAX && !has_end;
        self.is_cut = !has_end && !self.is_too_long;
        while self.line.last().is_some_and(|byte| *byte == b'\n' || *byte == b'\r') {
            self.line.pop();
        }
        if self.is_too_long {
            self.line.truncate(256);
            let fail = |source| ImportError::Read { name: self.name.clone(), source };
            skip_line(&mut *self.reader).map_err(fail)?;
        }
        Ok(true)
    }

    /// The current line taken apart.
    pub(crate) fn line(&self) -> Line<'_> {
        Line::of(&self.line)
    }

    pub(crate) fn raw(&self) -> &[u8] {
        &self.line
    }
}

/// True if a line without a beginning of its own is the rest of a call. strace writes on as if nothing had come
/// between; what a program wrote stands within the arguments then, and in its own lines.
fn continues(held: &[u8], rest: &[u8]) -> bool {
    let whole = [held, rest].concat();
    let line = Line::of(&whole);
    let Body::Call { name, .. } = line.says() else {
        return matches!(line.says(), Body::Resumed { .. });
    };
    // What comes next where a call that becomes a record has been interrupted: see the decoders of strace.
    let is_rest = rest.iter().find(|byte| **byte != b' ').is_none_or(|first| {
        matches!(first, b')' | b',' | b'<' | b'{' | b'[' | b'"' | b'=') || first.is_ascii_digit()
    });
    Role::of(name) == Role::Other || is_rest || rest.starts_with(b"NULL")
}

/// True if arguments may be those of a call that becomes a record: `open(file) failed` is what people write.
fn begins_as_a_call(text: &[u8]) -> bool {
    let Some(first) = text.iter().find(|byte| **byte != b' ') else { return true };
    let begins = matches!(first, b'"' | b'{' | b')' | b'<' | b'-') || first.is_ascii_digit();
    let named = |text: &[u8]| {
        let name = text.iter().take_while(|byte| byte.is_ascii_lowercase() || **byte == b'_');
        text.get(name.count()) == Some(&b'=')
    };
    let names: [&[u8]; 3] = [b"AT_FDCWD", b"NULL", b"PR_"];
    begins || named(text) || names.iter().any(|name| text.starts_with(name))
}

/// A line that strace's message about a new task interrupts: what precedes the message, and the task.
fn interrupted(line: &[u8]) -> Option<(&[u8], i32)> {
    const MESSAGE: &[u8] = b"strace: Process ";
    if !line.ends_with(b" attached") {
        return None;
    }
    let at = (1..line.len()).rev().find(|at| line[*at..].starts_with(MESSAGE))?;
    let (_, pid) = decimal(&line[at + MESSAGE.len()..])?;
    // The path by which strace was called: `vfork(/usr/bin/strace: Process 7 attached`.
    let ends = |byte: &u8| b" (,".contains(byte);
    let from = line[..at].iter().rposition(ends).map_or(0, |end| end + 1);
    // The end of a comment of -X verbose is none.
    let from = if line[from..at].starts_with(b"*/") { from + 2 } else { from };
    let path = find(&line[..at], from, b"/").filter(|_| line[..at].ends_with(b"/")).map(|slash| {
        let dots = line[from..slash].iter().rev().take_while(|byte| **byte == b'.').count();
        slash - dots
    });
    let at = path.unwrap_or(at);
    // Between lines it is a line of its own.
    (at > 0).then_some((&line[..at], id(pid)?))
}

fn skip_line(reader: &mut dyn BufRead) -> io::Result<()> {
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(());
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(bytes.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}

/// Converts the times of one log to one scale.
#[derive(Debug, Default)]
struct Moments {
    /// The day of the first line, for times of day.
    day_ns: u64,
    last: Option<(Stamp, u64)>,
}

impl Moments {
    fn of(&mut self, stamp: Stamp) -> u64 {
        let moment = match (stamp, self.last) {
            (Stamp::Unix(ns), _) => ns,
            (Stamp::SinceLast(ns), last) => last.map_or(0, |(_, at)| at).saturating_add(ns),
            (Stamp::OfDay(ns), Some((Stamp::OfDay(before), _))) => {
                // Across midnight, not only back by a step of the clock.
                if ns.saturating_add(DAY_NS / 2) < before {
                    self.day_ns = self.day_ns.saturating_add(DAY_NS);
                }
                self.day_ns.saturating_add(ns)
            }
            (Stamp::OfDay(ns), _) => self.day_ns.saturating_add(ns),
        };
        self.last = Some((stamp, moment));
        moment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a log: those of strace, and the others with the kind that is lost.
    fn read(text: &str) -> (Vec<String>, Vec<(u64, Option<Kind>)>) {
        let mut reading = Reading::of_beginning(text.as_bytes().to_vec());
        let (mut lines, mut others) = (Vec::new(), Vec::new());
        while reading.advance().unwrap() {
            let body = String::from_utf8_lossy(reading.line().body).into_owned();
            match reading.written {
                Written::ByStrace => lines.push(body),
                Written::Otherwise(lost) => others.push((reading.number, lost)),
            }
        }
        (lines, others)
    }

    #[test]
    fn what_programs_write_is_not_taken_for_lines() {
        let (lines, others) = read(
            "12:00:00.000001 close(3) = 0\n00:00:01 elapsed, 1 of 3\n\
             12:00:00.000002 close(4) = 0\n00:00:02 close(9) = 0\n00:00:03 open(\"x\") = 3\n\
             close(8) = 0\n2026-11-25 12:00:00 INFO x\n12:00:00.000003 +++ exited with 0 +++\n",
        );
        assert_eq!(lines, ["close(3) = 0", "close(4) = 0", "+++ exited with 0 +++"]);
        let lost = Some(Kind::LookupNamed);
        assert_eq!(others, [(2, None), (4, None), (5, lost), (6, None), (7, None)]);
    }

    #[test]
    fn output_within_a_line_does_not_split_the_call() {
        let (lines, others) = read(
            "12:00:00.000001 write(2, \"hello\\n\", 6hello\n)      = 6\n\
             12:00:00.000002 openat(AT_FDCWD, \"/a\", O_RDONLYa\nb\n00:00:01 c\n) = 3\n\
             10 %...20 %...12:00:00.000003 close(3) = 0\n\
             12:00:00.000004 vfork(/usr/bin/strace: Process 7 attached\n <unfinished ...>\n\
             x[pid     7] 12:00:00.000005 close(4) = 0\n",
        );
        assert_eq!(
            lines,
            [
                "write(2, \"hello\\n\", 6hello)      = 6",
                "openat(AT_FDCWD, \"/a\", O_RDONLYa) = 3",
                "close(3) = 0",
                "strace: Process 7 attached",
                "vfork( <unfinished ...>",
                "close(4) = 0",
            ]
        );
        assert_eq!(others, [(4, None), (5, None)]);
    }

    #[test]
    fn damaged_calls_are_lost_and_those_at_the_end_are_not() {
        let (lines, others) = read(
            "7 12:00:00.000001 execve(\"/x\", [\"x\"], 0x7\n7 12:00:00.000002 close(3) = 0\n\
             7 12:00:00.000003 open(file) failed\n7 12:00:00.000004 close(3) = 0\n\
             7 12:00:00.000005 openat(AT_FDCWD, \"/cut/thr",
        );
        assert_eq!(lines, ["close(3) = 0", "close(3) = 0"]);
        assert_eq!(others, [(1, Some(Kind::Exec)), (3, None), (5, None)]);
    }

    #[test]
    fn a_message_in_a_line_does_not_split_the_call() {
        let (lines, _) = read(
            "1700000000.1 clone(flags=SIGCHLDstrace: Process 7 attached\n\
             , child_tidptr=0x7f) = 7\n[pid 5] 1700000000.2 close(3) = 0\n",
        );
        let call = "clone(flags=SIGCHLD, child_tidptr=0x7f) = 7";
        assert_eq!(lines, ["strace: Process 7 attached", call, "close(3) = 0"]);
        // strace 6.1: the arguments known on return follow the message.
        let (lines, others) = read(
            "rt_sigprocmask(SIG_SETMASK, [], strace: Process 7 attached\n\
             strace: Process 8 attached\nNULL, 8) = 0\n[pid 5] close(3) = 0\n\
             read(3, strace: Process 9 attached\n[pid 5] close(3) = 0\n",
        );
        let attached = |pid| format!("strace: Process {pid} attached");
        let call = "rt_sigprocmask(SIG_SETMASK, [], NULL, 8) = 0";
        let close = "close(3) = 0";
        assert_eq!(lines, [&attached(7), &attached(8), call, close, &attached(9), close]);
        assert_eq!(others, [(5, None)]);
    }

    #[test]
    fn a_message_may_interrupt_a_line() {
        let line = b"clone(flags=SIGCHLDstrace: Process 12 attached";
        assert_eq!(interrupted(line), Some((&b"clone(flags=SIGCHLD"[..], 12)));
        let line = b"clone(flags=SIGCHLD../b/strace: Process 12 attached";
        assert_eq!(interrupted(line), Some((&b"clone(flags=SIGCHLD"[..], 12)));
        let line = b"clone(flags=17 /* SIGCHLD */strace: Process 12 attached";
        assert_eq!(interrupted(line), Some((&b"clone(flags=17 /* SIGCHLD */"[..], 12)));
        let line = b"clone(flags=17 /* SIGCHLD *//b/strace: Process 12 attached";
        assert_eq!(interrupted(line), Some((&b"clone(flags=17 /* SIGCHLD */"[..], 12)));
        assert_eq!(interrupted(b"strace: Process 12 attached"), None);
        assert_eq!(interrupted(b"/usr/bin/strace: Process 12 attached"), None);
        assert_eq!(interrupted(b"x"), None);
    }

    #[test]
    fn differences_are_summed_and_days_are_counted() {
        let mut moments = Moments::default();
        assert_eq!(moments.of(Stamp::SinceLast(0)), 0);
        assert_eq!(moments.of(Stamp::SinceLast(5)), 5);
        assert_eq!(moments.of(Stamp::SinceLast(5)), 10);
        let mut moments = Moments::default();
        assert_eq!(moments.of(Stamp::OfDay(DAY_NS - 1)), DAY_NS - 1);
        assert_eq!(moments.of(Stamp::OfDay(1)), DAY_NS + 1);
        assert_eq!(moments.of(Stamp::OfDay(0)), DAY_NS);
    }
}
