//! Words that are neither a command nor an option: what was probably meant.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::is_command;

/// Minimum likeness of two words for one to be proposed for the other: clap's own threshold.
const ALIKE: f64 = 0.7;

/// Finds an option before `--` that does not exist: the arguments of the command begin there, so that it was taken for
/// the command. `definition` is that of the program, `path` the subcommand that runs the command `words`.
pub fn option(
    mut definition: clap::Command,
    path: &[&str],
    words: &[OsString],
) -> Option<clap::Error> {
    let given: Vec<OsString> = std::env::args_os().collect();
    let first = words.first().filter(|word| word.as_bytes().starts_with(b"-"))?;
    let before = given.len().checked_sub(words.len() + 1)?;
    if given[before] == "--" {
        return None;
    }
    definition.build();
    let program = definition.get_name().to_owned();
    let definition = path.iter().try_fold(&definition, |at, name| at.find_subcommand(name))?;
    let word = first.to_string_lossy();
    let name = word.split('=').next().unwrap_or(&word);
    let similar = definition
        .get_arguments()
        .filter(|argument| !argument.is_hide_set())
        .filter_map(|argument| Some(format!("--{}", argument.get_long()?)))
        .map(|long| (strsim::jaro_winkler(name, &long), long))
        .filter(|(alike, _)| *alike > ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let mut text = format!("unexpected argument '{name}' found\n");
    if let Some((_, long)) = similar {
        text.push_str(&format!("\n  tip: a similar argument exists: '{long}'"));
    }
    let path = path.join(" ");
    text.push_str(&format!("\n  tip: to run a command of that name: {program} {path} -- {word}\n"));
    Some(clap::Error::raw(ErrorKind::UnknownArgument, text).with_cmd(definition))
}

/// Proposes to record a word that is no command of this program, but another program, or names the program that has it.
/// Lists the commands of a command that must be given one of them.
pub fn command(error: &clap::Error, definition: &clap::Command) -> Option<String> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let program = definition.get_name();
    let given = std::env::args_os().nth(1);
    let group = given.as_ref().and_then(|given| definition.find_subcommand(given));
    if let Some(group) = group.filter(|group| group.is_subcommand_required_set()) {
        let names: Vec<_> = group
            .get_subcommands()
            .filter(|command| !command.is_hide_set() && command.get_name() != "help")
            .map(clap::Command::get_name)
            .collect();
        let (group, names) = (group.get_name(), names.join(", "));
        return Some(format!("  tip: behind '{program} {group}' comes one of: {names}\n"));
    }
    let is_first = given.is_some_and(|given| given == OsStr::new(word));
    if is_first && is_command(word) {
        return Some(format!("  tip: it is a command of proctrace; {program} only records\n"));
    }
    let path = std::env::var_os("PATH")?;
    let is_program = |file: &Path| {
        file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let is_known = match word.contains('/') {
        true => is_program(Path::new(word)),
        false => std::env::split_paths(&path).any(|directory| is_program(&directory.join(word))),
    };
    let rest: Vec<String> = std::env::args_os()
        .skip_while(|given| given.as_os_str() != OsStr::new(word))
        .map(|given| given.to_string_lossy().into_owned())
        .collect();
    is_known.then(|| format!("  tip: to record it: {program} record -- {}\n", rest.join(" ")))
}
