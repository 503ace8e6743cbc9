//! Recordings made by hand: records written to a trace and loaded like any other. Times are in
//! milliseconds since the start, so that what must come out is arithmetic.

use proctrace_trace::{Header, Writer};
use proctrace_wire::layout::{
    self, ATTACH_ROOT, Attach, EXIT_PROCESS, ExecFixed, Exit, Fork, Head, Memory, Sample,
};
use proctrace_wire::{IntoBytes, Kind, Stream};
use zerocopy::FromZeros;

use crate::classify::Rules;
use crate::recording::Recording;

pub(crate) const MS: u64 = 1_000_000;
const START_NS: u64 = 1_000_000 * MS;
pub(crate) const PAGE_BYTES: u64 = 4096;

/// A trace that is being made; its command is task 1, born at 0 ms.
pub(crate) struct Tape {
    header: Header,
    lifecycle: Vec<u8>,
    samples: Vec<u8>,
}

/// What a task tells at its end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Used {
    pub(crate) user_ms: u64,
    pub(crate) system_ms: u64,
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
    pub(crate) minor_faults: u64,
    pub(crate) migrations: u32,
    pub(crate) peak_pages: u64,
    pub(crate) written_bytes: u64,
}

impl Used {
    pub(crate) fn ms(user_ms: u64) -> Self {
        Self { user_ms, ..Self::default() }
    }
}

fn head(kind: Kind, size: usize, task: u32, at_ms: u64) -> Head {
    let size = u16::try_from(size).unwrap();
    Head { kind: kind as u16, size, task, time_ns: START_NS + at_ms * MS }
}

fn pid(task: u32) -> i32 {
    1000 + i32::try_from(task).unwrap()
}

impl Tape {
    pub(crate) fn new(program: &str) -> Self {
        let header = serde_json::json!({
            "wire_version": proctrace_wire::WIRE_VERSION, "recorder": "test", "backend": "ebpf", "command": [program],
            "scope": "command", "cgroup": null, "cwd": "/", "host": "h", "kernel": "6.18",
            "machine": "x86_64", "cpus": 4, "page_bytes": PAGE_BYTES, "memory_bytes": 1 << 30,
            "started_unix_ns": 0, "started_ns": START_NS, "interval_ns": 10 * MS,
            "memory_interval_ns": null, "ring_bytes": 65536, "on_full": "drop", "misses": [],
            "env_names": [], "hooks": [],
        });
        let mut tape = Self {
            header: serde_json::from_value(header).unwrap(),
            lifecycle: Vec::new(),
            samples: Vec::new(),
        };
        let mut attach = Attach::new_zeroed();
        attach.head = head(Kind::Attach, size_of::<Attach>(), 1, 0);
        (attach.process, attach.tgid, attach.tid) = (1, pid(1), pid(1));
        attach.bits = ATTACH_ROOT;
        tape.lifecycle.extend_from_slice(attach.as_bytes());
        tape.exec(0, 1, &format!("/opt/job/{program}"));
        tape
    }

    /// Looks at memory are this far apart.
    pub(crate) fn memory_every(&mut self, interval_ms: u64) -> &mut Self {
        self.header.memory_interval_ns = Some(interval_ms * MS);
        self
    }

    /// A process forks.
    pub(crate) fn fork(&mut self, at_ms: u64, parent: u32, child: u32) -> &mut Self {
        self.born(at_ms, parent, child, child)
    }

    /// A process makes a thread.
    pub(crate) fn thread(&mut self, at_ms: u64, process: u32, child: u32) -> &mut Self {
        self.born(at_ms, process, child, process)
    }

    fn born(&mut self, at_ms: u64, parent: u32, child: u32, child_process: u32) -> &mut Self {
        let mut fork = Fork::new_zeroed();
        fork.head = head(Kind::Fork, size_of::<Fork>(), parent, at_ms);
        (fork.process, fork.tgid, fork.tid) = (parent, pid(parent), pid(parent));
        (fork.child, fork.child_process) = (child, child_process);
        (fork.child_tgid, fork.child_tid) = (pid(child_process), pid(child));
        fork.parent_tgid = pid(parent);
        fork.start_ns = fork.head.time_ns;
        self.lifecycle.extend_from_slice(fork.as_bytes());
        self
    }

    pub(crate) fn exec(&mut self, at_ms: u64, process: u32, path: &str) -> &mut Self {
        let size = (size_of::<ExecFixed>() + 2 * path.len()).next_multiple_of(8);
        let mut exec = ExecFixed::new_zeroed();
        exec.head = head(Kind::Exec, size, process, at_ms);
        (exec.process, exec.tgid, exec.tid) = (process, pid(process), pid(process));
        exec.path_bytes = u16::try_from(path.len()).unwrap();
        exec.exe_bytes = exec.path_bytes;
        let end = self.lifecycle.len() + size;
        self.lifecycle.extend_from_slice(exec.as_bytes());
        self.lifecycle.extend_from_slice(path.as_bytes());
        self.lifecycle.extend_from_slice(path.as_bytes());
        self.lifecycle.resize(end, 0);
        self
    }

    /// The end of a process's founder.
    pub(crate) fn exit(&mut self, at_ms: u64, process: u32, used: Used) -> &mut Self {
        self.end(at_ms, process, process, used, EXIT_PROCESS)
    }

    /// The end of a thread.
    pub(crate) fn thread_exit(
        &mut self,
        at_ms: u64,
        process: u32,
        task: u32,
        used: Used,
    ) -> &mut Self {
        self.end(at_ms, process, task, used, 0)
    }

    fn end(&mut self, at_ms: u64, process: u32, task: u32, used: Used, bits: u32) -> &mut Self {
        let mut exit = Exit::new_zeroed();
        exit.head = head(Kind::Exit, size_of::<Exit>(), task, at_ms);
        (exit.process, exit.tgid, exit.tid) = (process, pid(process), pid(task));
        exit.bits = bits;
        (exit.utime_ns, exit.stime_ns) = (used.user_ms * MS, used.system_ms * MS);
        exit.run_ns = exit.utime_ns + exit.stime_ns;
        (exit.nvcsw, exit.nivcsw) = (used.voluntary, used.involuntary);
        exit.minflt = used.minor_faults;
        exit.migrations = used.migrations;
        exit.maxrss_pages = used.peak_pages;
        exit.wchar = used.written_bytes;
        self.lifecycle.extend_from_slice(exit.as_bytes());
        self
    }

    /// What a task has used so far, in user mode.
    pub(crate) fn sample(&mut self, at_ms: u64, task: u32, user_ms: u64) -> &mut Self {
        let mut sample = Sample::new_zeroed();
        sample.head = head(Kind::Sample, size_of::<Sample>(), task, at_ms);
        (sample.process, sample.tgid, sample.tid) = (task, pid(task), pid(task));
        (sample.run_ns, sample.utime_ns) = (user_ms * MS, user_ms * MS);
        self.samples.extend_from_slice(sample.as_bytes());
        self
    }

    /// A look at a process: resident, proportional and its own.
    pub(crate) fn memory(
        &mut self,
        at_ms: u64,
        process: u32,
        (rss_bytes, pss_bytes, uss_bytes): (u64, u64, u64),
    ) -> &mut Self {
        let mut memory = Memory::new_zeroed();
        memory.head = head(Kind::Memory, size_of::<layout::Memory>(), process, at_ms);
        (memory.process, memory.tgid) = (process, pid(process));
        (memory.rss_bytes, memory.pss_bytes, memory.uss_bytes) = (rss_bytes, pss_bytes, uss_bytes);
        memory.shared_bytes = rss_bytes - uss_bytes;
        self.samples.extend_from_slice(memory.as_bytes());
        self
    }

    /// Loads it. Records need not have been added in order of time, but for forks.
    pub(crate) fn recording(&self) -> Recording {
        let mut writer = Writer::new(Vec::new(), &self.header).unwrap();
        for (stream, bytes) in
            [(Stream::Lifecycle, &self.lifecycle), (Stream::Samples, &self.samples)]
        {
            writer.append(stream, 0, START_NS, START_NS, bytes).unwrap();
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("made.ptrace");
        std::fs::write(&path, writer.into_inner()).unwrap();
        let recording = Recording::load(&path, &Rules::generic()).unwrap();
        assert_eq!(recording.undecodable, 0);
        recording
    }
}
