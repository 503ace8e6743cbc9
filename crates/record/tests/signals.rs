//! Signals to a recorder; each test uses a separate process, because signals are per process.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "it/common/mod.rs"]
mod common;

use std::io::{BufRead, BufReader, Write, stdout};
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use common::{Kept, daemon, end, options, shell};
use libtest_mimic::{Arguments, Trial};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use proctrace_record::replaying::Replaying;
use proctrace_record::{Command, Options, Scope, Signals, record};

/// Argument with which the program acts as a recorder of the script that follows, or of nothing.
const RECORDER: &str = "be-a-recorder";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, role, script @ ..] = &arguments[..]
        && role == RECORDER
    {
        return be_a_recorder(script.first().map(String::as_str));
    }
    let tests: [(&str, fn()); 5] = [
        ("a_signal_reaches_the_command", a_signal_reaches_the_command),
        ("what_the_command_makes_of_it_counts", what_the_command_makes_of_it_counts),
        ("a_signal_ends_the_waiting_for_stragglers", a_signal_ends_the_waiting_for_stragglers),
        ("a_signal_ends_a_recording_of_others", a_signal_ends_a_recording_of_others),
        ("the_command_has_the_mask_of_before", the_command_has_the_mask_of_before),
    ];
    let trials = tests.map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit();
}

/// Records, and prints its progress line by line.
fn be_a_recorder(script: Option<&str>) {
    let blocked = || {
        let mask = SigSet::thread_get_mask().unwrap();
        [Signal::SIGCHLD, Signal::SIGINT].map(|signal| mask.contains(signal))
    };
    assert_eq!(blocked(), [false; 2]);
    let signals = Signals::block().unwrap();
    assert_eq!(blocked(), [true; 2]);
    let mut source = Replaying::default();
    let command: Option<Command> = script.map(|script| shell(script, &source));
    let scope = if script.is_some() { Scope::Launched } else { Scope::All };
    let mut kept = Kept { on_waiting: Some(Box::new(|| say("waiting"))), ..Kept::default() };
    if script.is_none() {
        say("ready");
    }
    let options = Options { scope, interval: slow(), ..options() };
    let finished = record(&mut source, &signals, command.as_ref(), &options, &mut kept).unwrap();
    drop(signals);
    assert_eq!(blocked(), [false; 2]);
    let alive: Vec<String> = finished.alive.iter().map(|alive| alive.pid.to_string()).collect();
    let outcome = finished.payload.map(|payload| payload.outcome);
    say(&format!("{:?} {outcome:?} {}", finished.ended, alive.join(" ")));
}

/// Ticks are too rare to hide a signal that fails to wake the recorder.
fn slow() -> proctrace_record::Interval {
    proctrace_record::Interval::Fixed(Duration::from_secs(3600))
}

fn say(line: &str) {
    stdout().write_all(format!("{line}\n").as_bytes()).unwrap();
}

struct Recorder {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Recorder {
    fn start(script: Option<&str>) -> Self {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .arg(RECORDER)
            .args(script)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    /// Its last output.
    fn end(mut self) -> String {
        let line = self.line();
        assert!(self.child.wait().unwrap().success());
        line
    }
}

fn a_signal_reaches_the_command() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        let mut recorder = Recorder::start(Some("ulimit -c 0; echo ready; exec sleep 600"));
        assert_eq!(recorder.line(), "ready");
        recorder.signal(signal);
        let want = format!("TreeExited Some(Signal({}))", signal as i32);
        assert_eq!(recorder.end().trim_end(), want);
    }
}

fn what_the_command_makes_of_it_counts() {
    let script = "trap 'echo caught; exit 5' INT TERM; echo ready; while :; do sleep 0.05; done";
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut recorder = Recorder::start(Some(script));
        assert_eq!(recorder.line(), "ready");
        recorder.signal(signal);
        assert_eq!(recorder.line(), "caught");
        assert_eq!(recorder.end().trim_end(), "TreeExited Some(Code(5))");
    }
}

fn a_signal_ends_the_waiting_for_stragglers() {
    let script = daemon("exec sleep 600", "/dev/null".as_ref());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut recorder = Recorder::start(Some(&script));
        assert_eq!(recorder.line(), "waiting");
        recorder.signal(signal);
        let line = recorder.end();
        let pid =
            line.strip_prefix("Interrupted Some(Code(0)) ").unwrap_or_else(|| panic!("{line}"));
        end(pid.parse().unwrap());
    }
}

fn a_signal_ends_a_recording_of_others() {
    let mut recorder = Recorder::start(None);
    assert_eq!(recorder.line(), "ready");
    recorder.signal(Signal::SIGTERM);
    assert_eq!(recorder.end().trim_end(), "Interrupted None");
}

fn the_command_has_the_mask_of_before() {
    let script =
        "grep -E '^Sig(Blk|Ign)' /proc/self/status | cut -f 2 | cut -c 9- | tr '\\n' ' '; echo";
    let bare = std::process::Command::new("/bin/sh").args(["-c", script]).output().unwrap();
    let mut recorder = Recorder::start(Some(script));
    assert_eq!(recorder.line(), String::from_utf8(bare.stdout).unwrap().trim_end());
    assert_eq!(recorder.end().trim_end(), "TreeExited Some(Code(0))");
}
