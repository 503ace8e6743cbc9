//! `proctrace fleet`: questions about many jobs.

mod overview;

use std::io::{BufWriter, IsTerminal, Write, stdout};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use proctrace_findings::Rows;
use proctrace_fleet::{
    ENGINES_SCRIPT, FLEET_QUERIES, FleetError, FleetQuery, ask, handed_back, handed_over,
};
use proctrace_report::rows_text;

use crate::args::{Engine, FleetArgs, RowsFormat};
use crate::exit_code::Misuse;
use crate::print;
use crate::waiting::during;

/// Message while the summaries are read.
const ASKING: &str = "asking the summaries";

/// The name that stands for all questions.
const OVERVIEW: &str = "overview";

pub(crate) fn run(args: &FleetArgs) -> Result<ExitCode> {
    let Some(query) = &args.query else { return list() };
    if query == OVERVIEW {
        let directory = existing(args)?;
        let page = during(ASKING, || overview::page(directory, &args.layout))?;
        stdout().lock().write_all(page.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let sql = sql_of(query)?;
    if args.print {
        stdout().lock().write_all(sql.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let directory = existing(args)?;
    if args.format == RowsFormat::Parquet && stdout().is_terminal() {
        bail!(Misuse("Parquet cannot be printed to a terminal".to_owned()));
    }
    let mut out = BufWriter::new(stdout().lock());
    let rows = match args.engine {
        Engine::Polars => {
            let answer = during(ASKING, || ask(directory, &args.layout, sql)).map_err(misuse)?;
            if args.format == RowsFormat::Parquet {
                answer.parquet(&mut out)?;
                out.flush()?;
                return Ok(ExitCode::SUCCESS);
            }
            answer.rows(0, answer.height())?
        }
        // These tell themselves how far they are.
        Engine::Duckdb => elsewhere(args, directory, sql, "duckdb")?,
        Engine::Spark => elsewhere(args, directory, sql, "spark")?,
    };
    match args.format {
        RowsFormat::Text | RowsFormat::Parquet => {
            let text = rows_text(&rows, rows.height(), print::style(None));
            out.write_all(text.as_bytes())?;
        }
        format => print::rows((format, args.csv.dialect()), &rows, [Ok(&rows)], &mut out)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn existing(args: &FleetArgs) -> Result<&Path> {
    match &args.directory {
        Some(directory) if directory.is_dir() => Ok(directory),
        Some(directory) => bail!(Misuse(format!("{} is no directory", directory.display()))),
        None => bail!(Misuse("which fleet? proctrace fleet QUERY DIR".to_owned())),
    }
}

fn list() -> Result<ExitCode> {
    let mut out = stdout().lock();
    for query in FLEET_QUERIES {
        let head = format!("  {:14}", query.name);
        let mut lines = print::wrapped(&query.says(), head.len()).into_iter();
        writeln!(out, "{head}{}", lines.next().unwrap_or_default())?;
        for line in lines {
            writeln!(out, "{}{line}", " ".repeat(head.len()))?;
        }
    }
    writeln!(out, "  {OVERVIEW:14}All of them, as one HTML page.")?;
    Ok(ExitCode::SUCCESS)
}

/// The SQL of a question; what contains a blank is SQL itself.
fn sql_of(query: &str) -> Result<&str> {
    if query.contains(char::is_whitespace) {
        return Ok(query);
    }
    let names = || FLEET_QUERIES.iter().map(|query| query.name).collect::<Vec<_>>().join(", ");
    let known = FleetQuery::named(query).map(|query| query.sql);
    known.with_context(|| Misuse(format!("there is no question {query:?}; there are {}", names())))
}

/// Errors in the SQL are errors in the arguments.
fn misuse(error: FleetError) -> anyhow::Error {
    match error {
        FleetError::Query(error) => Misuse(error.to_string()).into(),
        error => error.into(),
    }
}

/// The rows that another engine answers.
fn elsewhere(args: &FleetArgs, directory: &Path, sql: &str, engine: &str) -> Result<Rows> {
    if args.format == RowsFormat::Parquet {
        bail!(Misuse("only the engine that is built in writes Parquet".to_owned()));
    }
    let asked = handed_over(directory, &args.layout, sql, engine)?;
    let python = || format!("cannot run {}", args.python.display());
    let mut child = Command::new(&args.python)
        .args(["-c", ENGINES_SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(python)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A script that fails at once does not read; its own message says why.
        let _ = stdin.write_all(asked.as_bytes());
    }
    let output = child.wait_with_output().with_context(python)?;
    if !output.status.success() {
        bail!(
            "{engine} did not answer: {}; --python names a Python that has the package",
            output.status
        );
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    handed_back(&printed).with_context(|| format!("{engine} printed something else than rows"))
}
