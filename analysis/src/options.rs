//! What the sections of a report are asked, and what they answer.

use proctrace_findings::{Chart, Table};
use proctrace_trace::Quantity;

use crate::events::EventLog;
use crate::recording::Recording;
use crate::recording::knowledge::{Knows, chart_needs, column_needs, table_needs};

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

impl Content {
    /// Without what would be computed from quantities that are not known: figures of columns, all rows
    /// of tables whose rows are not known, and charts.
    pub(crate) fn only_known(mut self, knows: &Knows) -> Self {
        for table in &mut self.tables {
            let rows_need = table_needs(table.name).unwrap_or(&[]);
            let mut lacking: Vec<Quantity> = Vec::new();
            if knows.all(rows_need) {
                for column in &mut table.columns {
                    let needs = column_needs(column.name);
                    if !knows.all(needs) {
                        column.values.forget();
                        for need in needs {
                            if !lacking.contains(need) {
                                lacking.push(*need);
                            }
                        }
                    }
                }
            } else {
                table.columns.iter_mut().for_each(|column| column.values.clear());
                lacking.extend(rows_need);
            }
            if let Some(why) = knows.why_not(&lacking) {
                // What a note counts may be just what is not known.
                table.notes.retain(|note| !note.contains(|c: char| c.is_ascii_digit()));
                table.notes.insert(0, format!("Not known: {why}."));
            }
        }
        self.charts.retain(|chart| chart_needs(chart.name).is_none_or(|needs| knows.all(needs)));
        self
    }
}
