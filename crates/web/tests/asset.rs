//! The committed script and style are those that `cargo xtask web` makes of the present sources.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

fn app() -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("app")
}

/// Hash of the sources as build.mjs computes it.
fn hash_of_sources() -> String {
    let mut sources: Vec<String> = fs::read_dir(app().join("src"))
        .unwrap()
        .map(|entry| format!("src/{}", entry.unwrap().file_name().into_string().unwrap()))
        .collect();
    sources.sort();
    let others = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json"];
    sources.extend(others.map(str::to_owned));
    let mut hash = Sha256::new();
    for source in &sources {
        let bytes = fs::read(app().join(source)).unwrap();
        hash.update(format!("{source} {}\n", bytes.len()));
        hash.update(bytes);
    }
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

#[test]
fn script_and_style_are_current() {
    let recorded = fs::read_to_string(app().join("dist/sources.sha256")).unwrap();
    assert_eq!(recorded.trim(), hash_of_sources(), "run `cargo xtask web`");
}

#[test]
fn script_and_style_stay_within_their_elements() {
    let script = fs::read_to_string(app().join("dist/app.js")).unwrap().to_lowercase();
    let style = fs::read_to_string(app().join("dist/app.css")).unwrap().to_lowercase();
    for end in ["</script", "<!--", "<script"] {
        assert!(!script.contains(end), "{end}");
    }
    assert!(!style.contains("</style") && !style.contains("@import"));
    // Nothing that would need the network, or that a policy would have to allow.
    for call in ["eval(", "new function(", "innerhtml", "document.write", "xmlhttprequest"] {
        assert!(!script.contains(call), "{call}");
    }
}

#[test]
fn packages_are_pinned_and_free() {
    let lock = fs::read_to_string(app().join("package-lock.json")).unwrap();
    let lock: serde_json::Value = serde_json::from_str(&lock).unwrap();
    let packages = lock["packages"].as_object().unwrap();
    assert!(packages.len() > 3);
    for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
        let licence = package["license"].as_str().unwrap_or_default();
        assert!(
            ["MIT", "ISC", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause"].contains(&licence),
            "{name}: {licence}"
        );
        assert!(package["integrity"].is_string(), "{name} has no checksum");
    }
    let manifest = fs::read_to_string(app().join("package.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    for kind in ["dependencies", "devDependencies"] {
        for (name, version) in manifest[kind].as_object().unwrap() {
            let version = version.as_str().unwrap();
            assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{name} {version}");
        }
    }
}
