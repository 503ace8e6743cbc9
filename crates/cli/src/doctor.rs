//! `proctrace doctor`: the capabilities of this kernel and user.

use std::io::{Write, stdout};
use std::process::ExitCode;

use anyhow::Result;
use proctrace_probe::doctor::{Verdict, examine};

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
    writeln!(
        out,
        "\n{}",
        if usable { "Recording is possible." } else { "Recording is not possible." }
    )?;
    Ok(if usable { ExitCode::SUCCESS } else { exit_code::FAILED.into() })
}

fn indented(text: &str) -> String {
    text.replace('\n', &format!("\n{:29}", ""))
}
