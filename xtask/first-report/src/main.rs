//! Prints what `proctrace report TRACE` does. It is compiled in half the time, without the data frames of tables and SQL, so
//! that who tries proctrace need not wait for these.

use std::io::Write;

use anyhow::{Context, Result};
use proctrace_classify::Rules;
use proctrace_recording::Recording;
use proctrace_report::{Style, screen};
use proctrace_sections::Analysis;

fn main() -> Result<()> {
    let trace = std::env::args().nth(1).context("the trace is missing")?;
    let recording = Recording::load(&trace, &Rules::built_in())?;
    let style = Style { rows: usize::MAX, ..Style::default() };
    let text = screen(&Analysis::of(&recording).findings(), &trace, style);
    std::io::stdout().write_all(text.as_bytes()).context("cannot print the report")
}
