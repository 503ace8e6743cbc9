//! Trace Event JSON, for chrome://tracing, Perfetto and speedscope.
//!
//! The format knows processes by pid alone. A process whose pid was used before gets a number beyond
//! all pids; the real one is in its arguments.

use std::collections::HashSet;
use std::io::{self, Write};

use proctrace_findings::{
    Outcome, Timeline, TimelineCounter, TimelineItem, TimelinePhase, TimelineProcess, TimelineRun,
    TimelineStep, TimelineThread,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::json::{Lines, us};
use crate::{Viewer, Written, json, text};

/// The kernel's limit of pids (PID_MAX_LIMIT): the first number that is none. What belongs to the
/// whole recording is shown under it.
const BEYOND_PIDS: i64 = 1 << 22;

pub(crate) struct Chrome<W> {
    out: W,
    events: Lines,
    /// The pid under which each process is shown.
    pids: Vec<i64>,
    seen: HashSet<i64>,
    /// Thread ids of tasks other than the first of their process, where they are known.
    tids: std::collections::HashMap<u32, i64>,
    repeated: i64,
    has_path: bool,
    has_phases: bool,
}

/// An event.
#[derive(Default, Serialize)]
struct Event<'a> {
    ph: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    pid: i64,
    tid: i64,
    ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Value>,
}

impl<W: Write> Chrome<W> {
    pub(crate) fn begin(timeline: &Timeline, mut out: W) -> io::Result<Self> {
        out.write_all(b"{\"displayTimeUnit\":\"ms\",\"otherData\":")?;
        let other = json!({
            "command": timeline.command,
            "directory": timeline.cwd,
            "host": timeline.host,
            "kernel": timeline.kernel,
            "recorder": format!("proctrace {}", timeline.recorder),
            "begin_unix_ns": timeline.begin_unix_ns.to_string(),
        });
        json::write(&mut out, &other)?;
        out.write_all(b",\"traceEvents\":[")?;
        let mut made = Self {
            out,
            events: Lines::default(),
            pids: Vec::new(),
            seen: HashSet::new(),
            tids: std::collections::HashMap::new(),
            repeated: BEYOND_PIDS,
            has_path: false,
            has_phases: false,
        };
        made.name("process_name", BEYOND_PIDS, BEYOND_PIDS, "recording")?;
        Ok(made)
    }

    fn put(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.events.push(&mut self.out, event)
    }

    fn name(&mut self, ph_name: &'static str, pid: i64, tid: i64, name: &str) -> io::Result<()> {
        let args = Some(json!({ "name": name }));
        self.put(&Event { ph: "M", name: ph_name, pid, tid, args, ..Event::default() })
    }

    /// A slice; without an end if that is not known.
    fn slice(
        &mut self,
        (begin_ns, end_ns): (u64, Option<u64>),
        (pid, tid): (i64, i64),
        (cat, name): (&'static str, &str),
        args: Value,
    ) -> io::Result<()> {
        let dur = end_ns.map(|end_ns| us(end_ns.saturating_sub(begin_ns)));
        let ph = if dur.is_some() { "X" } else { "B" };
        let (cat, args, ts) = (Some(cat), Some(args), us(begin_ns));
        self.put(&Event { ph, name, cat, pid, tid, ts, dur, args, ..Event::default() })
    }

    fn pid(&self, process: u32) -> i64 {
        self.pids.get(process as usize).copied().unwrap_or(BEYOND_PIDS)
    }

    fn process(&mut self, of: &TimelineProcess<'_>) -> io::Result<()> {
        let mut pid = i64::from(of.pid);
        if !self.seen.insert(pid) {
            self.repeated += 1;
            pid = self.repeated;
        }
        self.pids.push(pid);
        let name = text::program(of.program);
        self.name("process_name", pid, pid, name)?;
        self.name("thread_name", pid, pid, name)?;
        let slice = ("process", name);
        self.slice((of.begin_ns, of.end_ns), (pid, pid), slice, of_process(of))?;
        let Some(forker) = of.forker else { return Ok(()) };
        let from = self.pid(forker.process);
        let tid = self.tids.get(&forker.task).copied().filter(|_| !forker.is_first);
        let (cat, id, ts) = (Some("fork"), Some(of.process), us(of.begin_ns));
        let flow = Event { ph: "s", name: "fork", cat, id, ts, ..Event::default() };
        self.put(&Event { pid: from, tid: tid.unwrap_or(from), ..flow })?;
        let flow = Event { ph: "f", name: "fork", cat, id, ts, ..Event::default() };
        self.put(&Event { bp: Some("e"), pid, tid: pid, ..flow })
    }

    fn thread(&mut self, of: &TimelineThread) -> io::Result<()> {
        if of.is_first {
            return Ok(());
        }
        // Without an id of its own, it cannot be told from others.
        let Some(tid) = of.tid.map(i64::from) else { return Ok(()) };
        self.tids.insert(of.task, tid);
        let pid = self.pid(of.process);
        let args = json!({ "cpu_ns": of.cpu_ns });
        self.slice((of.begin_ns, of.end_ns), (pid, tid), ("thread", "thread"), known(args))
    }

    fn run(&mut self, run: &TimelineRun<'_>) -> io::Result<()> {
        let pid = self.pid(run.process);
        let slice = ("exec", text::program(run.program));
        self.slice((run.begin_ns, run.end_ns), (pid, pid), slice, of_run(run))
    }

    fn step(&mut self, step: &TimelineStep<'_>) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_path, true) {
            self.name("thread_name", BEYOND_PIDS, BEYOND_PIDS, "critical path")?;
        }
        let times = (step.begin_ns, Some(step.end_ns));
        let slice = ("critical path", text::program(step.program));
        let args = json!({ "doing": step.doing, "pid": step.pid });
        self.slice(times, (BEYOND_PIDS, BEYOND_PIDS), slice, args)
    }

    fn phase(&mut self, phase: &TimelinePhase<'_>) -> io::Result<()> {
        let on = (BEYOND_PIDS, BEYOND_PIDS + 1);
        if !std::mem::replace(&mut self.has_phases, true) {
            self.name("thread_name", on.0, on.1, "phases")?;
        }
        let times = (phase.begin_ns, Some(phase.end_ns));
        self.slice(times, on, ("phase", phase.name), json!({}))
    }

    fn counter(&mut self, counter: &TimelineCounter<'_>) -> io::Result<()> {
        let pid = counter.process.map_or(BEYOND_PIDS, |process| self.pid(process));
        let name = format!("{} [{}]", counter.name, counter.unit);
        for (time_ns, value) in counter.values {
            let args = Some(json!({ "value": value }));
            let (ts, name) = (us(*time_ns), name.as_str());
            self.put(&Event { ph: "C", name, pid, tid: pid, ts, args, ..Event::default() })?;
        }
        Ok(())
    }
}

fn of_process(of: &TimelineProcess<'_>) -> Value {
    let mut values = json!({
        "process_id": of.id,
        "pid": of.pid,
        "parent_pid": of.parent_pid,
        "category": of.category,
        "exit_code": of.outcome.and_then(Outcome::code),
        "signal": signal(of.outcome),
        "dumped_core": of.dumped_core.then_some(true),
        "threads": of.threads,
    });
    for (figure, value) in of.used.in_timelines() {
        values[figure.name()] = json!(value);
    }
    known(values)
}

fn of_run(run: &TimelineRun<'_>) -> Value {
    known(json!({
        "arguments": text::arguments(run),
        "directory": text::known(run.cwd),
        "executable": text::known(run.exe),
        "interpreter": run.interpreter.map(text::bytes),
        "exit_code": run.outcome.and_then(Outcome::code),
        "signal": signal(run.outcome),
        "began_before_recording": (!run.happened_here).then_some(true),
    }))
}

fn signal(outcome: Option<Outcome>) -> Option<String> {
    let outcome = outcome.filter(|outcome| outcome.signal().is_some())?;
    Some(outcome.name().into_owned())
}

/// The arguments without those that are not known.
fn known(mut args: Value) -> Value {
    if let Value::Object(args) = &mut args {
        args.retain(|_, value| !value.is_null());
    }
    args
}

impl<W: Write> Viewer for Chrome<W> {
    fn take(&mut self, item: &TimelineItem<'_>) -> io::Result<()> {
        match item {
            TimelineItem::Process(process) => self.process(process),
            TimelineItem::Thread(thread) => self.thread(thread),
            TimelineItem::Run(run) => self.run(run),
            TimelineItem::Step(step) => self.step(step),
            TimelineItem::Counter(counter) => self.counter(counter),
            TimelineItem::Phase(phase) => self.phase(phase),
            TimelineItem::Wait(_) | TimelineItem::Stack(_) => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> io::Result<Written> {
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()?;
        let names = ("event", "events");
        Ok(Written { items: self.events.written, names, notes: Vec::new() })
    }
}
