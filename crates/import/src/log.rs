//! Reading logs line by line, and several of them in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use crate::call::{Parsed, Role};
use crate::error::ImportError;
use crate::line::{Body, DAY_NS, Line, Stamp, interrupted};
use crate::text::Returned;

/// Longer lines are not read: the arguments of an exec have at most 6 MiB, each byte at most four
/// characters.
const LINE_MAX: u64 = 32 << 20;
/// The beginning of a log, in which the pid of its first task is sought.
const BEGINNING: u64 = 1 << 20;

/// Opens a log. Called twice if there are several.
pub type Open = Box<dyn FnMut() -> io::Result<Box<dyn Read>>>;

/// A log to import.
pub struct Log {
    /// Its name, for messages.
    pub name: String,
    /// The task of all its lines (`strace -ff`).
    pub pid: Option<i32>,
    /// Opens it.
    pub open: Open,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("name", &self.name).field("pid", &self.pid).finish()
    }
}

/// The current line of a log.
pub(crate) struct Reading {
    pub(crate) name: String,
    /// Task of lines without pid.
    pub(crate) anonymous: i32,
    /// Whether all lines are of that task.
    pub(crate) is_of_one: bool,
    reader: Box<dyn BufRead>,
    line: Vec<u8>,
    /// A line that a message interrupted.
    held: Vec<u8>,
    pub(crate) number: u64,
    moments: Moments,
    /// The time of the line; that of the line before if it has none.
    pub(crate) moment_ns: u64,
    pub(crate) is_too_long: bool,
    /// The end of the log cuts the line.
    pub(crate) is_cut: bool,
}

impl Reading {
    fn open(log: &mut Log, day_ns: u64) -> Result<Self, ImportError> {
        let fail = |source| ImportError::Read { name: log.name.clone(), source };
        let mut file = (log.open)().map_err(fail)?;
        let mut beginning = Vec::new();
        let (anonymous, buffer_bytes) = match log.pid {
            // There may be thousands of these.
            Some(pid) => (pid, 1 << 13),
            None => {
                file.by_ref().take(BEGINNING).read_to_end(&mut beginning).map_err(fail)?;
                (first_pid(&beginning), 1 << 18)
            }
        };
        let rest = BufReader::with_capacity(buffer_bytes, file);
        Ok(Self {
            name: log.name.clone(),
            anonymous,
            is_of_one: log.pid.is_some(),
            reader: Box::new(Cursor::new(beginning).chain(rest)),
            line: Vec::new(),
            held: Vec::new(),
            number: 0,
            moments: Moments { day_ns, last: None },
            moment_ns: 0,
            is_too_long: false,
            is_cut: false,
        })
    }

    /// Reads the next line; false at the end.
    fn advance(&mut self) -> Result<bool, ImportError> {
        self.line.clear();
        if !self.next_raw()? {
            return Ok(false);
        }
        if !self.held.is_empty() && continues_a_call(&self.line) {
            let rest = std::mem::replace(&mut self.line, std::mem::take(&mut self.held));
            self.line.extend_from_slice(&rest);
        }
        if let Some((before, pid)) = interrupted(&self.line) {
            self.held = before.to_vec();
            self.line = format!("strace: Process {pid} attached").into_bytes();
        }
        if let Some(stamp) = Line::of(&self.line).stamp {
            self.moment_ns = self.moments.of(stamp);
        }
        Ok(true)
    }

    fn next_raw(&mut self) -> Result<bool, ImportError> {
        let fail = |source| ImportError::Read { name: self.name.clone(), source };
        let read =
            self.reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut self.line).map_err(fail)?;
        if read == 0 {
            return Ok(false);
        }
        self.number += 1;
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

/// Whether a line is the rest of a call that a message interrupted: it has no pid, no time and no
/// beginning of its own. It can begin with any argument, as in `rt_sigprocmask(SIG_SETMASK, [], `,
/// the message, and `NULL, 8) = 0`.
fn continues_a_call(line: &[u8]) -> bool {
    let parts = Line::of(line);
    parts.pid.is_none() && parts.stamp.is_none() && Body::of(parts.body) == Body::Other
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

/// Whether no line at the beginning of a log has a pid: strace wrote it for one task.
pub fn is_without_pids(beginning: &[u8]) -> bool {
    beginning.split(|byte| *byte == b'\n').take(1 << 10).all(|line| Line::of(line).pid.is_none())
}

/// The pid of the task whose lines have none at the beginning of a log: strace prints pids only while
/// it follows more than one. 0 if it does not show.
fn first_pid(beginning: &[u8]) -> i32 {
    let mut candidates: Vec<i32> = Vec::new();
    let mut born: Vec<i32> = Vec::new();
    let lines = beginning.split(|byte| *byte == b'\n').take(1 << 14);
    for line in lines {
        if let Some((_, pid)) = interrupted(line) {
            born.push(pid);
            continue;
        }
        let Line { pid, body, .. } = Line::of(line);
        match (pid, Body::of(body)) {
            (_, Body::Attached { pid }) => born.push(pid),
            (None, Body::Call { name: b"set_tid_address", text }) if born.is_empty() => {
                let returned = Parsed::of(text).map(|parsed| parsed.returned);
                if let Some(Returned::Value(id, _)) = returned
                    && let Ok(id) = i32::try_from(id)
                {
                    return id;
                }
            }
            (_, Body::Call { name, text } | Body::Resumed { name, text }) => {
                if let Role::Fork(call) = Role::of(name) {
                    born.extend(Parsed::of(text).and_then(|it| it.forked(call)).map(|it| it.child));
                }
            }
            _ => {}
        }
        candidates.extend(pid.filter(|pid| candidates.last() != Some(pid)));
    }
    candidates.into_iter().find(|pid| !born.contains(pid)).unwrap_or(0)
}

/// Passes the lines of all logs to `take` in order of time.
pub(crate) fn read_all(
    mut logs: Vec<Log>,
    take: &mut dyn FnMut(&Reading) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    if let [log] = &mut logs[..] {
        let mut reading = Reading::open(log, 0)?;
        while reading.advance()? {
            take(&reading)?;
        }
        return Ok(());
    }
    let mut waiting = in_order(logs)?;
    // Latest first.
    waiting.reverse();
    let mut open: Vec<Option<Reading>> = Vec::new();
    let mut free: Vec<usize> = Vec::new();
    let mut heap = BinaryHeap::new();
    loop {
        // A log is opened when its time has come: as many are open as tasks are alive.
        while let Some((moment_ns, _, _)) = waiting.last()
            && heap.peek().is_none_or(|Reverse((next_ns, _))| moment_ns <= next_ns)
            && let Some((_, day_ns, mut log)) = waiting.pop()
        {
            let mut reading = Reading::open(&mut log, day_ns)?;
            if reading.advance()? {
                let at = free.pop().unwrap_or_else(|| {
                    open.push(None);
                    open.len() - 1
                });
                heap.push(Reverse((reading.moment_ns, at)));
                open[at] = Some(reading);
            }
        }
        let Some(Reverse((_, at))) = heap.pop() else { return Ok(()) };
        let Some(reading) = open[at].as_mut() else { continue };
        take(reading)?;
        if reading.advance()? {
            heap.push(Reverse((reading.moment_ns, at)));
        } else {
            open[at] = None;
            free.push(at);
        }
    }
}

/// Logs in order of their first times, each with that time and the day it is on.
fn in_order(logs: Vec<Log>) -> Result<Vec<(u64, u64, Log)>, ImportError> {
    let mut dated = Vec::with_capacity(logs.len());
    for mut log in logs {
        match first_stamp(&mut log)? {
            Some(Stamp::SinceLast(_)) => return Err(ImportError::Relative { name: log.name }),
            Some(stamp) => dated.push((stamp, log)),
            // An empty log of a task that did nothing is no error.
            None => {}
        }
    }
    let mut of_day: Vec<u64> = dated
        .iter()
        .filter_map(|(stamp, _)| match stamp {
            Stamp::OfDay(ns) => Some(*ns),
            _ => None,
        })
        .collect();
    of_day.sort_unstable();
    let begin_ns = begin_of_day(&of_day);
    let mut ordered: Vec<_> = dated
        .into_iter()
        .map(|(stamp, log)| match stamp {
            Stamp::OfDay(ns) if ns < begin_ns => (ns + DAY_NS, DAY_NS, log),
            Stamp::OfDay(ns) | Stamp::Unix(ns) | Stamp::SinceLast(ns) => (ns, 0, log),
        })
        .collect();
    ordered.sort_by_key(|(ns, ..)| *ns);
    Ok(ordered)
}

/// The first of these times, if they may continue after midnight: the one after the longest time without
/// any.
fn begin_of_day(sorted: &[u64]) -> u64 {
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return 0 };
    let night = (first + DAY_NS - last, *first);
    let gaps = sorted.windows(2).map(|pair| (pair[1] - pair[0], pair[1]));
    // The night wins ties, so that times of one day stay on it.
    let longest = gaps.filter(|(gap, _)| *gap > night.0.max(DAY_NS / 2)).max();
    longest.unwrap_or(night).1
}

fn first_stamp(log: &mut Log) -> Result<Option<Stamp>, ImportError> {
    let fail = |source| ImportError::Read { name: log.name.clone(), source };
    let file = (log.open)().map_err(fail)?;
    let mut beginning = Vec::new();
    file.take(BEGINNING / 16).read_to_end(&mut beginning).map_err(fail)?;
    let mut lines = beginning.split(|byte| *byte == b'\n');
    let stamp = lines.find_map(|line| Line::of(line).stamp);
    if stamp.is_none() && !beginning.is_empty() {
        return Err(ImportError::NoTimes { name: log.name.clone() });
    }
    Ok(stamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(name: &str, pid: Option<i32>, text: &'static str) -> Log {
        let open = move || Ok(Box::new(text.as_bytes()) as Box<dyn Read>);
        Log { name: name.to_owned(), pid, open: Box::new(open) }
    }

    fn lines(logs: Vec<Log>) -> Vec<String> {
        let mut lines = Vec::new();
        read_all(logs, &mut |reading| {
            let body = String::from_utf8_lossy(reading.line().body).into_owned();
            lines.push(format!("{} {body}", reading.anonymous));
            Ok(())
        })
        .unwrap();
        lines
    }

    #[test]
    fn several_logs_are_read_in_order_of_time_even_across_midnight() {
        let got = lines(vec![
            log("b", Some(2), "23:59:59.5 b1\n00:00:01.0 b2\n"),
            log("c", Some(3), "00:00:00.5 c1\n00:00:02 c2\n"),
            log("a", Some(1), "23:59:58 a1\n00:00:03 a2\n"),
            log("empty", Some(4), ""),
        ]);
        assert_eq!(got, ["1 a1", "2 b1", "3 c1", "2 b2", "3 c2", "1 a2"]);
    }

    #[test]
    fn a_message_in_a_line_does_not_split_the_call() {
        let text = "1700000000.1 clone(flags=SIGCHLDstrace: Process 7 attached\n\
                    , child_tidptr=0x7f) = 7\n[pid 5] 1700000000.2 close(3) = 0\n";
        let got = lines(vec![log("x", None, text)]);
        let call = "5 clone(flags=SIGCHLD, child_tidptr=0x7f) = 7";
        assert_eq!(got, ["5 strace: Process 7 attached", call, "5 close(3) = 0"]);
        // strace 6.1: the arguments known on return follow the message.
        let text = "rt_sigprocmask(SIG_SETMASK, [], strace: Process 7 attached\n\
                    strace: Process 8 attached\nNULL, 8) = 0\n[pid 5] close(3) = 0\n\
                    read(3, strace: Process 9 attached\n[pid 5] close(3) = 0\n";
        let got = lines(vec![log("x", None, text)]);
        let attached = |pid| format!("5 strace: Process {pid} attached");
        let call = "5 rt_sigprocmask(SIG_SETMASK, [], NULL, 8) = 0";
        let close = "5 close(3) = 0";
        assert_eq!(got, [&attached(7), &attached(8), call, close, &attached(9), close]);
    }

    #[test]
    fn the_first_task_is_the_one_that_nobody_created() {
        for (text, pid) in [
            (&b"x() = 0\nset_tid_address(0x7) = 31\n"[..], 31),
            (b"clone(flags=SIGCHLD) = 7\n[pid 7] x() = 0\n[pid 6] y() = 0\n", 6),
            (b"clone( <unfinished ...>\n[pid 7] x() = 0\n[pid 6] <... clone resumed>) = 7\n", 6),
            (b"strace: Process 7 attached\n[pid 7] x() = 0\n[pid 6] y() = 0\n", 6),
            (b"x() = 0\n", 0),
        ] {
            assert_eq!(first_pid(text), pid, "{}", String::from_utf8_lossy(text));
        }
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

    #[test]
    fn several_logs_need_times_that_order_them() {
        let relative = |name| log(name, None, "     0.000123 x() = 0\n");
        let read = |logs| read_all(logs, &mut |_| Ok(()));
        let error = read(vec![relative("a"), relative("b")]).unwrap_err();
        assert!(matches!(error, ImportError::Relative { .. }));
        let none = vec![log("a", None, "x() = 0\n"), log("b", None, "x() = 0\n")];
        assert!(matches!(read(none).unwrap_err(), ImportError::NoTimes { .. }));
        assert!(read(vec![relative("a")]).is_ok());
    }
}
