//! Opened files: which are opened again and again, what the job needs, and who reads what another wrote.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use proctrace_classify::names::directory;
use proctrace_findings::{Table, Unit, count, counted};
use proctrace_overview::options::{Content, Options};
use proctrace_recording::Recording;
use proctrace_recording::opened::{FileUse, Modes, OpenedFiles};
use proctrace_wire::Quantity;
use proctrace_wire::escape::to_text;

use crate::analysis::Analysis;

/// Programs that read a file are paired with those that wrote it; of a file with more users, the pairs of
/// the first of each kind are counted.
const USERS_MAX: usize = 1000;

pub(crate) fn section(analysis: &Analysis<'_>, _: &Options) -> Content {
    let recording = analysis.recording;
    let tables = vec![files(recording), directories(recording), flows(recording)];
    Content { tables, charts: Vec::new() }
}

/// A file.
struct File<'a> {
    path: &'a [u8],
    opens: u64,
    processes: u64,
    modes: Modes,
    /// True if the job wrote it before it read it first: it is then no input.
    made: bool,
}

fn all(recording: &Recording) -> Vec<File<'_>> {
    let file = |(path, uses)| {
        let uses: &[FileUse] = uses;
        let first = |of: fn(&FileUse) -> bool| {
            uses.iter().filter(|known| of(known)).map(|known| known.first_ns).min()
        };
        let written = first(|known| known.modes.write);
        let read = first(|known| known.modes.read && !known.modes.write);
        File {
            path,
            opens: uses.iter().map(|known| u64::from(known.opens)).sum(),
            processes: uses.len() as u64,
            modes: uses.iter().fold(Modes::default(), |modes, known| modes.and(known.modes)),
            made: written.is_some_and(|written| read.is_none_or(|read| written <= read)),
        }
    };
    let opened = recording.opened();
    let mut files: Vec<_> = opened.into_iter().flat_map(OpenedFiles::by_file).map(file).collect();
    files.sort_by(|a, b| b.opens.cmp(&a.opens).then_with(|| a.path.cmp(b.path)));
    files
}

fn files(recording: &Recording) -> Table {
    let rows = all(recording);
    let of = || rows.iter();
    let mode = |file: &File<'_>| match (file.modes.read, file.modes.write) {
        (true, true) => "both",
        (false, true) => "write",
        _ => "read",
    };
    let table = Table::new("opened_files", "Opened files")
        .rows_need(&[Quantity::OpenedFiles])
        .whole("opens", "opens", Unit::Count, of().map(|file| file.opens))
        .whole("processes", "processes", Unit::Count, of().map(|file| file.processes))
        .text("mode", "for", of().map(mode))
        .text("origin", "origin", of().map(|file| if file.made { "job" } else { "before" }))
        .text("path", "path", of().map(|file| to_text(file.path)))
        .note(format!(
            "{} of {}. The path is that of the file, symbolic links resolved.",
            counted(recording.opened().map_or(0, |opened| opened.opens), "open", "opens"),
            counted(rows.len() as u64, "different file", "different files")
        ))
        .note(
            "origin: job if it was opened for writing before it was read, otherwise before, which \
             the job needs.",
        );
    match recording.opened().map_or(0, |opened| opened.others) {
        0 => table,
        others => table.note(format!(
            "Without {}: the path is not known, or there are more than a million files.",
            counted(others, "open", "opens")
        )),
    }
}

/// Table of the files that the job needs, by directory.
fn directories(recording: &Recording) -> Table {
    let mut directories: BTreeMap<&[u8], (u64, u64)> = BTreeMap::new();
    let files = all(recording);
    for file in files.iter().filter(|file| !file.made) {
        let (files, opens) = directories.entry(directory(file.path)).or_default();
        *files += 1;
        *opens += file.opens;
    }
    let mut rows: Vec<_> = directories.into_iter().collect();
    rows.sort_by_key(|(path, (files, _))| (Reverse(*files), *path));
    let of = || rows.iter();
    let needed = rows.iter().map(|(_, (files, _))| files).sum::<u64>();
    Table::new("needed_files", "Files that the job needs, by directory")
        .rows_need(&[Quantity::OpenedFiles])
        .whole("files", "files", Unit::Count, of().map(|(_, (files, _))| *files))
        .whole("opens", "opens", Unit::Count, of().map(|(_, (_, opens))| *opens))
        .text("directory", "directory", of().map(|(path, _)| to_text(path)))
        .note(format!(
            "{}, directories that are listed among them: what a container image or a prefetch must \
             contain, besides the executables themselves. Each is in the table opened_files.",
            counted(needed, "file existed before", "files existed before")
        ))
}

/// Table of programs that read what another one wrote.
fn flows(recording: &Recording) -> Table {
    #[derive(Default)]
    struct Flow<'a> {
        files: u64,
        example: &'a [u8],
    }
    let name = |process: u32| {
        let process = &recording.processes()[process as usize];
        recording.program_of(process).name.as_str()
    };
    let mut flows: BTreeMap<(&str, &str), Flow<'_>> = BTreeMap::new();
    for (path, uses) in recording.opened().into_iter().flat_map(OpenedFiles::by_file) {
        let users = |of: fn(&&FileUse) -> bool| uses.iter().filter(of).take(USERS_MAX);
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for writer in users(|known| known.modes.write) {
            for reader in users(|known| known.modes.read) {
                if reader.process != writer.process && reader.last_ns >= writer.first_ns {
                    pairs.push((name(writer.process), name(reader.process)));
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        for pair in pairs {
            let flow = flows.entry(pair).or_default();
            flow.files += 1;
            if flow.example.is_empty() {
                flow.example = path;
            }
        }
    }
    let mut rows: Vec<_> = flows.into_iter().collect();
    rows.sort_by_key(|(pair, flow)| (Reverse(flow.files), *pair));
    let of = || rows.iter();
    Table::new("file_flows", "Programs that read what another process wrote")
.rows_need(&[Quantity::Forks, Quantity::Execs, Quantity::OpenedFiles])
        .whole("files", "files", Unit::Count, of().map(|(_, flow)| flow.files))
        .text("writer", "written by", of().map(|((writer, _), _)| *writer))
        .text("reader", "read by", of().map(|((_, reader), _)| *reader))
        .text("example", "example", of().map(|(_, flow)| to_text(flow.example)))
        .note(format!(
            "n = {}. Both are the programs that these processes ran last; pipes and sockets are not \
             files that are opened.",
            count(rows.len() as u64)
        ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MS, S, Scene};

    const WRITE: u32 = 0o1101;

    /// Task 1 makes a file that task 2 reads twice; both read one that was there before.
    fn scene() -> Recording {
        let mut scene = Scene::new(1, 100 * MS);
        scene
            .fork(10 * MS, 1, 2)
            .exec(11 * MS, 2, "/bin/cc", (0, 0))
            .open(5 * MS, 1, 1, "/work/made.h", WRITE)
            .open(20 * MS, 2, 2, "/work/made.h", 0)
            .open_again(21 * MS, 2, 2)
            .open(6 * MS, 1, 3, "/usr/include/stdio.h", 0)
            .open_again(22 * MS, 2, 3)
            .exit(S, 2, (0, 0))
            .exit(S, 1, (0, 0));
        scene.load(None)
    }

    #[test]
    fn files_are_counted_by_opens_and_known_by_their_origin() {
        let recording = scene();
        let row = |file: &File<'_>| {
            let path = String::from_utf8(file.path.to_vec()).unwrap();
            (path, file.opens, file.processes, file.made)
        };
        let rows: Vec<_> = all(&recording).iter().map(row).collect();
        let expected = [
            ("/work/made.h".to_owned(), 3, 2, true),
            ("/usr/include/stdio.h".to_owned(), 2, 2, false),
        ];
        assert_eq!(rows, expected);
        let needed = directories(&recording);
        assert_eq!(needed.height(), 1);
        let flows = flows(&recording);
        assert_eq!(flows.height(), 1);
    }
}
