//! `proctrace fleet`: the same SQL has the same answer on all engines.
//!
//! DuckDB and PySpark are installed once from PyPI, below cargo's target directory. This needs python3
//! with its venv module, access to PyPI, and for Spark Java 17.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{Recorder, proctrace};
use proctrace_fixtures::python;
use proctrace_fleet::{ENGINES_SCRIPT, FLEET_QUERIES, Layout, handed_back, handed_over};
use proctrace_report::rows_ndjson;
use tempfile::TempDir;

/// The names change with the contents.
const DUCKDB: (&str, &[&str]) = ("fleet-duckdb-1", &["duckdb==2.0.0"]);
const SPARK: (&str, &[&str]) = ("fleet-spark-1", &["pyspark==4.1.1"]);

/// A fleet of the recordings that are kept as fixtures, at two sites with two releases, and of one
/// that is just made.
fn lake() -> TempDir {
    let lake = tempfile::tempdir().unwrap();
    let fixtures =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../fixtures/traces");
    for (at, name) in ["tour-3", "tour-4", "tour-5", "tour-6", "alice-o2-before", "alice-o2-after"]
        .iter()
        .enumerate()
    {
        for release in ["v1", "v2"] {
            let output = proctrace()
                .arg("summarize")
                .arg(fixtures.join(format!("{name}.ptrace")))
                .args(["--label", &format!("site=T{}", at % 2)])
                .args(["--label", &format!("release={release}")])
                // Another job.
                .args(["--label", &format!("batch_id={release}"), "--batch-cpu", "1.25", "-o"])
                .arg(lake.path())
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
    let recorder = Recorder::new().option(["--summary"]).option([lake.path()]);
    recorder.run(["sh", "-c", "for i in 1 2 3; do /bin/true; done; exec false"]);
    lake
}

fn fleet(lake: &Path, arguments: &[&str]) -> Output {
    proctrace().arg("fleet").args(&arguments[..1]).arg(lake).args(&arguments[1..]).output().unwrap()
}

fn answer(lake: &Path, arguments: &[&str]) -> String {
    let output = fleet(lake, &[arguments, &["--format", "ndjson"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn environment((name, packages): (&str, &[&str])) -> PathBuf {
    let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
    python::environment(base, name, packages).join("bin/python")
}

/// All questions, and what else is asked of both engines.
fn questions() -> impl Iterator<Item = (&'static str, &'static str)> {
    let more = [
        "SELECT * FROM jobs ORDER BY job",
        "SELECT * FROM advice ORDER BY job, kind, what, wall_us, cpu_us",
    ];
    FLEET_QUERIES.iter().map(|query| (query.name, query.sql)).chain(more.map(|sql| (sql, sql)))
}

fn asserts_same(query: &str, ours: &str, theirs: &str) {
    // None of these jobs is unusual.
    assert!(ours.lines().count() > 0 || query == "outliers", "{query} has no answer");
    assert_eq!(ours, theirs, "{query}");
}

/// A driver and two workers of their own processes, each with one core and 1 GiB.
const TWO_WORKERS: &str = "local-cluster[2,1,1024]";

/// Answers of the engines' script to several questions in one session of Spark, which takes longer to start than they
/// take.
fn of_one_session(lake: &Path, python: &Path, asked: &[&str]) -> Vec<String> {
    let handed =
        asked.iter().map(|sql| handed_over(lake, &Layout::default(), sql, "spark").unwrap() + "\n");
    let input = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(input.path(), handed.collect::<String>()).unwrap();
    let output = Command::new(python)
        .args(["-c", ENGINES_SCRIPT])
        .stdin(input.reopen().unwrap())
        .env("PYSPARK_SUBMIT_ARGS", format!("--master {TWO_WORKERS} pyspark-shell"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ndjson = |line: &str| {
        let mut out = Vec::new();
        rows_ndjson(&handed_back(line).unwrap(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    String::from_utf8(output.stdout).unwrap().lines().map(ndjson).collect()
}

#[test]
fn a_recorded_job_is_found_by_its_commands() {
    let lake = lake();
    let sql = "SELECT j.site, j.exit_code, p.processes FROM jobs j JOIN programs p ON j.job = p.job \
               WHERE p.program = 'true' AND j.site IS NULL";
    assert_eq!(answer(lake.path(), &[sql]).trim(), r#"{"site":null,"exit_code":1,"processes":3}"#);
    let text = fleet(lake.path(), &["efficiency"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("efficiency_percent") && text.contains("T1"), "{text}");
}

#[test]
fn the_overview_has_all_answers_and_runs_nothing() {
    let lake = lake();
    let label = ["--summary", lake.path().to_str().unwrap(), "--label", "site=<script>x</script>"];
    Recorder::new().option(label).run(["true"]).sound(0);
    let output = fleet(lake.path(), &["overview"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = String::from_utf8(output.stdout).unwrap();
    for query in FLEET_QUERIES {
        assert!(page.contains(&format!("<h2 id=\"{}\">", query.name)), "{}", query.name);
    }
    assert!(page.contains("default-src 'none'"));
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script"));
}

#[test]
fn compaction_changes_no_answer() {
    let lake = lake();
    let ask = || FLEET_QUERIES.iter().map(|query| answer(lake.path(), &[query.name]));
    let before: Vec<String> = ask().collect();
    for expected in [" put together in ", "0 files put together"] {
        let output = proctrace().arg("compact").arg(lake.path()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.contains(expected), "{stderr}");
        assert_eq!(ask().collect::<Vec<_>>(), before);
    }
}

#[test]
fn what_cannot_be_asked_is_an_error() {
    let lake = tempfile::tempdir().unwrap();
    for (arguments, says) in [
        (&["wastd"][..], "there is no question"),
        (&["SELECT x FROM nothing"], "nothing"),
        (&["SELECT 1; DROP TABLE jobs"], "one query"),
    ] {
        let output = fleet(lake.path(), arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(says), "{stderr}");
    }
    let output =
        fleet(lake.path(), &["wasted", "--engine", "duckdb", "--python", "/nowhere/python"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot run /nowhere/python"));
    let list = proctrace().arg("fleet").output().unwrap();
    assert!(list.status.success());
    assert!(String::from_utf8_lossy(&list.stdout).contains("regressions"));
}

mod pypi {
    use super::*;

    #[test]
    #[ignore = "needs a Python package index"]
    fn duckdb_answers_the_same() {
        let lake = lake();
        let python = environment(DUCKDB);
        let python = python.to_str().unwrap();
        for (query, _) in questions() {
            let ours = answer(lake.path(), &[query]);
            let theirs = answer(lake.path(), &[query, "--engine", "duckdb", "--python", python]);
            asserts_same(query, &ours, &theirs);
        }
    }
}

mod spark {
    use super::*;

    #[test]
    #[ignore = "needs a Python package index and Java 17"]
    fn spark_answers_the_same() {
        let lake = lake();
        let python = environment(SPARK);
        let asked: Vec<&str> =
            questions().map(|(_, sql)| sql).chain(["SET spark.master"]).collect();
        let mut answers = of_one_session(lake.path(), &python, &asked).into_iter();
        for (query, _) in questions() {
            asserts_same(query, &answer(lake.path(), &[query]), &answers.next().unwrap());
        }
        let master = answers.next().unwrap();
        assert_eq!(master.trim(), format!(r#"{{"key":"spark.master","value":"{TWO_WORKERS}"}}"#));
        // Once as a user asks, who names no master.
        let python = python.to_str().unwrap();
        let theirs = answer(lake.path(), &["wasted", "--engine", "spark", "--python", python]);
        asserts_same("wasted", &answer(lake.path(), &["wasted"]), &theirs);
    }
}
