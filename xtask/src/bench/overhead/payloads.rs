//! What is run under the tracers, and how many events it must be seen to have.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::counts::Counts;
use super::package;
use super::truth;
use crate::run::output;

/// Something to be run.
pub(super) struct Payload {
    pub(super) name: &'static str,
    pub(super) command: Vec<OsString>,
    /// What happens below the stop watch, the process that it starts included.
    pub(super) declared: Counts,
    /// A directory to be copied afresh before each run.
    fresh: Option<Fresh>,
}

struct Fresh {
    from: PathBuf,
    to: PathBuf,
}

/// What to choose from, in the order of the report, and what is said of it in the help.
pub(super) const NAMES: &[(&str, &str)] = &[
    ("spawn", "2,000 times /bin/true, one after the other"),
    ("spawn in parallel", "3,000 times /bin/true, one at a time for each CPU"),
    ("fork", "6,000 forks without exec"),
    ("threads", "20,000 threads, four at a time"),
    ("open storm", "300,000 failed opens and nothing else"),
    ("ld.so", "300 times /bin/ls with 60 empty directories in LD_LIBRARY_PATH"),
    ("configure, make", "GNU hello, configured and built"),
    ("cheap calls", "300,000 times getppid and pread of 64 bytes, no events at all"),
    ("CPU", "0.7 s of computing, no events at all"),
];

const SEARCH_DIRECTORIES: u32 = 60;
const LS_RUNS: u64 = 300;

/// Makes the payload of this name ready to be run.
pub(super) fn prepare(name: &'static str, release: &Path, scratch: &Path) -> Result<Payload> {
    let fixture = |program: &str, arguments: &[&str]| -> Result<Vec<OsString>> {
        let path = output(Command::new(release.join("fixture-path")).arg(program))?;
        let path = String::from_utf8(path).context("a path is not UTF-8")?.trim_end().to_owned();
        ensure!(Path::new(&path).is_file(), "there is no fixture {program}");
        Ok([path.as_str()].iter().chain(arguments).map(OsString::from).collect())
    };
    let (command, declared) = match name {
        "spawn" => (fixture("spawn", &["2000", "/bin/true"])?, Counts::all(2001, 2001, 2001, 0)),
        "spawn in parallel" => {
            let cpus = std::thread::available_parallelism()?.to_string();
            (fixture("spawn", &["3000", "/bin/true", &cpus])?, Counts::all(3001, 3001, 3001, 0))
        }
        "fork" => (fixture("fork_only", &["6000"])?, Counts::all(6001, 1, 6001, 0)),
        "threads" => (fixture("threads", &["20000"])?, Counts::all(20_001, 1, 20_001, 0)),
        "open storm" => (fixture("open_storm", &["300000"])?, Counts::all(1, 1, 1, 300_000)),
        "ld.so" => {
            let search = search_path(scratch)?;
            let times = |n: u64| -> Result<Vec<OsString>> {
                let mut command = vec!["env".into(), search.clone()];
                command.extend(fixture("spawn", &[&n.to_string(), "/bin/ls"])?);
                Ok(command)
            };
            // env and spawn are executed by the process that the stop watch makes
            let declared = Counts {
                failed_opens: truth::failed_opens_of_repetition(&times, LS_RUNS)?,
                ..Counts::all(LS_RUNS + 1, LS_RUNS + 2, LS_RUNS + 1, 0)
            };
            (times(LS_RUNS)?, declared)
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
        "cheap calls" => (fixture("cheap_calls", &["300000"])?, Counts::all(1, 1, 1, 0)),
        _ => (fixture("burn", &["700"])?, Counts::all(1, 1, 1, 0)),
    };
    Ok(Payload { name, command, declared, fresh: None })
}

/// `LD_LIBRARY_PATH=…` of directories that are there and empty.
fn search_path(scratch: &Path) -> Result<OsString> {
    let mut path = OsString::from("LD_LIBRARY_PATH=");
    for number in 0..SEARCH_DIRECTORIES {
        let directory = scratch.join(format!("search/dependency-{number:02}/lib"));
        fs::create_dir_all(&directory).context("cannot make a directory to search")?;
        if number > 0 {
            path.push(":");
        }
        path.push(directory);
    }
    Ok(path)
}

impl Payload {
    /// Puts everything as it was before the first run.
    pub(super) fn reset(&self) -> Result<()> {
        self.fresh.as_ref().map_or(Ok(()), Fresh::copy)
    }
}

impl Fresh {
    fn copy(&self) -> Result<()> {
        if self.to.exists() {
            fs::remove_dir_all(&self.to).context("cannot remove the copy of a package")?;
        }
        // With its times, by which make decides what to build.
        output(Command::new("cp").arg("-a").arg(&self.from).arg(&self.to)).map(drop)
    }
}
