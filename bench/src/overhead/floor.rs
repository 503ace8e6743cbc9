//! The minimum cost of recording: the same hooks with empty programs.

use std::fs;

use anyhow::{Context, Result, ensure};
use clap::Args;
use xtask::run::{as_root, output};

use super::counts::Seen;
use super::measure::{self, Plan};
use super::results::PayloadResults;
use super::site::Site;
use super::tracers::{How, NONE, PROCTRACE, TRACERS, Tracer};
use super::{own, payloads, table, trial};

/// Payloads and rounds.
#[derive(Args)]
pub(crate) struct FloorArgs {
    /// Number of rounds, after one warm-up round.
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// Factor for the size of each payload.
    #[arg(long, default_value_t = 1)]
    scale: u64,
    /// Only payloads whose name contains this. Can be given several times.
    #[arg(long, value_name = "SUBSTRING")]
    only: Vec<String>,
}

const EMPTY: &str = "empty";

const fn variant(
    name: &'static str,
    command: fn(&Site) -> Result<std::process::Command>,
) -> Tracer {
    let count = |_: &Site| Ok(Seen::default());
    Tracer { name, programs: &[], version: "", how: How::Starts(command), count }
}

/// Ways to record; their events are not compared.
static VARIANTS: &[Tracer] = &[
    variant(EMPTY, |site| Ok(own::command(site, &["--empty-programs"]))),
    variant("opens only", |site| Ok(own::command(site, &["--misses", "open,exec"]))),
    variant("no look-ups", |site| Ok(own::command(site, &["--misses", "none"]))),
    variant("untimed", |site| Ok(own::command(site, &["--no-lookup-times"]))),
    variant("no waits", |site| Ok(own::command(site, &["--waits", "none"]))),
    variant("opens too", |site| Ok(own::command(site, &["--opens"]))),
    variant("sys_exit", |site| Ok(own::command(site, &["--lookup-hook", "sys-exit"]))),
    variant("sys_exit empty", |site| {
        Ok(own::command(site, &["--lookup-hook", "sys-exit", "--empty-programs"]))
    }),
];

pub(crate) fn run(args: &FloorArgs) -> Result<()> {
    let own = TRACERS.iter().filter(|tracer| [NONE, PROCTRACE].contains(&tracer.name));
    let plan = Plan {
        rounds: args.rounds,
        slow_rounds: args.rounds,
        scale: args.scale,
        only: &args.only,
        tracers: own.chain(VARIANTS).collect(),
        json: None,
    };
    let mut site = measure::site()?;
    let results = measure::all(&plan, &mut site)?;
    println!("\n{}", table::render(&results));
    println!("Wall time of the payload with proctrace, minus that with empty programs");
    for payload in &results.payloads {
        if let Some(distance) = distance(payload) {
            println!("  {:<20}{:+.3}", payload.name, distance);
        }
    }
    println!(
        "\nRun time of each program, measured by the kernel (with 20 to 40 ns of overhead per run)"
    );
    let _counting = Counting::start()?;
    for (name, _) in payloads::NAMES.iter().filter(|(name, _)| measure::chosen(&args.only, name)) {
        programs(name, args.scale, &mut site)?;
    }
    Ok(())
}

/// The additional relative time of a payload with our programs compared with empty ones.
fn distance(payload: &PayloadResults) -> Option<f64> {
    let wall = |name: &str| {
        let row = payload.rows.iter().find(|row| row.tracer == name)?;
        Some(row.summary.as_ref()?.payload_wall.median)
    };
    Some(wall(PROCTRACE)? - wall(EMPTY)?)
}

/// Runs a payload once more and prints the cost of each program.
fn programs(name: &'static str, scale: u64, site: &mut Site) -> Result<()> {
    let Ok(payload) = payloads::prepare(name, scale, &site.release, &site.scratch) else {
        return Ok(());
    };
    let tracer = TRACERS.iter().find(|tracer| tracer.name == PROCTRACE);
    let tracer = tracer.context("proctrace is not among the tracers")?;
    let limit = std::time::Duration::from_secs(600);
    let run = trial::run(tracer, &payload.command, site, limit)?;
    let header = own::ask(site, &["dump", "--header"])?;
    let programs =
        header["trailer"]["programs"].as_array().context("the trailer lists no programs")?;
    println!("  {name}");
    for program in programs {
        let number = |key: &str| program[key].as_u64().context("the trailer lacks a value");
        let (runs, run_ns) = (number("runs")?, number("run_ns")?);
        if runs > 0 {
            println!(
                "    {:<16}{runs:>10} runs{:>8.0} ns each{:>8.2} % of the payload's CPU",
                program["name"].as_str().unwrap_or("?"),
                run_ns as f64 / runs as f64,
                100.0 * run_ns as f64 / run.payload_cpu_ns as f64,
            );
        }
    }
    ensure!(programs.iter().any(|program| program["runs"] != 0), "the kernel counted no runs");
    Ok(())
}

/// While this exists, the kernel counts runs of BPF programs, on the whole machine.
struct Counting {
    before: String,
}

const SYSCTL: &str = "kernel.bpf_stats_enabled";

impl Counting {
    fn start() -> Result<Self> {
        let before = fs::read_to_string("/proc/sys/kernel/bpf_stats_enabled")?.trim().to_owned();
        output(as_root("sysctl").args(["-qw", &format!("{SYSCTL}=1")]))?;
        Ok(Self { before })
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        let before = format!("{SYSCTL}={}", self.before);
        if let Err(error) = output(as_root("sysctl").args(["-qw", &before])) {
            println!("cannot restore {before}: {error:#}");
        }
    }
}
