//! The hooks of each event: loads and attaches the programs, trying the cheapest hook first.

use std::os::fd::OwnedFd;

use aya::programs::Program;
use aya::{Btf, Ebpf};
use aya_obj::btf::BtfKind;
use proctrace_record::{Misses, Scope};
use proctrace_trace::Hook;
use proctrace_wire::{Call, Family};

use crate::error::{BoxError, ProbeError, not_permitted, root_cause};
use crate::options::{LookupHook, Settings};
use crate::perf_event::attach_tracepoint;
use crate::tracefs::Tracefs;
use crate::verify::{is_loaded, load_all, loaded};
use crate::{link, preemption};

/// An event and the hooks that can record it, best first.
pub(crate) struct Event {
    pub(crate) name: &'static str,
    ways: &'static [Way],
    needed: fn(Settings<'_>) -> Need,
}

/// Necessity of an event for a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Must,
    /// Used if the kernel has it.
    May,
    Not,
}

enum Way {
    /// A BTF-typed tracepoint: program, tracepoint.
    TpBtf(&'static str, &'static str),
    /// [`RETURN_PROGRAM`] of every wanted call, on the function that implements it.
    Functions,
    /// [`ENTRY_PROGRAM`] of every wanted call that has one, on the same function.
    Entries,
    /// This program on `syscalls/sys_enter_X` of the same calls.
    SysEnters(&'static str),
    /// This program on `syscalls/sys_exit_X` of every wanted call.
    SysExits(&'static str),
    /// This program on `syscalls/sys_exit_X` of these calls.
    SysExitsOf(&'static str, &'static [&'static str]),
    /// The same on `syscalls/sys_enter_X`.
    SysEntersOf(&'static str, &'static [&'static str]),
    /// A task iterator: program.
    TaskIterator(&'static str),
}

/// What the task iterators visit.
const VISITS: &str = "task";

/// All events of a recording.
pub(crate) const EVENTS: &[Event] = &[
    Event { name: "fork", ways: &[Way::TpBtf("on_newtask", "task_newtask")], needed: always },
    Event { name: "exec", ways: &[Way::TpBtf("on_exec", "sched_process_exec")], needed: always },
    Event { name: "rename", ways: &[Way::TpBtf("on_rename", "task_rename")], needed: always },
    Event {
        name: "exit",
        ways: &[
            Way::TpBtf("on_exit_told", "sched_process_exit"),
            Way::TpBtf("on_exit_guessed", "sched_process_exit"),
        ],
        needed: always,
    },
    Event {
        name: "accounting and waits",
        ways: &[Way::TpBtf("on_switch", "sched_switch")],
        needed: always,
    },
    Event {
        name: "failed look-ups",
        ways: &[Way::Functions, Way::SysExits("on_return"), Way::TpBtf("on_sys_exit", "sys_exit")],
        needed: |settings| {
            if settings.wanted.hooked_calls() == Misses::NONE { Need::Not } else { Need::Must }
        },
    },
    Event {
        name: TIMES,
        ways: &[Way::Entries, Way::SysEnters("on_entry")],
        needed: |settings| match settings.wanted.time_one_in {
            Some(_) if settings.wanted.misses != Misses::NONE => Need::May,
            _ => Need::Not,
        },
    },
    Event {
        name: "wakers",
        ways: &[Way::TpBtf("on_waking", "sched_waking")],
        needed: |settings| match settings.wanted.waits_min {
            Some(_) => Need::Must,
            None => Need::Not,
        },
    },
    Event {
        name: SIGNALS,
        ways: &[Way::TpBtf("on_signal", "signal_generate")],
        needed: |_| Need::May,
    },
    Event {
        name: "renames of files",
        ways: &[Way::SysExitsOf("on_moved", &["rename", "renameat", "renameat2"])],
        needed: with_opens,
    },
    Event {
        name: REMOVALS,
        ways: &[Way::SysExitsOf("on_removed", &["unlink", "unlinkat"])],
        needed: with_opens,
    },
    Event {
        name: SIZES,
        ways: &[Way::SysEntersOf("on_closing", &["close", "dup2", "dup3"])],
        needed: with_opens,
    },
    Event {
        name: SIZES_AT_ENDS,
        ways: &[Way::TpBtf("on_end_of_writer", "sched_process_exit")],
        needed: with_opens,
    },
    Event {
        name: "io_uring",
        ways: &[Way::TpBtf("on_io_uring", "io_uring_create")],
        needed: |_| Need::May,
    },
    Event {
        name: "cgroup moves",
        ways: &[Way::TpBtf("on_cgroup_attach", "cgroup_attach_task")],
        needed: |settings| match &settings.wanted.scope {
            // Jobs begin with the move of their first process.
            Scope::Jobs(_) => Need::Must,
            _ if settings.cgroup.is_some() => Need::May,
            _ => Need::Not,
        },
    },
    Event {
        name: "running tasks",
        ways: &[Way::TaskIterator(ADOPT_PROGRAM)],
        needed: |settings| {
            let wanted = settings.wanted;
            let launched_only = wanted.scope == Scope::Launched && settings.cgroup.is_none();
            if launched_only { Need::Not } else { Need::Must }
        },
    },
    Event { name: "samples", ways: &[Way::TaskIterator(SAMPLE_PROGRAM)], needed: always },
];

fn always(_: Settings<'_>) -> Need {
    Need::Must
}

fn with_opens(settings: Settings<'_>) -> Need {
    if settings.wanted.opens { Need::May } else { Need::Not }
}

/// The calls that are timed: those that most searches use.
const TIMED_CALLS: [Call; 7] = [
    Call::Open,
    Call::Openat,
    Call::Stat,
    Call::Newfstatat,
    Call::Statx,
    Call::Access,
    Call::Readlink,
];

/// The event of look-ups that are timed.
pub(crate) const TIMES: &str = "look-up times";

/// The event of signals.
pub(crate) const SIGNALS: &str = "signals";

/// The events of files that were written.
pub(crate) const SIZES: &str = "sizes of files";
pub(crate) const SIZES_AT_ENDS: &str = "sizes of files at ends";
pub(crate) const REMOVALS: &str = "removals of files";

/// Prefix of the programs for the functions that implement calls; the name of the call follows.
pub(crate) const RETURN_PROGRAM: &str = "on_return_of_";

/// The same for the programs that run when the function is entered. They exist for the calls that most
/// searches use.
pub(crate) const ENTRY_PROGRAM: &str = "on_entry_of_";

/// Prefix of those functions; the kernel-internal name of the call follows
/// (arch/*/syscall_wrapper.h).
const FUNCTION_PREFIX: &str =
    if cfg!(target_arch = "aarch64") { "__arm64_sys_" } else { "__x64_sys_" };

/// Prefixes of the names of attach targets in the kernel's types.
pub(crate) const NAMES_ATTACHED_TO: &[&[u8]] =
    &[b"btf_trace_", b"bpf_iter_task", b"bpf_iter_bpf_map", FUNCTION_PREFIX.as_bytes()];

/// The programs that are run by the recorder, not attached.
pub(crate) const SAMPLE_PROGRAM: &str = "on_sample";
pub(crate) const ADOPT_PROGRAM: &str = "on_adopt";

/// The hooks in use, and what keeps them attached.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    pub(crate) list: Vec<Hook>,
    pub(crate) links: Vec<OwnedFd>,
    /// Descriptors of classic tracepoints.
    pub(crate) tracepoints: Vec<OwnedFd>,
    /// The links of the iterators, by program name.
    pub(crate) iterators: Vec<(&'static str, OwnedFd)>,
}

/// Handle that keeps a hook attached.
#[derive(Debug)]
pub(crate) enum Attached {
    Links(Vec<OwnedFd>),
    Tracepoints(Vec<OwnedFd>),
    Iterator(&'static str, OwnedFd),
}

/// Attaches a hook for every event.
pub(crate) fn attach_all(
    ebpf: &mut Ebpf,
    btf: &Btf,
    settings: Settings<'_>,
) -> Result<Hooks, ProbeError> {
    let preempted = preemption::is_full();
    load_ahead(ebpf, btf, settings, preempted);
    let mut hooks = Hooks::default();
    for event in EVENTS {
        let need = event.need(settings);
        if need == Need::Not {
            continue;
        }
        match attach(event, ebpf, btf, settings, preempted) {
            Ok((hook, attached)) => {
                hooks.list.push(hook);
                match attached {
                    Attached::Links(links) => hooks.links.extend(links),
                    Attached::Tracepoints(links) => hooks.tracepoints.extend(links),
                    Attached::Iterator(name, iterator) => hooks.iterators.push((name, iterator)),
                }
            }
            Err(_) if need == Need::May => {}
            Err(error) => return Err(error),
        }
    }
    Ok(hooks)
}

/// Programs by name, and what each is loaded for.
type Targets = Vec<(String, String)>;

/// Loads the programs of all hooks that will be attached, as far as that can be foreseen: first one of the best hook of each
/// event, then the others of that hook, or those of the next one where the kernel refused it.
fn load_ahead(ebpf: &mut Ebpf, btf: &Btf, settings: Settings<'_>, preempted: bool) {
    let programs = |event: &Event| -> Vec<Targets> {
        let ways = event.ways_in_order(preempted).filter(|way| way.is_wanted(settings));
        ways.map(|way| way.programs(btf, settings)).collect()
    };
    let needed = EVENTS.iter().filter(|event| event.need(settings) != Need::Not);
    let events: Vec<Vec<Targets>> = needed.map(programs).collect();
    let first = |ways: &Vec<Targets>| ways.first()?.first().cloned();
    load_all(ebpf, &events.iter().filter_map(first).collect(), btf);
    let rest = |ways: &Vec<Targets>| {
        let mut ways = ways.iter();
        let best = ways.next().map_or(&[][..], |best| best);
        let is_taken = best.first().is_some_and(|(name, _)| is_loaded(ebpf, name));
        let rest = if is_taken { &best[1..] } else { ways.next().map_or(&[][..], |next| next) };
        rest.to_vec()
    };
    let rest = events.iter().flat_map(rest).collect();
    load_all(ebpf, &rest, btf);
}

impl Event {
    pub(crate) fn need(&self, settings: Settings<'_>) -> Need {
        (self.needed)(settings)
    }

    /// The best hook first. On fully preemptible kernels, functions come last: they are cheaper
    /// than tracepoints, but some runs would be skipped.
    fn ways_in_order(&self, preempted: bool) -> impl Iterator<Item = &Way> {
        let is_function = |way: &Way| matches!(way, Way::Functions | Way::Entries);
        let mut ways: Vec<&Way> = self.ways.iter().collect();
        if self.ways.iter().any(is_function) && preempted {
            ways.sort_by_key(|way| is_function(way));
        }
        ways.into_iter()
    }
}

/// Attaches the best hook for one event. `preempted`: [`preemption::is_full`].
pub(crate) fn attach(
    event: &Event,
    ebpf: &mut Ebpf,
    btf: &Btf,
    settings: Settings<'_>,
    preempted: bool,
) -> Result<(Hook, Attached), ProbeError> {
    let mut tried = Vec::new();
    let mut refused = None;
    for way in event.ways_in_order(preempted).filter(|way| way.is_wanted(settings)) {
        match way.attach(ebpf, btf, settings) {
            Ok(attached) => {
                let hook = Hook { event: event.name.to_owned(), hook: way.describe() };
                return Ok((hook, attached));
            }
            Err(error) => {
                tried.push(format!("{}: {}", way.describe(), root_cause(&*error)));
                refused = refused.or_else(|| not_permitted(&*error));
            }
        }
    }
    // If a specific hook was requested, report why it is unavailable instead of a general refusal.
    let refused = refused.filter(|_| settings.ebpf.lookup_hook == LookupHook::Auto);
    Err(match refused {
        Some(source) => ProbeError::not_permitted(event.name, source),
        None => ProbeError::NoHook { event: event.name, tried: tried.join("; ") },
    })
}

impl Way {
    fn describe(&self) -> String {
        match self {
            Self::TpBtf("on_exit_told", tracepoint) => format!("tp_btf/{tracepoint} (group_dead)"),
            Self::TpBtf(_, tracepoint) => format!("tp_btf/{tracepoint}"),
            Self::Functions => format!("fexit/{FUNCTION_PREFIX}*"),
            Self::Entries => format!("fentry/{FUNCTION_PREFIX}*"),
            Self::SysEnters(_) => "tracepoint/syscalls/sys_enter_*".to_owned(),
            Self::SysExits(_) => "tracepoint/syscalls/sys_exit_*".to_owned(),
            Self::SysExitsOf(_, calls) => {
                format!("tracepoint/syscalls/sys_exit_{}*", calls[0])
            }
            Self::SysEntersOf(_, calls) => {
                format!("tracepoint/syscalls/sys_enter_{}*", calls[0])
            }
            Self::TaskIterator(_) => "iter/task".to_owned(),
        }
    }

    /// True if the options allow this hook.
    fn is_wanted(&self, settings: Settings<'_>) -> bool {
        match (settings.ebpf.lookup_hook, self) {
            (LookupHook::Auto, _) => true,
            (hook, Self::Functions | Self::Entries) => hook == LookupHook::Fexit,
            (hook, Self::SysExits(_) | Self::SysEnters(_)) => hook == LookupHook::Tracepoint,
            (hook, Self::TpBtf("on_sys_exit", _)) => hook == LookupHook::SysExit,
            _ => true,
        }
    }

    /// Prefix of the programs for functions.
    fn prefix(&self) -> &'static str {
        if matches!(self, Self::Entries) { ENTRY_PROGRAM } else { RETURN_PROGRAM }
    }

    /// Its programs and what each is loaded for.
    fn programs(&self, btf: &Btf, settings: Settings<'_>) -> Targets {
        let one = |program: &str, target: &str| vec![(program.to_owned(), target.to_owned())];
        match self {
            Self::TpBtf(program, tracepoint) => one(program, tracepoint),
            Self::TaskIterator(program) => one(program, VISITS),
            Self::SysEnters(program)
            | Self::SysExits(program)
            | Self::SysExitsOf(program, _)
            | Self::SysEntersOf(program, _) => one(program, ""),
            Self::Functions | Self::Entries => programs_of_functions(self.prefix(), btf, settings),
        }
    }

    fn attach(
        &self,
        ebpf: &mut Ebpf,
        btf: &Btf,
        settings: Settings<'_>,
    ) -> Result<Attached, BoxError> {
        match self {
            Self::TpBtf(program, tracepoint) => {
                let program = loaded(ebpf, program, tracepoint, btf)?;
                Ok(Attached::Links(vec![link::attach(program)?]))
            }
            Self::TaskIterator(name) => {
                let program = loaded(ebpf, name, VISITS, btf)?;
                Ok(Attached::Iterator(name, link::attach_iterator(program)?))
            }
            Self::Functions | Self::Entries => {
                let prefix = self.prefix();
                let attached = attach_functions(prefix, ebpf, btf, settings);
                if attached.is_err() {
                    // unload all, so that the next hook starts clean
                    for (_, program) in ebpf.programs_mut() {
                        let _ = match program {
                            Program::FExit(program) if prefix == RETURN_PROGRAM => program.unload(),
                            Program::FEntry(program) if prefix == ENTRY_PROGRAM => program.unload(),
                            _ => Ok(()),
                        };
                    }
                }
                attached.map(Attached::Links)
            }
            Self::SysExits(program) => attach_tracepoints(
                "sys_exit",
                program,
                ebpf,
                btf,
                calls(settings).map(internal),
                settings,
            ),
            Self::SysExitsOf(program, calls) => {
                attach_tracepoints("sys_exit", program, ebpf, btf, calls.iter().copied(), settings)
            }
            Self::SysEntersOf(program, calls) => {
                attach_tracepoints("sys_enter", program, ebpf, btf, calls.iter().copied(), settings)
            }
            Self::SysEnters(program) => {
                let timed = calls(settings).filter(|call| TIMED_CALLS.contains(call));
                attach_tracepoints("sys_enter", program, ebpf, btf, timed.map(internal), settings)
            }
        }
    }
}

/// Attaches a program to the tracepoints of these calls, by the names that the kernel has for them.
fn attach_tracepoints(
    event: &str,
    program: &'static str,
    ebpf: &mut Ebpf,
    btf: &Btf,
    calls: impl Iterator<Item = &'static str>,
    settings: Settings<'_>,
) -> Result<Attached, BoxError> {
    let opened;
    let tracefs = match settings.tracefs {
        Some(tracefs) => tracefs,
        None => {
            opened = Tracefs::open()?;
            &opened
        }
    };
    let program = loaded(ebpf, program, "", btf)?;
    let mut links = Vec::new();
    for call in calls {
        let name = format!("{event}_{call}");
        match tracefs.tracepoint_id("syscalls", &name) {
            Ok(id) => links.push(attach_tracepoint(id, program)?),
            // Newer architectures lack some calls (arm64, riscv64), older kernels others (openat2:
            // 5.6, faccessat2: 5.8).
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    if links.is_empty() {
        return Err("this kernel has no tracepoints for system calls".into());
    }
    Ok(Attached::Tracepoints(links))
}

fn attach_functions(
    prefix: &str,
    ebpf: &mut Ebpf,
    btf: &Btf,
    settings: Settings<'_>,
) -> Result<Vec<OwnedFd>, BoxError> {
    let mut links = Vec::new();
    for (name, function) in programs_of_functions(prefix, btf, settings) {
        links.push(link::attach(loaded(ebpf, &name, &function, btf)?)?);
    }
    if links.is_empty() { Err("this kernel's BTF lacks these functions".into()) } else { Ok(links) }
}

/// The programs for functions, with these: as with tracepoints, not every kernel has every call.
fn programs_of_functions(prefix: &str, btf: &Btf, settings: Settings<'_>) -> Targets {
    let timed_only = prefix == ENTRY_PROGRAM;
    calls(settings)
        .filter(|call| !timed_only || TIMED_CALLS.contains(call))
        .map(|call| {
            let function = format!("{FUNCTION_PREFIX}{}", internal(call));
            (format!("{prefix}{}", call.name()), function)
        })
        .filter(|(_, function)| btf.id_by_type_name_kind(function, BtfKind::Func).is_ok())
        .collect()
}

/// The wanted calls.
fn calls(settings: Settings<'_>) -> impl Iterator<Item = Call> + use<> {
    let misses = settings.wanted.hooked_calls();
    let calls = Family::ALL.into_iter().flat_map(Family::calls).copied();
    calls.filter(move |call| misses.contains(*call))
}

/// The kernel-internal name of a call, which may differ from its manual page.
fn internal(call: Call) -> &'static str {
    match call {
        Call::Stat => "newstat",
        Call::Lstat => "newlstat",
        call => call.name(),
    }
}
