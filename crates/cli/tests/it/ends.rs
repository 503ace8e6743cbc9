//! Processes that fail or are killed are counted and named.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Recorder, copy, fixture, proctrace, report, text, u64_of};

#[test]
fn what_failed_and_what_was_killed_is_counted_and_named() {
    let killed = fixture("killed");
    let killed = killed.display();
    // `killed` exits with its child's waitpid(2) status: the signal, and 0x80 with a core dump.
    let script = format!(
        "{killed} 11; echo $?; {killed} 9; {killed} 9; grep -q x /dev/null; grep -q y /dev/null; \
         ls /no/such/file; /bin/true; exit 7"
    );
    let recorded = Recorder::new().run(["sh", "-c", &script]);
    assert_eq!(recorded.code(), 7, "{}", recorded.stderr());
    let segv = String::from_utf8_lossy(&recorded.output.stdout).trim().parse::<u64>().unwrap();
    let cores = u64::from(segv == 11 + 128);
    let ends = &report(&recorded.trace())["ends"];
    let of = |key: &str| u64_of(&ends[key]);
    assert_eq!((of("signalled"), of("failed")), (3, 7), "{ends}");
    assert_eq!((of("succeeded"), of("unknown")), (1, 0), "{ends}");
    assert_eq!(of("core_dumps"), cores);

    let all = ends["by_program"].as_array().unwrap();
    let lines: Vec<String> = all
        .iter()
        .map(|end| {
            format!("{} {} {}", text(&end["program"]), text(&end["how"]), u64_of(&end["processes"]))
        })
        .collect();
    assert_eq!(lines[..2], ["killed SIGSEGV 1", "killed SIGKILL 2"]);
    assert_eq!(*lines.last().unwrap(), "grep exit 1 2");
    let mut between = lines[2..lines.len() - 1].to_vec();
    between.sort();
    let segv = format!("killed exit {segv} 1");
    let mut expected = [segv.as_str(), "killed exit 9 2", "ls exit 2 1", "sh exit 7 1"];
    expected.sort_unstable();
    assert_eq!(between, expected);
    assert_eq!(all[0]["example_parent"], "killed");
    assert_eq!(u64_of(&all[0]["core_dumps"]), cores);
    // The pid is that of the process killed by the signal.
    let events = crate::common::Events::of(&recorded.trace());
    assert_eq!(events.end_of(&all[0]["example_pid"])["signal"], 11);

    let shown = proctrace().arg("report").arg(recorded.trace()).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("Ends     3 killed by a signal (killed SIGSEGV"), "{shown}");
    assert!(shown.contains("7 exited with a non-zero status ("), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let section = proctrace()
        .args(["report", "--section", "ends", "--format", "csv"])
        .arg(recorded.trace())
        .output()
        .unwrap();
    let csv = String::from_utf8(section.stdout).unwrap();
    assert!(csv.contains("killed,SIGKILL,2,0,"), "{csv}");
}

#[test]
fn a_job_without_failures_has_no_line_for_them() {
    let recorded = Recorder::new().run(["sh", "-c", "ls / > /dev/null; exit 0"]);
    recorded.sound(0);
    let shown = proctrace().arg("report").arg(recorded.trace()).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(!shown.contains("Ends"), "{shown}");
}

/// A cgroup whose members may use only so much memory; removed when dropped.
struct LimitedMemory(PathBuf);

impl LimitedMemory {
    /// Makes the cgroup in version 1 or in version 2, whichever has the controller.
    fn of_bytes(bytes: u64) -> Self {
        let name = format!("proctrace-test-ends-{}", std::process::id());
        let root = Path::new("/sys/fs/cgroup");
        let old = root.join("memory");
        let (directory, limit) = match old.join("memory.limit_in_bytes").exists() {
            true => (old.join(name), "memory.limit_in_bytes"),
            false => {
                fs::write(root.join("cgroup.subtree_control"), "+memory").unwrap();
                (root.join(name), "memory.max")
            }
        };
        fs::create_dir(&directory).unwrap();
        let cgroup = Self(directory);
        fs::write(cgroup.0.join(limit), bytes.to_string()).unwrap();
        // Where there is swap, memory would go there instead.
        let swap = cgroup.0.join("memory.swap.max");
        if swap.exists() {
            fs::write(swap, "0").unwrap();
        }
        cgroup
    }
}

impl Drop for LimitedMemory {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The last thing that a failing job looked for is often why it failed, and stands with the cause, which comes first.
#[test]
fn the_cause_says_what_was_looked_for_last() {
    let cause = |script: &str| {
        let recorder = Recorder::new();
        let recorded = recorder.env("LC_ALL", "C.UTF-8").run(["sh", "-ec", script]);
        assert_ne!(recorded.code(), 0);
        let findings = report(&recorded.trace());
        let shown = proctrace().arg("report").arg(recorded.trace()).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        let place = |label: &str| shown.find(&format!("\n  {label} ")).unwrap();
        assert!(place("Ends") < place("CPU") && place("Cause") < place("CPU"), "{shown}");
        findings["ends"]["cause"][0].clone()
    };
    // It says so in words, for which it looks for a translation: that is not why.
    let missing = cause("true; cat /etc/no-such-slowtool.conf; true");
    assert_eq!((&missing["program"], &missing["how"]), (&"cat".into(), &"exit 1".into()));
    let last = &missing["last_failed"];
    assert_eq!(
        (&last["call"], &last["path"], &last["error"]),
        (&"open".into(), &"/etc/no-such-slowtool.conf".into(), &"ENOENT".into())
    );
    // A program that is not there: the shell's child has none of its own.
    let not_found = cause("env no-such-aclocal-1.14 --version; true");
    let last = &not_found["last_failed"];
    assert_eq!(last["call"], "exec", "{not_found}");
    assert!(text(&last["path"]).ends_with("/no-such-aclocal-1.14"), "{not_found}");
    // What the shell found in the next directory of PATH is no reason.
    let found = cause("sh -c 'cat /dev/null; exit 3'; true");
    assert_eq!(found["last_failed"], Value::Null, "{found}");
    // Nor is where `env` did not find it, of the program that it then ran; nor what a program looked for before that.
    let found = cause("PATH=/no/such:$PATH env false; true");
    assert_eq!((&found["program"], &found["last_failed"]), (&"false".into(), &Value::Null));
    let found = cause("sh -c '[ -e /no/such.conf ]; exec sh -c \"exit 3\"'; true");
    assert_eq!(found["last_failed"], Value::Null, "{found}");
    // A shell runs its last command in its own process: what failed before is not why that fails.
    let last = cause("exec bash -c 'false; rm /no/such/file'");
    assert_eq!(
        (&last["program"], &last["last_failed"]["path"]),
        (&"rm".into(), &"/no/such/file".into())
    );
    let found = cause("exec find /etc/passwd /no/such -maxdepth 0 -exec false {} \\;");
    assert_eq!(found["program"], "find", "{found}");
    // make goes on after the failure because of which it fails.
    let going_on =
        "printf 'all: bad good\\nbad:\\n\\texit 5\\ngood:\\n\\tsleep 0.01; true\\n' | make -k -f -";
    let first = cause(going_on);
    assert_eq!(first["how"], "exit 5", "{first}");
    // By its own decision; bash looks for itself along PATH.
    assert_eq!(cause("true; sh -c 'exit 3'")["last_failed"], Value::Null);
    assert_eq!(cause("PATH=/no/such/bin:$PATH bash -c 'exit 3'")["last_failed"], Value::Null);
}

/// Who goes on after a failure, and then does not find something itself, has not failed because of that.
#[test]
fn a_failure_without_consequences_is_not_the_cause() {
    let chain = |command: &[&str]| {
        let recorded = Recorder::new().env("LC_ALL", "C.UTF-8").run(command);
        assert_ne!(recorded.code(), 0);
        report(&recorded.trace())["ends"]["cause"].clone()
    };
    let of = |chain: &Value| -> Vec<(String, bool)> {
        let steps = chain.as_array().unwrap().iter();
        let named = |step: &Value| format!("{} {}", text(&step["program"]), text(&step["how"]));
        steps.map(|step| (named(step), step["is_certain"].as_bool().unwrap())).collect()
    };
    let is = |step: &str, is_certain| (step.to_owned(), is_certain);
    let misses = |chain: &Value| chain.as_array().unwrap().last().unwrap()["last_failed"].clone();
    let own = chain(&["bash", "-c", "/bin/false; sleep 0.3; cd /no/such/place || exit 1; true"]);
    assert_eq!(of(&own), [is("bash exit 1", true)], "{own}");
    assert_eq!(misses(&own)["path"], "/no/such/place", "{own}");
    let opens = "import os, subprocess, time\nsubprocess.call(['false'])\ntime.sleep(0.3)\n\
                 try: open('/no/such/settings')\nexcept OSError: os._exit(1)";
    let own = chain(&["python3", "-c", opens]);
    assert_eq!(of(&own), [is("python3 exit 1", true)], "{own}");
    assert_eq!(misses(&own)["path"], "/no/such/settings", "{own}");
    // At once it may be either, unless the machine is slow.
    let either = chain(&["bash", "-c", "/bin/false; cd /no/such/place || exit 1; true"]);
    assert_eq!(of(&either).last(), Some(&is("bash exit 1", of(&either).len() == 1)), "{either}");
    assert_eq!(misses(&either)["path"], "/no/such/place", "{either}");
    // Of a command that fails python prints the lines of a traceback, for which it looks.
    let passed = "import subprocess\nsubprocess.check_call(['false'])";
    let passed = chain(&["python3", "-c", passed]);
    assert_eq!(of(&passed), [is("false exit 1", true), is("python3 exit 1", false)], "{passed}");
    // Who tidies up asks what is there: that is not why.
    let tidy =
        chain(&["sh", "-ec", "trap '[ -e /no/lock ] && rm /no/lock' EXIT; cat /no/input; true"]);
    assert_eq!(of(&tidy), [is("cat exit 1", true), is("sh exit 1", true)], "{tidy}");
    let tidy =
        chain(&["sh", "-c", "cat /no/input || { [ -f /no/log ] && cat /no/log; exit 1; }; true"]);
    assert_eq!(of(&tidy), [is("cat exit 1", true), is("sh exit 1", false)], "{tidy}");
    // The same status may be the shell's own decision, unless it ends at the first failure.
    let likely = chain(&["sh", "-c", "sh -c 'exit 2'; exit 2"]);
    assert_eq!(of(&likely), [is("sh exit 2", true), is("sh exit 2", false)], "{likely}");
    let certain = chain(&["sh", "-ec", "sh -c 'exit 2'; true"]);
    assert_eq!(of(&certain), [is("sh exit 2", true), is("sh exit 2", true)], "{certain}");
    // bash looks for the program itself, and has a child say that there is none.
    let not_found = chain(&["bash", "-c", "/bin/false; no-such-tool; exit"]);
    assert_eq!(
        of(&not_found),
        [is("bash exit 127", true), is("bash exit 127", true)],
        "{not_found}"
    );
    let sought = &not_found[0]["last_failed"]["path"];
    assert!(text(sought).ends_with("/no-such-tool"), "{not_found}");
    // A script that is executed is a shell as well.
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("job.sh");
    fs::write(&script, "#!/bin/bash -e\ntrue\nno-such-tool\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let not_found = chain(&[script.to_str().unwrap()]);
    assert_eq!(of(&not_found).len(), 2, "{not_found}");
    let sought = &not_found[0]["last_failed"]["path"];
    assert!(text(sought).ends_with("/no-such-tool"), "{not_found}");
    let own = chain(&["bash", "-c", "[ -e /no/such ]; (exit 127); exit"]);
    assert_eq!(own[0]["last_failed"], Value::Null, "{own}");
}

/// A library that is nowhere; the linker asks whether its directories exist only where they do not have it.
#[test]
fn a_library_that_is_missing_is_the_cause() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("program");
    copy(Path::new("/bin/true"), &program, 0o755);
    let mut bytes = fs::read(&program).unwrap();
    let at = bytes.windows(10).position(|name| name == b"libc.so.6\0").expect("it is dynamic");
    bytes[at..at + 9].copy_from_slice(b"libq.so.6");
    fs::write(&program, bytes).unwrap();
    let recorded = Recorder::new().run([&program]);
    assert_eq!(recorded.code(), 127, "{}", recorded.stderr());
    assert!(recorded.stderr().contains("libq.so.6: cannot open"), "{}", recorded.stderr());
    let said = |command: &str| {
        let said = proctrace().arg(command).arg(recorded.trace()).output().unwrap();
        String::from_utf8(said.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let shown = said("report");
    let is_said = |last: &str| {
        shown.contains(&format!("not found: libq.so.6, last tried as {last}/libq.so.6 "))
    };
    assert!(is_said("/usr/lib") || is_said("/usr/lib64"), "{shown}");
    let script = directory.path().join("job.py");
    fs::write(&script, "#!/no/such/python\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let path = script.display();
    let of_script = Recorder::new().run(["sh", "-c", &format!("{path}; exit 127")]);
    let of_script = proctrace().arg("report").arg(of_script.trace()).output().unwrap();
    let of_script = String::from_utf8(of_script.stdout).unwrap();
    let of_script = of_script.split_whitespace().collect::<Vec<_>>().join(" ");
    let says = format!("not found: job.py or its interpreter, last tried as {path}");
    assert!(of_script.contains(&says), "{of_script}");
    // No list of directories would help.
    assert!(!said("advise").contains("search-in-vain"), "{}", said("advise"));
}

/// A shell looks for a program before it forks: those look-ups are its own, and stand with the child that they were for.
#[test]
fn show_says_where_the_parent_looked_for_the_program() {
    let recorder = Recorder::new();
    let path = format!("{}/one:{}/two:/usr/bin:/bin", "/no/such", "/no/such");
    let recorded = recorder.env("PATH", &path).run(["/bin/sh", "-c", "cat /dev/null; true"]);
    let shown = proctrace()
        .args(["show", "--serial", "2", "--format", "json"])
        .arg(recorded.trace())
        .output()
        .unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let searched =
        shown["process"]["searched_by_parent"].as_array().unwrap_or_else(|| panic!("{shown}"));
    let places: Vec<&str> = searched.iter().map(|place| text(&place["name"])).collect();
    assert_eq!(places, ["/no/such/one/cat", "/no/such/two/cat"], "{shown}");
}

mod root {
    use super::*;

    /// Signals that the kernel sends for what a process does have their reason: who does not read any more, which limit
    /// was reached. The shell's own status proves that each was that signal.
    #[test]
    fn the_kernels_own_signals_have_their_reason() {
        let burn = fixture("burn");
        let burn = burn.display();
        for (script, code, signal, reason) in [
            ("set -o pipefail; yes | head -1; exit $?", 141, "SIGPIPE", "as head (pid "),
            (
                "ulimit -f 10; dd if=/dev/zero of=big bs=1024 count=1000",
                153,
                "SIGXFSZ",
                "ulimit -f",
            ),
            (&format!("ulimit -t 1; {burn} 5000 0"), 137, "SIGKILL", "hard limit of CPU time"),
            (&format!("ulimit -S -t 1; {burn} 5000 0"), 152, "SIGXCPU", "ulimit -t"),
            // What it sends to itself cannot be told from what the kernel sends in its name.
            ("bash -c 'kill -PIPE $$'", 141, "SIGPIPE", "from itself, or the kernel"),
        ] {
            let recorded = Recorder::new().run(["bash", "-ec", script]);
            assert_eq!(recorded.code(), code, "{script}: {}", recorded.stderr());
            let cause = report(&recorded.trace())["ends"]["cause"][0].clone();
            assert_eq!(cause["how"], signal, "{script}: {cause}");
            let said = format!("from {}", text(&cause["sent_by"]));
            assert!(said.contains(reason), "{script}: {said}");
        }
    }

    #[test]
    fn the_out_of_memory_killer_is_named_as_the_cause() {
        let cgroup = LimitedMemory::of_bytes(20_000_000);
        let share = fixture("share");
        let inner = format!(
            "echo $$ > {}/cgroup.procs; {} 100 0 0; exit 4",
            cgroup.0.display(),
            share.display()
        );
        let recorded = Recorder::new().run(["sh", "-c", "sh -c \"$0\"; exit 2", &inner]);
        assert_eq!(recorded.code(), 2, "{}", recorded.stderr());
        let cause = report(&recorded.trace())["ends"]["cause"].clone();
        let steps: Vec<(&str, &str, Option<&str>)> = cause
            .as_array()
            .unwrap()
            .iter()
            .map(|step| (text(&step["program"]), text(&step["how"]), step["sent_by"].as_str()))
            .collect();
        let killer = Some("the out-of-memory killer");
        assert_eq!(
            steps,
            [("share", "SIGKILL", killer), ("sh", "exit 4", None), ("sh", "exit 2", None)]
        );
        let shown = proctrace().arg("report").arg(recorded.trace()).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.contains("Cause    share (pid"), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    }
}
