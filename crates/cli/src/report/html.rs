//! `proctrace report --html`: the report as an interactive page.

use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, Result};
use proctrace_analysis::{Analysis, Options, Recording, Section, page};
use proctrace_outputs::NewFile;
use proctrace_report::{Style, full};
use proctrace_web::{Page, PageSection, render};

use crate::query::refuse_traces;
use crate::whole;

/// The text for browsers without scripts.
const STYLE: Style = Style { width: 100, lines: 24, rows: 20, colour: false };

/// Writes the page to the file that `begin` makes: what cannot be computed makes none.
pub(crate) fn write(
    path: &Path,
    begin: impl FnOnce() -> Result<BufWriter<NewFile>>,
    trace: &Path,
    analysis: &Analysis<'_>,
    recording: &Recording,
    options: &Options,
) -> Result<()> {
    refuse_traces(path)?;
    let findings = analysis.findings();
    let data = page(recording, trace, options)?;
    let sections: Vec<PageSection> = Section::ALL
        .iter()
        .map(|section| {
            let content = analysis.section(section, options);
            let (name, help) = (section.name, section.help);
            Ok(PageSection { name, help, tables: content.tables, charts: content.charts })
        })
        .collect::<Result<_>>()?;
    let text = full(&findings, &analysis.report_tables(options), STYLE);
    let shown = Page {
        findings: &findings,
        advised: analysis.advised(),
        data: &data,
        sections: &sections,
        text: &text,
    };
    let context = || format!("cannot write {}", path.display());
    let mut out = begin()?;
    render(&shown, &mut out)
        .map_err(Into::into)
        .and_then(|()| whole::commit(out))
        .with_context(context)
}
