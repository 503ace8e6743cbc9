//! Measures the cost of reading a recording: time and memory of `check`, `report` and `dump`, and
//! how they grow with the number of records.
//!
//! A mixture of programs is recorded once and written out as many times as needed (see
//! [`replicate`]). Each program then reads the result in a separate process, from the page cache.
//! Its wait4(2) usage includes the CPU time of the `sh` and `timeout` around it, 4 ms.

mod bandwidth;
mod fields;
mod pids;
mod replicate;
mod table;

use std::ffi::OsString;
use std::fs::File;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use proctrace_trace::Reader;
use proctrace_wire::{Frames, Record};
use xtask::run::{as_root, built, fixture, run as execute, target_dir};
use xtask::setup;

use self::replicate::Template;
use self::table::{Measured, Measurement, RunEnd, Size};

/// Sizes, programs and rounds.
#[derive(Args)]
pub(crate) struct AnalyzeArgs {
    /// Sizes of the traces, in millions of records.
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_values_t = [0.1, 1.0, 10.0])]
    sizes: Vec<f64>,
    /// Rounds per size, of which the median is printed.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Write all values of every round to FILE, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure this binary instead of building one.
    #[arg(long, value_name = "FILE")]
    proctrace: Option<PathBuf>,
    /// Also measure `report` of this binary in the same rounds, as "report, before".
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Measure only these programs.
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_values = PROGRAMS)]
    programs: Vec<String>,
    /// Limit at which pids wrap around, as kernel.pid_max; systemd sets 4194304.
    #[arg(long, default_value_t = 4_194_304)]
    pid_max: i32,
    /// Time limit of each program, in seconds.
    #[arg(long, default_value_t = 600)]
    limit: u64,
    /// Keep the traces in target/bench.
    #[arg(long)]
    keep: bool,
    /// Only decode every record of this trace, as the baseline of the other measurements.
    #[arg(long, hide = true, value_name = "FILE")]
    decode: Option<PathBuf>,
}

/// The payload's mix of record kinds is that of a busy job, except for failed look-ups, of which
/// builds have more. The sampling rate is five times the default, because a payload of one second
/// would otherwise have hardly any samples.
const INTERVAL: &str = "20ms";

/// Time limit for recording the payload, in seconds.
const RECORD_LIMIT: &str = "60";

/// The measured programs, by their names in the table.
const PROGRAMS: [&str; 6] = ["decode", "check", "report", "query", "report --gantt", "dump"];
/// The SQL for `query`: a group-by that a report performs as well.
const SQL: &str = "SELECT program, count(*) AS n, sum(user_ns + system_ns) / 1e9 AS cpu_s \
                   FROM processes GROUP BY program ORDER BY n DESC";
/// The report of the binary to compare with.
const BEFORE: &str = "report, before";

pub(crate) fn run(args: &AnalyzeArgs) -> Result<()> {
    if let Some(trace) = &args.decode {
        return decode(trace);
    }
    ensure!(args.rounds > 0, "--rounds must be at least 1");
    ensure!(args.sizes.iter().all(|millions| *millions > 0.0), "--sizes must be greater than 0");
    setup::run(setup::BUILD)?;
    let release = built(match &args.proctrace {
        Some(_) => &["proctrace-fixtures"],
        None => &["proctrace-fixtures", "proctrace"],
    })?;
    let scratch = target_dir()?.join("bench");
    std::fs::create_dir_all(&scratch).context("cannot create a directory")?;
    let bench = Bench {
        proctrace: args.proctrace.clone().unwrap_or_else(|| release.join("proctrace")),
        rusage: fixture(&release, "rusage")?,
        against: args.against.clone(),
        programs: programs(args)?,
        svg: scratch.join("analyze.svg"),
        limit_s: args.limit,
    };

    let template = bench.template(&release, &scratch.join("analyze.ptrace"), args.pid_max)?;
    println!(
        "\n{} records of {:.2} s, repeated; {} rounds, medians\n",
        template.records(),
        template.period_ns() as f64 / 1e9,
        args.rounds
    );
    let mut sizes = Vec::new();
    for millions in &args.sizes {
        let trace = scratch.join(format!("analyze-{millions}M.ptrace"));
        let size = bench.size(&template, *millions, args.rounds, &trace);
        // After a failure it is kept for inspection.
        if size.is_ok() && !args.keep {
            // A file that cannot be removed is overwritten next time.
            let _ = std::fs::remove_file(&trace);
            let _ = std::fs::remove_file(&bench.svg);
        }
        sizes.push(size?);
    }
    print!("{}", table::growth(&sizes));
    if let Some(path) = &args.json {
        let json = serde_json::to_vec_pretty(&table::json(&sizes))?;
        std::fs::write(path, json).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The selected programs, in the order of the table.
fn programs(args: &AnalyzeArgs) -> Result<Vec<&'static str>> {
    if let Some(unknown) = args.programs.iter().find(|name| !PROGRAMS.contains(&name.as_str())) {
        bail!("unknown program {unknown:?}; choose from {}", PROGRAMS.join(", "));
    }
    let mut programs: Vec<&str> = PROGRAMS
        .into_iter()
        .filter(|name| args.programs.iter().any(|wanted| wanted == name))
        .collect();
    programs.extend(args.against.is_some().then_some(BEFORE));
    Ok(programs)
}

struct Bench {
    proctrace: PathBuf,
    against: Option<PathBuf>,
    programs: Vec<&'static str>,
    rusage: PathBuf,
    svg: PathBuf,
    limit_s: u64,
}

impl Bench {
    /// Records the payload, unless this very binary has done so already.
    fn template(&self, release: &Path, path: &Path, pid_max: i32) -> Result<Template> {
        let changed = |path: &Path| std::fs::metadata(path).and_then(|about| about.modified());
        let recorder = changed(&self.proctrace)
            .with_context(|| format!("cannot find {}", self.proctrace.display()))?;
        if !changed(path).is_ok_and(|recorded| recorded > recorder) {
            self.record(release, path)?;
        }
        Template::load(path, pid_max)
            .with_context(|| format!("{} cannot be repeated", path.display()))
    }

    /// Two mixtures in parallel, one per core of a small machine, a program that only computes, and
    /// daemons that outlive their parents.
    fn record(&self, release: &Path, path: &Path) -> Result<()> {
        let script = format!(
            "(for i in 1 2 3; do {daemon} 5 1; done) & {burn} 300 100 & {mixed} 500 & {mixed} 500; wait",
            daemon = fixture(release, "daemon")?.display(),
            burn = fixture(release, "burn")?.display(),
            mixed = fixture(release, "mixed")?.display(),
        );
        let mut command = as_root("timeout");
        command.args(["--kill-after=5", RECORD_LIMIT]).arg(&self.proctrace);
        command.args(["record", "--quiet", "--interval", INTERVAL, "--output"]).arg(path);
        command.args(["--", "sh", "-c", &script]).env_remove("LD_LIBRARY_PATH");
        execute(command.stdin(Stdio::null()).stdout(Stdio::null()))?;
        // The trace belongs to root, and we may be another user.
        if !xtask::run::is_root() {
            execute(as_root("chmod").arg("a+r").arg(path))?;
        }
        Ok(())
    }

    /// Creates a trace of about this many records and measures every program on it.
    fn size(&self, template: &Template, millions: f64, rounds: usize, path: &Path) -> Result<Size> {
        // Sizes are far below the range where a float would be inexact.
        let copies = template.copies_for((millions * 1e6) as u64);
        let out =
            File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
        let (replica, _) = template.write(copies, out)?;
        let decoder =
            std::env::current_exe().context("cannot determine the path of this program")?;
        let mut measured: Vec<_> =
            self.programs.iter().map(|name| Measured { name, runs: Vec::new() }).collect();
        // The programs are interleaved in each round, so that disturbances affect all of them.
        for _ in 0..rounds {
            for measured in &mut measured {
                let command = self.command(measured.name, &decoder, path);
                let mut run = self.measure(&command)?;
                if measured.name == "report --gantt" {
                    run.output_bytes = std::fs::metadata(&self.svg).map(|svg| svg.len()).ok();
                }
                measured.runs.push(run);
            }
        }
        let size = Size { replica, measured };
        print!("{}", table::rows(&size));
        if let Some(decode) = size.measured.iter().find(|measured| measured.name == "decode") {
            print!("{}", bandwidth::beside(path, &size.replica, decode)?);
        }
        Ok(size)
    }

    /// The command line of the program of this name.
    fn command(&self, name: &str, decoder: &Path, trace: &Path) -> Vec<OsString> {
        let mut command: Vec<OsString> = match name {
            "decode" => {
                vec![decoder.into(), "analyze".into(), "--decode".into()]
            }
            "report --gantt" => {
                let svg = self.svg.clone().into();
                vec![self.proctrace.clone().into(), "report".into(), "--gantt".into(), svg]
            }
            "query" => vec![self.proctrace.clone().into(), "query".into(), SQL.into()],
            BEFORE => {
                let before = self.against.as_ref().unwrap_or(&self.proctrace);
                vec![before.clone().into(), "report".into()]
            }
            name => vec![self.proctrace.clone().into(), name.into()],
        };
        command.push(trace.into());
        command
    }

    /// Runs a program to completion and discards its output.
    fn measure(&self, command: &[OsString]) -> Result<Measurement> {
        // `rusage` does not pass the exit status on, so it is printed before the usage.
        let script = r#"timeout --kill-after=5 "$@" > /dev/null; echo $?"#;
        let mut wrapped = Command::new(&self.rusage);
        wrapped.args(["/bin/sh", "-c", script, "sh"]).arg(self.limit_s.to_string()).args(command);
        let began = Instant::now();
        let done = wrapped.stdin(Stdio::null()).output().context("cannot run rusage")?;
        let wall_s = began.elapsed().as_secs_f64();
        let printed = String::from_utf8(done.stdout)?;
        let figures: Vec<u64> =
            printed.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let &[status, user_us, system_us, rss_kib, _, _, _, faults_major] = figures.as_slice()
        else {
            bail!("rusage printed {printed:?}")
        };
        let end = match status {
            0 => RunEnd::Done,
            // timeout's exit codes
            124 | 137 => RunEnd::OutOfTime,
            _ => bail!("{command:?} failed ({status}): {}", String::from_utf8_lossy(&done.stderr)),
        };
        Ok(Measurement {
            end,
            wall_s,
            user_s: user_us as f64 / 1e6,
            system_s: system_us as f64 / 1e6,
            rss_bytes: rss_kib * 1024,
            faults_major,
            output_bytes: None,
        })
    }
}

/// Decompresses every block once and decodes every record: the lower bound for any program that
/// reads everything on one core.
fn decode(path: &Path) -> Result<()> {
    let mut reader = Reader::open(path)?;
    let (mut records, mut wrong) = (0u64, None);
    reader.each_block(
        0,
        |_| true,
        |_, bytes| {
            for frame in Frames::new(bytes) {
                match frame.and_then(Record::decode) {
                    Ok(record) => _ = black_box(record),
                    Err(error) => wrong = Some(error),
                }
                records += 1;
            }
        },
    );
    if let Some(error) = wrong {
        return Err(error.into());
    }
    println!("{records} records");
    Ok(())
}
