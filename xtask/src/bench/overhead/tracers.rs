//! The tracers that are compared: where each is, how it is started, and how its events are counted.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::counts::Seen;
use super::peers::{first_line, first_of};
use super::perf::{FAILED_OPEN, SCHEDULER};
use super::site::Site;
use super::{own, perf, raw_ftrace, snoop, strace, tracexec};
use crate::run::{as_root, exists, is_root};

/// A tracer.
pub(super) struct Tracer {
    pub(super) name: &'static str,
    /// What has to be there; the first tells its version.
    pub(super) programs: &'static [&'static [&'static str]],
    pub(super) version: &'static str,
    pub(super) how: How,
    /// What it saw in the run that has just ended.
    pub(super) count: fn(&Site) -> Result<Seen>,
}

/// How a tracer gets at a payload.
#[derive(Clone, Copy)]
pub(super) enum How {
    /// It starts it: the command, to be followed by that of the payload.
    Starts(fn(&Site) -> Result<Command>),
    /// It works from beside: its commands, and how to know that it is ready.
    Beside(fn(&Site) -> Result<Vec<Command>>, Ready, Stop),
}

#[derive(Clone, Copy)]
pub(super) enum Ready {
    /// When it has so many descriptors of this kind, and no more of them come.
    Holds(&'static str, usize),
    /// When this file is there.
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

/// Every tracer, beginning with none at all: what that takes beside itself is noise.
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
                // By way of /proc, so that it is us even if someone builds us anew meanwhile.
                let mut command = as_root(format!("/proc/{}/exe", std::process::id()));
                command.args(["bench", "raw-ftrace", "--pid", &site.root_pid.to_string()]);
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
        // RHEL and its like have them under another name.
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
                    // by thread, as all others count
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
                // clone is what it calls a thread
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
    /// Its version, or why it cannot be compared.
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
            bail!("it needs root, and there is no sudo");
        }
        Ok(version.unwrap_or_default())
    }

    /// What it sees of the stop watch around a payload: execs and exits.
    pub(super) fn sees_of_stop_watch(&self) -> (u64, u64) {
        match self.how {
            How::Starts(_) => (1, 1),
            How::Beside(..) => (0, 1),
        }
    }
}
