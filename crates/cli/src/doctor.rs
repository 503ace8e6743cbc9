//! `proctrace doctor`: the capabilities of this kernel and user.

use std::fmt::Write as _;
use std::io::{Write, stdout};
use std::process::ExitCode;

use anyhow::Result;
use landlock::RulesetStatus;
use proctrace_probe::doctor::{Check, Verdict, examine};
use proctrace_ptrace::may_trace;
use proctrace_report::wrap;

use crate::{confine, exit_code};

const WIDTH: usize = 80;

pub(crate) fn run() -> Result<ExitCode> {
    let mut checks = examine();
    checks.push(readers());
    let mut out = stdout().lock();
    for check in &checks {
        out.write_all(lines(check).as_bytes())?;
    }
    let usable = checks.iter().all(|check| check.verdict != Verdict::Bad);
    let by_ptrace = may_trace();
    let says = match (usable, &by_ptrace) {
        (true, _) => "Recording is possible.".to_owned(),
        (false, Ok(())) => {
            "Recording by eBPF is not possible. Commands can be recorded by ptrace:\n\
             proctrace record --backend ptrace -- COMMAND"
                .to_owned()
        }
        (false, Err(error)) => {
            format!("Recording is not possible, nor is it by ptrace ({error}).")
        }
    };
    writeln!(out, "\n{says}")?;
    // The status says whether everything can be recorded.
    Ok(if usable { ExitCode::SUCCESS } else { exit_code::FAILED.into() })
}

/// What commands that read a trace can still do.
fn readers() -> Check {
    let (verdict, found) = match confine::works() {
        RulesetStatus::FullyEnforced => {
            (Verdict::Good, "confined by Landlock to the files they are given")
        }
        RulesetStatus::PartiallyEnforced => (
            Verdict::Good,
            "confined to the files they are given; this kernel's Landlock has no rules for networks and signals",
        ),
        RulesetStatus::NotEnforced => (Verdict::Note, "not confined: this kernel has no Landlock"),
    };
    Check { name: "readers of traces", verdict, found: found.to_owned(), advice: None }
}

/// A check in 80 columns. What is to be done has more room, for commands that are to be copied.
fn lines(check: &Check) -> String {
    let mark = match check.verdict {
        Verdict::Good => "ok  ",
        Verdict::Note => "note",
        Verdict::Bad => "BAD ",
    };
    let mut out = beside(&format!("{mark}  {:<23}", check.name), &check.found);
    if let Some(advice) = &check.advice {
        out.push_str(&beside("      -> ", advice));
    }
    out
}

/// Text beside a label, with its own lines.
fn beside(label: &str, text: &str) -> String {
    let indent = label.chars().count();
    let lines = text.lines().flat_map(|line| wrap(line, WIDTH - indent)).enumerate();
    lines.fold(String::new(), |mut out, (at, line)| {
        let label = if at == 0 { label } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{label:<indent$}{line}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_fit_and_commands_are_not_broken() {
        let found =
            "the kernel does not allow this user to use BPF (loading: Operation not permitted)";
        let command = "install -g proctrace -m 0750 $(command -v proctrace) /usr/local/bin";
        let advice = Some(format!("run with sudo, or let a group record, as root:\n{command}"));
        let check = Check { name: "loading", verdict: Verdict::Bad, found: found.into(), advice };
        let lines = lines(&check);
        assert!(lines.lines().all(|line| line.chars().count() <= WIDTH), "{lines}");
        assert!(lines.contains(&format!("\n         {command}\n")), "{lines}");
        assert!(lines.starts_with("BAD   loading                the kernel"), "{lines}");
    }
}
