//! `proctrace compact`: puts the small files of a fleet together.

use std::process::ExitCode;

use anyhow::{Result, bail};
use proctrace_fleet::compact;
use proctrace_report::number::{bytes, count, counted};

use crate::args::CompactArgs;
use crate::exit_code::Misuse;
use crate::waiting::during;
use crate::{invoker, say};

pub(crate) fn run(args: &CompactArgs) -> Result<ExitCode> {
    let directory = &args.directory;
    if !directory.is_dir() {
        bail!(Misuse(format!("{} is no directory", directory.display())));
    }
    let work = || compact(directory, &args.layout, &invoker::outputs());
    let done = during("putting files together", work)?;
    say::note(&format!(
        "{} put together in {} ({} rows, {})",
        counted(done.files, "file", "files"),
        counted(done.directories, "directory", "directories"),
        count(done.rows),
        bytes(done.bytes)
    ));
    if done.busy > 0 {
        let busy = counted(done.busy, "directory", "directories");
        say::note(&format!("{busy} left alone: another process compacts there"));
    }
    Ok(ExitCode::SUCCESS)
}
