//! Runs every test with real eBPF, which requires root.

use anyhow::{Result, bail};
use xtask::ending::Unavailable;
use xtask::run::{built, cargo_that_can_be_interrupted, is_root, run as execute};
use xtask::setup;

use crate::payloads;
use crate::{nextflow, prmon, repeat, verifier};

/// Leaves out the tests that take Java 17: of fleets on Spark, a package of 450 MB, and of Nextflow.
const WITHOUT_SPARK: &str = "--no-spark";
/// Prefix of the names of these tests.
const SPARK_TESTS: &str = "spark_";

/// Arguments of test programs that leave out the tests which nothing else may run beside.
pub(crate) const TOGETHER: &[&str] = &["--skip", "alone::"];
/// Arguments that select these tests, and run them one at a time.
pub(crate) const ALONE: &[&str] = &["alone::", "--test-threads=1"];

/// Builds everything and runs every test.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let with_spark = !arguments.iter().any(|argument| argument == WITHOUT_SPARK);
    let arguments: Vec<String> =
        arguments.iter().filter(|argument| *argument != WITHOUT_SPARK).cloned().collect();
    setup::run(setup::EVERYTHING)?;
    if with_spark {
        setup::run(setup::SPARK)?;
    }
    // Tests that need Python packages are marked as ignored, so that a summary says how many were
    // left out where no index can be reached.
    let without_index = match payloads::pythia8() {
        Ok(()) => None,
        Err(error) => Some(error.downcast::<Unavailable>()?),
    };
    // Tests of the command line run it, also when only some of them are selected.
    built(&["proctrace-payload"])?;
    let mut choice = Vec::new();
    if without_index.is_none() {
        choice.push("--include-ignored");
        if !with_spark {
            choice.extend(["--skip", SPARK_TESTS]);
        }
    }
    let prmon = prmon::scripts()?;
    // It needs Java too.
    let nextflow = if with_spark { nextflow::archives()? } else { None };
    if nextflow.is_none() && without_index.is_none() {
        choice.extend(["--skip", nextflow::TESTS]);
    }
    // Tests that were selected run as they were selected: names of both kinds would be one filter.
    let passes: &[(&[&str], &[&str])] = if arguments.is_empty() {
        &[(&[], TOGETHER), (&["--test", "it"], ALONE)]
    } else {
        &[(&[], &[])]
    };
    let (mut flaky, mut failed) = (String::new(), Vec::new());
    for (targets, tests) in passes {
        let mut command = cargo_that_can_be_interrupted();
        // One run names everything that is broken.
        command.args(["test", "--release", "--workspace", "--no-fail-fast"]);
        command.args(*targets).args(&arguments);
        if !arguments.iter().any(|argument| argument == "--") {
            command.arg("--");
        }
        command.args(*tests).args(&choice);
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
        let ignored = without_index.is_none().then(|| "--include-ignored".to_owned());
        match repeat::run(&mut command, ignored.as_slice()) {
            Ok(told) => flaky.extend(told),
            Err(error) => failed.push(format!("{error:#}")),
        }
    }
    if !failed.is_empty() {
        print!("{flaky}");
        bail!("{}", failed.join("\n"));
    }
    // Spark is asked for unless it is refused: where its package cannot be installed, this fails.
    if without_index.is_some() && with_spark && arguments.is_empty() {
        let ignored = ["test", "--release", "--workspace", "--test", "it", "--", "--ignored"];
        let mut command = cargo_that_can_be_interrupted();
        command.args(ignored).arg(SPARK_TESTS);
        if let Some(archives) = &nextflow {
            command.arg(nextflow::TESTS).env(nextflow::VARIABLE, archives);
        }
        execute(&mut command)?;
    }
    // If single tests were selected, the verifier check is skipped.
    if arguments.is_empty() {
        verifier::run(false)?;
    }
    if prmon.is_none() {
        println!(
            "\nNOT RUN: prmon's own scripts on our export; their repository cannot be reached."
        );
    }
    if nextflow.is_none() && with_spark {
        println!("\nNOT RUN: the test that records Nextflow, whose archives cannot be reached.");
    }
    if let Some(reason) = without_index {
        println!("\nNOT RUN: the tests counted as ignored, which need Python packages. {reason}");
    }
    print!("{flaky}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use xtask::run::root;

    /// A file that is not listed is never compiled, and its tests never run.
    #[test]
    fn every_file_of_tests_is_a_module() {
        let mut listed = 0;
        for folder in ["", "/alone"] {
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
