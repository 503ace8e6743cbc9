//! Process identity where a pid is ambiguous: reused pids, namespaces, threads that outlive their
//! leader, deep chains, processes that leave the tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::records::{assert_agrees, exits};
use crate::common::{Recorder, cpus, fixture, header, report, text, u64_of};
use serde_json::Value;

/// The pid of a fork's child in its own namespace, which `dump` prints only if it differs from the
/// outer pid: outer pids wrap around too, and one may then equal the inner pid.
fn pid_inside(fork: &Value) -> u64 {
    fork["child_pid_ns"].as_u64().unwrap_or_else(|| u64_of(&fork["child_pid"]))
}

#[test]
fn a_process_lives_as_long_as_its_last_thread() {
    let recorded = Recorder::new().fixture("leader_exits", &["3", "60"]);
    let events = recorded.sound(0);
    let root = events.root()["pid"].clone();
    let exits: Vec<&Value> = events.kind("exit").filter(|exit| exit["pid"] == root).collect();
    assert_eq!(exits.len(), 4);
    let leader = exits.iter().find(|exit| exit["tid"] == root).unwrap();
    assert_eq!(leader["process"], false);
    let ends: Vec<&&Value> = exits.iter().filter(|exit| exit["process"] == true).collect();
    assert_eq!(ends.len(), 1);
    assert_ne!(ends[0]["tid"], root);
    assert!(u64_of(&ends[0]["time_ns"]) > u64_of(&leader["time_ns"]));
    let cpu: u64 = exits.iter().map(|exit| u64_of(&exit["run_ns"])).sum();
    assert!(cpu >= 180_000_000, "{cpu}");
}

#[test]
fn ten_thousand_threads_are_one_process() {
    let recorded = Recorder::new().fixture("threads", &["10000"]);
    let events = recorded.sound(0);
    assert_eq!(events.forks(true).len(), 10_000);
    assert_eq!(events.forks(false).len(), 0);
    let findings = report(&recorded.trace());
    assert_eq!(findings["summary"]["processes"], 1);
    assert_eq!(findings["summary"]["threads"], 10_000);
}

#[test]
fn more_threads_can_live_than_have_places() {
    // The map of threads holds 4096 entries; the rest are stored elsewhere (recorder.bpf.h).
    let recorded = Recorder::new().fixture("threads", &["12000", "0", "6000"]);
    let events = recorded.sound(0);
    assert_eq!(events.forks(true).len(), 12_000);
    assert_eq!(events.count("exit"), 12_001);
    let findings = report(&recorded.trace());
    assert!(u64_of(&findings["summary"]["peak_tasks"]) > 5_000, "{}", findings["summary"]);
}

#[test]
fn a_chain_of_five_thousand_is_followed_to_its_end() {
    let events = Recorder::new().fixture("chain", &["5000"]).sound(7);
    let forks = events.forks(false);
    assert_eq!(forks.len(), 5_000);
    // Each is the child of the previous one.
    for pair in forks.windows(2) {
        assert_eq!(pair[0]["child_pid"], pair[1]["pid"]);
    }
    assert_eq!(events.codes(), BTreeMap::from([(7, 5_001)]));
    assert_eq!(events.count("exec"), 5_001);
}

#[test]
fn shells_in_shells_keep_their_ancestry() {
    let script = "n=$1; if [ $n -gt 1 ]; then sh -c \"$0\" \"$0\" $((n - 1)); fi; exit $n";
    let events = Recorder::new().run(["sh", "-c", script, script, "20"]).sound(20);
    let forks = events.forks(false);
    assert_eq!(forks.len(), 19);
    for pair in forks.windows(2) {
        assert_eq!(pair[0]["child_pid"], pair[1]["pid"]);
    }
    assert_eq!(events.count("exec"), 20);
    assert_eq!(events.codes(), (1..=20).map(|code| (code, 1)).collect());
}

#[test]
fn other_namespaces_are_seen_from_both_sides() {
    let script = "sh -c 'echo $PPID $$ > pids'; cd /proc; true; test -e /proc/1/status";
    let recorded = Recorder::new().run(["unshare", "-Urpf", "--mount-proc", "sh", "-c", script]);
    let events = recorded.sound(0);
    // Ground truth: the output of the processes themselves.
    let said = fs::read_to_string(recorded.directory.path().join("pids")).unwrap();
    let said: Vec<u64> = said.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    let inside: Vec<u64> = events.forks(false).into_iter().map(pid_inside).collect();
    assert_eq!(inside, said);
    assert_eq!(said[0], 1);
    let outside: BTreeSet<u64> =
        events.forks(false).iter().map(|fork| u64_of(&fork["child_pid"])).collect();
    assert!(outside.iter().all(|pid| !said.contains(pid)));
}

/// The loader and the libraries of a program, as the loader finds them.
fn needed_by(program: &Path) -> Vec<String> {
    let output = Command::new("ldd").arg(program).env_remove("LD_LIBRARY_PATH").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().filter(|word| word.starts_with('/')).map(str::to_owned).collect()
}

#[test]
fn what_detached_itself_is_told_with_what_it_cost() {
    let recorded = Recorder::new().option(["--grace", "60s"]).fixture("daemon", &["10", "3000"]);
    recorded.sound(0);
    // The value of time(1): wait4(2) of the command, by the kernel.
    let usage = header(&recorded.trace())["trailer"]["payload"].clone();
    let seen = u64_of(&usage["user_ns"]) + u64_of(&usage["system_ns"]);
    assert!(seen < 500_000_000, "{seen}");
    let findings = report(&recorded.trace());
    let detached = findings["detached"].as_array().unwrap();
    assert_eq!(detached.len(), 1, "{detached:?}");
    assert_eq!(detached[0]["program"], "daemon");
    // It runs until its own CPU clock reads 3 s.
    let cpu_ns = u64_of(&detached[0]["cpu_ns"]);
    assert!((3_000_000_000..3_100_000_000).contains(&cpu_ns), "{cpu_ns}");
    assert!(u64_of(&findings["summary"]["unwaited_cpu_ns"]) >= 3_000_000_000);
}

#[test]
fn a_subreaper_waits_for_whom_it_adopts() {
    let recorded = Recorder::new().fixture("subreaper", &["80"]);
    recorded.sound(0);
    // Ground truth: wait4(2) in the subreaper.
    let said: u64 =
        String::from_utf8(recorded.output.stdout.clone()).unwrap().trim().parse().unwrap();
    let findings = report(&recorded.trace());
    let detached = findings["detached"].as_array().unwrap();
    assert_eq!(detached.len(), 1, "{detached:?}");
    let cpu_ns = u64_of(&detached[0]["cpu_ns"]);
    let adopted = exits(&recorded.trace()).into_iter().find(|exit| exit.run_ns == cpu_ns).unwrap();
    assert_agrees(&recorded.trace(), |exit| exit.tid == adopted.tid, said * 1000);
    // Its CPU time was waited for.
    assert!(u64_of(&findings["summary"]["unwaited_cpu_ns"]) < 10_000_000, "{findings}");
}

#[test]
fn forked_workers_are_known_by_where_they_work() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let events = Recorder::new().fixture("workdirs", &[path, "5", "/bin/true"]).sound(0);
    // Neither the one that stayed in its directory, nor the one whose exec records it.
    let told: Vec<(&Value, &Value)> =
        events.kind("workdir").map(|event| (&event["pid"], &event["cwd"])).collect();
    let workers: Vec<&Value> =
        events.forks(false).into_iter().map(|fork| &fork["child_pid"]).take(5).collect();
    assert_eq!(told.len(), 5);
    for (number, (pid, cwd)) in told.into_iter().enumerate() {
        assert_eq!(pid, workers[number]);
        assert_eq!(cwd.as_str().unwrap(), format!("{path}/worker_{number}"));
    }
}

mod root {
    use super::*;

    #[test]
    fn below_another_root_paths_are_as_the_payload_sees_them() {
        let recorder = Recorder::new();
        let root = recorder.directory.path().join("root");
        fs::create_dir_all(root.join("work")).unwrap();
        for file in needed_by(&fixture("misses")) {
            let inside = root.join(file.strip_prefix('/').unwrap());
            fs::create_dir_all(inside.parent().unwrap()).unwrap();
            fs::copy(&file, inside).unwrap();
        }
        fs::copy(fixture("misses"), root.join("work/misses")).unwrap();
        let recorded = recorder.run(["chroot", "root", "/work/misses", "4"]);
        let events = recorded.sound(0);
        let exec = events.kind("exec").last().unwrap();
        assert_eq!(exec["path"], "/work/misses");
        assert_eq!(exec["exe"], "/work/misses");
        assert_eq!(exec["cwd"], "/");
    }

    #[test]
    fn pids_that_are_used_again_are_not_mixed_up() {
        // A pid namespace limited to 300 pids, and 1,300 processes one after the other.
        let script = format!(
            "echo 400 > /proc/sys/kernel/pid_max && exec {} 1300 /bin/true 2",
            fixture("spawn").display()
        );
        let recorded = Recorder::new().run(["unshare", "-fp", "--mount-proc", "sh", "-c", &script]);
        let events = recorded.sound(0);
        let forks = events.forks(false);
        // the script, which becomes the spawner, and its children
        assert_eq!(forks.len(), 1301);
        let mut times: BTreeMap<u64, usize> = BTreeMap::new();
        for fork in &forks {
            *times.entry(pid_inside(fork)).or_default() += 1;
        }
        assert!(times.keys().all(|pid| *pid < 400), "{times:?}");
        assert!(times.values().any(|count| *count >= 3), "the pids never came round");
        let execs = events.kind("exec").filter(|exec| exec["path"] == "/bin/true").count();
        assert_eq!(execs, 1300);
        let findings = report(&recorded.trace());
        assert_eq!(findings["summary"]["alive_processes"], 0);
    }

    // Only eBPF tells of migrations.
    #[test]
    fn a_pinned_task_does_not_migrate() {
        let script = "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done; \
                      grep nr_migrations /proc/$$/sched >&2";
        let pinned = Recorder::new().run(["taskset", "-c", &cpus()[0], "sh", "-c", script]);
        let migrations = |exit: &Value| u64_of(&exit["migrations"]);
        let events = pinned.sound(0);
        let root = events.root()["pid"].clone();
        // Before taskset has pinned itself the kernel may migrate it, and counts these migrations.
        let said = pinned.stderr();
        let said = said.lines().find(|line| line.contains("nr_migrations")).unwrap();
        let said: u64 = said.rsplit(':').next().unwrap().trim().parse().unwrap();
        let root_moved: u64 =
            events.kind("exit").filter(|exit| exit["pid"] == root).map(migrations).sum();
        let others_moved: u64 =
            events.kind("exit").filter(|exit| exit["pid"] != root).map(migrations).sum();
        assert_eq!(root_moved, said);
        assert_eq!(others_moved, 0);
        // A task moved back and forth has migrations: each taskset -p moves it to a different CPU.
        if let [one, other, ..] = &cpus()[..] {
            let script = format!(
                "for i in 1 2 3 4 5; do taskset -cp {one} $$; taskset -cp {other} $$; done >/dev/null"
            );
            let moved = Recorder::new().run(["sh", "-c", &script]);
            let events = moved.sound(0);
            let root = events.root()["pid"].clone();
            let moves: u64 =
                events.kind("exit").filter(|exit| exit["pid"] == root).map(migrations).sum();
            assert!(moves >= 9, "{moves}");
        }
    }

    // A stopped task that is traced has another state.
    #[test]
    fn what_remains_is_listed_with_its_state() {
        let recorded = Recorder::new().option(["--wait", "root"]).fixture("remains", &[]);
        let pids: Vec<i32> = String::from_utf8(recorded.output.stdout.clone())
            .unwrap()
            .split_whitespace()
            .map(|pid| pid.parse().unwrap())
            .collect();
        let events = recorded.sound(0);
        let states: BTreeMap<i64, &str> = events
            .kind("sample")
            .filter(|sample| sample["final"] == true)
            .map(|sample| (sample["pid"].as_i64().unwrap(), text(&sample["state"])))
            .collect();
        for pid in &pids {
            let pid = nix::unistd::Pid::from_raw(*pid);
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
        }
        assert_eq!(states.len(), 2, "{states:?}");
        assert_eq!(states[&i64::from(pids[0])], "T");
        // It may not have reached its sleep.
        assert!(["S", "R"].contains(&states[&i64::from(pids[1])]), "{states:?}");
        // The zombie has exited, and its exit was recorded although nobody waited for it.
        assert_eq!(events.codes().get(&5), Some(&1));
        assert_eq!(report(&recorded.trace())["summary"]["alive_processes"], 2);
        assert!(recorded.stderr().contains("still running"), "{}", recorded.stderr());
    }
}
