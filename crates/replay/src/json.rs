//! An event as a line of JSON, with stable keys for scripts.
//!
//! `docs/dump.md` lists the keys; a snapshot test pins them. Bytes are converted to text by
//! `proctrace_wire::escape`.

use std::collections::BTreeMap;

use proctrace_wire::escape::to_text;
use proctrace_wire::layout::{
    ATTACH_ROOT, ATTACH_ZOMBIE, Attach, EXEC_BEFORE, EXEC_COMPAT, EXEC_ENV_CUT, EXEC_PATH_CUT,
    EXEC_SECURE, EXEC_WITHHELD, EXIT_AUTOREAP, EXIT_OOM, EXIT_RSS_BOUND, EXIT_WITHHELD,
    LOSS_ANY_CPU, MISS_LOST, MISS_PATH_CUT, MISS_PATH_FAULT, PLACE_CUT, SAMPLE_FINAL,
    SAMPLE_WITHHELD, SIGNAL_BY_INTERRUPT, Signal, WAIT_BY_END, WORKDIR_CUT,
};
use proctrace_wire::{BlindSpot, Call, Kind, LossReason, Outcome, Woken, signal_name};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::cputime::scale;
use crate::event::{Body, Event, Exec, Exit, Miss, Sample, TimeOff};
use crate::mounts::Mount;

impl Event {
    /// Its kind, as `dump --kind` names it.
    pub fn kind(&self) -> Kind {
        match self.body {
            Body::Attach(_) => Kind::Attach,
            Body::Fork(_) => Kind::Fork,
            Body::Exec(_) => Kind::Exec,
            Body::ExecFailed(_) => Kind::ExecFailed,
            Body::LookupFailed(_) => Kind::LookupFailed,
            Body::LookupTime(_) => Kind::LookupTime,
            Body::Opened(_) => Kind::OpenedNamed,
            Body::Place(_) => Kind::Place,
            Body::Mounts(_) => Kind::Mounts,
            Body::Rename(_) => Kind::Rename,
            Body::Workdir(_) => Kind::Workdir,
            Body::Exit(_) => Kind::Exit,
            Body::Sample(_) => Kind::Sample,
            Body::Tick(_) => Kind::Tick,
            Body::Memory(_) => Kind::Memory,
            Body::Blind(_) => Kind::Blind,
            Body::Wait(_) => Kind::Wait,
            Body::Signal(_) => Kind::Signal,
            Body::Loss(_) => Kind::Loss,
        }
    }

    /// The name of its kind; that of an open does not say how it was recorded.
    pub fn kind_name(&self) -> &'static str {
        match self.body {
            Body::Opened(_) => "opened",
            _ => self.kind().name(),
        }
    }

    /// The event as one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.kind_name())?;
        map.serialize_entry("time_ns", &self.time_ns)?;
        if !matches!(self.body, Body::Tick(_) | Body::Loss(_) | Body::Mounts(_)) {
            map.serialize_entry("pid", &self.pid)?;
            map.serialize_entry("tid", &self.tid)?;
        }
        match &self.body {
            Body::Attach(attach) => attach_entries(attach, &mut map)?,
            Body::Fork(record) => {
                map.serialize_entry("child_pid", &record.child_tgid)?;
                map.serialize_entry("child_tid", &record.child_tid)?;
                map.serialize_entry("thread", &record.is_thread())?;
                map.serialize_entry("flags", &record.flags)?;
                map.serialize_entry("call", Call::from_number(record.call).name())?;
                map.serialize_entry("parent_pid", &record.parent_tgid)?;
                map.serialize_entry("exit_signal", &record.exit_signal)?;
                map.serialize_entry("child_start_ns", &record.start_ns)?;
                if (record.child_tgid_ns, record.child_tid_ns)
                    != (record.child_tgid, record.child_tid)
                {
                    map.serialize_entry("child_pid_ns", &record.child_tgid_ns)?;
                    map.serialize_entry("child_tid_ns", &record.child_tid_ns)?;
                }
            }
            Body::Exec(exec) => exec_entries(exec, &mut map)?,
            Body::ExecFailed(miss) => miss_entries(miss, &mut map)?,
            Body::LookupFailed(miss) => {
                // `time_ns` may precede the look-up by up to a scheduler tick.
                map.serialize_entry("time_is_coarse", &true)?;
                miss_entries(miss, &mut map)?;
            }
            Body::LookupTime(timed) => {
                map.serialize_entry("time_is_coarse", &true)?;
                map.serialize_entry("duration_ns", &timed.duration_ns)?;
                miss_entries(&timed.miss, &mut map)?;
            }
            Body::Opened(open) => {
                map.serialize_entry("time_is_coarse", &true)?;
                open_entries(open, &mut map)?;
            }
            Body::Place(place) => {
                map.serialize_entry("mount_namespace", &place.record.mount_namespace)?;
                map.serialize_entry("root", &to_text(&place.root))?;
                if place.record.bits & PLACE_CUT != 0 {
                    map.serialize_entry("path_truncated", &true)?;
                }
            }
            Body::Mounts(table) => {
                map.serialize_entry("mount_namespace", &table.namespace)?;
                map.serialize_entry("mounts", &Mounts(&table.mounts))?;
            }
            Body::Rename(rename) => map.serialize_entry("comm", &comm(&rename.comm))?,
            Body::Workdir(workdir) => {
                map.serialize_entry("cwd", &to_text(&workdir.path))?;
                if workdir.record.bits & WORKDIR_CUT != 0 {
                    map.serialize_entry("path_truncated", &true)?;
                }
            }
            Body::Exit(exit) => exit_entries(exit, &mut map)?,
            Body::Sample(sample) => sample_entries(sample, &mut map)?,
            Body::Wait(off) => wait_entries(off, &mut map)?,
            Body::Signal(signal) => signal_entries(signal, &mut map)?,
            Body::Tick(tick) => {
                map.serialize_entry("begin_ns", &tick.begin_ns)?;
                map.serialize_entry("tasks", &tick.tasks)?;
                map.serialize_entry("running", &tick.running)?;
                map.serialize_entry("sleeping", &tick.sleeping)?;
                map.serialize_entry("uninterruptible", &tick.uninterruptible)?;
                map.serialize_entry("stopped", &tick.stopped)?;
                map.serialize_entry("dead", &tick.dead)?;
                map.serialize_entry("sampled", &tick.sampled)?;
            }
            Body::Memory(memory) => {
                map.serialize_entry("rss_bytes", &memory.rss_bytes)?;
                map.serialize_entry("pss_bytes", &memory.pss_bytes)?;
                // Every resident page is one or the other, so the division of this one is not known.
                let divided = memory.uss_bytes != 0 || memory.shared_bytes != 0;
                let divided = divided || memory.rss_bytes == 0;
                map.serialize_entry("uss_bytes", &divided.then_some(memory.uss_bytes))?;
                map.serialize_entry("shared_bytes", &divided.then_some(memory.shared_bytes))?;
                map.serialize_entry("swap_bytes", &memory.swap_bytes)?;
                let vmem_bytes = (memory.vmem_bytes > 0).then_some(memory.vmem_bytes);
                map.serialize_entry("vmem_bytes", &vmem_bytes)?;
            }
            Body::Blind(blind) => {
                let what = BlindSpot::from_number(blind.what).map(BlindSpot::name);
                map.serialize_entry("what", &what)?;
            }
            Body::Loss(loss) => {
                map.serialize_entry("of", &Kind::from_number(loss.kind).map(Kind::name))?;
                let reason = LossReason::from_number(loss.reason).map(LossReason::name);
                map.serialize_entry("reason", &reason)?;
                let cpu = (loss.cpu != LOSS_ANY_CPU).then_some(loss.cpu);
                map.serialize_entry("cpu", &cpu)?;
                map.serialize_entry("count", &loss.count)?;
            }
        }
        map.end()
    }
}

fn wait_entries<M: SerializeMap>(off: &TimeOff, map: &mut M) -> Result<(), M::Error> {
    let wait = &off.record;
    map.serialize_entry("since_ns", &wait.since_ns)?;
    let woken_ns = (wait.woken_ns != 0).then_some(wait.woken_ns);
    map.serialize_entry("woken_ns", &woken_ns)?;
    map.serialize_entry("waits_for", off.waits_for().name())?;
    map.serialize_entry("state", &char::from(u8::try_from(wait.state).unwrap_or(b'?')))?;
    map.serialize_entry("syscall", &(wait.syscall >= 0).then_some(wait.syscall))?;
    let (by, pid) = match off.woken() {
        Woken::ByTask(_) => ("task", Some(wait.waker_tgid)),
        Woken::ByOutsider(pid) => ("outside", Some(pid)),
        Woken::ByInterrupt => ("interrupt", None),
        Woken::NotAsleep => ("none", None),
        Woken::Unknown => ("unknown", None),
    };
    map.serialize_entry("woken_by", by)?;
    map.serialize_entry("waker_pid", &pid)?;
    map.serialize_entry("waker_ended", &(wait.bits & WAIT_BY_END != 0))?;
    if by == "outside" {
        map.serialize_entry("waker_comm", &comm(&wait.waker_comm))?;
    }
    Ok(())
}

fn signal_entries<M: SerializeMap>(signal: &Signal, map: &mut M) -> Result<(), M::Error> {
    let number = signal.signal;
    map.serialize_entry("signal", &number)?;
    map.serialize_entry("signal_name", &signal_name(number.into()))?;
    map.serialize_entry("code", &signal.code)?;
    let by_interrupt = signal.bits & SIGNAL_BY_INTERRUPT != 0;
    map.serialize_entry("by_interrupt", &by_interrupt)?;
    map.serialize_entry("sender_pid", &(!by_interrupt).then_some(signal.sender_tgid))?;
    map.serialize_entry("sender_comm", &(!by_interrupt).then(|| comm(&signal.sender_comm)))
}

fn attach_entries<M: SerializeMap>(attach: &Attach, map: &mut M) -> Result<(), M::Error> {
    let cpu = scale(attach.run_ns, attach.utime_ns, attach.stime_ns);
    let ticks = (attach.utime_ns, attach.stime_ns);
    map.serialize_entry("parent_pid", &attach.parent_tgid)?;
    map.serialize_entry("root", &(attach.bits & ATTACH_ROOT != 0))?;
    if attach.bits & ATTACH_ZOMBIE != 0 {
        map.serialize_entry("zombie", &true)?;
    }
    map.serialize_entry("start_ns", &attach.start_ns)?;
    map.serialize_entry("comm", &comm(&attach.comm))?;
    if (attach.tgid_ns, attach.tid_ns) != (attach.tgid, attach.tid) {
        map.serialize_entry("pid_ns", &attach.tgid_ns)?;
        map.serialize_entry("tid_ns", &attach.tid_ns)?;
    }
    map.serialize_entry("run_ns", &attach.run_ns)?;
    map.serialize_entry("user_ns", &cpu.user_ns)?;
    map.serialize_entry("system_ns", &cpu.system_ns)?;
    map.serialize_entry("user_ticks_ns", &ticks.0)?;
    map.serialize_entry("system_ticks_ns", &ticks.1)?;
    map.serialize_entry("nvcsw", &attach.nvcsw)?;
    map.serialize_entry("nivcsw", &attach.nivcsw)?;
    map.serialize_entry("minflt", &attach.minflt)?;
    map.serialize_entry("majflt", &attach.majflt)?;
    map.serialize_entry("read_bytes", &attach.read_bytes)?;
    map.serialize_entry("write_bytes", &attach.write_bytes)?;
    map.serialize_entry("rchar", &attach.rchar)?;
    map.serialize_entry("wchar", &attach.wchar)?;
    map.serialize_entry("run_delay_ns", &attach.run_delay_ns)
}

fn exec_entries<M: SerializeMap>(exec: &Exec, map: &mut M) -> Result<(), M::Error> {
    let argv: Vec<_> = exec.argv.iter().map(|argument| to_text(argument)).collect();
    map.serialize_entry("path", &to_text(&exec.path))?;
    map.serialize_entry("argv", &argv)?;
    map.serialize_entry("cwd", &to_text(&exec.cwd))?;
    map.serialize_entry("exe", &to_text(&exec.exe))?;
    map.serialize_entry("interpreter", &exec.interpreter.as_deref().map(to_text))?;
    if let Some(environment) = &exec.environment {
        map.serialize_entry("env", &Variables(environment))?;
    }
    if exec.record.old_tid != exec.record.tid {
        map.serialize_entry("old_tid", &exec.record.old_tid)?;
    }
    for (key, holds) in [
        ("argv_truncated", exec.argv_truncated),
        ("path_truncated", exec.record.bits & EXEC_PATH_CUT != 0),
        ("env_truncated", exec.record.bits & EXEC_ENV_CUT != 0),
        ("compat", exec.record.bits & EXEC_COMPAT != 0),
        ("before", exec.record.bits & EXEC_BEFORE != 0),
        ("withheld", exec.record.bits & EXEC_WITHHELD != 0),
        ("secure", exec.record.bits & EXEC_SECURE != 0),
    ] {
        if holds {
            map.serialize_entry(key, &true)?;
        }
    }
    Ok(())
}

fn miss_entries<M: SerializeMap>(miss: &Miss, map: &mut M) -> Result<(), M::Error> {
    let record = &miss.record;
    map.serialize_entry("call", Call::from_number(record.call).name())?;
    let path = (record.bits & MISS_PATH_FAULT == 0).then(|| to_text(&miss.path));
    map.serialize_entry("path", &path)?;
    map.serialize_entry("errno", &record.error)?;
    map.serialize_entry("dirfd", &record.dirfd)?;
    map.serialize_entry("flags", &record.flags)?;
    if record.bits & MISS_PATH_CUT != 0 {
        map.serialize_entry("path_truncated", &true)?;
    }
    if record.bits & MISS_LOST != 0 {
        map.serialize_entry("lost", &true)?;
    }
    Ok(())
}

fn open_entries<M: SerializeMap>(open: &Miss, map: &mut M) -> Result<(), M::Error> {
    let record = &open.record;
    map.serialize_entry("call", Call::from_number(record.call).name())?;
    let path = (record.bits & MISS_PATH_FAULT == 0).then(|| to_text(&open.path));
    map.serialize_entry("path", &path)?;
    map.serialize_entry("flags", &record.flags)?;
    for (key, bit) in [("path_truncated", MISS_PATH_CUT), ("lost", MISS_LOST)] {
        if record.bits & bit != 0 {
            map.serialize_entry(key, &true)?;
        }
    }
    Ok(())
}

struct Mounts<'a>(&'a [Mount]);

impl Serialize for Mounts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|mount| {
            let (major, minor) = mount.device;
            BTreeMap::from([
                ("point", to_text(&mount.point)),
                ("inside", to_text(&mount.inside)),
                ("fs_type", to_text(&mount.fs_type)),
                ("source", to_text(&mount.source)),
                ("device", format!("{major}:{minor}").into()),
            ])
        }))
    }
}

fn exit_entries<M: SerializeMap>(exit: &Exit, map: &mut M) -> Result<(), M::Error> {
    let record = &exit.record;
    let cpu = scale(record.run_ns, record.utime_ns, record.stime_ns);
    let ticks = (record.utime_ns, record.stime_ns);
    match exit.outcome() {
        Outcome::Code(code) => map.serialize_entry("code", &code)?,
        Outcome::Signal(signal) => {
            map.serialize_entry("signal", &signal)?;
            map.serialize_entry("core", &exit.dumped_core())?;
        }
    }
    map.serialize_entry("process", &exit.record.is_process())?;
    map.serialize_entry("run_ns", &record.run_ns)?;
    map.serialize_entry("user_ns", &cpu.user_ns)?;
    map.serialize_entry("system_ns", &cpu.system_ns)?;
    map.serialize_entry("user_ticks_ns", &ticks.0)?;
    map.serialize_entry("system_ticks_ns", &ticks.1)?;
    map.serialize_entry("nvcsw", &record.nvcsw)?;
    map.serialize_entry("nivcsw", &record.nivcsw)?;
    map.serialize_entry("migrations", &record.migrations)?;
    map.serialize_entry("minflt", &record.minflt)?;
    map.serialize_entry("majflt", &record.majflt)?;
    map.serialize_entry("maxrss_bytes", &exit.maxrss_bytes())?;
    if record.bits & EXIT_RSS_BOUND != 0 {
        map.serialize_entry("maxrss_is_bound", &true)?;
    }
    map.serialize_entry("read_bytes", &record.read_bytes)?;
    map.serialize_entry("write_bytes", &record.write_bytes)?;
    map.serialize_entry("rchar", &record.rchar)?;
    map.serialize_entry("wchar", &record.wchar)?;
    map.serialize_entry("run_delay_ns", &record.run_delay_ns)?;
    map.serialize_entry("opens", &record.opens)?;
    map.serialize_entry("lookups_failed", &record.lookups_failed)?;
    map.serialize_entry("execs_failed", &record.execs_failed)?;
    map.serialize_entry("start_ns", &record.start_ns)?;
    map.serialize_entry("parent_pid", &record.parent_tgid)?;
    if record.bits & EXIT_AUTOREAP != 0 {
        map.serialize_entry("autoreaped", &true)?;
    }
    if record.bits & EXIT_OOM != 0 {
        map.serialize_entry("oom_killed", &true)?;
    }
    if record.bits & EXIT_WITHHELD != 0 {
        map.serialize_entry("withheld", &true)?;
    }
    map.serialize_entry("comm", &comm(&record.comm))
}

fn sample_entries<M: SerializeMap>(sample: &Sample, map: &mut M) -> Result<(), M::Error> {
    let record = &sample.record;
    let cpu = scale(record.run_ns, record.utime_ns, record.stime_ns);
    let ticks = (record.utime_ns, record.stime_ns);
    let state = u8::try_from(record.state).map_or('?', char::from);
    map.serialize_entry("state", &state)?;
    map.serialize_entry("run_ns", &record.run_ns)?;
    map.serialize_entry("user_ns", &cpu.user_ns)?;
    map.serialize_entry("system_ns", &cpu.system_ns)?;
    map.serialize_entry("user_ticks_ns", &ticks.0)?;
    map.serialize_entry("system_ticks_ns", &ticks.1)?;
    map.serialize_entry("nvcsw", &record.nvcsw)?;
    map.serialize_entry("nivcsw", &record.nivcsw)?;
    map.serialize_entry("minflt", &record.minflt)?;
    map.serialize_entry("majflt", &record.majflt)?;
    map.serialize_entry("rss_bytes", &sample.rss_bytes())?;
    map.serialize_entry("read_bytes", &record.read_bytes)?;
    map.serialize_entry("write_bytes", &record.write_bytes)?;
    map.serialize_entry("rchar", &record.rchar)?;
    map.serialize_entry("wchar", &record.wchar)?;
    map.serialize_entry("run_delay_ns", &record.run_delay_ns)?;
    map.serialize_entry("final", &(record.bits & SAMPLE_FINAL != 0))?;
    if record.bits & SAMPLE_WITHHELD != 0 {
        map.serialize_entry("withheld", &true)?;
    }
    Ok(())
}

struct Variables<'a>(&'a [(Vec<u8>, Vec<u8>)]);

impl Serialize for Variables<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (to_text(name), to_text(value))))
    }
}

/// A task's name: 16 bytes, NUL-terminated.
fn comm(bytes: &[u8; 16]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    to_text(&bytes[..end]).into_owned()
}
