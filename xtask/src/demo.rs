//! The complete demonstration: records and reports a real build.

use std::collections::{BTreeSet, HashSet};
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use xtask::run::{as_root, built, cargo, metadata, output, root, run as execute, target_dir};
use xtask::setup;

/// Basis of the estimate of a first build's duration: the time of all cores, partly idle, in
/// minutes, on a virtual machine of 2026.
const FIRST_BUILD_CPU_MINUTES: usize = 16;

/// Time between two lines on the progress of a build where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(20);

/// Installs what is missing, builds, records a build of the zstd library and reports on it.
pub(crate) fn run() -> Result<()> {
    setup::run(setup::BUILD)?;
    let target = target_dir()?;
    let demo = target.join("demo");
    std::fs::create_dir_all(&demo).context("cannot create a directory for the demo")?;
    let proctrace = target.join("release/proctrace");
    let (trace, gantt) = (demo.join("build.ptrace"), demo.join("build.svg"));
    // A trace recorded with sudo belongs to the user, so the report needs no sudo.
    let report = || {
        let mut report = Command::new(&proctrace);
        report.arg("report").arg(&trace);
        report
    };
    if has_analysis(&target) {
        built(&["proctrace"])?;
        record(&proctrace, &demo, &trace)?;
        println!("\nThe report:\n");
        execute(&mut report())?;
    } else {
        build_first(&target.join("release"), &demo, &trace)?;
    }
    // With a file to write, nothing else is printed.
    execute(report().arg("--gantt").arg(&gantt))?;
    println!("\nRecording: {}", trace.display());
    println!("Gantt chart: {}", gantt.display());
    println!("To record a command: sudo {} record -- COMMAND", proctrace.display());
    Ok(())
}

/// True if polars, which takes half of a first build, has been compiled.
fn has_analysis(target: &Path) -> bool {
    std::fs::read_dir(target.join("release/deps")).is_ok_and(|mut files| {
        files.any(|file| {
            file.is_ok_and(|file| file.file_name().to_string_lossy().starts_with("libpolars_lazy-"))
        })
    })
}

/// The first build: the recorder alone, which takes a minute or two, then what makes the report, then the rest. The
/// recording is made, and the report read, meanwhile.
fn build_first(release: &Path, demo: &Path, trace: &Path) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    println!(
        "\nThis is the first build: some {} minutes on {cores} cores, half of them for the\n\
         data-frame library of tables and SQL. What records and reports is built first.",
        FIRST_BUILD_CPU_MINUTES.div_ceil(cores)
    );
    built(&["proctrace-recorder"])?;
    let report = Build::start("proctrace-first-report")?;
    record(&release.join("proctrace-recorder"), demo, trace)?;
    println!("\nRecorded. What makes the report is still compiling.");
    report.wait()?;
    let rest = Build::start("proctrace")?;
    println!("\nThe report:\n");
    execute(Command::new(release.join("proctrace-first-report")).arg(trace))?;
    println!("\nTables, SQL, pages and advice are still compiling.");
    rest.wait()
}

fn record(proctrace: &Path, demo: &Path, trace: &Path) -> Result<()> {
    let work = demo.join("work");
    if work.exists() {
        std::fs::remove_dir_all(&work).context("cannot remove the build of the last demo")?;
    }
    println!("\nRecording a real build: the zstd library, from sources that cargo has fetched.");
    execute(
        as_root(proctrace)
            .args(["record", "--output"])
            .arg(trace)
            .args(["--", "sh"])
            .arg(root().join("fixtures/demo/build.sh"))
            .arg(zstd_sources()?)
            .arg(&work)
            // `cargo run` adds four directories to it, and every program of the build would search
            // them for its libraries: 45 more failed opens per program.
            .env_remove("LD_LIBRARY_PATH"),
    )
}

/// cargo, building in the background.
struct Build {
    cargo: Child,
    begun: Instant,
    /// Number of packages compiled so far, counted by a thread that reads cargo's messages.
    done: Arc<AtomicUsize>,
    counting: JoinHandle<()>,
    of: usize,
}

impl Build {
    fn start(package: &str) -> Result<Self> {
        let of = packages(package)?;
        let build =
            ["build", "--release", "--package", package, "--message-format=json", "--quiet"];
        let mut cargo =
            cargo().args(build).stdout(Stdio::piped()).spawn().context("cannot run cargo build")?;
        let messages = cargo.stdout.take().context("cargo has no output")?;
        let done = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&done);
        let counting = std::thread::spawn(move || {
            let mut packages = HashSet::new();
            for line in BufReader::new(messages).lines().map_while(Result::ok) {
                if let Some(package) = compiled_package(&line)
                    && packages.insert(package)
                {
                    count.store(packages.len(), Ordering::Relaxed);
                }
            }
        });
        Ok(Self { cargo, begun: Instant::now(), done, counting, of })
    }

    /// Packages compiled so far, and the time that the rest takes if it goes on like this.
    fn progress(&self) -> String {
        let done = self.done.load(Ordering::Relaxed).min(self.of);
        let seconds = self.begun.elapsed().as_secs();
        let text = format!("{done} of {} packages after {} s", self.of, seconds);
        match (seconds * (self.of - done) as u64).checked_div(done as u64) {
            _ if done + 1 >= self.of => format!("{text}, the program is being linked"),
            Some(left) => format!("{text}, about {left} s left"),
            None => text,
        }
    }

    /// Waits for its end, with a line that shows how far it is: one on a terminal, otherwise one every 20 s.
    fn wait(mut self) -> Result<()> {
        let shows = std::io::stdout().is_terminal();
        let mut said = Instant::now();
        let status = loop {
            if let Some(status) = self.cargo.try_wait().context("cannot wait for cargo")? {
                break status;
            }
            let progress = self.progress();
            if shows {
                print!("\r{progress:60}");
                // A line that cannot be shown is no reason to stop.
                let _ = std::io::stdout().flush();
            } else if said.elapsed() >= LINE_EVERY {
                println!("{progress}");
                said = Instant::now();
            }
            std::thread::sleep(Duration::from_secs(1));
        };
        if shows {
            println!();
        }
        let _ = self.counting.join();
        if !status.success() {
            bail!("cargo build failed ({status})");
        }
        Ok(())
    }
}

/// Number of packages that a build of this one compiles, itself included.
fn packages(package: &str) -> Result<usize> {
    let arguments = ["tree", "--package", package, "--edges", "normal,build", "--prefix", "none"];
    let tree = output(cargo().args(arguments).args(["--format", "{p}"]))?;
    let tree = String::from_utf8_lossy(&tree);
    let packages: BTreeSet<_> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    Ok(packages.len())
}

/// The package whose library or program is done, by a message of cargo; `None` for a build script, which is only a part.
fn compiled_package(message: &str) -> Option<String> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let kinds = message["target"]["kind"].as_array()?;
    let done = message["reason"] == "compiler-artifact"
        && !kinds.iter().any(|kind| kind == "custom-build");
    done.then(|| message["package_id"].as_str().map(str::to_owned)).flatten()
}

/// The C sources in the package zstd-sys, which provides the compression of trace files.
pub(crate) fn zstd_sources() -> Result<PathBuf> {
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let manifest = packages
        .iter()
        .find(|package| package["name"] == "zstd-sys")
        .and_then(|package| package["manifest_path"].as_str())
        .context("zstd-sys is not among the dependencies")?;
    Ok(PathBuf::from(manifest).with_file_name("zstd").join("lib"))
}

#[cfg(test)]
mod tests {
    use super::compiled_package;

    #[test]
    fn libraries_and_programs_are_packages() {
        let message = |reason: &str, kind: &str| {
            format!(r#"{{"reason":"{reason}","package_id":"a@1","target":{{"kind":["{kind}"]}}}}"#)
        };
        for kind in ["lib", "proc-macro", "bin", "rlib"] {
            let package = compiled_package(&message("compiler-artifact", kind));
            assert_eq!(package.as_deref(), Some("a@1"), "{kind}");
        }
        assert_eq!(compiled_package(&message("compiler-artifact", "custom-build")), None);
        assert_eq!(compiled_package(&message("build-script-executed", "lib")), None);
        assert_eq!(compiled_package("not JSON"), None);
    }
}
