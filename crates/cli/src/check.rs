//! `proctrace check`: whether a recording can be trusted.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use proctrace_analysis::{Recording, Rules, health};
use proctrace_findings::Health;
use proctrace_report::escape::terminal;
use proctrace_report::number::counted;
use proctrace_wire::Kind;

use crate::args::CheckArgs;
use crate::waiting::during;
use crate::{exit_code, print, rules, say};

pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode> {
    let recording = rules::read_any(&args.trace, &Rules::generic())?;
    let health = during("checking", || health(&recording));
    if !args.quiet {
        let lines = lines(&health).into_iter().map(|line| format!("{}\n", terminal(&line)));
        print::verdict(&lines.collect::<String>())?;
    }
    Ok(if health.is_good() { ExitCode::SUCCESS } else { exit_code::UNSOUND.into() })
}

/// Called by every command that prints results: warns if the recording is incomplete.
pub(crate) fn warn(trace: &Path, recording: &Recording) {
    let health = health(recording);
    if health.recording_now {
        say::note(&format!(
            "{} is being recorded right now: this is what has been written so far",
            trace.display()
        ));
    } else if !health.is_good() {
        say::note(&format!(
            "{} is incomplete or failed a consistency check; see `proctrace check`",
            trace.display()
        ));
    }
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
