//! The complete demonstration: records and reports a real build.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::run::{as_root, cargo, metadata, root, run as execute, target_dir};
use crate::setup;

/// Installs what is missing, builds, records a build of the zstd library and reports on it.
pub(crate) fn run() -> Result<()> {
    setup::run(setup::BUILD)?;
    execute(cargo().args(["build", "--release", "--package", "proctrace"]))?;
    let target = target_dir()?;
    let proctrace = target.join("release/proctrace");
    let demo = target.join("demo");
    std::fs::create_dir_all(&demo).context("cannot create a directory for the demo")?;
    let work = demo.join("work");
    if work.exists() {
        std::fs::remove_dir_all(&work).context("cannot remove the build of the last demo")?;
    }
    let (trace, gantt) = (demo.join("build.ptrace"), demo.join("build.svg"));

    println!("\nRecording a real build: the zstd library, from sources that cargo has fetched.");
    execute(
        as_root(&proctrace)
            .args(["record", "--output"])
            .arg(&trace)
            .args(["--", "sh"])
            .arg(root().join("fixtures/demo/build.sh"))
            .arg(zstd_sources()?)
            .arg(&work)
            // `cargo run` adds four directories to it, and every program of the build would search
            // them for its libraries: 45 more failed opens per program.
            .env_remove("LD_LIBRARY_PATH"),
    )?;

    println!("\nThe report:\n");
    // A trace recorded with sudo belongs to the user, so the report needs no sudo.
    execute(
        std::process::Command::new(&proctrace).arg("report").arg(&trace).arg("--gantt").arg(&gantt),
    )?;
    println!("\nRecording: {}", trace.display());
    println!("Gantt chart: {}", gantt.display());
    println!("To record a command: sudo {} record -- COMMAND", proctrace.display());
    Ok(())
}

/// The C sources in the package zstd-sys, which provides the compression of trace files.
fn zstd_sources() -> Result<PathBuf> {
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let manifest = packages
        .iter()
        .find(|package| package["name"] == "zstd-sys")
        .and_then(|package| package["manifest_path"].as_str())
        .context("zstd-sys is not among the dependencies")?;
    Ok(PathBuf::from(manifest).with_file_name("zstd").join("lib"))
}
