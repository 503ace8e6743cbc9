//! Runs lints and every test, real eBPF included: in parts by what they need, each of which is a profile of .config/nextest.toml.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use xtask::ending::Unavailable;
use xtask::run::{built, cargo, is_root, run as execute};
use xtask::setup;

use crate::part::Part;
use crate::{lint, nextest, nextflow, one_build, payloads, prmon, verifier};

/// Modules of tests that need Python packages from an index.
const PYPI: &str = "pypi";
/// Modules of tests that need Java.
const JAVA: [&str; 2] = ["spark", "nextflow"];

/// What tests need beside this machine, and what of it is there.
struct There {
    /// Why no Python package index can be used, if that is so.
    without_index: Option<Unavailable>,
    with_java: bool,
    /// Directories for tests, by the variables that name them.
    prmon: Option<PathBuf>,
    nextflow: Option<PathBuf>,
}

impl There {
    fn find(no_java: bool) -> Result<Self> {
        let without_index = match payloads::pythia8() {
            Ok(()) => None,
            Err(error) => Some(error.downcast::<Unavailable>()?),
        };
        let nextflow = if no_java { None } else { nextflow::archives()? };
        Ok(Self { without_index, with_java: !no_java, prmon: prmon::scripts()?, nextflow })
    }

    /// The command that runs the tests of a profile for which everything is there. Those that need Python packages or Java are
    /// marked as ignored, for `cargo test`.
    fn tests(&self, profile: &str) -> Result<Command> {
        let mut command = tests(profile)?;
        if let Some(scripts) = &self.prmon {
            command.env(prmon::VARIABLE, scripts);
        }
        if let Some(archives) = &self.nextflow {
            command.env(nextflow::VARIABLE, archives);
        }
        if !is_root() {
            // cargo builds as our own user, and only the test programs run as root. What we cannot kill then, timeout(1) does.
            let runner =
                "sudo --non-interactive --preserve-env timeout --foreground --kill-after=10 1200";
            command.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", runner);
            command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", runner);
        }
        command.args(["--run-ignored", "all"]);
        let missing = self.missing();
        if !missing.is_empty() {
            let filter = format!("not (kind(test) & test(/(^|::)({})::/))", missing.join("|"));
            command.args(["--filterset", &filter]);
        }
        Ok(command)
    }

    /// Modules of tests for which something is missing. Spark is not among them because of an index: where its package cannot be
    /// installed, its tests fail.
    fn missing(&self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        missing.extend(self.without_index.is_some().then_some(PYPI));
        if !self.with_java {
            missing.extend(JAVA);
        } else if self.nextflow.is_none() {
            missing.push("nextflow");
        }
        missing
    }

    /// Says which tests did not run, and why.
    fn tell(&self) {
        if self.prmon.is_none() {
            println!(
                "NOT RUN: prmon's own scripts on our export; their repository cannot be reached."
            );
        }
        if !self.with_java {
            println!("NOT RUN: the tests that need Java.");
        } else if self.nextflow.is_none() {
            println!("NOT RUN: the test that records Nextflow, whose archives cannot be reached.");
        }
        if let Some(reason) = &self.without_index {
            println!("NOT RUN: the tests that need Python packages. {reason}");
        }
    }
}

/// Runs lints, builds everything and runs every test; with arguments, only the tests that they select.
///
/// # Errors
/// If anything fails: after all parts, with the names of what failed.
pub(crate) fn run(no_java: bool, arguments: &[String]) -> Result<()> {
    setup::run(setup::EVERYTHING)?;
    if !no_java {
        setup::run(setup::SPARK)?;
    }
    if !is_root() {
        // Now, as tests run where nobody is asked for a password.
        execute(Command::new("sudo").arg("--validate"))?;
    }
    let there = There::find(no_java)?;
    // Tests of the command line run it, also when only some of them are selected.
    built(&["proctrace-payload"])?;
    if !arguments.is_empty() {
        let ended = execute(there.tests("default")?.args(arguments));
        there.tell();
        return ended;
    }
    let has_lints = lint::are_there();
    let mut parts = Vec::new();
    if has_lints {
        parts.push(Part::of_checks("lint", lint::run));
    }
    parts.push(Part::of_checks("features", one_build::run));
    parts.push(Part::of_checks("verifier", || verifier::run(false)));
    for profile in ["portable", "root", "browser", "python", "java"] {
        let is_there = match profile {
            "python" => there.without_index.is_none(),
            "java" => there.with_java,
            _ => true,
        };
        if is_there {
            parts.push(Part::of_tests(profile, &mut there.tests(profile)?));
        }
    }
    parts.push(Part::of_checks("examples", || {
        execute(cargo().args(["test", "--release", "--workspace", "--doc", "--quiet"]))
    }));
    print!("{}", Part::table(&parts));
    there.tell();
    if !has_lints {
        println!("NOT RUN: lints. Rust has no rustfmt or no clippy here.");
    }
    Part::verdict(&parts)
}

/// Builds all tests as [`run`] does, so that nothing is built twice, and runs those that need no rights.
///
/// # Errors
/// If a test fails.
pub(crate) fn unprivileged(arguments: &[String]) -> Result<()> {
    setup::run(setup::BUILD)?;
    execute(tests("portable")?.args(arguments))
}

/// The command that runs the tests of a profile.
fn tests(profile: &str) -> Result<Command> {
    let mut command = nextest::command()?;
    command.args(["run", "--cargo-profile", "release", "--workspace", "--profile", profile]);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use xtask::run::root;

    use super::*;

    /// Files below a folder, with those of its folders.
    fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files_below(&path, found);
            } else if path.extension().is_some_and(|it| it == "rs") {
                found.push(path);
            }
        }
    }

    /// The files of the test programs of all crates.
    fn files() -> Vec<PathBuf> {
        let mut found = Vec::new();
        for crates in ["crates", "analysis"] {
            for crate_ in fs::read_dir(root().join(crates)).unwrap() {
                let place = crate_.unwrap().path().join("tests/it");
                if place.is_dir() {
                    files_below(&place, &mut found);
                }
            }
        }
        found
    }

    /// A file that is not listed is never compiled, and its tests never run.
    #[test]
    fn every_file_of_tests_is_a_module() {
        let mut listed = 0;
        for file in files() {
            let name = file.file_stem().unwrap().to_str().unwrap();
            if ["main", "mod"].contains(&name) {
                continue;
            }
            let folder = file.parent().unwrap();
            let list = ["main.rs", "mod.rs"].map(|name| folder.join(name));
            // Of a folder beside a file of its name.
            let list = list.into_iter().chain([folder.with_extension("rs")]);
            let list: String = list.flat_map(fs::read_to_string).collect();
            assert!(list.contains(&format!("mod {name};\n")), "{}", file.display());
            listed += 1;
        }
        assert!(listed > 80, "{listed}");
    }

    /// Ignored tests of other modules would never run.
    #[test]
    fn what_is_ignored_is_in_a_module_that_says_what_it_needs() {
        let mut ignored = 0;
        for file in files() {
            let text = fs::read_to_string(&file).unwrap();
            let path = file.to_str().unwrap();
            let mut of_module =
                [PYPI].iter().chain(&JAVA).any(|it| path.contains(&format!("/{it}/")));
            for line in text.lines() {
                let opens = |name: &&str| line == format!("mod {name} {{");
                of_module |= [PYPI].iter().chain(&JAVA).any(opens);
                if line.trim_start().starts_with("#[ignore") {
                    assert!(of_module, "{path}: {line}");
                    ignored += 1;
                }
            }
        }
        assert!(ignored > 15, "{ignored}");
    }
}
