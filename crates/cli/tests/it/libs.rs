//! Causes of failed look-ups: the model of the dynamic linker against what is recorded, and what a remedy
//! leaves against what was predicted.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::common::{Recorder, proctrace, u64_of};
use proctrace_fixtures::libraries::{DIRECTORIES, LIBRARIES, Libraries, PLAIN_MISSES};
use proctrace_fixtures::python;
use serde_json::Value;

fn libs(trace: &Path) -> Value {
    let output = proctrace().args(["libs", "--json"]).arg(trace).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Every predicted look-up is recorded, and no other failed look-up of a library.
fn assert_explained(found: &Value) -> u64 {
    assert_eq!(found["predicted_library_misses"], found["confirmed_library_misses"], "{found:#}");
    assert_eq!(found["unexplained_library_misses"], 0, "{found:#}");
    assert_eq!(found["starts_not_modelled"], 0, "{found:#}");
    u64_of(&found["predicted_library_misses"])
}

fn of_kind(found: &Value, kind: &str) -> (u64, usize) {
    let causes = found["causes"].as_array().unwrap().iter().filter(|cause| cause["kind"] == kind);
    let misses: Vec<u64> = causes.map(|cause| u64_of(&cause["misses"])).collect();
    (misses.iter().sum(), misses.len())
}

fn predicted(found: &Value, remedy: &str) -> u64 {
    let remedies = found["remedies"].as_array().unwrap();
    u64_of(&remedies.iter().find(|one| one["name"] == remedy).unwrap()["predicted_misses"])
}

fn recorded(program: &Path, list: Option<&str>) -> Value {
    let mut recorder = Recorder::new();
    recorder.command.env_remove("LD_LIBRARY_PATH");
    let recorder = match list {
        Some(list) => recorder.env("LD_LIBRARY_PATH", list),
        None => recorder,
    };
    let recorded = recorder.run([program]);
    recorded.sound(0);
    libs(&recorded.trace())
}

#[test]
fn a_remedy_leaves_what_was_predicted() {
    let place = tempfile::tempdir().unwrap();
    let fixture = Libraries::make(place.path(), &[]);
    let list = Libraries::list(place.path());
    let found = recorded(&fixture.program(), Some(&list));
    let misses = assert_explained(&found);
    assert!(misses > (PLAIN_MISSES + DIRECTORIES) as u64, "{found:#}");
    assert_eq!(of_kind(&found, "LD_LIBRARY_PATH"), (misses, DIRECTORIES));
    assert_eq!(predicted(&found, "none"), misses);

    let farm = place.path().join("farm");
    fs::create_dir(&farm).unwrap();
    for n in 0..LIBRARIES {
        symlink(fixture.library(n), farm.join(Libraries::name(n))).unwrap();
    }
    let with_farm = format!("{}:{list}", farm.display());
    let after = recorded(&fixture.program(), Some(&with_farm));
    assert_eq!(assert_explained(&after), predicted(&found, "farm"));
    let libc =
        ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6"];
    let libc = libc.into_iter().find(|path| Path::new(path).exists()).unwrap();
    symlink(libc, farm.join("libc.so.6")).unwrap();
    let after = recorded(&fixture.program(), Some(&with_farm));
    assert_eq!(assert_explained(&after), predicted(&found, "farm-system"));
}

#[test]
fn lists_of_objects_are_causes_too() {
    for (tags, kind) in [("--disable-new-dtags", "RPATH"), ("--enable-new-dtags", "RUNPATH")] {
        let place = tempfile::tempdir().unwrap();
        let rpath = format!("-Wl,{tags},-rpath,{}", Libraries::list(place.path()));
        let fixture = Libraries::make(place.path(), &[&rpath]);
        let found = recorded(&fixture.program(), None);
        let misses = assert_explained(&found);
        assert_eq!(of_kind(&found, kind), (misses, DIRECTORIES), "{found:#}");
        let program = fixture.program().display().to_string();
        let causes = found["causes"].as_array().unwrap().iter();
        let mut of_kind = causes.filter(|cause| cause["kind"] == kind);
        assert!(of_kind.all(|cause| cause["object"] == program), "{found:#}");
    }
}

/// Programs that no one here wrote, as they are started by a shell.
#[test]
fn programs_of_the_system_have_no_unexplained_miss() {
    let script =
        "perl -e 1; git --version; gcc --version; python3 -c 'import json, ssl'; ls | sort";
    for list in [None, Some("/opt/one:/usr/local/lib:/no/such:")] {
        let recorder = Recorder::new().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        let recorder = match list {
            Some(list) => recorder.env("LD_LIBRARY_PATH", list),
            None => recorder,
        };
        let recorded = recorder.run(["sh", "-c", script]);
        let found = libs(&recorded.trace());
        assert_explained(&found);
        assert!(u64_of(&found["starts"]) >= 6, "{found:#}");
    }
}

/// A recording whose directories are gone: they are inferred from its failed look-ups.
#[test]
fn directories_that_are_gone_are_inferred() {
    let found = libs(
        &Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
            .join("../../fixtures/traces/alice-o2-before-2.ptrace"),
    );
    let (misses, entries) = of_kind(&found, "LD_LIBRARY_PATH");
    assert_eq!(entries, 48, "{found:#}");
    assert!(misses > 300_000, "{misses}");
    assert_eq!(found["unexplained_library_misses"], 0);
}

/// Look-ups that were not recorded are not shown as none.
#[test]
fn a_recording_without_lookups_is_refused() {
    let recorded = Recorder::new().option(["--misses", "none"]).run(["true"]);
    let output = proctrace().arg("libs").arg(recorded.trace()).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("recorded without failed open calls"), "{said}");
    let recorded = Recorder::new().option(["--no-env"]).run(["true"]);
    let found = libs(&recorded.trace());
    assert_eq!((&found["starts"], &found["starts_not_modelled"]), (&0.into(), &1.into()));
}

/// Four headers in two of five directories, one of which does not exist: each is missed in all before its own. GCC
/// includes a fifth by itself, which the C library has: stdc-predef.h.
#[test]
fn the_order_of_directories_of_headers_is_a_cause() {
    let place = tempfile::tempdir().unwrap();
    for directory in ["none", "three", "empty", "one"] {
        fs::create_dir(place.path().join(directory)).unwrap();
    }
    let put = |name: &str, text: &str| fs::write(place.path().join(name), text).unwrap();
    for name in ["three/a.h", "three/b.h", "three/c.h", "one/d.h"] {
        put(name, "int declared;\n");
    }
    put("x.c", "#include <a.h>\n#include <b.h>\n#include <c.h>\n#include <d.h>\n");
    let script = format!(
        "cd {} && gcc -I none -I gone -I three -I empty -isystem one -c x.c",
        place.path().display()
    );
    let recorded = Recorder::new().run(["sh", "-c", &script]);
    recorded.sound(0);
    let found = libs(&recorded.trace());
    let row = |kind: &str, entry: &str| {
        let mut causes = found["causes"].as_array().unwrap().iter();
        let is = |cause: &&Value| cause["kind"] == kind && cause["entry"] == entry;
        causes.find(is).unwrap_or_else(|| panic!("{kind} {entry}: {found:#}")).clone()
    };
    // GCC asks once for a precompiled header as well.
    let misses = |kind: &str, entry: &str| u64_of(&row(kind, entry)["misses"]);
    assert!((5..=10).contains(&misses("-I", "none")), "{found:#}");
    assert!((2..=4).contains(&misses("-I", "empty")), "{found:#}");
    assert!(misses("-I", "gone") >= 1);
    let figures = |kind: &str, entry: &str| {
        let row = row(kind, entry);
        (row["probes"].as_u64(), row["hits"].as_u64())
    };
    assert_eq!(figures("-I", "none"), (None, None));
    assert_eq!(figures("-I", "three"), (Some(5), Some(3)));
    assert_eq!(figures("-I", "empty"), (Some(2), Some(0)));
    assert_eq!(figures("-isystem", "one"), (Some(2), Some(1)));
    let others =
        found["causes"].as_array().unwrap().iter().filter(|cause| cause["kind"] == "other");
    let of_headers = others.filter(|cause| cause["entry"].as_str().unwrap().contains("three"));
    assert_eq!(of_headers.count(), 0, "{found:#}");
}

/// A module that is nowhere is searched in node_modules of each directory above the script.
#[test]
fn node_modules_are_a_cause() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().canonicalize().unwrap().join("a/b/c");
    fs::create_dir_all(&directory).unwrap();
    let script = directory.join("x.js");
    fs::write(&script, "try { require('nothing-has-this-name') } catch (error) { }\n").unwrap();
    let recorded = Recorder::new().run([Path::new("node"), &script]);
    recorded.sound(0);
    let found = libs(&recorded.trace());
    let entries = |kind: &str| -> Vec<String> {
        let causes = found["causes"].as_array().unwrap().iter();
        let of_kind = causes.filter(|cause| cause["kind"] == kind);
        of_kind.map(|cause| cause["entry"].as_str().unwrap().to_owned()).collect()
    };
    for above in directory.ancestors() {
        let modules = above.join("node_modules").display().to_string();
        assert!(entries("node_modules").contains(&modules), "{modules}: {found:#}");
    }
    assert!(entries("package.json").contains(&directory.display().to_string()), "{found:#}");
}

mod pypi {
    use super::*;

    /// An interpreter from an environment, with a package whose libraries are found by RPATH and dlopen(3).
    #[test]
    #[ignore = "needs a Python package index"]
    fn numpy_from_an_environment_has_no_unexplained_miss() {
        let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let environment = python::environment(base, "numpy-2.2.6", &["numpy==2.2.6"]);
        let python = environment.join("bin/python");
        let script = "import numpy, numpy.linalg; print(numpy.linalg.inv(numpy.eye(3)).sum())";
        for list in [None, Some("/opt/one:/usr/local/lib:/no/such")] {
            let recorder = Recorder::new();
            let recorder = match list {
                Some(list) => recorder.env("LD_LIBRARY_PATH", list),
                None => recorder,
            };
            let recorded = recorder.run([python.as_os_str(), "-c".as_ref(), script.as_ref()]);
            recorded.sound(0);
            let found = libs(&recorded.trace());
            assert_explained(&found);
            assert_eq!(u64_of(&found["starts"]), 1, "{found:#}");
        }
    }
}
