//! Messages about incomplete traces and invalid arguments.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::proctrace;

const NOT_WHOLE: &str = "is incomplete or failed a consistency check; see `proctrace check`";

fn tour() -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../fixtures/traces/tour-1.ptrace")
}

/// The exit code and stderr.
fn run(arguments: &[&str]) -> (i32, String) {
    let output = proctrace().args(arguments).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn tables_of_a_trace_that_is_cut_short_come_with_a_warning() {
    let scratch = tempfile::tempdir().unwrap();
    let cut = scratch.path().join("cut.ptrace");
    let bytes = fs::read(tour()).unwrap();
    fs::write(&cut, &bytes[..bytes.len() * 9 / 10]).unwrap();
    let (tour, out) = (tour(), scratch.path().join("out"));
    let [cut, tour, out] = [&cut, &tour, &out].map(|path| path.to_str().unwrap());
    for arguments in [
        &["report", cut, "--section", "counts"][..],
        &["report", cut, "--out", out],
        &["classify", cut],
    ] {
        let (code, said) = run(arguments);
        assert_eq!(code, 0, "{said}");
        assert_eq!(said.matches(NOT_WHOLE).count(), 1, "{arguments:?}: {said}");
    }
    let index = fs::read_to_string(Path::new(out).join("index.md")).unwrap();
    assert!(index.lines().take(6).any(|line| line.contains("recording is incomplete")), "{index}");

    let (code, said) = run(&["report", tour, "--section", "counts"]);
    assert_eq!((code, &*said), (0, ""));
    run(&["report", tour, "--out", out]);
    let index = fs::read_to_string(Path::new(out).join("index.md")).unwrap();
    assert!(!index.contains("recording is incomplete"), "{index}");
    assert!(index.contains("(report.html)"), "{index}");
    let page = fs::read_to_string(Path::new(out).join("report.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("proctrace"), "{page}");
}

#[test]
fn what_makes_no_sense_is_a_matter_of_usage() {
    let tour = tour();
    let tour = tour.to_str().unwrap();
    for arguments in [
        &["report", tour, "--section", "bogus"][..],
        &["report", tour, "--native-wall", "0"],
        &["report", tour, "--native-wall", "0s"],
        &["classify", tour, "--rules", "nope"],
        &["series", "A=0"],
        &["series", tour, "--knee", "0"],
        &["series", "--group", "nameless"],
    ] {
        let (code, said) = run(arguments);
        assert_eq!(code, 2, "{arguments:?}: {said}");
    }
}

#[test]
fn a_trace_that_is_not_there_is_named_once() {
    let (code, said) = run(&["series", "/no/such.ptrace"]);
    assert_eq!(code, 1);
    assert_eq!(said.matches("/no/such.ptrace").count(), 1, "{said}");
}
