//! Failed look-ups by where was searched.

use polars::prelude::*;
use proctrace_findings::DirectoryMisses;
use proctrace_wire::Family;

use crate::error::AnalysisError;
use crate::overview::sums::wholes;
use crate::recording::Recording;
use crate::recording::names::{errno, text};
use crate::recording::process::Miss;

/// By directory, call and errno, the most frequent first; only those of calls that the recording knows.
pub(crate) fn by_directory(recording: &Recording) -> Result<Vec<DirectoryMisses>, AnalysisError> {
    let known: Vec<bool> =
        Family::ALL.iter().map(|family| recording.knows.knows_family(family.name())).collect();
    let is_known = |miss: &Miss| known.get(usize::from(miss.family)).copied().unwrap_or(true);
    let rows: Vec<_> = recording.misses.iter().filter(|(miss, _)| is_known(miss)).collect();
    let numbers = |of: fn(&Miss) -> u32| rows.iter().map(|(miss, _)| of(miss)).collect::<Vec<_>>();
    // A row is one process's misses of one directory by one family of calls with one errno.
    let frame = df!(
        "directory" => numbers(|miss| miss.directory),
        "errno" => numbers(|miss| u32::from(miss.errno)),
        "family" => numbers(|miss| u32::from(miss.family)),
        "count" => rows.iter().map(|(_, count)| u64::from(**count)).collect::<Vec<u64>>(),
    )?;
    let table = frame
        .lazy()
        .group_by(["directory", "errno", "family"].map(col))
        .agg([col("count").sum(), len().alias("processes")])
        .sort_by_exprs(
            ["count", "directory", "errno", "family"].map(col),
            SortMultipleOptions::default().with_order_descending_multi([true, false, false, false]),
        )
        .collect()?;
    let of = |name: &str| wholes(&table, name);
    let (directory, errnos, family) = (of("directory")?, of("errno")?, of("family")?);
    let (count, processes) = (of("count")?, of("processes")?);
    let at =
        |number: Option<u64>| usize::try_from(number.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    Ok((0..table.height())
        .map(|row| DirectoryMisses {
            directory: recording
                .directories
                .get(at(directory[row]))
                .map_or_else(String::new, |d| text(d)),
            family: family_name(at(family[row])).to_owned(),
            errno: errno(u16::try_from(errnos[row].unwrap_or(0)).unwrap_or(0)),
            count: count[row].unwrap_or(0),
            processes: processes[row].unwrap_or(0),
        })
        .collect())
}

/// The name of a family of calls by its place in `Family::ALL`.
fn family_name(at: usize) -> &'static str {
    Family::ALL.get(at).map_or("unknown", |family| family.name())
}

/// Failed look-ups of one path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PathMisses {
    pub(crate) path: String,
    pub(crate) family: String,
    pub(crate) errno: String,
    pub(crate) count: u64,
}

/// By path, the most frequent first; None where the paths were not counted.
pub(crate) fn by_path(_: &Recording) -> Option<Vec<PathMisses>> {
    None
}
