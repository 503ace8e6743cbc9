//! `proctrace report --out`: the complete report as files.

use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, Result};
use proctrace_analysis::Content;
use proctrace_findings::{Chart, ChartBody, Gantt};
use proctrace_outputs::{Access, Directory, NewFile};
use proctrace_report::{
    CsvDialect, Style, chart_svg, escape, full, table_csv, table_json, table_text,
};

use super::Everything;
use crate::invoker;

const STYLE: Style = Style { width: 100, lines: 24, rows: usize::MAX, colour: false };

/// The interactive page, which `html` writes.
pub(super) const PAGE: &str = "report.html";

/// Writes tables/NAME.txt, .json and .csv, figures/NAME.svg, report.txt, findings.json and
/// index.md, which includes and links them.
pub(super) fn write(place: &ReportDirectories, all: &Everything<'_>, gantt: Gantt) -> Result<()> {
    let findings = &all.findings;
    place.put("report.txt", full(findings, all.shown(), STYLE).as_bytes())?;
    place.put("findings.json", escape::json_text(findings)?.trim_end().as_bytes())?;

    let command = escape::markdown(&findings.run.command.join(" "));
    let mut index = format!(
        "# {command}\n\n[Report](report.txt) · [interactive page]({PAGE}) · [findings](findings.json)\n"
    );
    if !findings.health.is_good() {
        index.push_str(
            "\n**This recording is incomplete or failed a consistency check:** see the top of the \
             report, or `proctrace check`.\n",
        );
    }
    let life = Chart::new("gantt", "All processes", ChartBody::Gantt(Box::new(gantt)));
    place.put_chart(&life, &mut index)?;
    for (section, content) in &all.sections {
        index.push_str(&format!("\n## {}: {}\n", section.name, section.help));
        place.put_content(content, &mut index)?;
    }
    place.put("index.md", index.as_bytes())
}

/// The same for tables and figures that do not belong to a report.
pub(crate) fn write_content(
    path: &Path,
    title: &str,
    content: &Content,
    dialect: CsvDialect,
) -> Result<()> {
    let place = ReportDirectories::create(path, dialect)?;
    let mut index = format!("# {}\n", escape::markdown(title));
    place.put_content(content, &mut index)?;
    place.put("index.md", index.as_bytes())
}

/// The directories of a report. All files are written by their descriptors: nobody who may rename things there
/// leads them elsewhere.
pub(crate) struct ReportDirectories {
    root: Directory,
    tables: Directory,
    figures: Directory,
    dialect: CsvDialect,
}

impl ReportDirectories {
    pub(super) fn create(path: &Path, dialect: CsvDialect) -> Result<Self> {
        let cannot = || format!("cannot create {}", path.display());
        let root = invoker::outputs().create_directory(path, Access::Umask).with_context(cannot)?;
        let below = |name: &str| {
            let failed = || format!("cannot create {}", path.join(name).display());
            root.create_below(name.as_ref(), Access::Umask).with_context(failed)
        };
        Ok(Self { tables: below("tables")?, figures: below("figures")?, root, dialect })
    }

    /// Begins the interactive page, which only its owner may read.
    pub(crate) fn begin_page(&self) -> Result<BufWriter<NewFile>> {
        let failed = || format!("cannot write {}", self.root.path().join(PAGE).display());
        let file = self.root.create(PAGE, Access::Owner).with_context(failed)?;
        Ok(BufWriter::with_capacity(1 << 18, file))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        write_in(&self.root, name, bytes)
    }

    fn put_content(&self, content: &Content, index: &mut String) -> Result<()> {
        for chart in &content.charts {
            self.put_chart(chart, index)?;
        }
        for table in &content.tables {
            let put = |ending: &str, bytes: &[u8]| {
                write_in(&self.tables, &format!("{}.{ending}", table.name), bytes)
            };
            put("txt", table_text(table, STYLE).as_bytes())?;
            put("json", escape::json_text(&table_json(table))?.trim_end().as_bytes())?;
            let mut csv = Vec::new();
            table_csv(table, self.dialect, &mut csv)?;
            put("csv", &csv)?;
            let file = |ending: &str| format!("tables/{}.{ending}", table.name);
            index.push_str(&format!(
                "\n{}: [text]({}), [JSON]({}), [CSV]({})\n",
                escape::markdown_paragraph(&table.title),
                file("txt"),
                file("json"),
                file("csv")
            ));
        }
        Ok(())
    }

    fn put_chart(&self, chart: &Chart, index: &mut String) -> Result<()> {
        let name = format!("{}.svg", chart.name);
        write_in(&self.figures, &name, chart_svg(chart).as_bytes())?;
        let title = escape::markdown(&chart.title);
        index.push_str(&format!("\n![{title}](figures/{name})\n"));
        Ok(())
    }
}

fn write_in(directory: &Directory, name: &str, bytes: &[u8]) -> Result<()> {
    let failed = || format!("cannot write {}", directory.path().join(name).display());
    directory.write(name, Access::Umask, bytes).with_context(failed)
}
