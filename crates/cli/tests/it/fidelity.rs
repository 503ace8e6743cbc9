//! Recordings of single-purpose programs, compared with their declarations.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::common::records::assert_agrees;
use crate::common::{Events, Recorder, fixture, header, report, text, u64_of};
use proctrace_wire::escape::to_bytes;
use serde_json::{Value, json};

const CLONE_VM: u64 = 0x100;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_PARENT: u64 = 0x8000;
const CLONE_THREAD: u64 = 0x10000;

#[test]
fn a_fork_without_exec_goes_on_as_its_parent() {
    let recorded = Recorder::new().fixture("fork_only", &["70"]);
    let events = recorded.sound(0);
    assert_eq!(events.forks(false).len(), 70);
    assert_eq!(events.count("exec"), 1);
    // ten of each code from 0 to 6, and the root's own 0
    let expected: BTreeMap<i64, usize> =
        (0..7).map(|code| (code, if code == 0 { 11 } else { 10 })).collect();
    assert_eq!(events.codes(), expected);
    let findings = report(&recorded.trace());
    let categories = findings["categories"].as_array().unwrap();
    assert_eq!(categories.len(), 1);
    assert_eq!(categories[0]["processes"], 71);
    assert_eq!(categories[0]["forked"], 70);
}

#[test]
fn threads_are_no_processes() {
    let events = Recorder::new().fixture("threads", &["13"]).sound(0);
    let root = &events.root()["pid"];
    assert_eq!(events.forks(false).len(), 0);
    let threads = events.forks(true);
    assert_eq!(threads.len(), 13);
    for thread in threads {
        assert_eq!(&thread["child_pid"], root);
        assert_ne!(thread["child_tid"], *root);
        assert_ne!(u64_of(&thread["flags"]) & CLONE_THREAD, 0);
        let exits: Vec<&Value> =
            events.kind("exit").filter(|exit| exit["tid"] == thread["child_tid"]).collect();
        assert_eq!(exits.len(), 1);
        assert_eq!(exits[0]["process"], false);
    }
    assert_eq!(events.end_of(root)["code"], 0);
}

#[test]
fn every_way_to_be_born_is_told_apart() {
    let events = Recorder::new().fixture("birth", &[]).sound(0);
    let root = events.root();
    let forks: Vec<&Value> = events.kind("fork").collect();
    let calls: Vec<&str> = forks.iter().map(|fork| text(&fork["call"])).collect();
    // The call that glibc uses for a thread depends on its version.
    assert_eq!(calls[..5], ["fork", "vfork", "clone", "clone3", "clone"]);
    assert!(["clone", "clone3"].contains(&calls[5]));
    let flags: Vec<u64> = forks.iter().map(|fork| u64_of(&fork["flags"])).collect();
    assert_eq!(flags[0], 0);
    assert_eq!(flags[1], CLONE_VM | CLONE_VFORK);
    assert_eq!(flags[4], CLONE_PARENT);
    assert_ne!(flags[5] & CLONE_THREAD, 0);
    // With CLONE_PARENT the forker and the parent differ.
    for fork in &forks[..4] {
        assert_eq!(fork["parent_pid"], root["pid"]);
    }
    assert_eq!(forks[4]["pid"], root["pid"]);
    assert_eq!(forks[4]["parent_pid"], root["parent_pid"]);
    for (fork, code) in forks[..5].iter().zip(1..) {
        assert_eq!(events.end_of(&fork["child_pid"])["code"], code);
    }
}

#[test]
fn an_exec_by_a_thread_is_the_process_own() {
    let events = Recorder::new().fixture("thread_exec", &["/bin/true"]).sound(0);
    let root = &events.root()["pid"];
    let thread = events.forks(true)[0];
    let execs: Vec<&Value> = events.kind("exec").collect();
    assert_eq!(execs.len(), 2);
    assert_eq!(execs[1]["path"], "/bin/true");
    assert_eq!(execs[1]["pid"], *root);
    assert_eq!(execs[1]["tid"], *root);
    assert_eq!(execs[1]["old_tid"], thread["child_tid"]);
    // Two tasks, two exits, but one end of a process.
    assert_eq!(events.count("exit"), 2);
    assert_eq!(events.end_of(root)["code"], 0);
}

#[test]
fn a_daemon_is_followed_to_its_end() {
    let recorded = Recorder::new().fixture("daemon", &["200", "120"]);
    let events = recorded.sound(0);
    let daemon = events.kind("exit").find(|exit| exit["code"] == 7).expect("the daemon's exit");
    assert!(u64_of(&daemon["run_ns"]) >= 120_000_000, "{daemon}");
    let findings = report(&recorded.trace());
    let summary = &findings["summary"];
    assert_eq!(summary["detached_processes"], 1);
    // The CPU time reported by wait(2), as `time` would print it, excludes it.
    assert!(u64_of(&summary["waited_cpu_ns"]) < 60_000_000, "{summary}");
    assert!(u64_of(&summary["unwaited_cpu_ns"]) >= 120_000_000, "{summary}");
    assert!(u64_of(&summary["cpu_ns"]) >= 120_000_000, "{summary}");
}

#[test]
fn what_is_left_behind_is_listed() {
    let recorded = Recorder::new().option(["--wait", "root"]).fixture("daemon", &["3000", "0"]);
    assert_eq!(recorded.code(), 0);
    assert!(recorded.stderr().contains("still running"), "{}", recorded.stderr());
    let events = Events::of(&recorded.trace());
    let last: Vec<&Value> = events.kind("sample").filter(|s| s["final"] == true).collect();
    assert_eq!(last.len(), 1, "{last:?}");
    assert!(recorded.stderr().contains(&format!("(pid {})", last[0]["pid"])));
    let findings = report(&recorded.trace());
    assert_eq!(findings["summary"]["alive_processes"], 1);
    crate::common::assert_laws_hold(&findings["health"]);
    assert_eq!(header(&recorded.trace())["trailer"]["ended"], "root_exited");
}

#[test]
fn death_by_signal_keeps_the_core_flag() {
    for signal in [9, 11, 15] {
        // The fixture exits with the low byte of its waitpid(2) status.
        let recorded = Recorder::new().fixture("killed", &[&signal.to_string()]);
        let told = recorded.code();
        let events = recorded.sound(told);
        let child = &events.forks(false)[0]["child_pid"];
        let end = events.end_of(child);
        assert_eq!(end["signal"], signal);
        assert_eq!(end.get("code"), None);
        assert_eq!(told & 0x7f, signal);
        assert_eq!(end["core"], told & 0x80 != 0, "{end}");
    }
}

#[test]
fn a_search_for_a_program_leaves_its_failures() {
    let events = Recorder::new().fixture("path_search", &[]).sound(0);
    let failed: Vec<&Value> = events.kind("exec_failed").collect();
    let found: Vec<(&str, &str, u64)> =
        failed.iter().map(|f| (text(&f["call"]), text(&f["path"]), u64_of(&f["errno"]))).collect();
    assert_eq!(
        found,
        [
            ("execve", "no/such/wanted", 2),
            ("execve", "plain", 13),
            ("execve", "garbage", 8),
            ("execveat", "not-there", 2),
        ]
    );
    assert_eq!(failed[0]["dirfd"], -100);
    assert!(failed[3]["dirfd"].as_i64().unwrap() >= 3);
    assert_eq!(failed[3]["flags"], 0x100); // AT_SYMLINK_NOFOLLOW
    assert_eq!(failed[0]["pid"], events.root()["pid"]);
}

/// The arguments built by exec_argv.
fn arguments(program: &str, bytes: usize) -> Vec<Vec<u8>> {
    let mut arguments = vec![program.as_bytes().to_vec()];
    let mut left = bytes;
    while left > 0 {
        let at = arguments.len();
        let length = left.min(100_000);
        arguments.push((0..length).map(|i| b'a' + ((i + at) % 26) as u8).collect());
        left -= length;
    }
    arguments.push((1..=255).collect());
    arguments.push(Vec::new());
    arguments.push(b"end".to_vec());
    arguments
}

#[test]
fn arguments_are_whole_whatever_their_length_and_bytes() {
    for bytes in [0, 1, 16_000, 16_384, 131_072, 1_500_000] {
        let events =
            Recorder::new().fixture("exec_argv", &["/bin/true", &bytes.to_string()]).sound(0);
        let exec = events.kind("exec").last().unwrap();
        let argv: Vec<Vec<u8>> =
            exec["argv"].as_array().unwrap().iter().map(|a| to_bytes(text(a))).collect();
        assert!(argv == arguments("/bin/true", bytes), "{bytes} bytes");
        assert_eq!(exec.get("argv_truncated"), None);
    }
}

#[test]
fn arguments_beyond_the_cap_are_cut_and_flagged() {
    // More than 2 MiB of arguments require a larger stack limit.
    let program = fixture("exec_argv");
    let script = format!("ulimit -s unlimited; exec {} /bin/true 2500000", program.display());
    let recorded = Recorder::new().run(["sh", "-c", &script]);
    let events = recorded.sound(0);
    let exec = events.kind("exec").last().unwrap();
    assert_eq!(exec["path"], "/bin/true");
    assert_eq!(exec["argv_truncated"], true);
    let argv: Vec<Vec<u8>> =
        exec["argv"].as_array().unwrap().iter().map(|a| to_bytes(text(a))).collect();
    let bytes: usize = argv.iter().map(|argument| argument.len() + 1).sum();
    let cap = proctrace_wire::layout::ARGV_MAX as usize;
    // The last argument is truncated, so its NUL is added by proctrace.
    assert!((cap..=cap + 1).contains(&bytes), "{bytes} bytes against a cap of {cap}");
    let expected = arguments("/bin/true", 2_500_000);
    assert!(argv[..argv.len() - 1] == expected[..argv.len() - 1]);
}

#[test]
fn failed_opens_have_call_path_errno_and_flags() {
    let recorded = Recorder::new().fixture("misses", &["400"]);
    let events = recorded.sound(0);
    let mut by_call: BTreeMap<&str, usize> = BTreeMap::new();
    for miss in events.kind("lookup_failed").filter(|miss| miss["errno"] == 2) {
        if miss["path"].as_str().is_some_and(|path| path.starts_with("/no/such/")) {
            *by_call.entry(text(&miss["call"])).or_default() += 1;
        }
    }
    assert_eq!(
        by_call,
        BTreeMap::from([("creat", 100), ("open", 100), ("openat", 100), ("openat2", 100)])
    );
    let with = |errno: i32| -> Vec<&Value> {
        events.kind("lookup_failed").filter(|miss| miss["errno"] == errno).collect()
    };
    assert_eq!(with(20)[0]["path"], "/proc/self/status/x");
    assert_eq!(with(40)[0]["path"], "/proc/self/exe");
    // EFAULT: there is no path to record.
    assert_eq!(with(14).len(), 1);
    assert_eq!(with(14)[0]["path"], Value::Null);
    let first = events.kind("lookup_failed").find(|miss| miss["call"] == "openat2").unwrap();
    assert_eq!(first["flags"], 0o2000000); // O_CLOEXEC, out of struct open_how
    // three of its own, and those of the loader
    assert!(u64_of(&events.end_of(&events.root()["pid"])["opens"]) >= 3);
}

#[test]
fn peak_memory_is_the_programs_own() {
    let recorded = Recorder::new().fixture("peak", &["300", "/bin/true"]);
    let events = recorded.sound(0);
    let own = u64_of(&events.end_of(&events.root()["pid"])["maxrss_bytes"]);
    assert!(own > 300_000_000, "{own}");
    let child = u64_of(&events.end_of(&events.forks(false)[0]["child_pid"])["maxrss_bytes"]);
    assert!(child < 20_000_000, "{child}");
    // The kernel's value for the same child, obtained by its parent.
    let waited = header(&recorded.trace())["trailer"]["payload"]["maxrss_bytes"].clone();
    assert!(u64_of(&waited) > 300_000_000, "{waited}");
}

#[test]
fn search_variables_are_kept_and_secrets_are_not() {
    let recorded = Recorder::new()
        .env("LD_LIBRARY_PATH", "/opt/one:/opt/two")
        .env("SECRET_TOKEN", "do-not-record-me")
        .env("MY_DATA", "/data")
        .env("MY_DATA_TOO", "longer name, same beginning")
        .option(["--env", "MY_DATA"])
        .run(["env", "-u", "LD_LIBRARY_PATH", "/bin/true"]);
    let events = recorded.sound(0);
    let environments: Vec<&Value> = events.kind("exec").map(|exec| &exec["env"]).collect();
    assert_eq!(environments.len(), 2);
    assert_eq!(environments[0]["LD_LIBRARY_PATH"], "/opt/one:/opt/two");
    assert_eq!(environments[1].get("LD_LIBRARY_PATH"), None);
    for environment in environments {
        assert_eq!(environment["MY_DATA"], "/data");
        assert!(environment["PATH"].is_string());
        let names: Vec<&String> = environment.as_object().unwrap().keys().collect();
        assert!(names.len() <= 3, "{names:?}");
    }
    // Neither in the printed arguments nor anywhere in the records.
    let dump = events.0.iter().map(Value::to_string).collect::<String>();
    assert!(!dump.contains("do-not-record-me") && !dump.contains("same beginning"));

    let none = Recorder::new().option(["--no-env"]).run(["/bin/true"]).sound(0);
    assert_eq!(none.kind("exec").next().unwrap().get("env"), None);
}

#[test]
fn a_script_has_an_interpreter_and_a_place() {
    let recorder = Recorder::new();
    let script = recorder.directory.path().join("job.sh");
    fs::write(&script, "#!/bin/sh -e\ncd /usr/lib\n./../bin/env true\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let events = recorder.run(["./job.sh", "argument"]).sound(0);
    let execs: Vec<&Value> = events.kind("exec").collect();
    assert_eq!(execs[0]["path"], "./job.sh");
    assert_eq!(execs[0]["interpreter"], "/bin/sh");
    assert_eq!(execs[0]["argv"], json!(["/bin/sh", "-e", "./job.sh", "argument"]));
    assert_eq!(execs[1]["path"], "./../bin/env");
    assert_eq!(execs[1]["cwd"], "/usr/lib");
    assert_eq!(execs[1]["exe"], "/usr/bin/env");
    assert_eq!(execs[1]["interpreter"], Value::Null);
}

#[test]
fn a_deep_directory_is_told_whole() {
    let recorder = Recorder::new();
    let deep = recorder.directory.path().join(["a-rather-long-name-of-a-directory"; 30].join("/"));
    fs::create_dir_all(&deep).unwrap();
    let script = format!("cd {} && exec /bin/true", deep.display());
    let events = recorder.run(["sh", "-c", &script]).sound(0);
    let exec = events.kind("exec").last().unwrap();
    assert_eq!(text(&exec["cwd"]), deep.to_str().unwrap());
    assert_eq!(exec.get("path_truncated"), None);
}

/// Length and name of a directory are two reads, between which a rename may come: what is behind a short name in
/// memory is no part of it.
#[test]
fn names_that_change_while_they_are_read_are_not_mixed_up() {
    let recorded = Recorder::new().fixture("renamed_dir", &["2000", "/bin/true"]);
    let events = recorded.sound(0);
    let place = recorded.directory.path().to_str().unwrap();
    let names = ["d".to_owned(), "d".repeat(200)].map(|name| format!("{place}/{name}"));
    let (mut seen, mut cut) = ([0, 0], 0);
    for exec in events.kind("exec").filter(|exec| exec["path"] == "/bin/true") {
        match names.iter().position(|name| *name == text(&exec["cwd"])) {
            Some(at) => seen[at] += 1,
            None if exec["path_truncated"] == true => cut += 1,
            None => panic!("{exec}"),
        }
    }
    assert_eq!(seen[0] + seen[1] + cut, 2000);
    assert!(seen[0] > 0 && seen[1] > 0 && cut < 1000, "{seen:?} {cut}");
}

#[test]
fn what_others_use_of_the_machine_is_known() {
    let mut other = Command::new(fixture("burn")).args(["600000", "0"]).spawn().unwrap();
    // CPU time by the scheduler's own account, which is no part of the clock ticks of /proc/stat.
    let used = format!("read ns rest < /proc/{}/schedstat; echo $ns", other.id());
    let recorded = Recorder::new().run(["sh", "-c", &format!("{used}; sleep 2; {used}")]);
    other.kill().unwrap();
    other.wait().unwrap();
    recorded.sound(0);
    let said = String::from_utf8(recorded.output.stdout.clone()).unwrap();
    let used_ns: Vec<u64> = said.lines().map(|line| line.parse().unwrap()).collect();
    let machine = header(&recorded.trace())["trailer"]["machine"].clone();
    let percent = report(&recorded.trace())["summary"]["others_percent"].as_f64().unwrap();
    let least = 100.0 * (used_ns[1] - used_ns[0]) as f64 / u64_of(&machine["all_ns"]) as f64;
    assert!((0.8 * least..=100.0).contains(&percent), "{percent} {least}: {machine}");
    assert!(least > 5.0, "{least}");
}

mod root {
    use super::*;

    #[test]
    fn what_sleeps_costs_no_samples() {
        let events = Recorder::new().option(["--interval", "5ms"]).run(["sleep", "0.5"]).sound(0);
        let sleeps = |wait: &&Value| wait["waits_for"] == "timer";
        let sleep = events.kind("wait").find(sleeps).unwrap();
        let meanwhile = u64_of(&sleep["since_ns"])..u64_of(&sleep["woken_ns"]);
        let count = |kind: &str| {
            let times = events.kind(kind).map(|event| u64_of(&event["time_ns"]));
            times.filter(|time_ns| meanwhile.contains(time_ns)).count()
        };
        assert!(count("tick") > 10, "{}", count("tick"));
        // That it sleeps is a change.
        assert!(count("sample") <= 1, "{}", count("sample"));
    }

    #[test]
    fn every_spawned_process_has_a_fork_an_exec_and_an_exit() {
        let recorded = Recorder::new().fixture("spawn", &["50", "/bin/true"]);
        let events = recorded.sound(0);
        let root = &events.root()["pid"];
        assert_eq!(events.forks(false).len(), 50);
        assert_eq!(events.forks(true).len(), 0);
        assert_eq!(events.count("exec"), 51);
        assert_eq!(events.codes(), BTreeMap::from([(0, 51)]));
        for fork in events.forks(false) {
            assert_eq!(&fork["pid"], root);
            let child = &fork["child_pid"];
            let exec = events.kind("exec").find(|exec| exec["pid"] == *child).unwrap();
            assert_eq!(exec["path"], "/bin/true");
            assert_eq!(exec["argv"], json!(["/bin/true"]));
            assert_eq!(text(&exec["cwd"]), recorded.directory.path().to_str().unwrap());
            assert!(text(&exec["exe"]).ends_with("/bin/true"), "{exec}");
            let end = events.end_of(child);
            assert!(u64_of(&fork["time_ns"]) <= u64_of(&exec["time_ns"]));
            assert!(u64_of(&exec["time_ns"]) <= u64_of(&end["time_ns"]));
            assert!(u64_of(&end["run_ns"]) > 0);
            assert_eq!(u64_of(&end["run_ns"]), u64_of(&end["user_ns"]) + u64_of(&end["system_ns"]));
        }
    }

    // By another process, through /proc.
    #[test]
    fn renames_are_told_but_not_those_by_exec() {
        let events = Recorder::new().fixture("rename", &[]).sound(0);
        let root = &events.root()["pid"];
        let names: Vec<(bool, &str)> = events
            .kind("rename")
            .map(|rename| (rename["tid"] == *root, text(&rename["comm"])))
            .collect();
        assert_eq!(names, [(true, "worker_1"), (true, r"caf\xe9"), (false, "helper")]);
    }

    #[test]
    fn samples_follow_what_runs() {
        let recorded =
            Recorder::new().option(["--interval", "20ms"]).fixture("burn", &["300", "200"]);
        let events = recorded.sound(0);
        let samples: Vec<&Value> = events.kind("sample").collect();
        assert!(samples.len() >= 5, "{} samples", samples.len());
        let run: Vec<u64> = samples.iter().map(|sample| u64_of(&sample["run_ns"])).collect();
        assert!(run.is_sorted(), "{run:?}");
        let end = events.end_of(&events.root()["pid"]);
        assert!(*run.last().unwrap() <= u64_of(&end["run_ns"]));
        // At its start it may be waiting for its own pages; after its end, until it is waited for, it is a zombie.
        let (start_ns, end_ns) = (50_000_000, u64_of(&end["time_ns"]));
        let started = samples.iter().filter(|sample| {
            u64_of(&sample["run_ns"]) > start_ns && u64_of(&sample["time_ns"]) < end_ns
        });
        for sample in started.clone() {
            assert_eq!(sample["state"], "R");
            assert!(u64_of(&sample["rss_bytes"]) > 100_000);
        }
        assert!(started.count() >= 3, "{samples:?}");
        // A tick for every pass, even without changes.
        assert!(events.count("tick") >= samples.len());
        assert!(events.kind("tick").all(|tick| tick["tasks"] == 1));
        // The division is tested in split.rs.
        let (user, system) = (u64_of(&end["user_ns"]), u64_of(&end["system_ns"]));
        assert!(user + system >= 500_000_000, "{user} {system}");
        let usage = header(&recorded.trace())["trailer"]["payload"].clone();
        let kernels = u64_of(&usage["user_ns"]) + u64_of(&usage["system_ns"]);
        assert_eq!(user + system, u64_of(&end["run_ns"]));
        assert_agrees(&recorded.trace(), |_| true, kernels);
        // By these ticks wait4(2) divides the same CPU time (`cputime_adjust()`, kernel/sched/cputime.c). How many there
        // are depends on the machine: a tick counts only as far as no hypervisor gave the CPU to another guest meanwhile.
        let [by_user, by_system] =
            ["user_ticks_ns", "system_ticks_ns"].map(|name| u64_of(&end[name]) as f64);
        let ticks_ns = by_user + by_system;
        assert!(ticks_ns > 0.0);
        let off_ns = (kernels as f64 * by_user / ticks_ns - u64_of(&usage["user_ns"]) as f64).abs();
        // One tick, of CONFIG_HZ = 100 at the longest, may hit it after its end was recorded.
        assert!(
            off_ns <= kernels as f64 * 1e7 / ticks_ns,
            "{off_ns} {by_user} {by_system} {usage}"
        );
    }
}
