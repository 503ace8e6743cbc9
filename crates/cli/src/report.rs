//! `proctrace report`: what ran, what it cost and what was wasted.

pub(crate) mod directory;

use std::io::{IsTerminal, Write, stdout};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use proctrace_analysis::{
    ATHENA_EVENTS, EventPattern, Options, Recording, Rules, Section, analyse, gantt,
};
use proctrace_findings::Table;
use proctrace_report::{Style, full, gantt_svg, summary, table_csv, table_json, table_text};

use crate::args::{ReportArgs, SectionFormat};
use crate::{event_logs, say};

pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode> {
    if args.section.iter().any(|name| name == "list") {
        return list_sections();
    }
    let sections = args.section.iter().map(|name| named(name)).collect::<Result<Vec<_>>>()?;
    let events = event_pattern(args.events_regex.as_deref())?;
    let recording = Recording::load(&args.trace, &Rules::generic())?;
    if let Some(path) = &args.gantt {
        let svg = gantt_svg(&gantt(&recording))?;
        std::fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))?;
        say::note(&format!("the Gantt chart is in {}", path.display()));
    }
    let options = Options {
        native_wall_ns: args
            .native_wall
            .map(|wall| u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX)),
        cores: args.cores,
        pool: args.pool.clone(),
        event_logs: match &args.events_log {
            Some(pattern) => event_logs::of_recording(&recording, pattern, &events)?,
            None => Vec::new(),
        },
    };
    if let Some(path) = &args.out {
        directory::write(path, &recording, &options)?;
        say::note(&format!("all of it is in {}; begin with index.md", path.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = stdout().lock();
    let style = terminal_style(if args.all { usize::MAX } else { args.top });
    if !sections.is_empty() {
        print_sections(&mut out, &sections, &recording, &options, args.format, style)?;
    } else {
        let findings = analyse(&recording)?;
        if args.json {
            serde_json::to_writer_pretty(&mut out, &findings).map_err(std::io::Error::from)?;
            out.write_all(b"\n")?;
        } else {
            let render = if args.summary { summary } else { full };
            out.write_all(render(&findings, style).as_bytes())?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// For a terminal, if stdout is one.
pub(crate) fn terminal_style(rows: usize) -> Style {
    // no-color.org: any value that is not empty
    let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    Style { width: 80, rows, colour: stdout().is_terminal() && !refused }
}

/// How a line tells events: as the user says, or as AthenaMP writes it.
pub(crate) fn event_pattern(regex: Option<&str>) -> Result<EventPattern> {
    Ok(EventPattern::new(regex.unwrap_or(ATHENA_EVENTS))?)
}

fn named(name: &str) -> Result<&'static Section> {
    match Section::named(name) {
        Some(section) => Ok(section),
        None => {
            let names: Vec<&str> = Section::ALL.iter().map(|section| section.name).collect();
            bail!("there is no section {name:?}; there are {}", names.join(", "))
        }
    }
}

fn list_sections() -> Result<ExitCode> {
    let mut out = stdout().lock();
    for section in Section::ALL {
        writeln!(out, "{:14}{}", section.name, section.help)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print_sections(
    out: &mut impl Write,
    sections: &[&Section],
    recording: &Recording,
    options: &Options,
    format: SectionFormat,
    style: Style,
) -> Result<()> {
    let mut tables = Vec::new();
    for section in sections {
        tables.extend(section.of(recording, options)?.tables);
    }
    print_tables(out, &tables, format, style)
}

/// Tables one after the other.
pub(crate) fn print_tables(
    out: &mut impl Write,
    tables: &[Table],
    format: SectionFormat,
    style: Style,
) -> Result<()> {
    match format {
        SectionFormat::Json => {
            let tables: Vec<_> = tables.iter().map(table_json).collect();
            serde_json::to_writer_pretty(&mut *out, &tables).map_err(std::io::Error::from)?;
            out.write_all(b"\n")?;
        }
        SectionFormat::Csv => {
            for (at, table) in tables.iter().enumerate() {
                if at > 0 {
                    out.write_all(b"\r\n")?;
                }
                table_csv(table, out)?;
            }
        }
        SectionFormat::Text => {
            for (at, table) in tables.iter().enumerate() {
                if at > 0 {
                    out.write_all(b"\n")?;
                }
                out.write_all(table_text(table, style).as_bytes())?;
            }
        }
    }
    Ok(())
}
