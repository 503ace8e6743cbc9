//! The rules selected by `--rules`, what `--steps` names, and the report of unused rules.

use std::ffi::OsStr;
use std::fs::DirEntry;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use proctrace_analysis::{Recording, Rules, SnakemakeRecord};

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
    recording.set_recording_now(recording_now);
    needs_times(trace, &recording)?;
    note_idle(&recording);
    Ok(recording)
}

fn note_idle(recording: &Recording) {
    for note in recording.classification().idle_rules() {
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
        if path.is_dir() {
            let mut records = Vec::new();
            add_records(path, &[], &mut records)?;
            return Ok(rules.with_snakemake(&name, &records)?);
        }
        let content = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
        Ok(rules.with_steps(&name, &content)?)
    })
}

/// Directories of Snakemake's records within others: a path of 4,096 bytes takes 22 in base64.
const DEPTH_MAX: usize = 32;

/// Reads Snakemake's records in a directory, in the order of their names, and in those below it that long names take.
fn add_records(
    directory: &Path,
    below: &[&OsStr],
    records: &mut Vec<SnakemakeRecord>,
) -> Result<()> {
    let cannot = |path: &Path| format!("cannot read {}", path.display());
    let listed: io::Result<Vec<DirEntry>> =
        std::fs::read_dir(directory).and_then(Iterator::collect);
    let mut entries = listed.with_context(|| cannot(directory))?;
    entries.sort_by_key(DirEntry::file_name);
    for entry in entries {
        let (name, path) = (entry.file_name(), entry.path());
        let names = [below, &[&*name]].concat();
        let kind = entry.file_type().with_context(|| cannot(&path))?;
        let below: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        let below = below.join(&b'/');
        // Of another directory, or of what else is in it, nothing is read.
        if kind.is_file() && SnakemakeRecord::is_path(&below) {
            let mut content = Vec::new();
            let file = std::fs::File::open(&path).with_context(|| cannot(&path))?;
            let mut file = file.take(SnakemakeRecord::BYTES_MAX);
            file.read_to_end(&mut content).with_context(|| cannot(&path))?;
            records.push(SnakemakeRecord { path: below, content });
        } else if kind.is_dir() && name.as_bytes().starts_with(b"@") && names.len() < DEPTH_MAX {
            add_records(&path, &names, records)?;
        }
    }
    Ok(())
}
