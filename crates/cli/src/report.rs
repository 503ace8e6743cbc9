//! `proctrace report`: what ran, what it cost and what was wasted.

pub(crate) mod directory;
mod html;

use std::io::{Write, stdout};
use std::process::ExitCode;

use anyhow::{Result, bail};
use proctrace_analysis::{ATHENA_EVENTS, Analysis, Content, EventPattern, Options, Section};
use proctrace_event_logs as event_logs;
use proctrace_findings::{Findings, Table};
use proctrace_record::nanoseconds;
use proctrace_report::{Style, full, screen};

use crate::args::ReportArgs;
use crate::exit_code::Misuse;
use crate::query::refuse_traces;
use crate::waiting::during;
use crate::{incomplete, print, rules, say, whole};

use self::directory::ReportDirectories;

/// Message while sections are computed.
const ANALYSING: &str = "analysing";

pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode> {
    if args.section.iter().any(|name| name == "list") {
        return list_sections();
    }
    let sections = args.section.iter().map(|name| named(name)).collect::<Result<Vec<_>>>()?;
    let drawn = match &args.gantt {
        Some(path) => Some((path, whole::picture_format(path)?)),
        None => None,
    };
    let events = event_pattern(args.events_regex.as_deref())?;
    // Never dropped, since the process ends with it: freeing its memory piecewise took a twentieth
    // of the time.
    let recording = std::mem::ManuallyDrop::new(rules::load_any(&args.trace, &args.rules)?);
    if drawn.is_some() || args.html.is_some() || args.out.is_some() || args.phase.is_some() {
        rules::needs_times(&args.trace, &recording)?;
    }
    // The full report warns at its top, and --json contains "health".
    let printed = !sections.is_empty() || args.phase.is_some();
    if printed || args.out.is_some() || args.gantt.is_some() || args.html.is_some() {
        incomplete::warn(&args.trace, &recording);
    }
    let options = Options {
        native_wall_ns: args.native_wall.map(nanoseconds),
        cores: args.cores,
        pool: args.pool.clone(),
        event_logs: match &args.events_log {
            Some(pattern) => event_logs::of_recording(&recording, pattern, &events)?,
            None => Vec::new(),
        },
    };
    let analysis = Analysis::of(&recording);
    let mut view = args.chart.view();
    if let Some(phase) = &args.phase {
        let (from_ns, until_ns) = analysis.phase_time_ns(phase)?;
        view.from_ns = view.from_ns.or(Some(from_ns));
        view.until_ns = view.until_ns.or(Some(until_ns));
    }
    if let Some((path, format)) = &drawn {
        let drawn = || -> Result<_> {
            let chart = proctrace_analysis::gantt(&recording, &view, &options)?;
            Ok(format.gantt(&chart)?)
        };
        whole::write(path, &during("drawing the chart", drawn)?)?;
        say::note(&format!("Gantt chart written to {}", path.display()));
    }
    let mut everything = None;
    if let Some(path) = &args.html {
        refuse_traces(path)?;
        let begin = || whole::private(path);
        during("making the page", || -> Result<()> {
            let all = everything.insert(Everything::of(&analysis, &options));
            html::write(path, begin, &args.trace, all, &options)
        })?;
        say::note(&format!("page written to {}", path.display()));
    }
    if let Some(path) = &args.out {
        during("making the report", || -> Result<()> {
            let chart = proctrace_analysis::gantt(&recording, &view, &options)?;
            let place = ReportDirectories::create(path, args.csv.dialect())?;
            let all = match everything {
                Some(all) => all,
                None => Everything::of(&analysis, &options),
            };
            directory::write(&place, &all, chart)?;
            let page = path.join(directory::PAGE);
            refuse_traces(&page)?;
            html::write(&page, || place.begin_page(), &args.trace, &all, &options)
        })?;
        say::note(&format!("report written to {}; start with index.md", path.display()));
        return Ok(ExitCode::SUCCESS);
    }
    if args.only_writes() {
        return Ok(ExitCode::SUCCESS);
    }
    let style = print::style(args.rows());
    let format = (args.format(), &args.csv);
    if let Some(phase) = &args.phase {
        let tables = during(ANALYSING, || analysis.phase(phase, &options))?.tables;
        return print::table_answer(&tables, format, style);
    }
    if !sections.is_empty() {
        let mut tables = Vec::new();
        for section in sections {
            tables.extend(during(ANALYSING, || analysis.section(section, &options)).tables);
        }
        return print::table_answer(&tables, format, style);
    }
    let findings = during(ANALYSING, || analysis.findings());
    if args.shows_tables() && !args.json {
        let tables = during(ANALYSING, || analysis.report_tables(&options));
        return print::raw(full(&findings, &tables, style).as_bytes());
    }
    // The table of programs has the place that is left.
    let style = Style { rows: usize::MAX, ..style };
    let name = args.trace.to_string_lossy();
    print::answer(args.json, &findings, || screen(&findings, &name, style))
}

/// All sections of a report and its findings, each computed once, for a page as well as for a directory.
struct Everything<'a> {
    analysis: &'a Analysis<'a>,
    findings: Findings,
    sections: Vec<(&'static Section, Content)>,
}

impl<'a> Everything<'a> {
    fn of(analysis: &'a Analysis<'a>, options: &Options) -> Self {
        let findings = analysis.findings();
        Self { analysis, findings, sections: analysis.sections(options) }
    }

    /// The tables that a report has when no section is requested.
    fn shown(&self) -> impl Iterator<Item = &Table> {
        self.sections.iter().flat_map(|(section, content)| {
            content.tables.iter().filter(|table| section.shows(table))
        })
    }
}

/// The pattern of log lines with event counts: the user's, or that of AthenaMP.
pub(crate) fn event_pattern(regex: Option<&str>) -> Result<EventPattern> {
    EventPattern::new(regex.unwrap_or(ATHENA_EVENTS))
        .map_err(|error| Misuse(error.to_string()).into())
}

fn named(name: &str) -> Result<&'static Section> {
    match Section::named(name) {
        Some(section) => Ok(section),
        None => {
            let names: Vec<&str> = Section::ALL.iter().map(|section| section.name).collect();
            let meant = Section::meant(name).map(|meant| format!("; did you mean {meant:?}?"));
            let meant = meant.unwrap_or_default();
            let names = names.join(", ");
            bail!(Misuse(format!("unknown section {name:?}{meant}\nchoose from {names}")))
        }
    }
}

fn list_sections() -> Result<ExitCode> {
    let mut out = stdout().lock();
    for section in Section::ALL {
        writeln!(out, "{:15}{}", section.name, section.help)?;
    }
    Ok(ExitCode::SUCCESS)
}
