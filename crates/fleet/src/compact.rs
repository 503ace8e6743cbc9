//! Compacts a fleet: the small files of each directory become one, sorted by site and job.
//!
//! A crash at any moment loses nothing and doubles nothing: what is about to be done is in a journal
//! before anything is removed, and the next run carries it out (docs/decisions/0056).

use std::collections::{BTreeSet, HashMap};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use polars::prelude::*;
use polars_io::parquet::write::{ParquetCompression, ParquetWriter};
use proctrace_analysis::TableSchema;
use proctrace_outputs::{
    Access, Directory, Failure, Found, Kind, OutputError, Outputs, is_part as is_part_of,
};
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
/// Longer than a journal of all files that a directory can have.
const JOURNAL_BYTES_MAX: u64 = 256 << 20;
/// Rows that are read and skipped together.
const ROW_GROUP_ROWS: usize = 1 << 17;

/// Counts of what was done.
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

/// Compacts every directory of a fleet, for whom `outputs` says.
///
/// # Errors
/// If a file cannot be read or written; the directory is then as it was.
pub fn compact(root: &Path, layout: &Layout, outputs: &Outputs) -> Result<Compacted, FleetError> {
    let mut done = Compacted::default();
    for schema in FLEET_TABLES {
        for directory in layout.directories(root, schema.name)? {
            let directory = LakeDirectory::open(&directory, outputs)?;
            directory_of(&directory, schema, &mut done)?;
        }
    }
    Ok(done)
}

/// A directory of a lake, in which nothing is looked up but by its descriptor and single names: others may write to a
/// shared lake.
struct LakeDirectory {
    directory: Directory,
    /// User who owns the directory, and so may remove and replace all that is in it.
    owner: u32,
}

impl LakeDirectory {
    fn open(path: &Path, outputs: &Outputs) -> Result<Self, FleetError> {
        let opened = || {
            let directory = outputs.directory(path)?;
            Ok::<_, OutputError>(Self { owner: directory.owner()?, directory })
        };
        opened().map_err(FleetError::file(path))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn look(&self, name: &str) -> Result<Option<Found>, FleetError> {
        self.directory.look(name).map_err(FleetError::file(self.path(name)))
    }

    /// Names in order; those that are not UTF-8 are not ours.
    fn names(&self) -> Result<Vec<String>, FleetError> {
        let names = self.directory.names().map_err(FleetError::file(self.directory.path()))?;
        let mut names: Vec<String> =
            names.into_iter().filter_map(|name| name.into_string().ok()).collect();
        names.sort();
        Ok(names)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), FleetError> {
        self.directory.rename(from, to).map_err(FleetError::file(self.path(from)))
    }

    fn remove(&self, name: &str) -> Result<(), FleetError> {
        self.directory.remove(name).map_err(FleetError::file(self.path(name)))
    }

    fn sync(&self) -> Result<(), FleetError> {
        self.directory.sync().map_err(FleetError::file(self.directory.path()))
    }

    /// Refuses what somebody else has put there: files are removed because a journal says so.
    fn refuse_others(&self, name: &str, found: &Found) -> Result<(), FleetError> {
        let why = match found.kind {
            Kind::File if self.directory.outputs().trusts(found.uid) => return Ok(()),
            Kind::File if found.uid == self.owner => return Ok(()),
            Kind::File => format!(
                "it belongs to user {}, and not to who compacts or to the owner of the directory; \
                 remove it, or let user {0} compact",
                found.uid
            ),
            _ => "it is no file".to_owned(),
        };
        Err(FleetError::Unusable { path: self.path(name), why })
    }
}

fn directory_of(
    place: &LakeDirectory,
    schema: &TableSchema,
    done: &mut Compacted,
) -> Result<(), FleetError> {
    // Others may have made it: it is locked, and never written to.
    let lock = place.directory.open_or_create(LOCK, Access::Umask);
    let lock = lock.map_err(FleetError::file(place.path(LOCK)))?;
    // It ends with the file, however the process ends.
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        done.busy += 1;
        return Ok(());
    }
    if let Some(found) = place.look(JOURNAL)? {
        place.refuse_others(JOURNAL, &found)?;
        if let Some(journal) = Journal::read(&place.directory)? {
            journal.carry_out(place)?;
        }
    }
    let names = place.names()?;
    // Of runs that were killed before they had a journal. Only we, who have the lock, make such files.
    for left in names.iter().filter(|name| is_part(name)) {
        place.remove(left)?;
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
    let (journal, rows) = put_together(place, schema, files)?;
    journal.write(place)?;
    journal.carry_out(place)?;
    done.directories += 1;
    done.files += journal.replaced.len() as u64;
    done.rows += rows as u64;
    done.bytes += place.look(&journal.made)?.map_or(0, |made| made.len_bytes);
    Ok(())
}

/// Writes a file with the rows of all others, under a name that nobody reads.
fn put_together(
    place: &LakeDirectory,
    schema: &TableSchema,
    mut files: Vec<String>,
) -> Result<(Journal, usize), FleetError> {
    // What arrived later replaces what was compacted before.
    files.sort_by_key(|name| (!name.starts_with(COMPACTED), name.clone()));
    let mut replaced = Vec::new();
    let mut frames = Vec::new();
    for name in files {
        let path = place.path(&name);
        let file = place.directory.open_to_read(&name).map_err(FleetError::file(&path))?;
        let version = Found::of_file(&file).map_err(FleetError::file(&path))?;
        let version = self::version(&version);
        frames.push(read_whole(file, &path, schema)?);
        replaced.push((version, name));
    }
    let mut rows = latest(together(frames, place.directory.path())?, schema)?;
    let parts: Vec<String> =
        replaced.iter().map(|(version, name)| format!("{version} {name}")).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let made = format!("{COMPACTED}{}.parquet", fingerprint(&parts));
    // Nothing has this name, which the journal implies: those that were left are removed.
    let part = place.path(&part_of(&made));
    let file = place.directory.create_new(part_of(&made), Access::Umask);
    let file = file.map_err(FleetError::file(&part))?;
    // Some hundred pieces of a few bytes each.
    let failure = Failure::default();
    let mut buffered = BufWriter::new(failure.of(&file));
    let finished = ParquetWriter::new(&mut buffered)
        .with_compression(ParquetCompression::Zstd(None))
        .with_row_group_size(Some(ROW_GROUP_ROWS))
        .finish(&mut rows);
    // The format would only say that it could not be written.
    failure.take().map_or(Ok(()), Err).map_err(FleetError::file(&part))?;
    finished?;
    buffered.flush().map_err(FleetError::file(&part))?;
    drop(buffered);
    file.sync_all().map_err(FleetError::file(&part))?;
    // Its name is on disk before the journal is, which has others removed in its favour.
    place.sync()?;
    Ok((Journal { made, replaced }, rows.height()))
}

fn part_of(made: &str) -> String {
    format!(".{made}.part")
}

/// True if a file is a compacted one that is not finished, or a journal.
fn is_part(name: &str) -> bool {
    if is_part_of(name.as_ref(), JOURNAL.as_ref()) {
        return true;
    }
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

/// Rows of each job from the last file that has any, in order of site and job.
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
    fn read(directory: &Directory) -> Result<Option<Self>, FleetError> {
        let path = directory.path().join(JOURNAL);
        let unusable = |why: &str| FleetError::Unusable { path: path.clone(), why: why.to_owned() };
        let text = match directory.read_text(JOURNAL, JOURNAL_BYTES_MAX) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(None),
            Err(OutputError::NoFile(what)) => return Err(unusable(&format!("it is a {what}"))),
            Err(error) => return Err(FleetError::file(&path)(error)),
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
            _ => Err(unusable("it is no journal of compact")),
        }
    }

    fn write(&self, place: &LakeDirectory) -> Result<(), FleetError> {
        let mut text = format!("{}\n", self.made);
        for (version, name) in &self.replaced {
            text.push_str(&format!("{version} {name}\n"));
        }
        let written = place.directory.write(JOURNAL, Access::Umask, text.as_bytes());
        written.map_err(FleetError::file(place.path(JOURNAL)))?;
        place.sync()
    }

    /// Carries the journal out; can be repeated from any point at which it was interrupted.
    fn carry_out(&self, place: &LakeDirectory) -> Result<(), FleetError> {
        let part = part_of(&self.made);
        if let Some(found) = place.look(&part)? {
            place.refuse_others(&part, &found)?;
            place.rename(&part, &self.made)?;
            place.sync()?;
        }
        match place.look(&self.made)? {
            Some(found) => place.refuse_others(&self.made, &found)?,
            None => {
                let why = format!("it names {}, which does not exist; remove it", self.made);
                return Err(FleetError::Unusable { path: place.path(JOURNAL), why });
            }
        }
        for (version, name) in &self.replaced {
            retire(place, name, version)?;
        }
        place.sync()?;
        place.remove(JOURNAL)?;
        place.sync()
    }
}

/// Text that tells a file from a later one of the same name: numbers of inodes are used again.
fn version(file: &Found) -> String {
    format!("{}-{}-{}", file.inode, file.modified.0, file.modified.1)
}

/// Removes a file, unless a writer has put a later one in its place.
fn retire(place: &LakeDirectory, name: &str, is: &str) -> Result<(), FleetError> {
    let aside = format!(".{name}.retired");
    let is_other = |found: Option<Found>| found.is_some_and(|found| version(&found) != is);
    if place.look(&aside)?.is_none() && is_other(place.look(name)?) {
        return Ok(());
    }
    // Moved away first: a writer can replace a file between the look at it and its removal.
    match place.directory.rename(name, &aside) {
        Err(OutputError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
        moved => moved.map_err(FleetError::file(place.path(name)))?,
    }
    let Some(found) = place.look(&aside)? else { return Ok(()) };
    if version(&found) != is {
        // Fails if there is a still later one, which is then the one to keep.
        let _ = place.directory.hard_link(&aside, name);
    }
    place.remove(&aside)
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
    // Whoever has written it: it only says which rows are there twice.
    let open = Directory::to_read(directory);
    let open = open.map_err(FleetError::file(directory))?;
    let journal = Journal::read(&open)?;
    let again = tables()?;
    let compacted = |name: &&String| name.starts_with(COMPACTED);
    if !found.iter().filter(compacted).eq(again.iter().filter(compacted)) {
        return Ok(None);
    }
    if let Some(journal) = journal.filter(|journal| found.contains(&journal.made)) {
        // A file that was put there since then is none of those that are replaced.
        let is_same = |(is, name): &(String, String)| matches!(open.look(name), Ok(Some(found)) if version(&found) == *is);
        let replaced = journal.replaced.into_iter().filter(is_same).map(|(_, name)| name);
        let replaced: BTreeSet<String> = replaced.collect();
        found.retain(|name| !replaced.contains(name));
    }
    Ok(Some(found))
}
