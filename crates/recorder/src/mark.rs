//! `proctrace mark`: names a moment. The recorder sees that the command was started; it does nothing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use anyhow::Result;
use proctrace_wire::{mark_of_words, step_of_words};

use crate::args::MarkArgs;

/// Returns whether the arguments of this process are `mark` and a text or a step, as the analysis will understand them.
pub fn is_set() -> bool {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let [command, text @ ..] = &words[..] else { return false };
    let text = || text.iter().map(|word| word.as_bytes());
    command == OsStr::new("mark")
        && match step_of_words(text()) {
            Some(step) => step.is_ok(),
            None => mark_of_words(text()).is_ok(),
        }
}

/// Says why a text is none; with the help of clap, which has found nothing wrong with it.
pub fn refuse(args: &MarkArgs) -> Result<ExitCode> {
    if let Some(step) = &args.step {
        let words = [b"--step", step.as_bytes()].into_iter();
        step_of_words(words.chain(args.text.iter().map(|word| word.as_bytes()))).transpose()?;
    }
    mark_of_words(args.text.iter().map(|word| word.as_bytes()))?;
    Ok(ExitCode::SUCCESS)
}
