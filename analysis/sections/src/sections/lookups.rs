//! Failed look-ups: by directory, by program, and by path.

use std::cmp::Reverse;

use proctrace_findings::{Category, Figure, Table, Unit, counted};
use proctrace_overview::lookups::by_path;
use proctrace_overview::options::{Content, Options};
use proctrace_recording::Recording;
use proctrace_wire::Quantity;

use crate::analysis::Analysis;
use crate::shares::share_percent;

pub(crate) fn section(analysis: &Analysis<'_>, _: &Options) -> Content {
    let recording = analysis.recording;
    let tables = vec![directories(analysis), programs(analysis.categories()), paths(recording)];
    Content { tables, charts: Vec::new() }
}

/// Adds a note about calls that were not recorded: the others are known individually.
fn with_unknown(table: Table, recording: &Recording) -> Table {
    match recording.knows().why_not(&proctrace_wire::Quantity::LOOKUPS) {
        Some(why) => table.note(format!("Not known: {why}.")),
        None => table,
    }
}

fn directories(analysis: &Analysis<'_>) -> Table {
    let rows = analysis.lookups();
    let of = || rows.iter();
    let table = Table::new("lookups", "Failed look-ups by directory")
        .rows_need(&[])
        .whole("count", "failed", Unit::Count, of().map(|row| row.count))
        .whole("processes", "processes", Unit::Count, of().map(|row| row.processes))
        .text("family", "call", of().map(|row| &*row.family))
        .text("errno", "errno", of().map(|row| &*row.errno))
        .text("directory", "directory", of().map(|row| &*row.directory));
    let no_links = analysis.summary().lookups_of_no_link.filter(|no_links| *no_links > 0);
    let table = match no_links {
        Some(no_links) => table.note(format!(
            "Without {} of existing paths that are not links (EINVAL), which realpath(3) causes.",
            counted(no_links, "readlink", "readlinks")
        )),
        None => table,
    };
    with_unknown(table, analysis.recording)
}

/// Table of programs with failed look-ups, most failures first.
fn programs(all: &[Category]) -> Table {
    let failed = |program: &Category| program.lookups_failed.unwrap_or(0);
    let mut rows: Vec<&Category> = all.iter().filter(|program| failed(program) > 0).collect();
    rows.sort_by_key(|program| Reverse(failed(program)));
    let sum = rows.iter().map(|program| failed(program)).fold(0, u64::saturating_add);
    let of = || rows.iter();
    let category = |program: &&Category| match &*program.group {
        "" => "other".to_owned(),
        group => group.to_owned(),
    };
    Table::new("lookup_programs", "Failed look-ups by program")
        .rows_need(&Quantity::LOOKUPS_OF_PROGRAMS)
        .whole("failed_lookups", "failed", Unit::Count, of().map(|program| program.lookups_failed))
        .needs(Figure::FailedLookups.needs())
        .real(
            "failed_lookups_percent",
            "of all",
            Unit::Percent,
            of().map(|program| share_percent(failed(program), sum)),
        )
        .real(
            "failed_lookups_per_process",
            "per process",
            Unit::Count,
            of().map(|program| {
                let processes = program.processes.filter(|processes| *processes > 0)?;
                Some(failed(program) as f64 / processes as f64)
            }),
        )
        .whole("processes", "processes", Unit::Count, of().map(|program| program.processes))
        .whole("execs", "execs", Unit::Count, of().map(|program| program.execs))
        .text("category", "category", of().map(category))
        .text("program", "program", of().map(|program| &*program.name))
        .note(format!(
            "Counted under the program that the process ran last: if a program executes another, \
             its own look-ups count for that one. {} in total.",
            counted(sum, "failed look-up", "failed look-ups")
        ))
}

/// The individual paths.
fn paths(recording: &Recording) -> Table {
    let (rows, others) = by_path(recording);
    let all = rows.iter().map(|row| row.count).fold(others, u64::saturating_add);
    let all = recording.knows().some(&proctrace_wire::Quantity::LOOKUPS, all);
    let of = || rows.iter();
    let table = Table::new("lookup_paths", "Failed look-ups by path")
        .rows_need(&[])
        .whole("count", "failed", Unit::Count, of().map(|row| row.count))
        .real(
            "count_percent",
            "of all",
            Unit::Percent,
            of().map(|row| share_percent(row.count, all?)),
        )
        .text("family", "call", of().map(|row| &*row.family))
        .text("errno", "errno", of().map(|row| &*row.errno))
        .text("path", "path", of().map(|row| &*row.path));
    let table = match others {
        0 => table,
        _ => table.note(format!(
            "Without {} of further paths: at most about a million paths are counted individually.",
            counted(others, "failed look-up", "failed look-ups")
        )),
    };
    with_unknown(table, recording)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MS, S, Scene, real};
    use proctrace_wire::Call;

    #[test]
    fn look_ups_are_counted_by_where_and_by_whom() {
        let mut scene = Scene::new(1, S);
        scene.exec(0, 1, "/bin/make", (0, 0)).open_failed(MS, 1, "/lib/a.so");
        for child in [2, 3] {
            scene.fork(MS, 1, child).exec(MS, child, "/bin/sed", (0, 0));
            scene.open_failed(2 * MS, child, "/lib/b.so").exit(3 * MS, child, (0, 0));
        }
        scene.look_up_failed(3 * MS, 1, Call::Newfstatat, "/lib/c.so");
        let recording = scene.exit(S, 1, (0, 0)).load(None);
        let content = section(&Analysis::of(&recording), &Options::default());
        let [directories, programs, paths] = &content.tables[..] else {
            panic!("not three tables")
        };
        let of = |call: &str, column: &str| real(directories, "family", call, column);
        assert_eq!((of("open", "count"), of("open", "processes")), (Some(3.0), Some(3.0)));
        assert_eq!(of("stat", "count"), Some(1.0));
        let of = |program: &str, column: &str| real(programs, "program", program, column);
        assert_eq!(of("sed", "failed_lookups"), Some(2.0));
        assert_eq!(of("sed", "failed_lookups_per_process"), Some(1.0));
        assert_eq!(of("make", "failed_lookups_percent"), Some(50.0));
        let of = |path: &str| real(paths, "path", path, "count");
        assert_eq!(
            (of("/lib/a.so"), of("/lib/b.so"), of("/lib/c.so")),
            (Some(1.0), Some(2.0), Some(1.0))
        );
    }
}
