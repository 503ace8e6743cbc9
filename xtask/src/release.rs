//! A release, tried: all that must be true before it is tagged, and all that would be uploaded.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use xtask::contents::{self, sbom};
use xtask::run::{output, root, target_dir};
use xtask::statement::{self, Build};
use xtask::{digest, prebuilt};

use crate::dist;

/// Files of the sources that fix what else a build takes.
const LOCKS: [&str; 3] =
    ["Cargo.lock", "crates/web/app/package-lock.json", "bpf/prebuilt/sources.txt"];

/// Files of a release whose names have no version, since others download them by name.
const UNVERSIONED: [&str; 2] = ["proctrace-ci", "linux.tar.gz"];

/// Arguments of `cargo xtask release`.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// Check everything, write notes, checksums and provenance, and say what would be published.
    #[arg(long)]
    dry_run: bool,
    /// A folder that `cargo xtask dist` has filled, such as target/dist, instead of a new build.
    #[arg(long, value_name = "FOLDER")]
    dist: Option<PathBuf>,
    /// Go on if files differ from the commit, for trials.
    #[arg(long)]
    allow_dirty: bool,
    /// The address of the repository, for the statement of provenance.
    #[arg(long, value_name = "URL", default_value = "https://github.com/OWNER/proctrace")]
    repository: String,
    /// Who builds, for the statement of provenance.
    #[arg(long, value_name = "URI", default_value = "urn:proctrace:builder:by-hand")]
    builder: String,
}

/// Checks, builds and describes a release.
pub(crate) fn run(args: &ReleaseArgs) -> Result<()> {
    if !args.dry_run {
        bail!(
            "a release is published by the CI of the repository that has its tag, which also signs it, never from a \
             machine of a developer: use --dry-run, and push the tag that it names (docs/decisions/0077-releases.md)"
        );
    }
    let version = version()?;
    println!("version      {version}, wherever it is repeated");
    let changes = git(&["status", "--porcelain"])?;
    ensure!(
        args.allow_dirty || changes.is_empty(),
        "files differ from the commit:\n{changes}\ncommit them, or try with --allow-dirty"
    );
    let commit = git(&["rev-parse", "HEAD"])?;
    let cleanness =
        if changes.is_empty() { "nothing uncommitted" } else { "and UNCOMMITTED changes" };
    println!("commit       {commit}, {cleanness}");
    let is_compared = prebuilt::check()?;
    let how = if is_compared { "compiled again: the same bytes" } else { "by the list of sources" };
    println!("BPF objects  of the sources in bpf/, {how}");

    let folder = match &args.dist {
        Some(folder) => folder.clone(),
        None => {
            dist::run(&dist::DistArgs::default())?;
            target_dir()?.join("dist")
        }
    };
    let notes = notes(&version, &folder)?;
    is_of_these_sources(&folder, &version)?;
    let release = folder.join("release");
    of_this_version(&release, &version)?;
    println!("packages     of these sources, with the licences and the bill of materials");

    let compiler = output(Command::new("rustc").arg("--version"))?;
    let locks: Vec<_> = LOCKS
        .iter()
        .map(|lock| Ok((*lock, digest::of_file(&root().join(lock))?)))
        .collect::<Result<_>>()?;
    let digests = statement::write(
        &release,
        &Build {
            repository: &args.repository,
            commit: &commit,
            builder: &args.builder,
            compiler: String::from_utf8_lossy(&compiler).trim_end(),
            targets: &dist::targets().map(|target| target.triple).collect::<Vec<_>>(),
            time: contents::time()?,
            locks: &locks,
        },
    )?;
    println!("\nwould be tagged:\n  git tag --sign --file {} v{version} {commit}", notes.display());
    println!("\nwould be uploaded, from {}:", release.display());
    for (name, digest) in &digests {
        let bytes = fs::metadata(release.join(name)).map_or(0, |file| file.len());
        println!("  {digest}  {bytes:>10}  {name}");
    }
    println!("  {:64}  {:>10}  {}", "(the list of these)", "", statement::CHECKSUMS);
    println!("\nnothing was tagged, uploaded or signed");
    Ok(())
}

/// The version, which must be the same in all places.
fn version() -> Result<String> {
    let said = statement::versions(&root())?;
    let (_, version) = said.first().context("there is no version")?;
    for (file, other) in &said {
        ensure!(other == version, "Cargo.toml has version {version}, {file} {other}");
    }
    Ok(version.clone())
}

/// Writes the notes beside the packages; returns their path.
fn notes(version: &str, folder: &Path) -> Result<PathBuf> {
    let changelog = root().join("CHANGELOG.md");
    let changelog = fs::read_to_string(changelog).context("cannot read CHANGELOG.md")?;
    let (notes, is_unreleased) = statement::notes(&changelog, version)?;
    let path = folder.join("release-notes.md");
    fs::write(&path, format!("proctrace {version}\n\n{notes}"))
        .context("cannot write the notes")?;
    if is_unreleased {
        let day = git(&["log", "-1", "--format=%cs"])?;
        println!("CHANGELOG    `## Unreleased` must become `## {version} ({day})` before the tag");
    } else {
        println!("CHANGELOG    has a section for {version}");
    }
    println!("notes        {} lines: {}", notes.lines().count(), path.display());
    Ok(path)
}

/// Fails if the packages were made from other sources: their bill of materials has the time of the commit.
fn is_of_these_sources(folder: &Path, version: &str) -> Result<()> {
    let scratch = folder.join("compared");
    for target in dist::targets() {
        let package = folder.join(target.package());
        ensure!(
            package.exists(),
            "there are no packages for {}: cargo xtask dist says what it needs for them",
            target.architecture
        );
        fs::create_dir_all(&scratch).context("cannot create a directory")?;
        contents::write(&dist::PROGRAMS, &target.triple, contents::time()?, &scratch)?;
        let digests = [&package, &scratch].map(|folder| digest::of_file(&folder.join(sbom::FILE)));
        fs::remove_dir_all(&scratch).context("cannot remove a directory")?;
        let [packed, expected] = digests;
        ensure!(
            packed? == expected?,
            "{} is of other sources: run cargo xtask dist",
            package.display()
        );
    }
    let package = folder.join("package");
    for program in dist::PROGRAMS {
        let said = output(Command::new(package.join("bin").join(program)).arg("--version"))?;
        let said = String::from_utf8_lossy(&said);
        let says = said.split_whitespace().last().unwrap_or_default();
        ensure!(says == version, "{program} in {} is {says}", package.display());
    }
    Ok(())
}

/// Fails if there is a file of another version, or one that nobody asked for.
fn of_this_version(release: &Path, version: &str) -> Result<()> {
    for (name, digest) in statement::digests(release)? {
        let stem = name.strip_suffix(".sha256").unwrap_or(&name);
        let is_known = UNVERSIONED.iter().any(|known| stem.ends_with(known))
            || ["_", "-"]
                .iter()
                .any(|around| stem.starts_with(&format!("proctrace{around}{version}{around}")));
        ensure!(is_known, "{name} in {} is not of version {version}", release.display());
        if stem != name {
            let said = fs::read_to_string(release.join(&name)).context("cannot read a checksum")?;
            let is = digest::of_file(&release.join(stem))?;
            ensure!(said == format!("{is}  {stem}\n"), "{name} ({digest}) is not of {stem}");
        }
    }
    Ok(())
}

fn git(arguments: &[&str]) -> Result<String> {
    let said = output(Command::new("git").args(arguments).current_dir(root()))?;
    Ok(String::from_utf8(said).context("git does not print UTF-8")?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::of_this_version;

    #[test]
    fn files_of_other_versions_and_other_checksums_are_refused() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let put = |name: &str, text: &str| fs::write(folder.path().join(name), text);
        let refused = || match of_this_version(folder.path(), "1.2.3") {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        };
        put("proctrace_1.2.3_amd64.deb", "")?;
        put("proctrace-1.2.3-1.x86_64.rpm", "")?;
        put("proctrace-ci", "")?;
        put("proctrace-x86_64-linux.tar.gz", "")?;
        let empty = xtask::digest::sha256(b"");
        put(
            "proctrace-x86_64-linux.tar.gz.sha256",
            &format!("{empty}  proctrace-x86_64-linux.tar.gz\n"),
        )?;
        assert_eq!(refused(), "");
        put("proctrace-x86_64-linux.tar.gz", "another")?;
        assert!(refused().contains("is not of proctrace-x86_64-linux.tar.gz"), "{}", refused());
        put("proctrace-x86_64-linux.tar.gz", "")?;
        put("proctrace_1.2.30_amd64.deb", "")?;
        assert!(refused().starts_with("proctrace_1.2.30_amd64.deb"), "{}", refused());
        Ok(())
    }
}
