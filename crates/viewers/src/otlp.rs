//! OTLP spans as JSON (opentelemetry-proto, ExportTraceServiceRequest): one for each process, and
//! below it one for each of its program runs. A process is below the program run that forked it, a phase below
//! the first process.
//!
//! A line is a whole request, as collectors read files; large recordings are several lines.

use std::borrow::Cow;
use std::io::{self, Write};

use proctrace_findings::{
    Outcome, Timeline, TimelineItem, TimelinePhase, TimelineProcess, TimelineRun,
};
use serde::Serialize;

use crate::{Viewer, Written, json, text};

/// Spans per line. Receivers limit the size of a request, many to 4 MiB.
const SPANS_PER_LINE: u64 = 2_000;
/// SPAN_KIND_INTERNAL and STATUS_CODE_ERROR.
const INTERNAL: u32 = 1;
const ERROR: u32 = 2;

pub(crate) struct Otlp<W> {
    out: W,
    begin_unix_ns: u64,
    length_ns: u64,
    trace_id: String,
    /// Beginning of each line.
    head: Vec<u8>,
    /// The spans of the current line.
    line: json::Lines,
    written: u64,
    /// Pids of processes, by number.
    pids: Vec<i32>,
    first: Option<u32>,
    phases: u32,
}

/// Object of a span.
#[derive(Clone, Copy)]
enum Span {
    Process(u32),
    Run(u32),
    Phase(u32),
}

/// A span of opentelemetry-proto.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SpanJson<'a> {
    trace_id: &'a str,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    name: &'a str,
    kind: u32,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: &'a [Attribute<'a>],
    status: Status,
}

/// An exit of 0 is left to the reader, as the specification has it for instrumentation.
#[derive(Default, Serialize)]
struct Status {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Cow<'static, str>>,
}

#[derive(Serialize)]
struct Attribute<'a> {
    key: Cow<'static, str>,
    value: AnyValue<'a>,
}

/// AnyValue; whole numbers are strings, as in all JSON of protobuf.
#[derive(Serialize)]
enum AnyValue<'a> {
    #[serde(rename = "stringValue")]
    Text(Cow<'a, str>),
    #[serde(rename = "boolValue")]
    Flag(bool),
    #[serde(rename = "intValue")]
    Whole(String),
    #[serde(rename = "arrayValue")]
    List { values: Vec<AnyValue<'a>> },
}

impl<'a> From<&'a str> for AnyValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

impl<'a> From<Cow<'a, str>> for AnyValue<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for AnyValue<'_> {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

macro_rules! whole_numbers {
    ($($type:ty),+) => {
        $(impl From<$type> for AnyValue<'_> {
            fn from(number: $type) -> Self {
                Self::Whole(number.to_string())
            }
        })+
    };
}
whole_numbers!(u64, u32, i32);

impl From<Vec<String>> for AnyValue<'_> {
    fn from(texts: Vec<String>) -> Self {
        let values = texts.into_iter().map(|text| Self::Text(text.into())).collect();
        Self::List { values }
    }
}

/// Attributes, those that are known.
#[derive(Default)]
struct Attributes<'a>(Vec<Attribute<'a>>);

impl<'a> Attributes<'a> {
    fn and(
        mut self,
        key: impl Into<Cow<'static, str>>,
        value: Option<impl Into<AnyValue<'a>>>,
    ) -> Self {
        self.0.extend(value.map(|value| Attribute { key: key.into(), value: value.into() }));
        self
    }
}

impl Span {
    /// 8 bytes, not all of them zero.
    fn id(self) -> String {
        let id = match self {
            Self::Process(process) => 1 << 32 | u64::from(process),
            Self::Run(run) => 2 << 32 | u64::from(run),
            Self::Phase(phase) => 3 << 32 | u64::from(phase),
        };
        format!("{id:016x}")
    }
}

impl<W: Write> Otlp<W> {
    pub(crate) fn begin(timeline: &Timeline, out: W) -> io::Result<Self> {
        let command = timeline.command.first().map(String::as_str).unwrap_or_default();
        let name = command.rsplit('/').next().filter(|name| !name.is_empty());
        let arch = match timeline.machine.as_str() {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let resource = Attributes::default()
            .and("service.name", Some(name.unwrap_or("unknown_service")))
            .and("host.name", Some(timeline.host.as_str()))
            .and("host.arch", Some(arch))
            .and("os.type", Some("linux"))
            .and("os.version", Some(timeline.kernel.as_str()));
        let mut head = b"{\"resourceSpans\":[{\"resource\":{\"attributes\":".to_vec();
        json::write(&mut head, &resource.0)?;
        head.extend(b"},\"scopeSpans\":[{\"scope\":{\"name\":\"proctrace\",\"version\":");
        json::write(&mut head, &timeline.recorder)?;
        head.extend(b"},\"spans\":[");
        Ok(Self {
            out,
            begin_unix_ns: timeline.begin_unix_ns,
            length_ns: timeline.length_ns,
            trace_id: format!("{:032x}", trace_id(timeline)),
            head,
            line: json::Lines::default(),
            written: 0,
            pids: Vec::new(),
            first: None,
            phases: 0,
        })
    }

    fn put(
        &mut self,
        (span, parent): (Span, Option<Span>),
        name: &str,
        (begin_ns, end_ns): (u64, Option<u64>),
        outcome: Option<Outcome>,
        of: Attributes<'_>,
    ) -> io::Result<()> {
        let unix = |ns: u64| self.begin_unix_ns.saturating_add(ns).to_string();
        let of = of.and("proctrace.alive_at_end", end_ns.is_none().then_some(true));
        let span = SpanJson {
            trace_id: &self.trace_id,
            span_id: span.id(),
            parent_span_id: parent.map(Span::id),
            name,
            kind: INTERNAL,
            start_time_unix_nano: unix(begin_ns),
            end_time_unix_nano: unix(end_ns.unwrap_or(self.length_ns).max(begin_ns)),
            attributes: &of.0,
            status: status(outcome),
        };
        if self.line.written == 0 {
            self.out.write_all(&self.head)?;
        }
        self.line.push_inline(&mut self.out, &span)?;
        self.written += 1;
        if self.line.written >= SPANS_PER_LINE { self.end_line() } else { Ok(()) }
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.line = json::Lines::default();
        self.out.write_all(b"]}]}]}\n")
    }

    fn process(&mut self, of: &TimelineProcess<'_>) -> io::Result<()> {
        self.pids.push(of.pid);
        self.first.get_or_insert(of.process);
        let parent = of.forker.map(|forker| match forker.run {
            Some(run) => Span::Run(run),
            None => Span::Process(forker.process),
        });
        let ids = (Span::Process(of.process), parent);
        let times = (of.begin_ns, of.end_ns);
        let mut values = Attributes::default()
            .and("process.pid", Some(of.pid))
            .and("process.parent_pid", of.parent_pid)
            .and("process.executable.name", of.program)
            .and("process.exit.code", of.outcome.and_then(Outcome::code))
            .and("proctrace.exit.signal", signal(of.outcome))
            .and("proctrace.process_id", Some(of.id))
            .and("proctrace.category", of.category)
            .and("proctrace.threads", of.threads);
        for (figure, value) in of.used.in_timelines() {
            values = values.and(format!("proctrace.{}", figure.name()), value);
        }
        self.put(ids, text::program(of.program), times, of.outcome, values)
    }

    fn run(&mut self, run: &TimelineRun<'_>) -> io::Result<()> {
        let ids = (Span::Run(run.run), Some(Span::Process(run.process)));
        let values = Attributes::default()
            .and("process.pid", self.pids.get(run.process as usize).copied())
            .and("process.executable.name", run.program)
            .and("process.executable.path", text::known(run.exe))
            .and("process.working_directory", text::known(run.cwd))
            .and("process.command_args", text::arguments(run))
            .and("process.exit.code", run.outcome.and_then(Outcome::code))
            .and("proctrace.exit.signal", signal(run.outcome))
            .and("proctrace.interpreter", run.interpreter.map(text::bytes));
        let times = (run.begin_ns, run.end_ns);
        self.put(ids, text::program(run.program), times, run.outcome, values)
    }

    fn phase(&mut self, phase: &TimelinePhase<'_>) -> io::Result<()> {
        let ids = (Span::Phase(self.phases), self.first.map(Span::Process));
        self.phases = self.phases.saturating_add(1);
        let times = (phase.begin_ns, Some(phase.end_ns));
        let values = Attributes::default().and("proctrace.phase", Some(phase.name));
        self.put(ids, phase.name, times, None, values)
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

fn status(outcome: Option<Outcome>) -> Status {
    match outcome {
        None | Some(Outcome::Code(0)) => Status::default(),
        Some(outcome) => Status { code: Some(ERROR), message: Some(outcome.name()) },
    }
}

fn signal(outcome: Option<Outcome>) -> Option<Cow<'static, str>> {
    Some(outcome.filter(|outcome| outcome.signal().is_some())?.name())
}

impl<W: Write> Viewer for Otlp<W> {
    fn take(&mut self, item: &TimelineItem<'_>) -> io::Result<()> {
        match item {
            TimelineItem::Process(process) => self.process(process),
            TimelineItem::Run(run) => self.run(run),
            TimelineItem::Phase(phase) => self.phase(phase),
            _ => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> io::Result<Written> {
        if self.written == 0 {
            self.out.write_all(&self.head)?;
        }
        if self.line.written > 0 || self.written == 0 {
            self.end_line()?;
        }
        self.out.flush()?;
        Ok(Written { items: self.written, names: ("span", "spans"), notes: Vec::new() })
    }
}
