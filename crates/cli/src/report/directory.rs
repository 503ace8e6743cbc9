//! `proctrace report --out`: the complete report as files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use proctrace_analysis::{Analysis, Content, Options, Section};
use proctrace_findings::{Chart, ChartBody, Gantt};
use proctrace_report::{Style, chart_svg, escape, full, table_csv, table_json, table_text};
use serde::Serialize;

use crate::whole;

const STYLE: Style = Style { width: 100, rows: usize::MAX, colour: false };

/// The interactive page, which `html` writes.
pub(super) const PAGE: &str = "report.html";

/// Writes tables/NAME.txt, .json and .csv, figures/NAME.svg, report.txt, findings.json and
/// index.md, which includes and links them, and the interactive page.
pub(crate) fn write(
    path: &Path,
    analysis: &Analysis<'_>,
    options: &Options,
    gantt: Gantt,
) -> Result<()> {
    make_directories(path)?;
    let findings = analysis.findings()?;
    let shown = analysis.report_tables(options)?;
    whole::write(&path.join("report.txt"), full(&findings, &shown, STYLE).as_bytes())?;
    put_json(&path.join("findings.json"), &findings)?;

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
    put_chart(path, &life, &mut index)?;
    for section in Section::ALL {
        let content = analysis.section(section, options)?;
        index.push_str(&format!("\n## {}: {}\n", section.name, section.help));
        put_content(path, &content, &mut index)?;
    }
    whole::write(&path.join("index.md"), index.as_bytes())
}

/// The same for tables and figures that do not belong to a report.
pub(crate) fn write_content(path: &Path, title: &str, content: &Content) -> Result<()> {
    make_directories(path)?;
    let mut index = format!("# {}\n", escape::markdown(title));
    put_content(path, content, &mut index)?;
    whole::write(&path.join("index.md"), index.as_bytes())
}

fn make_directories(path: &Path) -> Result<()> {
    for directory in [path.to_owned(), path.join("tables"), path.join("figures")] {
        fs::create_dir_all(&directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
    }
    Ok(())
}

fn put_content(path: &Path, content: &Content, index: &mut String) -> Result<()> {
    for chart in &content.charts {
        put_chart(path, chart, index)?;
    }
    for table in &content.tables {
        let file = |ending: &str| format!("tables/{}.{ending}", table.name);
        whole::write(&path.join(file("txt")), table_text(table, STYLE).as_bytes())?;
        put_json(&path.join(file("json")), &table_json(table))?;
        let mut csv = Vec::new();
        table_csv(table, &mut csv)?;
        whole::write(&path.join(file("csv")), &csv)?;
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

fn put_chart(path: &Path, chart: &Chart, index: &mut String) -> Result<()> {
    let file = format!("figures/{}.svg", chart.name);
    whole::write(&path.join(&file), chart_svg(chart).as_bytes())?;
    let title = escape::markdown(&chart.title);
    index.push_str(&format!("\n![{title}]({file})\n"));
    Ok(())
}

fn put_json(path: &Path, value: &impl Serialize) -> Result<()> {
    whole::write(path, escape::json(&serde_json::to_string_pretty(value)?).as_bytes())
}
