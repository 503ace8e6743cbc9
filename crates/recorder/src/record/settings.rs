//! Settings that the arguments of `record` ask for: the options of a recording, and its source.

use anyhow::{Result, bail};
use proctrace_probe::{EbpfOptions, LookupHook, OnFull};
use proctrace_ptrace::PtraceOptions;
use proctrace_record::{Interval, Options, OwnCgroup, Scope, TIME_ONE_IN, Wait};

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
