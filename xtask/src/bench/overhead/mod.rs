//! The overhead and completeness of recording, compared with other tracers.
//!
//! Machines are noisy, so no absolute times are compared: each traced run is paired with a bare one
//! right before or after it, and the result is the median of their ratios.

mod axis;
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

/// What to measure, and what to make of it.
#[derive(Args)]
#[command(after_help = help())]
pub(crate) struct OverheadArgs {
    /// Rounds that count, after one that does not.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Rounds with a tracer that makes the payload take more than three times as long.
    #[arg(long, default_value_t = 1)]
    slow_rounds: usize,
    /// So many times as much of each payload, but of the build: what a tracer costs once, to start
    /// and to stop, counts so much less.
    #[arg(long, default_value_t = 1)]
    scale: u64,
    /// Only payloads whose name contains this. Can be given several times.
    #[arg(long, value_name = "SUBSTRING")]
    only: Vec<String>,
    /// Only tracers whose name contains this. Can be given several times.
    #[arg(long, value_name = "SUBSTRING")]
    tracer: Vec<String>,
    /// First install the tracers that the package manager or cargo has.
    #[arg(long)]
    install_peers: bool,
    /// Save every pair of runs, what follows from them, and what the machine is.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw the wall times as an SVG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Measure nothing: show what was saved by --json.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

fn help() -> String {
    let payloads = payloads::NAMES.iter().map(|(name, says)| format!("  {name:<18}{says}\n"));
    let tracers: Vec<_> = TRACERS.iter().map(|tracer| tracer.name).collect();
    format!(
        "Payloads:\n{}\nTracers: {}. Those that are not there are named, and left out.\n\
        Of those that record the whole machine only the payload's events count, as far as they can be \
        told apart: measure on a quiet machine.\n\n\
        The exit status is not 0 if proctrace lost anything, or saw other numbers of events than \
        there were.",
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
    ensure!(faults.is_empty(), "proctrace is not complete: {}", faults.join("; "));
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
