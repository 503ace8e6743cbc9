//! Reads logs in which a payload reports the number of processed events.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use proctrace_analysis::{EventLog, EventPattern, Events, Recording};
use proctrace_wire::escape::{to_bytes, to_text};

/// The rest of a longer line is ignored.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Maximum number of files: a pattern that matches more is a mistake.
const FILES_MAX: usize = 10_000;

/// The files matched by a pattern, relative to the directory in which the command was recorded, and
/// the events in each.
pub(crate) fn of_recording(
    recording: &Recording,
    pattern: &str,
    events: &EventPattern,
) -> Result<Vec<EventLog>> {
    let directory = std::ffi::OsString::from_vec(to_bytes(&recording.header.cwd));
    of_directory(Path::new(&directory), pattern, events)
}

fn of_directory(directory: &Path, pattern: &str, events: &EventPattern) -> Result<Vec<EventLog>> {
    // The base directory is literal, even if it contains pattern characters.
    let base = glob::Pattern::escape(&directory.to_string_lossy());
    let whole =
        if pattern.starts_with('/') { pattern.to_owned() } else { format!("{base}/{pattern}") };
    let paths =
        glob::glob(&whole).with_context(|| format!("{pattern:?} is not a valid glob pattern"))?;
    let mut logs = Vec::new();
    for path in paths {
        let path = path.with_context(|| format!("cannot search for {whole}"))?;
        if logs.len() == FILES_MAX {
            bail!("{whole} matches more than {FILES_MAX} files");
        }
        if path.is_file() {
            logs.push(read(&path, events)?);
        }
    }
    if logs.is_empty() {
        bail!(
            "no file matches {whole}; --events-log is relative to the directory in which the \
             command was recorded"
        );
    }
    if logs.iter().all(|log| log.events.events.is_none()) {
        bail!(
            "no line of {} contains a number of events; use --events-regex to describe such lines",
            if logs.len() == 1 {
                logs[0].path.clone()
            } else {
                format!("{} files {whole}", logs.len())
            }
        );
    }
    Ok(logs)
}

/// Reads one log of any size and content.
fn read(path: &PathBuf, pattern: &EventPattern) -> Result<EventLog> {
    let context = || format!("cannot read {}", path.display());
    let mut reader = BufReader::new(File::open(path).with_context(context)?);
    let mut events = Events::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let begun = reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if begun.with_context(context)? == 0 {
            break;
        }
        pattern.read(&line, &mut events);
        if line.last() != Some(&b'\n') {
            reader.skip_until(b'\n').with_context(context)?;
        }
    }
    let path = to_text(path.as_os_str().as_encoded_bytes()).into_owned();
    Ok(EventLog { path, events })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_analysis::ATHENA_EVENTS;

    #[test]
    fn logs_are_found_below_a_directory_with_odd_characters() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("run[1]*");
        for (worker, events) in [(0, 12), (1, 7)] {
            let worker = directory.join(format!("worker_{worker}"));
            std::fs::create_dir_all(&worker).unwrap();
            let long = "x".repeat(200_000);
            let text = format!(
                "{long} Number of events processed: 1, Event Loop Time: 1sec\n\
                 Number of events processed: {events}, Event Loop Time: 1.5sec."
            );
            std::fs::write(worker.join("AthenaMP.log"), text).unwrap();
        }
        let pattern = EventPattern::new(ATHENA_EVENTS).unwrap();
        let logs = of_directory(&directory, "worker_*/AthenaMP.log", &pattern).unwrap();
        let found: Vec<_> = logs.iter().map(|log| (log.number(), log.events.events)).collect();
        assert_eq!(found, [(Some(0), Some(12)), (Some(1), Some(7))]);
        let error = of_directory(&directory, "nothing*", &pattern).unwrap_err().to_string();
        assert!(error.contains("no file") && error.contains("relative"), "{error}");
        let wrong = EventPattern::new("^never (.)$").unwrap();
        let error = of_directory(&directory, "worker_*/*", &wrong).unwrap_err().to_string();
        assert!(error.contains("--events-regex"), "{error}");
    }
}
