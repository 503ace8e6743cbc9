//! What the shipped programs are made of: packages of Rust, and all else that is part of a binary.

pub mod licences;
pub mod others;
pub mod sbom;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::run::{cargo, metadata, output, root};

/// A part of the programs: a package, a library in C, a font, a script of the page.
#[derive(Debug, Clone)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Its version, where it has one.
    pub version: Option<String>,
    /// Its licence, as an expression of SPDX.
    pub licence: String,
    /// The source: where it is from.
    pub origin: Origin,
    /// A digest: its algorithm as CycloneDX names it, and its hexadecimal digits.
    pub digest: Option<(&'static str, String)>,
    /// References of the parts that it uses.
    pub uses: BTreeSet<String>,
    /// Files with the terms of its licence.
    pub texts: Vec<PathBuf>,
}

/// The place that a part comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// This repository; true of a program.
    Ours(bool),
    /// The registry of packages of Rust.
    Crates,
    /// The registry of packages of JavaScript.
    Npm,
    /// Elsewhere, named by its package.
    Generic,
}

impl Part {
    /// The name by which others refer to it, which is its package URL unless it is ours.
    #[must_use]
    pub fn reference(&self) -> String {
        let kind = match self.origin {
            Origin::Ours(_) => "workspace:",
            Origin::Crates => "pkg:cargo/",
            Origin::Npm => "pkg:npm/",
            Origin::Generic => "pkg:generic/",
        };
        let version = self.version.as_ref().map(|version| format!("@{version}"));
        // A package URL has no plus sign as it is.
        let version = version.unwrap_or_default().replace('+', "%2B");
        format!("{kind}{}{version}", self.name)
    }
}

/// Writes the list of parts and the texts of their licences into the folder of a package.
///
/// # Errors
///
/// cargo fails, a licence is not found, or a file cannot be written.
pub fn write(programs: &[&str], target: &str, time: u64, folder: &Path) -> Result<()> {
    let parts = of(programs, target)?;
    let sbom = sbom::of(&parts, target, time)?;
    fs::write(folder.join(sbom::FILE), sbom).context("cannot write the list of parts")?;
    fs::write(folder.join(licences::FILE), licences::of(&parts)?)
        .context("cannot write the licences")
}

/// The target for which cargo builds by itself.
///
/// # Errors
///
/// rustc cannot be asked.
pub fn host() -> Result<String> {
    let said = output(Command::new("rustc").arg("--version").arg("--verbose"))?;
    let said = String::from_utf8_lossy(&said);
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say for which target it builds")?.to_owned())
}

/// The second number in the version of rustc.
///
/// # Errors
///
/// rustc cannot be asked.
pub fn rustc_minor() -> Result<u32> {
    let said = output(Command::new("rustc").arg("--version"))?;
    let said = String::from_utf8_lossy(&said);
    let minor = said.split('.').nth(1).and_then(|number| number.parse().ok());
    minor.context("rustc has no version")
}

/// The time of the sources, that of the commit, in seconds since 1970.
///
/// # Errors
///
/// git cannot be asked.
pub fn time() -> Result<u64> {
    let git = ["log", "-1", "--format=%ct"];
    let time = output(Command::new("git").args(git).current_dir(root()))?;
    String::from_utf8_lossy(&time).trim().parse().context("git tells no time of the commit")
}

/// All parts of these programs, by their references.
///
/// # Errors
///
/// cargo fails, or its answers do not fit each other.
pub fn of(programs: &[&str], target: &str) -> Result<BTreeMap<String, Part>> {
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let digests = digests_of_lock()?;
    let mut parts = BTreeMap::new();
    let mut references = BTreeMap::new();
    let graph = graph(programs, target)?;
    for (name, version) in graph.keys() {
        let package = packages.iter().find(|package| {
            package["name"] == name.as_str() && package["version"] == version.as_str()
        });
        let package = package.with_context(|| format!("cargo metadata lacks {name}"))?;
        let part = part(package, programs, &digests)?;
        references.insert((name.clone(), version.clone()), part.reference());
        parts.insert(part.reference(), part);
    }
    for (package, uses) in &graph {
        let uses = uses.iter().map(|used| references[used].clone());
        if let Some(part) = parts.get_mut(&references[package]) {
            part.uses.extend(uses);
        }
    }
    others::add(&mut parts, target)?;
    Ok(parts)
}

type Package = (String, String);

/// Which package uses which, as cargo builds them. Not from `cargo metadata`: its graph also has what only features ask for
/// that no program has, such as an HTTP client, and macros, which run at build time.
fn graph(programs: &[&str], target: &str) -> Result<BTreeMap<Package, BTreeSet<Package>>> {
    let programs = programs.iter().flat_map(|program| ["--package", program]);
    let tree = output(
        cargo()
            .args(["tree", "--edges", "normal,no-proc-macro", "--prefix", "depth"])
            .args(["--format", " {p}", "--target", target, "--no-default-features"])
            .args(programs),
    )?;
    let tree = String::from_utf8(tree).context("cargo tree does not print UTF-8")?;
    let mut graph: BTreeMap<Package, BTreeSet<Package>> = BTreeMap::new();
    let mut above: Vec<Package> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let mut words = line.split(' ');
        let depth: usize = words.next().unwrap_or_default().parse().context("no depth")?;
        let name = words.next().context("a package has no name")?.to_owned();
        let version = words.next().and_then(|version| version.strip_prefix('v'));
        let package = (name, version.context("a package has no version")?.to_owned());
        ensure!(depth <= above.len(), "cargo tree leaves out a level at {line}");
        above.truncate(depth);
        if let Some(user) = above.last() {
            graph.entry(user.clone()).or_default().insert(package.clone());
        }
        graph.entry(package.clone()).or_default();
        above.push(package);
    }
    Ok(graph)
}

fn part(package: &Value, programs: &[&str], digests: &BTreeMap<Package, String>) -> Result<Part> {
    let text = |key: &str| package[key].as_str().map(str::to_owned);
    let name = text("name").context("a package has no name")?;
    let version = text("version").context("a package has no version")?;
    let licence = text("license").with_context(|| format!("{name} names no licence"))?;
    let is_ours = package["source"].is_null();
    let manifest = PathBuf::from(text("manifest_path").context("a package has no manifest")?);
    let folder = manifest.parent().context("a manifest has no folder")?;
    let digest = digests.get(&(name.clone(), version.clone()));
    ensure!(is_ours || digest.is_some(), "Cargo.lock has no checksum of {name}");
    Ok(Part {
        origin: if is_ours {
            Origin::Ours(programs.contains(&name.as_str()))
        } else {
            Origin::Crates
        },
        digest: digest.map(|digest| ("SHA-256", digest.clone())),
        // The way in which it was written before there were expressions.
        licence: licence.replace('/', " OR "),
        texts: if is_ours { Vec::new() } else { licences::files(folder)? },
        uses: BTreeSet::new(),
        version: Some(version),
        name,
    })
}

/// The checksums in Cargo.lock.
fn digests_of_lock() -> Result<BTreeMap<Package, String>> {
    let lock = fs::read_to_string(root().join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let value = |entry: &str, key: &str| {
        let line = entry.lines().find_map(|line| line.strip_prefix(&format!("{key} = \"")));
        line.map(|value| value.trim_end_matches('"').to_owned())
    };
    let entries = lock.split("[[package]]").skip(1);
    Ok(entries
        .filter_map(|entry| {
            let package = (value(entry, "name")?, value(entry, "version")?);
            Some((package, value(entry, "checksum")?))
        })
        .collect())
}
