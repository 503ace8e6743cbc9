//! The same deterministic payload under `strace -f` and proctrace: equal forks, execs, failed
//! execs, exits and failed look-ups.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Events, Recorder, fixture, text, u64_of};
use proctrace_wire::escape::to_bytes;

/// Rounds of the payload: each creates two processes, a thread, and 0.25 additional processes.
const ROUNDS: &str = "2300";

/// An event, without the pids and times that vary between runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Fact {
    Process,
    Thread,
    Exec(Vec<u8>, Vec<Vec<u8>>),
    ExecFailed(Vec<u8>, u64),
    Code(u64),
    Signal(u64),
    LookupFailed(String, Vec<u8>, u64),
    Opened,
}

/// Path look-up calls, except exec.
const LOOKUPS: &[&str] = &[
    "open",
    "openat",
    "openat2",
    "creat",
    "stat",
    "lstat",
    "newfstatat",
    "statx",
    "access",
    "faccessat",
    "faccessat2",
    "readlink",
    "readlinkat",
    "chdir",
];

type Facts = BTreeMap<Fact, usize>;

#[test]
fn strace_sees_the_same() {
    let program = fixture("mixed");
    let expected = under_strace(&program);
    let recorded = Recorder::new().run([program.as_os_str(), ROUNDS.as_ref()]);
    let got = of_events(&recorded.sound(0));

    let processes = expected[&Fact::Process];
    assert!(processes >= 5_000, "{processes} processes are too few to mean anything");
    assert!(expected[&Fact::Thread] >= 2_000);
    let calls: std::collections::BTreeSet<&str> = expected
        .keys()
        .filter_map(|fact| match fact {
            Fact::LookupFailed(call, ..) => Some(&**call),
            _ => None,
        })
        .collect();
    assert!(calls.len() >= 10, "the payload fails by {calls:?} only");
    let differences: Vec<String> = expected
        .keys()
        .chain(got.keys())
        .filter(|fact| expected.get(fact) != got.get(fact))
        .map(|fact| format!("{fact:?}: strace {:?}, us {:?}", expected.get(fact), got.get(fact)))
        .collect();
    assert!(
        differences.is_empty(),
        "{} differences, the first: {:#?}",
        differences.len(),
        &differences[..differences.len().min(20)]
    );
}

fn of_events(events: &Events) -> Facts {
    let mut facts = Facts::new();
    let mut add = |fact: Fact, count: usize| *facts.entry(fact).or_default() += count;
    for event in &events.0 {
        match text(&event["kind"]) {
            "fork" if event["thread"] == true => add(Fact::Thread, 1),
            "fork" => add(Fact::Process, 1),
            "exec" => {
                let argv = event["argv"].as_array().unwrap();
                let argv = argv.iter().map(|argument| to_bytes(text(argument))).collect();
                add(Fact::Exec(to_bytes(text(&event["path"])), argv), 1);
            }
            "exec_failed" => {
                add(Fact::ExecFailed(to_bytes(text(&event["path"])), u64_of(&event["errno"])), 1);
            }
            "lookup_failed" => {
                let path = to_bytes(text(&event["path"]));
                let call = text(&event["call"]).to_owned();
                add(Fact::LookupFailed(call, path, u64_of(&event["errno"])), 1);
            }
            "exit" => {
                match event.get("code") {
                    Some(code) => add(Fact::Code(u64_of(code)), 1),
                    None => add(Fact::Signal(u64_of(&event["signal"])), 1),
                }
                let opens = usize::try_from(u64_of(&event["opens"])).unwrap();
                if opens > 0 {
                    add(Fact::Opened, opens);
                }
            }
            _ => {}
        }
    }
    facts
}

/// Runs the payload under strace with a log per task, which keeps each call on one line.
fn under_strace(program: &Path) -> Facts {
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new("strace")
        .args(["-ff", "-xx", "-s", "65535"])
        .args([
            "-e",
            &format!("trace=execve,execveat,fork,vfork,clone,clone3,{}", LOOKUPS.join(",")),
        ])
        .arg("-o")
        .arg(directory.path().join("log"))
        .arg(program)
        .arg(ROUNDS)
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .expect("strace is here: cargo xtask setup");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut facts = Facts::new();
    for log in fs::read_dir(directory.path()).unwrap() {
        for line in fs::read_to_string(log.unwrap().path()).unwrap().lines() {
            if let Some(fact) = of_line(line) {
                *facts.entry(fact).or_default() += 1;
            }
        }
    }
    facts
}

/// Parses a line of strace's log.
fn of_line(line: &str) -> Option<Fact> {
    if let Some(rest) = line.strip_prefix("+++ exited with ") {
        return Some(Fact::Code(rest.split(' ').next()?.parse().ok()?));
    }
    if let Some(rest) = line.strip_prefix("+++ killed by ") {
        let signal = match rest.split(' ').next()? {
            "SIGTERM" => 15,
            other => panic!("the payload is not killed by {other}"),
        };
        return Some(Fact::Signal(signal));
    }
    if line.starts_with("--- ") {
        return None; // a signal arriving
    }
    let (call, rest) = line.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let error = result.strip_prefix("-1 ").map(|error| errno(error.split(' ').next().unwrap()));
    let mut strings = strings(arguments).into_iter();
    Some(match (call, error) {
        ("fork" | "vfork" | "clone" | "clone3", None) => {
            if arguments.contains("CLONE_THREAD") {
                Fact::Thread
            } else {
                Fact::Process
            }
        }
        ("execve" | "execveat", None) => Fact::Exec(strings.next()?, strings.collect()),
        ("execve" | "execveat", Some(error)) => Fact::ExecFailed(strings.next()?, error),
        ("open" | "openat" | "openat2" | "creat", None) => Fact::Opened,
        (call, None) if LOOKUPS.contains(&call) => return None,
        (call, Some(error)) if LOOKUPS.contains(&call) => {
            Fact::LookupFailed(call.to_owned(), strings.next()?, error)
        }
        other => panic!("a line that makes no sense: {other:?}: {line}"),
    })
}

/// The strings in arguments, which -xx prints in hexadecimal.
fn strings(arguments: &str) -> Vec<Vec<u8>> {
    arguments
        .split('"')
        .skip(1)
        .step_by(2)
        .map(|hex| {
            hex.split("\\x").skip(1).map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
        })
        .collect()
}

fn errno(name: &str) -> u64 {
    match name {
        "ENOENT" => 2,
        "EACCES" => 13,
        "EINVAL" => 22,
        "ENOTDIR" => 20,
        other => panic!("the payload does not meet {other}"),
    }
}
