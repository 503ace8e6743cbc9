//! The rules selected by `--rules`, and the report of unused ones.

use std::path::Path;

use anyhow::{Context, Result, bail};
use proctrace_analysis::{Recording, Rules};

use crate::args::RulesArgs;
use crate::exit_code::Misuse;
use crate::{check, live, say, waiting};

/// Reads a trace with the requested rules, and reports which of these matched nothing.
///
/// # Errors
/// Also if it has no times, from which most answers follow.
pub(crate) fn load(trace: &Path, args: &RulesArgs) -> Result<Recording> {
    let recording = load_any(trace, args)?;
    needs_times(trace, &recording)?;
    Ok(recording)
}

/// The same of any trace, for what tells itself which values are not known.
pub(crate) fn load_any(trace: &Path, args: &RulesArgs) -> Result<Recording> {
    let recording = check::read(trace, &chosen(args)?)?;
    note_idle(&recording);
    Ok(recording)
}

/// Refuses a recording without times.
pub(crate) fn needs_times(trace: &Path, recording: &Recording) -> Result<()> {
    let Some(why) = recording.why_no_times() else { return Ok(()) };
    bail!(
        "{} has no times ({why});\n  report, metrics, query, libs, diff and check count what it holds",
        trace.display()
    )
}

/// The same without look-ups and opens, which take most of the time.
pub(crate) fn load_lives(trace: &Path, args: &RulesArgs) -> Result<Recording> {
    let recording_now = live::is_held(trace);
    let mut recording = {
        let rules = chosen(args)?;
        waiting::reading(trace, |meter| Recording::load_lives(trace, &rules, meter))?
    };
    recording.recording_now = recording_now;
    needs_times(trace, &recording)?;
    note_idle(&recording);
    Ok(recording)
}

fn note_idle(recording: &Recording) {
    for note in recording.classification.idle_rules() {
        say::note(&note);
    }
}

/// Reads a trace, and records whether it is still being written.
///
/// # Errors
/// Also if it has no times.
pub(crate) fn read(trace: &Path, rules: &Rules) -> Result<Recording> {
    let recording = check::read(trace, rules)?;
    needs_times(trace, &recording)?;
    Ok(recording)
}

/// The built-in packs, and those of `--rules`, with what `--steps` says.
pub(crate) fn chosen(args: &RulesArgs) -> Result<Rules> {
    let rules = args.rules.iter().try_fold(Rules::built_in(), |rules, asked| {
        if Rules::names().any(|name| name == asked) {
            return rules.with_pack(asked).context("cannot use a built-in rule pack");
        }
        let path = Path::new(asked);
        if !asked.contains(['/', '.']) && !path.exists() {
            let names: Vec<&str> = Rules::names().collect();
            bail!(Misuse(format!(
                "{asked:?} is neither a file nor a rule pack; the packs are {}",
                names.join(", ")
            )));
        }
        let toml = std::fs::read_to_string(path).with_context(|| format!("cannot read {asked}"))?;
        Ok(rules.with(asked, &toml)?)
    })?;
    args.steps.iter().try_fold(rules, |rules, path| {
        let name = path.display().to_string();
        let content = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
        Ok(rules.with_steps(&name, &content)?)
    })
}
