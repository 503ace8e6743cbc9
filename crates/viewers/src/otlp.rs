//! OTLP spans as JSON (opentelemetry-proto, ExportTraceServiceRequest): one for each process, and
//! below it one for each of its program runs. A process is below the program run that forked it.
//!
//! A line is a whole request, as collectors read files; large recordings are several lines.

use std::io::{self, Write};

use proctrace_findings::{Outcome, Timeline, TimelineItem, TimelineProcess, TimelineRun};
use serde_json::{Value, json};

use crate::{Viewer, Written, json, text};

/// Spans per line. Receivers limit the size of a request, many to 4 MiB.
const SPANS_PER_LINE: usize = 2_000;
/// SPAN_KIND_INTERNAL and STATUS_CODE_ERROR.
const INTERNAL: u32 = 1;
const ERROR: u32 = 2;

pub(crate) struct Otlp<W> {
    out: W,
    begin_unix_ns: u64,
    length_ns: u64,
    trace_id: String,
    resource: Value,
    scope: Value,
    spans: Vec<Value>,
    written: u64,
    /// Pids of processes, by number.
    pids: Vec<i32>,
}

/// What a span is of.
#[derive(Clone, Copy)]
enum Span {
    Process(u32),
    Run(u32),
}

impl Span {
    /// 8 bytes, not all of them zero.
    fn id(self) -> String {
        let id = match self {
            Self::Process(process) => 1 << 32 | u64::from(process),
            Self::Run(run) => 2 << 32 | u64::from(run),
        };
        format!("{id:016x}")
    }
}

impl<W: Write> Otlp<W> {
    pub(crate) fn begin(timeline: &Timeline, out: W) -> Self {
        let command = timeline.command.first().map(String::as_str).unwrap_or_default();
        let name = command.rsplit('/').next().filter(|name| !name.is_empty());
        let arch = match timeline.machine.as_str() {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let resource = attributes(json!({
            "service.name": name.unwrap_or("unknown_service"),
            "host.name": timeline.host,
            "host.arch": arch,
            "os.type": "linux",
            "os.version": timeline.kernel,
        }));
        Self {
            out,
            begin_unix_ns: timeline.begin_unix_ns,
            length_ns: timeline.length_ns,
            trace_id: format!("{:032x}", trace_id(timeline)),
            resource: json!({ "attributes": resource }),
            scope: json!({ "name": "proctrace", "version": timeline.recorder }),
            spans: Vec::new(),
            written: 0,
            pids: Vec::new(),
        }
    }

    fn put(
        &mut self,
        (span, parent): (Span, Option<Span>),
        name: &str,
        (begin_ns, end_ns): (u64, Option<u64>),
        outcome: Option<Outcome>,
        mut of: Value,
    ) -> io::Result<()> {
        let unix = |ns: u64| self.begin_unix_ns.saturating_add(ns).to_string();
        if end_ns.is_none() {
            of["proctrace.alive_at_end"] = true.into();
        }
        let mut value = json!({
            "traceId": self.trace_id,
            "spanId": span.id(),
            "name": name,
            "kind": INTERNAL,
            "startTimeUnixNano": unix(begin_ns),
            "endTimeUnixNano": unix(end_ns.unwrap_or(self.length_ns).max(begin_ns)),
            "attributes": attributes(of),
            "status": status(outcome),
        });
        if let Some(parent) = parent {
            value["parentSpanId"] = parent.id().into();
        }
        self.spans.push(value);
        if self.spans.len() >= SPANS_PER_LINE { self.line() } else { Ok(()) }
    }

    fn line(&mut self) -> io::Result<()> {
        let spans = std::mem::take(&mut self.spans);
        self.written += spans.len() as u64;
        let scope_spans = json!([{ "scope": self.scope, "spans": spans }]);
        let of = json!({ "resource": self.resource, "scopeSpans": scope_spans });
        json::write(&mut self.out, &json!({ "resourceSpans": [of] }))?;
        self.out.write_all(b"\n")
    }

    fn process(&mut self, of: &TimelineProcess<'_>) -> io::Result<()> {
        self.pids.push(of.pid);
        let parent = of.forker.map(|forker| match forker.run {
            Some(run) => Span::Run(run),
            None => Span::Process(forker.process),
        });
        let ids = (Span::Process(of.process), parent);
        let times = (of.begin_ns, of.end_ns);
        let values = json!({
            "process.pid": of.pid,
            "process.parent_pid": of.parent_pid,
            "process.executable.name": of.program,
            "process.exit.code": of.outcome.and_then(Outcome::code),
            "proctrace.exit.signal": signal(of.outcome),
            "proctrace.process_id": of.id,
            "proctrace.category": of.category,
            "proctrace.cpu_ns": of.cpu_ns,
            "proctrace.system_ns": of.system_ns,
            "proctrace.peak_rss_bytes": of.peak_rss_bytes,
            "proctrace.read_bytes": of.read_bytes,
            "proctrace.write_bytes": of.write_bytes,
            "proctrace.run_delay_ns": of.run_delay_ns,
            "proctrace.failed_lookups": of.failed_lookups,
            "proctrace.threads": of.threads,
        });
        self.put(ids, text::program(of.program), times, of.outcome, values)
    }

    fn run(&mut self, run: &TimelineRun<'_>) -> io::Result<()> {
        let ids = (Span::Run(run.run), Some(Span::Process(run.process)));
        let values = json!({
            "process.pid": self.pids.get(run.process as usize),
            "process.executable.name": run.program,
            "process.executable.path": text::known(run.exe),
            "process.working_directory": text::known(run.cwd),
            "process.command_args": text::arguments(run),
            "process.exit.code": run.outcome.and_then(Outcome::code),
            "proctrace.exit.signal": signal(run.outcome),
            "proctrace.interpreter": run.interpreter.map(text::bytes),
        });
        let times = (run.begin_ns, run.end_ns);
        self.put(ids, text::program(run.program), times, run.outcome, values)
    }
}

/// 16 bytes that differ from one recording to another: FNV-1a of its host and start.
fn trace_id(timeline: &Timeline) -> u128 {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let times = [timeline.begin_unix_ns.to_le_bytes(), timeline.begin_boottime_ns.to_le_bytes()];
    let bytes = timeline.host.bytes().chain(times.into_iter().flatten());
    let hash = bytes.fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    hash.max(1)
}

/// An exit of 0 is left to the reader, as the specification has it for instrumentation.
fn status(outcome: Option<Outcome>) -> Value {
    match outcome {
        None | Some(Outcome::Code(0)) => json!({}),
        Some(outcome) => json!({ "code": ERROR, "message": outcome.name() }),
    }
}

fn signal(outcome: Option<Outcome>) -> Option<String> {
    let outcome = outcome.filter(|outcome| outcome.signal().is_some())?;
    Some(outcome.name().into_owned())
}

/// Values as attributes, without those that are not known.
fn attributes(values: Value) -> Value {
    let Value::Object(values) = values else { return json!([]) };
    let known = values.into_iter().filter(|(_, value)| !value.is_null());
    known.map(|(key, value)| json!({ "key": key, "value": any_value(value) })).collect()
}

/// AnyValue; whole numbers are strings, as in all JSON of protobuf.
fn any_value(value: Value) -> Value {
    match value {
        Value::Bool(value) => json!({ "boolValue": value }),
        Value::Number(value) => json!({ "intValue": value.to_string() }),
        Value::Array(values) => {
            let values: Vec<Value> = values.into_iter().map(any_value).collect();
            json!({ "arrayValue": { "values": values } })
        }
        Value::String(value) => json!({ "stringValue": value }),
        other => json!({ "stringValue": other.to_string() }),
    }
}

impl<W: Write> Viewer for Otlp<W> {
    fn take(&mut self, item: &TimelineItem<'_>) -> io::Result<()> {
        match item {
            TimelineItem::Process(process) => self.process(process),
            TimelineItem::Run(run) => self.run(run),
            _ => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> io::Result<Written> {
        if !self.spans.is_empty() || self.written == 0 {
            self.line()?;
        }
        self.out.flush()?;
        Ok(Written { items: self.written, names: ("span", "spans"), notes: Vec::new() })
    }
}
