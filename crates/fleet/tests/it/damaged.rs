//! Damaged files of a fleet: an error that names the file, or rows, but never the end of the program.

use std::fs;
use std::path::{Path, PathBuf};

use proctrace_findings::{Rows, RowsColumn, RowsValues};
use proctrace_fleet::{FleetError, Layout, Summary, ask, compact, table_named};
use proctrace_outputs::Outputs;

const DAMAGES: u64 = 300;

/// SplitMix64: the same damages each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
    }
}

fn misses(job: &str) -> Rows {
    let height = 50;
    let text = |of: &dyn Fn(i64) -> Option<String>| RowsValues::Text((0..height).map(of).collect());
    let column = |name: &str, values| RowsColumn { name: name.to_owned(), values };
    Rows {
        columns: vec![
            column("job", text(&|_| Some(job.to_owned()))),
            column("site", text(&|_| None)),
            column("directory", text(&|at| (at > 0).then(|| format!("/usr/lib/{job}/{at}")))),
            column("errno", text(&|_| Some("ENOENT".to_owned()))),
            column("misses", RowsValues::Signed((0..height).map(|at| Some(at * 977)).collect())),
        ],
    }
}

/// A lake of one file, and the file: of one job, or compacted from several.
fn lake(jobs: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    for job in jobs {
        let tables = vec![(table_named("misses").unwrap(), misses(job))];
        let summary = Summary { job: (*job).to_owned(), day: None, tables };
        Layout::default().write(root.path(), &summary, &Outputs::of_this_process()).unwrap();
    }
    if jobs.len() > 1 {
        compact(root.path(), &Layout::default(), &Outputs::of_this_process()).unwrap();
    }
    let directory = Layout::default().directory(root.path(), "misses", None);
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let file = files.filter(|path| path.extension().is_some_and(|it| it == "parquet"));
    let file: Vec<PathBuf> = file.collect();
    assert_eq!(file.len(), 1);
    (root, file[0].clone())
}

/// True if a damaged file is noticed.
fn is_noticed(root: &Path, file: &Path, bytes: &[u8], what: &str) -> bool {
    fs::write(file, bytes).unwrap();
    let names_it = |found: Option<FleetError>| match found {
        None => false,
        Some(FleetError::Unusable { path, why }) => {
            assert!(path == file && !why.is_empty(), "{what}: {path:?}: {why}");
            true
        }
        Some(error) => panic!("{what}: {error:?}"),
    };
    // All columns are read, and counted without being read.
    let sql = "SELECT * FROM misses";
    let noticed = names_it(ask(root, &Layout::default(), sql).err());
    names_it(ask(root, &Layout::default(), "SELECT count(*) AS n FROM misses").err());
    // A second file, so that there is something to compact.
    let other = file.with_file_name("other.parquet");
    let (spare, sound) = lake(&["z"]);
    fs::copy(sound, &other).unwrap();
    drop(spare);
    let compacted = compact(root, &Layout::default(), &Outputs::of_this_process());
    let stopped = names_it(compacted.err());
    assert!(stopped || !noticed, "{what}: compacted what cannot be read");
    if stopped {
        assert_eq!(fs::read(file).unwrap(), bytes, "{what}: the file is as it was");
        assert!(other.exists(), "{what}");
    }
    // What was made of it is of no use to the next damage.
    for entry in fs::read_dir(file.parent().unwrap()).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    noticed
}

#[test]
fn files_that_are_cut_off_are_errors() {
    for jobs in [&["a"][..], &["a", "b", "c"]] {
        let (root, file) = lake(jobs);
        let whole = fs::read(&file).unwrap();
        let mut random = Random(7);
        for _ in 0..DAMAGES {
            let end = random.below(whole.len());
            let noticed = is_noticed(root.path(), &file, &whole[..end], &format!("cut at {end}"));
            assert!(noticed, "cut at {end}");
        }
    }
}

#[test]
fn flipped_bits_are_errors_or_other_values() {
    for jobs in [&["a"][..], &["a", "b", "c"]] {
        let (root, file) = lake(jobs);
        let whole = fs::read(&file).unwrap();
        let mut random = Random(11);
        let mut noticed = 0;
        for number in 0..DAMAGES {
            let mut bytes = whole.clone();
            // One bit, or some: of two damages, one is in the last third, where sizes are.
            for _ in 0..=random.below(4) {
                let third = bytes.len() / 3;
                let at = if number % 2 == 0 {
                    bytes.len() - 1 - random.below(third)
                } else {
                    random.below(bytes.len())
                };
                bytes[at] ^= 1 << random.below(8);
            }
            let what = format!("{} files, damage {number}", jobs.len());
            noticed += u64::from(is_noticed(root.path(), &file, &bytes, &what));
        }
        assert!(noticed > DAMAGES / 4, "{noticed}");
    }
}

/// Sizes of a page that a file declares, without having it.
#[test]
fn a_page_that_says_it_is_huge_is_refused() {
    let (root, file) = lake(&["a"]);
    let whole = fs::read(&file).unwrap();
    // The first page begins behind the magic: its kind, and the size that it has when it is unpacked.
    assert_eq!(whole[4..7], [0x15, 0, 0x15]);
    let end = 7 + whole[7..].iter().position(|byte| *byte < 0x80).unwrap() + 1;
    // A gigabyte, in zigzag.
    let huge = [0x80, 0x80, 0x80, 0x80, 0x08];
    fs::write(&file, [&whole[..7], &huge, &whole[end..]].concat()).unwrap();
    let found = ask(root.path(), &Layout::default(), "SELECT * FROM misses");
    match found {
        Err(FleetError::Unusable { why, .. }) => assert!(why.contains("is too large"), "{why}"),
        other => panic!("{:?}", other.err()),
    }
}
