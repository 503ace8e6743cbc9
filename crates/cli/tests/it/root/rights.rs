//! Permission checks: a user with a recorder that has file capabilities records no more than what
//! that user may trace.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use crate::common::{Events, header, report};
use crate::users::{Actor, CAP_BPF, Cgroup, Contents, Stage, capabilities, run_as};

const MINE: &str = "zqmine7f3a";
const ROOTS: &str = "zqroot7f3a";
const OTHERS: &str = "zqother7f3a";

/// The activity of three users while one of them records everything.
fn record_three(stage: &Stage, recorder: u32) -> Contents {
    let users = [(stage.user, MINE), (stage.other, OTHERS), (0, ROOTS)];
    let mut before: Vec<Actor> = users.map(|(uid, mark)| stage.actor(uid, mark)).into();
    let attached = stage.attached(recorder, &["-a"]);
    let mut during: Vec<Actor> = users.map(|(uid, mark)| stage.actor(uid, mark)).into();
    // Leaves time for a later pass to find processes that were not seen at first.
    std::thread::sleep(std::time::Duration::from_millis(300));
    for actor in before.iter_mut().chain(&mut during) {
        actor.tell("\n");
        actor.ready();
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    for actor in before.into_iter().chain(during) {
        assert_eq!(actor.end(), 0);
    }
    attached.interrupt();
    Contents::of(&stage.trace())
}

#[test]
fn a_user_records_only_own_processes() {
    let stage = Stage::new();
    let contents = record_three(&stage, stage.user);
    contents.assert_all_of(MINE);
    contents.assert_nothing_of(OTHERS);
    contents.assert_nothing_of(ROOTS);
}

#[test]
fn root_records_everybody() {
    let stage = Stage::new();
    let contents = record_three(&stage, 0);
    for mark in [MINE, OTHERS, ROOTS] {
        contents.assert_all_of(mark);
    }
}

#[test]
fn a_process_of_somebody_else_is_refused() {
    let stage = Stage::new();
    let mut own = stage.actor(stage.user, MINE);
    let other = stage.actor(stage.other, OTHERS);
    let root = stage.actor(0, ROOTS);
    let hidden =
        Actor::start(stage.marked(stage.user, "zqhide7f3a", &["hide", "work", "ready", "wait"]));
    let refused = |pids: &[&str], which: &str| {
        let options: Vec<&str> = pids.iter().flat_map(|pid| ["-p", pid]).collect();
        let output = stage.record(stage.user, &options).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(125), "{said}");
        assert!(said.contains(&format!("process {which} belongs to another user")), "{said}");
        assert!(!stage.trace().exists());
    };
    refused(&[&other.pid()], &other.pid());
    refused(&[&root.pid()], &root.pid());
    refused(&[&hidden.pid()], &hidden.pid());
    refused(&[&own.pid(), &other.pid()], &other.pid());

    let attached = stage.attached(stage.user, &["-p", &own.pid()]);
    own.tell("\n");
    own.ready();
    assert_eq!(own.end(), 0);
    attached.wait();
    let contents = Contents::of(&stage.trace());
    contents.assert_all_of(MINE);
}

#[test]
fn foreign_members_of_a_cgroup_are_left_out() {
    let stage = Stage::new();
    let cgroup = Cgroup::new("members");
    let users = [(stage.user, MINE), (stage.other, OTHERS), (0, ROOTS)];
    let start = || -> Vec<Actor> { users.map(|(uid, mark)| stage.actor(uid, mark)).into() };
    let (mut before, mut during) = (start(), start());
    for actor in &before {
        cgroup.add(actor);
    }
    let attached = stage.attached(stage.user, &["--cgroup", cgroup.path()]);
    for actor in &during {
        cgroup.add(actor);
    }
    for actor in before.iter_mut().chain(&mut during) {
        actor.tell("\n");
        actor.ready();
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    for actor in before.into_iter().chain(during) {
        assert_eq!(actor.end(), 0);
    }
    let said = attached.interrupt();
    assert!(said.contains("only processes that this user may trace are recorded"), "{said}");
    let contents = Contents::of(&stage.trace());
    contents.assert_all_of(MINE);
    contents.assert_nothing_of(OTHERS);
    contents.assert_nothing_of(ROOTS);
    let events = Events::of(&stage.trace());
    assert_eq!(events.count("attach"), 2);
    assert_eq!(header(&stage.trace())["header"]["restricted"], true);
    let spots = report(&stage.trace())["blind_spots"].clone();
    assert_eq!(spots[0]["what"], "restricted", "{spots}");
}

#[test]
fn a_pid_that_is_used_again_by_somebody_else_is_not_recorded() {
    let stage = Stage::new();
    // For a cgroup the recorder continually scans for new members, and so checks the pid as well.
    let cgroup = Cgroup::new("reused");
    let mut own = stage.actor(stage.user, MINE);
    let pid = own.pid();
    let attached = stage.attached(stage.user, &["-p", &pid, "--cgroup", cgroup.path()]);
    own.tell("\n");
    own.ready();
    assert_eq!(own.end(), 0);
    let before: u32 = pid.parse::<u32>().unwrap() - 1;
    let mut other = None;
    for _ in 0..500 {
        fs::write("/proc/sys/kernel/ns_last_pid", before.to_string()).unwrap();
        let actor = stage.actor(stage.other, OTHERS);
        if actor.pid() == pid {
            other = Some(actor);
            break;
        }
        actor.end();
    }
    let mut other = other.expect("the pid was never given again");
    std::thread::sleep(std::time::Duration::from_millis(500));
    other.tell("\n");
    other.ready();
    other.end();
    attached.interrupt();
    let contents = Contents::of(&stage.trace());
    contents.assert_all_of(MINE);
    contents.assert_nothing_of(OTHERS);
    assert_eq!(Events::of(&stage.trace()).count("attach"), 1);
}

#[test]
fn a_user_namespace_of_ones_own_is_recorded() {
    let stage = Stage::new();
    let attached = stage.attached(stage.user, &["-a", "--interval", "20ms"]);
    // It is a descendant before it is attached, and executes another program once it is.
    let mut command = stage.marked(stage.user, MINE, &["own", "ready", "wait", "exec"]);
    command.arg(stage.program(MINE)).args([MINE, "work"]);
    let actor = Actor::start(command);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(actor.end(), 0);
    attached.interrupt();
    Contents::of(&stage.trace()).assert_all_of(MINE);
}

#[test]
fn capabilities_are_given_up() {
    let stage = Stage::new();
    let attached = stage.attached(stage.user, &["-a"]);
    // The writing thread has its own capabilities; it may be created after the first thread.
    let tasks = format!("/proc/{}/task", attached.pid());
    for _ in 0..100 {
        if fs::read_dir(&tasks).unwrap().count() > 1 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(30));
    }
    let mut looked_at = 0;
    for thread in fs::read_dir(&tasks).unwrap() {
        for (name, set) in capabilities(&thread.unwrap().path().join("status")) {
            // Kernels before 6.0 require CAP_BPF to read a map.
            let allowed = if ["CapEff", "CapPrm"].contains(&&*name) { 1 << CAP_BPF } else { 0 };
            assert!(name == "CapBnd" || set & !allowed == 0, "{name} {set:x}");
            looked_at += 1;
        }
    }
    assert!(looked_at >= 10, "two threads with five sets each: {looked_at}");
    attached.interrupt();

    // A launched command has the capabilities that it would have without a recorder.
    let own = stage.path().join("own_status");
    let recorded = stage.path().join("traces/recorded_status");
    let copy = |to: &std::path::Path| vec!["cp".into(), "/proc/self/status".into(), to.into()];
    let mut launch = stage.record(stage.user, &["--"]);
    launch.args::<_, std::path::PathBuf>(copy(&recorded));
    assert!(launch.status().unwrap().success());
    fs::create_dir(&own).unwrap();
    std::os::unix::fs::chown(&own, Some(stage.user), Some(stage.user)).unwrap();
    let mut bare = std::process::Command::new("cp");
    bare.arg("/proc/self/status").arg(own.join("status"));
    run_as(&mut bare, stage.user);
    assert!(bare.status().unwrap().success());
    assert_eq!(capabilities(&recorded), capabilities(&own.join("status")));
}

#[test]
fn doctor_says_who_may_record_whom() {
    let stage = Stage::new();
    let examine = |uid: u32| {
        let output = stage.recorder(uid, "doctor").output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{said}");
        said
    };
    let said = examine(stage.user);
    assert!(said.contains(&format!("processes that user {} may trace", stage.user)), "{said}");
    assert!(said.contains("all users: ") && said.contains("groupadd -r proctrace"), "{said}");
    let said = examine(0);
    assert!(said.contains("all, with arguments"), "{said}");
    // As advised by proctrace: restricted to a group.
    stage.for_its_user_alone();
    let said = examine(stage.user);
    assert!(said.contains("not all users may execute it"), "{said}");
    assert!(!said.contains("groupadd"), "{said}");
}

#[test]
fn a_reader_keeps_no_capabilities_of_its_file() {
    let stage = Stage::new();
    let pipe = stage.path().join("traces/pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o644)).unwrap();
    for subcommand in ["report", "dump", "check", "top"] {
        let mut command = stage.recorder(stage.user, subcommand);
        let mut reader =
            command.arg(&pipe).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // It waits for somebody to write to the pipe.
        let status = PathBuf::from(format!("/proc/{}/status", reader.id()));
        let mut sets = Vec::new();
        for _ in 0..200 {
            sets = capabilities(&status);
            if sets.iter().all(|(name, set)| name == "CapBnd" || *set == 0) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(30));
        }
        assert_eq!(sets.len(), 5, "{subcommand}");
        for (name, set) in &sets {
            assert!(name == "CapBnd" || *set == 0, "{subcommand}: {name} {set:x}");
        }
        // Confined readers cannot get others either.
        let text = fs::read_to_string(&status).unwrap();
        assert!(text.lines().any(|line| line == "NoNewPrivs:\t1"), "{subcommand}: {text}");
        let _ = reader.kill();
        reader.wait().unwrap();
    }
}

#[test]
fn only_root_serves_others() {
    let stage = Stage::new();
    let socket = stage.path().join("traces/broker.sock");
    // The first line that it prints, and how it ends.
    let broker = |options: &[&str]| {
        let mut command = stage.recorder(stage.user, "broker");
        command.args(options).arg("--socket").arg(&socket).stderr(Stdio::piped());
        let mut broker = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(broker.stderr.take().unwrap()).read_line(&mut line).unwrap();
        if line.contains("ready") {
            broker.kill().unwrap();
        }
        (line, broker.wait().unwrap().code())
    };
    let (said, code) = broker(&[]);
    assert!(said.contains("only root serves others; --allow-unprivileged"), "{said}");
    assert_eq!(code, Some(1), "{said}");
    assert!(!socket.exists());
    // Where an administrator wants that.
    let (said, _) = broker(&["--allow-unprivileged"]);
    assert!(said.contains("ready"), "{said}");
}
