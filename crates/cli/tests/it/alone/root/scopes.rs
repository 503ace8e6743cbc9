//! Recordings of processes that were not launched by proctrace: running processes, cgroups, the
//! whole machine.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::{Events, Recorder, fixture, proctrace, report, text, u64_of};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// An active recording of running processes.
struct Attached {
    child: Child,
    trace: PathBuf,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Attached {
    /// Starts it, and returns when it announces that it follows all requested processes.
    fn begin(directory: &Path, options: &[&str]) -> Self {
        let trace = directory.join("attached.ptrace");
        let mut child = proctrace()
            .args(["record", "--output"])
            .arg(&trace)
            .args(options)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        assert!(line.contains("recording"), "{line}");
        Self { child, trace, stderr }
    }

    /// Ends it like Ctrl-C.
    fn interrupt(self) -> PathBuf {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        kill(pid, Signal::SIGINT).unwrap();
        self.wait()
    }

    fn wait(mut self) -> PathBuf {
        let status = self.child.wait().unwrap();
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.stderr, &mut rest).unwrap();
        assert!(status.success(), "{status} {rest}");
        assert_sound(&self.trace);
        self.trace
    }
}

fn assert_sound(trace: &Path) {
    let check = proctrace().arg("check").arg(trace).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
}

/// The fixture `phases`, waiting for its line of input.
fn phases(before_ms: &str, after_ms: &str) -> (Child, std::process::ChildStdin) {
    let mut child = Command::new(fixture("phases"))
        .args([before_ms, after_ms])
        .env_remove("LD_LIBRARY_PATH")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let input = child.stdin.take().unwrap();
    (child, input)
}

fn end_of(events: &Events, pid: u32) -> &Value {
    events.kind("exit").find(|exit| exit["pid"] == pid && exit["process"] == true).unwrap()
}

#[test]
fn a_process_that_runs_already_is_recorded_from_now_on() {
    let directory = tempfile::tempdir().unwrap();
    let (mut payload, mut input) = phases("300", "120");
    let pid = payload.id();
    let attached = Attached::begin(directory.path(), &["-p", &pid.to_string()]);
    input.write_all(b"\n").unwrap();
    // It ends by itself when all followed processes do.
    let mut usage = None;
    let trace = attached.wait();
    if let Ok(status) = payload.try_wait() {
        usage = status;
    }
    assert!(usage.is_some_and(|status| status.success()));

    let events = Events::of(&trace);
    let attach = events.kind("attach").next().unwrap();
    assert_eq!(attach["pid"], pid);
    assert_eq!(attach["root"], false);
    let before = u64_of(&attach["run_ns"]);
    assert!(before >= 300_000_000, "{before}");
    let after = u64_of(&end_of(&events, pid)["run_ns"]);
    assert!((120_000_000..250_000_000).contains(&(after - before)), "{before} {after}");
    // The program it was running was read from /proc.
    let exec = events.kind("exec").find(|exec| exec["pid"] == pid).unwrap();
    assert_eq!(exec["before"], true);
    assert_eq!(exec["argv"][1], "300");
    assert_eq!(events.forks(false).len(), 5);

    // The report counts usage since the attachment only.
    let findings = report(&trace);
    let cpu = u64_of(&findings["summary"]["cpu_ns"]);
    assert!((120_000_000..280_000_000).contains(&cpu), "{cpu}");
    assert_eq!(findings["summary"]["processes"], 6);
    assert_eq!(findings["summary"]["execs"], 5);
    assert_eq!(findings["run"]["scope"], "pids");
    let categories = findings["categories"].as_array().unwrap();
    let there: u64 = categories.iter().filter_map(|row| row["there_before"].as_u64()).sum();
    assert_eq!(there, 1);
    // It was created before it had used all that.
    let output = proctrace()
        .args(["query", "--format", "json"])
        .arg(format!("SELECT start_ns, end_ns, life_ns FROM processes WHERE pid = {pid}"))
        .arg(&trace)
        .output()
        .unwrap();
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let [start_ns, end_ns, life_ns] =
        ["start_ns", "end_ns", "life_ns"].map(|name| rows[0][name].as_i64().unwrap());
    assert!(start_ns <= -300_000_000 && life_ns == end_ns - start_ns, "{rows}");
}

#[test]
fn descendants_and_threads_that_run_already_belong_to_it() {
    let directory = tempfile::tempdir().unwrap();
    let sleeper = "sleep 60 & sleep 60 & sh -c 'sleep 60 & echo started; wait'; wait";
    let mut shell =
        Command::new("sh").args(["-c", sleeper]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let attached =
        Attached::begin(directory.path(), &["-p", &shell.id().to_string(), "--duration", "500ms"]);
    let trace = attached.wait();
    // Their process group would be ours: kill them individually.
    let events = Events::of(&trace);
    let pids: Vec<i64> = events.kind("attach").map(|e| e["pid"].as_i64().unwrap()).collect();
    for pid in &pids {
        let _ = kill(Pid::from_raw(i32::try_from(*pid).unwrap()), Signal::SIGKILL);
    }
    shell.wait().unwrap();
    // two shells and three sleeps
    assert_eq!(pids.len(), 5, "{pids:?}");
    assert_eq!(report(&trace)["summary"]["alive_processes"], 5);
}

#[test]
fn the_whole_machine_can_be_recorded() {
    let directory = tempfile::tempdir().unwrap();
    // A child that has ended already, and is waited for while its parent is recorded: what it used is
    // credited to the parent, although it is in no record.
    let script = format!("{} 60 & read line; wait", fixture("burn").display());
    let mut parent =
        Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
    let children = format!("/proc/{0}/task/{0}/children", parent.id());
    let is_dead = |child: &str| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.trim()));
        stat.is_ok_and(|stat| stat.contains(") Z "))
    };
    while !is_dead(&fs::read_to_string(&children).unwrap()) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let attached = Attached::begin(directory.path(), &["-a"]);
    drop(parent.stdin.take());
    assert!(parent.wait().unwrap().success());
    let status = Command::new(fixture("spawn")).args(["50", "/bin/true"]).status().unwrap();
    assert!(status.success());
    let trace = attached.interrupt();
    let events = Events::of(&trace);
    // This test process, its parent, existed before.
    let me = std::process::id();
    assert!(events.kind("attach").any(|attach| attach["pid"] == me));
    let spawner = events
        .kind("exec")
        .find(|exec| text(&exec["exe"]).ends_with("/spawn") && exec["argv"][1] == "50")
        .unwrap();
    let spawned: Vec<&Value> =
        events.forks(false).into_iter().filter(|fork| fork["pid"] == spawner["pid"]).collect();
    assert_eq!(spawned.len(), 50);
    for fork in spawned {
        let pid = u32::try_from(u64_of(&fork["child_pid"])).unwrap();
        assert_eq!(end_of(&events, pid)["code"], 0);
    }
}

/// The mount point of cgroup v2; mounts it privately if needed.
/// A thread is in the list of tasks before its birth is told, so that a pass may find it first.
#[test]
fn threads_that_are_born_during_a_pass_are_born_once() {
    let directory = tempfile::tempdir().unwrap();
    let attached = Attached::begin(directory.path(), &["-a", "--interval", "1ms"]);
    let mut storm = Command::new(fixture("threads")).arg("20000").spawn().unwrap();
    let pid = storm.id();
    assert!(storm.wait().unwrap().success());
    let events = Events::of(&attached.interrupt());
    let forks = events.kind("fork").filter(|fork| fork["child_pid"] == pid).count();
    let attaches = events.kind("attach").filter(|attach| attach["pid"] == pid).count();
    let exits = events.kind("exit").filter(|exit| exit["pid"] == pid).count();
    assert_eq!((forks + attaches, exits), (20_001, 20_001), "{attaches} were attached");
}

fn cgroup_root() -> PathBuf {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mounted = mounts.lines().find_map(|line| {
        let (mount, filesystem) = line.split_once(" - ")?;
        filesystem.starts_with("cgroup2 ").then(|| mount.split(' ').nth(4))?
    });
    mounted.map(PathBuf::from).expect("cgroup v2 is mounted")
}

#[test]
fn a_cgroup_is_recorded_with_those_who_move_in() {
    let directory = tempfile::tempdir().unwrap();
    let cgroup = cgroup_root().join(format!("proctrace-test-scopes-{}", std::process::id()));
    fs::create_dir(&cgroup).unwrap();
    let attached = Attached::begin(directory.path(), &["--cgroup", cgroup.to_str().unwrap()]);
    // It moves into the cgroup, starts one program there, and exits.
    let script =
        format!("echo $$ > {}/cgroup.procs; /bin/true; /bin/true; exit 4", cgroup.display());
    let status = Command::new("sh").args(["-c", &script]).status().unwrap();
    assert_eq!(status.code(), Some(4));
    // A process outside the cgroup is not recorded.
    assert!(Command::new("/bin/true").status().unwrap().success());
    let trace = attached.interrupt();
    fs::remove_dir(&cgroup).unwrap();
    let events = Events::of(&trace);
    assert_eq!(events.kind("attach").count(), 1);
    assert_eq!(events.forks(false).len(), 2);
    assert_eq!(events.codes(), [(0, 2), (4, 1)].into());
}

#[test]
fn a_cgroup_of_its_own_accounts_for_the_same() {
    let recorded = Recorder::new().option(["--own-cgroup"]).fixture("mixed", &["300"]);
    recorded.sound(0);
    let findings = report(&recorded.trace());
    let law = findings["health"]["laws"]
        .as_array()
        .unwrap()
        .iter()
        .find(|law| law["name"] == "cgroup")
        .expect("the kernel's cpu.stat was compared");
    assert_eq!(law["holds"], true);
    let path = PathBuf::from(text(&findings["run"]["cgroup"]));
    assert!(!path.exists(), "it is removed afterwards");
}

#[test]
fn whom_it_cannot_record_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let run = |options: &[&str]| {
        let output =
            proctrace().arg("record").args(options).current_dir(directory.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, message) = run(&["-p", "4194304"]);
    assert_eq!(code, Some(125));
    assert!(message.contains("there is no process 4194304"), "{message}");
    let (code, message) = run(&["--cgroup", "/proc"]);
    assert_eq!(code, Some(125));
    assert!(message.contains("cannot record the cgroup /proc"), "{message}");
    let (code, _) = run(&["-p", "1", "true"]);
    assert_eq!(code, Some(125));
    let (code, message) = run(&["--misses", "opens", "true"]);
    assert_eq!(code, Some(125));
    assert!(message.contains("a list of open, stat, access"), "{message}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
