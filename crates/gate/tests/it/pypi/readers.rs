//! Our output as read by other programs: OpenMetrics is parsed by prometheus-client, JUnit XML is
//! validated against the schema of Jenkins' xUnit plug-in, which pytest's source contains.
//!
//! Both are installed once from PyPI into a Python environment for these tests, below cargo's
//! target directory. This needs python3 with its venv module, and access to PyPI.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use crate::common::{job, metric, run};
use proctrace_findings::{FAMILIES, Metric};
use proctrace_fixtures::python;
use proctrace_gate::{Budget, Options, gate, openmetrics, render};

/// The name changes with the contents.
const ENVIRONMENT: &str = "readers-1";
const PACKAGES: &[&str] = &["prometheus-client==0.26.0", "xmlschema==4.3.2"];
/// Package with the schema: any release since the schema got this name will do.
const SCHEMA_SOURCE: &str = "pytest==8.4.2";

const EXTRACT_SCHEMA: &str = r#"
import glob, sys, tarfile
(path,) = glob.glob(sys.argv[1] + "/*.tar.gz")
with tarfile.open(path) as source:
    (name,) = [name for name in source.getnames() if name.endswith("/junit-10.xsd")]
    with open(sys.argv[1] + "/junit-10.xsd", "wb") as out:
        out.write(source.extractfile(name).read())
"#;

fn environment() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
        python::environment_with(base, ENVIRONMENT, PACKAGES, |new| {
            let folder = new.to_str().expect("the target directory has a name in UTF-8");
            let source = ["download", "--no-deps", "--no-binary", "pytest", "--dest", folder];
            python::pip(new, &[&source[..], &[SCHEMA_SOURCE]].concat());
            let extract = ["-c", EXTRACT_SCHEMA, folder];
            python::succeed(Command::new(new.join("bin/python")).args(extract));
        })
    })
}

/// Runs a script that reads `input`.
fn run_python(script: &str, input: &str) -> Output {
    let mut child = Command::new(environment().join("bin/python"))
        .args(["-c", script])
        .arg(environment())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the environment has a python");
    let mut stdin = child.stdin.take().expect("it was asked for");
    // A script that fails early does not read all input; its own error is more informative than
    // ours.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("it is our child")
}

const READ_METRICS: &str = r#"
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as families
text = sys.stdin.buffer.read().decode()
json.dump([[f.name, f.type, f.unit, f.documentation, [[s.name, s.labels, s.value] for s in f.samples]]
           for f in families(text)], sys.stdout)
"#;

/// Name, type, unit, help, and samples: name, labels, value.
type ReadFamily = (String, String, String, String, Vec<(String, serde_json::Value, f64)>);

const HOSTILE: &[&str] =
    &["sed", "a b", "quo\"te", "back\\slash", "line\nfeed", "grüße", "}", "", "a\\n", "# EOF"];

#[test]
#[ignore = "needs a Python package index"]
fn openmetrics_is_read_as_it_was_meant() {
    let mut metrics: Vec<Metric> = Vec::new();
    for (at, family) in FAMILIES.iter().enumerate() {
        if family.labels.is_empty() {
            metrics.push(metric(family.name, &[], at as f64 * 1.25));
        }
        for (n, value) in HOSTILE.iter().enumerate().filter(|_| !family.labels.is_empty()) {
            let labels: Vec<(&str, &str)> = family.labels.iter().map(|l| (*l, *value)).collect();
            metrics.push(metric(family.name, &labels, (at * 100 + n) as f64));
        }
    }
    metrics.push(metric("execs", &[("command", "\u{1b}[31m")], 7.0));
    let recording = run("a.ptrace", metrics.clone()).metrics;
    let text = openmetrics(&recording);
    assert!(text.ends_with("\n# EOF\n") && !text.contains('\u{1b}'));
    let output = run_python(READ_METRICS, &text);
    assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));

    let read: Vec<ReadFamily> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(read.len(), FAMILIES.len() + 1);
    for (family, (name, kind, unit, help, samples)) in FAMILIES.iter().zip(&read) {
        assert_eq!(*name, format!("proctrace_{}", family.name));
        assert_eq!(
            (kind.as_str(), unit.as_str(), help.as_str()),
            ("gauge", family.unit, family.help)
        );
        let mut wanted: Vec<(String, f64)> = metrics
            .iter()
            .filter(|metric| metric.name == family.name)
            .map(|metric| {
                let visible = |value: &String| value.replace('\u{1b}', "\\u{1b}");
                let labels: serde_json::Map<_, _> =
                    metric.labels.iter().map(|(l, v)| (l.clone(), visible(v).into())).collect();
                (serde_json::Value::Object(labels).to_string(), metric.value)
            })
            .collect();
        let mut found: Vec<(String, f64)> =
            samples.iter().map(|(_, labels, value)| (labels.to_string(), *value)).collect();
        let order = |a: &(String, f64), b: &(String, f64)| a.0.cmp(&b.0);
        wanted.sort_by(order);
        found.sort_by(order);
        assert_eq!(found, wanted, "{name}");
    }
    // and the parser does reject invalid input
    for wrong in [text.replace("# EOF\n", ""), text.replace("_seconds seconds", "_seconds bytes")] {
        assert_ne!(wrong, text);
        assert!(!run_python(READ_METRICS, &wrong).status.success());
    }
}

const VALIDATE: &str = r#"
import sys, xmlschema
schema = xmlschema.XMLSchema(sys.argv[1] + "/junit-10.xsd")
schema.validate(sys.stdin.buffer.read().decode())
"#;

#[test]
#[ignore = "needs a Python package index"]
fn junit_is_valid_by_the_common_schema() {
    let budget = r#"[limits]
total_execs = "0%"
'execs{command="*"}' = "0%"
total_cpu_seconds = "5%"
total_threads = "|0"
'execs{command="none"}' = "|5"
peak_rss_bytes = { absolute = 1, severity = "warn", because = "<&]]>" }
"#;
    let mut budget = Budget::parse("gate.toml", budget).unwrap();
    budget.push_argument("total_processes=|1e9").unwrap();
    for name in HOSTILE.iter().chain(&["\u{1b}]52;c;x\u{7}", "\u{0}", "\u{fffe}", "]]>", "<!--"]) {
        let mut base = job(name, 100.0, 1.0, 3, 4.0);
        base.metrics.metrics.push(metric("execs", &[("command", name)], 1.0));
        let mut more = job(name, 100.0, 2.0, 3, 4.0);
        more.metrics.metrics.push(metric("execs", &[("command", name)], 9.0));
        more.metrics.doubts = vec![format!("{name} was lost")];
        let report = gate(&budget, &[base], &[more], Options { allow_doubts: true }).unwrap();
        let text = render::junit(&report).unwrap();
        let output = run_python(VALIDATE, &text);
        assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
        for element in ["<failure ", "<error ", "<system-out>"] {
            assert!(text.contains(element), "{text}");
        }
        if *name == "sed" {
            // and the schema does reject invalid input
            let wrong = text.replace("<testcase name", "<testcase nome");
            assert!(!run_python(VALIDATE, &wrong).status.success());
        }
    }
}
