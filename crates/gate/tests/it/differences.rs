//! The comparison of two sides: the before/after table, and what changed.

use crate::common::{job, metric, run};
use proctrace_findings::{Cell, ChartBody, Waterfall};
use proctrace_gate::{Diff, DiffError, Fate};

/// The numbers of ALICE's paper on its multicore workflow: 72.5 K processes became 38.3 K, commands
/// -86 %, O2 processes -23 %, threads -16 %, 106 minutes became 69.
#[test]
fn the_papers_table() {
    let side = |name: &str, figures: [f64; 5]| {
        let names = [
            "total_processes",
            "total_commands",
            "total_framework_processes",
            "total_threads",
            "wall_seconds",
        ];
        let figures = names.iter().zip(figures).map(|(name, value)| metric(name, &[], value));
        run(name, figures.collect())
    };
    let before = side("before", [72_500.0, 30_000.0, 1_000.0, 5_000.0, 6_360.0]);
    let after = side("after", [38_300.0, 4_200.0, 770.0, 4_200.0, 4_140.0]);
    let diff = Diff::of(std::slice::from_ref(&before), std::slice::from_ref(&after)).unwrap();
    let table = &diff.tables()[0];
    let column = |name: &str| -> Vec<String> {
        let values = &table.named(name).unwrap().values;
        (0..table.height())
            .map(|row| match values.get(row) {
                Cell::Text(text) => text.to_owned(),
                other => format!("{other:?}"),
            })
            .collect()
    };
    assert_eq!(
        column("figure"),
        ["processes", "commands", "framework processes", "threads", "wall time"]
    );
    assert_eq!(column("before"), ["72,500", "30,000", "1,000", "5,000", "1 h 46 min"]);
    assert_eq!(column("after"), ["38,300", "4,200", "770", "4,200", "1 h 09 min"]);
    assert_eq!(column("change")[..2], ["-34,200", "-25,800"]);
    assert_eq!(column("change_percent"), ["-47 %", "-86 %", "-23 %", "-16 %", "-35 %"]);
    assert_eq!(column("certainty"), ["n=1"; 5]);
    let sides = [(&before, 72_500.0), (&after, 38_300.0)].map(|(run, processes)| {
        let again = vec![metric("total_processes", &[], processes)];
        [run.clone(), crate::common::run("again", again)]
    });
    let several = Diff::of(&sides[0], &sides[1]).unwrap().tables().remove(0);
    assert_eq!(several.named("certainty").unwrap().values.get(0), Cell::Text("exact"));
    let numbers = &diff.tables_of_numbers()[0];
    let cell = |name: &str, row: usize| numbers.named(name).unwrap().values.get(row);
    assert_eq!((cell("unit", 0), cell("unit", 4)), (Cell::Text(""), Cell::Text("seconds")));
    assert_eq!(
        (cell("before", 0), cell("change", 0)),
        (Cell::Real(72_500.0), Cell::Real(-34_200.0))
    );
    assert_eq!(cell("change_percent", 2), Cell::Real(-23.0));
}

/// Two identical jobs, one of which had to share its CPUs with others.
#[test]
fn time_spent_waiting_for_a_cpu_explains_a_longer_wall() {
    let side = |name: &str, wall: f64, delay: Option<f64>| {
        let mut figures = vec![metric("wall_seconds", &[], wall)];
        figures.extend([metric("total_cpu_seconds", &[], 9.0)]);
        figures.extend(delay.map(|delay| metric("run_delay_seconds", &[], delay)));
        run(name, figures)
    };
    let quiet = side("quiet", 10.0, Some(1.0));
    let diff = Diff::of(std::slice::from_ref(&quiet), &[side("busy", 14.0, Some(9.0))]).unwrap();
    let labels: Vec<&str> = diff.rows.iter().map(|row| row.label).collect();
    assert_eq!(labels, ["CPU time", "waiting for a CPU", "wall time"]);
    let waiting = diff.row("run_delay_seconds").unwrap();
    assert_eq!(waiting.numbers.unwrap().change, Some(8.0));
    assert_eq!(waiting.worse, proctrace_findings::Worse::Higher);
    // Nothing is reported for a recording without this metric.
    let diff = Diff::of(&[quiet], &[side("older", 14.0, None)]).unwrap();
    let waiting = diff.row("run_delay_seconds").unwrap();
    assert_eq!((waiting.after, waiting.numbers), (None, None));
}

#[test]
fn a_job_without_a_framework_has_no_row_of_it() {
    let of = |framework: [f64; 2]| {
        let side = |framework: f64| {
            run(
                "run",
                vec![
                    metric("total_processes", &[], 5.0),
                    metric("total_threads", &[], 0.0),
                    metric("total_framework_processes", &[], framework),
                ],
            )
        };
        let diff = Diff::of(&[side(framework[0])], &[side(framework[1])]).unwrap();
        diff.rows.iter().map(|row| row.metric).collect::<Vec<_>>()
    };
    // A row of zeros is kept where the zero is informative.
    assert_eq!(of([0.0, 0.0]), ["total_processes", "total_threads"]);
    let all = ["total_processes", "total_framework_processes", "total_threads"];
    assert_eq!((of([0.0, 2.0]), of([2.0, 0.0])), (all.to_vec(), all.to_vec()));
}

#[test]
fn what_vanished_appeared_grew_and_shrank() {
    let with = |name: &str, commands: &[(&str, f64)]| {
        let total = commands.iter().map(|(_, n)| n).sum();
        let mut metrics = vec![metric("total_processes", &[], total)];
        metrics.extend(
            commands.iter().map(|(c, n)| metric("command_processes", &[("command", c)], *n)),
        );
        run(name, metrics)
    };
    let before = with("a", &[("sed", 100.0), ("awk", 7.0), ("ps", 5.0), ("sh", 2.0)]);
    let after = with("b", &[("sed", 40.0), ("tail", 9.0), ("ps", 6.0), ("sh", 2.0)]);
    let diff = Diff::of(&[before], &[after]).unwrap();
    let changes: Vec<(&str, Fate)> =
        diff.commands.iter().map(|c| (c.command.as_str(), c.fate)).collect();
    assert_eq!(
        changes,
        [
            ("sed", Fate::Shrank),
            ("tail", Fate::Appeared),
            ("awk", Fate::Vanished),
            ("ps", Fate::Grew)
        ]
    );
    for most in 0..6 {
        let waterfall = waterfall(&diff, most);
        let sum: f64 = waterfall.steps.iter().map(|step| step.change).sum();
        assert_eq!(waterfall.start.at + sum, waterfall.end.at);
        assert!(waterfall.steps.len() <= most + 1);
    }
    assert_eq!(waterfall(&diff, 1).steps[1].name, "all others");
    let table = &diff.tables()[1];
    assert_eq!(table.named("change").unwrap().values.get(1), Cell::Text("+9"));
    assert_eq!(table.named("change_percent").unwrap().values.get(1), Cell::Text("-"));
    let table = &diff.tables_of_numbers()[1];
    assert_eq!((table.name, table.height()), ("diff_commands", 4));
    assert_eq!(table.named("change").unwrap().values.get(0), Cell::Real(-60.0));
    assert_eq!(table.named("change_percent").unwrap().values.get(1), Cell::Missing);
}

#[test]
fn several_runs_give_times_an_interval() {
    let side = |cpu: f64| -> Vec<_> {
        [0.99, 1.0, 1.01, 1.0, 1.0].iter().map(|x| job("run", 10.0, 1.0, 2, cpu * x)).collect()
    };
    let diff = Diff::of(&side(4.0), &side(3.0)).unwrap();
    let interval =
        diff.row("total_cpu_seconds").unwrap().numbers.unwrap().interval_percent.unwrap();
    assert!(interval.low < -25.0 && -25.0 < interval.high, "{interval:?}");
    assert!(diff.row("total_processes").unwrap().numbers.unwrap().interval_percent.is_none());
    assert!(diff.commands.is_empty() && diff.spawns.is_empty());
    let mut other = job("run", 10.0, 1.0, 3, 4.0);
    other.metrics.doubts = vec!["2 records were lost".into()];
    let diff = Diff::of(&side(4.0), &[other]).unwrap();
    assert_eq!(diff.doubts, ["run cannot be trusted: 2 records were lost"]);
    assert_eq!(diff.directories[0].directory, "/opt/lib2");
    assert_eq!(diff.directories[0].fate, Fate::Appeared);
    assert_eq!(Diff::of(&[], &side(1.0)), Err(DiffError::NothingBefore));
}

#[test]
fn nothing_is_exact_of_a_recording_that_cannot_be_trusted() {
    let (before, mut after) = (job("before", 10.0, 1.0, 1, 1.0), job("after", 10.0, 2.0, 1, 1.0));
    after.metrics.doubts = vec!["the recording was cut short".into()];
    let diff = Diff::of(&[before], &[after]).unwrap();
    assert!(!diff.trusted);
    for table in diff.tables().iter().chain(&diff.tables_of_numbers()) {
        let values = &table.named("certainty").unwrap().values;
        assert!(table.height() > 0);
        for row in 0..table.height() {
            assert_eq!(values.get(row), Cell::Text("in doubt"), "{}", table.name);
        }
    }
    assert!(diff.tables()[0].notes.iter().any(|note| note.contains("cut short")));
}

fn waterfall(diff: &Diff, most: usize) -> Waterfall {
    match diff.waterfall(most).expect("processes are known on both sides").body {
        ChartBody::Waterfall(waterfall) => waterfall,
        other => panic!("{other:?}"),
    }
}

/// A run of `script`, which starts sed and `helper`; that starts awk.
fn scripted(script: &str, helper: &str, seds: f64) -> proctrace_gate::RunMetrics {
    let programs = [(script, 1.0), (helper, 2.0), ("sed", seds), ("awk", 2.0)];
    let count = programs.map(|(name, n)| metric("command_processes", &[("command", name)], n));
    let pairs = [(script, "sed", seds), (script, helper, 2.0), (helper, "awk", 2.0)];
    let spawns = pairs.map(|(by, it, n)| metric("spawns", &[("parent", by), ("child", it)], n));
    run("side", count.into_iter().chain(spawns).collect())
}

#[test]
fn a_renamed_script_has_not_vanished() {
    let before = [scripted("job.sh", "make-table", 5.0)];
    let diff = Diff::of(&before, &[scripted("calibrate.sh", "make-table-2", 5.0)]).unwrap();
    let names: Vec<_> = diff.renames.iter().map(|it| (&*it.before, &*it.after)).collect();
    assert_eq!(names, [("job.sh", "calibrate.sh"), ("make-table", "make-table-2")]);
    let processes = diff.renames[1].processes.unwrap();
    assert_eq!((processes.before.unwrap().centre, processes.after.centre), (2.0, 2.0));
    assert!(diff.commands.is_empty() && diff.spawns.is_empty(), "{diff:?}");
    let table = diff.tables().into_iter().find(|table| table.name == "diff_renames").unwrap();
    assert_eq!(table.named("after").unwrap().values.get(0), Cell::Text("calibrate.sh"));
    // What else changed is still seen, under the name after.
    let diff = Diff::of(&before, &[scripted("calibrate.sh", "make-table", 9.0)]).unwrap();
    assert_eq!(diff.commands.len(), 1);
    let spawn = &diff.spawns[0];
    assert_eq!((&*spawn.parent, &*spawn.child, spawn.fate), ("calibrate.sh", "sed", Fate::Grew));
}

#[test]
fn another_program_is_no_renamed_one() {
    let before = [scripted("job.sh", "make-table", 5.0)];
    // Neither a similar name nor the same ending.
    let diff = Diff::of(&before, &[scripted("job.sh", "genplot", 5.0)]).unwrap();
    assert!(diff.renames.is_empty(), "{:?}", diff.renames);
    assert_eq!(diff.commands.len(), 2);
    // Started by another program.
    let mut after = scripted("job.sh", "make-table-2", 5.0);
    for metric in &mut after.metrics.metrics {
        for (label, value) in &mut metric.labels {
            if label == "parent" && value == "job.sh" {
                "sed".clone_into(value);
            }
        }
    }
    let diff = Diff::of(&before, &[after]).unwrap();
    assert!(diff.renames.is_empty(), "{:?}", diff.renames);
    // Both are still there.
    let both = Diff::of(&before, &before).unwrap();
    assert!(both.renames.is_empty());
}
