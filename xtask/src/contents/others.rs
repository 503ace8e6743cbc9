//! The parts of the programs that are no packages of Rust: libraries in C, the standard library, fonts, the script of the
//! page, the programs for the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

use super::{Origin, Part};
use crate::digest;
use crate::run::{output, root};

/// A library in C whose source is in a package, which names its version behind a plus sign.
struct InC {
    package: &'static str,
    name: &'static str,
    /// Text in front of its version.
    prefix: &'static str,
    licence: &'static str,
}

const IN_C: [InC; 2] = [
    InC { package: "zstd-sys", name: "zstd", prefix: "zstd.", licence: "BSD-3-Clause" },
    InC { package: "lz4-sys", name: "lz4", prefix: "lz4-", licence: "BSD-2-Clause" },
];

/// Adds them, each as used by the package that brings it.
///
/// # Errors
///
/// A file is missing or does not have what it should.
pub(super) fn add(parts: &mut BTreeMap<String, Part>, target: &str) -> Result<()> {
    let mut added = Vec::new();
    for library in &IN_C {
        added.extend(in_c(library, parts)?.map(|part| (library.package, part)));
    }
    added.push(("proctrace-web", script()?));
    for font in ["DejaVuSans", "DejaVuSans-Bold"] {
        added.push(("proctrace-report", self::font(font)?));
    }
    added.push(("proctrace-probe", kernel_programs(target)?));
    let programs: Vec<_> =
        parts.values().filter(|part| part.origin == Origin::Ours(true)).cloned().collect();
    let run_time = run_time(target)?;
    for program in &programs {
        added.extend(run_time.iter().map(|part| (program.name.as_str(), part.clone())));
    }
    for (user, part) in added {
        let reference = part.reference();
        let mut is_used = false;
        for used_by in parts.values_mut().filter(|part| part.name == user) {
            used_by.uses.insert(reference.clone());
            is_used = true;
        }
        if is_used {
            parts.insert(reference, part);
        }
    }
    Ok(())
}

fn generic(name: &str, version: Option<&str>, licence: &str, texts: Vec<PathBuf>) -> Part {
    Part {
        name: name.to_owned(),
        version: version.map(str::to_owned),
        licence: licence.to_owned(),
        origin: Origin::Generic,
        digest: None,
        uses: BTreeSet::new(),
        texts,
    }
}

fn in_c(library: &InC, parts: &BTreeMap<String, Part>) -> Result<Option<Part>> {
    let Some(package) = parts.values().find(|part| part.name == library.package) else {
        return Ok(None);
    };
    let version = package.version.as_deref().unwrap_or_default();
    let version = version.split_once('+').and_then(|(_, own)| own.strip_prefix(library.prefix));
    let version = version
        .with_context(|| format!("{} does not name its {}", library.package, library.name))?;
    Ok(Some(generic(library.name, Some(version), library.licence, package.texts.clone())))
}

/// What rustc adds to each program.
fn run_time(target: &str) -> Result<Vec<Part>> {
    let said = output(Command::new("rustc").arg("--version"))?;
    let said = String::from_utf8_lossy(&said);
    let version = said.split(' ').nth(1).context("rustc has no version")?;
    let texts = vec![ours("rust-std"), root().join("LICENSE-APACHE")];
    let mut parts = vec![generic("rust-std", Some(version), "MIT OR Apache-2.0", texts)];
    if target.ends_with("-musl") {
        // They come with rustc, which does not tell their versions.
        parts.push(generic("musl", None, "MIT", vec![ours("musl")]));
        let apache = vec![root().join("LICENSE-APACHE"), ours("llvm-exception")];
        let licence = "Apache-2.0 WITH LLVM-exception";
        parts.push(generic("llvm-libunwind", None, licence, apache));
    }
    Ok(parts)
}

/// The one package of JavaScript in the page of `report --html`; the others only make it.
fn script() -> Result<Part> {
    const NAME: &str = "uplot";
    let lock = root().join("crates/web/app/package-lock.json");
    let lock = fs::read_to_string(lock).context("cannot read package-lock.json")?;
    let lock: Value = serde_json::from_str(&lock).context("cannot parse package-lock.json")?;
    let package = &lock["packages"][format!("node_modules/{NAME}")];
    let text = |key: &str| package[key].as_str().with_context(|| format!("{NAME} has no {key}"));
    let integrity = text("integrity")?.strip_prefix("sha512-").context("not SHA-512")?;
    let integrity = BASE64.decode(integrity).context("a digest is not in base64")?;
    let integrity = integrity.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Part {
        origin: Origin::Npm,
        digest: Some(("SHA-512", integrity)),
        ..generic(NAME, Some(text("version")?), text("license")?, vec![ours(NAME)])
    })
}

fn font(name: &str) -> Result<Part> {
    let folder = root().join("crates/report/fonts");
    let digest = digest::of_file(&folder.join(format!("{name}.ttf")))?;
    let texts = vec![folder.join("LICENSE")];
    // The changes of DejaVu are in the public domain.
    Ok(Part {
        digest: Some(("SHA-256", digest)),
        ..generic(name, Some("2.37"), "Bitstream-Vera", texts)
    })
}

fn kernel_programs(target: &str) -> Result<Part> {
    let architecture = if target.starts_with("aarch64") { "arm64" } else { "x86" };
    let object = Path::new("bpf/prebuilt").join(architecture).join("proctrace.bpf.o.zst");
    let digest = digest::of_file(&root().join(object))?;
    let texts = ["bpf/LICENSE-GPL-2.0", "bpf/LICENSE-MIT"].map(|file| root().join(file));
    Ok(Part {
        origin: Origin::Ours(false),
        digest: Some(("SHA-256", digest)),
        ..generic("proctrace-bpf", None, "GPL-2.0-only OR MIT", texts.into())
    })
}

/// A text of this repository, for parts that are not here with theirs.
fn ours(name: &str) -> PathBuf {
    root().join("packaging/licences").join(name)
}
