//! `proctrace diff`: what changed between two runs.

use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use proctrace_gate::Diff;
use proctrace_report::table_markdown;

use crate::args::{DiffArgs, DiffFormat, SectionFormat};
use crate::{print, runs, say, whole};

/// Maximum number of steps distinguishable in a waterfall chart.
const STEPS: usize = 20;

pub(crate) fn run(args: &DiffArgs) -> Result<ExitCode> {
    let (before, after) = match (&args.before_file, &args.after_file) {
        (Some(before), Some(after)) => (std::slice::from_ref(before), std::slice::from_ref(after)),
        _ => (&args.before[..], &args.after[..]),
    };
    let before = runs::of_files(before, &args.rules)?;
    let after = runs::of_files(after, &args.rules)?;
    let diff = Diff::of(&before, &after)?;
    for doubt in &diff.doubts {
        say::note(doubt);
    }
    if let Some(path) = &args.waterfall {
        draw(&diff, path)?;
    }
    let mut out = stdout().lock();
    // Applies to the detail tables; the first table contains the totals, and is always complete.
    let rows = (!args.all).then_some(args.top);
    match args.format {
        DiffFormat::Json => {
            out.write_all(diff.to_json()?.as_bytes())?;
            out.write_all(b"\n")?;
        }
        DiffFormat::Markdown => {
            for (at, table) in diff.tables().iter().enumerate() {
                let rows = rows.filter(|_| at > 0).unwrap_or(usize::MAX);
                out.write_all(table_markdown(table, rows).as_bytes())?;
                out.write_all(b"\n")?;
            }
        }
        DiffFormat::Csv => {
            let tables = diff.tables_of_numbers();
            let (format, dialect) = (SectionFormat::Csv, args.csv.dialect());
            print::tables(&mut out, &tables, format, dialect, print::style(None))?;
        }
        DiffFormat::Text => {
            let tables = diff.tables();
            let (format, dialect) = (SectionFormat::Text, args.csv.dialect());
            if let Some((whole, parts)) = tables.split_first() {
                let whole = std::slice::from_ref(whole);
                print::tables(&mut out, whole, format, dialect, print::style(None))?;
                if !parts.is_empty() {
                    out.write_all(b"\n")?;
                }
                print::tables(&mut out, parts, format, dialect, print::style(rows))?;
            }
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn draw(diff: &Diff, path: &Path) -> Result<()> {
    let Some(chart) = diff.waterfall(STEPS) else {
        say::note("no chart written: the number of processes must be known on both sides");
        return Ok(());
    };
    whole::write(path, &whole::picture_format(path)?.chart(&chart)?)?;
    say::note(&format!("waterfall chart written to {}", path.display()));
    Ok(())
}
