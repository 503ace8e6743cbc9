//! Several logs in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Read;

use crate::error::ImportError;
use crate::line::{DAY_NS, Line, Stamp};
use crate::log::{BEGINNING, Log, open};
use crate::reading::Reading;
use crate::style::{style_of, without_colours};
use crate::untimed::read_untimed;

/// Passes the lines of all logs to `take` in order of time, or of causes if they have no times.
pub(crate) fn read_all(
    mut logs: Vec<Log>,
    take: &mut dyn FnMut(&Reading) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    if let [log] = &mut logs[..] {
        let mut reading = open(log, 0)?;
        while reading.advance()? {
            take(&reading)?;
        }
        return Ok(());
    }
    let mut waiting = match in_order(logs)? {
        Order::OfTimes(logs) => logs,
        Order::Unknown(logs) => return read_untimed(logs, take),
    };
    // Latest first.
    waiting.reverse();
    let mut opened: Vec<Option<Reading>> = Vec::new();
    let mut free: Vec<usize> = Vec::new();
    let mut heap = BinaryHeap::new();
    loop {
        // A log is opened when its time has come: as many are open as tasks are alive.
        while let Some((moment_ns, _, _)) = waiting.last()
            && heap.peek().is_none_or(|Reverse((next_ns, _))| moment_ns <= next_ns)
            && let Some((_, day_ns, mut log)) = waiting.pop()
        {
            let mut reading = open(&mut log, day_ns)?;
            if reading.advance()? {
                let at = free.pop().unwrap_or_else(|| {
                    opened.push(None);
                    opened.len() - 1
                });
                heap.push(Reverse((reading.moment_ns, at)));
                opened[at] = Some(reading);
            }
        }
        let Some(Reverse((_, at))) = heap.pop() else { return Ok(()) };
        let Some(reading) = opened[at].as_mut() else { continue };
        take(reading)?;
        if reading.advance()? {
            heap.push(Reverse((reading.moment_ns, at)));
        } else {
            opened[at] = None;
            free.push(at);
        }
    }
}

/// Logs, and what is known of their order.
enum Order {
    /// Logs by their first times, each with that time and the day it is on.
    OfTimes(Vec<(u64, u64, Log)>),
    /// None has times.
    Unknown(Vec<Log>),
}

fn in_order(logs: Vec<Log>) -> Result<Order, ImportError> {
    let mut dated = Vec::with_capacity(logs.len());
    let mut untimed = Vec::new();
    for mut log in logs {
        match first_stamp(&mut log)? {
            First::Time(Stamp::SinceLast(_)) => {
                return Err(ImportError::Relative { name: log.name });
            }
            First::Time(stamp) => dated.push((stamp, log)),
            First::NoTime => untimed.push(log),
            // An empty log of a task that did nothing is no error.
            First::Nothing => {}
        }
    }
    match untimed.pop() {
        Some(last) if dated.is_empty() => {
            untimed.push(last);
            return Ok(Order::Unknown(untimed));
        }
        Some(log) => return Err(ImportError::NoTimesToMerge { name: log.name }),
        None => {}
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
    Ok(Order::OfTimes(ordered))
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

/// Time at the beginning of a log.
enum First {
    Time(Stamp),
    NoTime,
    Nothing,
}

fn first_stamp(log: &mut Log) -> Result<First, ImportError> {
    let fail = |source| ImportError::Read { name: log.name.clone(), source };
    let file = (log.open)().map_err(fail)?;
    let mut beginning = Vec::new();
    file.take(BEGINNING / 16).read_to_end(&mut beginning).map_err(fail)?;
    let style = style_of(&beginning);
    let mut lines = beginning.split(|byte| *byte == b'\n');
    let stamp = lines.find_map(|line| {
        let mut line = line.to_vec();
        without_colours(&mut line);
        let line = Line::of(&line);
        line.stamp.filter(|_| style.is_none_or(|style| style == line.style))
    });
    Ok(match stamp {
        Some(stamp) => First::Time(stamp),
        None if beginning.is_empty() => First::Nothing,
        None => First::NoTime,
    })
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
            log("b", Some(2), "23:59:59.5 close(21) = 0\n00:00:01.0 close(22) = 0\n"),
            log("c", Some(3), "00:00:00.5 close(31) = 0\n00:00:02.0 close(32) = 0\n"),
            log("a", Some(1), "23:59:58.0 close(11) = 0\n00:00:03.0 close(12) = 0\n"),
            log("empty", Some(4), ""),
        ]);
        let descriptors: Vec<&str> = got.iter().map(|line| &line[..10]).collect();
        let wanted =
            ["1 close(11", "2 close(21", "3 close(31", "2 close(22", "3 close(32", "1 close(12"];
        assert_eq!(descriptors, wanted);
    }

    #[test]
    fn without_times_what_a_task_did_stands_behind_its_birth() {
        let got = lines(vec![
            log("5", Some(5), "close(51) = 0\nclone(flags=SIGCHLD) = 3\nwait4(3) = 3\n"),
            log("3", Some(3), "close(31) = 0\nexit_group(0) = ?\n"),
            log("9", Some(9), "vfork() = 5\nwait4(5) = 5\n"),
            // Of a birth that no log has.
            log("7", Some(7), "close(71) = 0\n"),
        ]);
        let calls: Vec<&str> = got.iter().map(|line| line.split('(').next().unwrap()).collect();
        let of_nine =
            ["9 vfork", "5 close", "5 clone", "3 close", "3 exit_group", "5 wait4", "9 wait4"];
        assert_eq!(calls, [&["7 close"][..], &of_nine[..]].concat());
    }

    #[test]
    fn several_logs_need_times_that_order_them() {
        let relative = |name| log(name, None, "     0.000123 pause() = 0\n");
        let read = |logs| read_all(logs, &mut |_| Ok(()));
        let error = read(vec![relative("a"), relative("b")]).unwrap_err();
        assert!(matches!(error, ImportError::Relative { .. }));
        let some = vec![log("a", None, "pause() = 0\n"), log("b", None, "00:00:01 pause() = 0\n")];
        assert!(matches!(read(some).unwrap_err(), ImportError::NoTimesToMerge { .. }));
        assert!(read(vec![log("a", None, "pause() = 0\n")]).is_ok());
        assert!(read(vec![relative("a")]).is_ok());
    }
}
