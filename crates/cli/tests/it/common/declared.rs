//! Declaration of what the payload does, and a recording of it in the same form.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::{proctrace, text, u64_of};

/// The contents of a recording, in the form of a declaration.
pub(crate) fn recorded(trace: &Path, work: &Path) -> Value {
    let mut dump = proctrace()
        .args(["dump", "--kind", "attach", "--kind", "fork", "--kind", "exec"])
        .args(["--kind", "exit", "--kind", "lookup_failed"])
        .arg(trace)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The live processes by pid: index into `processes`.
    let mut alive: HashMap<u64, usize> = HashMap::new();
    // For each process: its program, its threads, its forker.
    let mut processes: Vec<(String, u64, u64)> = Vec::new();
    let mut execs: BTreeMap<String, u64> = BTreeMap::new();
    let mut misses: BTreeMap<String, u64> = BTreeMap::new();
    let mut detached = 0;
    for line in BufReader::new(dump.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        // Most of the trace consists of misses by the machine's own programs.
        let ours = line.contains("/libO2") || line.contains("/libMissing");
        if line.contains("\"lookup_failed\"") && !ours {
            continue;
        }
        let event: Value = serde_json::from_str(&line).unwrap();
        let pid = u64_of(&event["pid"]);
        match text(&event["kind"]) {
            "attach" => {
                alive.insert(pid, processes.len());
                processes.push((String::new(), 0, 0));
            }
            "fork" if event["thread"] == true => processes[alive[&pid]].1 += 1,
            "fork" => {
                let program = processes[alive[&pid]].0.clone();
                alive.insert(u64_of(&event["child_pid"]), processes.len());
                processes.push((program, 0, pid));
            }
            // Of a process that was there before: it has executed the program already.
            "exec" if event["before"] == true => {}
            "exec" => {
                let program = base_name(text(&event["argv"][0])).to_owned();
                *execs.entry(program.clone()).or_default() += 1;
                processes[alive[&pid]].0 = program;
            }
            "exit" if event["process"] == true => {
                let forker = processes[alive[&pid]].2;
                detached += u64::from(forker != 0 && forker != u64_of(&event["parent_pid"]));
            }
            "lookup_failed" => {
                let (directory, name) = text(&event["path"]).rsplit_once('/').unwrap();
                let own = Path::new(directory).strip_prefix(work);
                let prefix = ["libO2", "libMissing"].into_iter().find(|p| name.starts_with(p));
                if let (Ok(own), Some(_)) = (own, prefix) {
                    assert_eq!(event["errno"], 2, "{event}");
                    assert!(text(&event["call"]).starts_with("open"), "{event}");
                    *misses.entry(own.to_str().unwrap().to_owned()).or_default() += 1;
                }
            }
            _ => {}
        }
    }
    assert!(dump.wait().unwrap().success());
    let mut programs: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    for (program, threads, _) in &processes {
        let counts = programs.entry(program.clone()).or_default();
        counts[0] += 1;
        counts[1] += threads;
    }
    for (program, count) in &execs {
        programs.entry(program.clone()).or_default()[2] += count;
    }
    json!({
        "processes": processes.len(),
        "threads": processes.iter().map(|process| process.1).sum::<u64>(),
        "execs": execs.values().sum::<u64>(),
        "detached": detached,
        "programs": programs.into_iter().map(|(program, [processes, threads, execs])| {
            (program, json!({ "processes": processes, "threads": threads, "execs": execs }))
        }).collect::<BTreeMap<_, _>>(),
        "failed_lookups": misses,
    })
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

/// The part of a declaration that is observable in a recording.
pub(crate) fn declared(declaration: &Value) -> Value {
    let mut shown = serde_json::Map::new();
    for key in ["processes", "threads", "execs", "detached", "programs"] {
        shown.insert(key.to_owned(), declaration[key].clone());
    }
    let misses: BTreeMap<String, u64> = declaration["failed_lookups"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|misses| misses["count"] != 0)
        .map(|misses| (text(&misses["directory"]).to_owned(), u64_of(&misses["count"])))
        .collect();
    shown.insert("failed_lookups".into(), json!(misses));
    Value::Object(shown)
}
