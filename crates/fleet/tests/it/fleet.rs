//! Questions about a fleet of synthetic jobs, with answers that are known.

use std::path::Path;

use proctrace_findings::{Rows, RowsColumn, RowsValues};
use proctrace_fleet::{
    FLEET_QUERIES, FleetError, FleetQuery, Layout, Summary, ask, encode, table_named,
};
use proctrace_outputs::Outputs;

/// A row of a table: values by column; all others are null.
fn rows(table: &str, rows: &[&[(&str, &str)]]) -> Rows {
    let schema = table_named(table).unwrap();
    let columns = schema.columns.iter().map(|column| {
        let of = |row: &&[(&str, &str)]| {
            row.iter().find(|(name, _)| *name == column.name).map(|(_, value)| (*value).to_owned())
        };
        let found: Vec<Option<String>> = rows.iter().map(of).collect();
        let values = match column.kind.sql() {
            "TEXT" => RowsValues::Text(found),
            "BOOLEAN" => RowsValues::Flag(
                found.iter().map(|it| it.as_ref().map(|it| it == "true")).collect(),
            ),
            _ => RowsValues::Signed(
                found.iter().map(|it| it.as_ref().map(|it| it.parse().unwrap())).collect(),
            ),
        };
        RowsColumn { name: column.name.to_owned(), values }
    });
    Rows { columns: columns.collect() }
}

fn put(root: &Path, job: &str, day: &str, tables: &[(&str, Rows)]) {
    let tables =
        tables.iter().map(|(name, rows)| (table_named(name).unwrap(), rows.clone())).collect();
    let summary = Summary { job: job.to_owned(), day: Some(day.to_owned()), tables };
    Layout::default().write(root, &summary, &Outputs::of_this_process()).unwrap();
}

/// The rows of an answer as lines of text.
fn answer(root: &Path, sql: &str) -> Vec<String> {
    let answer = ask(root, &Layout::default(), sql).unwrap();
    let rows = answer.rows(0, answer.height()).unwrap();
    let cell = |column: &RowsColumn, row: usize| match &column.values {
        RowsValues::Text(values) => values[row].clone().unwrap_or("-".into()),
        RowsValues::Signed(values) => values[row].map_or("-".into(), |it| it.to_string()),
        RowsValues::Real(values) => values[row].map_or("-".into(), |it| it.to_string()),
        RowsValues::Flag(values) => values[row].map_or("-".into(), |it| it.to_string()),
        other => panic!("{other:?}"),
    };
    let line = |row: usize| {
        rows.columns.iter().map(|column| cell(column, row)).collect::<Vec<_>>().join(" ")
    };
    (0..rows.height()).map(line).collect()
}

fn named(root: &Path, name: &str) -> Vec<String> {
    answer(root, FleetQuery::named(name).unwrap().sql)
}

#[test]
fn every_question_has_an_answer_of_an_empty_fleet() {
    let root = tempfile::tempdir().unwrap();
    for query in FLEET_QUERIES {
        assert_eq!(answer(root.path(), query.sql), [""; 0], "{}", query.name);
    }
}

#[test]
fn programs_and_spawners_are_summed_over_jobs() {
    let root = tempfile::tempdir().unwrap();
    for (job, day) in [("a", "2026-11-22"), ("b", "2026-11-23")] {
        let row = |program, short, failed| {
            [
                ("job", job),
                ("program", program),
                ("class", "command"),
                ("spawner", "sh"),
                ("processes", "10"),
                ("cpu_us", "900"),
                ("short_cpu_us", short),
                ("failed_cpu_us", failed),
                ("lives_1ms", "2"),
                ("lives_10ms", "3"),
            ]
        };
        let (sed, awk) = (row("sed", "100", "7"), row("awk", "40", "0"));
        let rest = [("job", job), ("processes", "1"), ("short_cpu_us", "9999")];
        put(root.path(), job, day, &[("programs", rows("programs", &[&sed, &awk, &rest]))]);
    }
    assert_eq!(
        named(root.path(), "wasted"),
        ["sed command 2 20 1800 200 14 214", "awk command 2 20 1800 80 0 80"]
    );
    assert_eq!(named(root.path(), "spawners"), ["sh awk 2 20 10 80", "sh sed 2 20 10 200"]);
}

#[test]
fn directories_accounting_and_efficiency_are_of_sites() {
    let root = tempfile::tempdir().unwrap();
    let miss = |site, misses| {
        [
            ("job", "j"),
            ("site", site),
            ("directory", "/lib"),
            ("errno", "ENOENT"),
            ("misses", misses),
        ]
    };
    let (cern, other) = (miss("CERN", "5"), [("job", "j"), ("misses", "99")]);
    let job = [
        ("job", "j"),
        ("day", "2026-11-23"),
        ("site", "CERN"),
        ("release", "v1"),
        ("cpu_us", "3000000"),
        ("waited_cpu_us", "1000000"),
        ("unwaited_cpu_us", "1900000"),
        ("wall_us", "4000000"),
        ("cores", "2"),
        ("exit_code", "1"),
    ];
    let tables = [("misses", rows("misses", &[&cern, &other])), ("jobs", rows("jobs", &[&job]))];
    put(root.path(), "j", "2026-11-23", &tables);
    assert_eq!(named(root.path(), "directories"), ["CERN /lib ENOENT 1 5"]);
    assert_eq!(
        named(root.path(), "accounting"),
        [
            "j 2026-11-23 CERN - - 3000000 1000000 wait 2000000 1900000 - processes that nobody waited for"
        ]
    );
    assert_eq!(named(root.path(), "efficiency"), ["CERN v1 1 1 0 3000000 8000000 37.5"]);
}

#[test]
fn a_slower_release_and_an_unusual_job_are_found() {
    let root = tempfile::tempdir().unwrap();
    for (day, release, base) in
        [("2026-11-21", "v1", 100), ("2026-11-22", "v1", 100), ("2026-11-23", "v2", 130)]
    {
        for number in 0..20 {
            let unusual = day == "2026-11-21" && number == 7;
            let cpu = if unusual { 900 } else { base + number % 3 };
            let (job, cpu) = (format!("{day}-{number}"), format!("{}", cpu * 1_000_000));
            let row = [
                ("job", &*job),
                ("day", day),
                ("command", "./job"),
                ("release", release),
                ("cpu_us", &*cpu),
                ("sound", "true"),
                ("lost_records", "0"),
            ];
            put(root.path(), &job, day, &[("jobs", rows("jobs", &[&row]))]);
        }
    }
    let found = named(root.path(), "regressions");
    let verdicts: Vec<&str> = found.iter().map(|line| line.rsplit(' ').next().unwrap()).collect();
    // The first day has none before it; the second is within the interval of the unusual job.
    assert_eq!(verdicts, ["-", "same", "slower"], "{found:?}");
    let found = named(root.path(), "outliers");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("2026-11-21-7 ") && found[0].ends_with("unusual CPU time"));
}

/// One of six jobs takes twice as long: it must not be in the spread by which it is judged. Few jobs have wide intervals.
#[test]
fn few_jobs_are_judged_with_care() {
    let root = tempfile::tempdir().unwrap();
    let put_job = |day: &str, number: usize, command: &str, cpu_ms: u64| {
        let (job, cpu) = (format!("{command}-{day}-{number}"), format!("{}", cpu_ms * 1_000));
        let row = [
            ("job", &*job),
            ("day", day),
            ("command", command),
            ("cpu_us", &*cpu),
            ("wall_us", "1000000"),
            ("recorded_us", "4000000"),
            ("cores", "1"),
            ("sound", "true"),
            ("lost_records", "0"),
        ];
        put(root.path(), &job, day, &[("jobs", rows("jobs", &[&row]))]);
    };
    let like = [100_000, 101_500, 99_200, 100_700, 98_900];
    for (number, cpu_ms) in like.into_iter().chain([200_000]).enumerate() {
        put_job("2026-11-21", number, "six", cpu_ms);
    }
    for (number, cpu_ms) in [100_000, 101_500, 99_200, 100_700, 200_000].into_iter().enumerate() {
        put_job("2026-11-21", number, "five", cpu_ms);
    }
    let found = named(root.path(), "outliers");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("six-2026-11-21-5 "), "{found:?}");
    // By scipy.stats: t = 4.303 and 2.776; means 10.0, 11.5 and 13.0, each with a standard deviation of 0.5.
    for (day, cpu_ms) in [("2026-11-22", 10_000), ("2026-11-23", 11_500), ("2026-11-24", 13_000)] {
        for (number, cpu_ms) in [cpu_ms - 500, cpu_ms, cpu_ms + 500].into_iter().enumerate() {
            put_job(day, number, "three", cpu_ms);
        }
    }
    let sql = FLEET_QUERIES.iter().find(|query| query.name == "regressions").unwrap().sql;
    let found = answer(root.path(), sql);
    let three: Vec<Vec<&str>> = found
        .iter()
        .filter_map(|line| Some(line.strip_prefix("three ")?.split(' ').collect()))
        .collect();
    let real = |row: usize, column: usize| three[row][column].parse::<f64>().unwrap();
    let error = (0.25_f64 + 0.01 / 12.0).sqrt() / 3.0_f64.sqrt();
    assert!((real(0, 4) / (4.303 * error) - 1.0).abs() < 0.01, "{three:?}");
    assert!((real(1, 7) / (2.776 * error * 2.0_f64.sqrt()) - 1.0).abs() < 0.01, "{three:?}");
    let verdicts: Vec<&str> = three.iter().map(|row| row[8]).collect();
    assert_eq!(verdicts, ["-", "slower", "slower"], "{three:?}");
    // To the end of what outlived the command.
    let efficiency = named(root.path(), "efficiency");
    assert!(efficiency[0].contains(" 80000000 "), "{efficiency:?}");
}

#[test]
fn columns_that_a_file_lacks_are_null_and_integers_are_wide() {
    let root = tempfile::tempdir().unwrap();
    let job = |name| [("job", name), ("exit_code", "2147483647"), ("cpu_us", "1")];
    let mut old = rows("jobs", &[&job("old")]);
    old.columns.retain(|column| ["job", "exit_code"].contains(&&*column.name));
    put(root.path(), "old", "2026-11-22", &[("jobs", old)]);
    put(root.path(), "new", "2026-11-23", &[("jobs", rows("jobs", &[&job("new")]))]);
    let sql = "SELECT job, cpu_us, exit_code * 4 AS x FROM jobs ORDER BY job";
    assert_eq!(answer(root.path(), sql), ["new 1 8589934588", "old - 8589934588"]);
    assert_eq!(answer(root.path(), "SELECT count(*) AS n FROM JOBS"), ["2"]);
}

#[test]
fn what_is_no_table_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    let ask = |sql: &str| ask(root.path(), &Layout::default(), sql);
    for wrong in [
        "",
        "DROP TABLE jobs",
        "SELECT 1; SELECT 2",
        "SELECT x FROM nothing",
        "SELECT nothing FROM jobs",
    ] {
        assert!(matches!(ask(wrong), Err(FleetError::Query(_))), "{wrong}");
    }
    let directory = root.path().join("table=jobs/day=2026-11-23");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("x.parquet"), "not Parquet").unwrap();
    assert!(matches!(ask("SELECT job FROM jobs"), Err(FleetError::Unusable { .. })));
    // A column of another type, under the name of one of ours.
    let mut wrong = rows("misses", &[&[("misses", "5")]]);
    wrong.columns.retain(|column| column.name == "misses");
    let tables = vec![(table_named("misses").unwrap(), wrong)];
    let file = encode(&Summary { job: "x".into(), day: None, tables }).remove(0).1;
    let renamed: Vec<u8> = String::from_utf8_lossy(&file).replace("misses", "labels").into();
    if renamed.len() == file.len() {
        std::fs::write(directory.join("x.parquet"), renamed).unwrap();
        assert!(matches!(ask("SELECT labels FROM jobs"), Err(FleetError::Unusable { .. })));
    }
}

#[test]
fn files_that_are_cut_off_are_errors() {
    let rows = rows("misses", &[&[("job", "a"), ("misses", "5")], &[("directory", "/b")]]);
    let tables = vec![(table_named("misses").unwrap(), rows)];
    let file = encode(&Summary { job: "x".into(), day: None, tables }).remove(0).1;
    let root = tempfile::tempdir().unwrap();
    let directory = Layout::default().directory(root.path(), "misses", None);
    std::fs::create_dir_all(&directory).unwrap();
    for end in 0..file.len() {
        std::fs::write(directory.join("x.parquet"), &file[..end]).unwrap();
        let found = ask(root.path(), &Layout::default(), "SELECT * FROM misses");
        assert!(matches!(found, Err(FleetError::Unusable { .. })), "{end}");
    }
}
