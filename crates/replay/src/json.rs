//! An event as a line of JSON, with stable keys for scripts.
//!
//! `docs/dump.md` lists the keys; a snapshot test pins them. Bytes are converted to text by
//! `proctrace_wire::escape`.

use std::collections::BTreeMap;

use proctrace_wire::escape::to_text;
use proctrace_wire::layout::{
    ATTACH_ROOT, ATTACH_ZOMBIE, Attach, EXEC_BEFORE, EXEC_COMPAT, EXEC_ENV_CUT, EXEC_PATH_CUT,
    EXEC_SECURE, EXEC_WITHHELD, EXIT_AUTOREAP, EXIT_OOM, EXIT_RSS_BOUND, EXIT_WITHHELD,
    LOSS_ANY_CPU, MISS_LOST, MISS_PATH_CUT, MISS_PATH_FAULT, MOVED_EXCHANGED,
    MOVED_FROM_IS_RELATIVE, MOVED_PATH_IS_RELATIVE, MOVED_REMOVED, MOVED_UNKNOWN, PLACE_CUT,
    SAMPLE_FINAL, SAMPLE_WITHHELD, SIGNAL_BY_INTERRUPT, Signal, WAIT_BY_END, WORKDIR_CUT,
    WRITTEN_PATH_CUT,
};
use proctrace_wire::{BlindSpot, Call, Kind, LossReason, Outcome, Quantity, Woken, signal_name};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::cputime::scale;
use crate::event::{Body, Event, Exec, Exit, Miss, Sample, TimeOff};
use crate::mounts::Mount;

/// The keys of numbers that stand for nothing where a recording does not know the quantity.
pub const KEYS_OF: &[(Quantity, &[&str])] = &[
    (Quantity::Cpu, &["run_ns", "user_ns", "system_ns", "user_ticks_ns", "system_ticks_ns"]),
    (Quantity::Split, &["user_ns", "system_ns"]),
    (Quantity::Switches, &["nvcsw", "nivcsw", "migrations"]),
    (Quantity::Faults, &["minflt", "majflt"]),
    (Quantity::Io, &["rchar", "wchar", "read_bytes", "write_bytes"]),
    (Quantity::RunDelay, &["run_delay_ns"]),
    (Quantity::PeakRss, &["maxrss_bytes", "file_rss_bytes"]),
];

/// Writes fields of a struct under their own names.
macro_rules! entries {
    ($map:ident, $of:expr, $($field:ident),+ $(,)?) => {
        $($map.serialize_entry(stringify!($field), &$of.$field)?;)+
    };
}

/// Writes CPU time: as it was accounted, as it is divided, and the ticks by which it is.
macro_rules! cpu_entries {
    ($map:ident, $of:expr) => {
        let cpu = scale($of.run_ns, $of.utime_ns, $of.stime_ns);
        entries!($map, $of, run_ns);
        entries!($map, cpu, user_ns, system_ns);
        $map.serialize_entry("user_ticks_ns", &$of.utime_ns)?;
        $map.serialize_entry("system_ticks_ns", &$of.stime_ns)?;
    };
}

/// Writes the flags that hold; the others have no key.
fn flags<M: SerializeMap>(map: &mut M, flags: &[(&str, bool)]) -> Result<(), M::Error> {
    flags
        .iter()
        .filter(|(_, holds)| *holds)
        .try_for_each(|(key, _)| map.serialize_entry(key, &true))
}

impl Event {
    /// The name of its kind, as `dump --kind` takes it; that of an open does not say how it was recorded.
    pub fn kind(&self) -> &'static str {
        (&self.body).into()
    }

    /// The event as one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.kind())?;
        map.serialize_entry("time_ns", &self.time_ns)?;
        if !matches!(self.body, Body::Tick(_) | Body::Loss(_) | Body::Mounts(_)) {
            entries!(map, self, pid, tid);
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
            Body::ExecFailed(miss) => look_up_entries(miss, true, &mut map)?,
            Body::LookupFailed(miss) => {
                // `time_ns` may precede the look-up by up to a scheduler tick.
                map.serialize_entry("time_is_coarse", &true)?;
                look_up_entries(miss, true, &mut map)?;
            }
            Body::LookupTime(timed) => {
                map.serialize_entry("time_is_coarse", &true)?;
                map.serialize_entry("duration_ns", &timed.duration_ns)?;
                look_up_entries(&timed.miss, true, &mut map)?;
            }
            Body::Opened(open) => {
                map.serialize_entry("time_is_coarse", &true)?;
                look_up_entries(open, false, &mut map)?;
            }
            Body::Moved(moved) => {
                map.serialize_entry("time_is_coarse", &true)?;
                let bits = moved.record.bits;
                let is_known = bits & MOVED_UNKNOWN == 0;
                let is_left = is_known && bits & MOVED_REMOVED == 0;
                map.serialize_entry("from", &is_known.then(|| to_text(&moved.from)))?;
                map.serialize_entry("path", &is_left.then(|| to_text(&moved.path)))?;
                for (key, is_known, bit) in [
                    ("from_is_relative", is_known, MOVED_FROM_IS_RELATIVE),
                    ("path_is_relative", is_left, MOVED_PATH_IS_RELATIVE),
                ] {
                    map.serialize_entry(key, &is_known.then_some(bits & bit != 0))?;
                }
                for (key, bit) in [("exchanged", MOVED_EXCHANGED), ("removed", MOVED_REMOVED)] {
                    if bits & bit != 0 {
                        map.serialize_entry(key, &true)?;
                    }
                }
            }
            Body::Written(written) => {
                map.serialize_entry("time_is_coarse", &true)?;
                map.serialize_entry("path", &to_text(&written.path))?;
                map.serialize_entry("size_bytes", &written.record.size_bytes)?;
                if written.record.bits & WRITTEN_PATH_CUT != 0 {
                    map.serialize_entry("path_truncated", &true)?;
                }
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
                entries!(
                    map,
                    tick,
                    begin_ns,
                    tasks,
                    running,
                    sleeping,
                    uninterruptible,
                    stopped,
                    dead,
                    sampled
                );
            }
            Body::Memory(memory) => {
                entries!(map, memory, rss_bytes, pss_bytes);
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
    cpu_entries!(map, attach);
    entries!(map, attach, nvcsw, nivcsw, minflt, majflt, read_bytes, write_bytes, rchar, wchar);
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
    let has = |bit| exec.record.bits & bit != 0;
    let set = [
        ("argv_truncated", exec.argv_truncated),
        ("path_truncated", has(EXEC_PATH_CUT)),
        ("env_truncated", has(EXEC_ENV_CUT)),
        ("compat", has(EXEC_COMPAT)),
        ("before", has(EXEC_BEFORE)),
        ("withheld", has(EXEC_WITHHELD)),
        ("secure", has(EXEC_SECURE)),
    ];
    flags(map, &set)
}

/// A look-up that failed, or an open that did not.
fn look_up_entries<M: SerializeMap>(
    miss: &Miss,
    failed: bool,
    map: &mut M,
) -> Result<(), M::Error> {
    let record = &miss.record;
    map.serialize_entry("call", Call::from_number(record.call).name())?;
    let path = (record.bits & MISS_PATH_FAULT == 0).then(|| to_text(&miss.path));
    map.serialize_entry("path", &path)?;
    if failed {
        map.serialize_entry("errno", &record.error)?;
        entries!(map, record, dirfd);
    }
    entries!(map, record, flags);
    let has = |bit| record.bits & bit != 0;
    flags(map, &[("path_truncated", has(MISS_PATH_CUT)), ("lost", has(MISS_LOST))])
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
    match exit.outcome() {
        Outcome::Code(code) => map.serialize_entry("code", &code)?,
        Outcome::Signal(signal) => {
            map.serialize_entry("signal", &signal)?;
            map.serialize_entry("core", &exit.dumped_core())?;
        }
    }
    map.serialize_entry("process", &exit.record.is_process())?;
    cpu_entries!(map, record);
    entries!(map, record, nvcsw, nivcsw, migrations, minflt, majflt);
    map.serialize_entry("maxrss_bytes", &exit.maxrss_bytes())?;
    if record.bits & EXIT_RSS_BOUND != 0 {
        map.serialize_entry("maxrss_is_bound", &true)?;
    }
    if record.is_process() {
        let bytes = u64::from(record.file_rss_pages) * u64::from(exit.page_bytes);
        map.serialize_entry("file_rss_bytes", &(bytes > 0).then_some(bytes))?;
    }
    entries!(
        map,
        record,
        read_bytes,
        write_bytes,
        rchar,
        wchar,
        run_delay_ns,
        opens,
        lookups_failed,
        execs_failed,
        start_ns
    );
    map.serialize_entry("parent_pid", &record.parent_tgid)?;
    let has = |bit| record.bits & bit != 0;
    let set = [
        ("autoreaped", has(EXIT_AUTOREAP)),
        ("oom_killed", has(EXIT_OOM)),
        ("withheld", has(EXIT_WITHHELD)),
    ];
    flags(map, &set)?;
    map.serialize_entry("comm", &comm(&record.comm))
}

fn sample_entries<M: SerializeMap>(sample: &Sample, map: &mut M) -> Result<(), M::Error> {
    let record = &sample.record;
    let state = u8::try_from(record.state).map_or('?', char::from);
    map.serialize_entry("state", &state)?;
    cpu_entries!(map, record);
    entries!(map, record, nvcsw, nivcsw, minflt, majflt);
    map.serialize_entry("rss_bytes", &sample.rss_bytes())?;
    entries!(map, record, read_bytes, write_bytes, rchar, wchar, run_delay_ns);
    map.serialize_entry("final", &(record.bits & SAMPLE_FINAL != 0))?;
    flags(map, &[("withheld", record.bits & SAMPLE_WITHHELD != 0)])
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proctrace_wire::layout::EXIT_PROCESS;
    use serde_json::Value;
    use zerocopy::{FromBytes, IntoBytes};

    use super::*;

    type Record = proctrace_wire::layout::Exit;

    /// Fields of an end that no key shows: serials, and what only sums over processes need.
    const NOT_SHOWN: [&str; 8] = [
        "head",
        "process",
        "tgid",
        "tid",
        "run_at_exit_ns",
        "maxrss_ever_pages",
        "waited_utime_ns",
        "waited_stime_ns",
    ];

    fn printed(record: &[u8]) -> Value {
        let record = Record::read_from_bytes(record).unwrap();
        let body = Body::Exit(Box::new(Exit { record, page_bytes: 4096 }));
        let event = Event { time_ns: 1, task: 1, pid: Some(2), tid: Some(2), body };
        serde_json::from_str(&event.to_json()).unwrap()
    }

    /// An end with 1 in most fields.
    fn record() -> Record {
        let mut record = [0; size_of::<Record>()];
        Record::LAYOUT.fields.iter().for_each(|field| record[field.offset] = 1);
        let record = Record::read_from_bytes(&record).unwrap();
        Record { status: 0, bits: EXIT_PROCESS, ..record }
    }

    #[test]
    fn every_field_of_an_end_is_printed() {
        let record = record();
        let before = printed(record.as_bytes());
        for field in Record::LAYOUT.fields {
            if NOT_SHOWN.contains(&field.name) || field.name.starts_with("pad") {
                continue;
            }
            let mut changed = record.as_bytes().to_vec();
            // The bits that are printed are these: the lowest says whose end it is.
            changed[field.offset] ^= if field.name == "bits" { 2 } else { 3 };
            assert_ne!(printed(&changed), before, "{} is not printed", field.name);
        }
    }

    #[test]
    fn numbers_that_may_not_be_known_have_a_quantity() {
        // What every source counts, or says otherwise that it did not.
        let always = [
            "time_ns",
            "pid",
            "tid",
            "code",
            "opens",
            "lookups_failed",
            "execs_failed",
            "start_ns",
            "parent_pid",
        ];
        let known: BTreeSet<&str> =
            KEYS_OF.iter().flat_map(|(_, keys)| keys.iter().copied()).chain(always).collect();
        let printed = printed(record().as_bytes());
        for (key, value) in printed.as_object().unwrap() {
            assert!(!value.is_number() || known.contains(&**key), "{key} has no quantity");
        }
    }
}
