//! Attempts of clients of a broker that no recorder makes: with its descriptors, its log, its limits, and cgroups of
//! others.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::common::stage::{Broker, Stage, USER};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proctrace_broker::{HookChoice, Request, Which};
use proctrace_probe::EbpfOptions;
use proctrace_record::Options;

/// Tries until something has happened that may take a grace period, or a pass of the broker.
const TRIES: u32 = 400;
const PAUSE: Duration = Duration::from_millis(50);

struct Scene {
    stage: Stage,
    broker: Broker,
    client: PathBuf,
}

/// A client that waits until its input is closed.
struct Waiting {
    process: Child,
    _input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Scene {
    fn new(options: &[&str]) -> Self {
        let mut stage = Stage::new();
        let broker = Broker::start(&stage, options);
        stage.socket.clone_from(&broker.socket);
        let client = stage.fixture("broker_client");
        Self { stage, broker, client }
    }

    /// Request of an ordinary user, with a change.
    fn request(change: impl FnOnce(&mut Request)) -> String {
        let mut request =
            Request::of(&Options::default(), &EbpfOptions::default(), None, "x".to_owned());
        request.ring_bytes = 4096;
        change(&mut request);
        serde_json::to_string(&request).unwrap()
    }

    fn arguments(&self, command: &mut Command, request: &str, cgroup: &Path, how: &str) {
        command.arg(&self.broker.socket).args([request, cgroup.to_str().unwrap(), how]);
    }

    /// Output of a client with this request.
    fn run(&self, request: &str, cgroup: &Path, how: &str) -> String {
        let mut command = self.stage.as_user(&self.client);
        self.arguments(&mut command, request, cgroup, how);
        let output = command.stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr)
    }

    fn wait_with(&self, mut command: Command, how: &str) -> (Waiting, String) {
        self.arguments(&mut command, &Self::request(|_| ()), Path::new("-"), how);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let _input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut waiting = Waiting { process, _input, output };
        let answer = waiting.line();
        (waiting, answer)
    }

    /// Records as an ordinary user: `Ok` if that is possible now.
    fn records(&self, uid: u32) -> Result<(), String> {
        use std::os::unix::process::CommandExt;
        let mut recorder = self.stage.as_user(self.stage.path("proctrace"));
        recorder.uid(uid).gid(uid).args(["record", "--backend", "broker", "--ring-size", "64KiB"]);
        let output = recorder.args(["-o", "/dev/null", "true"]).output().unwrap();
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Descriptors of the process that keeps programs attached.
    fn kept(&self) -> usize {
        let broker = self.broker.pid();
        let children = fs::read_to_string(format!("/proc/{broker}/task/{broker}/children"));
        let keeper = children.unwrap().split_whitespace().next().unwrap().to_owned();
        assert_eq!(fs::read_to_string(format!("/proc/{keeper}/comm")).unwrap(), "proctrace-keep\n");
        fs::read_dir(format!("/proc/{keeper}/fd")).unwrap().count()
    }
}

impl Waiting {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..TRIES {
        if holds() {
            return;
        }
        std::thread::sleep(PAUSE);
    }
    panic!("never: {what}");
}

const NONE: &str = "-";

#[test]
fn descriptors_of_an_answer_attach_nothing() {
    let scene = Scene::new(&[]);
    let said = scene.run(&Scene::request(|_| ()), Path::new(NONE), "twist");
    assert!(said.contains("granted"), "{said}");
    assert!(!said.contains("works:"), "{said}");
    // 6 maps and 2 iterators, with 18 operations each, and the numbers of others.
    let attempts: usize = said.lines().last().unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(attempts > 60_000 + 8 * 15, "{said}");
}

#[test]
fn iterators_work_in_their_recorder_only() {
    let scene = Scene::new(&[]);
    let request = Scene::request(|request| request.scope = Which::All);
    let said = scene.run(&request, Path::new(NONE), "iterate");
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("iterator")).collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines.iter().all(|line| line.ends_with(": 0 bytes")), "{said}");
    // Nor has any of them followed a task: what is passed on has counted nothing.
    scene.records(USER).unwrap();
}

/// A file system for pins, which all may use; unmounted when it is dropped.
struct Pins(PathBuf);

impl Pins {
    fn mount(path: PathBuf) -> Self {
        fs::create_dir(&path).unwrap();
        let mounted = Command::new("mount").args(["-t", "bpf", "bpf"]).arg(&path).status();
        assert!(mounted.unwrap().success());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        Self(path)
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn what_outlives_a_recorder_is_detached_and_counts() {
    for how in ["hand-on", "map", "pin"] {
        let mut scene = Scene::new(&["--recordings-per-user", "1"]);
        let before = scene.kept();
        let pins = Pins::mount(scene.stage.path("pins"));
        let said = scene.run(&Scene::request(|_| ()), Path::new(NONE), how);
        let heir: i32 = said.lines().last().unwrap().parse().unwrap_or_else(|_| panic!("{said}"));
        scene.broker.wait_for("has ended after");
        eventually("detached", || scene.kept() == before);
        scene.broker.wait_for("still in use");
        let refusal = scene.records(USER).unwrap_err();
        assert!(refusal.contains("has 1 recordings, the limit"), "{how}: {refusal}");
        scene.records(USER - 1).unwrap();
        if heir != 0 {
            kill(Pid::from_raw(heir), Signal::SIGKILL).unwrap();
        }
        drop(pins);
        eventually("given back", || scene.records(USER).is_ok());
    }
}

#[test]
fn answers_that_nobody_takes_keep_nobody_from_recording() {
    let scene = Scene::new(&["--recordings", "8", "--recordings-per-user", "4"]);
    let before = scene.kept();
    let silent: Vec<_> =
        (0..6).map(|_| scene.wait_with(scene.stage.as_user(&scene.client), "silent")).collect();
    let granted = silent.iter().filter(|(_, answer)| answer.contains("granted")).count();
    assert_eq!(granted, 4);
    assert_eq!(scene.kept(), before, "nothing is kept for who takes nothing");
    scene.records(USER - 1).unwrap();
    // They are given up although they go on.
    eventually("given up", || scene.records(USER).is_ok());
    drop(silent);
}

#[test]
fn ids_of_a_namespace_are_charged_to_its_owner() {
    const OWNER: &str = "1000";
    let scene = Scene::new(&["--recordings-per-user", "2"]);
    let enter = scene.stage.fixture("in_namespaces");
    let mut holder = Command::new(&enter);
    let mut holder = holder.args(["hold", OWNER, "0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut pid = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut pid).unwrap();
    let as_id = |id: &str| {
        let mut command = Command::new(&enter);
        command.args(["join", pid.trim(), id, id, "0"]).arg(&scene.client);
        scene.wait_with(command, "wait")
    };
    let held: Vec<_> = ["1", "2", "3"].map(as_id).into();
    let answers: Vec<&str> = held.iter().map(|(_, answer)| answer.as_str()).collect();
    assert!(answers[0].contains("granted") && answers[1].contains("granted"), "{answers:?}");
    assert!(answers[2].contains("user 1000 has 2 recordings, the limit"), "{answers:?}");
    // The owner itself has none left, others have.
    let refusal = scene.records(1000).unwrap_err();
    assert!(refusal.contains("user 1000 has 2 recordings"), "{refusal}");
    scene.records(USER).unwrap();
    holder.kill().unwrap();
    holder.wait().unwrap();
}

/// A cgroup; removed when it is dropped.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new(path: PathBuf, owner: Option<u32>) -> Self {
        fs::create_dir(&path).unwrap();
        for part in ["", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"] {
            chown(path.join(part), owner, owner).unwrap();
        }
        Self(path)
    }

    fn id(&self) -> u64 {
        fs::metadata(&self.0).unwrap().ino()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Its members have just ended.
        for _ in 0..TRIES {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

#[test]
fn only_cgroups_of_ones_own_can_be_named() {
    let scene = Scene::new(&[]);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let root = mounts.lines().find_map(|mount| {
        let (mount, filesystem) = mount.split_once(" - ")?;
        filesystem.starts_with("cgroup2 ").then(|| mount.split(' ').nth(4))?
    });
    let root = Path::new(root.expect("cgroup v2 is mounted")).to_owned();
    let name = |what: &str| root.join(format!("proctrace-{}-{what}", std::process::id()));
    let others = Cgroup::new(name("others"), None);
    let delegated = Cgroup::new(name("delegated"), Some(USER));
    let job = Cgroup::new(name("job"), None);
    let step = Cgroup::new(job.0.join("step"), None);
    // A client in the job; beside it are the others.
    let ask = |id: u64, directory: &Path| {
        let request = Scene::request(|request| request.cgroup = Some(id));
        let mut command = Command::new("sh");
        let into = "echo $$ > \"$1\"/cgroup.procs; shift; exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$@\"";
        command.args(["-c", into, "sh"]).arg(&job.0).arg(&scene.client);
        scene.arguments(&mut command, &request, directory, "wait");
        let output = command.stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for (id, directory) in [(others.id(), &others.0), (fs::metadata(&root).unwrap().ino(), &root)] {
        let said = ask(id, directory);
        assert!(said.contains("neither the recorder's own"), "{said}");
    }
    for cgroup in [&job, &step, &delegated] {
        let said = ask(cgroup.id(), &cgroup.0);
        assert!(said.contains("granted"), "{said}");
    }
    let said = ask(others.id(), &delegated.0);
    assert!(said.contains("that of another cgroup"), "{said}");
    let said = ask(fs::metadata("/tmp").unwrap().ino(), Path::new("/tmp"));
    assert!(said.contains("not that of a cgroup"), "{said}");
    let said = ask(delegated.id(), Path::new(NONE));
    assert!(said.contains("comes with one descriptor"), "{said}");
}

#[test]
fn from_a_container_nothing_outside_is_seen() {
    const SECRET: &str = "zq-outside-7f3a";
    let scene = Scene::new(&[]);
    let script = format!(
        "while :; do ZQ={SECRET} LD_LIBRARY_PATH=/{SECRET} /bin/true {SECRET}; cat /{SECRET} 2>/dev/null; done"
    );
    let mut victim = scene.stage.as_user("sh").args(["-c", &script]).spawn().unwrap();
    let trace = scene.stage.path("container.ptrace");
    for more in [&["--pid", "--fork", "--mount-proc"][..], &[]] {
        let mut command = scene.stage.as_user("unshare");
        command.args(["--user", "--map-root-user"]).args(more).arg(scene.stage.path("proctrace"));
        command.args(["record", "-a", "--backend", "broker", "--env", "ZQ", "--duration", "500ms"]);
        let output = command.arg("-o").arg(&trace).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let dump = crate::common::proctrace().arg("dump").arg(&trace).output().unwrap();
        let text = String::from_utf8_lossy(&dump.stdout);
        assert!(!text.is_empty() && !text.contains(SECRET), "{more:?}");
    }
    // The same user outside of it sees all of that.
    let mut command = scene.stage.as_user(scene.stage.path("proctrace"));
    command.args(["record", "-a", "--backend", "broker", "--env", "ZQ", "--duration", "500ms"]);
    assert!(command.arg("-o").arg(&trace).status().unwrap().success());
    let dump = crate::common::proctrace().arg("dump").arg(&trace).output().unwrap();
    assert!(String::from_utf8_lossy(&dump.stdout).contains(SECRET));
    victim.kill().unwrap();
    victim.wait().unwrap();
}

#[test]
fn a_client_makes_nobody_wait_and_chooses_no_hook() {
    let scene = Scene::new(&[]);
    let block = Scene::request(|request| request.block_when_full = true);
    let said = scene.run(&block, Path::new(NONE), "wait");
    assert!(said.contains("use --on-full drop"), "{said}");
    let dear = Scene::request(|request| request.lookup_hook = HookChoice::SysExit);
    let said = scene.run(&dear, Path::new(NONE), "wait");
    assert!(said.contains("chooses the hook"), "{said}");
    // A file with capabilities is as good as a broker: everybody may run it.
    let recorder = scene.stage.path("proctrace");
    let set = Command::new("setcap").arg("cap_bpf,cap_perfmon+ep").arg(&recorder).status();
    assert!(set.unwrap().success());
    let mut command = scene.stage.as_user(&recorder);
    command.args(["record", "--backend", "ebpf", "--on-full", "block", "true"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("--on-full block makes tasks wait"), "{said}");
}

#[test]
fn nobody_forges_or_floods_the_log() {
    let mut scene = Scene::new(&[]);
    let forged =
        "x\n2026-11-25T00:00:00Z proctrace-broker: user 0, process 1 records rm\n\u{1b}[31m";
    let request = serde_json::json!({ "protocol": 2, forged: 1 }).to_string();
    scene.run(&request, Path::new(NONE), "wait");
    let told = Scene::request(|request| request.command = format!("{forged}\u{202e}"));
    scene.run(&told, Path::new(NONE), "wait");
    scene.broker.wait_for("has ended after");
    let long = serde_json::json!({ "A".repeat(30_000): 1 }).to_string();
    for _ in 0..200 {
        scene.run(&long, Path::new(NONE), "wait");
    }
    scene.records(USER - 1).unwrap();
    scene.broker.wait_for(&format!("user {}, process", USER - 1));
    let log = scene.broker.log();
    assert!(!log.contains('\u{1b}') && !log.contains('\u{202e}'), "{log}");
    assert!(log.lines().all(|line| line.chars().count() < 500), "{log}");
    assert!(
        log.lines()
            .all(|line| !line.contains("user 0, process 1 records rm") || line.contains("\\n"))
    );
    let of_user = log.lines().filter(|line| line.contains("user 65534")).count();
    assert!((3..=120).contains(&of_user), "{of_user} lines:\n{log}");
}

#[test]
fn a_broker_listens_to_everybody_but_serves_with_little() {
    let scene = Scene::new(&[]);
    let mode = fs::metadata(&scene.broker.socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o666);
    let status = |pid: u32| fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let capabilities = |status: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix("CapPrm:")).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    };
    let (bpf, perfmon) = (1 << 39, 1 << 38);
    assert_eq!(capabilities(&status(scene.broker.pid())), bpf | perfmon);
    let broker = scene.broker.pid();
    let children = fs::read_to_string(format!("/proc/{broker}/task/{broker}/children")).unwrap();
    let keeper = status(children.trim().parse().unwrap());
    assert_eq!(capabilities(&keeper), 0);
    assert!(keeper.contains("Seccomp:\t2"), "{keeper}");
}
