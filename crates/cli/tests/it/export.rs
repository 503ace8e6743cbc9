//! `proctrace export`: the tables as read by third-party readers (pyarrow, pandas, DuckDB).
//!
//! These are installed once from PyPI into a Python environment for this test, below cargo's target
//! directory. This needs python3 with its venv module, and access to PyPI.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Recorder, proctrace, report};
use proctrace_analysis::TABLES;
use proctrace_fixtures::python;
use serde_json::Value;

/// The name changes with the contents.
const ENVIRONMENT: &str = "columnar-1";
const PACKAGES: &[&str] = &["pyarrow==26.0.1", "pandas==3.1.1", "duckdb==2.0.0"];

/// The files, and the columns that are summed.
const FILES: &str = r#"
import glob, json, os, sys

directory, kind = sys.argv[1:]
PATHS = {os.path.basename(p).rsplit(".", 1)[0]: p for p in glob.glob(f"{directory}/*.{kind}")}
SUMS = [("processes", "cpu_ns"), ("processes", "user_ns"), ("processes", "system_ns"),
        ("processes", "threads"), ("processes", "failed_lookups"), ("threads", "cpu_ns"),
        ("threads", "voluntary_switches"), ("bins", "failed_lookups"), ("lookups", "in_vain"),
        ("execs", "recorded")]
found = {}
"#;

/// Reads every table with each reader and prints rows, sums and the schema's descriptions.
const READ: &str = r#"
import duckdb, pandas, pyarrow.feather, pyarrow.parquet

def arrow(name):
    if kind == "parquet":
        return pyarrow.parquet.read_table(PATHS[name])
    return pyarrow.feather.read_table(PATHS[name])

tables = {name: arrow(name) for name in PATHS}
for table in tables.values():
    table.validate(full=True)
found["pyarrow"] = {
    "rows": {name: table.num_rows for name, table in tables.items()},
    "sums": [pyarrow.compute.sum(tables[t][c]).as_py() for t, c in SUMS],
}
found["says"] = {
    name: {field.name: (field.metadata or {}).get(b"description", b"").decode() for field in table.schema}
    for name, table in tables.items()
}
found["unit"] = tables["processes"].schema.field("cpu_ns").metadata[b"unit"].decode()
found["argv"] = tables["execs"]["argv"].to_pylist()
found["compression"] = None

if kind == "parquet":
    frames = {name: pandas.read_parquet(path) for name, path in PATHS.items()}
    about = pyarrow.parquet.ParquetFile(PATHS["lookups"]).metadata.row_group(0).column(0)
    found["compression"] = about.compression
    path = pyarrow.parquet.ParquetFile(PATHS["lookups"]).metadata.row_group(0)
    found["encodings"] = [list(path.column(i).encodings) for i in range(path.num_columns)
                          if path.column(i).path_in_schema == "directory"][0]
else:
    frames = {name: pandas.read_feather(path) for name, path in PATHS.items()}
found["pandas"] = {
    "rows": {name: len(frame) for name, frame in frames.items()},
    "sums": [int(frames[t][c].sum()) for t, c in SUMS],
}

duck = duckdb.connect()
if kind != "parquet":
    for name, table in tables.items():
        duck.register("t_" + name, table)
source = (lambda name: f"'{PATHS[name]}'") if kind == "parquet" else (lambda name: "t_" + name)
found["duckdb"] = {
    "rows": {name: duck.sql(f"SELECT count(*) FROM {source(name)}").fetchall()[0][0] for name in PATHS},
    "sums": [int(duck.sql(f"SELECT sum({c}::BIGINT) FROM {source(t)}").fetchall()[0][0]) for t, c in SUMS],
}
json.dump(found, sys.stdout)
"#;

/// The same for lines of JSON, which have no schema.
const READ_LINES: &str = r#"
import duckdb

def lines(name):
    with open(PATHS[name], encoding="utf-8") as file:
        return [json.loads(line) for line in file]

def duck(what, name):
    # Without rows there are no columns.
    if os.path.getsize(PATHS[name]) == 0:
        return 0
    source = f"read_json('{PATHS[name]}', format = 'newline_delimited', sample_size = -1)"
    return int(duckdb.sql(f"SELECT {what} FROM {source}").fetchall()[0][0])

tables = {name: lines(name) for name in PATHS}
found["python"] = {
    "rows": {name: len(rows) for name, rows in tables.items()},
    "sums": [sum(row[c] or 0 for row in tables[t]) for t, c in SUMS],
}
found["duckdb"] = {
    "rows": {name: duck("count(*)", name) for name in PATHS},
    "sums": [duck(f"sum({c}::BIGINT)", t) for t, c in SUMS],
}
found["argv"] = [row["argv"] for row in tables["execs"]]
found["columns"] = {name: list(rows[0]) for name, rows in tables.items() if rows}
json.dump(found, sys.stdout)
"#;

fn environment() -> PathBuf {
    python::environment(Path::new(env!("CARGO_TARGET_TMPDIR")), ENVIRONMENT, PACKAGES)
}

fn export(directory: &Path, format: &str, traces: &[PathBuf]) {
    let output = proctrace()
        .args(["export", "--format", format])
        .arg(directory)
        .args(traces)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for table in TABLES {
        let path = directory.join(format!("{}.{format}", table.name));
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "arguments and environments hold secrets");
    }
    let files = std::fs::read_dir(directory).unwrap().count();
    assert_eq!(files, TABLES.len(), "nothing unfinished is left");
}

/// sort(1), comm(1) and `read` take a CR for a part of the last cell.
#[test]
fn lines_of_csv_end_with_lf_unless_rfc_4180_is_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let trace = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../fixtures/traces/tour-2.ptrace");
    let lake = place.path().join("lake");
    let summarized =
        proctrace().arg("summarize").arg(&trace).arg("-o").arg(&lake).output().unwrap();
    let mut commands = vec![
        vec!["classify", "--format", "csv"],
        vec!["report", "--section", "ends", "--format", "csv"],
        vec!["diff", "tour-2.ptrace", "--format", "csv"],
        vec!["series", "--events", "10", "--format", "csv"],
        vec!["query", "SELECT program FROM processes", "--format", "csv"],
    ];
    commands.push(vec!["fleet", "SELECT count(*) AS jobs FROM jobs", "lake", "--format", "csv"]);
    std::fs::copy(&trace, place.path().join("tour-2.ptrace")).unwrap();
    assert!(summarized.status.success(), "{}", String::from_utf8_lossy(&summarized.stderr));
    let printed = |arguments: &[&str], dialect: &[&str]| {
        let mut command = proctrace();
        command.args(arguments).args(dialect).current_dir(place.path());
        if arguments[0] != "fleet" {
            command.arg("tour-2.ptrace");
        }
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    for arguments in &commands {
        let unix = printed(arguments, &[]);
        assert!(unix.lines().count() > 1 && unix.ends_with('\n'), "{arguments:?}: {unix}");
        assert!(!unix.contains('\r'), "{arguments:?}: {unix:?}");
        let rfc = printed(arguments, &["--csv-dialect", "rfc4180"]);
        assert_eq!(rfc, unix.replace('\n', "\r\n"), "{arguments:?}");
    }
    // In files, too.
    let written = |name: &str, arguments: &[&str]| {
        let mut command = proctrace();
        command.args(arguments).args(["tour-2.ptrace"]).current_dir(place.path());
        assert!(command.output().unwrap().status.success(), "{arguments:?}");
        std::fs::read_to_string(place.path().join(name)).unwrap()
    };
    let rfc = ["--csv-dialect", "rfc4180"];
    let unix = written("a/processes.csv", &["export", "--format", "csv", "a"]);
    let with_rfc = [&["export", "--format", "csv", "b"][..], &rfc].concat();
    assert_eq!(written("b/processes.csv", &with_rfc), unix.replace('\n', "\r\n"));
    let table = "tables/ends.csv";
    let unix = written(&format!("c/{table}"), &["report", "--out", "c"]);
    assert!(unix.contains('\n') && !unix.contains('\r'), "{unix:?}");
}

#[test]
fn csv_and_ndjson_have_the_rows_of_several_recordings() {
    let traces: Vec<PathBuf> = ["tour-1.ptrace", "tour-2.ptrace"]
        .map(|name| {
            Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
                .join("../../fixtures/traces")
                .join(name)
        })
        .into();
    let directory = tempfile::tempdir().unwrap();
    export(directory.path(), "csv", &traces);
    let processes = std::fs::read_to_string(directory.path().join("processes.csv")).unwrap();
    let expected: u64 =
        traces.iter().map(|trace| report(trace)["summary"]["processes"].as_u64().unwrap()).sum();
    let (heading, rows) = processes.split_once('\n').unwrap();
    assert!(heading.starts_with("recording,process_id,pid,parent_id,"), "{heading}");
    assert_eq!(rows.lines().count() as u64, expected);
    assert!(rows.contains("tour-1,") && rows.contains("tour-2,"));

    let directory = tempfile::tempdir().unwrap();
    export(directory.path(), "ndjson", &traces);
    let processes = std::fs::read_to_string(directory.path().join("processes.ndjson")).unwrap();
    let rows: Vec<Value> =
        processes.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len() as u64, expected);
    for name in ["tour-1", "tour-2"] {
        assert!(rows.iter().any(|row| row["recording"] == name), "{name}");
    }
}

#[test]
fn an_export_that_fails_leaves_nothing_unfinished() {
    let trace = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../fixtures/traces/tour-1.ptrace");
    let directory = tempfile::tempdir().unwrap();
    // A non-empty directory occupies the name of one table.
    std::fs::create_dir_all(directory.path().join("threads.csv/x")).unwrap();
    let output = proctrace()
        .args(["export", "--format", "csv"])
        .arg(directory.path())
        .arg(&trace)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("threads.csv"));
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(!name.to_string_lossy().ends_with(".part"), "{name:?}");
    }
}

mod pypi {
    use super::*;

    #[test]
    #[ignore = "needs a Python package index"]
    fn readers_of_others_find_what_the_report_says() {
        let recorded = Recorder::new().option(["--memory=100ms"]).fixture("mixed", &["1500"]);
        let trace = recorded.trace();
        let report = report(&trace);
        let summary = &report["summary"];
        let of = |name: &str| summary[name].as_u64().unwrap();
        let tasks = of("processes") + of("threads");
        let sums = [
            of("cpu_ns"),
            of("user_ns"),
            of("system_ns"),
            of("threads"),
            of("lookups_in_vain"),
            of("cpu_ns"),
            of("switches_voluntary"),
            of("lookups_in_vain"),
            of("lookups_in_vain"),
            of("execs"),
        ];
        let columnar = (READ, &["pyarrow", "pandas", "duckdb"][..]);
        for (format, (read, readers)) in [
            ("parquet", columnar),
            ("arrow", columnar),
            ("ndjson", (READ_LINES, &["python", "duckdb"][..])),
        ] {
            let directory = tempfile::tempdir().unwrap();
            export(directory.path(), format, std::slice::from_ref(&trace));
            let printed = python::succeed(
                Command::new(environment().join("bin/python"))
                    .args(["-c", &format!("{FILES}{read}")])
                    .arg(directory.path())
                    .arg(format),
            );
            let found: Value = serde_json::from_str(&printed).unwrap();
            for reader in readers {
                let found = &found[*reader];
                let rows = &found["rows"];
                assert_eq!(rows["processes"], of("processes"), "{format} by {reader}");
                assert_eq!(rows["threads"], tasks, "{format} by {reader}");
                assert_eq!(rows["lookups"], of("lookups_failed"), "{format} by {reader}");
                assert_eq!(rows["failed_execs"], of("execs_failed"), "{format} by {reader}");
                assert_eq!(rows["losses"], 0, "{format} by {reader}");
                assert_eq!(rows["recording"], 1, "{format} by {reader}");
                assert_eq!(rows.as_object().unwrap().len(), TABLES.len(), "{format} by {reader}");
                assert_eq!(found["sums"], Value::from(sums.to_vec()), "{format} by {reader}");
            }
            assert!(found["argv"][0].as_array().is_some_and(|argv| !argv.is_empty()));
            if format == "ndjson" {
                // Rows have the documented columns, in that order.
                for (table, columns) in found["columns"].as_object().unwrap() {
                    let table = TABLES.iter().find(|known| known.name == table).unwrap();
                    let names = table.columns.iter().map(|column| column.name);
                    let expected: Vec<&str> = ["recording"].into_iter().chain(names).collect();
                    assert_eq!(*columns, Value::from(expected), "{}", table.name);
                }
                continue;
            }
            // The description of each column is in the file itself.
            for table in TABLES {
                for column in table.columns {
                    assert_eq!(found["says"][table.name][column.name], column.says);
                }
            }
            assert_eq!(found["unit"], "ns");
            if format == "parquet" {
                assert_eq!(found["compression"], "ZSTD");
                let encodings = found["encodings"].as_array().unwrap();
                assert!(encodings.contains(&"RLE_DICTIONARY".into()), "{encodings:?}");
            }
        }
    }
}
