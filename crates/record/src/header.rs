//! The header of a trace: what is recorded, and on which machine.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use proctrace_trace::Header;
use proctrace_wire::escape::to_text;
use rustix::time::{ClockId, clock_getres};

use crate::clock::{boot_ns, nanoseconds, unix_ns};
use crate::error::RecordError;
use crate::options::{Options, Scope};
use crate::processor::processor;
use crate::source::Source;

/// The header of a trace that begins now on this machine: what is recorded of which command, by which source.
///
/// # Errors
/// If there is no working directory.
pub fn header(
    arguments: &[OsString],
    options: &Options,
    source: &dyn Source,
) -> Result<Header, RecordError> {
    let uname = rustix::system::uname();
    let bytes = |bytes: &[u8]| to_text(bytes).into_owned();
    let text = |text: &CStr| bytes(text.to_bytes());
    let cwd = std::env::current_dir();
    let cwd = cwd.map_err(RecordError::system("determine the working directory"))?;
    let mut header = Header {
        wire_version: proctrace_wire::WIRE_VERSION,
        recorder: env!("CARGO_PKG_VERSION").to_owned(),
        backend: source.name().to_owned(),
        command: arguments.iter().map(|word| bytes(word.as_bytes())).collect(),
        scope: match options.scope {
            Scope::Launched => "command",
            Scope::Pids(_) => "pids",
            Scope::All => "system",
            Scope::Jobs(_) => "jobs",
        }
        .to_owned(),
        restricted: source.is_restricted(),
        cgroup: options.cgroup.as_ref().map(|path| bytes(path.as_os_str().as_bytes())),
        cwd: bytes(cwd.as_os_str().as_bytes()),
        host: text(uname.nodename()),
        kernel: text(uname.release()),
        machine: text(uname.machine()),
        cpus: std::thread::available_parallelism()
            .map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(u32::MAX)),
        page_bytes: u32::try_from(rustix::param::page_size()).unwrap_or(4096),
        memory_bytes: memory_bytes(),
        processor: processor(),
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

/// Memory of this machine.
pub fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(u64::from(info.mem_unit))
}

/// The scheduler tick: the resolution of the coarse clocks (clock_getres(2)), whose value is constant between ticks.
pub fn tick_ns() -> Option<u64> {
    let tick = Duration::try_from(clock_getres(ClockId::MonotonicCoarse));
    tick.ok().map(nanoseconds).filter(|tick| *tick > 0)
}
