//! The texts of the licences of all that the programs are made of, each text once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::{Origin, Part, sbom};
use crate::run::root;

/// The name of the file in a package.
pub const FILE: &str = "THIRD-PARTY-LICENSES.txt";

/// Beginnings of names of files with terms, in lower case.
const NAMES: [&str; 6] = ["licens", "licenc", "copying", "notice", "copyright", "unlicense"];

/// Folders of packages that are not compiled.
const ASIDE: [&str; 6] = ["tests", "examples", "programs", "contrib", "benches", "target"];

/// Terms under which a part is offered as well, but not taken.
const NOT_CHOSEN: [&str; 1] = ["zstd/COPYING"];

/// Packages that come without their terms, which are those of others of the same authors.
const OF_ANOTHER: [(&str, &str); 2] =
    [("alloc-stdlib", "alloc-no-stdlib"), ("polars-parquet-format", "polars-parquet")];

/// The files with terms in the folder of a package, in order of their paths.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(below) = folders.pop() {
        let entries = fs::read_dir(&below)
            .with_context(|| format!("cannot read {}: run cargo fetch", below.display()))?;
        for entry in entries {
            let path = entry.context("cannot read a folder")?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            if path.is_dir() && !ASIDE.contains(&name.as_str()) {
                folders.push(path);
            } else if path.is_file()
                && NAMES.iter().any(|known| name.starts_with(known))
                && !name.ends_with(".rs")
                && !NOT_CHOSEN.iter().any(|other| path.ends_with(other))
            {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// One text with all terms.
pub(super) fn of(parts: &BTreeMap<String, Part>) -> Result<String> {
    // By their words: most copies of a text differ in nothing but where their lines end.
    let mut texts: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
    let mut list = String::new();
    for part in parts.values() {
        // Of our own packages, all that is in the programs is under the terms beside this file.
        if matches!(part.origin, Origin::Ours(_)) && part.texts.is_empty() {
            continue;
        }
        let version = part.version.as_ref().map(|version| format!(" {version}"));
        let name = format!("{}{}", part.name, version.unwrap_or_default());
        list.push_str(&format!("    {name}: {}\n", part.licence));
        for file in texts_of(part, parts)? {
            let text =
                fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let text = String::from_utf8_lossy(&text).replace("\r\n", "\n").replace('\x0c', "");
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let (_, names) = texts
                .entry(words)
                .or_insert_with(|| (text.trim_matches('\n').to_owned(), BTreeSet::new()));
            names.insert(name.clone());
        }
    }
    let mut all = format!(
        "proctrace {} contains these parts of others, and its programs for the kernel:\n\n{list}",
        sbom::version(parts)?
    );
    let mut texts: Vec<_> = texts.into_values().collect();
    texts.sort_by(|(one, of_one), (other, of_other)| (of_one, one).cmp(&(of_other, other)));
    for (text, names) in texts {
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        all.push_str(&format!("\n{}\nTerms of {names}:\n\n{text}\n", "=".repeat(80)));
    }
    Ok(all)
}

fn texts_of(part: &Part, parts: &BTreeMap<String, Part>) -> Result<Vec<PathBuf>> {
    let mut texts = part.texts.clone();
    if let Some((_, other)) = OF_ANOTHER.iter().find(|(name, _)| *name == part.name) {
        let other = parts.values().find(|part| part.name == *other);
        texts.extend(other.with_context(|| format!("no terms of {}", part.name))?.texts.clone());
    }
    if part.origin == Origin::Crates && texts.is_empty() && part.licence.contains("Apache-2.0") {
        // This one has no line that names its authors.
        texts.push(root().join("LICENSE-APACHE"));
    }
    ensure!(!texts.is_empty(), "{} comes without the terms of {}", part.name, part.licence);
    Ok(texts)
}
