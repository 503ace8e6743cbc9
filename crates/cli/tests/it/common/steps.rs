//! Recordings of scripts in a directory, and the steps in them.

use std::path::Path;

use super::{Recorded, Recorder, proctrace, text};
use serde_json::Value;

/// Records a script of sh in this directory, in which $P is proctrace.
pub(crate) fn record_in(place: &Path, options: &[&str], script: &str) -> Recorded {
    let mut recorder = Recorder::new().option(options).env("P", env!("CARGO_BIN_EXE_proctrace"));
    recorder.command.current_dir(place);
    recorder.run(["/bin/sh", "-c", script])
}

pub(crate) fn query(trace: &Path, options: &[&str], sql: &str) -> Vec<Value> {
    let output = proctrace()
        .args(["query", "--format", "json"])
        .args(options)
        .args([sql])
        .arg(trace)
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Names of steps of a coordinator, in order of their beginnings.
pub(crate) fn names(trace: &Path, coordinator: &str) -> Vec<String> {
    let steps = query(trace, &[], "select * from steps order by step_id");
    let of = steps.iter().filter(|step| step["coordinator"] == coordinator);
    of.map(|step| text(&step["step"]).to_owned()).collect()
}

pub(crate) fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}
