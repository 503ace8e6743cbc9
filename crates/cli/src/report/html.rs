//! `proctrace report --html`: the report as an interactive page.

use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, Result};
use proctrace_analysis::{Options, page};
use proctrace_outputs::NewFile;
use proctrace_report::{Style, full};
use proctrace_web::{Page, PageSection, render};

use super::Everything;
use crate::whole;

/// The text for browsers without scripts.
const STYLE: Style = Style { width: 100, lines: 24, rows: 20, colour: false };

/// Writes the page to the file that `begin` makes: what cannot be computed makes none.
pub(super) fn write(
    path: &Path,
    begin: impl FnOnce() -> Result<BufWriter<NewFile>>,
    trace: &Path,
    all: &Everything<'_>,
    options: &Options,
) -> Result<()> {
    let data = page(all.analysis, trace, options)?;
    let sections = all.sections.iter().map(|(section, content)| PageSection {
        name: section.name,
        help: section.help,
        tables: &content.tables,
        charts: &content.charts,
    });
    let sections: Vec<PageSection<'_>> = sections.collect();
    let text = full(&all.findings, all.shown(), STYLE);
    let shown = Page {
        findings: &all.findings,
        advised: all.analysis.advised(),
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
