//! The rules that `--rules` asks for, and what became of them.

use std::path::Path;

use anyhow::{Context, Result, bail};
use proctrace_analysis::{Recording, Rules};

use crate::args::RulesArgs;
use crate::exit_code::Misuse;
use crate::{live, say};

/// Reads a trace with the rules that were asked for, and says which of these caught nothing.
pub(crate) fn load(trace: &Path, args: &RulesArgs) -> Result<Recording> {
    let recording = read(trace, &chosen(args)?)?;
    for note in recording.idle_rules() {
        say::note(&note);
    }
    Ok(recording)
}

/// Reads a trace, and notes whether it is being written meanwhile.
pub(crate) fn read(trace: &Path, rules: &Rules) -> Result<Recording> {
    // Asked first: a recorder that finishes now has finished what is read next.
    let recording_now = live::is_held(trace);
    let mut recording = Recording::load(trace, rules)?;
    recording.recording_now = recording_now;
    Ok(recording)
}

/// The packs that come with proctrace, and those of `--rules`.
pub(crate) fn chosen(args: &RulesArgs) -> Result<Rules> {
    args.rules.iter().try_fold(Rules::built_in(), |rules, asked| {
        if Rules::names().any(|name| name == asked) {
            return rules.with_pack(asked).context("a pack is not there");
        }
        let path = Path::new(asked);
        if !asked.contains(['/', '.']) && !path.exists() {
            let names: Vec<&str> = Rules::names().collect();
            bail!(Misuse(format!(
                "there is no pack of rules {asked:?} and no such file; there are {}",
                names.join(", ")
            )));
        }
        let toml = std::fs::read_to_string(path).with_context(|| format!("cannot read {asked}"))?;
        Ok(rules.with(asked, &toml)?)
    })
}
