//! Pairs of a client and a target, in real namespaces, with real ids and capabilities: the kernel and a broker are
//! asked about each whether the client may see what the target keeps to itself, and agree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::common::stage::{Broker, Stage};
use crate::common::{Events, text};

/// A user that owns namespaces, and another one.
const USER: u32 = 1000;
const OTHER: u32 = 1001;

/// Outside, the second id of each namespace: in_namespaces.c.
const SECOND: u32 = 100_000;

/// CAP_SYS_PTRACE alone, what container engines leave by default (without it), and all.
const PTRACE: u64 = 1 << 19;
const CONTAINER: u64 = 0xa804_25fb;
const ALL: u64 = u64::MAX;

/// A process of the test; killed when it is dropped.
struct Running(Child);

impl Running {
    /// Starts a command, and returns the first line that it prints.
    fn start(command: &mut Command) -> (Self, String) {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'), "{command:?} has printed {line:?}");
        (Self(child), line.trim().to_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A set of namespaces: its name, and the process that holds it, by its pid; 0: those of the test.
struct Home {
    name: &'static str,
    holder: String,
}

/// Identity of a process: where it lives, its id there, and its capabilities.
#[derive(Clone)]
struct Who {
    name: String,
    holder: String,
    id: u32,
    capabilities: u64,
}

struct Place {
    program: PathBuf,
    directory: PathBuf,
    _running: Vec<Running>,
    homes: Vec<Home>,
}

impl Place {
    fn new(stage: &Stage) -> Self {
        let program = stage.fixture("in_namespaces");
        let directory = stage.directory.path().to_owned();
        let (mut running, mut homes) = (Vec::new(), Vec::new());
        homes.push(Home { name: "host", holder: "0".to_owned() });
        let owner = USER.to_string();
        for (name, owner, pids) in [
            ("user", owner.as_str(), "0"),
            ("user+pid", &owner, "1"),
            ("sibling", &owner, "1"),
            ("other's", &OTHER.to_string(), "1"),
            ("pid", "-", "1"),
        ] {
            let mut command = Command::new(&program);
            let (child, holder) = Running::start(command.args(["hold", owner, pids]));
            running.push(child);
            homes.push(Home { name, holder });
        }
        // Within the second: made by its root, and owned by that.
        let outer = homes[1].holder.clone();
        let mut command = Command::new(&program);
        command.args(["join", &outer, "0", "0", "ffffffffffffffff"]).arg(&program);
        let (child, holder) = Running::start(command.args(["hold", "0", "0"]));
        running.push(child);
        homes.push(Home { name: "nested", holder });
        Self { program, directory, _running: running, homes }
    }

    fn everybody(&self) -> Vec<Who> {
        let on_host =
            [(0, ALL), (0, CONTAINER), (0, 0), (USER, 0), (USER, PTRACE), (OTHER, 0), (SECOND, 0)];
        let below = [(0, ALL), (0, CONTAINER), (0, 0), (1, 0), (1, PTRACE)];
        let mut all = Vec::new();
        for home in &self.homes {
            let ids: &[(u32, u64)] = if home.name == "host" { &on_host } else { &below };
            for &(id, capabilities) in ids {
                let name = format!("{} {id} {capabilities:x}", home.name);
                all.push(Who { name, holder: home.holder.clone(), id, capabilities });
            }
        }
        all
    }

    /// A command that runs a program as somebody.
    fn run(&self, who: &Who, program: &PathBuf) -> Command {
        let mut command = Command::new(&self.program);
        let id = who.id.to_string();
        let capabilities = format!("{:x}", who.capabilities);
        command.current_dir(&self.directory).args(["join", &who.holder, &id, &id, &capabilities]);
        command.arg(program);
        command
    }
}

#[test]
fn the_kernel_and_a_broker_agree_about_each_pair() {
    let stage = Stage::new();
    let broker = Broker::start(&stage, &[]);
    let place = Place::new(&stage);
    let everybody = place.everybody();
    let mut targets = BTreeMap::new();
    let mut running = Vec::new();
    for who in &everybody {
        for dumpable in ["0", "1"] {
            let name = format!("pair-{}", targets.len());
            let mut command = place.run(who, &place.program);
            command.args(["pause", &name, dumpable]).env("SECRET", "of this target alone");
            let (child, word) = Running::start(&mut command);
            assert_eq!(word, "ready");
            running.push(child);
            let traceable = if dumpable == "1" { "" } else { " not dumpable" };
            targets.insert(name, format!("{}{traceable}", who.name));
        }
    }
    let (mut pairs, mut seen, mut wrong) = (0, 0, Vec::new());
    for (number, client) in everybody.iter().enumerate() {
        let asked = place.run(client, &place.program).args(["ask", "pair-"]).output().unwrap();
        let by_kernel: BTreeSet<String> = String::from_utf8(asked.stdout)
            .unwrap()
            .lines()
            .filter_map(|line| line.strip_suffix(" 1").map(str::to_owned))
            .collect();
        let trace = stage.path(&format!("{number}.ptrace"));
        let mut recorder = place.run(client, &stage.path("proctrace"));
        recorder.args(["record", "-a", "--backend", "broker", "--misses", "none"]);
        recorder.args(["--duration", "100ms", "--broker"]).arg(&broker.socket);
        let output = recorder.arg("-o").arg(&trace).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {said}", client.name);
        fs::set_permissions(&trace, fs::Permissions::from_mode(0o644)).unwrap();
        let by_broker: BTreeSet<String> = Events::of(&trace)
            .kind("attach")
            .map(|attach| text(&attach["comm"]).to_owned())
            .filter(|name| name.starts_with("pair-"))
            .collect();
        for (name, target) in &targets {
            pairs += 1;
            seen += usize::from(by_kernel.contains(name));
            if by_kernel.contains(name) != by_broker.contains(name) {
                wrong.push(format!(
                    "{} sees {target}: kernel {}, broker {}",
                    client.name,
                    by_kernel.contains(name),
                    by_broker.contains(name)
                ));
            }
        }
    }
    println!("{pairs} pairs of {} clients, {seen} may be seen", everybody.len());
    assert!(wrong.is_empty(), "{} of {pairs} pairs:\n{}", wrong.len(), wrong.join("\n"));
    // Both answers occur often enough for the agreement to mean something.
    assert!(pairs > 2000 && seen > pairs / 20 && seen < pairs / 2, "{seen} of {pairs}");
    drop(running);
}
