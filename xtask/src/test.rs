//! Runs every test with real eBPF, which requires root.

use anyhow::Result;
use xtask::ending::Unavailable;
use xtask::run::{built, cargo_that_can_be_interrupted, is_root, run as execute};
use xtask::setup;

use crate::payloads;
use crate::{prmon, repeat, verifier};

/// Leaves out the tests of fleets on Spark, which take Java 17 and a package of 450 MB.
const WITHOUT_SPARK: &str = "--no-spark";
/// Prefix of the names of these tests.
const SPARK_TESTS: &str = "spark_";

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
    let mut command = cargo_that_can_be_interrupted();
    // One run names everything that is broken.
    command.args(["test", "--release", "--workspace", "--no-fail-fast"]).args(&arguments);
    if without_index.is_none() {
        if !arguments.iter().any(|argument| argument == "--") {
            command.arg("--");
        }
        command.arg("--include-ignored");
        if !with_spark {
            command.args(["--skip", SPARK_TESTS]);
        }
    }
    let prmon = prmon::scripts()?;
    if let Some(scripts) = &prmon {
        command.env(prmon::VARIABLE, scripts);
    }
    if !is_root() {
        // cargo builds as our own user, and only the test programs run as root.
        let runner = "sudo --preserve-env";
        command.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", runner);
        command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", runner);
    }
    let ignored = without_index.is_none().then(|| "--include-ignored".to_owned());
    let flaky = repeat::run(&mut command, ignored.as_slice())?;
    // Spark is asked for unless it is refused: where its package cannot be installed, this fails.
    if without_index.is_some() && with_spark && arguments.is_empty() {
        let spark = ["test", "--release", "--workspace", "--test", "fleet", "--", "--ignored"];
        execute(cargo_that_can_be_interrupted().args(spark).arg(SPARK_TESTS))?;
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
    if let Some(reason) = without_index {
        println!("\nNOT RUN: the tests counted as ignored, which need Python packages. {reason}");
    }
    print!("{}", flaky.unwrap_or_default());
    Ok(())
}
