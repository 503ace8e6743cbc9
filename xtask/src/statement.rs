//! What says of a release where it comes from: its notes, its checksums, and the statement of its provenance.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::digest;

/// The list of checksums, as sha256sum(1) reads it.
pub const CHECKSUMS: &str = "SHA256SUMS";

/// The statement of provenance.
pub const PROVENANCE: &str = "proctrace.provenance.json";

/// The build that a statement is about.
#[derive(Debug)]
pub struct Build<'a> {
    /// The address of the repository.
    pub repository: &'a str,
    /// The commit that was built.
    pub commit: &'a str,
    /// A URI of who built it.
    pub builder: &'a str,
    /// The compiler, as `rustc --version` says.
    pub compiler: &'a str,
    /// The targets that were built for.
    pub targets: &'a [String],
    /// The time of the sources, in seconds since 1970.
    pub time: u64,
    /// Files of the sources that fix what else went into it, by their names.
    pub locks: &'a [(&'a str, String)],
}

/// The digests of all files in a folder but of what is written here, by their names.
///
/// # Errors
///
/// A file cannot be read, or has an odd name.
pub fn digests(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut digests = BTreeMap::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry.context("cannot read a folder")?.path();
        let name = path.file_name().and_then(|name| name.to_str()).context("an odd name")?;
        ensure!(path.is_file(), "{} is no file", path.display());
        if name != CHECKSUMS && name != PROVENANCE {
            digests.insert(name.to_owned(), digest::of_file(&path)?);
        }
    }
    Ok(digests)
}

/// Writes the statement about the files in a folder and the checksums of all of them into it; returns the digests.
///
/// # Errors
///
/// A file cannot be read or written.
pub fn write(folder: &Path, build: &Build<'_>) -> Result<BTreeMap<String, String>> {
    let mut digests = digests(folder)?;
    ensure!(!digests.is_empty(), "there is no file in {}", folder.display());
    let statement = provenance(&digests, build)?;
    fs::write(folder.join(PROVENANCE), &statement).context("cannot write the statement")?;
    digests.insert(PROVENANCE.to_owned(), digest::sha256(statement.as_bytes()));
    let lines = digests.iter().map(|(name, digest)| format!("{digest}  {name}\n"));
    fs::write(folder.join(CHECKSUMS), lines.collect::<String>())
        .context("cannot write the checksums")?;
    Ok(digests)
}

/// A statement of in-toto with the provenance of SLSA, without signature and without the time of the build, so that it is
/// the same whenever the same files are built.
fn provenance(digests: &BTreeMap<String, String>, build: &Build<'_>) -> Result<String> {
    let subjects: Vec<_> = digests
        .iter()
        .map(|(name, digest)| json!({ "name": name, "digest": { "sha256": digest } }))
        .collect();
    let source = format!("git+{}", build.repository);
    let mut materials = vec![json!({
        "uri": source,
        "digest": { "gitCommit": build.commit },
    })];
    materials.extend(
        build
            .locks
            .iter()
            .map(|(name, sha256)| json!({ "name": name, "digest": { "sha256": sha256 } })),
    );
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": format!("{}/blob/main/docs/install.md#provenance", build.repository),
                "externalParameters": {
                    "source": source,
                    "commit": build.commit,
                    "command": "cargo xtask dist",
                },
                "internalParameters": {
                    "compiler": build.compiler,
                    "targets": build.targets,
                    "sourceDateEpoch": build.time,
                },
                "resolvedDependencies": materials,
            },
            "runDetails": { "builder": { "id": build.builder } },
        },
    });
    let mut text = serde_json::to_string_pretty(&statement).context("cannot write JSON")?;
    text.push('\n');
    Ok(text)
}

/// The notes of a release: the section of the changelog with its version, or else the one of what is not released yet.
/// True if it is the latter.
///
/// # Errors
///
/// There is neither, or it is empty.
pub fn notes(changelog: &str, version: &str) -> Result<(String, bool)> {
    let heading = |text: &str| format!("\n## {text}");
    let released = changelog.match_indices(&heading(version)).find_map(|(at, found)| {
        // 1.2.3 is no section of 1.2.30.
        let rest = &changelog[at + found.len()..];
        rest.starts_with(['\n', ' ']).then_some(rest)
    });
    let unreleased = || changelog.split_once(&heading("Unreleased\n")).map(|(_, rest)| rest);
    let (section, is_unreleased) = match released {
        // What stands behind the version in its heading is its date.
        Some(section) => (section.split_once('\n').map(|(_, rest)| rest), false),
        None => (unreleased(), true),
    };
    let section = section
        .with_context(|| format!("CHANGELOG.md has no section for {version}, nor `Unreleased`"))?;
    let notes = section.split("\n## ").next().unwrap_or_default().trim();
    ensure!(!notes.is_empty(), "the section of CHANGELOG.md is empty");
    Ok((format!("{notes}\n"), is_unreleased))
}

/// The places that repeat the version, and what each says.
///
/// # Errors
///
/// A file cannot be read, or has no version.
pub fn versions(root: &Path) -> Result<Vec<(&'static str, String)>> {
    const PLACES: [(&str, &str, &str); 3] = [
        ("Cargo.toml", "[workspace.package]\n", "version = \""),
        ("Cargo.lock", "name = \"proctrace\"\n", "version = \""),
        ("packaging/conda/recipe.yaml", "context:\n", "  version: "),
    ];
    let mut said = Vec::new();
    for (file, before, key) in PLACES {
        let text =
            fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
        let version = text
            .split_once(before)
            .and_then(|(_, rest)| rest.lines().find_map(|line| line.strip_prefix(key)))
            .with_context(|| format!("{file} has no version"))?;
        said.push((file, version.trim_matches('"').to_owned()));
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::notes;

    const CHANGELOG: &str = "# Changelog\n\n## Unreleased\n\n* New.\n\n## 1.2.30\n\n* Other.\n\n## 1.2.3 (2026-11-27)\n\n* Old.\n";

    #[test]
    fn notes_are_those_of_the_version() {
        let of = |version| notes(CHANGELOG, version).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(of("1.2.3"), ("* Old.\n".to_owned(), false));
        assert_eq!(of("1.2.30"), ("* Other.\n".to_owned(), false));
        assert_eq!(of("1.3.0"), ("* New.\n".to_owned(), true));
        assert!(notes("# Changelog\n\n## 1.2.3\n", "1.2.3").is_err());
        assert!(notes("# Changelog\n", "1.2.3").is_err());
    }
}
