//! Which program serves which event: loaded and attached, the cheapest that works first.

use std::os::fd::AsFd;

use aya::programs::Program;
use aya::{Btf, Ebpf};

use crate::error::{ProbeError, not_permitted, root_cause};
use crate::perf_event::{TracepointLink, attach_tracepoint};
use crate::tracefs::Tracefs;

/// One event and the hook it is taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// What it captures.
    pub event: &'static str,
    /// Where, as the section of the program says it.
    pub hook: String,
}

/// An event and the ways to get at it, best first.
pub(crate) struct Event {
    pub(crate) name: &'static str,
    ways: &'static [Way],
}

enum Way {
    /// A BTF-typed tracepoint: program, tracepoint.
    TpBtf(&'static str, &'static str),
    /// Programs on `syscalls/sys_exit_X`: program, X. Some calls exist on some machines only.
    SysExits(&'static [(&'static str, &'static str)]),
    /// A task iterator: program.
    TaskIterator(&'static str),
}

/// Everything a recording consists of.
pub(crate) const EVENTS: &[Event] = &[
    Event { name: "fork", ways: &[Way::TpBtf("on_newtask", "task_newtask")] },
    Event { name: "exec", ways: &[Way::TpBtf("on_exec", "sched_process_exec")] },
    Event { name: "rename", ways: &[Way::TpBtf("on_rename", "task_rename")] },
    Event {
        name: "exit",
        ways: &[
            Way::TpBtf("on_exit_told", "sched_process_exit"),
            Way::TpBtf("on_exit_guessed", "sched_process_exit"),
        ],
    },
    Event { name: "accounting", ways: &[Way::TpBtf("on_switch", "sched_switch")] },
    Event {
        name: "failed opens and execs",
        ways: &[
            Way::SysExits(&[
                ("on_open", "open"),
                ("on_openat", "openat"),
                ("on_openat2", "openat2"),
                ("on_creat", "creat"),
                ("on_execve", "execve"),
                ("on_execveat", "execveat"),
            ]),
            Way::TpBtf("on_sys_exit", "sys_exit"),
        ],
    },
    Event { name: "samples", ways: &[Way::TaskIterator("on_sample")] },
];

/// The program behind the samples, which is run rather than attached.
pub(crate) const SAMPLE_PROGRAM: &str = "on_sample";

/// The hooks in use, and what keeps the classic tracepoints attached; the others hang on their
/// programs.
#[derive(Debug)]
pub(crate) struct Hooks {
    pub(crate) list: Vec<Hook>,
    pub(crate) links: Vec<TracepointLink>,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Attaches a hook for every event.
pub(crate) fn attach_all(ebpf: &mut Ebpf, btf: &Btf) -> Result<Hooks, ProbeError> {
    let mut hooks = Hooks { list: Vec::new(), links: Vec::new() };
    for event in EVENTS {
        let (hook, links) = attach(event, ebpf, btf)?;
        hooks.list.push(hook);
        hooks.links.extend(links);
    }
    Ok(hooks)
}

/// Attaches the best hook for one event.
pub(crate) fn attach(
    event: &Event,
    ebpf: &mut Ebpf,
    btf: &Btf,
) -> Result<(Hook, Vec<TracepointLink>), ProbeError> {
    let mut tried = Vec::new();
    let mut refused = None;
    for way in event.ways {
        match way.attach(ebpf, btf) {
            Ok(links) => {
                return Ok((Hook { event: event.name, hook: way.describe() }, links));
            }
            Err(error) => {
                tried.push(format!("{}: {}", way.describe(), root_cause(&*error)));
                refused = refused.or_else(|| not_permitted(&*error));
            }
        }
    }
    Err(match refused {
        Some(source) => ProbeError::NotPermitted { call: event.name, source },
        None => ProbeError::NoHook { event: event.name, tried: tried.join("; ") },
    })
}

impl Way {
    fn describe(&self) -> String {
        match self {
            Self::TpBtf("on_exit_told", tracepoint) => format!("tp_btf/{tracepoint} (group_dead)"),
            Self::TpBtf(_, tracepoint) => format!("tp_btf/{tracepoint}"),
            Self::SysExits(_) => "tracepoint/syscalls/sys_exit_*".to_owned(),
            Self::TaskIterator(_) => "iter/task".to_owned(),
        }
    }

    fn attach(&self, ebpf: &mut Ebpf, btf: &Btf) -> Result<Vec<TracepointLink>, BoxError> {
        match self {
            Self::TpBtf(program, tracepoint) => {
                let Program::BtfTracePoint(program) = find(ebpf, program)? else {
                    return Err(wrong_type(program));
                };
                program.load(tracepoint, btf)?;
                program.attach()?;
                Ok(Vec::new())
            }
            Self::TaskIterator(program) => {
                let Program::Iter(program) = find(ebpf, program)? else {
                    return Err(wrong_type(program));
                };
                program.load("task", btf)?;
                Ok(Vec::new())
            }
            Self::SysExits(calls) => {
                let tracefs = Tracefs::open()?;
                let mut links = Vec::new();
                for (program, call) in *calls {
                    let id = match tracefs.tracepoint_id("syscalls", &format!("sys_exit_{call}")) {
                        Ok(id) => id,
                        Err(error)
                            if error.kind() == std::io::ErrorKind::NotFound
                                && is_optional(call) =>
                        {
                            continue;
                        }
                        Err(error) => return Err(error.into()),
                    };
                    let Program::TracePoint(program) = find(ebpf, program)? else {
                        return Err(wrong_type(program));
                    };
                    program.load()?;
                    links.push(attach_tracepoint(id, program.fd()?.as_fd())?);
                }
                Ok(links)
            }
        }
    }
}

/// Calls that newer machines do without (arm64, riscv64), or older kernels (openat2: 5.6).
fn is_optional(call: &str) -> bool {
    matches!(call, "open" | "creat" | "openat2")
}

fn find<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Program, BoxError> {
    ebpf.program_mut(name).ok_or_else(|| wrong_type(name))
}

fn wrong_type(name: &str) -> BoxError {
    format!("the BPF object has no program {name} of the expected type").into()
}
