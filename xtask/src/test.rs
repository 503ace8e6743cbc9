//! Runs lints and every test, real eBPF included: in parts by what they need, each of which is a profile of .config/nextest.toml.

use std::fs;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use xtask::ending::Unavailable;
use xtask::run::{built, cargo, is_root, line, root, run as execute};
use xtask::setup;

use crate::part::Part;
use crate::{lint, nextest, nextflow, payloads, prmon, verifier};

/// Runs lints, builds everything and runs every test; with arguments, only the tests that they select.
///
/// # Errors
/// If anything fails: after all parts, with the names of what failed.
pub(crate) fn run(no_java: bool, arguments: &[String]) -> Result<()> {
    setup::run(setup::EVERYTHING)?;
    if !no_java {
        setup::run(setup::SPARK)?;
    }
    // Tests that need Python packages are marked as ignored, for `cargo test`.
    let without_index = match payloads::pythia8() {
        Ok(()) => None,
        Err(error) => Some(error.downcast::<Unavailable>()?),
    };
    // Tests of the command line run it, also when only some of them are selected.
    built(&["proctrace-payload"])?;
    let prmon = prmon::scripts()?;
    let nextflow = if no_java { None } else { nextflow::archives()? };
    let tests = |profile: &str| -> Result<Command> {
        let mut command = tests(profile)?;
        if let Some(scripts) = &prmon {
            command.env(prmon::VARIABLE, scripts);
        }
        if let Some(archives) = &nextflow {
            command.env(nextflow::VARIABLE, archives);
        }
        if !is_root() {
            // cargo builds as our own user, and only the test programs run as root.
            let runner = "sudo --preserve-env";
            command.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", runner);
            command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", runner);
        }
        Ok(command)
    };
    const ALL: [&str; 2] = ["--run-ignored", "all"];
    if !arguments.is_empty() {
        let ignored: &[&str] = if without_index.is_none() { &ALL } else { &[] };
        return execute(tests("default")?.args(ignored).args(arguments));
    }
    let mut parts = vec![Part::of_checks("lint", || {
        lint::run()?;
        verifier::run(false)
    })];
    for profile in ["portable", "root", "browser"] {
        parts.push(part(profile, &mut tests(profile)?)?);
    }
    if without_index.is_none() {
        parts.push(part("python", tests("python")?.args(ALL))?);
    }
    if !no_java {
        // Not without an index, too: where its packages cannot be installed, this fails.
        let mut java = tests("java")?;
        java.args(ALL);
        if nextflow.is_none() {
            java.args(["--filterset", "not test(/(^|::)nextflow::/)"]);
        }
        parts.push(part("java", &mut java)?);
    }
    parts.push(Part::of_checks("examples", || {
        execute(cargo().args(["test", "--release", "--workspace", "--doc", "--quiet"]))
    }));
    print!("{}", Part::table(&parts));
    if prmon.is_none() {
        println!("NOT RUN: prmon's own scripts on our export; their repository cannot be reached.");
    }
    if nextflow.is_none() && !no_java {
        println!("NOT RUN: the test that records Nextflow, whose archives cannot be reached.");
    }
    if no_java {
        println!("NOT RUN: the tests that need Java.");
    }
    if let Some(reason) = without_index {
        println!("NOT RUN: the tests that need Python packages. {reason}");
    }
    Part::verdict(&parts)
}

/// Builds all tests as [`run`] does, so that nothing is built twice, and runs those that need no privileges.
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

/// Runs the tests of a part; that some of them fail is in its results.
fn part(profile: &'static str, tests: &mut Command) -> Result<Part> {
    println!("\n== {profile}\n$ {}", line(tests));
    let results = root().join("target/nextest").join(profile).join("junit.xml");
    // Those of an earlier run are not taken for those of this one.
    if results.exists() {
        fs::remove_file(&results)
            .with_context(|| format!("cannot remove {}", results.display()))?;
    }
    let begin = Instant::now();
    let status = tests.status().with_context(|| format!("cannot run {}", line(tests)))?;
    let Ok(text) = fs::read_to_string(&results) else {
        bail!("{} failed ({status}), and left no results", line(tests));
    };
    let part = Part::of_tests(profile, begin.elapsed(), &text)?;
    if status.success() != part.failed().is_empty() {
        bail!("{} ended with {status}, and {} tests failed", line(tests), part.failed().len());
    }
    Ok(part)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use xtask::run::root;

    /// A file that is not listed is never compiled, and its tests never run.
    #[test]
    fn every_file_of_tests_is_a_module() {
        let mut listed = 0;
        for folder in ["", "/alone", "/root", "/alone/root", "/browser", "/pypi"] {
            for crate_ in fs::read_dir(root().join("crates")).unwrap() {
                let place = crate_.unwrap().path().join(format!("tests/it{folder}"));
                let Ok(files) = fs::read_dir(&place) else { continue };
                let list = ["main.rs", "mod.rs"].map(|name| fs::read_to_string(place.join(name)));
                let list = list.into_iter().flatten().collect::<String>();
                for file in files.map(|file| file.unwrap().path()) {
                    let name = file.file_stem().unwrap().to_str().unwrap();
                    let is_module = file.extension().is_some_and(|it| it == "rs");
                    if is_module && !["main", "mod"].contains(&name) {
                        assert!(list.contains(&format!("mod {name};\n")), "{}", file.display());
                        listed += 1;
                    }
                }
            }
        }
        assert!(listed > 80, "{listed}");
    }
}
