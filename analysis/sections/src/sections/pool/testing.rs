//! Synthetic pools for tests: a [`Scene`] in milliseconds, of tasks with usage.

use proctrace_wire::layout::EXIT_PROCESS;

use proctrace_recording::Recording;
pub(crate) use proctrace_scenes::MS;
use proctrace_scenes::Scene;

pub(crate) const PAGE_BYTES: u64 = 4096;

/// A trace under construction; its command is task 1, born at 0 ms.
pub(crate) struct Tape(Scene);

/// The final counters of a task.
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

impl Tape {
    pub(crate) fn new(program: &str) -> Self {
        let mut scene = Scene::new(4, 10 * MS);
        scene.header().command = vec![program.to_owned()];
        scene.exec(0, 1, &format!("/opt/job/{program}"), (0, 0));
        Self(scene)
    }

    /// Sets the interval of memory readings.
    pub(crate) fn memory_every(&mut self, interval_ms: u64) -> &mut Self {
        self.0.header().memory_interval_ns = Some(interval_ms * MS);
        self
    }

    /// A process forks.
    pub(crate) fn fork(&mut self, at_ms: u64, parent: u32, child: u32) -> &mut Self {
        self.0.fork(at_ms * MS, parent, child);
        self
    }

    /// A process creates a thread.
    pub(crate) fn thread(&mut self, at_ms: u64, process: u32, child: u32) -> &mut Self {
        self.0.thread(at_ms * MS, process, child);
        self
    }

    pub(crate) fn exec(&mut self, at_ms: u64, process: u32, path: &str) -> &mut Self {
        self.0.exec(at_ms * MS, process, path, (0, 0));
        self
    }

    /// The exit of a process's first task.
    pub(crate) fn exit(&mut self, at_ms: u64, process: u32, used: Used) -> &mut Self {
        self.end(at_ms, process, used, EXIT_PROCESS)
    }

    /// The exit of a thread.
    pub(crate) fn thread_exit(&mut self, at_ms: u64, task: u32, used: Used) -> &mut Self {
        self.end(at_ms, task, used, 0)
    }

    fn end(&mut self, at_ms: u64, task: u32, used: Used, bits: u32) -> &mut Self {
        let cpu = (used.user_ms * MS, used.system_ms * MS);
        self.0.exit_with(at_ms * MS, task, cpu, |exit| {
            exit.bits = bits;
            (exit.nvcsw, exit.nivcsw) = (used.voluntary, used.involuntary);
            exit.minflt = used.minor_faults;
            exit.migrations = used.migrations;
            exit.maxrss_pages = used.peak_pages;
            exit.wchar = used.written_bytes;
        });
        self
    }

    /// A sample of a task's CPU time in user mode.
    pub(crate) fn sample(&mut self, at_ms: u64, task: u32, user_ms: u64) -> &mut Self {
        self.0.sample(at_ms * MS, task, (user_ms * MS, 0));
        self
    }

    /// A memory reading of a process: RSS, PSS and USS.
    pub(crate) fn memory(&mut self, at_ms: u64, process: u32, bytes: (u64, u64, u64)) -> &mut Self {
        self.0.memory(at_ms * MS, process, bytes);
        self
    }

    /// Loads the trace.
    pub(crate) fn recording(&self) -> Recording {
        self.0.load(None)
    }
}
