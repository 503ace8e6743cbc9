//! Inputs and results of the sections of a report.

use proctrace_findings::{Chart, Table};
use proctrace_recording::Recording;
use proctrace_recording::knowledge::Knows;
use proctrace_wire::Quantity;

use crate::events::EventLog;

/// The user's options for a report, besides the recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Wall time of the same command without recording, for rates.
    pub native_wall_ns: Option<u64>,
    /// Requested CPUs, if different from those of the machine.
    pub cores: Option<u32>,
    /// Program whose children are the workers of a pool; detected automatically if not given.
    pub pool: Option<String>,
    /// The events reported in the logs of a pool's workers.
    pub event_logs: Vec<EventLog>,
}

impl Options {
    /// The number of CPUs assumed.
    pub fn cores(&self, recording: &Recording) -> u32 {
        self.cores.unwrap_or(recording.header().cpus).max(1)
    }
}

/// The result of a section.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Content {
    /// Its tables, the most important first.
    pub tables: Vec<Table>,
    /// Its charts.
    pub charts: Vec<Chart>,
}

impl Content {
    /// Removes what would be computed from unknown quantities: columns, all rows of tables whose
    /// rows are not known, and charts.
    pub fn only_known(mut self, knows: &Knows) -> Self {
        for table in &mut self.tables {
            let mut lacking: Vec<Quantity> = Vec::new();
            let rows_need = table.rows_need.unwrap_or(&[]);
            if knows.all(rows_need) {
                for column in &mut table.columns {
                    let needs = column.all_needs();
                    if !knows.all(&needs) {
                        column.values.forget();
                        lacking.extend(needs);
                    }
                }
            } else {
                table.columns.iter_mut().for_each(|column| column.values.clear());
                lacking.extend(rows_need);
            }
            if let Some(why) = knows.why_not(&lacking) {
                // A number in a note may itself depend on what is not known.
                table.notes.retain(|note| !note.contains(|c: char| c.is_ascii_digit()));
                table.notes.insert(0, format!("Not known: {why}."));
            }
        }
        self.charts.retain(|chart| chart.needs.is_none_or(|needs| knows.all(needs)));
        self
    }
}
