//! `proctrace record`: writes the activity of a command, or of running processes, to a trace.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use proctrace_probe::{EbpfOptions, LookupHook, OnFull};
use proctrace_ptrace::PtraceOptions;
use proctrace_record::{
    Command, Finished, Identity, Interval, Options, OwnCgroup, RecordError, ResolveError, Scope,
    Signals, Source, TIME_ONE_IN, Wait, boot_ns, find_program, record, unix_ns,
};
use proctrace_report::number::{bytes, count, counted, time};
use proctrace_trace::{self as trace, LossCount, Outcome};
use proctrace_wire::LossReason;
use proctrace_wire::escape::to_text;

use crate::args::{RecordArgs, WaitFor, WhenFull, WhichBackend, WhichHook};
use crate::output::{Output, Written};
use crate::source::{Backend, broker_socket};
use crate::watch::Watch;
use crate::{exit_code, invoker, say};

pub(crate) fn run(args: &RecordArgs) -> Result<ExitCode> {
    #[cfg(feature = "analyse")]
    crate::summarize::about(&args.summary.about)?;
    if let Some(patterns) = &args.per_cgroup {
        return crate::node::run(args, patterns);
    }
    let invoker = invoker::find(args.user.as_deref())?;
    let (identity, environment) = match invoker {
        Some(invoker) => (Some(invoker.identity), invoker.environment),
        None => (None, None),
    };
    let own_cgroup = match args.own_cgroup {
        true => Some(Arc::new(OwnCgroup::create().context("cannot create a cgroup")?)),
        false => None,
    };
    let mut batch_job = BTreeMap::new();
    let command = match args.command.is_empty() {
        true => None,
        false => {
            let environment = environment.unwrap_or_else(|| std::env::vars_os().collect());
            if !args.no_env {
                batch_job = job_variables(&environment);
            }
            match command(&args.command, environment) {
                Ok(command) => Some(command),
                Err(error) => return Ok(cannot_execute(&error)),
            }
        }
    };
    let command = match (command, &identity) {
        (Some(command), Some(identity)) => Some(command.run_as(identity.clone())),
        (command, _) => command,
    };
    let command = match (command, &own_cgroup) {
        (Some(command), Some(cgroup)) => Some(command.run_in(Arc::clone(cgroup))),
        (command, _) => command,
    };

    let options = options(args, own_cgroup.as_deref());
    let job = Job {
        arguments: &args.command,
        batch_job,
        command: command.as_ref(),
        options: &options,
        backend: &backend(args)?,
        output: &args.output,
        owner: identity.as_ref(),
        announced: command.is_none() && !args.quiet,
        quiet: args.quiet,
    };
    match job.record(Watch::asked(args, identity.as_ref())?) {
        Ok(recorded) => finish(args, recorded),
        Err(error) if matches!(error.downcast_ref(), Some(RecordError::Exec { .. })) => {
            Ok(cannot_execute(&error))
        }
        Err(error) => Err(error),
    }
}

/// The parameters of a recording.
pub(crate) struct Job<'a> {
    /// The command line; empty if no command is launched.
    pub(crate) arguments: &'a [OsString],
    /// The variables by which the command knows its batch job.
    pub(crate) batch_job: BTreeMap<String, String>,
    pub(crate) command: Option<&'a Command>,
    pub(crate) options: &'a Options,
    pub(crate) backend: &'a Backend,
    /// The path of the trace.
    pub(crate) output: &'a Path,
    /// The owner of the trace, if not our own user.
    pub(crate) owner: Option<&'a Identity>,
    /// Whether to announce that the recording has started.
    pub(crate) announced: bool,
    /// Whether to suppress all messages except warnings.
    pub(crate) quiet: bool,
}

/// A finished recording whose trace is not yet completed.
struct Recorded {
    header: trace::Header,
    output: Output,
    finished: Finished,
    loading_ns: u64,
}

impl Job<'_> {
    fn record(&self, watch: Option<Watch>) -> Result<Recorded> {
        // Before the output starts a thread, which inherits the signal mask.
        let signals = Signals::block().context("cannot handle signals")?;
        let mut source = self.backend.load(self.options, self.arguments, self.quiet)?;
        let of_others = self.options.scope == Scope::All
            || (self.options.cgroup.is_some() && self.command.is_none());
        if source.is_restricted() && of_others {
            say::note(
                "only processes that this user may trace are recorded; recording all processes \
                 requires root or CAP_SYS_PTRACE",
            );
        }
        let header = trace::Header {
            job: self.batch_job.clone(),
            ..header(self.arguments, self.options, &*source)?
        };
        let mut output = Output::create(self.output, self.owner, &header)?
            .announced(self.announced)
            .quiet(self.quiet)
            .watched(watch, self.output)?;
        let loading = usage(0);
        let loading_ns = loading.user_ns.saturating_add(loading.system_ns);
        match record(&mut *source, &signals, self.command, self.options, &mut output) {
            Ok(finished) => Ok(Recorded { header, output, finished, loading_ns }),
            Err(error) => {
                use RecordError::{Exec, Gone, Launch, Refused};
                if matches!(error, Exec { .. } | Launch(_) | Gone(_) | Refused(_)) {
                    output.discard();
                } else {
                    output.take_name();
                }
                Err(error.into())
            }
        }
    }

    /// Records silently, and returns how the command ended; None if it is still running.
    #[cfg(feature = "analyse")]
    pub(crate) fn record_quietly(&self) -> Result<Option<Outcome>> {
        let Recorded { output, mut finished, loading_ns, .. } = self.record(None)?;
        let sink_error = finished.sink_error.take();
        let written = output.finish(&finished.trailer(usage(loading_ns)))?;
        if !self.quiet {
            tell_kept(&written);
        }
        if let Some(error) = sink_error {
            return Err(error).with_context(|| format!("cannot write {}", self.output.display()));
        }
        Ok(finished.payload.map(|payload| payload.outcome))
    }
}

/// The command, resolved along the PATH of the environment it will have.
pub(crate) fn command(
    arguments: &[OsString],
    environment: Vec<(OsString, OsString)>,
) -> Result<Command> {
    let search_path = environment.iter().find(|(name, _)| name == "PATH");
    let program = find_program(&arguments[0], search_path.map(|(_, path)| &**path))?;
    Ok(Command::new(program, arguments.iter().cloned(), environment))
}

/// Longer values are no identifiers.
const JOB_VALUE_BYTES_MAX: usize = 1024;

/// The variables of an environment by which a command knows its batch job.
fn job_variables(environment: &[(OsString, OsString)]) -> BTreeMap<String, String> {
    let of = |name: &&'static str| {
        let (_, value) = environment.iter().find(|(found, _)| found == name)?;
        let fits = !value.is_empty() && value.len() <= JOB_VALUE_BYTES_MAX;
        fits.then(|| ((*name).to_owned(), to_text(value.as_bytes()).into_owned()))
    };
    trace::JOB_VARIABLES.iter().filter_map(of).collect()
}

/// Reports the reason, and selects one of a shell's two exit codes for it.
pub(crate) fn cannot_execute(error: &anyhow::Error) -> ExitCode {
    say::error(error);
    let not_found = error.chain().any(|cause| {
        matches!(cause.downcast_ref(), Some(ResolveError::NotFound { .. }))
            || cause
                .downcast_ref::<std::io::Error>()
                .is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    });
    if not_found { exit_code::NOT_FOUND } else { exit_code::NOT_EXECUTABLE }.into()
}

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

/// Completes the trace, reports the result, and passes the command's exit status on.
fn finish(args: &RecordArgs, recorded: Recorded) -> Result<ExitCode> {
    let Recorded { header, output, mut finished, loading_ns } = recorded;
    let sink_error = finished.sink_error.take();
    let written = output.finish(&finished.trailer(usage(loading_ns)));
    let outcome = finished.payload.as_ref().map(|payload| payload.outcome);
    if sink_error.is_some() || written.is_err() {
        let how = match outcome {
            Some(Outcome::Code(code)) => format!("the command continued and exited with {code}"),
            Some(Outcome::Signal(signal)) => format!("signal {signal} killed the command"),
            None if args.command.is_empty() => "the processes are still running".to_owned(),
            None => "the command is still running".to_owned(),
        };
        // The part of the file written before can still be read.
        say::note(&format!(
            "{} contains the recording only up to the failure; {how}",
            args.output.display()
        ));
    }
    // The writing thread knows the cause of an error; the sink only knows that it failed.
    let written = written?;
    if let Some(error) = sink_error {
        return Err(error).with_context(|| format!("cannot write {}", args.output.display()));
    }
    tell(args, &header, &finished, &written);
    #[cfg(feature = "analyse")]
    crate::summarize::recorded(&written.path, &args.summary, args.quiet)?;
    Ok(match outcome {
        Some(outcome) => status_of(outcome),
        None if args.command.is_empty() => ExitCode::SUCCESS,
        None => exit_code::RECORDING_FAILED.into(),
    })
}

/// The exit status by which a command's own is passed on.
pub(crate) fn status_of(outcome: Outcome) -> ExitCode {
    match outcome {
        Outcome::Code(code) => u8::try_from(code).unwrap_or(u8::MAX).into(),
        Outcome::Signal(signal) => {
            (exit_code::SIGNALLED + u8::try_from(signal & 0x7f).unwrap_or(0)).into()
        }
    }
}

/// The resources used by this process so far; `loading_ns` of its CPU time before the recording
/// began.
pub(crate) fn usage(loading_ns: u64) -> trace::RecorderUsage {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Default::default() };
    let nanoseconds = |time: nix::sys::time::TimeVal| {
        u64::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000_000
            + u64::try_from(time.tv_usec()).unwrap_or(0) * 1000
    };
    trace::RecorderUsage {
        user_ns: nanoseconds(usage.user_time()),
        system_ns: nanoseconds(usage.system_time()),
        maxrss_bytes: peak_rss_bytes().unwrap_or(0),
        loading_ns,
    }
}

/// The recorder's own peak RSS. getrusage(2) would report that of the process that called exec, if
/// it was larger: the peak survives exec.
fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(kib.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.saturating_mul(1024))
}

/// Prints the closing lines on stderr. Lost records and remaining processes are reported even with
/// --quiet.
fn tell(args: &RecordArgs, header: &trace::Header, finished: &Finished, written: &Written) {
    let lost: u64 = finished.losses.iter().map(|loss| loss.count).sum();
    if !args.quiet {
        let ended_ns =
            finished.payload.as_ref().map_or(finished.ended_ns, |payload| payload.exited_ns);
        say::note(&format!(
            "{}, {}, {} · {} lost · {} ({})",
            counted(finished.counts.processes, "process", "processes"),
            counted(finished.counts.threads, "thread", "threads"),
            time(ended_ns.saturating_sub(header.started_ns)),
            count(lost),
            written.path.display(),
            bytes(written.bytes),
        ));
        tell_kept(written);
    }
    for loss in totals(&finished.losses) {
        say::note(&loss);
    }
    if lost > 0 {
        let full = finished.losses.iter().any(|loss| loss.reason == LossReason::RingFull);
        let advice = if full { "; a larger --ring-size may help" } else { "" };
        say::note(&format!("the trace is incomplete{advice}"));
    }
    // Processes that were running before the recording are expected to continue.
    if !finished.alive.is_empty() && !args.command.is_empty() {
        say::note(&alive(finished));
    }
}

fn tell_kept(written: &Written) {
    if let Some(kept) = &written.kept {
        let path = written.path.display();
        say::note(&format!("the previous {path} was renamed to {}", kept.display()));
    }
}

/// One line per kind and reason, summed over the CPUs.
pub(crate) fn totals(losses: &[LossCount]) -> Vec<String> {
    let mut totals = std::collections::BTreeMap::new();
    for loss in losses {
        *totals.entry((loss.kind, loss.reason)).or_insert(0) += loss.count;
    }
    totals
        .into_iter()
        .map(|((kind, reason), number)| {
            format!(
                "lost {} of kind {kind} ({})",
                counted(number, "record", "records"),
                reason.name()
            )
        })
        .collect()
}

fn alive(finished: &Finished) -> String {
    const SHOWN: usize = 5;
    let mut names: Vec<String> = finished
        .alive
        .iter()
        .take(SHOWN)
        .map(|alive| {
            let comm = std::fs::read(format!("/proc/{}/comm", alive.pid)).unwrap_or_default();
            format!("{} (pid {})", to_text(comm.trim_ascii_end()), alive.pid)
        })
        .collect();
    if finished.alive.len() > SHOWN {
        names.push(format!("{} more", finished.alive.len() - SHOWN));
    }
    let names = names.join(", ");
    format!("still running at the end of the recording: {names}; use --grace to wait longer")
}
