//! Recording through a broker: users who may not load programs, and what a broker must withstand.

use std::fs;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::common::stage::{Broker, Stage, USER};
use crate::common::{Events, Recorded, header, text, u64_of};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, send, socket,
};

/// A broker with options, and a stage that uses it.
fn stage(options: &[&str]) -> (Stage, Broker) {
    let mut stage = Stage::new();
    let broker = Broker::start(&stage, options);
    stage.socket.clone_from(&broker.socket);
    (stage, broker)
}

fn recorder(stage: &Stage, user: u32, trace: &str, options: &[&str], command: &[&str]) -> Command {
    let mut recorder = stage.as_user(stage.path("proctrace"));
    recorder.uid(user).gid(user).args(["record", "--backend", "broker", "--output", trace]);
    recorder.args(options).arg("--").args(command).stdout(Stdio::piped()).stderr(Stdio::piped());
    recorder
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Starts a recording that lasts until the file `go` exists.
fn start(stage: &Stage, user: u32, trace: &str) -> Child {
    let script = format!(
        "echo > {trace}.started; while [ ! -e go ]; do sleep 0.02; done; cat /no/such/file; /bin/true; exit 5"
    );
    let mut recorder = recorder(stage, user, trace, &[], &["sh", "-c", &script]);
    let child = recorder.spawn().unwrap();
    while !stage.path(&format!("{trace}.started")).exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child
}

fn assert_complete(trace: &Path) -> Events {
    assert_eq!(header(trace)["trailer"]["losses"].as_array().unwrap().len(), 0);
    let events = Events::of(trace);
    assert_eq!(events.count("exit"), events.count("fork") + events.count("attach"));
    events
}

#[test]
fn a_user_records_what_it_runs() {
    let (stage, mut broker) = stage(&[]);
    let mut command = recorder(&stage, USER, "test.ptrace", &[], &["sh", "-c", "(exit 3); exit 7"]);
    let output = command.output().unwrap();
    let recorded = Recorded { directory: stage.directory, output };
    assert_eq!(recorded.code(), 7, "{}", recorded.stderr());
    let head = header(&recorded.trace());
    assert_eq!(head["header"]["backend"], "broker");
    assert_eq!(head["header"]["restricted"], true);
    let events = assert_complete(&recorded.trace());
    assert_eq!(events.forks(false).len(), 1);
    broker.wait_for("has ended after");
    let log = broker.log();
    assert!(log.contains(&format!("user {USER}, process ")), "{log}");
    assert!(log.contains("records the command sh -c (exit 3); exit 7"), "{log}");
}

#[test]
fn recordings_go_on_when_the_broker_is_killed() {
    let (stage, mut broker) = stage(&[]);
    let users = [USER, USER - 1, USER - 2];
    let trace = |user: &u32| format!("{user}.ptrace");
    let recorders: Vec<Child> =
        users.iter().map(|user| start(&stage, *user, &trace(user))).collect();
    let noise = connected(&broker.socket);
    send(noise.as_raw_fd(), b"garbage", MsgFlags::empty()).unwrap();
    broker.kill();
    fs::write(stage.path("go"), "").unwrap();
    for (user, recorder) in users.iter().zip(recorders) {
        let output = recorder.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{}", said(&output));
        let events = assert_complete(&stage.path(&trace(user)));
        let programs: Vec<&str> = events.kind("exec").map(|exec| text(&exec["path"])).collect();
        let has = |name: &str| programs.iter().any(|path| path.ends_with(name));
        assert!(has("/cat") && has("/true"), "{programs:?}");
        let looked: Vec<&str> = events.kind("lookup_failed").map(|it| text(&it["path"])).collect();
        assert!(looked.contains(&"/no/such/file"), "{looked:?}");
    }
    // Another one takes its place, and its socket.
    let output = recorder(&stage, USER, "late.ptrace", &[], &["true"]).output().unwrap();
    assert!(said(&output).contains("no broker listens at"), "{}", said(&output));
    let mut next = Command::new(stage.path("proctrace"));
    let next = next.args(["broker", "--socket"]).arg(&broker.socket).stderr(Stdio::null()).spawn();
    let mut next = next.unwrap();
    while !recorder(&stage, USER, "late.ptrace", &[], &["true"]).status().unwrap().success() {
        assert!(next.try_wait().unwrap().is_none(), "the second broker has ended");
    }
    next.kill().unwrap();
    next.wait().unwrap();
}

#[test]
fn a_recording_whose_programs_are_detached_ends_with_its_command_and_says_so() {
    let (stage, mut broker) = stage(&[]);
    let recorder = start(&stage, USER, "cut.ptrace");
    let children = format!("/proc/{0}/task/{0}/children", broker.pid());
    let keeper = fs::read_to_string(children).unwrap();
    assert!(Command::new("kill").args(["-9", keeper.trim()]).status().unwrap().success());
    broker.wait_for("has ended after");
    fs::write(stage.path("go"), "").unwrap();
    let output = recorder.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{}", said(&output));
    assert!(said(&output).contains("the recording is incomplete"), "{}", said(&output));
    let check =
        crate::common::proctrace().arg("check").arg(stage.path("cut.ptrace")).output().unwrap();
    assert!(!check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    // Nobody is served any more, until the broker is started anew.
    let output = self::recorder(&stage, USER, "late.ptrace", &[], &["true"]).output().unwrap();
    assert!(said(&output).contains("start the broker anew"), "{}", said(&output));
}

#[test]
fn a_recorder_that_is_killed_leaves_nothing_behind() {
    let (stage, mut broker) = stage(&["--recordings-per-user", "1"]);
    let mut first = start(&stage, USER, "first.ptrace");
    let output = recorder(&stage, USER, "second.ptrace", &[], &["true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(
        said(&output).contains("the broker refuses: user 65534 has 1 recordings"),
        "{}",
        said(&output)
    );
    // Of another user there is none yet.
    assert!(recorder(&stage, USER - 1, "other.ptrace", &[], &["true"]).status().unwrap().success());
    // Without insisting on the broker, there is another way.
    let mut automatic = stage.as_user(stage.path("proctrace"));
    let output = automatic.args(["record", "-o", "auto.ptrace", "true"]).output().unwrap();
    assert!(output.status.success() && said(&output).contains("by ptrace"), "{}", said(&output));
    first.kill().unwrap();
    first.wait().unwrap();
    broker.wait_for("has ended after");
    fs::write(stage.path("go"), "").unwrap();
    while !recorder(&stage, USER, "second.ptrace", &[], &["true"]).status().unwrap().success() {}
}

#[test]
fn what_others_run_is_not_recorded() {
    let (stage, _broker) = stage(&[]);
    let mut of_root = Command::new("sleep").arg("1000").spawn().unwrap();
    let root = of_root.id().to_string();
    let mut of_user = stage.as_user("sleep").arg("1000").spawn().unwrap();
    let mut command = stage.as_user(stage.path("proctrace"));
    command.args(["record", "--backend", "broker", "--duration", "300ms", "-p", &root]);
    let output = command.output().unwrap();
    assert!(said(&output).contains("belongs to another user"), "{}", said(&output));
    let mut command = stage.as_user(stage.path("proctrace"));
    command.args(["record", "--backend", "broker", "--duration", "300ms", "-a"]);
    let output = command.args(["-o", "all.ptrace"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let events = Events::of(&stage.path("all.ptrace"));
    let attached: Vec<u64> = events.kind("attach").map(|attach| u64_of(&attach["pid"])).collect();
    assert!(attached.contains(&of_user.id().into()), "{attached:?}");
    assert!(!attached.contains(&of_root.id().into()), "{attached:?}");
    for process in [&mut of_root, &mut of_user] {
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

#[test]
fn programs_with_the_rights_of_others_keep_them_and_their_secrets() {
    let (stage, _broker) = stage(&[]);
    let id = stage.copy(Path::new("/usr/bin/id"), "id", 0o4755);
    let bare = stage.as_user(&id).arg("-u").output().unwrap();
    assert_eq!(bare.stdout, b"0\n", "the test needs a file system with set-user-ID");
    let command = [id.to_str().unwrap(), "-u"];
    let output = recorder(&stage, USER, "test.ptrace", &[], &command).output().unwrap();
    assert_eq!(output.stdout, b"0\n");
    let events = assert_complete(&stage.path("test.ptrace"));
    let exec = events.kind("exec").next().unwrap();
    assert_eq!(exec["withheld"], true, "{exec}");
    assert_eq!((text(&exec["path"]), exec["argv"].as_array().unwrap().len()), ("", 0), "{exec}");
}

#[test]
fn in_a_pid_namespace_pids_are_those_of_the_namespace() {
    let (stage, _broker) = stage(&[]);
    // Of a user namespace, too, as a rootless container has.
    let mut command = stage.as_user("unshare");
    command.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]);
    command.arg(stage.path("proctrace")).args(["record", "--backend", "broker", "--memory=10ms"]);
    command.args(["-o", "test.ptrace", "--", "sh", "-c"]);
    command.arg("echo $$; sh -c 'echo $$; sleep 0.1; exit 2'; echo $? > /dev/null");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let pids: Vec<u64> =
        String::from_utf8_lossy(&output.stdout).lines().map(|line| line.parse().unwrap()).collect();
    assert!(pids.iter().all(|pid| *pid < 20), "{pids:?}");
    let events = assert_complete(&stage.path("test.ptrace"));
    let attach = events.kind("attach").next().unwrap();
    assert_eq!(u64_of(&attach["pid"]), pids[0], "{attach}");
    let fork = events.kind("fork").next().unwrap();
    assert_eq!((u64_of(&fork["pid"]), u64_of(&fork["child_pid"])), (pids[0], pids[1]), "{fork}");
    assert_eq!(u64_of(&fork["parent_pid"]), pids[0], "{fork}");
    for kind in ["exec", "exit", "memory", "sample"] {
        let found: Vec<u64> = events.kind(kind).map(|event| u64_of(&event["pid"])).collect();
        assert!(found.contains(&pids[1]), "{kind}: {found:?}");
        assert!(found.iter().all(|pid| *pid < 20), "{kind}: {found:?}");
    }
}

fn connected(path: &Path) -> OwnedFd {
    let socket =
        socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
    connect(socket.as_raw_fd(), &UnixAddr::new(path).unwrap()).unwrap();
    socket
}

#[test]
fn garbage_and_floods_do_not_keep_others_from_recording() {
    let (stage, mut broker) = stage(&[]);
    // What is said of a user is limited, so what must be said comes first.
    let tell = connected(&broker.socket);
    let huge = vec![b'x'; 100_000];
    let _ = send(tell.as_raw_fd(), &huge, MsgFlags::MSG_NOSIGNAL);
    broker.wait_for("is refused: no request");
    let tell = connected(&broker.socket);
    send(tell.as_raw_fd(), b"garbage", MsgFlags::MSG_NOSIGNAL).unwrap();
    broker.wait_for("is refused: not a request");
    // Connections that ask for nothing: all but a few of one user are refused.
    let silent: Vec<OwnedFd> = (0..100).map(|_| connected(&broker.socket)).collect();
    broker.wait_for("connections, the limit");
    let recorded = |trace: &str| {
        let output = recorder(&stage, USER, trace, &[], &["true"]).output().unwrap();
        assert!(output.status.success(), "{} {}", said(&output), broker.log());
        assert_complete(&stage.path(trace));
    };
    recorded("silent.ptrace");
    for round in 0..200_usize {
        let socket = connected(&broker.socket);
        let garbage: Vec<u8> = (0..round * 37 % 5000).map(|at| (at * round) as u8).collect();
        // It may have been refused before.
        let _ = send(socket.as_raw_fd(), &garbage, MsgFlags::MSG_NOSIGNAL);
        if round % 3 == 0 {
            let request = format!("{{\"protocol\":{round},\"scope\":{}", "[".repeat(round * 100));
            let _ = send(socket.as_raw_fd(), request.as_bytes(), MsgFlags::MSG_NOSIGNAL);
        }
    }
    recorded("garbage.ptrace");
    drop(silent);
}

#[test]
fn several_users_record_at_once() {
    let (stage, _broker) = stage(&[]);
    let script = "i=0; while [ $i -lt 50 ]; do /bin/true; i=$((i + 1)); done";
    let users = [USER, USER - 1, USER - 2, USER];
    let recorders: Vec<(String, Child)> = (0..)
        .zip(users)
        .map(|(number, user)| {
            let trace = format!("{number}.ptrace");
            let child = recorder(&stage, user, &trace, &[], &["sh", "-c", script]).spawn().unwrap();
            (trace, child)
        })
        .collect();
    for (trace, recorder) in recorders {
        let output = recorder.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(assert_complete(&stage.path(&trace)).forks(false).len(), 50);
    }
}

#[test]
fn what_a_broker_cannot_do_is_refused() {
    let (stage, broker) = stage(&["--buffers-per-user", "1"]);
    let output = recorder(&stage, USER, "test.ptrace", &[], &["true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(said(&output).contains("use a smaller --ring-size"), "{}", said(&output));
    let small =
        recorder(&stage, USER, "test.ptrace", &["--ring-size", "64KiB"], &["true"]).output();
    let small = small.unwrap();
    assert!(small.status.success(), "{}", said(&small));
    // Nobody but root can be a broker, and there is one for a socket.
    let mut command = stage.as_user(stage.path("proctrace"));
    let output = command.args(["broker", "--socket", "mine"]).output().unwrap();
    assert!(said(&output).contains("only root serves others"), "{}", said(&output));
    let mut command = Command::new(stage.path("proctrace"));
    let output = command.args(["broker", "--socket"]).arg(&broker.socket).output().unwrap();
    assert!(said(&output).contains("a broker listens at"), "{}", said(&output));
    // What is not a socket is not removed.
    let file = stage.path("file");
    fs::File::create(&file).unwrap().write_all(b"mine").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let mut command = Command::new(stage.path("proctrace"));
    let output = command.args(["broker", "--socket"]).arg(&file).output().unwrap();
    assert!(!output.status.success());
    assert_eq!(fs::read(&file).unwrap(), b"mine");
}

/// proctrace as this user, in a container whose seccomp profile forbids bpf(2).
fn without_bpf(stage: &Stage, user: u32, arguments: &[&str]) -> Command {
    let mut command = stage.as_user(stage.fixture("without_bpf"));
    command.uid(user).gid(user).arg(stage.path("proctrace")).args(arguments);
    command
}

#[test]
fn a_container_that_forbids_bpf_is_told_so() {
    let (stage, mut broker) = stage(&[]);
    let advised = |said: &str| {
        assert!(said.contains("a seccomp filter forbids bpf(2)"), "{said}");
        assert!(said.contains("--security-opt seccomp=PROFILE (docs/broker.md"), "{said}");
        let mut message = said.lines().take_while(|line| !line.contains("by ptrace"));
        assert!(message.all(|line| line.chars().count() <= 80), "{said}");
    };
    // The client of a broker.
    let only = ["record", "--backend", "broker", "--output", "only.ptrace", "--", "true"];
    let output = without_bpf(&stage, USER, &only).output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{}", said(&output));
    advised(&said(&output));
    // By default, the command is recorded by ptrace, and the reason is said.
    let any = ["record", "--output", "any.ptrace", "--", "true"];
    let output = without_bpf(&stage, USER, &any).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    advised(&said(&output));
    assert_eq!(header(&stage.path("any.ptrace"))["header"]["backend"], "ptrace");
    // Root, with all capabilities.
    let root = ["record", "--backend", "ebpf", "--output", "root.ptrace", "--", "true"];
    let output = without_bpf(&stage, 0, &root).output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{}", said(&output));
    advised(&said(&output));
    assert!(!said(&output).contains("sudo"), "{}", said(&output));
    // Nobody made the broker load anything.
    broker.kill();
    assert!(!broker.log().contains("records the command"), "{}", broker.log());
}

/// Answer of `doctor` to a user, as text and as JSON.
fn examined(stage: &Stage, may_use_bpf: bool) -> (String, serde_json::Value) {
    let run = |arguments: &[&str]| {
        let mut doctor = match may_use_bpf {
            true => stage.as_user(stage.path("proctrace")),
            false => without_bpf(stage, USER, &[]),
        };
        let said = String::from_utf8(doctor.args(arguments).output().unwrap().stdout).unwrap();
        // Sentences go over several lines.
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    (run(&["doctor"]), serde_json::from_str(&run(&["doctor", "--json"])).unwrap())
}

#[test]
fn the_doctor_asks_the_broker() {
    let (mut stage, mut broker) = stage(&[]);
    let state = |json: &serde_json::Value| text(&json["broker"]["state"]).to_owned();
    let (said, json) = examined(&stage, true);
    assert!(said.contains("ok broker"), "{said}");
    assert!(said.contains(&format!("grants user {USER}")), "{said}");
    assert!(said.contains("everybody may connect"), "{said}");
    assert!(said.contains("Recording is possible by the broker"), "{said}");
    assert_eq!(state(&json), "grants");
    assert_eq!(json["can_record"]["ebpf"], false);
    assert_eq!(json["can_record"]["broker"], true);
    let checks = json["checks"].as_array().unwrap();
    let verdict = |name: &str| {
        let check = checks.iter().find(|check| check["name"] == name);
        check.map(|check| text(&check["verdict"]).to_owned())
    };
    assert_eq!(verdict("broker").as_deref(), Some("good"));
    assert_eq!(verdict("privileges").as_deref(), Some("bad"));
    broker.wait_for("records the command proctrace doctor");
    let (said, json) = examined(&stage, false);
    assert!(said.contains("BAD seccomp"), "{said}");
    assert!(said.contains("--security-opt seccomp=PROFILE"), "{said}");
    assert_eq!(state(&json), "forbidden by seccomp");
    assert_eq!(json["can_record"]["broker"], false);
    // Only its group may connect.
    fs::set_permissions(&broker.socket, fs::Permissions::from_mode(0o660)).unwrap();
    let (said, json) = examined(&stage, true);
    assert!(said.contains("group 0 may connect"), "{said}");
    assert_eq!(state(&json), "silent");
    fs::set_permissions(&broker.socket, fs::Permissions::from_mode(0o666)).unwrap();
    broker.kill();
    let (said, json) = examined(&stage, true);
    assert!(said.contains("does not answer (Connection refused"), "{said}");
    assert!(said.contains("systemctl enable --now proctrace-broker.socket"), "{said}");
    assert_eq!(state(&json), "silent");
    stage.socket = stage.path("no.sock");
    let (said, json) = examined(&stage, true);
    assert!(
        said.contains("none: there is no socket") && said.contains("proctrace broker"),
        "{said}"
    );
    assert_eq!((state(&json).as_str(), &json["can_record"]["broker"]), ("absent", &false.into()));
}

#[test]
fn the_doctor_says_why_a_broker_refuses() {
    let (stage, _broker) = stage(&["--recordings", "0"]);
    let (said, json) = examined(&stage, true);
    assert!(said.contains("note broker") && said.contains("refuses user"), "{said}");
    assert_eq!(json["broker"]["state"], "refuses");
    assert!(text(&json["broker"]["why"]).contains("recordings"), "{json}");
}
