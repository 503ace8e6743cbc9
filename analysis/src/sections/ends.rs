//! How processes ended: which failed, and which were killed by a signal.

use proctrace_findings::{Table, Unit, Values, counted};

use crate::analysis::Analysis;
use crate::error::AnalysisError;
use crate::options::{Content, Options};

pub(crate) fn section(analysis: &Analysis<'_>, _: &Options) -> Result<Content, AnalysisError> {
    let ends = analysis.ends();
    let all = &ends.by_program;
    let known = |parent: &String| (!parent.is_empty()).then(|| parent.clone());
    let parents = all.iter().map(|end| known(&end.example_parent));
    let mut table = Table::new("ends", "Processes that did not exit with 0, worst first")
        .text("program", "program", all.iter().map(|end| end.program.clone()))
        .text("how", "how", all.iter().map(|end| end.how.clone()))
        .whole("processes", "processes", Unit::Count, all.iter().map(|end| Some(end.processes)))
        .whole("core_dumps", "core dumps", Unit::Count, all.iter().map(|end| Some(end.core_dumps)))
        .figures("example_pid", "first pid", all.iter().map(|end| end.example_pid.to_string()))
        .column("example_parent", "started by", Unit::Text, Values::Text(parents.collect()))
        .note(format!(
            "{} exited with 0, {} with another status; killed by a signal: {}.",
            counted(ends.succeeded, "process", "processes"),
            ends.failed,
            ends.signalled
        ));
    if ends.unknown > 0 {
        table = table.note(format!(
            "Exit status of {} unknown: still running when the recording ended, or record lost.",
            counted(ends.unknown, "process", "processes")
        ));
    }
    Ok(Content { tables: vec![table], charts: Vec::new() })
}
