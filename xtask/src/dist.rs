//! The distribution: the binaries, man pages, completions, and the broker's units for systemd.

use anyhow::{Context, Result, bail};

use crate::run::{cargo, output, root, run as execute, target_dir};
use crate::setup;

/// Directory of units below a prefix.
const UNITS: &str = "lib/systemd/system";

/// Builds all files into target/dist/package.
pub(crate) fn run() -> Result<()> {
    setup::run(setup::BUILD)?;
    execute(cargo().args(["build", "--profile", "dist"]).args([
        "--package",
        "proctrace",
        "--package",
        "proctrace-broker",
    ]))?;
    let target = target_dir()?;
    let binary = target.join("dist/proctrace");
    let dist = target.join("dist/package");
    for directory in ["bin", "man/man1", "completions", UNITS] {
        std::fs::create_dir_all(dist.join(directory)).context("cannot create a directory")?;
    }
    std::fs::copy(&binary, dist.join("bin/proctrace")).context("cannot copy the binary")?;
    let broker = target.join("dist/proctrace-broker");
    std::fs::copy(&broker, dist.join("bin/proctrace-broker")).context("cannot copy the broker")?;
    // A recorder is refused by a broker of another version.
    let version = |program: &std::path::Path| -> Result<String> {
        let said = output(std::process::Command::new(program).arg("--version"))?;
        let said = String::from_utf8_lossy(&said);
        Ok(said.split_whitespace().last().unwrap_or_default().to_owned())
    };
    let (recorder, served) = (version(&binary)?, version(&broker)?);
    if recorder != served {
        bail!("proctrace is of version {recorder}, proctrace-broker of {served}");
    }
    for unit in ["proctrace-broker.service", "proctrace-broker.socket"] {
        let from = root().join("crates/broker/systemd").join(unit);
        std::fs::copy(&from, dist.join(UNITS).join(unit))
            .with_context(|| format!("cannot copy {}", from.display()))?;
    }
    execute(std::process::Command::new(&binary).arg("man").arg(dist.join("man/man1")))?;
    for (shell, file) in
        [("bash", "proctrace.bash"), ("zsh", "_proctrace"), ("fish", "proctrace.fish")]
    {
        let script = output(std::process::Command::new(&binary).args(["completions", shell]))?;
        std::fs::write(dist.join("completions").join(file), script)
            .context("cannot write completions")?;
    }
    println!("written to {}", dist.display());
    Ok(())
}
