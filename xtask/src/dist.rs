//! The distribution: the binaries, man pages, completions, and the broker's units for systemd.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result, bail};
use xtask::run::{cargo, output, root, run as execute, target_dir};
use xtask::setup;

/// Directory of units below a prefix.
const UNITS: &str = "lib/systemd/system";

/// The programs that are shipped, each a package of its name.
const PROGRAMS: [&str; 3] = ["proctrace", "proctrace-recorder", "proctrace-broker"];

/// Builds all files into target/dist/package.
pub(crate) fn run() -> Result<()> {
    setup::run(setup::BUILD)?;
    let packages = PROGRAMS.iter().flat_map(|program| ["--package", *program]);
    execute(cargo().args(["build", "--profile", "dist"]).args(packages))?;
    let target = target_dir()?;
    let dist = target.join("dist/package");
    for directory in ["bin", "man/man1", "completions", UNITS] {
        std::fs::create_dir_all(dist.join(directory)).context("cannot create a directory")?;
    }
    // A recorder is refused by a broker of another version.
    let mut versions = BTreeSet::new();
    for program in PROGRAMS {
        let built = target.join("dist").join(program);
        let said = output(Command::new(&built).arg("--version"))?;
        let said = String::from_utf8_lossy(&said);
        versions.insert(said.split_whitespace().last().unwrap_or_default().to_owned());
        std::fs::copy(&built, dist.join("bin").join(program))
            .with_context(|| format!("cannot copy {program}"))?;
    }
    if versions.len() > 1 {
        bail!("the programs are of different versions: {versions:?}");
    }
    for unit in ["proctrace-broker.service", "proctrace-broker.socket"] {
        let from = root().join("crates/broker/systemd").join(unit);
        std::fs::copy(&from, dist.join(UNITS).join(unit))
            .with_context(|| format!("cannot copy {}", from.display()))?;
    }
    for program in ["proctrace", "proctrace-recorder"] {
        let binary = target.join("dist").join(program);
        execute(Command::new(&binary).arg("man").arg(dist.join("man/man1")))?;
        let (bash, zsh, fish) =
            (format!("{program}.bash"), format!("_{program}"), format!("{program}.fish"));
        for (shell, file) in [("bash", bash), ("zsh", zsh), ("fish", fish)] {
            let script = output(Command::new(&binary).args(["completions", shell]))?;
            std::fs::write(dist.join("completions").join(file), script)
                .context("cannot write completions")?;
        }
    }
    println!("written to {}", dist.display());
    Ok(())
}
