//! The distribution: the binary, its man pages and completions.

use anyhow::{Context, Result};

use crate::run::{cargo, output, run as execute, target_dir};
use crate::setup;

/// Builds all files into target/dist.
pub(crate) fn run() -> Result<()> {
    setup::run(setup::BUILD)?;
    execute(cargo().args(["build", "--profile", "dist", "--package", "proctrace"]))?;
    let target = target_dir()?;
    let binary = target.join("dist/proctrace");
    let dist = target.join("dist/package");
    for directory in ["bin", "man/man1", "completions"] {
        std::fs::create_dir_all(dist.join(directory)).context("cannot create a directory")?;
    }
    std::fs::copy(&binary, dist.join("bin/proctrace")).context("cannot copy the binary")?;
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
