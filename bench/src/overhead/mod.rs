//! The overhead and completeness of recording, compared with other tracers.
//!
//! Machines are noisy, so no absolute times are compared: each traced run is paired with a bare one
//! right before or after it, and the result is the median of their ratios.

mod counts;
mod floor;
mod measure;
mod own;
mod package;
mod payloads;
mod peers;
mod perf;
mod plot;
mod raw_ftrace;
mod results;
mod ring;
mod site;
mod snoop;
mod strace;
mod table;
mod tracers;
mod tracexec;
mod tree;
mod trial;
mod truth;
mod watch;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;

pub(crate) use floor::{FloorArgs, run as floor};
pub(crate) use raw_ftrace::{RawFtraceArgs, run as raw_ftrace};

use measure::Plan;
use results::Results;
use tracers::{PROCTRACE, TRACERS, Tracer};

/// Payloads, tracers and output.
#[derive(Args)]
#[command(after_help = help())]
pub(crate) struct OverheadArgs {
    /// Number of rounds, after one warm-up round.
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// Number of rounds for tracers that slow the payload down by more than a factor of three.
    #[arg(long, default_value_t = 1)]
    slow_rounds: u32,
    /// Factor for the size of each payload except the build; reduces the relative weight of a tracer's
    /// fixed cost for start and stop.
    #[arg(long, default_value_t = 1)]
    scale: u64,
    /// Only payloads whose name contains this. Can be given several times.
    #[arg(long, value_name = "SUBSTRING")]
    only: Vec<String>,
    /// Only tracers whose name contains this. Can be given several times.
    #[arg(long, value_name = "SUBSTRING")]
    tracer: Vec<String>,
    /// First install the tracers that are available from the package manager or cargo.
    #[arg(long)]
    install_peers: bool,
    /// Save all pairs of runs, their statistics, and a description of the machine.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw a chart of the wall times: as SVG, or as PNG if the name ends in .png.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print results saved by --json instead of measuring.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

fn help() -> String {
    let payloads = payloads::NAMES.iter().map(|(name, says)| format!("  {name:<18}{says}\n"));
    let tracers: Vec<_> = TRACERS.iter().map(|tracer| tracer.name).collect();
    format!(
        "Payloads:\n{}\nTracers: {}. Missing ones are listed and skipped.\n\
        For tracers that record the whole machine, only events attributed to the payload count; the \
        attribution is not exact, so measure on an idle machine.\n\n\
        The exit status is nonzero if proctrace lost records, or if its event counts differ from the \
        declared ones.",
        payloads.collect::<String>(),
        tracers.join(", ")
    )
}

pub(crate) fn run(args: &OverheadArgs) -> Result<()> {
    let results = match &args.from {
        Some(file) => results::load(file)?,
        None => {
            if args.install_peers {
                peers::install()?;
            }
            let chosen = |tracer: &&Tracer| measure::chosen(&args.tracer, tracer.name);
            let plan = Plan {
                rounds: args.rounds,
                slow_rounds: args.slow_rounds,
                scale: args.scale,
                only: &args.only,
                tracers: TRACERS.iter().filter(chosen).collect(),
                json: args.json.as_deref(),
            };
            measure::all(&plan, &mut measure::site()?)?
        }
    };
    println!("\n{}", table::render(&results));
    if let Some(file) = &args.plot {
        plot::draw(&results, file)?;
    }
    let faults = faults(&results);
    ensure!(faults.is_empty(), "proctrace failed, or its counts are wrong: {}", faults.join("; "));
    Ok(())
}

/// Lost or incorrect events of proctrace.
fn faults(results: &Results) -> Vec<String> {
    let mut faults = Vec::new();
    for payload in &results.payloads {
        for row in payload.rows.iter().filter(|row| row.tracer == PROCTRACE) {
            faults.extend(row.stopped.iter().map(|why| format!("{}: {why}", payload.name)));
            for seen in row.pairs.iter().map(|pair| pair.traced.seen) {
                let lost = seen.lost.filter(|lost| *lost > 0).map(|lost| format!("lost {lost}"));
                let differences = seen.counts.differences(payload.declared);
                let all = lost.into_iter().chain(differences);
                faults.extend(all.map(|what| format!("{}: {what}", payload.name)));
            }
        }
    }
    faults
}
