//! `proctrace summarize` and `record --summary`, from recordings of real jobs.

use std::path::{Path, PathBuf};

use crate::common::{Recorder, header, proctrace};

/// The files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn bytes(files: &[PathBuf]) -> u64 {
    files.iter().map(|file| file.metadata().unwrap().len()).sum()
}

#[test]
fn a_job_of_a_batch_system_is_summarized_with_or_without_its_trace() {
    let directory = tempfile::tempdir().unwrap();
    let lake = directory.path().join("lake");
    let key = directory.path().join("key");
    std::fs::write(&key, "a key of sixteen or more bytes\n").unwrap();
    let recorder = |more: &[&str]| {
        Recorder::new()
            .env("PBS_JOBID", "42.head")
            .env("PBS_QUEUE", "long")
            .option(["--label", "site=T9", "--summary"])
            .option([&lake])
            .option([Path::new("--site-key"), &key])
            .option(more)
    };
    let kept = recorder(&[]).run(["sh", "-c", "true; sleep 0.01; exit 3"]);
    kept.sound(3);
    assert!(kept.stderr().contains("summary in "), "{}", kept.stderr());
    let job = &header(&kept.trace())["header"]["job"];
    assert_eq!(job["PBS_JOBID"], "42.head");
    let first = files(&lake);
    assert_eq!(first.len(), 5, "{first:?}");
    assert!(first.iter().all(|file| file.extension().is_some_and(|it| it == "parquet")));
    assert!(bytes(&first) <= 8_000, "{}", bytes(&first));

    // Summarizing the trace makes the same files.
    let before: Vec<Vec<u8>> = first.iter().map(|file| std::fs::read(file).unwrap()).collect();
    let again = proctrace()
        .args(["summarize", "--label", "site=T9", "--user-key"])
        .arg(&key)
        .arg(kept.trace())
        .arg("-o")
        .arg(&lake)
        .output()
        .unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    assert_eq!(files(&lake), first);
    let after: Vec<Vec<u8>> = first.iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert_eq!(after, before);

    let gone = recorder(&["--discard-trace"]).run(["true"]);
    assert_eq!(gone.code(), 0, "{}", gone.stderr());
    assert!(!gone.trace().exists());
    assert_eq!(files(&lake).len(), 10);
}

#[test]
fn a_trace_without_a_summary_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let occupied = directory.path().join("lake");
    std::fs::write(&occupied, "a file").unwrap();
    let failed =
        Recorder::new().option(["--discard-trace", "--summary"]).option([&occupied]).run(["true"]);
    assert_eq!(failed.code(), 125, "{}", failed.stderr());
    assert!(failed.trace().exists());
}

#[test]
fn what_is_wrong_is_said_before_anything_runs() {
    let directory = tempfile::tempdir().unwrap();
    let short = directory.path().join("key");
    std::fs::write(&short, "short\n").unwrap();
    let ran = directory.path().join("ran");
    let recorded =
        Recorder::new().option([Path::new("--user-key"), &short]).run([Path::new("touch"), &ran]);
    assert_eq!(recorded.code(), 2, "{}", recorded.stderr());
    assert!(recorded.stderr().contains("less than 16 bytes"), "{}", recorded.stderr());
    assert!(!ran.exists());
    for wrong in [&["--label", "x"][..], &["--layout", "../{table}"], &["--label", "a b=c"]] {
        let output = proctrace().arg("summarize").args(wrong).args(["-o", "x"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn no_env_means_no_identity() {
    let recorded = Recorder::new().env("SLURM_JOB_ID", "7").option(["--no-env"]).run(["true"]);
    recorded.sound(0);
    assert!(header(&recorded.trace())["header"]["job"].is_null());
}

/// Text that must not leave the node.
const MARKER: &str = "Zz9secret";

/// The rows of a table, as text.
fn rows_of(lake: &Path, table: &str) -> String {
    let sql = format!("SELECT * FROM {table}");
    let output =
        proctrace().args(["fleet", &sql]).arg(lake).args(["--format", "csv"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn names_are_not_redacted_without_a_key() {
    let output = proctrace().args(["summarize", "--redact", "-o", "x"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--site-key"));
}

mod root {
    use super::*;

    #[test]
    fn redaction_leaves_no_name_in_any_table() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let (redacted, plain, key) = (at("redacted"), at("plain"), at("key"));
        std::fs::write(&key, "a key of sixteen or more bytes\n").unwrap();
        // The marker is the name of a directory, an executable and a script in it, an argument, the working
        // directory, a directory that is searched in vain and one of LD_LIBRARY_PATH, a step, the user, the job and
        // its queue, and the name of a thread group.
        let work = at(&format!("{MARKER}-work"));
        std::fs::create_dir(&work).unwrap();
        let program = work.join(format!("{MARKER}-program"));
        std::fs::copy("/bin/sleep", &program).unwrap();
        let script = work.join(format!("{MARKER}-script.sh"));
        let lines = format!(
            "cd '{}'\nprintf {MARKER} > /proc/self/comm\n./{MARKER}-program 0.3\n\
             cat /nonexistent/{MARKER}-missed/file {MARKER}-argument 2> /dev/null\n\
             PROCTRACE_STEP={MARKER}-step '{}' 0.3\ntrue\n",
            work.display(),
            program.display()
        );
        std::fs::write(&script, lines).unwrap();
        let recorded = Recorder::new()
            .env("LD_LIBRARY_PATH", &format!("/opt/{MARKER}-libraries"))
            .env("USER", &format!("{MARKER}-user"))
            .env("PBS_JOBID", &format!("{MARKER}-job"))
            .env("PBS_QUEUE", &format!("{MARKER}-queue"))
            .env("PBS_SERVER", &format!("{MARKER}-server"))
            .option(["--redact", "--label", "campaign=mc", "--site-key"])
            .option([&key, Path::new("--summary"), &redacted])
            .run([Path::new("sh"), &script, Path::new(&format!("{MARKER}-option"))]);
        recorded.sound(0);
        let again = proctrace()
            .arg("summarize")
            .arg(recorded.trace())
            .arg("-o")
            .arg(&plain)
            .output()
            .unwrap();
        assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
        for table in ["jobs", "programs", "misses", "advice", "step_groups"] {
            let (before, after) = (rows_of(&plain, table), rows_of(&redacted, table));
            assert!(before.contains(MARKER), "{table} can have it: {before}");
            assert!(!after.contains(MARKER), "{table}: {after}");
            assert_eq!(before.lines().count(), after.lines().count(), "{table}: {after}");
            assert!(after.contains('#'), "{table}: {after}");
        }
        let misses = rows_of(&plain, "misses");
        assert!(misses.contains(&format!("/opt/{MARKER}-libraries")), "{misses}");
        assert!(misses.contains(&format!("/nonexistent/{MARKER}-missed")), "{misses}");
        let programs = rows_of(&redacted, "programs");
        assert!(programs.contains(",cat,command,#"), "{programs}");
        // Statistics and names of files are of the same values.
        for file in files(&redacted) {
            assert!(!file.strip_prefix(&redacted).unwrap().to_string_lossy().contains(MARKER));
            let bytes = std::fs::read(&file).unwrap();
            assert!(!bytes.windows(MARKER.len()).any(|found| found == MARKER.as_bytes()));
        }
        // All questions have an answer.
        let overview = proctrace().args(["fleet", "overview"]).arg(&redacted).output().unwrap();
        assert!(overview.status.success(), "{}", String::from_utf8_lossy(&overview.stderr));
        let overview = String::from_utf8(overview.stdout).unwrap();
        assert!(overview.contains("/opt/#") && !overview.contains(MARKER), "{overview}");
    }
}
