//! `record -a --per-cgroup`: the jobs of a node told apart, against what their payloads declare and what
//! the kernel counts for their cgroups.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::common::declared::{declared, recorded};
use crate::common::node::{Node, wait_until};
use crate::common::stage::Stage;
use crate::common::{Events, fixture, payload, proctrace, report, u64_of};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proctrace_payload::catalog;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::Value;

fn assert_sound(trace: &Path) {
    let check = proctrace().arg("check").arg(trace).output().unwrap();
    let says = String::from_utf8_lossy(&check.stdout);
    assert_eq!(check.status.code(), Some(0), "{}: {says}", trace.display());
}

/// CPU time agrees with the kernel's: cpu.stat is counted when the scheduler looks, and has what the shell
/// used between its move and the record of it.
fn assert_cpu(what: &str, counted_ns: u64, recorded_ns: u64) {
    let allowed = 3_000_000 + counted_ns / 100;
    let difference = counted_ns.abs_diff(recorded_ns);
    assert!(difference <= allowed, "{what}: {counted_ns} ns counted, {recorded_ns} recorded");
}

const JOBS: usize = 20;

#[test]
fn twenty_jobs_at_once_are_told_apart() {
    let mut node = Node::new("twenty");
    node.start(&[]);
    let names: Vec<&str> = catalog::names().collect();
    let scenarios: Vec<&str> = names.iter().copied().cycle().take(JOBS).collect();
    let program = payload();
    let mut running = Vec::new();
    for (nth, scenario) in scenarios.iter().enumerate() {
        let work = node.path(&format!("work-{nth}"));
        let declaration = node.path(&format!("declared-{nth}.json"));
        let mut job = node.job(
            &format!("job_{nth}"),
            &[
                program.to_str().unwrap(),
                "run",
                scenario,
                "--scale",
                "0.01",
                "--workers",
                "2",
                "--work-factor",
                "0.02",
                "--work",
                work.to_str().unwrap(),
                "--declare",
                declaration.to_str().unwrap(),
            ],
        );
        job.env("SLURM_JOB_ID", format!("{}", 1000 + nth)).env("SLURM_JOB_PARTITION", "long");
        running.push(job.stdout(Stdio::null()).spawn().unwrap());
    }
    for job in &mut running {
        assert!(job.wait().unwrap().success());
    }
    let used: Vec<u64> = (0..JOBS).map(|nth| node.remove(&format!("job_{nth}"))).collect();
    let said = node.finish();
    assert!(said.contains(&format!("{JOBS} jobs recorded in jobs")), "{said}");
    for (nth, scenario) in scenarios.iter().enumerate() {
        let what = format!("job {nth}, {scenario}");
        let trace = node.trace(&format!("job_{nth}"));
        assert_sound(&trace);
        let declaration = fs::read(node.path(&format!("declared-{nth}.json"))).unwrap();
        let declared = declared(&serde_json::from_slice(&declaration).unwrap());
        let recorded = recorded(&trace, &node.path(&format!("work-{nth}")));
        for (key, declared) in declared.as_object().unwrap() {
            assert_eq!(*declared, recorded[key], "{what}: {key} as declared, and as recorded");
        }
        let found = report(&trace);
        assert_eq!(found["health"]["complete"], true, "{what}");
        assert_cpu(&what, used[nth], u64_of(&found["summary"]["cpu_ns"]));
    }
    // What each of them was, in the lake.
    let traces = (0..JOBS).map(|nth| node.trace(&format!("job_{nth}")));
    let summarized =
        proctrace().arg("summarize").args(traces).arg("-o").arg(node.path("lake")).output();
    assert!(summarized.unwrap().status.success());
    let rows = node.rows(
        "SELECT batch_system, batch_id, queue, sound FROM jobs ORDER BY CAST(batch_id AS BIGINT)",
    );
    assert_eq!(rows.len(), JOBS);
    for (nth, row) in rows.iter().enumerate() {
        assert_eq!(row["batch_system"], "slurm", "{row}");
        assert_eq!(row["batch_id"], format!("{}", 1000 + nth), "{row}");
        assert_eq!((&row["queue"], &row["sound"]), (&"long".into(), &true.into()), "{row}");
    }
}

#[test]
fn each_job_is_summarized_as_its_cgroup_ends() {
    let mut node = Node::new("summaries");
    node.start(&["--summary", "lake", "--discard-trace", "--label", "site=T9"]);
    let spawn = fixture("spawn");
    let jobs = [("job_a", "11"), ("job_b", "7"), ("other", "5")];
    for (name, count) in jobs {
        let mut job = node.job(name, &[spawn.to_str().unwrap(), count, "/bin/true"]);
        assert!(job.status().unwrap().success());
        node.remove(name);
    }
    wait_until("both summaries", || {
        fs::read_dir(node.path("lake/table=jobs")).is_ok_and(|days| {
            let files = days.flatten().flat_map(|day| fs::read_dir(day.path()).unwrap().flatten());
            files.filter(|file| file.path().extension().is_some_and(|it| it == "parquet")).count()
                == 2
        })
    });
    let rows = node.rows("SELECT labels, site, processes, wall_us FROM jobs ORDER BY labels");
    let told: Vec<_> = rows.iter().map(|row| (&row["labels"], u64_of(&row["processes"]))).collect();
    // The shell has become the program that creates so many children.
    let expected = [("cgroup=job_a".into(), 12), ("cgroup=job_b".into(), 8)];
    assert_eq!(told, expected.each_ref().map(|(label, count)| (label, *count)));
    assert!(rows.iter().all(|row| row["site"] == "T9"), "{rows:?}");
    let said = node.finish();
    assert!(said.contains("2 jobs recorded in jobs, 2 summarized"), "{said}");
    assert_eq!(fs::read_dir(node.path("jobs")).unwrap().count(), 0, "{said}");
}

#[test]
fn what_a_daemon_starts_belongs_to_the_job_of_its_cgroup() {
    let mut node = Node::new("daemon");
    node.start(&[]);
    // The daemon is in no job; its child is in the job from its birth on.
    let cgroup = node.cgroup.join("job_1");
    fs::create_dir(&cgroup).unwrap();
    let daemon = |command: &[&str]| -> Output {
        let mut daemon = Command::new(fixture("into_cgroup"));
        daemon.arg(&cgroup).args(command).env_remove("LD_LIBRARY_PATH").output().unwrap()
    };
    assert_eq!(daemon(&["sh", "-c", "/bin/true; /bin/true; exit 3"]).status.code(), Some(3));
    // The same from another job, whose process waits for a child that is never in it.
    let script = format!(
        "{} {} sh -c '{} 60; exit 4'; exit $?",
        fixture("into_cgroup").display(),
        cgroup.display(),
        fixture("burn").display()
    );
    let mut job = node.job("job_2", &["sh", "-c", &script]);
    assert_eq!(job.status().unwrap().code(), Some(4));
    let used = [node.remove("job_1"), node.remove("job_2")];
    node.finish();
    let traces = ["job_1", "job_2"].map(|job| node.trace(job));
    let events = [&traces[0], &traces[1]].map(|trace| Events::of(trace));
    for trace in &traces {
        assert_sound(trace);
    }
    let count = |nth: usize, kind: &str| events[nth].kind(kind).count();
    assert_eq!((count(0, "attach"), count(0, "fork"), count(0, "exit")), (2, 3, 5));
    assert_eq!((count(1, "attach"), count(1, "fork"), count(1, "exit")), (1, 2, 2));
    assert_eq!(events[0].codes(), [(0, 3), (3, 1), (4, 1)].into());
    for (nth, trace) in traces.iter().enumerate() {
        assert_cpu(
            &trace.display().to_string(),
            used[nth],
            u64_of(&report(trace)["summary"]["cpu_ns"]),
        );
    }
}

#[test]
fn a_process_that_moves_is_counted_in_each_job_for_what_it_did_there() {
    let mut node = Node::new("moves");
    node.start(&[]);
    let burn = fixture("burn");
    let second = node.cgroup.join("job_second");
    fs::create_dir(&second).unwrap();
    let script = format!(
        "{burn} 60; /bin/true; echo $$ > {}/cgroup.procs; {burn} 90; /bin/true; /bin/true; :",
        second.display(),
        burn = burn.display()
    );
    let mut job = node.job("job_first", &["sh", "-c", &script]);
    assert!(job.status().unwrap().success());
    let used = [node.remove("job_first"), node.remove("job_second")];
    node.finish();
    let traces = ["job_first", "job_second"].map(|job| node.trace(job));
    for (nth, trace) in traces.iter().enumerate() {
        let events = Events::of(trace);
        assert_eq!(events.kind("attach").count(), 1);
        assert_eq!(events.forks(false).len(), [2, 3][nth]);
        assert_eq!(events.kind("exit").count(), [2, 4][nth]);
        assert_cpu(
            &trace.display().to_string(),
            used[nth],
            u64_of(&report(trace)["summary"]["cpu_ns"]),
        );
        assert_sound(trace);
    }
}

#[test]
fn a_recorder_that_was_killed_is_followed_by_one_that_completes_its_work() {
    let mut node = Node::new("killed");
    let summaries = ["--summary", "lake", "--discard-trace"];
    node.start(&summaries);
    let phases = fixture("phases");
    let mut job = node.job("job_1", &[phases.to_str().unwrap(), "10", "10"]);
    let mut job = job.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(job.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    // Its first records are in the file.
    wait_until("a trace", || {
        node.path("jobs").is_dir()
            && node.traces("job_1").first().is_some_and(|trace| {
                proctrace().arg("dump").arg(trace).output().is_ok_and(|it| !it.stdout.is_empty())
            })
    });
    node.signal(Signal::SIGKILL);
    let (mut killed, _) = node.recorder.take().unwrap();
    killed.wait().unwrap();
    assert_eq!(node.traces("job_1").len(), 1);

    // The job is still running: the next recorder finds it.
    node.start(&summaries);
    drop(job.stdin.take());
    assert!(job.wait().unwrap().success());
    node.remove("job_1");
    let is_done = |node: &Node| node.traces("job_1").is_empty();
    wait_until("both summaries", || is_done(&node));
    let said = node.finish();
    assert!(said.contains("1 job recorded in jobs, 2 summarized"), "{said}");
    let rows = node.rows(
        "SELECT sound, partial, processes, exit_code, command, labels FROM jobs ORDER BY started_unix_us",
    );
    assert_eq!(rows.len(), 2, "{rows:?}");
    // The first was cut off; the second has seen the process, and what it has started since.
    assert!(u64_of(&rows[0]["processes"]) >= 1 && u64_of(&rows[1]["processes"]) > 1, "{rows:?}");
    for row in &rows {
        assert_eq!((&row["sound"], &row["partial"]), (&false.into(), &true.into()), "{row}");
        assert_eq!(row["labels"], "cgroup=job_1", "{row}");
        let command = row["command"].as_str().unwrap();
        assert!(command.contains("phases 10 10"), "{row}");
    }
    assert_eq!([&rows[0]["exit_code"], &rows[1]["exit_code"]], [&Value::Null, &Value::from(0)]);
}

#[test]
fn a_job_is_who_its_cgroup_and_its_processes_say_and_not_its_environment() {
    let mut node = Node::new("claims");
    let scope = "n1_slurmstepd.scope";
    fs::create_dir(node.cgroup.join(scope)).unwrap();
    fs::write(node.path("key"), "a key of sixteen or more bytes").unwrap();
    let pattern = format!(
        "--per-cgroup={}/*slurmstepd.scope/job_*",
        node.cgroup.file_name().unwrap().to_str().unwrap()
    );
    node.start(&[&pattern, "--summary", "lake", "--site-key", "key"]);
    // As slurmstepd does: a process of root in the cgroup starts one of the user.
    let lies =
        ["SLURM_JOB_ID=999", "SLURM_JOB_USER=victim", "SLURM_JOB_NAME=simulate", "USER=victim"];
    let script = "/bin/true; sleep 0.2; exit 7";
    let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env"];
    let shell = ["sh", "-c", script];
    let command: Vec<&str> = user.into_iter().chain(lies).chain(shell).collect();
    for name in ["n1_slurmstepd.scope/job_17", "job_18"] {
        assert_eq!(node.job(name, &command).status().unwrap().code(), Some(7));
        node.remove(name);
        node.wait_for("written to lake");
    }
    node.finish();
    let rows = node.rows(
        "SELECT batch_system, batch_id, batch_id_from, user_hash, claimed_batch_id, \
         claimed_user_hash, claimed_job_name, exit_code, command, partial, before_cpu_us \
         FROM jobs ORDER BY started_unix_us",
    );
    assert_eq!(rows.len(), 2, "{rows:?}");
    let hash = |user: &str| proctrace_fleet::user_hash(b"a key of sixteen or more bytes", user);
    // Without a number from Slurm there is only the claim, and it is said that it is one.
    for (row, (id, from)) in rows.iter().zip([("17", "cgroup"), ("999", "environment")]) {
        assert_eq!(
            (&row["batch_system"], &row["batch_id"]),
            (&"slurm".into(), &id.into()),
            "{row}"
        );
        assert_eq!(row["batch_id_from"], from, "{row}");
        let name =
            nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(65534)).unwrap().unwrap().name;
        assert_eq!(row["user_hash"], hash(&name), "{row}");
        assert_eq!(row["claimed_user_hash"], hash("victim"), "{row}");
        assert_eq!(row["claimed_batch_id"], "999", "{row}");
        assert_eq!(row["claimed_job_name"], "simulate", "{row}");
        assert_eq!((&row["exit_code"], &row["partial"]), (&7.into(), &false.into()), "{row}");
        assert_eq!(row["before_cpu_us"], 0, "{row}");
        assert!(row["command"].as_str().unwrap().starts_with("setpriv --reuid=65534"), "{row}");
    }
    // The question about failures counts them.
    let rows = node.rows("efficiency");
    assert_eq!((&rows[0]["failed_jobs"], &rows[0]["jobs_without_status"]), (&2.into(), &0.into()));
    let mode = fs::metadata(node.path("lake/table=jobs")).unwrap().mode();
    assert_eq!(
        [fs::metadata(node.path("lake")).unwrap().mode() & 0o7777, mode & 0o7777],
        [0o700; 2]
    );
}

#[test]
fn a_user_is_the_same_in_a_namespace_and_with_other_effective_rights() {
    let mut node = Node::new("users");
    fs::write(node.path("key"), "a key of sixteen or more bytes").unwrap();
    node.start(&["--summary", "lake", "--site-key", "key"]);
    let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    // Root in a user namespace of its own; and a program that runs with root's effective rights, as a set-user-ID one.
    let in_namespace = [&user[..], &["unshare", "-Ur", "sleep", "0.3"]].concat();
    let effective = ["setpriv", "--ruid=65534", "--clear-groups", "sleep", "0.3"];
    for (name, command) in [("job_1", &in_namespace[..]), ("job_2", &effective)] {
        assert!(node.job(name, command).status().unwrap().success());
        node.remove(name);
        node.wait_for("written to lake");
    }
    node.finish();
    let name =
        nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(65534)).unwrap().unwrap().name;
    let expected = proctrace_fleet::user_hash(b"a key of sixteen or more bytes", &name);
    let rows = node.rows("SELECT user_hash, command FROM jobs");
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows.iter().all(|row| row["user_hash"] == expected), "{rows:?}");
}

#[test]
fn what_a_cgroup_had_used_before_is_said_to_be_missing() {
    let mut node = Node::new("before");
    let burn = fixture("burn");
    assert!(node.job("job_1", &[burn.to_str().unwrap(), "60"]).status().unwrap().success());
    let stat = fs::read_to_string(node.cgroup.join("job_1/cpu.stat")).unwrap();
    let used = stat.lines().find_map(|line| line.strip_prefix("usage_usec ")).unwrap();
    node.start(&["--summary", "lake", "--grace", "1s"]);
    // Nothing of it runs when the recorder starts, and yet a part is missing.
    assert!(node.job("job_1", &["/bin/true"]).status().unwrap().success());
    // The cgroup stays until then: what was used before is read from it, and not known once it has been removed.
    node.wait_for("written to lake");
    node.remove("job_1");
    node.finish();
    let rows = node.rows("SELECT before_cpu_us, partial, sound FROM jobs");
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["before_cpu_us"], used.trim().parse::<u64>().unwrap());
    assert_eq!((&rows[0]["partial"], &rows[0]["sound"]), (&true.into(), &false.into()));
}

#[test]
fn systemd_is_told_when_the_recorder_is_ready() {
    let node = Node::new("notify");
    let path = node.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut recorder = node
        .command(&["--quiet"])
        .env("NOTIFY_SOCKET", &path)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut message = [0; 256];
    let length = socket.recv(&mut message).unwrap();
    let message = std::str::from_utf8(&message[..length]).unwrap();
    assert!(message.lines().any(|line| line == "READY=1"), "{message}");
    // From now on nothing is missed.
    assert!(node.job("job_1", &["/bin/true"]).status().unwrap().success());
    node.remove("job_1");
    kill(Pid::from_raw(i32::try_from(recorder.id()).unwrap()), Signal::SIGTERM).unwrap();
    assert!(recorder.wait().unwrap().success());
    assert_sound(&node.trace("job_1"));
}

#[test]
fn a_job_that_cannot_be_written_leaves_the_others_alone() {
    let mut node = Node::new("unwritable");
    node.start(&[]);
    // No file can be created any more.
    fs::remove_dir(node.path("jobs")).unwrap();
    assert!(node.job("job_1", &["/bin/true"]).status().unwrap().success());
    node.remove("job_1");
    node.wait_for("job_1 is not recorded");
    fs::create_dir(node.path("jobs")).unwrap();
    assert!(node.job("job_2", &["/bin/true"]).status().unwrap().success());
    node.remove("job_2");
    let (code, said) = node.stop();
    assert_eq!(code, Some(125), "{said}");
    assert!(said.contains("1 job recorded in jobs; 1 not recorded to the end"), "{said}");
    assert_sound(&node.trace("job_2"));
}

/// A small disk.
struct Disk(PathBuf);

impl Disk {
    fn mount(path: PathBuf) -> Self {
        fs::create_dir(&path).unwrap();
        mount("none", &path, "tmpfs", MountFlags::empty(), c"size=256k").unwrap();
        Self(path)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

#[test]
fn a_full_disk_ends_the_recordings_of_jobs_with_a_message() {
    let mut node = Node::new("full");
    let disk = Disk::mount(node.path("jobs"));
    node.start(&[]);
    fs::write(disk.0.join("other"), [0; 240 << 10]).unwrap();
    let many = "for i in $(seq 400); do /bin/true $i$i$i; /bin/false $i; done; :";
    assert!(node.job("job_1", &["sh", "-c", many]).status().unwrap().success());
    node.remove("job_1");
    node.wait_for("the recording of job_1 ends here");
    // Nothing is left of a job whose trace could not even begin.
    let left = fs::read_dir(&disk.0).unwrap().count();
    fs::write(disk.0.join("rest"), [0; 64 << 10]).unwrap_err();
    assert!(node.job("job_2", &["/bin/true"]).status().unwrap().success());
    node.remove("job_2");
    node.wait_for("job_2 is not recorded");
    assert_eq!(fs::read_dir(&disk.0).unwrap().count(), left + 1);
    let (code, said) = node.stop();
    assert_eq!(code, Some(125), "{said}");
    // What there is can be read.
    let trace = node.trace("job_1");
    let dump = proctrace().args(["dump", "--header"]).arg(trace).output().unwrap();
    assert!(dump.status.success() && !dump.stdout.is_empty());
}

#[test]
fn what_cannot_work_is_refused_before_a_job_is_lost() {
    let mut node = Node::new("refused");
    fs::write(node.path("file"), "").unwrap();
    let output = node.command(&["--summary", "file/lake"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("cannot write summaries to file/lake"), "{said}");
    // One recorder for one directory.
    node.start(&[]);
    let output = node.command(&[]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("another recorder writes to jobs"), "{said}");
    node.finish();
}

#[test]
fn only_root_may_record_the_jobs_of_others() {
    let stage = Stage::new();
    let program = stage.copy(Path::new(env!("CARGO_BIN_EXE_proctrace")), "proctrace", 0o755);
    for backend in ["auto", "broker", "ptrace"] {
        let mut command = stage.as_user(&program);
        command.args(["record", "-a", "--per-cgroup", "--backend", backend]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(125), "{backend}: {said}");
        assert!(!said.is_empty());
    }
    // The pattern is read before anything else is done.
    for wrong in [
        &["-a", "--per-cgroup=/"][..],
        &["--per-cgroup"],
        &["-a", "--per-cgroup=../x/*"],
        // That of one job.
        &["-a", "--per-cgroup", "--batch-cpu", "3"],
    ] {
        let output = proctrace().arg("record").args(wrong).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{wrong:?}");
        assert!(said.contains("per-cgroup") || said.contains("--all"), "{wrong:?}: {said}");
    }
}
