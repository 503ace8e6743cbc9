//! Tables of paths that are known by construction.

use proctrace_findings::{Cell, ChartBody, Table};
use proctrace_overview::options::{Content, Options};
use proctrace_recording::Recording;
use proctrace_scenes::{MS, S, Scene, real};

use super::section;
use crate::analysis::Analysis;

const NANOSLEEP: i16 = 35;
const WAIT4: i16 = 61;

/// `sh -c './configure && make'` behind `env`, which only executes it in a child: configure runs 6 s, of
/// which it sleeps 1 s, then make starts two compilers at once, the later of which takes 2 s.
fn build() -> Recording {
    let mut scene = Scene::new(4, 100 * MS);
    scene.exec(0, 1, "/bin/env", (0, 0)).fork(40 * MS, 1, 2).exec(100 * MS, 2, "/bin/sh", (0, 0));
    scene.sleep(1, (100 * MS, 10 * S, 10 * S), WAIT4, 2);
    // The shell and its children.
    scene.fork(S, 2, 3).exec(S, 3, "/src/configure", (0, 0));
    scene.sleep(3, (2 * S, 3 * S, 3 * S), NANOSLEEP, 0).wait_for_cpu(3, 5 * S, 5500 * MS);
    scene.exit(7 * S, 3, (4500 * MS, 0)).sleep(2, (S, 7 * S, 7 * S), WAIT4, 3);
    scene.fork(7 * S, 2, 4).exec(7 * S, 4, "/bin/make", (0, 0));
    for compiler in [5, 6] {
        scene.fork(7500 * MS, 4, compiler).exec(7500 * MS, compiler, "/usr/libexec/cc1", (0, 0));
    }
    scene.exit(8 * S, 5, (500 * MS, 0)).exit(9500 * MS, 6, (2 * S, 0));
    scene.sleep(4, (7500 * MS, 8 * S, 8 * S), WAIT4, 5);
    scene.sleep(4, (8 * S, 9500 * MS, 9500 * MS), WAIT4, 6);
    scene.exit(9900 * MS, 4, (0, 0)).sleep(2, (7 * S, 9900 * MS, 9900 * MS), WAIT4, 4);
    scene.exit(10 * S, 2, (S, 0)).exit(10 * S, 1, (0, 0));
    scene.load(Some((10 * S, 0, 0)))
}

fn table<'a>(content: &'a Content, name: &str) -> &'a Table {
    content.tables.iter().find(|table| table.name == name).unwrap()
}

fn wholes(table: &Table, column: &str) -> Vec<u64> {
    let values = &table.named(column).unwrap().values;
    let whole = |row| match values.get(row) {
        Cell::Whole(number) => number,
        other => panic!("{other:?}"),
    };
    (0..table.height()).map(whole).collect()
}

fn texts<'a>(table: &'a Table, column: &str) -> Vec<&'a str> {
    let values = &table.named(column).unwrap().values;
    let text = |row| match values.get(row) {
        Cell::Text(text) => text,
        other => panic!("{other:?}"),
    };
    (0..table.height()).map(text).collect()
}

#[test]
fn phases_are_the_children_of_the_first_that_has_several() {
    let recording = build();
    let content = section(&Analysis::of(&recording), &Options::default());
    let phases = table(&content, "path_phases");
    assert_eq!(texts(phases, "phase"), ["env itself", "sh itself", "configure", "make"]);
    assert_eq!(wholes(phases, "path_ns"), [40 * MS, 1_060 * MS, 6 * S, 2_900 * MS]);
    assert_eq!(wholes(phases, "begin_ns"), [0, 40 * MS, S, 7 * S]);
    let of = |column| real(phases, "phase", "configure", column);
    assert_eq!(of("wall_percent"), Some(60.0));
    assert_eq!(of("path_waiting_ns"), Some(1e9));
    assert_eq!(of("path_waiting_for_cpu_ns"), Some(5e8));
    // configure uses 4.5 s in its 6 s, and the shell 1 s of CPU time in 10 s.
    assert!((of("cores_in_use").unwrap() - (4.5 / 6.0 + 0.1)).abs() < 0.02, "{phases:#?}");
    assert!((of("cores_idle").unwrap() - (4.0 - 4.5 / 6.0 - 0.1)).abs() < 0.02, "{phases:#?}");
}

#[test]
fn programs_and_parts_add_up_to_the_wall_time() {
    let recording = build();
    let content = section(&Analysis::of(&recording), &Options::default());
    for (name, column) in [
        ("path_phases", "path_ns"),
        ("path_programs", "path_ns"),
        ("path_categories", "path_ns"),
        ("path_stretches", "path_ns"),
        ("critical_path", "duration_ns"),
    ] {
        let sum: u64 = wholes(table(&content, name), column).iter().sum();
        assert_eq!(sum, recording.wall_ns(), "{name}");
    }
    let programs = table(&content, "path_programs");
    let of = |program, column| real(programs, "program", program, column);
    assert_eq!(of("cc1", "path_ns"), Some(2e9));
    assert_eq!((of("cc1", "times"), of("make", "times")), (Some(1.0), Some(2.0)));
    assert_eq!(of("configure", "path_running_ns"), Some(4.5e9));
    let stretches = table(&content, "path_stretches");
    // The shell is still env until its exec.
    let chain = ["env", "env", "sh", "configure", "make", "cc1", "make", "sh"];
    assert_eq!(texts(stretches, "program"), chain);
    let parts = table(&content, "critical_path");
    let what = texts(parts, "doing");
    assert!(
        what.contains(&"waiting for a timer") && what.contains(&"waiting for a CPU"),
        "{what:?}"
    );
}

#[test]
fn the_longest_parts_are_shown_in_order_of_time() {
    let recording = build();
    let content = section(&Analysis::of(&recording), &Options::default());
    let stretches = table(&content, "path_stretches");
    let shown = stretches.shown(2);
    let programs: Vec<&str> = shown.iter().map(|row| texts(stretches, "program")[*row]).collect();
    assert_eq!(programs, ["configure", "cc1"]);
}

#[test]
fn the_chart_shows_all_of_the_time() {
    let recording = build();
    let content = section(&Analysis::of(&recording), &Options::default());
    let ChartBody::Lines(lines) = &content.charts[0].body else { panic!("no lines") };
    for bin in 0..lines.x.len() {
        let sum: f64 = lines.series.iter().filter_map(|series| series.values[bin]).sum();
        assert!((sum - 100.0).abs() < 1e-9, "bin {bin}: {sum}");
    }
}

#[test]
fn findings_name_phases_and_what_was_waited_for() {
    let findings = Analysis::of(&build()).findings().critical_path.unwrap();
    let sum = findings.running_ns + findings.waiting_for_cpu_ns + findings.waiting_ns;
    assert_eq!(sum, findings.wall_ns);
    let phases: Vec<(&str, bool)> =
        findings.phases.iter().map(|phase| (&*phase.program, phase.is_command)).collect();
    assert_eq!(phases, [("configure", false), ("make", false), ("sh", true), ("env", true)]);
    let wait = &findings.waits[0];
    assert_eq!((wait.waits_for, &*wait.main_program, wait.waiting_ns), ("timer", "configure", S));
}

#[test]
fn without_waits_or_command_the_section_says_why_it_is_empty() {
    let recording = Scene::new(1, S).exit(S, 1, (0, 0)).load(Some((S, 0, 0)));
    let analysis = Analysis::of(&recording);
    assert_eq!(analysis.findings().critical_path, None);
    let known = section(&analysis, &Options::default()).only_known(recording.knows());
    assert!(known.charts.is_empty());
    for table in &known.tables {
        assert_eq!(table.height(), 0);
        assert!(table.notes[0].starts_with("Not known: who waited for whom"), "{table:#?}");
    }
    let mut scene = Scene::new(1, S);
    scene.sleep(1, (MS, 2 * MS, 2 * MS), NANOSLEEP, 0).exit(S, 1, (0, 0));
    scene.header().command.clear();
    let recording = scene.load(None);
    let content = section(&Analysis::of(&recording), &Options::default());
    for table in &content.only_known(recording.knows()).tables {
        assert_eq!((table.height(), table.notes.len()), (0, 1));
        assert!(table.notes[0].contains("No command was launched"), "{table:#?}");
    }
}
