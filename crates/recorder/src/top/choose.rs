//! The trace to show if none is named: the newest one that is being written.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use proctrace_trace::is_trace;

use crate::live;

/// The newest trace in the current directory that a recorder is writing.
pub(super) fn newest(program: &str, has_view: bool) -> Result<PathBuf> {
    let Some(path) = newest_in(Path::new("."))? else {
        let shown = if has_view { "--live" } else { "--progress" };
        bail!(
            "no recording is being written in this directory; name a trace: {program} top FILE, or \
             start one: {program} record {shown} -- COMMAND"
        );
    };
    Ok(path)
}

fn newest_in(directory: &Path) -> Result<Option<PathBuf>> {
    let entries = fs::read_dir(directory).context("cannot read the current directory")?;
    let mut newest: Option<(SystemTime, PathBuf)> = None;
    for entry in entries.flatten() {
        // Not one that a link leads to: it may be in a directory of somebody else.
        if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let path = entry.path();
        if !live::is_held(&path) || !is_trace(&path) {
            continue;
        }
        let changed =
            entry.metadata().and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        if newest.as_ref().is_none_or(|(latest, _)| changed > *latest) {
            newest = Some((changed, path));
        }
    }
    // Without the leading "./".
    Ok(newest.map(|(_, path)| path.strip_prefix(".").map(Path::to_owned).unwrap_or(path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_trace::MAGIC;
    use std::fs::File;
    use std::io::Write;

    #[test]
    fn only_a_trace_that_is_being_written_is_chosen() {
        let directory = tempfile::tempdir().unwrap();
        let create = |name: &str, contents: &[u8]| {
            let mut file = File::create(directory.path().join(name)).unwrap();
            file.write_all(contents).unwrap();
            file
        };
        let chosen = || newest_in(directory.path()).unwrap();
        drop(create("finished.ptrace", &MAGIC));
        let other = create("other", b"something else");
        live::hold(&other);
        assert_eq!(chosen(), None);
        let first = create("first.ptrace", &MAGIC);
        live::hold(&first);
        first.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(chosen(), Some(directory.path().join("first.ptrace")));
        let second = create("second.ptrace.new-1-0", &MAGIC);
        live::hold(&second);
        assert_eq!(chosen(), Some(directory.path().join("second.ptrace.new-1-0")));
        // Closing it would not release the lock while a test beside this one starts a program: until its
        // exec, the new process has the file open as well.
        live::release(&second);
        assert_eq!(chosen(), Some(directory.path().join("first.ptrace")));
    }
}
