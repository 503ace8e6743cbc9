//! Behaviour as a command: exit codes, input and output, signals, users, messages.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{Events, Recorded, Recorder, copy, fixture, header, proctrace, text, u64_of};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

#[test]
fn the_commands_own_status_is_passed_on() {
    for code in [0, 1, 2, 42, 125, 255] {
        let recorded = Recorder::new().run(["sh", "-c", &format!("exit {code}")]);
        assert_eq!(recorded.code(), code);
    }
    let killed = Recorder::new().run(["sh", "-c", "kill -9 $$"]);
    assert_eq!(killed.code(), 128 + 9);
    assert_eq!(header(&killed.trace())["trailer"]["payload"]["outcome"]["signal"], 9);
}

#[test]
fn what_cannot_be_run_is_told_and_leaves_no_trace() {
    let missing = Recorder::new().run(["no-such-command-here"]);
    assert_eq!(missing.code(), 127);
    assert_eq!(missing.stderr(), "proctrace: no-such-command-here: command not found\n");
    assert!(!missing.trace().exists());

    let directory = Recorder::new().run(["/"]);
    assert_eq!(directory.code(), 126);
    let not_executable = Recorder::new().run(["/etc/passwd"]);
    assert_eq!(not_executable.code(), 126);
    assert!(not_executable.stderr().contains("/etc/passwd"), "{}", not_executable.stderr());

    // Found and executable, but not a program: only execve itself can detect this.
    let recorder = Recorder::new();
    let broken = recorder.directory.path().join("broken");
    fs::write(&broken, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let broken = recorder.run([broken]);
    assert_eq!(broken.code(), 127, "{}", broken.stderr());
    assert!(broken.stderr().contains("cannot execute"), "{}", broken.stderr());
    assert!(!broken.trace().exists());
}

/// A write to what is closed fails, with a recorder as without one; whether standard input is closed is asked of the kernel.
#[test]
fn what_was_closed_stays_closed() {
    let recorder = Recorder::new();
    let directory = recorder.directory.path();
    let program = proctrace().get_program().to_owned();
    for (closed, command, code) in [
        (">&-", "/bin/echo x", 1),
        ("<&-", "cat", 1),
        ("<&-", "[ -e /proc/self/fd/0 ]", 1),
        ("2>&-", "[ -e /proc/self/fd/2 ]", 1),
        ("", "[ -e /proc/self/fd/2 ]", 0),
    ] {
        let shell = format!("\"$0\" record -o closed.ptrace -- {command} {closed}");
        let mut command_line = Command::new("sh");
        command_line.args(["-c", &shell]).arg(&program).current_dir(directory);
        let status = command_line.status().unwrap();
        assert_eq!(status.code(), Some(code), "{command} {closed}");
        fs::remove_file(directory.join("closed.ptrace")).unwrap();
    }
}

#[test]
fn a_script_without_an_interpreter_runs_as_in_a_shell() {
    let recorder = Recorder::new();
    let script = recorder.directory.path().join("bare");
    fs::write(&script, "echo \"$# $1\"; exit 3\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let recorded = recorder.run(["./bare", "an argument"]);
    assert_eq!(recorded.code(), 3);
    assert_eq!(recorded.output.stdout, b"1 an argument\n");
}

#[test]
fn wrong_usage_has_its_own_codes() {
    let code = |arguments: &[&str]| {
        let output = proctrace().args(arguments).output().unwrap();
        assert!(!output.stderr.is_empty(), "{arguments:?}");
        output.status.code().unwrap()
    };
    // `record`'s own failures must be distinguishable from those of the command it runs.
    assert_eq!(code(&["record"]), 125);
    assert_eq!(code(&["record", "--interval", "0s", "true"]), 125);
    assert_eq!(code(&["record", "--ring-size", "3MiB", "true"]), 125);
    assert_eq!(code(&["record", "--user", "no-such-user", "true"]), 125);
    assert_eq!(code(&["record", "--env", "A=B", "true"]), 125);
    assert_eq!(code(&["dump", "--kind", "nonsense"]), 2);
    assert_eq!(code(&["nonsense"]), 2);
    assert_eq!(code(&["report", "/no/such/trace"]), 1);
    assert_eq!(code(&["help-me-not", "-h"]), 2);
    for good in [&["--help"][..], &["--version"], &["record", "--help"]] {
        let output = proctrace().args(good).output().unwrap();
        assert!(output.status.success(), "{good:?}");
    }
}

#[test]
fn who_does_not_know_the_words_is_told_them() {
    let asked = |arguments: &[&str]| {
        let directory = tempfile::tempdir().unwrap();
        let output = proctrace().args(arguments).current_dir(&directory).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(said).unwrap())
    };
    // A misspelt option is no command: what was meant to be the command would not have been run.
    let (code, said) = asked(&["record", "--ouput", "x", "--", "ls"]);
    assert_eq!(code, 125);
    assert!(said.contains("'--output'") && said.contains("record -- --ouput"), "{said}");
    assert_eq!(asked(&["record", "--", "--no-such-command"]).0, 127);
    for (words, own) in [(["libs", "try"], 125), (["gate", "run"], 2)] {
        let (code, said) = asked(&[&words[..], &["--no-such-option", "--", "true"]].concat());
        assert_eq!(code, own, "{said}");
        assert!(said.contains("'--no-such-option'"), "{said}");
    }
    let (code, said) = asked(&["ls", "-l"]);
    assert_eq!(code, 2);
    assert!(said.contains("proctrace record -- ls -l"), "{said}");
    let (code, said) = asked(&["import", "job.log"]);
    assert_eq!(code, 2);
    assert!(said.contains("behind 'proctrace import' comes one of: strace, prmon"), "{said}");
    let (code, said) = asked(&["report"]);
    assert_eq!(code, 1);
    assert!(said.contains("record first: sudo proctrace record -- COMMAND"), "{said}");
    // The last line says how it ended and what to do next.
    let (code, said) = asked(&["record", "-o", "job.ptrace", "--", "sh", "-c", "exit 3"]);
    assert_eq!(code, 3);
    let last = said.lines().last().unwrap();
    assert_eq!(last, "proctrace: exit 3; next: proctrace report job.ptrace");
    for arguments in [&[][..], &["-h"], &["--help"], &["help"]] {
        let (code, said) = asked(arguments);
        assert_eq!(code, 0);
        assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
        // Those that are seldom needed are in the long one only.
        assert!(said.contains("\n  record ") && said.contains("\n  broker "), "{said}");
        let is_long = arguments.first().is_some_and(|word| word.ends_with("help"));
        assert_eq!(said.contains("\n  completions "), is_long, "{said}");
    }
}

/// A batch system or nohup(1) may have told the job to ignore signals; so it does, and the recorder with it.
#[test]
fn what_was_ignored_stays_ignored() {
    for signals in ["PIPE", "HUP", "CHLD", "INT QUIT TERM USR1", "PIPE CHLD HUP"] {
        let script = format!("trap '' {signals}; exec \"$@\"");
        let ignored = "awk '/^SigIgn/ { print substr($2, 9) }' /proc/self/status; exit 7";
        let bare = Command::new("bash")
            .args(["-c", &script, "bash", "sh", "-c", ignored])
            .env_remove("LD_LIBRARY_PATH")
            .output()
            .unwrap();
        let recorder = Recorder::new();
        let mut command = Command::new("bash");
        command.args(["-c", &script, "bash"]).arg(recorder.command.get_program());
        command.args(recorder.command.get_args()).args(["--", "sh", "-c", ignored]);
        command.current_dir(recorder.directory.path()).env_remove("LD_LIBRARY_PATH");
        let recorded = command.output().unwrap();
        assert_eq!(recorded.stdout, bare.stdout, "{signals}");
        // Its status is known, also if it would be reaped unseen.
        assert_eq!(
            recorded.status.code(),
            Some(7),
            "{}",
            String::from_utf8_lossy(&recorded.stderr)
        );
    }
}

/// Starts a recording of a command that prints "ready" and then continues, in a separate process
/// group, and waits for "ready".
fn start(recorder: &mut Recorder, script: &str) -> std::process::Child {
    let mut child = recorder
        .command
        .args(["--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

fn pid_of(child: &std::process::Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap())
}

#[test]
fn a_signal_to_the_recorder_reaches_the_command() {
    // All whose default ends a process, but SIGKILL and errors of the recorder's own; two are real-time signals.
    for signal in [1, 2, 3, 5, 6, 10, 12, 13, 14, 15, 16, 24, 25, 26, 27, 29, 30, 34, 64] {
        let mut recorder = Recorder::new();
        let child = start(&mut recorder, "ulimit -c 0; echo ready; exec sleep 60");
        // kill(1): a real-time signal is none of nix's.
        let sent =
            Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(128 + signal), "{output:?}");
        assert_eq!(output.status.signal(), None);
        let events = Events::of(&recorder.trace());
        assert_eq!(events.end_of(&events.root()["pid"])["signal"], signal);
    }
}

#[test]
fn a_command_that_handles_a_signal_is_left_to_it() {
    let mut recorder = Recorder::new();
    // A loop that forks nothing: dash's child, hit between fork and exec, would run the trap as well.
    let child =
        start(&mut recorder, "trap 'echo caught; exit 5' INT; echo ready; while :; do :; done");
    // As from a terminal: to the whole group.
    killpg(pid_of(&child), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    // Whoever sends it to the group and is not the terminal sends it to the recorder as well, which passes it on: the
    // second one may come before the trap is over.
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!said.is_empty() && said.lines().all(|line| line == "caught"), "{said:?}");
    assert_eq!(header(&recorder.trace())["trailer"]["ended"], "tree_exited");
}

#[test]
fn ctrl_c_in_a_terminal_stops_the_command_and_finishes_the_trace() {
    let recorder = Recorder::new();
    let trace = recorder.trace();
    // script(1) creates a terminal and forwards its input to it.
    let line = format!(
        "{} record -o {} -- sh -c 'echo ready; exec sleep 60'",
        env!("CARGO_BIN_EXE_proctrace"),
        trace.display()
    );
    let mut terminal = Command::new("script")
        .args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"])
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script(1) comes with util-linux");
    let mut out = BufReader::new(terminal.stdout.take().unwrap());
    let mut seen = String::new();
    while !seen.contains("ready") {
        assert_ne!(out.read_line(&mut seen).unwrap(), 0, "{seen}");
    }
    terminal.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    out.read_to_string(&mut seen).unwrap();
    assert_eq!(terminal.wait().unwrap().code(), Some(128 + 2), "{seen}");
    let events = Events::of(&trace);
    assert_eq!(events.end_of(&events.root()["pid"])["signal"], 2);
    assert_eq!(header(&trace)["trailer"]["ended"], "tree_exited");
}

#[test]
fn an_unnamed_trace_does_not_overwrite_the_last_one() {
    let directory = tempfile::tempdir().unwrap();
    let record = |message: &str| {
        let status = proctrace()
            .args(["record", "--quiet", "--", "echo", message])
            .current_dir(directory.path())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
    };
    record("first");
    record("second");
    let argument = |name: &str| {
        let events = Events::of(&directory.path().join(name));
        text(&events.kind("exec").next().unwrap()["argv"][1]).to_owned()
    };
    assert_eq!(argument("proctrace.ptrace"), "second");
    assert_eq!(argument("proctrace.ptrace.old"), "first");
    // dump and report find it by default
    let found = proctrace().arg("report").current_dir(directory.path()).output().unwrap();
    assert!(found.status.success());
}

#[test]
fn a_reader_who_has_had_enough_is_no_error() {
    let recorded = Recorder::new().fixture("spawn", &["300", "/bin/true"]);
    for arguments in [&["dump"][..], &["dump", "--header"]] {
        // To a pipe without a reader.
        let mut dump = proctrace()
            .args(arguments)
            .arg(recorded.trace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(dump.stdout.take());
        let output = dump.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(output.stderr, b"", "{arguments:?}");
    }
}

#[test]
fn hostile_names_reach_no_terminal() {
    let recorder = Recorder::new();
    let evil = "evil\x1b]0;owned\x07\u{202e}";
    let program = recorder.directory.path().join(evil);
    fs::copy(fixture("burn"), &program).unwrap();
    let recorded = recorder.run([program.as_os_str(), OsStr::from_bytes(b"1\x1b[2J")]);
    assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
    let svg = recorded.directory.path().join("out.svg");
    let mut report = proctrace();
    report.args(["report", "--all"]).arg(recorded.trace()).arg("--gantt").arg(&svg);
    let report = report.output().unwrap();
    let printed = [report.stdout, report.stderr, recorded.output.stderr.clone()].concat();
    let printed = String::from_utf8(printed).unwrap();
    assert!(printed.contains("evil"));
    for bad in ['\x1b', '\x07', '\u{202e}'] {
        assert!(!printed.contains(bad), "{printed:?}");
        assert!(!fs::read_to_string(&svg).unwrap().contains(bad));
    }
}

mod root {
    use super::*;

    #[test]
    fn a_message_reaches_the_command_with_its_value() {
        for backend in ["ebpf", "ptrace"] {
            let mut recorder = Recorder::new().option(["--backend", backend]);
            let script = "import signal, sys\nwanted = {signal.SIGUSR1, signal.SIGRTMIN + 5, signal.SIGCONT, signal.SIGWINCH}\n\
                signal.pthread_sigmask(signal.SIG_BLOCK, wanted)\nprint('ready', flush=True)\n\
                for _ in range(4):\n info = signal.sigwaitinfo(wanted)\n print(info.si_signo, info.si_code, flush=True)\n";
            let child = start(&mut recorder, &format!("exec python3 -c \"{script}\""));
            let pid = child.id().to_string();
            let mut out = Vec::new();
            for (number, queued) in [("10", false), ("39", true), ("28", false), ("18", false)] {
                let value: &[&str] = if queued { &["--queue", "7"] } else { &[] };
                let mut command = Command::new("/usr/bin/kill");
                let sent = command.args(value).args(["-s", number, &pid]).status();
                assert!(sent.unwrap().success());
                out.push(if queued { format!("{number} -1") } else { format!("{number} 0") });
            }
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            let mut got: Vec<&str> = std::str::from_utf8(&output.stdout).unwrap().lines().collect();
            got.sort_unstable();
            out.sort_unstable();
            assert_eq!(got, out, "{backend}");
        }
    }

    /// Times of the recorder and of the kernel are those of one clock.
    #[test]
    fn in_a_time_namespace_times_are_the_machines() {
        let recorder = Recorder::new();
        let mut command = Command::new("unshare");
        command
            .args(["--time", "--boottime", "86400", "--fork"])
            .arg(recorder.command.get_program());
        command.args(recorder.command.get_args()).args(["--", "sh", "-c", "sleep 0.1; true"]);
        command.current_dir(recorder.directory.path()).env_remove("LD_LIBRARY_PATH");
        let output = command.output().unwrap();
        let recorded = Recorded { directory: recorder.directory, output };
        let events = recorded.sound(0);
        let header = header(&recorded.trace());
        let times: Vec<u64> = events.0.iter().map(|event| u64_of(&event["time_ns"])).collect();
        let began = u64_of(&header["header"]["started_ns"]);
        let ended = u64_of(&header["trailer"]["ended_ns"]);
        assert!(
            times.iter().all(|time| (began..=ended).contains(time)),
            "{began} {times:?} {ended}"
        );
    }

    #[test]
    fn input_and_output_are_the_commands_own() {
        let recorder = Recorder::new();
        let mut command = recorder.command;
        let mut child = command
            .args(["--", "sh", "-c", "cat; echo error >&2"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"line\n\xff\n").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.stdout, b"line\n\xff\n");
        let stderr = String::from_utf8(output.stderr).unwrap();
        let lines: Vec<&str> = stderr.lines().collect();
        assert_eq!(lines[0], "error");
        assert!(lines[1].starts_with("proctrace: 2 processes, 0 threads, "), "{stderr}");
        assert!(lines[1].contains(" · 0 lost · "), "{stderr}");
        assert!(lines[2].starts_with("proctrace: exit 0; next: proctrace report "), "{stderr}");
        assert_eq!(lines.len(), 3);

        let quiet = Recorder::new().option(["--quiet"]).run(["true"]);
        assert_eq!(quiet.stderr(), "");
    }

    #[test]
    fn the_command_starts_as_if_no_one_watched() {
        // Signal settings as from a shell, descriptors, group, session, limits: the same as without
        // proctrace. (Signals 32 and 33 belong to the C library's threads, and exec resets them.)
        let script = "grep -E '^(SigBlk|NoNewPrivs|Seccomp|TracerPid|Groups|CapEff)' /proc/self/status; \
                      awk '/^SigIgn/ { print substr($2, 9) }' /proc/self/status; ulimit -a; ls /proc/self/fd | wc -l; umask";
        let recorder = Recorder::new();
        let place = recorder.directory.path().to_owned();
        let recorded = recorder.run(["sh", "-c", script]);
        let bare = Command::new("sh")
            .args(["-c", script])
            .env_remove("LD_LIBRARY_PATH")
            .current_dir(place)
            .stdin(Stdio::inherit())
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&recorded.output.stdout),
            String::from_utf8_lossy(&bare.stdout)
        );
    }

    #[test]
    fn the_doctor_names_a_hook_for_every_event() {
        let output = proctrace().arg("doctor").output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{stdout}");
        for event in ["fork", "exec", "rename", "exit", "accounting", "failed look-ups", "samples"]
        {
            assert!(stdout.contains(&format!("ok    {event}")), "{stdout}");
        }
        assert!(stdout.lines().all(|line| line.chars().count() <= 80), "{stdout}");
        // The hooks of a recording match those that the doctor names.
        let recorded = Recorder::new().run(["true"]);
        for hook in header(&recorded.trace())["header"]["hooks"].as_array().unwrap() {
            assert!(stdout.contains(text(&hook["hook"])), "{hook}");
        }
    }

    #[test]
    fn under_sudo_the_command_runs_as_the_user_who_called_it() {
        let recorder = Recorder::new();
        fs::set_permissions(recorder.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let recorded = recorder.env("SUDO_UID", "65534").env("SUDO_GID", "65534").run([
            "sh",
            "-c",
            "id -u; id -g; id -G; grep -E '^Uid' /proc/self/status | tr '\\t' ' '",
        ]);
        assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
        let stdout = String::from_utf8(recorded.output.stdout.clone()).unwrap();
        let lines: Vec<&str> = stdout.lines().collect();
        assert_eq!(lines[0], "65534");
        assert_eq!(lines[1], "65534");
        assert_eq!(lines[2], "65534");
        // Real, effective, saved and file-system user are all changed, irreversibly.
        assert_eq!(lines[3], "Uid: 65534 65534 65534 65534");
        // The trace is accessible only to the user.
        let metadata = fs::metadata(recorded.trace()).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (65534, 65534));
        assert_eq!(metadata.mode() & 0o777, 0o600);

        let as_root = Recorder::new()
            .env("SUDO_UID", "65534")
            .env("SUDO_GID", "65534")
            .option(["--user", "root"]);
        assert_eq!(as_root.run(["id", "-u"]).output.stdout, b"0\n");
        let named = Recorder::new();
        fs::set_permissions(named.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(
            named.option(["--user", "nobody"]).run(["id", "-un"]).output.stdout,
            b"nobody\n"
        );
    }

    #[test]
    fn without_privileges_the_message_says_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
        // in a directory that nobody else can access
        let binary = directory.path().join("proctrace");
        copy(Path::new(env!("CARGO_BIN_EXE_proctrace")), &binary, 0o755);
        let as_nobody = |arguments: &[&str]| {
            Command::new("setpriv")
                .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
                .arg(&binary)
                .args(arguments)
                .current_dir(directory.path())
                .output()
                .expect("setpriv(1) comes with util-linux")
        };
        let refused = as_nobody(&["record", "--backend", "ebpf", "--", "true"]);
        let stderr = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(125), "{stderr}");
        assert!(stderr.contains("Run with sudo"), "{stderr}");
        assert!(stderr.contains("setcap cap_bpf,cap_perfmon+ep"), "{stderr}");
        assert!(!directory.path().join("proctrace.ptrace").exists());
        let doctor = as_nobody(&["doctor"]);
        let stdout = String::from_utf8(doctor.stdout).unwrap();
        assert_eq!(doctor.status.code(), Some(1));
        assert!(stdout.contains("BAD   privileges"), "{stdout}");
        assert!(stdout.contains("Recording by eBPF is not possible"), "{stdout}");
    }
}
