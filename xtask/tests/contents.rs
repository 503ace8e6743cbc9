//! The list of what the programs are made of, and the terms of it, against cargo's own graph.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;
use xtask::contents::{self, licences, sbom};

const PROGRAMS: [&str; 3] = ["proctrace", "proctrace-recorder", "proctrace-broker"];

/// What is reached from the programs by edges that cargo metadata has: with the kinds `wanted` of them, and with the
/// optional ones or without.
fn reached(metadata: &Value, wanted: &[Option<&str>], has_optional: bool) -> BTreeSet<String> {
    let packages = metadata["packages"].as_array().unwrap();
    let by_id: BTreeMap<_, _> =
        packages.iter().map(|package| (package["id"].as_str().unwrap(), package)).collect();
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let nodes: BTreeMap<_, _> =
        nodes.iter().map(|node| (node["id"].as_str().unwrap(), node)).collect();
    let is_macro = |package: &Value| package["targets"][0]["kind"][0] == "proc-macro";
    let is_optional = |user: &Value, used: &str| {
        let mut asked = user["dependencies"].as_array().unwrap().iter();
        asked.any(|asked| asked["name"] == used && asked["optional"] == true)
    };
    let mut open: Vec<&str> = by_id
        .iter()
        .filter(|(_, package)| PROGRAMS.iter().any(|program| package["name"] == *program))
        .map(|(id, _)| *id)
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        let package = by_id[id];
        let name = package["name"].as_str().unwrap();
        if is_macro(package) || !seen.insert(format!("{name}@{}", package["version"])) {
            continue;
        }
        for edge in nodes[id]["deps"].as_array().unwrap() {
            let mut kinds = edge["dep_kinds"].as_array().unwrap().iter();
            let used = edge["pkg"].as_str().unwrap();
            let used_name = by_id[used]["name"].as_str().unwrap();
            let is_left_out = !has_optional && is_optional(package, used_name);
            let is_wanted = |kind: &Value| {
                wanted.contains(&kind["kind"].as_str())
                    && (has_optional || kind["target"].is_null())
            };
            if kinds.any(is_wanted) && !is_left_out {
                open.push(used);
            }
        }
    }
    seen
}

/// The texts under a key.
fn texts<'a>(values: &'a [Value], key: &str) -> BTreeSet<&'a str> {
    values.iter().filter_map(|value| value[key].as_str()).collect()
}

/// The packages of Rust in a bill.
fn listed(bill: &Value) -> BTreeSet<String> {
    let components = bill["components"].as_array().unwrap().iter();
    let of_rust = components.filter(|part| {
        let reference = part["bom-ref"].as_str().unwrap();
        reference.starts_with("pkg:cargo/")
            || (reference.starts_with("workspace:") && part["version"].is_string())
    });
    of_rust.map(|part| format!("{}@{}", part["name"].as_str().unwrap(), part["version"])).collect()
}

#[test]
fn the_bill_has_what_is_in_the_programs_and_nothing_else() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let host = contents::host().unwrap();
    for folder in [&one, &other] {
        contents::write(&PROGRAMS, &host, 1_700_000_000, folder.path()).unwrap();
    }
    for file in [sbom::FILE, licences::FILE] {
        let read = |folder: &tempfile::TempDir| fs::read(folder.path().join(file)).unwrap();
        assert!(read(&one) == read(&other), "{file} differs from time to time");
    }
    let text = fs::read_to_string(one.path().join(sbom::FILE)).unwrap();
    let bill: Value = serde_json::from_str(&text).unwrap();
    let metadata = xtask::run::metadata().unwrap();
    let listed = listed(&bill);

    let certain = reached(&metadata, &[None], false);
    let missing: Vec<_> = certain.difference(&listed).collect();
    assert!(missing.is_empty(), "not in the bill: {missing:?}");
    let possible = reached(&metadata, &[None], true);
    let unasked: Vec<_> = listed.difference(&possible).collect();
    assert!(unasked.is_empty(), "no program asks for {unasked:?}");
    // What only builds or tests, and what only a feature asks for that nobody has.
    let all: BTreeSet<_> = texts(metadata["packages"].as_array().unwrap(), "name");
    for name in ["insta", "loom", "proptest", "syn", "serde_derive", "cc", "object_store"] {
        assert!(all.contains(name), "{name} is no dependency any more");
        assert!(!listed.iter().any(|part| part.starts_with(&format!("{name}@"))), "{name}");
    }

    // Everything is described and used, and all that is of others has its terms.
    let terms = fs::read_to_string(one.path().join(licences::FILE)).unwrap();
    let components = bill["components"].as_array().unwrap();
    let used: BTreeSet<_> = bill["dependencies"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|entry| entry["dependsOn"].as_array().unwrap())
        .filter_map(Value::as_str)
        .collect();
    for part in components {
        let name = part["name"].as_str().unwrap();
        assert!(used.contains(part["bom-ref"].as_str().unwrap()), "{name} is used by nothing");
        let licence = part["licenses"][0]["expression"].as_str().unwrap();
        assert!(!licence.is_empty() && !licence.contains('/'), "{name}: {licence}");
        if part["purl"].is_string() {
            let version = part["version"].as_str().map(|version| format!(" {version}"));
            let line = format!("    {name}{}: {licence}\n", version.unwrap_or_default());
            assert!(terms.contains(&line), "no terms of {name}");
        }
    }
    for name in ["uplot", "DejaVuSans", "zstd", "lz4", "proctrace-bpf", "rust-std"] {
        assert!(components.iter().any(|part| part["name"] == name), "{name} is missing");
    }
    assert!(!text.contains("path+file"), "it names folders of this machine");
}
