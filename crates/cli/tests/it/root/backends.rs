//! Recording as an ordinary user, through a broker and by ptrace: the same events as by eBPF as root, and
//! payloads that are hard to trace.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::records::{assert_memory_of_files, exits};
use crate::common::stage::{Broker, Stage, USER};
use crate::common::{Events, Recorded, Recorder, header, proctrace, report, text, u64_of};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proctrace_wire::layout::Exit;
use serde_json::Value;

fn by_ptrace(options: &[&str], payload: &[&str]) -> Recorded {
    let payload: Vec<&OsStr> = payload.iter().map(OsStr::new).collect();
    Stage::new().record("ptrace", options, &payload)
}

/// Records a fixture program by ptrace.
fn fixture_by_ptrace(options: &[&str], name: &str, arguments: &[&str]) -> Recorded {
    let stage = Stage::new();
    let program = stage.fixture(name);
    let arguments = arguments.iter().map(OsStr::new);
    let payload: Vec<&OsStr> = [program.as_os_str()].into_iter().chain(arguments).collect();
    stage.record("ptrace", options, &payload)
}

/// The events of a recording without losses and contradictions.
fn sound(recorded: &Recorded, code: i32) -> Events {
    recorded.sound(code)
}

/// All births have an end, and nothing was lost.
fn complete(recorded: &Recorded, code: i32) -> Events {
    assert_eq!(recorded.code(), code, "{}", recorded.stderr());
    let header = header(&recorded.trace());
    assert_eq!(header["trailer"]["losses"], Value::Array(Vec::new()), "{}", recorded.stderr());
    let events = Events::of(&recorded.trace());
    assert_eq!(events.count("exit"), events.count("fork") + events.count("attach"));
    events
}

/// An event, without what varies between runs.
fn fact(event: &Value) -> Option<String> {
    let field = |name: &str| event[name].to_string();
    Some(match text(&event["kind"]) {
        "attach" => format!("attach {}", field("root")),
        "fork" => format!("fork {} {} {}", field("thread"), field("call"), field("flags")),
        "exec" => {
            let fields = ["path", "interpreter", "exe", "cwd", "argv", "comm", "env"].map(field);
            format!("exec {}", fields.join(" "))
        }
        "exec_failed" | "lookup_failed" => {
            let fields = ["kind", "call", "errno", "path", "flags", "dirfd"].map(field);
            fields.join(" ")
        }
        "opened" => format!("opened {} {} {}", field("call"), field("path"), field("flags")),
        "exit" => {
            let fields =
                ["process", "code", "signal", "comm", "opens", "lookups_failed", "execs_failed"];
            format!("exit {}", fields.map(field).join(" "))
        }
        "rename" => format!("rename {}", field("comm")),
        "blind" => format!("blind {}", field("what")),
        _ => return None,
    })
}

fn facts(events: &Events) -> BTreeMap<String, usize> {
    let mut facts = BTreeMap::new();
    for fact in events.0.iter().filter_map(fact) {
        *facts.entry(fact).or_default() += 1;
    }
    facts
}

/// Runs a fixture under both, in the same directory, and compares the multisets of events.
fn assert_same(options: &[&str], name: &str, arguments: &[&str], code: i32) {
    let mut stage = Stage::new();
    let broker = Broker::start(&stage, &[]);
    let program = stage.fixture(name);
    let mut of_backend = |backend: &str| {
        let payload: Vec<&OsStr> =
            [program.as_os_str()].into_iter().chain(arguments.iter().map(OsStr::new)).collect();
        let fresh = Stage {
            directory: std::mem::replace(&mut stage.directory, tempfile::tempdir().unwrap()),
            socket: broker.socket.clone(),
        };
        let recorded = fresh.record(backend, options, &payload);
        let facts = facts(&sound(&recorded, code));
        stage.directory = recorded.directory;
        // What one left behind would change what the next one does.
        for entry in fs::read_dir(stage.directory.path()).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                fs::remove_dir_all(path).unwrap();
            } else if path != program && !path.ends_with("proctrace") {
                fs::remove_file(path).unwrap();
            }
        }
        facts
    };
    let expected = of_backend("ebpf");
    assert!(expected.values().sum::<usize>() >= 3, "{expected:#?}");
    for backend in ["broker", "ptrace"] {
        let got = of_backend(backend);
        let differences: Vec<String> = expected
            .keys()
            .chain(got.keys().filter(|fact| !expected.contains_key(*fact)))
            .filter(|fact| expected.get(*fact) != got.get(*fact))
            .map(|fact| format!("{fact}: {:?}, by ebpf {:?}", got.get(fact), expected.get(fact)))
            .collect();
        assert!(differences.is_empty(), "{name} by {backend}: {differences:#?}");
    }
}

#[test]
fn a_mixture_is_recorded_as_by_ebpf() {
    assert_same(&[], "mixed", &["200"], 0);
    assert_same(&["--misses", "none"], "mixed", &["50"], 0);
    assert_same(&["--misses", "open,exec"], "mixed", &["50"], 0);
    assert_same(&["--opens"], "mixed", &["20"], 0);
}

/// Tracepoints of system calls among them, also where tracefs is not mounted.
#[test]
fn a_broker_uses_the_hooks_of_ebpf() {
    let hooks = |backend: &str| {
        let mut stage = Stage::new();
        let broker = (backend == "broker").then(|| Broker::start(&stage, &[]));
        if let Some(broker) = &broker {
            stage.socket = broker.socket.clone();
        }
        let recorded = stage.record(backend, &["--opens"], &["true".as_ref()]);
        assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
        header(&recorded.trace())["header"]["hooks"].clone()
    };
    assert_eq!(hooks("broker"), hooks("ebpf"));
}

#[test]
fn every_way_to_be_born_and_to_fail_is_recorded_as_by_ebpf() {
    assert_same(&[], "birth", &[], 0);
    assert_same(&[], "lookups", &["20"], 0);
    assert_same(&[], "misses", &["20"], 0);
    assert_same(&[], "exec_argv", &["/bin/true", "300000"], 0);
    if cfg!(target_arch = "x86_64") {
        assert_same(&[], "compat32", &[], 7);
    }
}

#[test]
fn threads_and_execs_by_threads_are_recorded_as_by_ebpf() {
    assert_same(&[], "threads", &["300"], 0);
    assert_same(&[], "thread_exec", &["/bin/true"], 0);
    assert_same(&["--misses", "none"], "thread_exec", &["/bin/true"], 0);
    // What the leader does after it has begun to end is accounted for.
    assert_same(&[], "thread_exec", &["/bin/true", "4000"], 0);
    assert_same(&[], "leader_exits", &["3", "20"], 0);
    assert_same(&[], "thread_forks", &["5", "2"], 0);
}

#[test]
fn odd_ends_are_recorded_as_by_ebpf() {
    assert_same(&[], "daemon", &["50", "10"], 0);
    assert_same(&[], "killed", &["15"], 15);
    assert_same(&[], "killed", &["9"], 9);
    assert_same(&[], "subreaper", &["10"], 0);
    assert_same(&[], "fork_only", &["40"], 0);
    assert_same(&[], "stops", &[], 0);
}

#[test]
fn searches_and_opens_are_recorded_as_by_ebpf() {
    assert_same(&[], "many_paths", &["50", "3"], 0);
    assert_same(&[], "path_search", &[], 0);
    assert_same(&[], "open_storm", &["500"], 0);
    assert_same(&["--opens"], "reopen", &["/etc/passwd", "5", "again"], 0);
    assert_same(&["--opens"], "reopen", &["/etc/passwd", "5", "once"], 0);
    assert_same(&[], "moments", &["1", "a", "b"], 0);
    assert_same(&[], "marked", &["MARK", "work"], 0);
    assert_same(&[], "cheap_calls", &["100"], 0);
}

#[test]
fn workers_and_what_they_do_are_recorded_as_by_ebpf() {
    assert_same(&[], "chain", &["12"], 7);
    assert_same(&[], "pool", &["3", "1", "1", "5", "5", "1"], 0);
    assert_same(&[], "share", &["2", "4", "5"], 0);
    assert_same(&[], "workdirs", &[".", "5", "/bin/true"], 0);
    assert_same(&[], "peak", &["5", "/bin/true"], 0);
    assert_same(&[], "large_fork", &["5", "3", "fork", "/bin/true"], 0);
    assert_same(&[], "large_fork", &["5", "3", "spawn", "/bin/true"], 0);
    assert_same(&[], "rusage", &["/bin/true"], 0);
    assert_same(&[], "timed", &["times", "/bin/true"], 0);
    assert_same(&[], "burn", &["5", "5"], 0);
    assert_same(&[], "spin_barrier", &["2", "5", "1"], 0);
    assert_same(&[], "waits", &[], 0);
}

#[test]
fn what_a_seccomp_filter_of_the_payload_answers_is_left_to_it() {
    // It exits with 3 if its own filter has worked.
    let recorded = fixture_by_ptrace(&[], "faked", &[]);
    assert_eq!(recorded.code(), 3, "{}", recorded.stderr());
}

#[test]
fn stops_are_seen_by_the_parent() {
    for misses in ["all", "none"] {
        let recorded = fixture_by_ptrace(&["--misses", misses], "stops", &[]);
        let events = sound(&recorded, 0);
        assert_eq!(events.codes(), BTreeMap::from([(0, 1), (7, 1)]));
    }
}

#[test]
fn cpu_time_agrees_with_wait4() {
    for (misses, spawned) in [("none", 5000), ("all", 500)] {
        let spawns = spawned.to_string();
        let arguments = [spawns.as_str(), "/bin/true"];
        let recorded = fixture_by_ptrace(&["--misses", misses], "spawn", &arguments);
        let events = sound(&recorded, 0);
        assert_eq!(events.forks(false).len(), spawned);
        let run_ns: u64 = events.kind("exit").map(|exit| u64_of(&exit["run_ns"])).sum();
        let payload = &header(&recorded.trace())["trailer"]["payload"];
        let kernel_ns = u64_of(&payload["user_ns"]) + u64_of(&payload["system_ns"]);
        let ratio = run_ns as f64 / kernel_ns as f64;
        assert!((ratio - 1.0).abs() < 0.01, "{run_ns} of {kernel_ns} ns: {ratio}");
    }
}

#[test]
fn tasks_that_are_killed_while_they_are_born_are_all_accounted_for() {
    for misses in ["none", "all"] {
        let recorded = fixture_by_ptrace(&["--misses", misses], "killed_births", &["300"]);
        // Of one that is killed again while it ends, the last of its CPU time is not seen, while its parent is
        // credited with all of it: a law that this test does not ask for.
        let events = complete(&recorded, 0);
        let killed = events.kind("exit").filter(|exit| exit["signal"] == 9);
        assert!(killed.filter(|exit| exit["process"] == true).count() >= 300);
    }
}

/// A process that is killed leaves children that have ended, and for which the subreaper waits.
#[test]
fn children_that_a_subreaper_waits_for_break_no_law() {
    for _ in 0..5 {
        Recorder::new().fixture("killed_births", &["20"]).sound(0);
    }
}

#[test]
fn cpu_time_of_each_process_is_that_of_ebpf() {
    // One recording within the other: both see the same processes, and neither by the other's means.
    let stage = Stage::new();
    let spawn = stage.fixture("spawn");
    let mut outer = stage.recorder("ebpf", &["--misses", "none"]);
    outer.arg("setpriv").args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    outer.arg(stage.path("proctrace")).args(["record", "--backend", "ptrace", "--misses", "none"]);
    outer.args(["--output", "inner.ptrace", "--"]).arg(spawn).args(["2000", "/bin/true", "3"]);
    let output = outer.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let times = |trace: &str| -> BTreeMap<i32, Exit> {
        exits(&stage.path(trace)).into_iter().map(|exit| (exit.tid, exit)).collect()
    };
    let (by_ebpf, by_ptrace) = (times("test.ptrace"), times("inner.ptrace"));
    assert_eq!(by_ptrace.len(), 2001);
    // The tracer of an ordinary user cannot ask whether a task has left its CPU when it has ended. One that a busy machine
    // does not let leave for long is read before, and lacks some of its last slice.
    let mut early = 0;
    for (pid, exit) in &by_ptrace {
        let (all, at_exit) = (by_ebpf[pid].run_ns, by_ebpf[pid].run_at_exit_ns);
        assert!((at_exit..=all).contains(&exit.run_ns), "{pid}: {} {at_exit} {all}", exit.run_ns);
        early += usize::from(exit.run_ns < all);
    }
    assert!(early * 20 <= by_ptrace.len(), "{early} are early");
}

/// Waits until a file has contents.
fn contents_of(path: &Path) -> String {
    let began = Instant::now();
    loop {
        let contents = fs::read_to_string(path).unwrap_or_default();
        if contents.ends_with('\n') {
            return contents;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{} is not there", path.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn start(stage: &Stage, options: &[&str], script: &str) -> Child {
    let mut command = stage.recorder("ptrace", options);
    command.args(["sh", "-c", script]).stderr(Stdio::piped()).spawn().unwrap()
}

/// Looks up, forks and executes after the file `go` is there, and writes its results to `done`.
const CONTINUES: &str = "echo started > started; while [ ! -e go ]; do sleep 0.02; done; \
     cat /no/such/file 2> /dev/null; a=$?; (exit 5); b=$?; cat /etc/passwd > /dev/null; \
     echo $a $b $? > done.new; mv done.new done";

#[test]
fn the_payload_outlives_the_recorder() {
    for misses in ["none", "all", "exec"] {
        let stage = Stage::new();
        let mut recorder = start(&stage, &["--misses", misses], CONTINUES);
        contents_of(&stage.path("started"));
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        fs::write(stage.path("go"), "").unwrap();
        assert_eq!(contents_of(&stage.path("done")), "1 5 0\n", "--misses {misses}");
    }
}

#[test]
fn the_payload_outlives_the_recording() {
    for misses in ["none", "all"] {
        let stage = Stage::new();
        let script = format!("({CONTINUES}) > /dev/null 2>&1 & sleep 0.1; exit 4");
        let options = ["--misses", misses, "--grace", "100ms"];
        let recorder = start(&stage, &options, &script);
        let output = recorder.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(4));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("still running at the end"), "{said}");
        fs::write(stage.path("go"), "").unwrap();
        assert_eq!(contents_of(&stage.path("done")), "1 5 0\n", "--misses {misses}");
    }
}

#[test]
fn signals_are_passed_on() {
    for (signal, code) in [(Signal::SIGINT, 9), (Signal::SIGTERM, 8)] {
        let stage = Stage::new();
        let script = "trap 'exit 9' INT; trap 'exit 8' TERM; echo started > started; \
             while :; do sleep 0.02; done";
        let recorder = start(&stage, &[], script);
        contents_of(&stage.path("started"));
        kill(Pid::from_raw(recorder.id().cast_signed()), signal).unwrap();
        let output = recorder.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
    }
}

#[test]
fn what_a_tracer_of_the_payload_takes_over_is_let_go_and_said() {
    let script = "cat /proctrace-missing; /bin/true; exit 7";
    for (options, lets_go) in [(&[][..], "sh"), (&["--misses", "none"], "strace")] {
        let recorded = by_ptrace(options, &["strace", "-f", "-o", "/dev/null", "sh", "-c", script]);
        assert_eq!(recorded.code(), 7, "{}", recorded.stderr());
        let says = "left to a debugger or tracer of the command";
        assert!(recorded.stderr().contains(says), "{}", recorded.stderr());
        let events = Events::of(&recorded.trace());
        assert!(events.kind("blind").all(|blind| blind["what"] == "let_go"));
        assert!(events.count("blind") > 0, "{lets_go}");
        // Nothing is invented about it: it has no end, and what it ran is not there.
        assert_eq!(events.count("exec"), 1);
        let check = proctrace().arg("check").arg(recorded.trace()).output().unwrap();
        assert_eq!(check.status.code(), Some(0), "{}", String::from_utf8_lossy(&check.stdout));
        let findings = report(&recorded.trace());
        assert_eq!(findings["blind_spots"][0]["what"], "let_go");
        assert_eq!(findings["summary"]["alive_processes"], 0);
        let known = findings["known"].as_array().unwrap();
        let of = |name: &str| known.iter().find(|one| one["quantity"] == name).unwrap();
        assert_eq!(of("forks")["state"], "lower_bound");
    }
}

/// A filter from before the recording has a listener, of which there is one: nothing can be let go. Whoever was to be is
/// refused, as by the kernel, and goes on as if nothing had been tried.
#[test]
fn what_cannot_be_let_go_is_refused_and_goes_on() {
    let stage = Stage::new();
    let mut below = stage.as_user(stage.fixture("listened"));
    below.current_dir(stage.path("")).arg(stage.path("proctrace"));
    below.args(["record", "--backend", "ptrace", "--output", "test.ptrace", "--", "sh", "-c"]);
    below.arg(
        "strace -o /dev/null true; sleep 2 & gdb -nx -batch -p $!; wait $!; echo sleep $?; \
         cat /proctrace-missing; echo cat $?",
    );
    let output = below.output().unwrap();
    let recorded = Recorded { directory: stage.directory, output };
    let said = String::from_utf8_lossy(&recorded.output.stdout).into_owned();
    assert!(said.contains("sleep 0\ncat 1\n"), "{said} {}", recorded.stderr());
    assert!(recorded.stderr().contains("PTRACE_TRACEME: Operation not permitted"));
    assert!(recorded.stderr().contains("by a debugger, was refused several times"));
    let events = sound(&recorded, 0);
    assert!(events.kind("blind").all(|blind| blind["what"] == "refused_tracer"));
    // The interrupted sleep lasts as long as it was to.
    let sleep = events.kind("exec").find(|exec| exec["argv"][1] == "2").unwrap();
    let end = events.end_of(&sleep["pid"]);
    assert!(u64_of(&end["time_ns"]) - u64_of(&sleep["time_ns"]) >= 1_990_000_000);
}

#[test]
fn children_that_want_no_tracer_are_recorded_and_work() {
    for how in ["clone", "clone3"] {
        let recorded = fixture_by_ptrace(&[], "untraced", &[how]);
        assert_eq!(recorded.output.stdout, b"cat\n", "{how}: {}", recorded.stderr());
        let events = recorded.sound(0);
        assert_eq!(events.forks(false).len(), 1, "{how}");
        assert_eq!(events.count("exec"), 2, "{how}");
    }
}

#[test]
fn a_program_that_looks_for_leaks_ends_as_without_a_tracer() {
    let stage = Stage::new();
    let (source, program) = (stage.path("leak.c"), stage.path("leak"));
    fs::write(&source, "#include <stdlib.h>\n#include <stdio.h>\nint main(void) { free(malloc(3)); puts(\"done\"); return 7; }\n").unwrap();
    let mut cc = std::process::Command::new("cc");
    let built = cc.args(["-fsanitize=address", "-o"]).args([&program, &source]).status().unwrap();
    assert!(built.success(), "the test needs a compiler with AddressSanitizer");
    for options in [&[][..], &["--misses", "none"]] {
        let mut command = stage.recorder("ptrace", options);
        // Options of the user's are kept.
        let output = command.arg(&program).env("LSAN_OPTIONS", "verbosity=0").output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        assert_eq!(output.stdout, b"done\n");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("no leak checks (LSan)"), "{said}");
    }
}

#[test]
fn set_user_id_programs_get_no_privileges_and_that_is_said() {
    let stage = Stage::new();
    let id = stage.copy(Path::new("/usr/bin/id"), "id", 0o4755);
    let bare = stage.as_user(&id).arg("-u").output().unwrap();
    assert_eq!(bare.stdout, b"0\n", "the test needs a file system with set-user-ID");
    let recorded = stage.record("ptrace", &["--misses", "none"], &[id.as_ref(), "-u".as_ref()]);
    assert_eq!(recorded.output.stdout, format!("{USER}\n").into_bytes());
    assert!(recorded.stderr().contains("no set-user-ID"), "{}", recorded.stderr());
}

#[test]
fn only_a_filter_takes_the_right_to_gain_privileges() {
    let says = |misses: &str| {
        let recorded = by_ptrace(&["--misses", misses], &["cat", "/proc/self/status"]);
        let status = String::from_utf8(recorded.output.stdout.clone()).unwrap();
        let line = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().to_owned()
        };
        (line("NoNewPrivs:"), line("Seccomp:"))
    };
    assert_eq!(says("none"), ("0".to_owned(), "0".to_owned()));
    assert_eq!(says("all"), ("1".to_owned(), "2".to_owned()));
}

#[test]
fn the_best_backend_is_taken() {
    let backend_of = |backend: &str, user: u32| {
        let mut stage = Stage::new();
        let broker = (backend == "broker").then(|| Broker::start(&stage, &[]));
        if let Some(broker) = &broker {
            stage.socket.clone_from(&broker.socket);
        }
        let mut command = stage.recorder("auto", &[]);
        command.uid(user).gid(user);
        let output = command.arg("true").output().unwrap();
        let recorded = Recorded { directory: stage.directory, output };
        assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
        assert_eq!(header(&recorded.trace())["header"]["backend"], backend);
        assert_eq!(recorded.stderr().contains("by ptrace"), backend == "ptrace");
        assert_eq!(recorded.stderr().contains("by the broker"), backend == "broker");
    };
    backend_of("broker", USER);
    backend_of("ptrace", USER);
    backend_of("ebpf", 0);
}

#[test]
fn what_cannot_be_honoured_is_refused() {
    let refused = |arguments: &[&str], says: &str| {
        let stage = Stage::new();
        let mut command = stage.as_user(stage.path("proctrace"));
        let output = command.arg("record").args(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(125), "{said}");
        assert!(said.contains(says), "{said}");
    };
    refused(&["--backend", "ptrace", "-p", "1"], "running processes");
    refused(&["--backend", "ptrace", "-a", "--duration", "1s"], "the whole machine");
    refused(&["--backend", "ptrace", "--lookup-hook", "fexit", "true"], "hooks");
    refused(&["--backend", "ebpf", "true"], "does not allow this user to use BPF");
    refused(&["-a", "--duration", "1s"], "does not allow this user to use BPF");
}

#[test]
fn what_is_not_known_is_declared_absent() {
    let recorded = by_ptrace(&["--misses", "open"], &["true"]);
    let header = header(&recorded.trace());
    let knows = |quantity: &str| {
        let knowledge = &header["header"]["knowledge"][quantity];
        knowledge.as_str().map_or_else(
            || knowledge.as_object().unwrap().keys().next().unwrap().clone(),
            str::to_owned,
        )
    };
    for exact in ["forks", "execs", "argv", "cpu", "faults", "io", "lookups_open", "peak_rss"] {
        assert_eq!(knows(exact), "exact", "{exact}");
    }
    for absent in
        ["waits", "signals", "split", "switches", "lookup_times", "lookups_stat", "opened_files"]
    {
        assert_eq!(knows(absent), "absent", "{absent}");
    }
}

#[test]
fn memory_of_files_is_told_from_other_memory() {
    assert_memory_of_files(&fixture_by_ptrace(&[], "mapped", &["40"]));
}

#[test]
fn what_a_process_has_read_and_written_is_known() {
    let script = "head -c 100000 /dev/zero > zeros; cat zeros > /dev/null";
    let recorded = by_ptrace(&["--misses", "none"], &["sh", "-c", script]);
    let events = complete(&recorded, 0);
    let exits: Vec<&Value> = events.kind("exit").collect();
    assert_eq!(exits.len(), 3);
    assert!(exits.iter().all(|exit| exit.get("withheld").is_none()), "{exits:?}");
    let of = |name: &str| *exits.iter().find(|exit| exit["comm"] == name).unwrap();
    assert_eq!(of("head")["wchar"], 100_000);
    assert_eq!(of("cat")["wchar"], 100_000);
    assert!(of("cat")["rchar"].as_u64().unwrap() >= 100_000, "{}", of("cat"));
    // Not zero, but not known.
    assert!(exits.iter().all(|exit| exit["user_ns"].is_null() && exit["system_ns"].is_null()));
}
