//! `proctrace report`: what ran, what it cost and what was wasted.

use std::io::{IsTerminal, Write, stdout};
use std::process::ExitCode;

use anyhow::{Context, Result};
use proctrace_analysis::{Recording, Rules, analyse, gantt};
use proctrace_report::{Style, full, gantt_svg, summary};

use crate::args::ReportArgs;
use crate::say;

pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode> {
    let recording = Recording::load(&args.trace, &Rules::generic())?;
    let findings = analyse(&recording)?;
    if let Some(path) = &args.gantt {
        let svg = gantt_svg(&gantt(&recording))?;
        std::fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut out = stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &findings).map_err(std::io::Error::from)?;
        out.write_all(b"\n")?;
    } else {
        let style = Style {
            width: 80,
            rows: if args.all { usize::MAX } else { args.top },
            // no-color.org: any value that is not empty
            colour: out.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        };
        let text = if args.summary { summary(&findings, style) } else { full(&findings, style) };
        out.write_all(text.as_bytes())?;
    }
    out.flush()?;
    if let Some(path) = &args.gantt {
        say::note(&format!("the Gantt chart is in {}", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}
