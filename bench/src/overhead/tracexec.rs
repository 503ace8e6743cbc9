//! Counts tracexec's events: a line per attempt to execute a program.

use std::fs;

use anyhow::{Context, Result};

use super::counts::{Counts, Seen};
use super::site::Site;

pub(super) fn count(site: &Site) -> Result<Seen> {
    let text = fs::read(site.out("")).context("tracexec wrote no output")?;
    let text = String::from_utf8_lossy(&text);
    let execs = text.lines().filter(|line| is_exec(line)).count() as u64;
    Ok(Seen {
        counts: Counts { execs: Some(execs), ..Counts::default() },
        records: Some(text.lines().count() as u64),
        // It stops its tracees, so nothing is lost.
        lost: Some(0),
    })
}

/// `PID<name>: "program" ["argument"] fd [] with []`, and then ` = -2 (…)` if it failed.
fn is_exec(line: &str) -> bool {
    line.contains(">: \"") && !(line.ends_with(')') && line.contains("] = -"))
}

#[cfg(test)]
mod tests {
    use super::is_exec;

    #[test]
    fn attempts_that_failed_do_not_count() {
        assert!(is_exec("21842<sh>: \"/bin/true\" [\"/bin/true\", \"] = -2\"] fd [] with []"));
        assert!(!is_exec("21843<env>: \"/x\" [\"x\"] fd [] with [] = -2 (ENOENT: No such file)"));
        assert!(!is_exec("env: 'nosuch': No such file or directory"));
    }
}
