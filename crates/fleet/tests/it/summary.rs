//! Summaries of recordings: they agree with the report, and are small.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use polars_io::SerReader;
use polars_io::parquet::read::ParquetReader;
use proctrace_analysis::{Analysis, Recording, Rules};
use proctrace_findings::{Rows, RowsValues};
use proctrace_fleet::{
    About, FLEET_TABLES, FleetError, JOB_BYTES_MAX, PRIVACY, Redacted, Summary, encode,
    fleet_markdown, kept_names_markdown, summarize, user_hash,
};

const TRACES: [&str; 3] = ["tour-6.ptrace", "alice-o2-before.ptrace", "alice-o2-after.ptrace"];

fn trace(name: &str) -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../fixtures/traces")
        .join(name)
}

fn load(name: &str) -> Recording {
    Recording::load(trace(name), &Rules::built_in()).unwrap()
}

fn table<'a>(summary: &'a Summary, name: &str) -> &'a Rows {
    &summary.tables.iter().find(|(schema, _)| schema.name == name).unwrap().1
}

fn figures(rows: &Rows, name: &str) -> Vec<Option<i64>> {
    match &rows.columns.iter().find(|column| column.name == name).unwrap().values {
        RowsValues::Signed(values) => values.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

fn texts(rows: &Rows, name: &str) -> Vec<Option<String>> {
    match &rows.columns.iter().find(|column| column.name == name).unwrap().values {
        RowsValues::Text(values) => values.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

fn sum(rows: &Rows, name: &str) -> i64 {
    figures(rows, name).into_iter().flatten().sum()
}

#[test]
fn a_summary_says_what_the_report_says() {
    for name in TRACES {
        let recording = load(name);
        let findings = Analysis::of(&recording).without_advice();
        let summary = summarize(&recording, &trace(name), &About::default()).unwrap();
        let (jobs, programs) = (table(&summary, "jobs"), table(&summary, "programs"));
        let of_job = |column: &str| figures(jobs, column)[0].unwrap();
        let told = |value: Option<u64>| i64::try_from(value.unwrap()).unwrap();
        assert_eq!(of_job("processes"), told(findings.summary.processes), "{name}");
        assert_eq!(of_job("execs"), told(findings.summary.execs), "{name}");
        assert_eq!(of_job("cpu_us") * 1000 / 1_000_000, told(findings.summary.cpu_ns) / 1_000_000);
        assert_eq!(sum(programs, "processes"), of_job("processes"), "{name}");
        // Each row is rounded to a microsecond.
        let rounded = i64::try_from(programs.height()).unwrap();
        assert!((sum(programs, "cpu_us") - of_job("cpu_us")).abs() <= rounded, "{name}");
        assert_eq!(sum(table(&summary, "misses"), "misses"), of_job("failed_lookups"), "{name}");
        // What a sampler misses and what it sees is all there is, except for rounding.
        let missed =
            ["sampled_cpu_us", "unseen_cpu_us", "late_cpu_us", "outside_cpu_us", "hidden_cpu_us"];
        let seen: i64 = missed.map(of_job).iter().sum();
        assert!(seen <= of_job("cpu_us") + 1_000_000, "{name}: {seen}");
        let lives = ["lives_1ms", "lives_10ms", "lives_100ms", "lives_1s"];
        let lived: i64 = lives.map(|column| sum(programs, column)).iter().sum();
        assert!(lived > 0 && lived <= of_job("processes"), "{name}");
    }
}

#[test]
fn rows_have_the_columns_of_the_schema_and_files_are_small() {
    for name in TRACES {
        let recording = load(name);
        let summary = summarize(&recording, &trace(name), &About::default()).unwrap();
        assert_eq!(summary.tables.len(), FLEET_TABLES.len());
        for (schema, rows) in &summary.tables {
            let names: Vec<&str> = rows.columns.iter().map(|column| &*column.name).collect();
            let expected: Vec<&str> = schema.columns.iter().map(|column| column.name).collect();
            assert_eq!(names, expected, "{}", schema.name);
            assert!(rows.columns.iter().all(|column| column.values.len() == rows.height()));
            assert!(texts(rows, "job").iter().all(|job| job.as_ref() == Some(&summary.job)));
        }
        let files = encode(&summary);
        let size: usize = files.iter().map(|(_, file)| file.len()).sum();
        assert!(size <= JOB_BYTES_MAX, "{name}: {size}");
        // The same job is the same file.
        assert_eq!(encode(&summarize(&recording, &trace(name), &About::default()).unwrap()), files);
    }
}

#[test]
fn what_is_not_known_is_null() {
    let summary = summarize(&load(TRACES[0]), &trace(TRACES[0]), &About::default()).unwrap();
    let jobs = table(&summary, "jobs");
    for column in ["site", "queue", "batch_system", "batch_id", "user_hash", "release", "labels"] {
        assert_eq!(texts(jobs, column), [None], "{column}");
    }
    assert_eq!(figures(jobs, "batch_cpu_us"), [None]);
    assert_eq!(texts(jobs, "day")[0].as_deref().map(str::len), Some(10));
}

#[test]
fn identity_is_of_variables_and_labels() {
    let mut recording = load(TRACES[0]);
    for (name, value) in
        [("SLURM_JOB_ID", "12"), ("SLURM_JOB_USER", "ann"), ("SLURM_CPUS_PER_TASK", "4")]
    {
        recording.header_mut().job.insert(name.to_owned(), value.to_owned());
    }
    let key = b"a key of sixteen or more bytes".to_vec();
    let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let about = About {
        labels: vec![label("site", "T2"), label("campaign", "mc"), label("release", "v1")],
        site_key: Some(key.clone()),
        redact: false,
        batch_cpu_us: Some(5),
    };
    let summary = summarize(&recording, &trace(TRACES[0]), &about).unwrap();
    let jobs = table(&summary, "jobs");
    let text = |column: &str| texts(jobs, column)[0].clone().unwrap();
    assert_eq!(text("batch_system"), "slurm");
    assert_eq!(text("batch_id"), "12");
    assert_eq!(text("site"), "T2");
    assert_eq!(text("release"), "v1");
    assert_eq!(text("labels"), "campaign=mc");
    assert_eq!(text("user_hash"), user_hash(&key, "ann"));
    assert_eq!(figures(jobs, "cores"), [Some(4)]);
    assert_eq!(figures(jobs, "batch_cpu_us"), [Some(5)]);
    // The name of the user is in none of the files.
    for (_, file) in encode(&summary) {
        assert!(!file.windows(3).any(|bytes| bytes == b"ann"));
    }
    // It is another job than the one that is not known.
    let anonymous = summarize(&load(TRACES[0]), &trace(TRACES[0]), &About::default()).unwrap();
    assert_ne!(anonymous.job, summary.job);
}

#[test]
fn a_job_with_many_directories_fits_and_loses_nothing() {
    let mut summary = summarize(&load(TRACES[0]), &trace(TRACES[0]), &About::default()).unwrap();
    // Names that cannot be compressed.
    let name =
        |at: u64| Some(format!("/{:x}{:x}", at.wrapping_mul(0x9e37_79b9_7f4a_7c15), at * at));
    let height = 200;
    for (schema, rows) in &mut summary.tables {
        if !["programs", "misses"].contains(&schema.name) {
            continue;
        }
        for column in &mut rows.columns {
            column.values = match &column.values {
                RowsValues::Text(_) => RowsValues::Text((0..height).map(name).collect()),
                _ => {
                    RowsValues::Signed((0..height).map(|at| i64::try_from(at * 977).ok()).collect())
                }
            };
        }
    }
    let files = encode(&summary);
    let size: usize = files.iter().map(|(_, file)| file.len()).sum();
    assert!(size <= JOB_BYTES_MAX, "{size}");
    let expected: i64 = (0..200).map(|at| at * 977).sum();
    for (table, column) in [("misses", "misses"), ("programs", "cpu_us")] {
        let file = files.iter().find(|(name, _)| *name == table).unwrap().1.clone();
        let frame = ParquetReader::new(Cursor::new(file)).finish().unwrap();
        assert!(frame.height() < 200, "{table}");
        let sum = frame.column(column).unwrap().i64().unwrap().iter().flatten().sum::<i64>();
        assert_eq!(sum, expected, "{table}");
    }
}

#[test]
fn the_page_describes_all_tables() {
    let path =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../docs/fleet.md");
    let page = std::fs::read_to_string(path).unwrap();
    let expected = fleet_markdown();
    assert!(page.contains(&expected), "docs/fleet.md lacks:\n{expected}");
}

fn key() -> Vec<u8> {
    b"a key of sixteen or more bytes".to_vec()
}

fn redacted(recording: &Recording, name: &str) -> Summary {
    let about = About { site_key: Some(key()), redact: true, ..About::default() };
    summarize(recording, &trace(name), &about).unwrap()
}

#[test]
fn redaction_does_with_each_column_what_is_said() {
    for name in TRACES {
        let mut recording = load(name);
        for (name, value) in [
            ("GITHUB_RUN_ID", "12"),
            ("GITHUB_REPOSITORY", "ann/work"),
            ("GITHUB_WORKFLOW", "flow"),
            ("GITHUB_SHA", "c0ffee"),
            ("USER", "ann"),
            ("SLURM_JOB_NAME", "higgs"),
        ] {
            recording.header_mut().job.insert(name.to_owned(), value.to_owned());
        }
        let about = About { site_key: Some(key()), ..About::default() };
        let plain = summarize(&recording, &trace(name), &about).unwrap();
        let summary = redacted(&recording, name);
        assert_ne!(summary.job, plain.job);
        for (table_name, column, says, _) in PRIVACY {
            let values = |summary: &Summary| {
                let rows = table(summary, table_name);
                rows.columns.iter().find(|found| found.name == *column).unwrap().values.clone()
            };
            let (before, after) = (values(&plain), values(&summary));
            let place = format!("{name}: {table_name}.{column}");
            match says {
                // Sums stay the same; rows of equal cost may change places.
                Redacted::Kept | Redacted::Label | Redacted::HashedAlways => {
                    assert_eq!(sorted(&after), sorted(&before), "{place}");
                }
                Redacted::Coarser => assert_ne!(after, before, "{place}"),
                Redacted::Hashed | Redacted::UnlessLabel => {
                    let RowsValues::Text(after) = &after else { panic!("{place}") };
                    let hashed = |text: &String| {
                        let digits = text.strip_prefix('#').unwrap_or(text);
                        digits.len() >= 12 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
                    };
                    assert!(after.iter().all(|text| text.as_ref().is_some_and(hashed)), "{place}");
                }
                Redacted::Names => {
                    let RowsValues::Text(after) = &after else { panic!("{place}") };
                    let known = |text: &String| is_known(text, *column == "what");
                    let bad: Vec<_> = after.iter().flatten().filter(|text| !known(text)).collect();
                    assert!(bad.is_empty(), "{place}: {bad:?}");
                }
            }
        }
        let size: usize = encode(&summary).iter().map(|(_, file)| file.len()).sum();
        assert!(size <= JOB_BYTES_MAX, "{name}: {size}");
    }
}

fn sorted(values: &RowsValues) -> Vec<String> {
    let mut texts: Vec<String> = match values {
        RowsValues::Text(values) => values.iter().map(|it| format!("{it:?}")).collect(),
        RowsValues::Signed(values) => values.iter().map(|it| format!("{it:?}")).collect(),
        RowsValues::Flag(values) => values.iter().map(|it| format!("{it:?}")).collect(),
        other => panic!("{other:?}"),
    };
    texts.sort();
    texts
}

/// True if all words of a text are hashes or on the page; advice begins with a sentence.
fn is_known(text: &str, is_sentence: bool) -> bool {
    let kept = kept_names_markdown();
    let kept: Vec<&str> = kept.split_whitespace().collect();
    let names = if is_sentence { text.split_once(": ").map_or("", |it| it.1) } else { text };
    names
        .split([' ', '/', ',', '(', ')', '\u{2026}'])
        .filter(|word| !word.is_empty())
        .all(|word| word.starts_with('#') || [".", ".."].contains(&word) || kept.contains(&word))
}

#[test]
fn the_same_is_the_same_in_other_jobs_of_a_site() {
    let name = "alice-o2-before.ptrace";
    let (one, mut recording) = (redacted(&load(name), name), load(name));
    recording.header_mut().job.insert("USER".to_owned(), "bob".to_owned());
    recording.header_mut().job.insert("SLURM_JOB_ID".to_owned(), "2".to_owned());
    let other = redacted(&recording, name);
    assert_ne!(one.job, other.job);
    for (table_name, column) in [("misses", "directory"), ("programs", "program")] {
        let of = |summary: &Summary| texts(table(summary, table_name), column);
        assert_eq!(of(&one), of(&other));
        assert!(of(&one).iter().flatten().any(|text| text.contains('#')), "{table_name}");
    }
    // As many different ones as there are.
    let plain = summarize(&load(name), &trace(name), &About::default()).unwrap();
    let distinct = |summary: &Summary| {
        let found = texts(table(summary, "misses"), "directory");
        found.into_iter().collect::<BTreeSet<_>>().len()
    };
    assert_eq!(distinct(&one), distinct(&plain));
}

#[test]
fn labels_are_written_as_given_and_nothing_is_without_a_key() {
    let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut about = About {
        labels: vec![label("site", "T2"), label("campaign", "mc"), label("batch_id", "77")],
        redact: true,
        ..About::default()
    };
    let refused = summarize(&load(TRACES[0]), &trace(TRACES[0]), &about);
    assert!(matches!(refused, Err(FleetError::NoKey)));
    about.site_key = Some(key());
    let summary = summarize(&load(TRACES[0]), &trace(TRACES[0]), &about).unwrap();
    let text = |column: &str| texts(table(&summary, "jobs"), column)[0].clone().unwrap();
    assert_eq!((&*text("site"), &*text("labels")), ("T2", "campaign=mc"));
    assert!(text("batch_id").starts_with('#'));
}

#[test]
fn hashes_cost_directories_before_programs() {
    let name = "alice-o2-before.ptrace";
    let summary = redacted(&load(name), name);
    let height = |wanted: &str| {
        let file = encode(&summary).into_iter().find(|(name, _)| *name == wanted).unwrap().1;
        ParquetReader::new(Cursor::new(file)).finish().unwrap().height()
    };
    assert_eq!(height("programs"), table(&summary, "programs").height());
    let (kept, all) = (height("misses"), table(&summary, "misses").height());
    assert!(kept >= all / 3 && kept < all, "{kept} of {all}");
}
