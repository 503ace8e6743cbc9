//! The tests that need no privileges.

use std::cmp::Reverse;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::run::{cargo, root};
use crate::setup;

/// Tests of the command-line program that record, and others that take longer than all else
/// together. A new test is unprivileged until it is listed here.
const LEFT_OUT: &[(&str, &str)] = &[
    ("proctrace", "accidents"),
    ("proctrace", "advise"),
    ("proctrace", "advise_pairs"),
    ("proctrace", "backends"),
    ("proctrace", "broker"),
    ("proctrace", "compile_commands"),
    ("proctrace", "critical_path"),
    ("proctrace", "ends"),
    ("proctrace", "export"),
    ("proctrace", "fidelity"),
    ("proctrace", "gate"),
    ("proctrace", "gate_causes"),
    ("proctrace", "hostile_payload"),
    ("proctrace", "identity"),
    ("proctrace", "inspect"),
    ("proctrace", "import_recorded"),
    ("proctrace", "libs"),
    ("proctrace", "libs_merge"),
    ("proctrace", "libs_remedies"),
    ("proctrace", "libs_places"),
    ("proctrace", "lookups"),
    ("proctrace", "manners"),
    ("proctrace", "marks"),
    ("proctrace", "node"),
    ("proctrace", "opens"),
    ("proctrace", "outputs"),
    ("proctrace", "payloads"),
    ("proctrace", "polling"),
    ("proctrace", "pool"),
    ("proctrace", "prmon"),
    ("proctrace", "pressure"),
    ("proctrace", "pythia8"),
    ("proctrace", "query"),
    ("proctrace", "resources"),
    ("proctrace", "rights"),
    ("proctrace", "rights_races"),
    ("proctrace", "scopes"),
    ("proctrace", "sections_cpu"),
    ("proctrace", "split"),
    ("proctrace", "startup"),
    ("proctrace", "storms"),
    ("proctrace", "strace"),
    ("proctrace", "summarize"),
    ("proctrace", "top"),
    ("proctrace", "unknown"),
    ("proctrace", "viewers"),
    ("proctrace", "waits"),
    ("proctrace", "withheld"),
    ("proctrace-gate", "readers"),
    // a browser
    ("proctrace", "web"),
    // set-user-ID programs, other root directories, musl
    ("proctrace-libsearch", "hostile"),
    ("proctrace-libsearch", "musl"),
    ("proctrace-libsearch", "secure"),
];

/// A test program that cargo has built.
struct TestProgram {
    executable: PathBuf,
    /// The package, in whose directory cargo runs it.
    directory: PathBuf,
    package: String,
    target: String,
}

/// Builds all tests as for `cargo xtask test`, so that nothing is built twice, and runs those that
/// need no privileges.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    setup::run(setup::BUILD)?;
    let programs = build()?;
    // Some are one long test: as many run at a time as there are cores.
    let waiting = Mutex::new(programs.iter());
    let failed = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(program) = next(&waiting) {
                    let name = format!("{} {}", program.package, program.target);
                    let output = program.output(arguments);
                    if output.as_ref().is_ok_and(|output| output.status.success()) {
                        println!("passed: {name}");
                        continue;
                    }
                    if let Ok(output) = output {
                        print!("{}", String::from_utf8_lossy(&output.stdout));
                        print!("{}", String::from_utf8_lossy(&output.stderr));
                    }
                    failed.lock().unwrap_or_else(PoisonError::into_inner).push(name);
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    println!("{} test programs passed; {} were excluded", programs.len(), LEFT_OUT.len());
    Ok(())
}

fn next<'a>(waiting: &Mutex<std::slice::Iter<'a, TestProgram>>) -> Option<&'a TestProgram> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner).next()
}

impl TestProgram {
    fn output(&self, arguments: &[String]) -> std::io::Result<Output> {
        Command::new(&self.executable)
            .arg("--quiet")
            .args(arguments)
            .current_dir(&self.directory)
            .env("CARGO_MANIFEST_DIR", &self.directory)
            // As .cargo/config.toml has it for tests that cargo runs.
            .env("INSTA_WORKSPACE_ROOT", root())
            .output()
    }
}

fn build() -> Result<Vec<TestProgram>> {
    let mut command = cargo();
    command.args(["test", "--release", "--workspace", "--no-run", "--message-format=json"]);
    println!("$ cargo test --release --workspace --no-run");
    let output = command.stderr(Stdio::inherit()).output().context("cannot run cargo test")?;
    if !output.status.success() {
        bail!("the tests do not build");
    }
    let messages = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut programs = Vec::new();
    for message in messages {
        let message: Value =
            serde_json::from_slice(message).context("cannot read a message of cargo")?;
        programs.extend(test_program(&message));
    }
    let left_out = |program: &TestProgram| {
        LEFT_OUT.contains(&(program.package.as_str(), program.target.as_str()))
    };
    programs.retain(|program| !left_out(program));
    // Those that link most take longest, and would be waited for if they began last.
    let size =
        |program: &TestProgram| std::fs::metadata(&program.executable).map_or(0, |m| m.len());
    programs.sort_by_key(|program| Reverse(size(program)));
    Ok(programs)
}

/// None for messages about anything else.
fn test_program(message: &Value) -> Option<TestProgram> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let text = std::fs::read_to_string(manifest).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("name = "))?;
    Some(TestProgram {
        executable: message["executable"].as_str()?.into(),
        directory: manifest.parent()?.to_owned(),
        package: name.trim_matches('"').to_owned(),
        target: message["target"]["name"].as_str()?.to_owned(),
    })
}
