//! `proctrace metrics`: the metrics of a run by their stable names.

use std::io::{Write, stdout};
use std::process::ExitCode;

use anyhow::Result;
use proctrace_gate::{metrics_file, openmetrics};
use proctrace_report::table_text;

use crate::args::{MetricsArgs, MetricsFormat};
use crate::{print, runs, say};

pub(crate) fn run(args: &MetricsArgs) -> Result<ExitCode> {
    let mut out = stdout().lock();
    if args.names {
        out.write_all(metrics_file::names().as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let metrics = runs::of_file(&args.file, &args.rules)?;
    for doubt in &metrics.doubts {
        say::note(&format!("{} cannot be trusted: {doubt}", args.file.display()));
    }
    let text = match args.format {
        MetricsFormat::Table => table_text(&metrics_file::table(&metrics), print::style(None)),
        MetricsFormat::Json => metrics_file::to_json(&metrics)?,
        MetricsFormat::Openmetrics => openmetrics(&metrics),
    };
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
