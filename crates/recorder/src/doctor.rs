//! `proctrace doctor`: the capabilities of this kernel and user.

use std::fmt::Write as _;
use std::io::{Write, stdout};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use landlock::RulesetStatus;
use proctrace_broker::BrokerError;
use proctrace_probe::ProbeError;
use proctrace_probe::doctor::{Check, Verdict, examine};
use proctrace_ptrace::may_trace;
use proctrace_report::escape;
use proctrace_report::fit::wrap;
use serde_json::{Value, json};
use strum::IntoStaticStr;

use crate::args::DoctorArgs;
use crate::source::{broker_socket, try_broker};
use crate::{confine, exit_code};

const WIDTH: usize = 80;

/// Prints what this kernel and user can record, and what to run, by the name of this program.
///
/// # Errors
/// If standard output cannot be written.
pub fn run(args: &DoctorArgs, program: &str) -> Result<ExitCode> {
    let mut checks = examine();
    let by_ebpf = checks.iter().all(|check| check.verdict != Verdict::Bad);
    let broker = Broker::ask(&broker_socket(args.broker.as_deref()));
    checks.push(broker.check());
    checks.push(readers());
    let mut out = stdout().lock();
    if args.json {
        let json = in_json(&checks, by_ebpf, &broker);
        out.write_all(escape::json_text(&json)?.as_bytes())?;
    } else {
        for check in &checks {
            out.write_all(lines(check).as_bytes())?;
        }
        writeln!(out, "\n{}", summary(program, by_ebpf, broker.grants()))?;
    }
    // The status says whether everything can be recorded that this user may trace.
    Ok(if by_ebpf || broker.grants() { ExitCode::SUCCESS } else { exit_code::FAILED.into() })
}

fn summary(program: &str, by_ebpf: bool, by_broker: bool) -> String {
    match (by_ebpf, by_broker, may_trace()) {
        (true, ..) => "Recording is possible.".to_owned(),
        (_, true, _) => {
            format!(
                "Recording is possible by the broker, which `{} record` asks by itself.",
                program
            )
        }
        (.., Ok(())) => format!(
            "Recording by eBPF is not possible. Commands can be recorded by ptrace:\n\
             {} record --backend ptrace -- COMMAND",
            program
        ),
        (.., Err(error)) => format!("Recording is not possible, nor is it by ptrace ({error})."),
    }
}

/// All of it, for programs. Keys are added, never changed.
fn in_json(checks: &[Check], by_ebpf: bool, broker: &Broker) -> Value {
    let checks = checks.iter().map(|check| {
        let verdict = match check.verdict {
            Verdict::Good => "good",
            Verdict::Note => "note",
            Verdict::Bad => "bad",
        };
        json!({
            "name": check.name, "verdict": verdict, "found": check.found, "advice": check.advice,
        })
    });
    json!({
        "checks": checks.collect::<Vec<_>>(),
        "broker": {
            "socket": broker.socket, "state": <&str>::from(&broker.state), "why": broker.state.why(),
            "user": rustix::process::getuid().as_raw(),
        },
        "can_record": {
            "ebpf": by_ebpf, "broker": broker.grants(), "ptrace": may_trace().is_ok(),
        },
    })
}

/// A broker, and what it said when it was asked for a recording.
struct Broker {
    socket: String,
    /// Users who may connect, as the kernel sees it.
    open_to: Option<String>,
    state: State,
}

#[derive(IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
enum State {
    /// There is no socket.
    Absent,
    /// There is one, to which this user cannot connect.
    Silent(String),
    /// It grants this user a recording, which works.
    Grants,
    /// It answers, and does not.
    Refuses(String),
    /// A filter of this process would make its recordings unusable.
    #[strum(serialize = "forbidden by seccomp")]
    Forbidden,
    /// It answers, but its recordings cannot be used here.
    Unusable(String),
}

impl State {
    fn why(&self) -> Option<&str> {
        match self {
            Self::Silent(why) | Self::Refuses(why) | Self::Unusable(why) => Some(why),
            Self::Absent | Self::Grants | Self::Forbidden => None,
        }
    }
}

impl Broker {
    fn ask(path: &Path) -> Self {
        let state = match try_broker(path) {
            Ok(()) => State::Grants,
            Err(error) => match error.downcast_ref() {
                Some(BrokerError::Absent { .. }) if !path.exists() => State::Absent,
                Some(BrokerError::Absent { source, .. }) => State::Silent(source.to_string()),
                Some(BrokerError::Refused(why)) => State::Refuses(why.clone()),
                _ if matches!(error.downcast_ref(), Some(ProbeError::Forbidden { .. })) => {
                    State::Forbidden
                }
                _ => State::Unusable(format!("{error:#}")),
            },
        };
        let open_to = path.metadata().ok().map(|socket| {
            // connect(2) takes the permission to write.
            match socket.permissions().mode() {
                mode if mode & 0o002 != 0 => "everybody may connect".to_owned(),
                mode if mode & 0o020 != 0 => format!("group {} may connect", socket.gid()),
                _ => format!("user {} may connect", socket.uid()),
            }
        });
        Self { socket: path.display().to_string(), open_to, state }
    }

    fn grants(&self) -> bool {
        matches!(self.state, State::Grants)
    }

    fn check(&self) -> Check {
        const START: &str = "root can let all users record what they may trace (docs/broker.md):\n\
                             systemctl enable --now proctrace-broker.socket\n\
                             or, without systemd: proctrace broker";
        let at = &self.socket;
        let uid = rustix::process::getuid();
        let open_to = self.open_to.as_deref().unwrap_or("nobody knows who may connect");
        let (verdict, found, advice) = match &self.state {
            State::Absent => (Verdict::Note, format!("none: there is no socket {at}"), Some(START)),
            State::Silent(why) => (
                Verdict::Note,
                format!("the socket {at} does not answer ({why}); {open_to}"),
                Some(START),
            ),
            State::Grants => (
                Verdict::Good,
                format!("answers at {at}, and grants user {uid} what it may trace; {open_to}"),
                None,
            ),
            State::Refuses(why) => {
                (Verdict::Note, format!("answers at {at}, and refuses user {uid}: {why}"), None)
            }
            State::Forbidden => (
                Verdict::Note,
                format!(
                    "listens at {at}, but a seccomp filter forbids bpf(2), without which its recordings cannot be read"
                ),
                Some(
                    "start the container with a profile that allows bpf(2):\n\
                     --security-opt seccomp=PROFILE (docs/broker.md)",
                ),
            ),
            State::Unusable(why) => {
                (Verdict::Note, format!("answers at {at}, but cannot be used: {why}"), None)
            }
        };
        Check { name: "broker", verdict, found, advice: advice.map(str::to_owned) }
    }
}

/// Check of what commands that read a trace can still do.
fn readers() -> Check {
    let (verdict, found) = match confine::works() {
        RulesetStatus::FullyEnforced => {
            (Verdict::Good, "confined by Landlock to the files they are given")
        }
        RulesetStatus::PartiallyEnforced => (
            Verdict::Good,
            "confined to the files they are given; this kernel's Landlock has no rules for networks and signals",
        ),
        RulesetStatus::NotEnforced => (Verdict::Note, "not confined: this kernel has no Landlock"),
    };
    Check { name: "readers of traces", verdict, found: found.to_owned(), advice: None }
}

/// A check in 80 columns. What is to be done has more room, for commands that are to be copied.
fn lines(check: &Check) -> String {
    let mark = match check.verdict {
        Verdict::Good => "ok  ",
        Verdict::Note => "note",
        Verdict::Bad => "BAD ",
    };
    let mut out = beside(&format!("{mark}  {:<23}", check.name), &check.found);
    if let Some(advice) = &check.advice {
        out.push_str(&beside("      -> ", advice));
    }
    out
}

/// Text beside a label, with its own lines.
fn beside(label: &str, text: &str) -> String {
    let indent = label.chars().count();
    let lines = text.lines().flat_map(|line| wrap(line, WIDTH - indent)).enumerate();
    lines.fold(String::new(), |mut out, (at, line)| {
        let label = if at == 0 { label } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{label:<indent$}{line}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_fit_and_commands_are_not_broken() {
        let found =
            "the kernel does not allow this user to use BPF (loading: Operation not permitted)";
        let command = "install -g proctrace -m 0750 $(command -v proctrace) /usr/local/bin";
        let advice = Some(format!("run with sudo, or let a group record, as root:\n{command}"));
        let check = Check { name: "loading", verdict: Verdict::Bad, found: found.into(), advice };
        let lines = lines(&check);
        assert!(lines.lines().all(|line| line.chars().count() <= WIDTH), "{lines}");
        assert!(lines.contains(&format!("\n         {command}\n")), "{lines}");
        assert!(lines.starts_with("BAD   loading                the kernel"), "{lines}");
    }

    #[test]
    fn a_broker_is_described_in_80_columns() {
        let why = "it lets no task wait for a recorder: use --on-full drop".to_owned();
        for state in [
            State::Absent,
            State::Silent("Connection refused (os error 111)".to_owned()),
            State::Grants,
            State::Refuses(why.clone()),
            State::Forbidden,
            State::Unusable(why),
        ] {
            let socket = "/run/proctrace/broker.sock".to_owned();
            let broker =
                Broker { socket, open_to: Some("group 998 may connect".to_owned()), state };
            let lines = lines(&broker.check());
            assert!(lines.lines().all(|line| line.chars().count() <= WIDTH), "{lines}");
            assert!(lines.contains("/run/proctrace/broker.sock"), "{lines}");
        }
    }
}
