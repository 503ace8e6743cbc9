//! `proctrace doctor`: the capabilities of this kernel and user.

use std::io::{Write, stdout};
use std::process::ExitCode;

use anyhow::Result;
use proctrace_probe::doctor::{Verdict, examine};
use proctrace_ptrace::may_trace;

use crate::exit_code;

pub(crate) fn run() -> Result<ExitCode> {
    let checks = examine();
    let mut out = stdout().lock();
    for check in &checks {
        let mark = match check.verdict {
            Verdict::Good => "ok  ",
            Verdict::Note => "note",
            Verdict::Bad => "BAD ",
        };
        writeln!(out, "{mark}  {:<23}{}", check.name, indented(&check.found))?;
        if let Some(advice) = &check.advice {
            writeln!(out, "{:29}-> {}", "", indented(advice))?;
        }
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

fn indented(text: &str) -> String {
    text.replace('\n', &format!("\n{:29}", ""))
}
