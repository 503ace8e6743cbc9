//! What recording costs: each payload with and without, in turn, on this machine.
//!
//! Machines are noisy, so nothing here is an absolute time: a round runs the payload bare and then
//! under each tracer, and what is printed is the median of the rounds' ratios with their range.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use nix::sys::resource::{UsageWho, getrusage};

use crate::run::{as_root, cargo, exists, output, run as execute, target_dir};
use crate::setup;

/// How to measure.
#[derive(Args)]
pub(crate) struct BenchArgs {
    /// Rounds per payload.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Only payloads whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Leave out strace, which takes longer than all else.
    #[arg(long)]
    no_strace: bool,
}

struct Payload {
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
}

const PAYLOADS: &[Payload] = &[
    Payload { name: "spawn /bin/true", program: "spawn", arguments: &["2000", "/bin/true"] },
    Payload {
        name: "spawn, two at a time",
        program: "spawn",
        arguments: &["3000", "/bin/true", "2"],
    },
    Payload { name: "fork without exec", program: "fork_only", arguments: &["6000"] },
    Payload { name: "threads", program: "threads", arguments: &["20000"] },
    Payload { name: "failed opens", program: "open_storm", arguments: &["300000"] },
    Payload { name: "a mixture", program: "mixed", arguments: &["1000"] },
    Payload { name: "pure CPU", program: "burn", arguments: &["700"] },
];

/// What proctrace records.
const STRACE_CALLS: &str = "trace=%process,open,openat,openat2,creat,stat,lstat,newfstatat,statx,\
    access,faccessat,faccessat2,readlink,readlinkat,chdir";

#[derive(Clone, Copy)]
enum Tracer {
    None,
    Proctrace,
    Strace,
}

/// One run.
struct Cost {
    /// From the payload's start to its end.
    wall: Duration,
    /// User and system time of payload and tracer.
    cpu: Duration,
    lost: u64,
}

pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    setup::run(setup::EVERYTHING)?;
    ensure!(args.rounds > 0, "there must be a round");
    execute(cargo().args([
        "build",
        "--release",
        "--package",
        "proctrace",
        "--package",
        "proctrace-fixtures",
    ]))?;
    let release = target_dir()?.join("release");
    let scratch = target_dir()?.join("bench");
    std::fs::create_dir_all(&scratch).context("cannot make a directory")?;

    let mut tracers = vec![("proctrace", Tracer::Proctrace)];
    if !args.no_strace {
        if exists("strace") {
            tracers.push(("strace -f --seccomp-bpf", Tracer::Strace));
        } else {
            println!("strace is not here and so not compared");
        }
    }
    println!("\n{} rounds; ratios to the bare run: median [least, most]\n", args.rounds);
    println!("{:<22}{:<25}{:>22}{:>22}{:>6}", "payload", "tracer", "wall", "CPU, all", "lost");
    let wanted = |payload: &&Payload| {
        args.only.as_ref().is_none_or(|only| payload.name.contains(only.as_str()))
    };
    for payload in PAYLOADS.iter().filter(wanted) {
        let program = output(Command::new(release.join("fixture-path")).arg(payload.program))?;
        let program = PathBuf::from(String::from_utf8(program)?.trim_end());
        let mut ratios = vec![(Vec::new(), Vec::new(), 0); tracers.len()];
        for round in 0..=args.rounds {
            let bare = measure(Tracer::None, &release, &scratch, &program, payload.arguments)?;
            for ((_, tracer), (wall, cpu, lost)) in tracers.iter().zip(&mut ratios) {
                let traced = measure(*tracer, &release, &scratch, &program, payload.arguments)?;
                // The first round warms caches.
                if round > 0 {
                    wall.push(traced.wall.as_secs_f64() / bare.wall.as_secs_f64());
                    cpu.push(traced.cpu.as_secs_f64() / bare.cpu.as_secs_f64());
                    *lost += traced.lost;
                }
            }
        }
        for ((name, _), (wall, cpu, lost)) in tracers.iter().zip(&mut ratios) {
            println!(
                "{:<22}{name:<25}{:>22}{:>22}{lost:>6}",
                payload.name,
                spread(wall),
                spread(cpu)
            );
        }
    }
    Ok(())
}

fn spread(ratios: &mut [f64]) -> String {
    ratios.sort_by(f64::total_cmp);
    let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
    format!("{:.2} [{least:.2}, {most:.2}]", ratios[ratios.len() / 2])
}

fn measure(
    tracer: Tracer,
    release: &Path,
    scratch: &Path,
    program: &Path,
    arguments: &[&str],
) -> Result<Cost> {
    let (trace, log) = (scratch.join("bench.ptrace"), scratch.join("bench.strace"));
    let mut command = match tracer {
        Tracer::None => Command::new(program),
        Tracer::Proctrace => {
            let mut command = as_root(release.join("proctrace"));
            command.args(["record", "--quiet", "--output"]).arg(&trace).arg("--").arg(program);
            command
        }
        Tracer::Strace => {
            let mut command = Command::new("strace");
            // what proctrace sees, in the cheapest way strace has for it
            command
                .args(["-f", "--seccomp-bpf", "-e", STRACE_CALLS])
                .arg("-o")
                .arg(&log)
                .arg(program);
            command
        }
    };
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    let cpu_before = children_cpu()?;
    let began = Instant::now();
    let status = command.status().context("cannot run the payload")?;
    let mut wall = began.elapsed();
    let cpu = children_cpu()? - cpu_before;
    if !status.success() {
        bail!("{} failed ({status})", program.display());
    }
    let mut lost = 0;
    if let Tracer::Proctrace = tracer {
        // Without loading and detaching, as the payload saw it.
        let header =
            output(Command::new(release.join("proctrace")).args(["dump", "--header"]).arg(&trace))?;
        let header: serde_json::Value = serde_json::from_slice(&header)?;
        let number = |value: &serde_json::Value| value.as_u64().context("no such figure");
        let began = number(&header["header"]["started_ns"])?;
        let ended = number(&header["trailer"]["payload"]["exited_ns"])?;
        wall = Duration::from_nanos(ended.saturating_sub(began));
        for loss in header["trailer"]["losses"].as_array().context("no such figure")? {
            lost += number(&loss["count"])?;
        }
    }
    Ok(Cost { wall, cpu, lost })
}

fn children_cpu() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let duration = |time: nix::sys::time::TimeVal| {
        Duration::from_micros(
            u64::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000
                + u64::try_from(time.tv_usec()).unwrap_or(0),
        )
    };
    Ok(duration(usage.user_time()) + duration(usage.system_time()))
}
