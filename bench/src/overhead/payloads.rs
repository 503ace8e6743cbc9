//! The payloads run under the tracers, and their expected event counts.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use xtask::run::{fixture, output};

use super::counts::Counts;
use super::package;
use super::truth;

/// A payload.
pub(super) struct Payload {
    pub(super) name: &'static str,
    pub(super) command: Vec<OsString>,
    /// Events below the stopwatch, including the process that it starts.
    pub(super) declared: Counts,
    /// A directory to be copied afresh before each run.
    fresh: Option<Fresh>,
}

struct Fresh {
    from: PathBuf,
    to: PathBuf,
}

/// The available payloads in report order, with their help texts: at scale 1.
pub(super) const NAMES: &[(&str, &str)] = &[
    ("spawn", "2,000 runs of /bin/true, one after the other"),
    ("spawn in parallel", "3,000 runs of /bin/true, one at a time per CPU"),
    ("fork", "6,000 forks without exec"),
    ("threads", "20,000 threads, four at a time"),
    ("open storm", "only 300,000 failed opens in existing directories"),
    ("ld.so", "300 runs of /bin/ls with 60 empty directories in LD_LIBRARY_PATH"),
    ("configure, make", "configure and build GNU hello"),
    ("cheap calls", "300,000 calls each of getppid and pread of 64 bytes; no events"),
    ("CPU", "0.7 s of computing; no events"),
];

const SEARCH_DIRECTORIES: u32 = 60;
const LS_RUNS: u64 = 300;

/// Prepares the payload of this name.
pub(super) fn prepare(
    name: &'static str,
    scale: u64,
    release: &Path,
    scratch: &Path,
) -> Result<Payload> {
    let fixture = |program: &str, arguments: &[&str]| -> Result<Vec<OsString>> {
        let path = [fixture(release, program)?.into()];
        Ok(path.into_iter().chain(arguments.iter().map(OsString::from)).collect())
    };
    let times = |n: u64| (n * scale, (n * scale).to_string());
    let (command, declared) = match name {
        "spawn" => {
            let (n, count) = times(2000);
            (fixture("spawn", &[&count, "/bin/true"])?, Counts::all(n + 1, n + 1, n + 1, 0))
        }
        "spawn in parallel" => {
            let cpus = std::thread::available_parallelism()?.to_string();
            let (n, count) = times(3000);
            (fixture("spawn", &[&count, "/bin/true", &cpus])?, Counts::all(n + 1, n + 1, n + 1, 0))
        }
        "fork" => {
            let (n, count) = times(6000);
            (fixture("fork_only", &[&count])?, Counts::all(n + 1, 1, n + 1, 0))
        }
        "threads" => {
            let (n, count) = times(20_000);
            (fixture("threads", &[&count])?, Counts::all(n + 1, 1, n + 1, 0))
        }
        "open storm" => {
            let (n, count) = times(300_000);
            let directory = scratch.join("storm");
            let directory = directory.to_str().context("a path is not UTF-8")?;
            (fixture("open_storm", &[&count, directory])?, Counts::all(1, 1, 1, n))
        }
        "ld.so" => {
            let search = search_path(scratch)?;
            let runs = LS_RUNS * scale;
            let times = |n: u64| -> Result<Vec<OsString>> {
                let mut command = vec!["env".into(), search.clone()];
                command.extend(fixture("spawn", &[&n.to_string(), "/bin/ls"])?);
                Ok(command)
            };
            // env and spawn are executed by the process that the stopwatch creates
            let declared = Counts {
                failed_opens: truth::failed_opens_of_repetition(&times, runs)?,
                ..Counts::all(runs + 1, runs + 2, runs + 1, 0)
            };
            (times(runs)?, declared)
        }
        "configure, make" => {
            let from = package::hello(scratch)?;
            let to = scratch.join("hello-run");
            let script = "exec >/dev/null 2>&1; cd \"$0\" && ./configure -q && make -s";
            let command: Vec<OsString> =
                vec!["sh".into(), "-c".into(), script.into(), to.clone().into()];
            let fresh = Fresh { from, to };
            fresh.copy()?;
            let declared = truth::count(&command)?;
            return Ok(Payload { name, command, declared, fresh: Some(fresh) });
        }
        "cheap calls" => (fixture("cheap_calls", &[&times(300_000).1])?, Counts::all(1, 1, 1, 0)),
        _ => (fixture("burn", &[&times(700).1])?, Counts::all(1, 1, 1, 0)),
    };
    Ok(Payload { name, command, declared, fresh: None })
}

/// `LD_LIBRARY_PATH=…` of existing, empty directories.
fn search_path(scratch: &Path) -> Result<OsString> {
    let mut path = OsString::from("LD_LIBRARY_PATH=");
    for number in 0..SEARCH_DIRECTORIES {
        let directory = scratch.join(format!("search/dependency-{number:02}/lib"));
        fs::create_dir_all(&directory).context("cannot create a search directory")?;
        if number > 0 {
            path.push(":");
        }
        path.push(directory);
    }
    Ok(path)
}

impl Payload {
    /// Restores the state before the first run.
    pub(super) fn reset(&self) -> Result<()> {
        self.fresh.as_ref().map_or(Ok(()), Fresh::copy)
    }
}

impl Fresh {
    fn copy(&self) -> Result<()> {
        if self.to.exists() {
            fs::remove_dir_all(&self.to).context("cannot remove the copy of a package")?;
        }
        // Preserves the times, from which make determines what to build.
        output(Command::new("cp").arg("-a").arg(&self.from).arg(&self.to)).map(drop)
    }
}
