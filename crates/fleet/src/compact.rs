//! Compacts a fleet: the small files of each directory become one, sorted by site and job.
//!
//! A crash at any moment loses nothing and doubles nothing: what is about to be done is in a journal
//! before anything is removed, and the next run carries it out (docs/decisions/0056).

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use polars::prelude::*;
use polars_io::parquet::write::{ParquetCompression, ParquetWriter};
use proctrace_analysis::TableSchema;
use rustix::fs::{FlockOperation, flock};

use crate::error::FleetError;
use crate::lake::{Layout, names};
use crate::schema::FLEET_TABLES;
use crate::table_file::{is_table, read_whole};
use crate::user::fingerprint;

/// Beginning of the names of compacted files.
const COMPACTED: &str = "compact-";
const LOCK: &str = ".compact.lock";
const JOURNAL: &str = ".compact.journal";
/// Rows that are read and skipped together.
const ROW_GROUP_ROWS: usize = 1 << 17;

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Directories in which there was something to do.
    pub directories: u64,
    /// Directories that another process compacts.
    pub busy: u64,
    /// Files that were put together.
    pub files: u64,
    /// Rows in the new files.
    pub rows: u64,
    /// Bytes of the new files.
    pub bytes: u64,
}

/// Compacts every directory of a fleet.
///
/// # Errors
/// If a file cannot be read or written; the directory is then as it was.
pub fn compact(root: &Path, layout: &Layout) -> Result<Compacted, FleetError> {
    let mut done = Compacted::default();
    for schema in FLEET_TABLES {
        for directory in layout.directories(root, schema.name)? {
            directory_of(&directory, schema, &mut done)?;
        }
    }
    Ok(done)
}

fn directory_of(
    directory: &Path,
    schema: &TableSchema,
    done: &mut Compacted,
) -> Result<(), FleetError> {
    let path = directory.join(LOCK);
    let lock = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
    let lock = lock.map_err(FleetError::file(&path))?;
    // It ends with the file, however the process ends.
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        done.busy += 1;
        return Ok(());
    }
    if let Some(journal) = Journal::read(directory)? {
        journal.carry_out(directory)?;
    }
    let names = names(directory)?;
    // Of runs that were killed before they had a journal. Only we, who have the lock, make such files.
    for left in names.iter().filter(|name| is_part(name)) {
        let path = directory.join(left);
        fs::remove_file(&path).map_err(FleetError::file(&path))?;
    }
    let files: Vec<String> = names.into_iter().filter(|name| is_table(name)).collect();
    let is_done = match &files[..] {
        [] => true,
        [one] => one.starts_with(COMPACTED),
        _ => false,
    };
    if is_done {
        return Ok(());
    }
    let (journal, rows) = put_together(directory, schema, files)?;
    journal.write(directory)?;
    journal.carry_out(directory)?;
    let path = directory.join(&journal.made);
    done.directories += 1;
    done.files += journal.replaced.len() as u64;
    done.rows += rows as u64;
    done.bytes += fs::metadata(&path).map_err(FleetError::file(&path))?.len();
    Ok(())
}

/// Writes a file with the rows of all others, under a name that nobody reads.
fn put_together(
    directory: &Path,
    schema: &TableSchema,
    mut files: Vec<String>,
) -> Result<(Journal, usize), FleetError> {
    // What arrived later replaces what was compacted before.
    files.sort_by_key(|name| (!name.starts_with(COMPACTED), name.clone()));
    let mut replaced = Vec::new();
    let mut frames = Vec::new();
    for name in files {
        let path = directory.join(&name);
        let file = File::open(&path).map_err(FleetError::file(&path))?;
        let version = version(&file.metadata().map_err(FleetError::file(&path))?);
        frames.push(read_whole(file, &path, schema)?);
        replaced.push((version, name));
    }
    let mut rows = latest(together(frames, directory)?, schema)?;
    let parts: Vec<String> =
        replaced.iter().map(|(version, name)| format!("{version} {name}")).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let made = format!("{COMPACTED}{}.parquet", fingerprint(&parts));
    let part = directory.join(part_of(&made));
    let file = File::create(&part).map_err(FleetError::file(&part))?;
    // Some hundred pieces of a few bytes each.
    let mut buffered = BufWriter::new(&file);
    ParquetWriter::new(&mut buffered)
        .with_compression(ParquetCompression::Zstd(None))
        .with_row_group_size(Some(ROW_GROUP_ROWS))
        .finish(&mut rows)?;
    buffered.flush().map_err(FleetError::file(&part))?;
    drop(buffered);
    file.sync_all().map_err(FleetError::file(&part))?;
    // Its name is on disk before the journal is, which has others removed in its favour.
    sync(directory)?;
    Ok((Journal { made, replaced }, rows.height()))
}

fn part_of(made: &str) -> String {
    format!(".{made}.part")
}

/// Whether a file is a compacted one that is not finished.
fn is_part(name: &str) -> bool {
    name.strip_prefix('.').is_some_and(|name| name.starts_with(COMPACTED))
        && name.ends_with(".part")
}

/// All rows, with all columns: those that some files lack are null there. Columns that only a later
/// version knows are kept.
fn together(frames: Vec<DataFrame>, directory: &Path) -> Result<DataFrame, FleetError> {
    let mut columns: Vec<(PlSmallStr, DataType)> = Vec::new();
    for frame in &frames {
        for column in frame.columns() {
            match columns.iter().find(|(name, _)| name == column.name()) {
                None => columns.push((column.name().clone(), column.dtype().clone())),
                Some((_, dtype)) if dtype == column.dtype() => {}
                Some((name, dtype)) => {
                    let why = format!("column {name} has the types {dtype} and {}", column.dtype());
                    return Err(FleetError::Unusable { path: directory.to_owned(), why });
                }
            }
        }
    }
    let mut all: Option<DataFrame> = None;
    for (file, frame) in frames.into_iter().enumerate() {
        let height = frame.height();
        let of = |(name, dtype): &(PlSmallStr, DataType)| match frame.column(name) {
            Ok(column) => column.clone(),
            Err(_) => Column::full_null(name.clone(), height, dtype),
        };
        let mut ordered: Vec<Column> = columns.iter().map(of).collect();
        let number = i64::try_from(file).unwrap_or(i64::MAX);
        ordered.push(Column::new_scalar(FILE.into(), Scalar::from(number), height));
        let frame = DataFrame::new(height, ordered)?;
        match &mut all {
            None => all = Some(frame),
            Some(all) => {
                all.vstack_mut_owned(frame)?;
            }
        }
    }
    Ok(all.unwrap_or_default())
}

/// The number of the file that a row is from.
const FILE: &str = " file";

/// Of each job the rows of the last file that has any, in order of site and job.
fn latest(mut rows: DataFrame, schema: &TableSchema) -> Result<DataFrame, FleetError> {
    rows.rechunk_mut_par();
    let mask: BooleanChunked = {
        let (jobs, files) = (rows.column("job")?.str()?, rows.column(FILE)?.i64()?);
        let mut last: HashMap<Option<&str>, i64> = HashMap::new();
        for (job, file) in jobs.iter().zip(files.iter()) {
            let last = last.entry(job).or_default();
            *last = (*last).max(file.unwrap_or(0));
        }
        let is_last = |(job, file): (Option<&str>, Option<i64>)| {
            job.is_none() || last.get(&job).copied() == file
        };
        jobs.iter().zip(files.iter()).map(is_last).collect()
    };
    let rows = rows.filter(&mask)?.drop(FILE)?;
    let by: Vec<PlSmallStr> = ["site", "job"].map(PlSmallStr::from_static).to_vec();
    debug_assert!(by.iter().all(|name| schema.column(name).is_some()));
    // Rows of a job stay in their order.
    Ok(rows.sort(by, SortMultipleOptions::default().with_maintain_order(true))?)
}

/// A compaction that is about to be done: the new file and those that it replaces, with their versions.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Journal {
    made: String,
    replaced: Vec<(String, String)>,
}

impl Journal {
    /// The journal of a directory, if there is one. It is written by a rename, so it is whole.
    fn read(directory: &Path) -> Result<Option<Self>, FleetError> {
        let path = directory.join(JOURNAL);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FleetError::File { path, source: error }),
        };
        let is_name = |name: &str| is_table(name) && !name.contains('/');
        let mut lines = text.lines();
        let made = lines.next().filter(|name| is_name(name) && name.starts_with(COMPACTED));
        let replaced = lines.map(|line| {
            let (version, name) = line.split_once(' ')?;
            is_name(name).then(|| (version.to_owned(), name.to_owned()))
        });
        match (made, replaced.collect()) {
            (Some(made), Some(replaced)) => Ok(Some(Self { made: made.to_owned(), replaced })),
            _ => Err(FleetError::Unusable { path, why: "it is no journal of compact".to_owned() }),
        }
    }

    fn write(&self, directory: &Path) -> Result<(), FleetError> {
        let path = directory.join(JOURNAL);
        let part = directory.join(format!("{JOURNAL}.part"));
        let mut text = format!("{}\n", self.made);
        for (version, name) in &self.replaced {
            text.push_str(&format!("{version} {name}\n"));
        }
        let written = File::create(&part)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&part, &path));
        written.map_err(FleetError::file(&path))?;
        sync(directory)
    }

    /// Can be repeated from any point at which it was interrupted.
    fn carry_out(&self, directory: &Path) -> Result<(), FleetError> {
        let (part, made) = (directory.join(part_of(&self.made)), directory.join(&self.made));
        if part.exists() {
            fs::rename(&part, &made).map_err(FleetError::file(&part))?;
            sync(directory)?;
        }
        if !made.exists() {
            let why = format!("it names {}, which does not exist; remove it", self.made);
            return Err(FleetError::Unusable { path: directory.join(JOURNAL), why });
        }
        for (version, name) in &self.replaced {
            retire(directory, name, version)?;
        }
        sync(directory)?;
        let path = directory.join(JOURNAL);
        fs::remove_file(&path).map_err(FleetError::file(&path))?;
        sync(directory)
    }
}

/// What tells a file from a later one of the same name: numbers of inodes are used again.
fn version(file: &fs::Metadata) -> String {
    format!("{}-{}-{}", file.ino(), file.mtime(), file.mtime_nsec())
}

/// Removes a file, unless a writer has put a later one in its place.
fn retire(directory: &Path, name: &str, is: &str) -> Result<(), FleetError> {
    let (path, aside) = (directory.join(name), directory.join(format!(".{name}.retired")));
    if !aside.exists() && fs::metadata(&path).is_ok_and(|found| version(&found) != is) {
        return Ok(());
    }
    // Moved away first: a writer can replace a file between the look at it and its removal.
    match fs::rename(&path, &aside) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(FleetError::File { path, source: error }),
        Ok(()) => {}
    }
    let found = match fs::metadata(&aside) {
        Ok(found) => version(&found),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(FleetError::File { path: aside, source: error }),
    };
    if found != is {
        // Fails if there is a still later one, which is then the one to keep.
        let _ = fs::hard_link(&aside, &path);
    }
    fs::remove_file(&aside).map_err(FleetError::file(&aside))
}

fn sync(directory: &Path) -> Result<(), FleetError> {
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(FleetError::file(directory))
}

/// Names of the files in a directory that hold rows, each row in one of them: without those that are
/// replaced already, though they are still there. `None` if a compaction was at work meanwhile.
///
/// Nobody reads a directory in one moment, so it is looked at twice, and its journal in between. A
/// compacted file that neither look shows was not there when the first one ended, and nothing is
/// removed before it is there. One that both show either has a journal, which says what it replaces,
/// or had replaced all before: then files of the first look cannot be opened, and the reader lists again.
pub(crate) fn current(directory: &Path) -> Result<Option<Vec<String>>, FleetError> {
    let tables = || -> Result<Vec<String>, FleetError> {
        Ok(names(directory)?.into_iter().filter(|name| is_table(name)).collect())
    };
    let mut found = tables()?;
    let journal = Journal::read(directory)?;
    let again = tables()?;
    let compacted = |name: &&String| name.starts_with(COMPACTED);
    if !found.iter().filter(compacted).eq(again.iter().filter(compacted)) {
        return Ok(None);
    }
    if let Some(journal) = journal.filter(|journal| found.contains(&journal.made)) {
        // A file that was put there since then is none of those that are replaced.
        let is_same = |(is, name): &(String, String)| {
            fs::metadata(directory.join(name)).is_ok_and(|found| version(&found) == *is)
        };
        let replaced = journal.replaced.into_iter().filter(is_same).map(|(_, name)| name);
        let replaced: BTreeSet<String> = replaced.collect();
        found.retain(|name| !replaced.contains(name));
    }
    Ok(Some(found))
}
