//! The compared tracers: where each is installed, how it is started, and how its events are
//! counted.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use xtask::run::{as_root, exists, is_root};

use super::counts::Seen;
use super::peers::{first_line, first_of};
use super::perf::{FAILED_OPEN, SCHEDULER};
use super::site::Site;
use super::{own, perf, raw_ftrace, snoop, strace, tracexec};

/// A tracer.
pub(super) struct Tracer {
    pub(super) name: &'static str,
    /// The required programs; the first reports the version.
    pub(super) programs: &'static [&'static [&'static str]],
    pub(super) version: &'static str,
    pub(super) how: How,
    /// Counts the events of the last run.
    pub(super) count: fn(&Site) -> Result<Seen>,
}

/// Way in which a tracer attaches to a payload.
#[derive(Clone, Copy)]
pub(super) enum How {
    /// It starts the payload: the command, to be followed by that of the payload.
    Starts(fn(&Site) -> Result<Command>),
    /// It runs separately: its commands, and how to detect that it is ready and to stop it.
    Beside(fn(&Site) -> Result<Vec<Command>>, Ready, Stop),
}

#[derive(Clone, Copy)]
pub(super) enum Ready {
    /// Ready as soon as it has this number of descriptors of this kind, and the number is stable.
    Holds(&'static str, usize),
    /// Ready as soon as this file exists.
    Writes(fn(&Site) -> PathBuf),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Interrupt,
    /// By the end of its input.
    EndOfInput,
}

pub(super) const NONE: &str = "none";
pub(super) const PROCTRACE: &str = "proctrace";
pub(super) const STRACE_SECCOMP: &str = "strace seccomp";

/// Every tracer, starting with none: its overhead is the measurement noise.
pub(super) const TRACERS: &[Tracer] = &[
    Tracer {
        name: NONE,
        programs: &[],
        version: "",
        how: How::Starts(|site| Ok(Command::new(&site.timed))),
        count: |_| Ok(Seen::default()),
    },
    Tracer {
        name: PROCTRACE,
        programs: &[],
        version: "",
        how: How::Starts(|site| Ok(own::command(site, &[]))),
        count: own::count,
    },
    // What recording waits costs: the difference.
    Tracer {
        name: "proctrace, no waits",
        programs: &[],
        version: "",
        how: How::Starts(|site| Ok(own::command(site, &["--waits", "none"]))),
        count: own::count,
    },
    // What ordinary users have.
    Tracer {
        name: "proctrace, broker",
        programs: &[],
        version: "",
        how: How::Starts(own::by_broker),
        count: own::count,
    },
    Tracer {
        name: "proctrace, ptrace",
        programs: &[],
        version: "",
        how: How::Starts(|site| Ok(own::command(site, &["--backend", "ptrace"]))),
        count: own::count,
    },
    Tracer {
        name: "proctrace, ptrace, no look-ups",
        programs: &[],
        version: "",
        how: How::Starts(|site| {
            Ok(own::command(site, &["--backend", "ptrace", "--misses", "none"]))
        }),
        count: own::count,
    },
    Tracer {
        name: "strace",
        programs: &[&["strace"]],
        version: "--version",
        how: How::Starts(|site| {
            let mut command = Command::new("strace");
            command.args(["-f", "-e", strace::CALLS, "-o"]).arg(site.out(""));
            Ok(command)
        }),
        count: strace::count,
    },
    Tracer {
        name: STRACE_SECCOMP,
        programs: &[&["strace"]],
        version: "--version",
        how: How::Starts(|site| {
            let mut command = Command::new("strace");
            command.args(["-f", "--seccomp-bpf", "-e", strace::CALLS, "-o"]).arg(site.out(""));
            Ok(command)
        }),
        count: strace::count,
    },
    Tracer {
        name: "perf trace",
        programs: &[&["perf"]],
        version: "--version",
        how: How::Starts(|site| {
            let mut command = as_root("perf");
            let events = format!("openat,{}", SCHEDULER.join(","));
            command.args(["trace", "--failure", "-e", &events, "-o"]).arg(site.out(""));
            command.arg("--");
            Ok(command)
        }),
        count: perf::count_trace,
    },
    Tracer {
        name: "perf record",
        programs: &[&["perf"]],
        version: "--version",
        how: How::Starts(|site| {
            let mut command = as_root("perf");
            command.args(["record", "-q", "-o"]).arg(site.out(""));
            for event in SCHEDULER.iter().chain([&FAILED_OPEN]) {
                command.args(["-e", event]);
            }
            command.args(["--filter", "ret < 0", "--"]);
            Ok(command)
        }),
        count: perf::count_record,
    },
    Tracer {
        name: "raw ftrace",
        programs: &[],
        version: "",
        how: How::Beside(
            |site| {
                raw_ftrace::mount()?;
                raw_ftrace::clean();
                // Through /proc, so that this very binary runs even if it is rebuilt meanwhile.
                let mut command = as_root(format!("/proc/{}/exe", std::process::id()));
                command.args(["raw-ftrace", "--pid", &site.root_pid.to_string()]);
                command.arg("--output").arg(site.out(""));
                command.arg("--summary").arg(raw_ftrace::summary_file(site));
                Ok(vec![command])
            },
            Ready::Writes(raw_ftrace::summary_file),
            Stop::EndOfInput,
        ),
        count: raw_ftrace::count,
    },
    Tracer {
        name: "bpftrace",
        programs: &[&["bpftrace"]],
        version: "--version",
        how: How::Beside(
            |site| {
                raw_ftrace::mount()?;
                let script = site.directory.join("hooks.bt");
                std::fs::write(&script, snoop::BPFTRACE_SCRIPT).context("cannot write a script")?;
                let mut command = as_root("bpftrace");
                command.arg("-o").arg(site.out("")).arg(script).stdout(Stdio::null());
                Ok(vec![command])
            },
            Ready::Holds("perf_event", 5),
            Stop::Interrupt,
        ),
        count: snoop::count_bpftrace,
    },
    Tracer {
        name: "bcc",
        // RHEL and derivatives use another name for them.
        programs: &[
            &["execsnoop", "bpf-execsnoop"],
            &["exitsnoop", "bpf-exitsnoop"],
            &["opensnoop", "bpf-opensnoop"],
        ],
        version: "--version",
        how: How::Beside(
            |site| {
                raw_ftrace::mount()?;
                let tool = |names: &[&str], option: &[&str], out| -> Result<Command> {
                    let mut command = as_root(first_of(names).context("it went away")?);
                    command.args(option).stdout(site.create(&site.out(out))?);
                    Ok(command)
                };
                Ok(vec![
                    tool(&["execsnoop", "bpf-execsnoop"], &[], ".execsnoop")?,
                    // per thread, as the other tools count
                    tool(&["exitsnoop", "bpf-exitsnoop"], &["-T"], ".exitsnoop")?,
                    tool(&["opensnoop", "bpf-opensnoop"], &["-x"], ".opensnoop")?,
                ])
            },
            Ready::Holds("bpf_link", 1),
            Stop::Interrupt,
        ),
        count: snoop::count_bcc,
    },
    Tracer {
        name: "tracexec",
        programs: &[&["tracexec"]],
        version: "--version",
        how: How::Starts(|site| {
            let mut command = Command::new(first_of(&["tracexec"]).context("it went away")?);
            command.args(["log", "-o"]).arg(site.out("")).arg("--");
            Ok(command)
        }),
        count: tracexec::count,
    },
    Tracer {
        name: "forkstat",
        programs: &[&["forkstat"]],
        version: "-h",
        how: How::Beside(
            |site| {
                let mut command = as_root("forkstat");
                // forkstat's name for a thread creation is clone
                command.args(["-e", "fork,clone,exec,exit"]).stdout(site.create(&site.out(""))?);
                Ok(vec![command])
            },
            Ready::Holds("socket", 1),
            Stop::Interrupt,
        ),
        count: snoop::count_forkstat,
    },
    Tracer {
        name: "prmon",
        programs: &[&["prmon"]],
        version: "--version",
        how: How::Starts(|site| {
            let mut command = Command::new("prmon");
            command.args(["--interval", "1", "--filename"]).arg(site.out(""));
            command.arg("--json-summary").arg(site.out(".json")).arg("--");
            Ok(command)
        }),
        // It samples, and so has no events.
        count: |_| Ok(Seen::default()),
    },
];

impl Tracer {
    /// Its version, or the reason it cannot be compared.
    pub(super) fn version(&self, site: &Site) -> Result<String> {
        if self.name == PROCTRACE {
            return first_line(site.release.join("proctrace"), "--version");
        }
        let mut version = None;
        for names in self.programs {
            let Some(program) = first_of(names) else { bail!("{} is not installed", names[0]) };
            if version.is_none() {
                version = Some(first_line(program, self.version)?);
            }
        }
        if let How::Beside(..) = self.how
            && !is_root()
            && !exists("sudo")
        {
            bail!("it needs root, and sudo is not installed");
        }
        Ok(version.unwrap_or_default())
    }

    /// Events of the stopwatch around a payload that it observes: execs and exits.
    pub(super) fn sees_of_stop_watch(&self) -> (u64, u64) {
        match self.how {
            How::Starts(_) => (1, 1),
            How::Beside(..) => (0, 1),
        }
    }
}
