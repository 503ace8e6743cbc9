//! Groups of steps: in comparisons, in first budgets, in verdicts.

use crate::common::{metric, run};
use proctrace_findings::{Cell, Metric, Table, Unknown};
use proctrace_gate::{Diff, Fate, RunMetrics};
use proctrace_report::{Style, table_markdown, table_text};

/// A group of steps: its name, number, failures, longest wall time, sum of wall times, CPU time.
type Group<'a> = (&'a str, f64, f64, f64, f64, f64);

fn of_group((group, steps, failures, longest, wall, cpu): Group<'_>) -> Vec<Metric> {
    let figures = [
        ("step_runs", steps),
        ("step_failures", failures),
        ("step_longest_wall_seconds", longest),
        ("step_wall_seconds", wall),
        ("step_cpu_seconds", cpu),
        ("step_processes", steps * 3.0),
    ];
    figures.map(|(family, value)| metric(family, &[("group", group)], value)).into()
}

fn workflow(groups: &[Group<'_>]) -> RunMetrics {
    run("run", groups.iter().flat_map(|group| of_group(*group)).collect())
}

fn diff(before: &[RunMetrics], after: &[RunMetrics]) -> Diff {
    Diff::of(before, after).unwrap()
}

fn names(diff: &Diff) -> Vec<(&str, Option<Fate>)> {
    diff.steps.iter().map(|step| (&*step.group, step.fate)).collect()
}

fn texts(tables: &[Table]) -> String {
    let style = Style { rows: 20, ..Style::default() };
    tables.iter().map(|table| table_text(table, style)).collect::<Vec<_>>().join("\n")
}

fn example() -> Diff {
    let before = workflow(&[
        ("simulate-a-rather-long-name-of-a-group", 4.0, 0.0, 100.0, 380.0, 350.0),
        ("digi", 16.0, 0.0, 2.0, 30.0, 20.0),
        ("reco", 2.0, 0.0, 50.0, 90.0, 80.0),
        ("old", 3.0, 0.0, 1.0, 2.0, 1.0),
        ("same", 1.0, 0.0, 1.0, 1.0, 1.0),
    ]);
    let after = workflow(&[
        ("simulate-a-rather-long-name-of-a-group", 4.0, 0.0, 160.0, 560.0, 520.0),
        ("digi", 16.0, 2.0, 2.0, 30.0, 20.0),
        ("reco", 3.0, 0.0, 50.0, 140.0, 120.0),
        ("merge", 1.0, 0.0, 7.0, 7.0, 6.5),
        ("same", 1.0, 0.0, 1.0, 1.0, 1.0),
    ]);
    diff(&[before], &[after])
}

#[test]
fn the_largest_change_of_wall_time_is_first_and_what_is_the_same_is_left_out() {
    let diff = example();
    assert_eq!(
        names(&diff),
        [
            ("simulate-a-rather-long-name-of-a-group", None),
            ("reco", Some(Fate::Grew)),
            ("merge", Some(Fate::Appeared)),
            ("old", Some(Fate::Vanished)),
            ("digi", None)
        ]
    );
    let merge = &diff.steps[2];
    let change = |numbers: Option<proctrace_gate::Numbers>| numbers.and_then(|it| it.change);
    assert_eq!(
        [Some(merge.steps), merge.wall_seconds, merge.longest_wall_seconds, merge.cpu_seconds]
            .map(change),
        [Some(1.0), Some(7.0), Some(7.0), Some(6.5)]
    );
    assert_eq!(change(diff.steps[4].failures), Some(2.0));
    let json: serde_json::Value = serde_json::from_str(&diff.to_json().unwrap()).unwrap();
    assert_eq!(
        (&json["steps"][1]["group"], &json["steps"][1]["fate"]),
        (&"reco".into(), &"grew".into())
    );
    assert_eq!(json["steps"][1]["wall_seconds"]["after"]["centre"], 140.0);
    assert_eq!(json["steps"][0]["fate"], serde_json::Value::Null);
}

#[test]
fn groups_that_changed_are_tables_in_80_columns() {
    let text = texts(&example().tables()[1..]);
    assert_eq!(
        text,
        "\
Groups of steps that changed
  group                        steps  failed                 wall time  relative
  simulate-a…name-of-a-group       4       0  6 min 20 s -> 9 min 20 s     +47 %
  reco                        2 -> 3       0      90.0 s -> 2 min 20 s     +56 %
  merge                       0 -> 1       0             0 s -> 7.00 s         -
  old                         3 -> 0       0             2.00 s -> 0 s    -100 %
  digi                            16  0 -> 2                    30.0 s       0 %
  One run of each side: compare several to see what differs by chance.
  Wall time is the sum over the steps, which may overlap.

Longest step and CPU time of these groups
  group                                        longest                  CPU time
  simulate-a…name-of-a-group  1 min 40 s -> 2 min 40 s  5 min 50 s -> 8 min 40 s
  reco                                          50.0 s      80.0 s -> 2 min 00 s
  merge                                  0 s -> 7.00 s             0 s -> 6.50 s
  old                                    1.00 s -> 0 s             1.00 s -> 0 s
  digi                                          2.00 s                    20.0 s
"
    );
    let markdown: String =
        example().tables().iter().map(|table| table_markdown(table, usize::MAX)).collect();
    assert!(markdown.contains("| reco | 2 -&gt; 3 | 0 |"), "{markdown}");
}

#[test]
fn for_programs_every_figure_of_a_group_is_a_number() {
    let tables = example().tables_of_numbers();
    let table = tables.iter().find(|table| table.name == "diff_steps").unwrap();
    assert_eq!(tables.iter().filter(|table| table.name.starts_with("diff_step")).count(), 1);
    let cell = |name: &str, row| table.named(name).unwrap().values.get(row);
    assert_eq!(cell("fate", 2), Cell::Text("appeared"));
    assert_eq!(
        (cell("steps_before", 1), cell("steps_after", 1)),
        (Cell::Real(2.0), Cell::Real(3.0))
    );
    assert_eq!(cell("failures_after", 4), Cell::Real(2.0));
    assert_eq!(cell("wall_before_ns", 1), Cell::Whole(90_000_000_000));
    assert_eq!(cell("longest_wall_after_ns", 0), Cell::Whole(160_000_000_000));
    assert_eq!(cell("cpu_after_ns", 2), Cell::Whole(6_500_000_000));
    assert_eq!(cell("peak_pss_after_bytes", 0), Cell::Missing);
    assert_eq!(cell("certainty", 0), Cell::Text("n=1, no interval"));
}

#[test]
fn nothing_is_said_of_jobs_without_steps() {
    let run = run("run", vec![metric("total_processes", &[], 1.0)]);
    let diff = diff(std::slice::from_ref(&run), std::slice::from_ref(&run));
    assert!(diff.steps.is_empty());
    for tables in [diff.tables(), diff.tables_of_numbers()] {
        assert_eq!(tables.iter().map(|table| table.name).collect::<Vec<_>>(), ["diff"]);
    }
}

/// Runs of one group, whose times differ by these factors.
fn noisy(wall: f64, factors: [f64; 5]) -> Vec<RunMetrics> {
    factors.iter().map(|x| workflow(&[("sim", 1.0, 0.0, wall * x, wall * x, wall * x)])).collect()
}

#[test]
fn noise_of_several_runs_is_no_change() {
    let (one, other) = ([0.97, 1.0, 1.03, 1.01, 0.99], [1.02, 0.98, 1.0, 1.04, 0.97]);
    assert!(diff(&noisy(10.0, one), &noisy(10.0, other)).steps.is_empty());
    let slower = diff(&noisy(10.0, one), &noisy(12.0, other));
    assert_eq!(names(&slower), [("sim", None)]);
    let note = "Times and memory are means. A change counts if its 95 % interval excludes 0.";
    assert_eq!(slower.tables()[1].notes[0], note);
    // Of one run each, nothing is known about noise.
    assert_eq!(diff(&noisy(10.0, one)[..1], &noisy(10.0, other)[..1]).steps.len(), 1);
    // A group that only some runs have leaves no interval: what overlaps has not changed.
    let seldom = |seconds: [f64; 3]| -> Vec<RunMetrics> {
        let run = |seconds: f64| match seconds {
            0.0 => workflow(&[("retry", 1.0, 0.0, 1.0, 1.0, 1.0)]),
            _ => workflow(&[
                ("retry", 1.0, 0.0, 1.0, 1.0, 1.0),
                ("sim", 1.0, 0.0, seconds, seconds, seconds),
            ]),
        };
        seconds.map(run).into()
    };
    let of = |before, after| diff(&seldom(before), &seldom(after)).steps.len();
    assert_eq!(of([0.0, 9.0, 9.0], [0.0, 8.0, 7.0]), 0);
    assert_eq!(of([0.0, 9.0, 9.0], [19.0, 18.0, 17.0]), 1);
}

#[test]
fn a_peak_that_was_not_read_is_not_zero() {
    let with = |name: &str, peaks: [Option<f64>; 2]| {
        let mut of =
            workflow(&[("sim", 2.0, 0.0, 1.0, 1.0, 1.0), ("short", 1.0, 0.0, 1.0, 1.0, 1.0)]);
        of.name = name.into();
        for (group, peak) in ["sim", "short"].into_iter().zip(peaks) {
            of.metrics
                .metrics
                .extend(peak.map(|peak| metric("step_peak_pss_bytes", &[("group", group)], peak)));
        }
        of
    };
    // No reading fell into the second group before.
    let (before, after) = (with("a", [Some(1e9), None]), with("b", [Some(1.5e9), Some(2e8)]));
    let diff = diff(std::slice::from_ref(&before), &[after]);
    assert_eq!(names(&diff), [("sim", None)]);
    assert_eq!(diff.steps[0].peak_pss_bytes.unwrap().change, Some(5e8));
    let tables = diff.tables();
    let table = tables.iter().find(|table| table.name == "diff_step_memory").unwrap();
    assert_eq!(table.named("peak_pss").unwrap().values.get(0), Cell::Text("1.0 GB -> 1.5 GB"));
    // Without memory on one side, and with a new group.
    let mut without = workflow(&[("sim", 4.0, 0.0, 1.0, 1.0, 1.0)]);
    without.metrics.unknown = vec![Unknown::family("step_peak_pss_bytes", "no --memory".into())];
    let unknown = Diff::of(std::slice::from_ref(&before), &[without]).unwrap();
    assert!(unknown.steps.iter().all(|step| step.peak_pss_bytes.is_none()));
    let new = Diff::of(&[workflow(&[])], &[before]).unwrap();
    let peaks: Vec<_> =
        new.steps.iter().map(|it| it.peak_pss_bytes.and_then(|it| it.change)).collect();
    assert_eq!(peaks, [Some(1e9), None]);
}

#[test]
fn groups_of_a_side_that_does_not_know_its_steps_are_not_compared() {
    let known = workflow(&[("sim", 2.0, 0.0, 1.0, 1.0, 1.0)]);
    let mut unknown = run("log", vec![metric("total_processes", &[], 5.0)]);
    unknown.metrics.unknown = vec![Unknown::family("step_runs", "no arguments".into())];
    assert!(diff(std::slice::from_ref(&known), std::slice::from_ref(&unknown)).steps.is_empty());
    assert!(diff(&[unknown], &[known]).steps.is_empty());
}

#[test]
fn a_group_with_the_name_of_a_renamed_program_is_neither_new_nor_gone() {
    let with = |program: &str| {
        let mut of =
            workflow(&[(program, 2.0, 0.0, 1.0, 1.0, 1.0), ("other", 1.0, 0.0, 1.0, 1.0, 1.0)]);
        let programs = [("job.sh", 1.0), (program, 2.0), ("sed", 4.0)];
        let pairs = [("job.sh", program, 2.0), (program, "sed", 4.0)];
        let metrics = &mut of.metrics.metrics;
        metrics
            .extend(programs.map(|(name, n)| metric("command_processes", &[("command", name)], n)));
        metrics
            .extend(pairs.map(|(by, it, n)| metric("spawns", &[("parent", by), ("child", it)], n)));
        of
    };
    let diff = diff(&[with("make-table")], &[with("make-table-v")]);
    assert_eq!(diff.renames.len(), 1);
    assert!(diff.steps.is_empty(), "{:?}", diff.steps);
}
