//! The log of O2DPG's workflow runner, `pipeline_action_<pid>.log`: names of tasks by their processes.
//!
//! Source: MC/workflow_runner/o2dpg_runner/executor.py and MC/bin/o2dpg_workflow_runner_legacy.py of O2DPG. A task that has
//! ended is in it with its process, and before that, without it, when it was submitted.

use super::name_of;
use crate::error::RulesError;
use crate::fast::FastMap;

/// Tasks that have ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActionLog {
    by_pid: FastMap<i32, Vec<Task>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) group: Option<String>,
    /// When it was submitted, in milliseconds since the last quarter of an hour.
    submitted_ms: u64,
}

/// Tasks of one process ID, at most: each program run of that process is compared with all of them.
const TASKS_OF_A_PID_MAX: usize = 4096;

/// Times are local ones, of a zone that is not written down. Zones differ by a multiple of this.
const QUARTER_MS: u64 = 15 * 60 * 1000;
/// A process is born this long after it was submitted, at most: its directory and environment are made first.
const LATE_MS: u64 = 60_000;
/// The time of submission is rounded, and that of the recording adjusted.
const EARLY_MS: u64 = 1_000;

/// The rest of a line behind its time and level, with the milliseconds since the last quarter of an hour.
fn line(line: &[u8]) -> Option<(u64, &str)> {
    let line = std::str::from_utf8(line).ok()?;
    // 2026-11-28 02:08:51,721 INFO …
    let (date, rest) = line.split_at_checked(11)?;
    let (time, rest) = rest.split_at_checked(13)?;
    let shape = |text: &str| -> Vec<u8> {
        text.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte }).collect()
    };
    if shape(date) != b"0000-00-00 " || shape(time) != b"00:00:00,000 " {
        return None;
    }
    let number = |at: usize, len: usize| time[at..at + len].parse::<u64>().ok();
    let ms = (number(3, 2)? * 60 + number(6, 2)?) * 1000 + number(9, 3)?;
    let (level, message) = rest.split_once(' ')?;
    level.bytes().all(|byte| byte.is_ascii_uppercase()).then_some((ms % QUARTER_MS, message))
}

/// The group of a task of O2DPG: its name without the number of its time frame.
pub(super) fn group_of(task: &str) -> Option<String> {
    let (group, number) = task.rsplit_once('_')?;
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| group.to_owned())
}

enum Action<'a> {
    Submitted(&'a str),
    Ended { pid: i32, name: &'a str },
}

impl<'a> Action<'a> {
    fn of(message: &'a str) -> Option<Self> {
        if let Some(rest) = message.strip_prefix("Submitting ") {
            // "tid=5 sgnsim_2 (nice=0)", and of the older runner "task sgnsim_2 with nice value 0"
            let rest = match rest.strip_prefix("tid=") {
                Some(rest) => rest.split_once(' ')?.1,
                None => rest.strip_prefix("task ")?,
            };
            let (name, _) = rest.rsplit_once(" (nice=").or(rest.rsplit_once(" with nice value "))?;
            return Some(Self::Submitted(name));
        }
        let rest = message.strip_prefix("Task ")?;
        let (pid, rest) = rest.split_once(' ')?;
        // "pid=14499 tid=5 sgnsim_2 finished rc=0", and of the older runner "14970 1:sgnsim_1 finished with status 0"
        let (pid, rest, end) = match pid.strip_prefix("pid=") {
            Some(pid) => (pid, rest.strip_prefix("tid=")?.split_once(' ')?.1, " finished rc="),
            None => (pid, rest.split_once(':')?.1, " finished with status "),
        };
        Some(Self::Ended { pid: pid.parse().ok()?, name: rest.rsplit_once(end)?.0 })
    }
}

impl ActionLog {
    /// True if a file is one.
    pub(crate) fn is(content: &[u8]) -> bool {
        content.split(|byte| *byte == b'\n').next().and_then(line).is_some()
    }

    /// Reads a log. `file` is used in messages. Lines that say nothing of a task are skipped.
    ///
    /// # Errors
    /// If no task has ended in it.
    pub(crate) fn parse(file: &str, log: &[u8]) -> Result<Self, RulesError> {
        let mut submitted: FastMap<&str, u64> = FastMap::default();
        let mut tasks = Self::default();
        for (ms, message) in log.split(|byte| *byte == b'\n').filter_map(line) {
            match Action::of(message) {
                Some(Action::Submitted(name)) => {
                    submitted.insert(name, ms);
                }
                Some(Action::Ended { pid, name: whole }) => {
                    let (Some(name), Some(submitted_ms)) =
                        (name_of(whole.as_bytes()), submitted.remove(whole))
                    else {
                        continue;
                    };
                    let group = group_of(&name);
                    let of_pid = tasks.by_pid.entry(pid).or_default();
                    if of_pid.len() < TASKS_OF_A_PID_MAX {
                        of_pid.push(Task { name, group, submitted_ms });
                    }
                }
                None => {}
            }
        }
        if tasks.by_pid.is_empty() {
            let message = "in this log of O2DPG's runner, no task has ended".to_owned();
            return Err(RulesError { name: file.to_owned(), line: 1, column: 1, message });
        }
        Ok(tasks)
    }

    /// The task that a process is whose first program was run at this time (nanoseconds since 1970). A pid may have been
    /// that of several tasks: the one that was submitted next to it counts.
    pub(crate) fn task(&self, pid: i32, ns: u64) -> Option<&Task> {
        let ms = ns / 1_000_000 % QUARTER_MS;
        let after = |task: &Task| (ms + EARLY_MS + QUARTER_MS - task.submitted_ms) % QUARTER_MS;
        let tasks = self.by_pid.get(&pid)?.iter();
        tasks
            .filter(|task| after(task) <= EARLY_MS + LATE_MS)
            .min_by_key(|task| after(task).abs_diff(EARLY_MS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 02:08:51.2 UTC, in a quarter of an hour.
    const BEGIN_NS: u64 = 1_795_831_731_200_000_000;

    fn name(log: &ActionLog, pid: i32, ns: u64) -> Option<&str> {
        log.task(pid, ns).map(|task| &*task.name)
    }

    #[test]
    fn both_runners_name_processes() {
        let new = "2026-11-28 02:08:51,127 DEBUG Submitting tid=1 sgnsim_1 (nice=0)\n\
            2026-11-28 02:08:51,127 DEBUG Submitting sgnsim_1 with nice=0\n\
            2026-11-28 02:08:52,562 INFO Task pid=14498 tid=1 sgnsim_1 finished rc=0\n";
        // Of a zone that is five hours and three quarters ahead.
        let old = "2026-11-28 07:53:51,127 DEBUG Submitting task sgnsim_1 with nice value 0\n\
            2026-11-28 07:53:52,438 INFO Task 14498 1:sgnsim_1 finished with status 1\n";
        for text in [new, old] {
            assert!(ActionLog::is(text.as_bytes()));
            let log = ActionLog::parse("t", text.as_bytes()).unwrap();
            assert_eq!(name(&log, 14498, BEGIN_NS), Some("sgnsim_1"));
            assert_eq!(log.task(14498, BEGIN_NS).unwrap().group.as_deref(), Some("sgnsim"));
            assert_eq!(name(&log, 14499, BEGIN_NS), None);
            // The number was another process's two minutes later, and before.
            assert_eq!(name(&log, 14498, BEGIN_NS + 120_000_000_000), None);
            assert_eq!(name(&log, 14498, BEGIN_NS - 2_000_000_000), None);
        }
    }

    #[test]
    fn of_tasks_with_the_same_process_id_the_one_submitted_then_counts() {
        let text = "2026-11-28 02:14:31,000 DEBUG Submitting tid=1 a (nice=0)\n\
            2026-11-28 02:14:40,000 INFO Task pid=7 tid=1 a finished rc=0\n\
            2026-11-28 02:15:01,000 DEBUG Submitting tid=2 b (nice=0)\n\
            2026-11-28 02:15:09,000 INFO Task pid=7 tid=2 b finished rc=0\n";
        let log = ActionLog::parse("t", text.as_bytes()).unwrap();
        let at = |minute: u64, second: u64| {
            BEGIN_NS - 531_200_000_000 + (minute * 60 + second) * 1_000_000_000
        };
        assert_eq!(name(&log, 7, at(14, 32)), Some("a"));
        assert_eq!(name(&log, 7, at(15, 2)), Some("b"));
        assert_eq!(name(&log, 7, at(14, 59)), Some("a"));
    }

    #[test]
    fn what_names_no_task_is_an_error() {
        let text = b"2026-11-28 02:08:51,126 INFO Score for bkg is (-1, 33)\n";
        assert!(ActionLog::is(text) && ActionLog::parse("t", text).is_err());
        for other in [
            &b"name,pid\n"[..],
            b"",
            b"2026-11-28 02:08\n",
            b"\xff\xfe",
            "2026-11-2é 02:08:51,126 INFO x".as_bytes(),
        ] {
            assert!(!ActionLog::is(other));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_log_is_read_or_refused(lines in proptest::collection::vec(
            "(20[0-9]{2}-11-28 0[0-9]:[0-9]{2}:[0-9]{2},[0-9]{3} INFO )?(Task |Submitting )?(pid=|tid=|task )?[0-9a: -é]{0,20}( finished rc=| \\(nice=)?.{0,5}", 0..6)) {
            let text = lines.join("\n");
            ActionLog::is(text.as_bytes());
            if let Ok(log) = ActionLog::parse("t", text.as_bytes()) {
                log.task(1, u64::MAX);
                log.task(1, 0);
            }
        }
    }
}
