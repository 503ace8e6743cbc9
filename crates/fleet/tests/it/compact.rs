//! Compaction: nothing is lost or doubled, whatever happens in between.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use proctrace_findings::{Rows, RowsColumn, RowsValues};
use proctrace_fleet::{Compacted, FleetError, Layout, Summary, ask, compact, table_named};
use proctrace_outputs::Outputs;

const DAY: &str = "2026-11-23";

fn misses(job: &str, count: i64) -> Rows {
    let text = |text: &str| RowsValues::Text(vec![Some(text.to_owned()), None]);
    let column = |name: &str, values| RowsColumn { name: name.to_owned(), values };
    let site = if job.len().is_multiple_of(2) { "T1" } else { "T2" };
    Rows {
        columns: vec![
            column("job", RowsValues::Text(vec![Some(job.to_owned()); 2])),
            column("site", RowsValues::Text(vec![Some(site.to_owned()); 2])),
            column("directory", text("/lib")),
            column("errno", text("ENOENT")),
            column("misses", RowsValues::Signed(vec![Some(count), Some(1)])),
        ],
    }
}

fn write(root: &Path, job: &str, rows: Rows) {
    let tables = vec![(table_named("misses").unwrap(), rows)];
    let summary = Summary { job: job.into(), day: Some(DAY.into()), tables };
    Layout::default().write(root, &summary, &Outputs::of_this_process()).unwrap();
}

fn put(root: &Path, job: &str, count: i64) {
    write(root, job, misses(job, count));
}

/// The failed look-ups of each job.
fn found(root: &Path) -> BTreeMap<String, i64> {
    let sql = "SELECT job, sum(misses) AS misses FROM misses GROUP BY job";
    let answer = ask(root, &Layout::default(), sql).unwrap();
    let rows = answer.rows(0, answer.height()).unwrap();
    match (&rows.columns[0].values, &rows.columns[1].values) {
        (RowsValues::Text(jobs), RowsValues::Signed(sums)) => jobs
            .iter()
            .cloned()
            .map(Option::unwrap)
            .zip(sums.iter().map(|it| it.unwrap()))
            .collect(),
        other => panic!("{other:?}"),
    }
}

fn directory(root: &Path) -> PathBuf {
    Layout::default().directory(root, "misses", Some(DAY))
}

/// Names of the files, with those that begin with a dot.
fn all_files(root: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory(root)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != ".compact.lock");
    names.sort();
    names
}

fn squeeze(root: &Path) -> Compacted {
    compact(root, &Layout::default(), &Outputs::of_this_process()).unwrap()
}

#[test]
fn many_files_become_one_and_that_stays() {
    let root = tempfile::tempdir().unwrap();
    let expected: BTreeMap<String, i64> =
        (0..50).map(|at| (format!("{:x}", at * 7919), at + 1)).collect();
    for (job, count) in &expected {
        put(root.path(), job, *count - 1);
    }
    assert_eq!(found(root.path()), expected);
    let done = squeeze(root.path());
    assert_eq!((done.directories, done.files, done.rows), (1, 50, 100));
    assert_eq!(all_files(root.path()).len(), 1);
    assert_eq!(found(root.path()), expected);
    let made = all_files(root.path());
    let bytes = fs::read(directory(root.path()).join(&made[0])).unwrap();
    assert_eq!(squeeze(root.path()), Compacted::default());
    assert_eq!(all_files(root.path()), made);
    assert_eq!(fs::read(directory(root.path()).join(&made[0])).unwrap(), bytes);
    // By site and job.
    let sql = "SELECT site, job FROM misses WHERE directory IS NOT NULL";
    let rows = ask(root.path(), &Layout::default(), sql).unwrap().rows(0, 100).unwrap();
    let texts = |at: usize| match &rows.columns[at].values {
        RowsValues::Text(values) => values.clone(),
        other => panic!("{other:?}"),
    };
    let order: Vec<_> = texts(0).into_iter().zip(texts(1)).collect();
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn what_arrives_late_is_added_or_replaces_its_job() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "a", 1);
    put(root.path(), "bb", 2);
    squeeze(root.path());
    put(root.path(), "c", 3);
    put(root.path(), "a", 40);
    squeeze(root.path());
    let expected = [("a", 41), ("bb", 3), ("c", 4)].map(|(job, sum)| (job.to_owned(), sum));
    assert_eq!(found(root.path()), BTreeMap::from(expected));
    assert_eq!(all_files(root.path()).len(), 1);
}

#[test]
fn columns_of_other_versions_are_kept() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "a", 1);
    let mut old = misses("old", 5);
    old.columns.retain(|column| column.name != "errno");
    write(root.path(), "old", old);
    squeeze(root.path());
    let sql = "SELECT count(errno) AS n, count(*) AS rows FROM misses";
    let rows = ask(root.path(), &Layout::default(), sql).unwrap().rows(0, 1).unwrap();
    assert_eq!(rows.columns[0].values, RowsValues::Signed(vec![Some(1)]));
    assert_eq!(rows.columns[1].values, RowsValues::Signed(vec![Some(4)]));
}

/// The states in which a crash can leave a directory: before the new file has its name, and while the
/// old ones are removed.
#[test]
fn an_interrupted_compaction_is_completed() {
    for (named, removed) in [(false, 0), (true, 0), (true, 1), (true, 3)] {
        let root = tempfile::tempdir().unwrap();
        let place = directory(root.path());
        let jobs = ["a", "bb", "c"];
        for job in jobs {
            put(root.path(), job, 1);
        }
        let expected = found(root.path());
        // What compaction makes of them, in another fleet.
        let other = tempfile::tempdir().unwrap();
        for job in jobs {
            put(other.path(), job, 1);
        }
        squeeze(other.path());
        let made = all_files(other.path()).remove(0);
        let name = if named { made.clone() } else { format!(".{made}.part") };
        fs::copy(directory(other.path()).join(&made), place.join(name)).unwrap();
        let mut journal = format!("{made}\n");
        for job in jobs {
            let file = fs::metadata(place.join(format!("{job}.parquet"))).unwrap();
            let version = format!("{}-{}-{}", file.ino(), file.mtime(), file.mtime_nsec());
            journal.push_str(&format!("{version} {job}.parquet\n"));
        }
        fs::write(place.join(".compact.journal"), journal).unwrap();
        for job in &jobs[..removed] {
            fs::remove_file(place.join(format!("{job}.parquet"))).unwrap();
        }
        assert_eq!(found(root.path()), expected, "{named} {removed}: before it is completed");
        // A job that is summarized again in the meantime is not among those that are removed.
        put(root.path(), "c", 10);
        squeeze(root.path());
        let mut later = expected.clone();
        later.insert("c".into(), 11);
        assert_eq!(found(root.path()), later, "{named} {removed}");
        assert_eq!(
            all_files(root.path()).len(),
            1,
            "{named} {removed}: {:?}",
            all_files(root.path())
        );
    }
}

#[test]
fn what_is_left_of_a_crash_before_the_journal_is_not_read() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "a", 1);
    fs::write(directory(root.path()).join(".compact-0.parquet.part"), "half").unwrap();
    fs::write(directory(root.path()).join(".a.parquet.1.part"), "half").unwrap();
    assert_eq!(found(root.path()), BTreeMap::from([("a".to_owned(), 2)]));
    squeeze(root.path());
    assert_eq!(found(root.path()), BTreeMap::from([("a".to_owned(), 2)]));
}

#[test]
fn a_file_that_cannot_be_read_stops_it_and_loses_nothing() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "a", 1);
    fs::write(directory(root.path()).join("b.parquet"), "no table").unwrap();
    let before = all_files(root.path());
    let failed = compact(root.path(), &Layout::default(), &Outputs::of_this_process());
    assert!(matches!(failed, Err(FleetError::Unusable { .. })), "{failed:?}");
    assert_eq!(all_files(root.path()), before);
    fs::write(directory(root.path()).join(".compact.journal"), "../../etc\n1 x\n").unwrap();
    assert!(compact(root.path(), &Layout::default(), &Outputs::of_this_process()).is_err());
    assert!(directory(root.path()).join("a.parquet").exists());
}

#[test]
fn writers_and_compactors_may_run_at_the_same_time() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    put(root, "first", 1);
    let writing = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                scope.spawn(move || {
                    for at in 0..40 {
                        put(root, &format!("{writer}-{at}"), 1);
                        // Some twice: the later one counts.
                        put(root, &format!("{writer}-{}", at / 2), 5);
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                while writing.load(Ordering::Relaxed) {
                    squeeze(root);
                }
            });
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        writing.store(false, Ordering::Relaxed);
    });
    squeeze(root);
    let found = found(root);
    assert_eq!(found.len(), 121);
    for writer in 0..3 {
        for at in 0..40 {
            let expected = if at < 20 { 6 } else { 2 };
            assert_eq!(found[&format!("{writer}-{at}")], expected, "{writer}-{at}");
        }
    }
    assert_eq!(all_files(root).len(), 1);
}

#[test]
fn a_reader_sees_each_row_once_while_files_are_compacted() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    put(root, "first", 1);
    let (rounds, done) = (60, AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut reads = 0;
                    while done.load(Ordering::SeqCst) < rounds {
                        let there = done.load(Ordering::SeqCst);
                        let found = found(root);
                        assert!(found.values().all(|sum| *sum == 2), "{found:?}");
                        assert!(found.len() > 4 * there, "{} after {there}", found.len());
                        reads += 1;
                    }
                    reads
                })
            })
            .collect();
        for round in 0..rounds {
            for job in 0..4 {
                put(root, &format!("{round}-{job}"), 1);
            }
            done.store(round + 1, Ordering::SeqCst);
            squeeze(root);
        }
        let reads: Vec<u32> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        assert!(reads.iter().all(|reads| *reads > 0), "{reads:?}");
    });
}
