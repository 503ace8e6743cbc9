//! A job with the structure that ALICE identified by hand: shells that monitor their tasks by
//! continually starting commands. The report must name them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::{Recorded, Recorder, proctrace, text, u64_of};
use serde_json::Value;

const NAMES: [&str; 3] = ["generation", "simulation", "reconstruction"];
const TASKS: u64 = NAMES.len() as u64;
const TICKS: u64 = 5;

/// The loop of every task's shell while its command runs: a fixed number of commands per tick, no
/// `$(...)`.
const UTILITIES: &str = r#"
taskwrapper() {
  log=$1; shift
  "$@" >"$log" 2>&1 &
  for tick in 1 2 3 4 5; do
    grep -q fatal "$log"
    ps -o pid= -p $$ | sed -e 's/ //' | awk '{ print }' >/dev/null
    sleep 0.01
  done
  wait
}
"#;

/// A driver that searches the loader's paths, as ROOT does, and starts itself again as two devices.
const DRIVER: &str = r#"#!/bin/sh
case "$*" in *--id*) exit 0 ;; esac
sh -c "LD_DEBUG=libs LD_PRELOAD=DOESNOTEXIST ls /tmp/DOESNOTEXIST 2>&1 | grep path | sed -e s/a/b/"
"$0" --id worker1 &
"$0" --id hitmerger &
wait
"#;

fn put(path: &Path, contents: &str) {
    fs::write(path, contents).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn record() -> Recorded {
    let recorder = Recorder::new();
    let directory = recorder.directory.path().to_owned();
    put(&directory.join("jobutils.sh"), UTILITIES);
    put(&directory.join("o2-sim"), DRIVER);
    let runner: String = NAMES
        .iter()
        .map(|name| format!("bash -c '. ./jobutils.sh; taskwrapper {name}_1.log ./o2-sim -n 5'\n"))
        .collect();
    // The name is the same whatever interpreter runs it.
    put(&directory.join("o2_dpg_workflow_runner.py"), &format!("#!/bin/bash\n{runner}"));
    recorder.run(["./o2_dpg_workflow_runner.py"])
}

fn rows(trace: &Path, arguments: &[&str], table: usize) -> Vec<Value> {
    let output =
        proctrace().args(arguments).arg(trace).args(["--format", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tables: Value = serde_json::from_slice(&output.stdout).unwrap();
    tables[table]["rows"].as_array().unwrap().clone()
}

fn find<'a>(rows: &'a [Value], keys: &[(&str, &str)]) -> &'a Value {
    rows.iter()
        .find(|row| keys.iter().all(|(key, value)| row[key] == *value))
        .unwrap_or_else(|| panic!("no {keys:?} in {rows:#?}"))
}

#[test]
fn the_wrapper_is_named_as_the_source_of_the_commands() {
    let recorded = record();
    recorded.sound(0);
    let trace = recorded.trace();

    let sources = rows(&trace, &["report", "--section", "spawners"], 0);
    assert_eq!(text(&sources[0]["parent"]), "taskwrapper");
    // grep, ps, sed, awk and sleep in each tick of each task.
    assert_eq!(u64_of(&sources[0]["commands"]), 5 * TICKS * TASKS);

    // Each task has a distinct command line.
    let lines = rows(&trace, &["report", "--section", "spawners"], 1);
    let edges = rows(&trace, &["report", "--section", "spawners"], 2);
    for name in NAMES {
        // Each runs once: nothing in its line differs.
        let says = format!("taskwrapper {name}_1.log");
        let of_task = |row: &&Value| text(&row["command_line"]).contains(&says);
        let line = lines.iter().find(of_task).unwrap();
        assert_eq!(u64_of(&line["commands"]), 5 * TICKS);
        for command in ["grep", "ps", "sed", "awk", "sleep"] {
            let edge = edges.iter().filter(of_task).find(|row| row["child"] == command).unwrap();
            assert_eq!(u64_of(&edge["processes"]), TICKS, "{command}");
        }
    }

    let chains = rows(&trace, &["report", "--section", "ancestry"], 0);
    let chain = find(&chains, &[("stack", "o2_dpg_workflow_runner.py;taskwrapper;ps")]);
    assert_eq!(u64_of(&chain["processes"]), TICKS * TASKS);
    let chain = "o2_dpg_workflow_runner.py;taskwrapper;o2-sim;sh;ls";
    assert_eq!(u64_of(&find(&chains, &[("stack", chain)])["processes"]), TASKS);
}

#[test]
fn categories_and_roles_are_those_of_the_experiment() {
    let recorded = record();
    recorded.sound(0);
    let trace = recorded.trace();
    let counts = rows(&trace, &["report", "--section", "counts"], 0);
    let processes = |category: &str| u64_of(&find(&counts, &[("category", category)])["processes"]);
    assert_eq!(processes("monitoring"), 5 * TICKS * TASKS);
    // The shell, ls, grep and sed.
    assert_eq!(processes("root start-up"), 4 * TASKS);
    assert_eq!(processes("o2 driver"), TASKS);
    assert_eq!(processes("o2 sim"), 2 * TASKS);
    assert_eq!(processes("o2 runner"), 1);
    // The tasks' shells.
    assert_eq!(processes("o2 task"), TASKS);
    assert_eq!(counts.len(), 6, "{counts:#?}");

    let caught = rows(&trace, &["classify"], 0);
    let wrapper = find(&caught, &[("program", "taskwrapper")]);
    assert_eq!(text(&wrapper["roles"]), "generation_1, reconstruction_1, simulation_1");
    let device = find(&caught, &[("program", "o2-sim"), ("group", "o2 sim")]);
    assert_eq!(text(&device["roles"]), "hitmerger, worker1");
    assert!(text(&device["rule"]).starts_with("alice-o2:"));
}

/// AthenaMP forks its workers, which never call exec: only their working directory identifies them.
#[test]
fn forked_workers_are_known_by_their_directory() {
    let recorder = Recorder::new();
    let directory = recorder.directory.path().to_owned();
    let workers = "for n in 0 1 2; do (mkdir -p worker_$n; cd worker_$n; :) & done\n\
                   (mkdir shared_writer; cd shared_writer; :) &\nwait\n";
    put(&directory.join("athena.py"), &format!("#!/bin/bash\n{workers}"));
    let recorded = recorder.run(["./athena.py"]);
    recorded.sound(0);
    let caught = rows(&recorded.trace(), &["classify"], 0);
    let athena = find(&caught, &[("program", "athena.py")]);
    assert_eq!(text(&athena["roles"]), "SharedWriter, worker 0, worker 1, … (4)");
    assert_eq!((u64_of(&athena["processes"]), u64_of(&athena["execs"])), (5, 1));
}

#[test]
fn rules_of_ones_own_come_first_and_idle_ones_are_told() {
    let recorded = record();
    recorded.sound(0);
    let rules = recorded.directory.path().join("mine.toml");
    fs::write(
        &rules,
        "[[rule]]\ngroup = \"mine\"\nname = [\"ps\"]\n\n[[rule]]\ngroup = \"no one's\"\nname = [\"nothing\"]\n",
    )
    .unwrap();
    let classify = |rules: &Path| {
        let mut command = proctrace();
        command.arg("classify").arg(recorded.trace()).arg("--rules").arg(rules);
        command.args(["--format", "json"]).output().unwrap()
    };
    let output = classify(&rules);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("mine.toml: the rule in line 5 matched nothing"), "{stderr}");
    let tables: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ps = find(tables[0]["rows"].as_array().unwrap(), &[("program", "ps")]).clone();
    assert_eq!((text(&ps["group"]), text(&ps["class"])), ("mine", "command"));

    fs::write(&rules, "[[rule]]\ngroup = \"mine\"\nname = []\n").unwrap();
    let output = classify(&rules);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("mine.toml:3:8: an empty list"), "{stderr}");
}
