//! The tables of samples of tasks and of readings of memory.

use proctrace_overview::passes::is_divided;
use proctrace_wire::Quantity;
use proctrace_wire::layout::{Memory, Sample};

use super::{Scan, Sink};
use crate::error::TableError;
use crate::frame::{Frame, Words};
use crate::rows::number;
use crate::schema::TableSchema;

/// Samples of tasks.
pub(super) struct Samples<'s> {
    scan: &'s Scan<'s>,
    schema: &'static TableSchema,
    states: Words,
    rows: Vec<Sample>,
}

/// Names of the state letters of proc_pid_stat(5).
const STATES: [(u8, &str); 8] = [
    (b'R', "running"),
    (b'S', "sleeping"),
    (b'D', "uninterruptible"),
    (b'T', "stopped"),
    (b't', "traced"),
    (b'Z', "zombie"),
    (b'X', "dead"),
    (b'I', "idle"),
];

impl<'s> Samples<'s> {
    pub(super) fn new(schema: &'static TableSchema, scan: &'s Scan<'s>) -> Self {
        let states = Words::new(STATES.map(|(_, name)| name));
        Self { scan, schema, states, rows: Vec::new() }
    }

    pub(super) fn add(&mut self, sample: Sample, sink: Sink<'_>) -> Result<(), TableError> {
        self.rows.push(sample);
        if self.rows.len() >= self.scan.batch_rows { self.flush(sink) } else { Ok(()) }
    }

    fn flush(&mut self, sink: Sink<'_>) -> Result<(), TableError> {
        let rows = std::mem::take(&mut self.rows);
        let page_bytes = u64::from(self.scan.recording.header().page_bytes);
        let mut frame = Frame::new(self.schema, self.scan.wanted, rows.len());
        frame.values("thread_id", || rows.iter().map(|row| row.head.task).collect());
        frame.values("process_id", || rows.iter().map(|row| row.process).collect());
        frame
            .options("step_id", || rows.iter().map(|row| self.scan.step_of(row.process)).collect());
        frame.values("time_ns", || {
            rows.iter().map(|row| self.scan.since(row.head.time_ns)).collect()
        });
        frame.words("state", &self.states, || {
            let of = |state: u16| STATES.iter().position(|known| u16::from(known.0) == state);
            rows.iter().map(|row| of(row.state).map(number)).collect()
        });
        let knows = |quantity| self.scan.recording.knows().all(&[quantity]);
        for (name, quantity, of) in [
            ("cpu_ns", Quantity::Cpu, (|s| s.run_ns) as fn(&Sample) -> u64),
            ("run_delay_ns", Quantity::RunDelay, |s| s.run_delay_ns),
            ("voluntary_switches", Quantity::Switches, |s| s.nvcsw),
            ("involuntary_switches", Quantity::Switches, |s| s.nivcsw),
            ("minor_faults", Quantity::Faults, |s| s.minflt),
            ("major_faults", Quantity::Faults, |s| s.majflt),
            ("read_bytes", Quantity::Io, |s| s.read_bytes),
            ("write_bytes", Quantity::Io, |s| s.write_bytes),
            ("read_call_bytes", Quantity::Io, |s| s.rchar),
            ("write_call_bytes", Quantity::Io, |s| s.wchar),
        ] {
            frame.known(name, knows(quantity), || rows.iter().map(of).collect());
        }
        let ticks = self.scan.recording.knows_ticks();
        frame.known("user_ticks_ns", ticks, || rows.iter().map(|s| s.utime_ns).collect());
        frame.known("system_ticks_ns", ticks, || rows.iter().map(|s| s.stime_ns).collect());
        frame.values("rss_bytes", || {
            rows.iter().map(|row| row.rss_pages.saturating_mul(page_bytes)).collect()
        });
        sink(self.schema, frame.finish()?)
    }

    pub(super) fn finish(mut self, sink: Sink<'_>) -> Result<(), TableError> {
        self.flush(sink)
    }
}

/// Readings of the memory of processes.
pub(super) struct MemoryReadings<'s> {
    scan: &'s Scan<'s>,
    schema: &'static TableSchema,
    rows: Vec<Memory>,
}

impl<'s> MemoryReadings<'s> {
    pub(super) fn new(schema: &'static TableSchema, scan: &'s Scan<'s>) -> Self {
        Self { scan, schema, rows: Vec::new() }
    }

    pub(super) fn add(&mut self, reading: Memory, sink: Sink<'_>) -> Result<(), TableError> {
        self.rows.push(reading);
        if self.rows.len() >= self.scan.batch_rows { self.flush(sink) } else { Ok(()) }
    }

    fn flush(&mut self, sink: Sink<'_>) -> Result<(), TableError> {
        let rows = std::mem::take(&mut self.rows);
        let mut frame = Frame::new(self.schema, self.scan.wanted, rows.len());
        frame.values("process_id", || rows.iter().map(|row| row.process).collect());
        frame
            .options("step_id", || rows.iter().map(|row| self.scan.step_of(row.process)).collect());
        frame.values("time_ns", || {
            rows.iter().map(|row| self.scan.since(row.head.time_ns)).collect()
        });
        frame.values("rss_bytes", || rows.iter().map(|row| row.rss_bytes).collect());
        frame.values("pss_bytes", || rows.iter().map(|row| row.pss_bytes).collect());
        frame.options("uss_bytes", || {
            rows.iter().map(|row| is_divided(row).then_some(row.uss_bytes)).collect()
        });
        frame.options("shared_bytes", || {
            rows.iter().map(|row| is_divided(row).then_some(row.shared_bytes)).collect()
        });
        frame.values("swap_bytes", || rows.iter().map(|row| row.swap_bytes).collect());
        frame.options("vmem_bytes", || {
            rows.iter().map(|row| Some(row.vmem_bytes).filter(|bytes| *bytes > 0)).collect()
        });
        sink(self.schema, frame.finish()?)
    }

    pub(super) fn finish(mut self, sink: Sink<'_>) -> Result<(), TableError> {
        self.flush(sink)
    }
}
