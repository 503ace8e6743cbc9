//! The parts of the programs as a bill of materials of CycloneDX 1.5: the same bytes for the same sources.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{Origin, Part};
use crate::run::root;

/// The name of the file in a package.
pub const FILE: &str = "proctrace.cdx.json";

/// The bill of materials, without a random serial number; its time is that of the sources, in seconds since 1970.
pub(super) fn of(parts: &BTreeMap<String, Part>, target: &str, time: u64) -> Result<String> {
    let version = version(parts)?;
    let whole = format!("pkg:generic/proctrace@{version}");
    let programs: Vec<_> = parts
        .iter()
        .filter(|(_, part)| part.origin == Origin::Ours(true))
        .map(|(reference, _)| reference)
        .collect();
    let mut dependencies = vec![json!({ "ref": whole, "dependsOn": programs })];
    dependencies.extend(
        parts.iter().map(|(reference, part)| json!({ "ref": reference, "dependsOn": part.uses })),
    );
    let components: Vec<_> =
        parts.iter().map(|(reference, part)| component(reference, part)).collect();
    let bill = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": timestamp(time)?,
            "component": {
                "type": "application",
                "bom-ref": whole,
                "purl": whole,
                "name": "proctrace",
                "version": version,
                "licenses": [{ "expression": "(MIT OR Apache-2.0) AND (GPL-2.0-only OR MIT)" }],
            },
            "properties": [{ "name": "cdx:rustc:sbom:target:triple", "value": target }],
        },
        "components": components,
        "dependencies": dependencies,
    });
    let mut text = serde_json::to_string_pretty(&bill).context("cannot write JSON")?;
    text.push('\n');
    Ok(text)
}

fn component(reference: &str, part: &Part) -> Value {
    let kind = if part.origin == Origin::Ours(true) { "application" } else { "library" };
    let mut component = json!({
        "type": kind,
        "bom-ref": reference,
        "name": part.name,
        "licenses": [{ "expression": part.licence }],
    });
    if let Some(version) = &part.version {
        component["version"] = version.as_str().into();
    }
    if !matches!(part.origin, Origin::Ours(_)) {
        component["purl"] = reference.into();
    }
    if let Some((algorithm, digits)) = &part.digest {
        component["hashes"] = json!([{ "alg": algorithm, "content": digits }]);
    }
    component
}

/// The version of the programs.
pub(super) fn version(parts: &BTreeMap<String, Part>) -> Result<&str> {
    let program = parts.values().find(|part| part.origin == Origin::Ours(true));
    program.and_then(|program| program.version.as_deref()).context("no program has a version")
}

/// A time as RFC 3339 has it.
fn timestamp(seconds: u64) -> Result<String> {
    let seconds = format!("@{seconds}");
    let said = crate::run::output(std::process::Command::new("date").current_dir(root()).args([
        "--utc",
        "+%Y-%m-%dT%H:%M:%SZ",
        "--date",
        &seconds,
    ]))?;
    Ok(String::from_utf8_lossy(&said).trim_end().to_owned())
}
