//! Reads logs in which a payload reports the number of processed events.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use proctrace_analysis::{EventLog, EventPattern, Events, Recording};
use proctrace_wire::escape::{to_bytes, to_text};
use thiserror::Error;

/// The rest of a longer line is ignored.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Maximum number of files: a pattern that matches more is a mistake.
const FILES_MAX: usize = 10_000;

/// Errors of finding and reading logs.
#[derive(Debug, Error)]
pub enum EventLogError {
    /// The pattern of files is not one.
    #[error("{pattern:?} is not a valid glob pattern")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The cause.
        source: glob::PatternError,
    },
    /// A directory cannot be read.
    #[error("cannot search for {pattern}")]
    Search {
        /// The pattern with its directory.
        pattern: String,
        /// The cause.
        source: glob::GlobError,
    },
    /// Too many files match.
    #[error("{0} matches more than {FILES_MAX} files")]
    TooMany(String),
    /// No file matches.
    #[error(
        "no file matches {0}; --events-log is relative to the directory in which the command was recorded"
    )]
    None(String),
    /// No line of these files matches the pattern of events.
    #[error(
        "no line of {0} contains a number of events; use --events-regex to describe such lines"
    )]
    NoEvents(String),
    /// A log cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The log.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The files matched by a pattern, relative to the directory in which the command was recorded, and
/// the events in each.
///
/// # Errors
/// If no file matches, or none has events, or one cannot be read.
pub fn of_recording(
    recording: &Recording,
    pattern: &str,
    events: &EventPattern,
) -> Result<Vec<EventLog>, EventLogError> {
    let directory = std::ffi::OsString::from_vec(to_bytes(&recording.header().cwd));
    of_directory(Path::new(&directory), pattern, events)
}

fn of_directory(
    directory: &Path,
    pattern: &str,
    events: &EventPattern,
) -> Result<Vec<EventLog>, EventLogError> {
    // The base directory is literal, even if it contains pattern characters.
    let base = glob::Pattern::escape(&directory.to_string_lossy());
    let whole =
        if pattern.starts_with('/') { pattern.to_owned() } else { format!("{base}/{pattern}") };
    let paths = glob::glob(&whole)
        .map_err(|source| EventLogError::Pattern { pattern: pattern.to_owned(), source })?;
    let mut logs = Vec::new();
    for path in paths {
        let path =
            path.map_err(|source| EventLogError::Search { pattern: whole.clone(), source })?;
        if logs.len() == FILES_MAX {
            return Err(EventLogError::TooMany(whole));
        }
        if path.is_file() {
            let log = read(&path, events);
            logs.push(log.map_err(|source| EventLogError::Read { path, source })?);
        }
    }
    let has_events = logs.iter().any(|log| log.events.events.is_some());
    match &logs[..] {
        [] => Err(EventLogError::None(whole)),
        _ if has_events => Ok(logs),
        [log] => Err(EventLogError::NoEvents(log.path.clone())),
        several => Err(EventLogError::NoEvents(format!("{} files {whole}", several.len()))),
    }
}

/// Reads one log of any size and content.
fn read(path: &Path, pattern: &EventPattern) -> io::Result<EventLog> {
    let mut reader = BufReader::new(File::open(path)?);
    let mut events = Events::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        pattern.read(&line, &mut events);
        if line.last() != Some(&b'\n') {
            reader.skip_until(b'\n')?;
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
