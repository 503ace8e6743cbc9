//! Counts perf's events: the lines of `perf trace`, and the statistics of `perf record`.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::counts::{Counts, Seen};
use super::site::Site;

pub(super) const SCHEDULER: [&str; 3] =
    ["sched:sched_process_fork", "sched:sched_process_exec", "sched:sched_process_exit"];
pub(super) const FAILED_OPEN: &str = "syscalls:sys_exit_openat";

#[derive(Default)]
struct Tally {
    counts: [u64; 4],
    lost: u64,
    lines: u64,
}

impl Tally {
    /// Parses a line of `perf trace`.
    fn add_trace_line(&mut self, line: &str) {
        if let Some(lost) = line.trim().strip_prefix("LOST ") {
            self.lost += lost.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
            return;
        }
        self.lines += 1;
        // time ( duration ): name/pid event; an event's arguments may contain anything
        let Some((_, event)) = line.split_once("): ") else { return };
        let Some(head) = event.split('(').next() else { return };
        let name = head.split_whitespace().last().unwrap_or_default();
        if let Some(kind) = SCHEDULER.iter().position(|scheduler| name.starts_with(scheduler)) {
            self.counts[kind] += 1;
        } else if name == "openat" || head.contains("continued]") {
            self.counts[3] += u64::from(event.contains(") = -1 ") || event.contains(" = -1 E"));
        }
    }

    /// Parses a line of `perf report --stats`; `section` is the event to which such lines belong.
    fn add_stats_line(&mut self, line: &str, section: &mut Option<usize>) {
        if let Some(name) = line.strip_suffix(" stats:") {
            let names = SCHEDULER.iter().chain([&FAILED_OPEN]);
            *section = names.into_iter().position(|known| known == &name);
            return;
        }
        let Some(kind) = *section else { return };
        let Some((what, number)) = line.trim().split_once(" events:") else { return };
        let number = number.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
        match what {
            "SAMPLE" => self.counts[kind] += number,
            "LOST_SAMPLES" => self.lost += number,
            _ => {}
        }
    }

    fn counts(&self) -> Counts {
        let [forks, execs, exits, failed_opens] = self.counts;
        Counts::all(forks, execs, exits, failed_opens)
    }
}

pub(super) fn count_trace(site: &Site) -> Result<Seen> {
    let mut tally = Tally::default();
    let file = BufReader::new(File::open(site.out("")).context("perf trace wrote no output")?);
    for line in file.split(b'\n') {
        tally.add_trace_line(&String::from_utf8_lossy(&line?));
    }
    Ok(Seen { counts: tally.counts(), records: Some(tally.lines), lost: Some(tally.lost) })
}

pub(super) fn count_record(site: &Site) -> Result<Seen> {
    let report = Command::new("perf")
        .args(["report", "--stats", "--input"])
        .arg(site.out(""))
        .stderr(Stdio::null())
        .output()
        .context("cannot run perf report")?;
    ensure!(report.status.success(), "perf report failed ({})", report.status);
    let mut tally = Tally::default();
    let mut section = None;
    for line in String::from_utf8_lossy(&report.stdout).lines() {
        tally.add_stats_line(line, &mut section);
    }
    let records = tally.counts.iter().sum();
    Ok(Seen { counts: tally.counts(), records: Some(records), lost: Some(tally.lost) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_perf_trace_are_told_apart() {
        let mut tally = Tally::default();
        for line in [
            "     0.000 (         ): spawn/20605 sched:sched_process_exec(filename: \"/x): sched:sched_process_fork(\", pid: 20605 (spawn))",
            "     2.020 (         ): spawn x/20605 sched:sched_process_fork(parent_comm: \"spawn\", child_pid: 20638 (spawn))",
            "     4.118 (         ): true/20638 sched:sched_process_exit(comm: \"true\", pid: 20638 (true))",
            "     1.174 ( 0.017 ms): open_storm/14254 openat(dfd: CWD, filename: 0xc61bb060, flags: RDONLY)         = -1 ENOENT (No such file or directory)",
            "LOST 1392 events!",
            "LOST 8 events!",
        ] {
            tally.add_trace_line(line);
        }
        assert_eq!(tally.counts(), Counts::all(1, 1, 1, 1));
        assert_eq!((tally.lost, tally.lines), (1400, 4));
    }

    #[test]
    fn statistics_of_perf_record_are_read_by_section() {
        let text = "Aggregated stats:\n           TOTAL events:         95\n          SAMPLE events:  71664  (11.6%)\n\
            sched:sched_process_fork stats:\n          SAMPLE events:          3\n\
            sched:sched_process_exec stats:\n          SAMPLE events:          4\n\
            dummy:HG stats:\n          SAMPLE events:          9\n\
            syscalls:sys_exit_openat stats:\n          SAMPLE events:      71663\n    LOST_SAMPLES events:      28337\n";
        let mut tally = Tally::default();
        let mut section = None;
        for line in text.lines() {
            tally.add_stats_line(line, &mut section);
        }
        assert_eq!(tally.counts(), Counts::all(3, 4, 0, 71_663));
        assert_eq!(tally.lost, 28_337);
    }
}
