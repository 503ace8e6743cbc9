//! `check`: whether a recording can be trusted.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use proctrace_classify::Rules;
use proctrace_findings::Health;
use proctrace_recording::Recording;
use proctrace_report::escape::terminal;
use proctrace_report::number::counted;
use proctrace_wire::Kind;

use crate::args::CheckArgs;
use crate::waiting::{during, reading};
use crate::{exit_code, live, say};

/// Checks a recording: prints what holds and what does not.
///
/// # Errors
/// If the trace cannot be read.
pub fn run(args: &CheckArgs) -> Result<ExitCode> {
    // Laws are about counts and times: no rule is needed to check them.
    let recording = read(&args.trace, &Rules::none())?;
    let health = during("checking", || recording.health());
    if !args.quiet {
        let lines = lines(&health).into_iter().map(|line| format!("{}\n", terminal(&line)));
        say::verdict(&lines.collect::<String>())?;
    }
    Ok(if health.is_good() { ExitCode::SUCCESS } else { exit_code::UNSOUND.into() })
}

/// Reads a trace, and records whether it is still being written.
///
/// # Errors
/// If it cannot be read.
pub fn read(trace: &Path, rules: &Rules) -> Result<Recording> {
    // Checked first: if the recorder finishes after this check, the trace read next is complete.
    let recording_now = live::is_held(trace);
    let mut recording = reading(trace, |meter| Recording::load_metered(trace, rules, meter))?;
    recording.set_recording_now(recording_now);
    Ok(recording)
}

fn lines(health: &Health) -> Vec<String> {
    let verdict = |good: bool| if good { "ok " } else { "BAD" };
    let finished = if health.recording_now {
        "it is being recorded right now: this is what has been written so far"
    } else {
        "the recorder finished the trace"
    };
    let mut lines = vec![
        format!("{} {finished}", verdict(health.complete)),
        format!("{} {} lost", verdict(health.lost == 0), counted(health.lost, "record", "records")),
    ];
    for loss in &health.losses {
        let with = Kind::missing_with(&loss.kind);
        lines.push(format!("      {} of kind {} ({}){with}", loss.count, loss.kind, loss.reason));
    }
    if health.damage.is_empty() {
        lines.push(format!("{} no damage", verdict(true)));
    }
    lines.extend(health.damage.iter().map(|damage| format!("{} {damage}", verdict(false))));
    for law in &health.laws {
        let said = law.holds.map_or("-  ", verdict);
        lines.push(format!("{said} {}", law.says));
        lines.push(match (law.found, law.expected, &law.not_checked) {
            (Some(found), Some(expected), None) => {
                format!("      {found} {unit} against {expected} {unit}", unit = law.unit)
            }
            (_, _, why) => {
                format!(
                    "      not checked, because {}",
                    why.as_deref().unwrap_or("it is not known")
                )
            }
        });
    }
    lines
}
