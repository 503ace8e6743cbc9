//! No library and no binary writes files in another way: clippy denies it in each.

use std::fs;
use std::path::{Path, PathBuf};

/// Attribute by which clippy denies the methods that clippy.toml lists.
const DENIES: &str = "#![cfg_attr(not(test), deny(clippy::disallowed_methods))]";

/// Crates that only tests use: their files are made for programs that are recorded.
const FOR_TESTS: [&str; 2] = ["payload", "scenes"];

fn root() -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../..")
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn each_library_and_binary_denies_other_ways_to_write_files() {
    let wings = ["crates", "analysis"].map(|wing| entries(&root().join(wing)));
    let mut crates: Vec<PathBuf> = wings.into_iter().flatten().collect();
    crates.retain(|path| path.join("Cargo.toml").exists());
    crates.retain(|path| !FOR_TESTS.iter().any(|name| path.ends_with(name)));
    crates.push(root().join("analysis"));
    let mut looked_at = 0;
    for directory in crates {
        let source = directory.join("src");
        let roots = [source.join("lib.rs"), source.join("main.rs")];
        let mut found = 0;
        for root in roots.into_iter().chain(entries(&source.join("bin"))) {
            let Ok(text) = fs::read_to_string(&root) else { continue };
            assert!(text.lines().any(|line| line == DENIES), "{} lacks {DENIES}", root.display());
            found += 1;
        }
        assert!(found > 0, "{} has no library and no binary", directory.display());
        looked_at += found;
    }
    assert!(looked_at >= 30, "{looked_at}");
}

#[test]
fn what_is_denied_are_the_ways_to_create_replace_and_link_files() {
    let list = fs::read_to_string(root().join("clippy.toml")).unwrap();
    for method in [
        "std::fs::write",
        "std::fs::copy",
        "std::fs::rename",
        "std::fs::hard_link",
        "std::fs::File::create",
        "std::fs::File::create_new",
        "std::fs::File::options",
        "std::fs::OpenOptions::open",
        "std::os::unix::fs::symlink",
    ] {
        assert!(list.contains(&format!("path = \"{method}\"")), "{method}");
    }
}
