//! Counts strace's events from the lines of its output.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use anyhow::{Context, Result};

use super::counts::{Counts, Seen};
use super::site::Site;

/// The calls that proctrace records.
pub(super) const CALLS: &str = "trace=%process,open,openat,openat2,creat,stat,lstat,newfstatat,statx,\
    access,faccessat,faccessat2,readlink,readlinkat,chdir";

#[derive(Default)]
struct Tally {
    forks: u64,
    execs: u64,
    exits: u64,
    failed_opens: u64,
    lines: u64,
}

impl Tally {
    /// One line: a pid, then a call with its result, the second half of a call, or an exit.
    fn add(&mut self, line: &str) {
        self.lines += 1;
        let Some((_, event)) = line.split_once(' ') else { return };
        let event = event.trim_start();
        if event.starts_with("+++ ") {
            self.exits += 1;
            return;
        }
        let name = match event.strip_prefix("<... ") {
            Some(resumed) => resumed.split(' ').next(),
            None => event.split('(').next(),
        };
        // The first half of a call has no result.
        let Some((_, result)) = event.rsplit_once(" = ") else { return };
        match name.unwrap_or_default() {
            "fork" | "vfork" | "clone" | "clone3" => {
                self.forks += u64::from(result.parse::<u64>().is_ok_and(|pid| pid > 0));
            }
            "execve" | "execveat" => self.execs += u64::from(result == "0"),
            "open" | "openat" | "openat2" | "creat" => {
                self.failed_opens += u64::from(result.starts_with("-1 "));
            }
            _ => {}
        }
    }
}

pub(super) fn count(site: &Site) -> Result<Seen> {
    count_file(&site.out(""))
}

pub(super) fn count_file(log: &Path) -> Result<Seen> {
    let mut tally = Tally::default();
    let mut file = BufReader::new(File::open(log).context("strace wrote no output")?);
    let mut line = Vec::new();
    while file.read_until(b'\n', &mut line)? > 0 {
        tally.add(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    Ok(Seen {
        counts: Counts::all(tally.forks, tally.execs, tally.exits, tally.failed_opens),
        records: Some(tally.lines),
        // It stops its tracees, so nothing is lost.
        lost: Some(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_calls_and_halves_are_counted_once() {
        let mut tally = Tally::default();
        for line in [
            "17  execve(\"/bin/timed\", [\"timed\"], 0x7f /* 9 vars */) = 0",
            "17  execve(\"/nowhere\", [\"x\"], 0x7f /* 9 vars */) = -1 ENOENT (No such file or directory)",
            "17  clone(child_stack=NULL, flags=SIGCHLD, child_tidptr=0x7f) = 18",
            "17  wait4(18,  <unfinished ...>",
            "18  clone3({flags=CLONE_VM|CLONE_VFORK, exit_signal=SIGCHLD, stack=0x7f} <unfinished ...>",
            "19  openat(AT_FDCWD, \"/a = b\", O_RDONLY) = -1 ENOENT (No such file or directory)",
            "19  openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY <unfinished ...>",
            "18  <... clone3 resumed> => {parent_tid=[0]}, 88) = 19",
            "19  <... openat resumed>)       = 3",
            "19  openat(AT_FDCWD, \"/c\", O_RDONLY <unfinished ...>",
            "19  <... openat resumed>)       = -1 EACCES (Permission denied)",
            "19  newfstatat(3, \"\", {st_mode=S_IFREG}, AT_EMPTY_PATH) = 0",
            "19  exit_group(0)               = ?",
            "19  +++ exited with 0 +++",
            "18  +++ killed by SIGKILL +++",
        ] {
            tally.add(line);
        }
        assert_eq!((tally.forks, tally.execs, tally.exits), (2, 1, 2));
        assert_eq!((tally.failed_opens, tally.lines), (2, 15));
    }
}
