//! The distribution: the binaries, man pages, completions, and the broker's units for systemd, as a folder and as the
//! archive of a release.

mod static_recorder;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use sha2::{Digest, Sha256};
use xtask::contents;
use xtask::run::{cargo, exists, output, root, run as execute, target_dir};
use xtask::setup;

/// Directory of units below a prefix.
const UNITS: &str = "lib/systemd/system";

/// The programs that are shipped, each a package of its name.
pub(crate) const PROGRAMS: [&str; 3] = ["proctrace", "proctrace-recorder", "proctrace-broker"];

/// Texts that come with the binaries.
const TEXTS: [&str; 5] =
    ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "bpf/LICENSE-GPL-2.0"];

/// The target that the programs are built for.
pub(crate) fn triple() -> Result<String> {
    contents::host()
}

/// Arguments of `cargo xtask dist`.
#[derive(Debug, Default, Args)]
pub(crate) struct DistArgs {
    /// Build only the recorder that is linked statically.
    #[arg(long)]
    only_static: bool,
}

/// Builds all files into target/dist/package, and the files of a release into target/dist/release.
pub(crate) fn run(args: &DistArgs) -> Result<()> {
    setup::run(setup::BUILD)?;
    if args.only_static {
        return static_recorder::build(&target_dir()?.join("dist/release"));
    }
    let built = PROGRAMS.iter().flat_map(|program| ["--package", *program]);
    execute(cargo().args(["build", "--profile", "dist"]).args(built))?;
    let target = target_dir()?;
    let dist = target.join("dist/package");
    let release = target.join("dist/release");
    // What an earlier version left there would be taken for a part of this one.
    for folder in [&dist, &release].into_iter().filter(|folder| folder.exists()) {
        std::fs::remove_dir_all(folder).context("cannot remove an earlier distribution")?;
    }
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
        completions(&binary, program, &dist.join("completions"))?;
    }
    texts(&dist)?;
    contents::write(&PROGRAMS, &triple()?, contents::time()?, &dist)?;
    println!("written to {}", dist.display());
    archive(&dist, &release)?;
    let version = versions.pop_first().context("no program has a version")?;
    packages(&dist, &version, &release)?;
    static_recorder::build(&release)?;
    println!("written to {}", release.display());
    Ok(())
}

/// Makes a Debian package, an RPM and a wheel, where the tools for them are.
fn packages(package: &Path, version: &str, release: &Path) -> Result<()> {
    let time = contents::time()?.to_string();
    let scripts =
        [("dpkg-deb", "deb/build"), ("rpmbuild", "rpm/build"), ("python3", "wheel/build.py")];
    for (tool, script) in scripts {
        if exists(tool) {
            execute(
                Command::new(root().join("packaging").join(script))
                    .env("SOURCE_DATE_EPOCH", &time)
                    .arg(package)
                    .arg(version)
                    .arg(release),
            )?;
        } else {
            println!("left out: what packaging/{script} makes, as there is no {tool}");
        }
    }
    Ok(())
}

/// Writes the completions of a program for each shell.
fn completions(binary: &Path, program: &str, folder: &Path) -> Result<()> {
    let (bash, zsh, fish) =
        (format!("{program}.bash"), format!("_{program}"), format!("{program}.fish"));
    for (shell, file) in [("bash", bash), ("zsh", zsh), ("fish", fish)] {
        let script = output(Command::new(binary).args(["completions", shell]))?;
        std::fs::write(folder.join(file), script).context("cannot write completions")?;
    }
    Ok(())
}

/// Copies the texts that come with the binaries.
fn texts(folder: &Path) -> Result<()> {
    for text in TEXTS {
        let name = Path::new(text).file_name().unwrap_or_default();
        std::fs::copy(root().join(text), folder.join(name))
            .with_context(|| format!("cannot copy {text}"))?;
    }
    Ok(())
}

/// Writes the archive, and the script of the integrations into CI services, which download both by name
/// (docs/ci.md).
fn archive(package: &Path, release: &Path) -> Result<()> {
    let name = format!("proctrace-{}-linux.tar.gz", std::env::consts::ARCH);
    pack(package, &["bin", "completions", "lib", "man"], &name, release)?;
    std::fs::copy(root().join("packaging/ci/proctrace-ci"), release.join("proctrace-ci"))
        .context("cannot copy the script for CI")?;
    Ok(())
}

/// Writes an archive of these folders and the texts of a package, and its checksum.
fn pack(package: &Path, folders: &[&str], name: &str, release: &Path) -> Result<()> {
    std::fs::create_dir_all(release).context("cannot create a directory")?;
    // The same bytes from the same files: in order of names, without owners, times and the name of the archive.
    execute(
        Command::new("tar")
            .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=go-w"])
            .args(["--mtime=@0", "--use-compress-program=gzip --no-name --best"])
            .arg("--create")
            .arg("--file")
            .arg(release.join(name))
            .arg("--directory")
            .arg(package)
            .args(["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "LICENSE-GPL-2.0"])
            .args([contents::licences::FILE, contents::sbom::FILE])
            .args(folders),
    )?;
    let archive = std::fs::read(release.join(name)).context("cannot read the archive")?;
    let sum: String = Sha256::digest(&archive).iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::write(release.join(format!("{name}.sha256")), format!("{sum}  {name}\n"))
        .context("cannot write the checksum")?;
    println!("{name}: {} bytes, SHA-256 {sum}", archive.len());
    Ok(())
}
