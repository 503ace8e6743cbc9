//! What the sections of a report are asked, and what they answer.

use proctrace_findings::{Chart, Table};

use crate::events::EventLog;
use crate::recording::Recording;

/// What a reader may ask for, beside the recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Wall time of the same command without recording, for rates.
    pub native_wall_ns: Option<u64>,
    /// CPUs that were asked for, where that is not what the machine has.
    pub cores: Option<u32>,
    /// Program whose children are the workers of a pool; found by itself if not given.
    pub pool: Option<String>,
    /// What the logs of a pool's workers say of events.
    pub event_logs: Vec<EventLog>,
}

impl Options {
    /// The CPUs to count with.
    pub fn cores(&self, recording: &Recording) -> u32 {
        self.cores.unwrap_or(recording.header.cpus).max(1)
    }
}

/// What a section found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Content {
    /// Its tables, the most important first.
    pub tables: Vec<Table>,
    /// Its figures.
    pub charts: Vec<Chart>,
}
