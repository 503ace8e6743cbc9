//! The columns with which the rows of all tables of a job begin.

use proctrace_analysis::TableSchema;
use proctrace_findings::Findings;

use crate::columns::Columns;
use crate::day;
use crate::identity::Identity;
use crate::redact::Redaction;
use crate::user::fingerprint;

/// Columns that the rows of all tables begin with.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) job: String,
    pub(crate) day: Option<String>,
    pub(crate) site: Option<String>,
}

impl Key {
    /// The same for each summary of one recording.
    pub(crate) fn of(findings: &Findings, identity: &Identity, redaction: Redaction<'_>) -> Self {
        let run = &findings.run;
        let (started, wall) =
            (run.started_unix_ns.to_string(), run.wall_ns.unwrap_or_default().to_string());
        let mut parts = vec![&*run.host, &*started, &*wall];
        parts.extend(identity.batch_id.as_deref());
        parts.extend(run.command.iter().map(String::as_str));
        let began = (run.started_unix_ns > 0).then_some(run.started_unix_ns);
        Self {
            job: redaction.job(fingerprint(&parts)),
            day: began.map(|ns| day::of_unix_s(ns / 1_000_000_000)),
            site: identity.site.clone(),
        }
    }

    /// A table with the key of each row.
    pub(crate) fn columns(&self, schema: &'static TableSchema, height: usize) -> Columns {
        let mut columns = Columns::new(schema, height);
        columns.text("job", vec![Some(self.job.clone()); height]);
        columns.text("site", vec![self.site.clone(); height]);
        columns
    }
}
