//! `proctrace query`: SQL over the tables of recordings, both made for the test and committed
//! fixtures.

use std::path::{Path, PathBuf};

use crate::common::{Recorder, proctrace, report};
use serde_json::Value;

fn repository() -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../..")
}

fn trace(name: &str) -> PathBuf {
    repository().join("fixtures/traces").join(name)
}

/// The output of a query.
fn asked(arguments: &[&str], traces: &[PathBuf]) -> String {
    let output = proctrace()
        .arg("query")
        .args(arguments)
        .args(traces)
        .env("COLUMNS", "80")
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn rows(sql: &str, traces: &[PathBuf]) -> Vec<Value> {
    serde_json::from_str(&asked(&["--format", "json", sql], traces)).unwrap()
}

/// The error of an invalid query.
fn refused(sql: &str) -> String {
    let output = proctrace().args(["query", sql]).arg(trace("tour-1.ptrace")).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{sql}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

/// Compares a documentation page with the generated text; UPDATE_DOCS=1 writes it.
fn hold(page: &str, current: &str) {
    let path = repository().join("docs").join(page);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, current).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(found == current, "docs/{page} is not current: run this test with UPDATE_DOCS=1");
}

#[test]
fn tables_are_documented() {
    hold("tables.md", &proctrace_analysis::tables_markdown());
}

#[test]
fn documented_queries_answer_what_is_documented() {
    let page = std::fs::read_to_string(repository().join("docs/queries.md")).unwrap();
    let mut current = String::new();
    let mut asked_for = 0;
    for (at, section) in page.split("\n## ").enumerate() {
        if at > 0 {
            current.push_str("\n## ");
        }
        let Some((before, rest)) = section.split_once("```sql\n") else {
            current.push_str(section);
            continue;
        };
        let (sql, rest) = rest.split_once("\n```\n").unwrap();
        let (_, after) = rest.split_once("\n```text\n").unwrap();
        let (_, after) = after.split_once("```\n").unwrap();
        let traces: Vec<PathBuf> = before
            .split('`')
            .filter(|word| word.ends_with(".ptrace") && !word.contains(' '))
            .map(trace)
            .collect();
        assert!(!traces.is_empty(), "{before}");
        let answer = asked(&[sql], &traces);
        assert!(answer.lines().count() >= 2, "{sql}\n{answer}");
        assert!(answer.lines().all(|line| line.chars().count() <= 80), "{answer}");
        current.push_str(&format!("{before}```sql\n{sql}\n```\n\n```text\n{answer}```\n{after}"));
        asked_for += 1;
    }
    assert!(asked_for >= 10);
    hold("queries.md", &current);
}

#[test]
fn sums_are_those_of_the_report() {
    let recorded = Recorder::new().fixture("mixed", &["50"]);
    let trace = [recorded.trace()];
    let report = report(&trace[0]);
    let summary = &report["summary"];
    let of = |sql: &str| rows(sql, &trace).remove(0);
    let processes = of("SELECT count(*) AS n, sum(cpu_ns) AS cpu, sum(user_ns) AS u, \
                        sum(system_ns) AS s, sum(threads) AS t, sum(voluntary_switches) AS v, \
                        sum(failed_lookups) AS misses FROM processes");
    assert_eq!(processes["n"], summary["processes"]);
    assert_eq!(processes["t"], summary["threads"]);
    assert_eq!(processes["cpu"], summary["cpu_ns"]);
    assert_eq!(processes["u"], summary["user_ns"]);
    assert_eq!(processes["s"], summary["system_ns"]);
    assert_eq!(processes["v"], summary["switches_voluntary"]);
    assert_eq!(processes["misses"], summary["lookups_in_vain"]);
    let execs = of("SELECT count(*) AS n FROM execs WHERE recorded");
    assert_eq!(execs["n"], summary["execs"]);
    let lookups =
        of("SELECT count(*) AS n, sum(CASE WHEN in_vain THEN 1 ELSE 0 END) AS v FROM lookups");
    assert_eq!(
        (&lookups["n"], &lookups["v"]),
        (&summary["lookups_failed"], &summary["lookups_in_vain"])
    );
    let failed = of("SELECT count(*) AS n FROM failed_execs");
    assert_eq!(failed["n"], summary["execs_failed"]);
    let threads = of("SELECT count(*) AS n, sum(cpu_ns) AS cpu FROM threads");
    assert_eq!(threads["cpu"], summary["cpu_ns"]);
    assert_eq!(
        threads["n"].as_u64(),
        Some(summary["processes"].as_u64().unwrap() + summary["threads"].as_u64().unwrap())
    );
    let bins = of("SELECT sum(forks) AS f, sum(failed_lookups) AS l FROM bins");
    assert_eq!(bins["l"], summary["lookups_in_vain"]);
    // The categories sum to the total.
    let parts = of("SELECT sum(processes_born) AS n FROM category_bins");
    assert_eq!(parts["n"], summary["processes"]);
}

#[test]
fn keys_join() {
    let trace = [trace("alice-o2-before.ptrace")];
    let of = |sql: &str| rows(sql, &trace).remove(0)["n"].as_u64().unwrap();
    // Every foreign key leads to exactly one row.
    let processes = of("SELECT count(*) AS n FROM processes");
    assert_eq!(processes, of("SELECT count(DISTINCT process_id) AS n FROM processes"));
    let parents = of("SELECT count(*) AS n FROM processes WHERE parent_id IS NOT NULL");
    let joined =
        "SELECT count(*) AS n FROM processes c JOIN processes p ON c.parent_id = p.process_id";
    assert_eq!(parents, of(joined));
    let execs = of("SELECT count(*) AS n FROM execs");
    assert!(execs > 0);
    assert_eq!(execs, of("SELECT count(DISTINCT exec_id) AS n FROM execs"));
    let joined =
        "SELECT count(*) AS n FROM execs e JOIN processes p ON e.process_id = p.process_id";
    assert_eq!(execs, of(joined));
    let lookups = of("SELECT count(*) AS n FROM lookups WHERE exec_id IS NOT NULL");
    assert!(lookups > 0);
    let joined = "SELECT count(*) AS n FROM lookups l JOIN execs e ON l.exec_id = e.exec_id";
    assert_eq!(lookups, of(joined));
}

#[test]
fn what_is_not_known_is_null() {
    let recorded = Recorder::new().option(["--misses", "none"]).fixture("mixed", &["5"]);
    let trace = [recorded.trace()];
    let row = rows(
        "SELECT count(*) AS n, count(failed_lookups) AS l, count(opens) AS o, count(cpu_ns) AS c \
         FROM processes",
        &trace,
    )
    .remove(0);
    assert_eq!((&row["l"], &row["c"]), (&Value::from(0), &row["n"]));
    let row = rows("SELECT sum(failed_lookups) AS l FROM bins WHERE failed_lookups > 0", &trace);
    assert!(row[0]["l"].is_null() || row[0]["l"] == 0, "{row:?}");
}

#[test]
fn argv_is_a_list() {
    let recorded = Recorder::new().run(["sh", "-c", "printf '%s\\n' 'a b' c"]);
    let argv = rows("SELECT argv FROM execs ORDER BY exec_id", &[recorded.trace()]);
    let expected = ["sh", "-c", "printf '%s\\n' 'a b' c"];
    assert_eq!(argv[0]["argv"], Value::from(expected.to_vec()));
}

#[test]
fn several_recordings_are_told_apart() {
    let traces = ["alice-o2-before.ptrace", "alice-o2-after.ptrace"].map(trace);
    let counts = rows(
        "SELECT recording, count(*) AS n FROM processes GROUP BY recording ORDER BY recording",
        &traces,
    );
    for (row, name) in counts.iter().zip(["alice-o2-after", "alice-o2-before"]) {
        assert_eq!(row["recording"], name);
        let alone =
            rows("SELECT count(*) AS n FROM processes", &[trace(&format!("{name}.ptrace"))]);
        assert_eq!(row["n"], alone[0]["n"]);
    }
    // A name shared by two files is ambiguous, and one file is one recording however often it is
    // named.
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("tour-1.ptrace");
    std::fs::copy(trace("tour-1.ptrace"), &copy).unwrap();
    let all = [trace("tour-1.ptrace"), copy.clone(), copy];
    let sql = "SELECT recording, count(*) AS n FROM processes GROUP BY recording";
    let found = rows(sql, &all);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0]["n"], found[1]["n"]);
    assert!(found[0]["recording"].as_str().unwrap().ends_with("/tour-1.ptrace"), "{found:?}");
}

#[test]
fn figures_can_be_subtracted() {
    let trace = [trace("tour-1.ptrace")];
    let sql = "SELECT count(*) - 1000000 AS n, count(DISTINCT program) - 1000000 AS programs, \
               min(process_id) - 1000000 AS id, sum(threads) - 1000000 AS threads, \
               count(*) * 1000000000 AS many FROM processes";
    let row = rows(sql, &trace).remove(0);
    for name in ["n", "programs", "id", "threads"] {
        assert!(row[name].as_i64().unwrap() < 0, "{row}");
    }
    assert_eq!(
        row["many"].as_i64().unwrap(),
        (row["n"].as_i64().unwrap() + 1_000_000) * 1_000_000_000
    );
    assert_eq!(rows("SELECT 7 / 2 AS x, pid FROM processes LIMIT 1", &trace)[0]["x"], 3.5);
}

#[test]
fn columns_are_called_what_they_say() {
    let trace = [trace("tour-1.ptrace")];
    let sql = "SELECT program, count(*), min(cpu_ns), max(cpu_ns) FROM processes GROUP BY program \
               ORDER BY count(*) DESC, max(cpu_ns)";
    let all = rows(sql, &trace);
    let counts: Vec<i64> = all.iter().map(|row| row["count"].as_i64().unwrap()).collect();
    assert!(counts.len() > 1 && counts.is_sorted_by(|one, next| one >= next), "{counts:?}");
    let cpu = |row: &Value, name: &str| row[name].as_i64().unwrap();
    assert!(all.iter().all(|row| cpu(row, "min(cpu_ns)") <= cpu(row, "max(cpu_ns)")));
    let sql = "SELECT c.pid, p.pid FROM processes c JOIN processes p ON c.parent_id = p.process_id";
    assert!(rows(sql, &trace).iter().all(|row| row["pid"] != row["p.pid"]));
    let unselected = "SELECT program FROM processes GROUP BY program ORDER BY max(cpu_ns)";
    assert!(refused(unselected).contains("ORDER BY max(cpu_ns): select it"));
}

#[test]
fn what_the_engine_would_answer_wrongly_is_refused() {
    for (sql, why) in [
        (
            "SELECT 1 FROM processes c JOIN processes p ON p.process_id = c.parent_id AND p.exit_code = 7",
            "in ON",
        ),
        ("SELECT sum(cpu_ns) / sum(sum(cpu_ns)) OVER () FROM processes GROUP BY program", "WITH"),
        ("SELECT program FROM processes WHERE count(*) > 3 GROUP BY program", "HAVING"),
        ("SELECT program, count(*) FROM processes", "GROUP BY program"),
        ("DROP TABLE processes", "begins with SELECT or WITH, not with DROP"),
        ("SELECT 1 FROM processes; DROP TABLE processes", "one query at a time"),
    ] {
        let says = refused(sql);
        assert!(says.contains(why), "{sql}\n{says}");
    }
    // The suggested replacements.
    let trace = [trace("tour-1.ptrace")];
    let failed = "SELECT count(*) AS n FROM processes c JOIN (SELECT process_id FROM processes \
                  WHERE exit_code = 3) AS p ON p.process_id = c.parent_id";
    let where_ = "SELECT count(*) AS n FROM processes c JOIN processes p ON p.process_id = c.parent_id \
                  WHERE p.exit_code = 3";
    let (a, b) = (rows(failed, &trace), rows(where_, &trace));
    assert_eq!(a, b);
    assert!(a[0]["n"].as_i64().unwrap() > 0);
}

#[test]
fn no_recording_is_overwritten_and_answers_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("x.ptrace");
    std::fs::copy(trace("tour-1.ptrace"), &copy).unwrap();
    let ask = |out: &Path| {
        let mut command = proctrace();
        command.args(["query", "SELECT pid, program FROM processes", "-o"]).arg(out).arg(&copy);
        command.output().unwrap()
    };
    let refused = ask(&copy);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is a recording"));
    let before = std::fs::read(trace("tour-1.ptrace")).unwrap();
    assert_eq!(std::fs::read(&copy).unwrap(), before);
    let out = directory.path().join("a.json");
    assert!(ask(&out).status.success());
    let rows: Vec<Value> = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    assert!(!rows.is_empty());
    assert_eq!(std::fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_table_is_described_by_its_name() {
    for sql in ["processes", "DESCRIBE processes;", "show columns from Processes"] {
        let text = asked(&[sql], &[]);
        assert!(text.starts_with("processes: ") && text.contains("  cpu_ns "), "{text}");
        assert!(!text.contains("losses: "), "{text}");
    }
    assert_eq!(asked(&["SHOW TABLES"], &[]), asked(&[], &[]));
}

#[test]
fn errors_name_what_was_probably_meant() {
    let column = refused("SELECT progam FROM processes");
    assert!(column.contains("no column progam (did you mean program?)"), "{column}");
    let table = refused("SELECT 1 FROM proceses");
    assert!(table.contains("no table proceses (did you mean processes?)"), "{table}");
    let joined = refused("SELECT p.cpu_n FROM processes p JOIN execs e ON p.exec_id = e.exec_id");
    assert!(joined.contains("did you mean cpu_ns?"), "{joined}");
    assert!(refused("SELEC program FROM processes").contains("SELEC"));
    assert!(refused("hello").contains("there is no table hello"));
    let quotes = refused("SELECT pid FROM processes WHERE program = sed");
    assert!(quotes.contains("no column sed") && quotes.contains("single quotes: 'sed'"));
    assert!(refused("SELECT 1").contains("names no table"));
    assert!(refused(" ").contains("empty"));
    assert!(refused("SELECT sqrrt(pid) FROM processes").contains("sqrrt"));
    let file = proctrace().arg("query").arg(trace("tour-1.ptrace")).output().unwrap();
    assert_eq!(file.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&file.stderr).contains("where SQL is expected"));
}

#[test]
fn without_sql_it_lists_tables_and_columns() {
    // One screen, and all of it.
    let (list, columns) = (asked(&[], &[]), asked(&["show columns"], &[]));
    assert!(list.lines().count() <= 24, "{list}");
    for table in proctrace_analysis::TABLES {
        assert!(list.lines().any(|line| line.starts_with(table.name)), "{}", table.name);
        assert!(columns.contains(&format!("{}: ", table.name)), "{}", table.name);
        for column in table.columns {
            assert!(columns.contains(&format!("  {} ", column.name)), "{}", column.name);
        }
    }
    assert!(columns.lines().all(|line| line.chars().count() <= 80), "{columns}");
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
}

#[test]
fn every_table_can_be_read_whole() {
    for table in proctrace_analysis::TABLES {
        let sql = format!("SELECT * FROM {}", table.name);
        for name in ["tour-1.ptrace", "alice-o2-before.ptrace"] {
            let found = rows(&sql, &[trace(name)]);
            if let Some(row) = found.first() {
                let names: Vec<&str> =
                    row.as_object().unwrap().keys().map(String::as_str).collect();
                for column in table.columns {
                    assert!(names.contains(&column.name), "{}.{}", table.name, column.name);
                }
            }
        }
    }
}

#[test]
fn sql_comes_from_a_file_and_goes_into_one() {
    let directory = tempfile::tempdir().unwrap();
    let (sql, out) = (directory.path().join("q.sql"), directory.path().join("a.csv"));
    std::fs::write(&sql, "-- how many\nSELECT count(*) AS n FROM processes;\n").unwrap();
    let n = rows("SELECT count(*) AS n FROM processes", &[trace("tour-1.ptrace")]);
    for (dialect, end) in [(&[][..], "\n"), (&["--csv-dialect", "rfc4180"], "\r\n")] {
        let status = proctrace()
            .args(["query", "--format", "csv", "-f"])
            .arg(&sql)
            .args(dialect)
            .arg("-o")
            .arg(&out)
            .arg(trace("tour-1.ptrace"))
            .status()
            .unwrap();
        assert!(status.success());
        let csv = std::fs::read_to_string(&out).unwrap();
        assert_eq!(csv, format!("n{end}{}{end}", n[0]["n"]));
    }
}

#[test]
fn formats_have_the_same_rows() {
    let sql =
        "SELECT program, cpu_ns, role, life_ns / 1e9 AS life_s FROM processes ORDER BY process_id";
    let traces = [trace("alice-o2-before.ptrace")];
    let json = rows(sql, &traces);
    let lines = asked(&["--format", "ndjson", sql], &traces);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(json, lines);
    let csv = asked(&["--format", "csv", sql], &traces);
    assert_eq!(csv.lines().count(), json.len() + 1);
    let text = asked(&["--all", sql], &traces);
    assert_eq!(text.lines().count(), json.len() + 1);
    let cut = asked(&["--top", "3", sql], &traces);
    assert!(cut.contains(&format!("… {} more rows", json.len() - 3)), "{cut}");
}
