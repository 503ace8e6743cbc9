//! Settings that the arguments of `record` ask for: the options of a recording, its source, and the header of its
//! trace.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use proctrace_probe::{EbpfOptions, LookupHook, OnFull};
use proctrace_ptrace::PtraceOptions;
use proctrace_record::{
    Interval, Options, OwnCgroup, Scope, Source, TIME_ONE_IN, Wait, boot_ns, unix_ns,
};
use proctrace_trace as trace;
use proctrace_wire::escape::to_text;

use crate::args::{RecordArgs, WaitFor, WhenFull, WhichBackend, WhichHook};
use crate::source::{Backend, broker_socket};

pub(crate) fn options(args: &RecordArgs, own_cgroup: Option<&OwnCgroup>) -> Options {
    let mut options = Options {
        scope: match (args.all, args.pid.is_empty()) {
            (true, _) => Scope::All,
            (false, true) => Scope::Launched,
            (false, false) => Scope::Pids(args.pid.clone()),
        },
        cgroup: own_cgroup.map(|own| own.path().to_owned()).or_else(|| args.cgroup.clone()),
        misses: args.misses,
        opens: args.opens,
        mounts: true,
        time_one_in: (!args.no_lookup_times).then_some(TIME_ONE_IN),
        waits_min: args.waits.0,
        memory_interval: args.memory,
        duration: args.duration,
        wait: match args.wait {
            WaitFor::Tree => Wait::Tree,
            WaitFor::Root => Wait::Root,
        },
        grace: args.grace,
        ..Options::default()
    };
    if let Some(interval) = args.interval {
        options.interval = Interval::Fixed(interval);
    }
    if args.no_env {
        options.env_names.clear();
    }
    for name in &args.env {
        if !options.env_names.contains(name) {
            options.env_names.push(name.clone());
        }
    }
    options
}

pub(crate) fn backend(args: &RecordArgs) -> Result<Backend> {
    let mut ptrace = PtraceOptions {
        block_when_full: args.on_full == WhenFull::Block,
        ..PtraceOptions::default()
    };
    let mut options = EbpfOptions {
        lookup_hook: match args.lookup_hook {
            WhichHook::Auto => LookupHook::Auto,
            WhichHook::Fexit => LookupHook::Fexit,
            WhichHook::Tracepoint => LookupHook::Tracepoint,
            WhichHook::SysExit => LookupHook::SysExit,
        },
        empty_programs: args.empty_programs,
        on_full: match args.on_full {
            WhenFull::Drop => OnFull::Drop,
            WhenFull::Block => OnFull::Block,
        },
        ..EbpfOptions::default()
    };
    if let Some(ring_bytes) = args.ring_size {
        options.ring_bytes = ring_bytes;
        ptrace.ring_bytes = ring_bytes;
    }
    let socket = broker_socket(args.broker.as_deref());
    Ok(match args.backend {
        WhichBackend::Auto => Backend::Auto(options, socket, ptrace),
        WhichBackend::Broker => {
            if args.empty_programs {
                bail!("a broker loads no empty programs");
            }
            Backend::Broker(options, socket)
        }
        WhichBackend::Ebpf => Backend::Ebpf(options),
        WhichBackend::Ptrace => {
            if args.empty_programs || args.lookup_hook != WhichHook::Auto {
                bail!("hooks of BPF programs cannot be selected with --backend ptrace");
            }
            Backend::Ptrace(ptrace)
        }
    })
}

pub(crate) fn header(
    arguments: &[OsString],
    options: &Options,
    source: &dyn Source,
) -> Result<trace::Header> {
    let uname = rustix::system::uname();
    let text = |text: &std::ffi::CStr| to_text(text.to_bytes()).into_owned();
    let os_text = |text: &OsString| to_text(text.as_bytes()).into_owned();
    let cwd = std::env::current_dir().context("cannot determine the working directory")?;
    let memory = rustix::system::sysinfo();
    let mut header = trace::Header {
        wire_version: proctrace_wire::WIRE_VERSION,
        recorder: env!("CARGO_PKG_VERSION").to_owned(),
        backend: source.name().to_owned(),
        command: arguments.iter().map(os_text).collect(),
        scope: match options.scope {
            Scope::Launched => "command",
            Scope::Pids(_) => "pids",
            Scope::All => "system",
            Scope::Jobs(_) => "jobs",
        }
        .to_owned(),
        restricted: source.is_restricted(),
        cgroup: options.cgroup.as_ref().map(|path| path_text(path)),
        cwd: to_text(&cwd.into_os_string().into_vec()).into_owned(),
        host: text(uname.nodename()),
        kernel: text(uname.release()),
        machine: text(uname.machine()),
        cpus: std::thread::available_parallelism()
            .map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(u32::MAX)),
        page_bytes: u32::try_from(rustix::param::page_size()).unwrap_or(4096),
        memory_bytes: memory.totalram * u64::from(memory.mem_unit),
        processor: proctrace_record::processor(),
        started_unix_ns: unix_ns(),
        started_ns: boot_ns(),
        interval_ns: nanoseconds(options.interval.least()),
        memory_interval_ns: options.memory_interval.map(nanoseconds),
        ring_bytes: 0,
        on_full: String::new(),
        misses: options.misses.families().map(|family| family.name().to_owned()).collect(),
        opens: options.opens,
        lookups_timed_one_in: options.time_one_in,
        waits_min_ns: options.waits_min.map(nanoseconds),
        env_names: options.env_names.clone(),
        job: BTreeMap::new(),
        hooks: Vec::new(),
        tick_ns: tick_ns(),
        knowledge: BTreeMap::new(),
    };
    source.describe(&mut header);
    Ok(header.with_knowledge())
}

/// The scheduler tick: the resolution of the coarse clocks (clock_getres(2)).
fn tick_ns() -> Option<u64> {
    let tick = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    Duration::try_from(tick).ok().map(nanoseconds).filter(|tick| *tick > 0)
}

fn path_text(path: &std::path::Path) -> String {
    to_text(path.as_os_str().as_bytes()).into_owned()
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
