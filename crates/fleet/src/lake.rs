//! Places of the files of a fleet: a tree of directories, by table and by day.

use std::fmt;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use proctrace_outputs::{Access, Directory, OutputError, Outputs};

use crate::error::FleetError;
use crate::summary::Summary;
use crate::write::encode;

/// Name that engines take for a partition of which the value is null.
const NO_DAY: &str = "__HIVE_DEFAULT_PARTITION__";

/// The shape of paths below the root of a lake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    components: Vec<String>,
}

/// Error of a text that is no layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no layout: {1}")]
pub struct LayoutError(String, &'static str);

const TABLE: &str = "{table}";
const DAY: &str = "{day}";
/// Parts of a day, for trees like YYYY/MM/DD, and where they are in it.
const PARTS: [(&str, std::ops::Range<usize>); 3] =
    [("{year}", 0..4), ("{month}", 5..7), ("{mday}", 8..10)];

impl Default for Layout {
    /// Partitions as Hive names them, which DuckDB and Spark recognise.
    fn default() -> Self {
        Self { components: vec![format!("table={TABLE}"), format!("day={DAY}")] }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.components.join("/"))
    }
}

impl FromStr for Layout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let wrong = |why| Err(LayoutError(text.to_owned(), why));
        if text.matches(TABLE).count() != 1 {
            return wrong("{table} must occur once");
        }
        let components: Vec<String> = text.split('/').map(str::to_owned).collect();
        for component in &components {
            if matches!(&**component, "" | "." | "..") || component.starts_with('.') {
                return wrong("a component is empty or begins with a dot");
            }
            if component.contains(TABLE) && placeholders(component) > 1 {
                return wrong("{table} must not share a component with another placeholder");
            }
            let mut rest = component.clone();
            for name in [TABLE, DAY].into_iter().chain(PARTS.iter().map(|(name, _)| *name)) {
                rest = rest.replace(name, "");
            }
            if rest.contains(['{', '}', '*']) {
                return wrong("the placeholders are {table}, {day}, {year}, {month} and {mday}");
            }
        }
        Ok(Self { components })
    }
}

fn placeholders(component: &str) -> usize {
    component.matches('{').count()
}

impl Layout {
    /// The directory for a table and a day.
    pub fn directory(&self, root: &Path, table: &str, day: Option<&str>) -> PathBuf {
        let day = day.filter(|day| crate::day::is_day(day));
        let filled = self.components.iter().map(|component| {
            let mut filled = component.replace(TABLE, table).replace(DAY, day.unwrap_or(NO_DAY));
            for (name, part) in PARTS {
                filled = filled.replace(name, day.map_or(NO_DAY, |day| &day[part]));
            }
            filled
        });
        filled.fold(root.to_owned(), |path, component| path.join(component))
    }

    /// All directories with files of a table, in order.
    ///
    /// # Errors
    /// If a directory cannot be read.
    pub fn directories(&self, root: &Path, table: &str) -> Result<Vec<PathBuf>, FleetError> {
        let mut found = vec![root.to_owned()];
        for component in &self.components {
            let component = component.replace(TABLE, table);
            let mut next = Vec::new();
            for directory in found {
                if placeholders(&component) == 0 {
                    next.push(directory.join(&component));
                } else {
                    next.extend(matching(&directory, &component)?);
                }
            }
            next.retain(|path| path.is_dir());
            next.sort();
            found = next;
        }
        Ok(found)
    }

    /// Writes the files of a summary for whom `outputs` says: returns their paths and sizes. That of the first table, which
    /// lists the jobs, comes last: a job that is listed has all its tables.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(
        &self,
        root: &Path,
        summary: &Summary,
        outputs: &Outputs,
    ) -> Result<Vec<(PathBuf, usize)>, FleetError> {
        let mut written = Vec::new();
        for (table, bytes) in encode(summary).into_iter().rev() {
            let directory = self.directory(root, table, summary.day.as_deref());
            let name = format!("{}.parquet", summary.job);
            let path = directory.join(&name);
            let place = below(root, &directory, outputs).map_err(FleetError::file(&directory))?;
            place.write(&name, Access::Umask, &bytes).map_err(FleetError::file(&path))?;
            written.push((path, bytes.len()));
        }
        Ok(written)
    }
}

/// Creates the directory of a fleet, unless it exists: only its owner may look into it.
///
/// # Errors
/// If it cannot be created.
pub fn create_lake(root: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(root)
}

/// A directory in a fleet, which is created with those above it. New ones may be used by whom the fleet itself may be, not
/// as the umask says, which is that of whoever is the first to write.
fn below(root: &Path, directory: &Path, outputs: &Outputs) -> Result<Directory, OutputError> {
    let lake = outputs.create_directory(root, Access::Owner)?;
    let mode = lake.mode()?;
    lake.create_below(directory.strip_prefix(root).unwrap_or(directory), Access::Mode(mode))
}

/// The entries of a directory that a component with placeholders stands for.
fn matching(directory: &Path, component: &str) -> Result<Vec<PathBuf>, FleetError> {
    // What is before the first and behind the last placeholder has to be the same.
    let (before, _) = component.split_once('{').unwrap_or((component, ""));
    let (_, behind) = component.rsplit_once('}').unwrap_or(("", component));
    let mut found = Vec::new();
    for entry in names(directory)? {
        let fits = entry.len() >= before.len() + behind.len();
        if fits && !entry.starts_with('.') && entry.starts_with(before) && entry.ends_with(behind) {
            found.push(directory.join(entry));
        }
    }
    Ok(found)
}

/// The names in a directory, in order; those that are not UTF-8 are not ours.
pub(crate) fn names(directory: &Path) -> Result<Vec<String>, FleetError> {
    let entries = std::fs::read_dir(directory).map_err(FleetError::file(directory))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(FleetError::file(directory))?;
        names.extend(entry.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_found_where_it_was_put() {
        for text in [
            "table={table}/day={day}",
            "{table}/{year}/{month}/{mday}",
            "raw/{table}",
            "d{day}x/{table}",
            "{year}-{month}/{table}",
        ] {
            let layout: Layout = text.parse().expect(text);
            assert_eq!(layout.to_string(), text);
            let root = tempfile::tempdir().expect("a directory");
            let mut made = Vec::new();
            for day in [Some("2026-11-22"), Some("2026-12-23"), None] {
                let directory = layout.directory(root.path(), "jobs", day);
                std::fs::create_dir_all(&directory).expect("a directory");
                made.push(directory);
                let other = layout.directory(root.path(), "misses", day);
                std::fs::create_dir_all(other).expect("a directory");
            }
            made.sort();
            made.dedup();
            assert_eq!(
                layout.directories(root.path(), "jobs").expect("directories"),
                made,
                "{text}"
            );
        }
        let default = Layout::default().directory(Path::new("/lake"), "jobs", Some("2026-11-23"));
        assert_eq!(default, Path::new("/lake/table=jobs/day=2026-11-23"));
    }

    #[test]
    fn what_leaves_the_tree_is_refused() {
        for wrong in
            ["", "{day}", "../{table}", "{table}//x", "/{table}", "{table}/{user}", "{table}{day}"]
        {
            assert!(wrong.parse::<Layout>().is_err(), "{wrong}");
        }
        let hostile = Layout::default().directory(Path::new("/lake"), "jobs", Some("../../../etc"));
        assert_eq!(hostile, Path::new("/lake/table=jobs/day=__HIVE_DEFAULT_PARTITION__"));
    }
}
