//! The distribution: the binaries, man pages, completions, and the broker's units for systemd, as a folder for each
//! architecture and as the archives and packages of a release.

mod target;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use sha2::{Digest, Sha256};
use xtask::contents;
use xtask::run::{exists, output, root, run as execute, target_dir};
use xtask::setup;

use self::target::{Built, Target};

/// Directory of units below a prefix.
const UNITS: &str = "lib/systemd/system";

/// The programs that are shipped, each a package of its name.
pub(crate) const PROGRAMS: [&str; 3] = ["proctrace", "proctrace-recorder", "proctrace-broker"];

/// The program that has an archive of its own.
const RECORDER: &str = "proctrace-recorder";

/// Texts that come with the binaries.
const TEXTS: [&str; 5] =
    ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "bpf/LICENSE-GPL-2.0"];

/// The targets of a release.
pub(crate) fn targets() -> impl Iterator<Item = Target> {
    Target::known().into_iter()
}

/// Arguments of `cargo xtask dist`.
#[derive(Debug, Default, Args)]
pub(crate) struct DistArgs {
    /// Build only the archives of the recorder.
    #[arg(long, conflicts_with = "dynamic")]
    only_recorder: bool,
    /// Build only for the architecture of this machine.
    #[arg(long, conflicts_with = "dynamic")]
    native: bool,
    /// Link with this system's C library, for a package of this system: needs no musl-gcc.
    #[arg(long)]
    dynamic: bool,
}

/// Builds all files below target/dist, in a folder for each architecture, and those of a release into target/dist/release.
pub(crate) fn run(args: &DistArgs) -> Result<()> {
    setup::run(if args.dynamic { setup::BUILD } else { setup::DIST })?;
    let targets = match args {
        DistArgs { dynamic: true, .. } => vec![Target::of_this_system()?],
        _ => Target::all(args.native)?,
    };
    let dist = target_dir()?.join("dist");
    let release = dist.join("release");
    let made: &[&str] = match args.only_recorder {
        true => &["recorder-"],
        false => &["release", "package", "recorder-", "static"],
    };
    remove_earlier(&dist, made)?;
    // Programs of this machine, which comes first, write texts that are the same for all.
    let mut writers = None;
    for target in &targets {
        let programs: &[&str] = if args.only_recorder { &[RECORDER] } else { &PROGRAMS };
        let built = target.build(programs)?;
        let writers = &*writers.get_or_insert_with(|| built.clone());
        let package = Package { target, built: &built, writers };
        package.recorder(&dist.join(format!("recorder-{}", target.architecture)), &release)?;
        if !args.only_recorder {
            package.whole(&dist.join(target.package()), &release)?;
        }
    }
    println!("written to {}", release.display());
    Ok(())
}

/// Removes folders of an earlier distribution, by the beginnings of their names: what it left there would be taken for a part
/// of this one. Others in that place are cargo's, for the profile of the same name.
fn remove_earlier(dist: &Path, made: &[&str]) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(dist) else { return Ok(()) };
    for entry in entries {
        let path = entry.context("cannot read a folder")?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && made.iter().any(|made| name.starts_with(made)) {
            std::fs::remove_dir_all(&path).context("cannot remove an earlier distribution")?;
        }
    }
    Ok(())
}

/// The programs of an architecture, to be packed.
struct Package<'a> {
    target: &'a Target,
    /// Its programs.
    built: &'a Built,
    /// Those that can run here.
    writers: &'a Built,
}

impl Package<'_> {
    /// Writes the folder of all programs, and makes an archive and packages of it.
    fn whole(&self, folder: &Path, release: &Path) -> Result<()> {
        let version = self.fill(folder, &PROGRAMS, &[UNITS])?;
        for unit in ["proctrace-broker.service", "proctrace-broker.socket"] {
            let from = root().join("crates/broker/systemd").join(unit);
            std::fs::copy(&from, folder.join(UNITS).join(unit))
                .with_context(|| format!("cannot copy {}", from.display()))?;
        }
        let name = format!("proctrace-{}-linux.tar.gz", self.target.architecture);
        pack(folder, &["bin", "completions", "lib", "man"], &name, release)?;
        std::fs::copy(root().join("packaging/ci/proctrace-ci"), release.join("proctrace-ci"))
            .context("cannot copy the script for CI")?;
        packages(
            folder,
            &version,
            self.target.is_static().then_some(&self.target.architecture),
            release,
        )
    }

    /// Writes the folder of the recorder alone, and makes an archive of it.
    fn recorder(&self, folder: &Path, release: &Path) -> Result<()> {
        self.fill(folder, &[RECORDER], &[])?;
        let name = format!("{RECORDER}-{}-linux.tar.gz", self.target.architecture);
        pack(folder, &["bin", "completions", "man"], &name, release)
    }

    /// Copies programs and texts into a folder, and writes what is made by them; returns the version.
    fn fill(&self, folder: &Path, programs: &[&str], further: &[&str]) -> Result<String> {
        for directory in ["bin", "man/man1", "completions"].iter().chain(further) {
            std::fs::create_dir_all(folder.join(directory)).context("cannot create a directory")?;
        }
        // A recorder is refused by a broker of another version.
        let mut versions = BTreeSet::new();
        for program in programs {
            let said = output(Command::new(self.writers.program(program)).arg("--version"))?;
            let said = String::from_utf8_lossy(&said);
            versions.insert(said.split_whitespace().last().unwrap_or_default().to_owned());
            std::fs::copy(self.built.program(program), folder.join("bin").join(program))
                .with_context(|| format!("cannot copy {program}"))?;
            self.target.runs(&self.built.program(program))?;
        }
        if versions.len() > 1 {
            bail!("the programs are of different versions: {versions:?}");
        }
        for program in programs.iter().filter(|program| **program != "proctrace-broker") {
            let writer = self.writers.program(program);
            tried(&writer)?;
            execute(Command::new(&writer).arg("man").arg(folder.join("man/man1")))?;
            completions(&writer, program, &folder.join("completions"))?;
        }
        texts(folder)?;
        contents::write(programs, &self.target.triple, contents::time()?, folder)?;
        println!("written to {}", folder.display());
        versions.pop_first().context("no program has a version")
    }
}

/// Records a command with a program, and checks the recording: what is shipped is built in another way than what is tested.
fn tried(program: &Path) -> Result<()> {
    let trace = target_dir()?.join("dist/tried.ptrace");
    let mut record = Command::new(program);
    record.args(["record", "--quiet", "--output"]).arg(&trace).args(["--", "true"]);
    execute(&mut record)?;
    output(Command::new(program).arg("check").arg(&trace)).map(drop)
}

/// Makes a Debian package, an RPM and a wheel, where the tools for them are: of this machine, or of the given architecture.
fn packages(
    package: &Path,
    version: &str,
    architecture: Option<&String>,
    release: &Path,
) -> Result<()> {
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
                    .arg(release)
                    .args(architecture),
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
