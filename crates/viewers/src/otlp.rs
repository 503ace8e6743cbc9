//! OTLP spans as JSON (opentelemetry-proto, ExportTraceServiceRequest): one for each process, and
//! below it one for each of its program runs. A process is below the program run that forked it, a phase below
//! the first process. If the recorder was started within a span of a trace (`TRACEPARENT`), all are of that trace, the
//! first process is below that span, and a process that was given another span is below it.
//!
//! A line is a whole request, as collectors read files; large recordings are several lines.

use std::borrow::Cow;
use std::collections::HashMap;
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
    /// Identifiers of the traces to which spans belong, that of the recording first.
    trace_ids: Vec<String>,
    /// Indices of traces.
    numbers: HashMap<String, u32>,
    /// Index of the trace of each process, by number.
    traces: Vec<u32>,
    /// The span that the recording is below.
    around: Option<String>,
    /// What makes identifiers of spans differ from those of other recordings, where they are in one trace.
    seed: u64,
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

/// Traces with an identifier of their own that are kept; processes of others stay in that of the recording.
const TRACES_MAX: usize = 1 << 16;

/// What a span is below.
enum Above {
    Nothing,
    Own(Span),
    /// A span of somebody else.
    Other(String),
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
    fn id(self, seed: u64) -> String {
        let id: u64 = match self {
            Self::Process(process) => 1 << 32 | u64::from(process),
            Self::Run(run) => 2 << 32 | u64::from(run),
            Self::Phase(phase) => 3 << 32 | u64::from(phase),
        };
        // Only one of them is equal to the seed.
        let id = if id == seed { id } else { id ^ seed };
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
            seed: timeline.span.as_ref().map_or(0, |_| trace_id(timeline) as u64),
            trace_ids: vec![match &timeline.span {
                Some((trace, _)) => trace.clone(),
                None => format!("{:032x}", trace_id(timeline)),
            }],
            numbers: timeline.span.iter().map(|(trace, _)| (trace.clone(), 0)).collect(),
            around: timeline.span.as_ref().map(|(_, span)| span.clone()),
            traces: Vec::new(),
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
        (span, above, process): (Span, Above, Option<u32>),
        name: &str,
        (begin_ns, end_ns): (u64, Option<u64>),
        outcome: Option<Outcome>,
        of: Attributes<'_>,
    ) -> io::Result<()> {
        let unix = |ns: u64| self.begin_unix_ns.saturating_add(ns).to_string();
        let of = of.and("proctrace.alive_at_end", end_ns.is_none().then_some(true));
        let span = SpanJson {
            trace_id: &self.trace_ids[process.map_or(0, |process| self.trace_of(process))],
            span_id: span.id(self.seed),
            parent_span_id: match above {
                Above::Nothing => None,
                Above::Own(span) => Some(span.id(self.seed)),
                Above::Other(span) => Some(span),
            },
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

    /// Index of the trace of a process.
    fn trace_of(&self, process: u32) -> usize {
        self.traces.get(process as usize).map_or(0, |trace| *trace as usize)
    }

    fn number_of(&mut self, trace: &str) -> u32 {
        if let Some(number) = self.numbers.get(trace) {
            return *number;
        }
        if self.trace_ids.len() >= TRACES_MAX {
            return 0;
        }
        let number = u32::try_from(self.trace_ids.len()).unwrap_or(0);
        self.trace_ids.push(trace.to_owned());
        self.numbers.insert(trace.to_owned(), number);
        number
    }

    fn process(&mut self, of: &TimelineProcess<'_>) -> io::Result<()> {
        self.pids.push(of.pid);
        self.first.get_or_insert(of.process);
        let forker = of.forker.map(|forker| match forker.run {
            Some(run) => Span::Run(run),
            None => Span::Process(forker.process),
        });
        let inherited = of.forker.map_or(0, |forker| self.trace_of(forker.process) as u32);
        let (trace, above) = match (&of.span, forker) {
            (Some((trace, span)), _) => (self.number_of(trace), Above::Other(span.clone())),
            (None, Some(forker)) => (inherited, Above::Own(forker)),
            (None, None) => (0, self.around.clone().map_or(Above::Nothing, Above::Other)),
        };
        self.traces.push(trace);
        let ids = (Span::Process(of.process), above, Some(of.process));
        let times = (of.begin_ns, of.end_ns);
        let mut values = Attributes::default()
            .and("process.pid", Some(of.pid))
            .and("process.parent_pid", of.parent_pid)
            .and("process.executable.name", of.program)
            .and("process.exit.code", of.outcome.and_then(Outcome::code))
            .and("proctrace.exit.signal", signal(of.outcome))
            .and("proctrace.process_id", Some(of.id))
            .and("proctrace.category", of.category)
            .and("proctrace.step", of.step)
            .and("proctrace.threads", of.threads);
        for (figure, value) in of.used.in_timelines() {
            values = values.and(format!("proctrace.{}", figure.name()), value);
        }
        self.put(ids, text::program(of.program), times, of.outcome, values)
    }

    fn run(&mut self, run: &TimelineRun<'_>) -> io::Result<()> {
        let ids = (Span::Run(run.run), Above::Own(Span::Process(run.process)), Some(run.process));
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
        let above = self.first.map_or(Above::Nothing, |first| Above::Own(Span::Process(first)));
        let ids = (Span::Phase(self.phases), above, self.first);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use proctrace_findings::TimelineForker;

    fn process(
        number: u32,
        forker: Option<u32>,
        span: Option<(&str, &str)>,
    ) -> TimelineItem<'static> {
        let forker = forker.map(|process| TimelineForker {
            process,
            task: process,
            is_first: true,
            run: None,
        });
        TimelineItem::Process(TimelineProcess {
            process: number,
            id: number,
            pid: 1,
            parent_pid: None,
            forker,
            step: None,
            span: span.map(|(trace, span)| (trace.to_owned(), span.to_owned())),
            program: None,
            category: None,
            begin_ns: 0,
            end_ns: None,
            outcome: None,
            dumped_core: false,
            threads: None,
            used: Box::default(),
        })
    }

    /// Trace, span and the one above of each of four processes in a row, of which the second and third were given spans.
    fn spans(around: Option<(&str, &str)>) -> Vec<(String, String, Option<String>)> {
        let mut out = Vec::new();
        let around = around.map(|(trace, span)| (trace.to_owned(), span.to_owned()));
        let timeline = Timeline { span: around, ..Timeline::default() };
        let mut viewer = Format::Otlp.begin(&timeline, &mut out).unwrap();
        for item in [
            process(0, None, None),
            process(1, Some(0), Some(("aa", "05"))),
            process(2, Some(1), Some(("bb", "06"))),
            process(3, Some(2), None),
        ] {
            viewer.take(&item).unwrap();
        }
        viewer.finish().unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        let spans = json["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
        let ids = ["traceId", "spanId", "parentSpanId"];
        let of = |span: &serde_json::Value| ids.map(|id| text(&span[id]));
        spans
            .iter()
            .map(of)
            .map(|[trace, span, above]| (trace.unwrap(), span.unwrap(), above))
            .collect()
    }

    #[test]
    fn processes_are_below_the_spans_that_they_were_given() {
        let all = spans(Some(("aa", "01")));
        let traces: Vec<&str> = all.iter().map(|(trace, ..)| &**trace).collect();
        assert_eq!(traces, ["aa", "aa", "bb", "bb"]);
        let above: Vec<Option<&str>> = all.iter().map(|(.., above)| above.as_deref()).collect();
        assert_eq!(above, [Some("01"), Some("05"), Some("06"), Some(&*all[2].1)]);
        // Two recordings in one trace have other identifiers.
        assert!(spans(None).iter().zip(&all).all(|((_, a, _), (_, b, _))| a != b));
    }

    #[test]
    fn without_a_trace_the_recording_is_one() {
        let all = spans(None);
        assert_eq!((all[0].0.len(), &all[0].2), (32, &None));
        assert_eq!(&all[0].1, "0000000100000000");
    }
}
