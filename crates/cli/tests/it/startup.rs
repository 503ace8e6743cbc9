//! The start-up cost of an environment, compared with the loader's own debug output.

use std::path::Path;
use std::process::{Command, Output};

use crate::common::proctrace;
use serde_json::Value;

/// `proctrace startup` in an environment of only these variables and PATH.
fn startup(variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = proctrace();
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", "/");
    command.envs(variables.iter().copied());
    command.args(["startup", "--runs", "3", "--format", "json"]).args(arguments);
    command.output().unwrap()
}

/// A value in the row of differences.
fn differences(output: &Output, column: &str) -> [f64; 3] {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tables: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let rows = tables[0]["rows"].as_array().unwrap();
    assert_eq!(rows[2]["environment"], "paired difference, median");
    [2, 3, 4].map(|row: usize| rows[row][column].as_f64().unwrap())
}

/// A number of empty directories.
fn directories(scratch: &Path, count: usize) -> String {
    let paths: Vec<String> = (0..count)
        .map(|n| {
            let path = scratch.join(format!("lib{n}"));
            std::fs::create_dir_all(&path).unwrap();
            path.display().to_string()
        })
        .collect();
    paths.join(":")
}

/// Number of files that the loader reports trying below a directory.
fn tried(program: &str, search_path: &str, below: &Path) -> usize {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", search_path).env("LD_DEBUG", "libs");
    let says = String::from_utf8(command.output().unwrap().stderr).unwrap();
    let trying = format!("trying file={}/", below.display());
    says.lines().filter(|line| line.contains(&trying)).count()
}

#[test]
fn forty_directories_cost_what_the_loader_says() {
    let scratch = tempfile::tempdir().unwrap();
    let search_path = directories(scratch.path(), 40);
    let tries = tried("/bin/true", &search_path, scratch.path());
    assert!(tries >= 40, "{tries}");
    // Each failed open below a directory is followed by a stat(2) of the directory it would be in;
    // the directory itself is an exception, because it exists.
    let expected = (2 * tries - 40) as f64;
    let job = [("LD_LIBRARY_PATH", &*search_path)];
    let output = startup(&job, &["--", "/bin/true"]);
    assert_eq!(differences(&output, "lookups_failed"), [expected; 3]);
    assert_eq!(differences(&output, "processes"), [0.0; 3]);
    let output = startup(&job, &["--without", "LD_LIBRARY_PATH", "--", "/bin/true"]);
    assert_eq!(differences(&output, "lookups_failed"), [expected; 3]);
    let output = startup(&job, &["--clean", "LD_LIBRARY_PATH", "--", "/bin/true"]);
    assert_eq!(differences(&output, "lookups_failed"), [0.0; 3]);
}

#[test]
fn a_command_that_fails_in_one_environment_is_not_measured() {
    let job = [("WANTED", "0")];
    let command = ["--", "sh", "-c", "echo hello; exit ${WANTED:-3}"];
    let output = startup(&job, &command);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("exits with 3") && stderr.contains("--clean"), "{stderr}");
    assert!(output.stdout.is_empty());
    // The command's output is discarded: only JSON remains.
    let output = startup(&job, &[&["--clean", "WANTED"], &command[..]].concat());
    assert_eq!(differences(&output, "processes"), [0.0; 3]);
}

#[test]
fn a_command_that_is_not_there_is_an_error() {
    let output = startup(&[], &["--", "no-such-command"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("no-such-command: command not found"), "{stderr}");
}
