//! Checks that every build of the workspace, and the tests of each crate, compile each dependency with the same features, and that the recorder is built
//! without the data frames.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use xtask::run::{cargo, output};

/// The builds that the chores start, besides that of the whole workspace with its tests.
const BUILDS: &[&[&str]] = &[
    &["--package", "proctrace"],
    &["--package", "proctrace-recorder"],
    &["--package", "proctrace-first-report"],
    &["--package", "xtask"],
    &["--package", "proctrace-bench"],
    &["--package", "proctrace-payload"],
];

/// Edges of the graph of dependencies: with those of build scripts, and without what runs only while building. One dependency
/// may be built in both ways, with other features, and where both are listed, those for one hide what lacks for the other.
const EDGES: [&str; 2] = ["build", "no-proc-macro"];

/// Fails with the dependencies that one of these builds would compile a second time.
pub(crate) fn run() -> Result<()> {
    for kind in EDGES {
        let all = dependencies(&["--workspace", "--edges", &format!("normal,dev,{kind}")])?;
        let edges = format!("normal,{kind}");
        for build in BUILDS {
            let own = dependencies(&[build, &["--edges", &edges][..]].concat())?;
            let differing: Vec<_> = own.difference(&all).map(String::as_str).collect();
            if !differing.is_empty() {
                bail!(
                    "cargo build {} asks for other features than the tests; add them to \
                     crates/one-build/Cargo.toml:\n  {}",
                    build.join(" "),
                    differing.join("\n  ")
                );
            }
        }
        let edges = format!("normal,dev,{kind}");
        for member in members()? {
            let own = dependencies(&["--package", &member, "--edges", &edges])?;
            let differing: Vec<_> = own.difference(&all).map(String::as_str).collect();
            if !differing.is_empty() {
                bail!(
                    "cargo test --package {member} asks for other features than the tests of all; add proctrace-one-test to its \
                     dependencies for tests, or to crates/one-test/Cargo.toml:\n  {}",
                    differing.join("\n  ")
                );
            }
        }
    }
    let recorder = dependencies(&["--package", "proctrace-recorder", "--edges", "normal"])?;
    if let Some(frames) = recorder.iter().find(|package| package.starts_with("polars")) {
        bail!("proctrace-recorder depends on {frames}: what needs it belongs into crates/cli");
    }
    Ok(())
}

/// The names of all packages of the workspace.
fn members() -> Result<Vec<String>> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let metadata: serde_json::Value = serde_json::from_slice(&output(cargo().args(arguments))?)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    Ok(packages.filter_map(|package| package["name"].as_str().map(str::to_owned)).collect())
}

/// The packages from registries in a build, with their versions and features.
pub(crate) fn dependencies(arguments: &[&str]) -> Result<BTreeSet<String>> {
    let format = ["tree", "--prefix", "none", "--format", "{p} [{f}]"];
    let tree = output(cargo().args(format).args(arguments))?;
    let tree = String::from_utf8_lossy(&tree);
    let lines = tree.lines().map(|line| line.trim_end_matches(" (*)"));
    // Packages of the workspace have their paths in brackets.
    Ok(lines.filter(|line| !line.contains("(/")).map(str::to_owned).collect())
}
