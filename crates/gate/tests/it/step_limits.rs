//! Budgets of groups of steps: limits, patterns, first budgets, and the causes of verdicts.

use crate::common::{metric, run};
use proctrace_findings::{Metric, Unknown};
use proctrace_gate::{
    Budget, CauseKind, Code, Effect, Options, Report, RunMetrics, Verdict, gate, init, render,
};

/// A workflow of make: its groups of steps, each with one program.
#[derive(Clone)]
struct Workflow(Vec<Group>);

/// A group: its steps, processes of each, CPU time and wall time of each, and failures.
#[derive(Clone)]
struct Group {
    name: &'static str,
    steps: f64,
    processes: f64,
    cpu: f64,
    wall: f64,
    failures: f64,
}

impl Workflow {
    fn example() -> Self {
        let group = |name, steps, cpu, wall| {
            let (processes, failures) = (2.0, 0.0);
            Group { name, steps, processes, cpu, wall, failures }
        };
        Self(vec![group("sim", 4.0, 8.0, 10.0), group("reco", 2.0, 3.0, 4.0)])
    }

    /// With one group otherwise.
    fn with(&self, name: &str, change: impl Fn(&mut Group)) -> Self {
        let mut groups = self.clone();
        groups.0.iter_mut().filter(|group| group.name == name).for_each(change);
        groups
    }

    fn run(&self) -> RunMetrics {
        let all = &self.0;
        let program = |group: &Group| format!("{}.exe", group.name);
        let processes = |group: &Group| group.steps * group.processes;
        let cpu = |group: &Group| group.steps * group.cpu;
        let total: f64 = all.iter().map(processes).sum();
        let mut metrics = vec![
            metric("total_processes", &[], total + 1.0),
            metric("total_execs", &[], total + 1.0),
            metric("total_cpu_seconds", &[], all.iter().map(cpu).sum()),
            metric("wall_seconds", &[], all.iter().map(|it| it.wall).sum()),
            metric("execs", &[("command", "make")], 1.0),
            metric("command_processes", &[("command", "make")], 1.0),
        ];
        for it in all {
            let program = program(it);
            let command = [("command", &*program)];
            metrics.push(metric("execs", &command, processes(it)));
            metrics.push(metric("command_processes", &command, processes(it)));
            metrics.push(metric("command_cpu_seconds", &command, cpu(it)));
            let pair = [("parent", "make"), ("child", &*program)];
            metrics.push(metric("spawns", &pair, processes(it)));
            metrics.extend(of_group(it, processes(it), cpu(it)));
        }
        run("run", metrics)
    }
}

fn of_group(it: &Group, processes: f64, cpu: f64) -> Vec<Metric> {
    let figures = [
        ("step_runs", it.steps),
        ("step_failures", it.failures),
        ("step_wall_seconds", it.steps * it.wall),
        ("step_longest_wall_seconds", it.wall),
        ("step_cpu_seconds", cpu),
        ("step_processes", processes),
    ];
    figures.map(|(family, value)| metric(family, &[("group", it.name)], value)).into()
}

fn judged(budget: &str, before: &[Workflow], after: &Workflow) -> Report {
    let budget = Budget::parse("gate.toml", budget).unwrap_or_else(|e| panic!("{e}\n{budget}"));
    let before: Vec<RunMetrics> = before.iter().map(Workflow::run).collect();
    gate(&budget, &before, &[after.run()], Options::default()).unwrap()
}

/// The causes of the findings, and the metric of the first finding of each.
fn causes(report: &Report) -> Vec<(&str, &str)> {
    let first = |at: usize| report.findings[at].metric.as_deref().unwrap_or("-");
    report.groups.iter().map(|group| (first(group.findings[0]), cause_of(group))).collect()
}

fn cause_of(group: &proctrace_gate::Group) -> &str {
    group.cause.as_ref().map_or("-", |cause| &cause.text)
}

#[test]
fn groups_are_selected_by_name_and_by_pattern() {
    let budget = r#"[limits]
'step_cpu_seconds{group="*"}' = "|10"
'step_cpu_seconds{group="s*"}' = "|40"
'step_longest_wall_seconds{group="reco"}' = "|3"
'step_*{group="none"}' = { absolute = 1, unmatched = "allow" }
"#;
    let report = judged(budget, &[], &Workflow::example());
    let metrics: Vec<_> = report.findings.iter().filter_map(|it| it.metric.as_deref()).collect();
    assert_eq!(metrics, [r#"step_longest_wall_seconds{group="reco"}"#]);
    let mut checks: Vec<_> = report.checks.iter().map(|it| (&*it.metric, it.rule)).collect();
    checks.sort_unstable();
    assert_eq!(
        checks,
        [
            (r#"step_cpu_seconds{group="reco"}"#, 0),
            (r#"step_cpu_seconds{group="sim"}"#, 1),
            (r#"step_longest_wall_seconds{group="reco"}"#, 2)
        ]
    );
}

const ALL: &str = r#"[limits]
total_processes = "0%"
'step_runs{group="*"}' = "0%"
'step_processes{group="*"}' = "0%"
'step_failures{group="*"}' = "0%"
'step_cpu_seconds{group="*"}' = "|33"
'step_longest_wall_seconds{group="*"}' = "|11"
'command_cpu_seconds{command="*"}' = "|33"
"#;

#[test]
fn more_steps_of_a_group_are_one_finding_that_names_it() {
    let before = [Workflow::example()];
    let after = before[0].with("reco", |group| group.steps = 5.0);
    let report = judged(ALL, &before, &after);
    assert_eq!(
        causes(&report),
        [(
            r#"step_processes{group="reco"}"#,
            "+6 reco.exe, started by make in steps of reco: 13 -> 19 processes"
        )]
    );
    assert_eq!(report.groups[0].findings.len(), 3);
    let cause = report.groups[0].cause.as_ref().unwrap();
    assert_eq!((cause.kind, cause.step.as_deref()), (CauseKind::Starts, Some("reco")));
}

#[test]
fn a_program_that_computes_more_is_named_with_its_steps() {
    let before = [Workflow::example()];
    let after = before[0].with("sim", |group| (group.cpu, group.wall) = (9.0, 11.5));
    let report = judged(ALL, &before, &after);
    assert_eq!(
        causes(&report),
        [(
            r#"command_cpu_seconds{command="sim.exe"}"#,
            "program sim.exe in steps of sim: CPU time 32.0 s -> 36.0 s (per process 4.00 s -> \
             4.50 s)"
        )]
    );
    assert_eq!(report.groups[0].findings.len(), 3);
    let text = render::text(&report, 10).replace("\n  ", " ");
    assert!(text.contains(r#"step_longest_wall_seconds{group="sim"}"#), "{text}");
}

#[test]
fn steps_that_wait_longer_or_fail_are_a_cause_of_their_own() {
    let before = [Workflow::example()];
    let after =
        before[0].with("sim", |group| group.wall = 20.0).with("reco", |group| group.failures = 1.0);
    let report = judged(ALL, &before, &after);
    assert_eq!(
        causes(&report),
        [
            (r#"step_failures{group="reco"}"#, "steps of reco: failures 0 -> 1"),
            (
                r#"step_longest_wall_seconds{group="sim"}"#,
                "steps of sim: longest wall time 10.0 s -> 20.0 s"
            )
        ]
    );
    let cause = report.groups[1].cause.as_ref().unwrap();
    assert_eq!((cause.kind, cause.program.as_deref()), (CauseKind::Steps, None));
    assert_eq!(cause.step.as_deref(), Some("sim"));
    let json: serde_json::Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    let cause = &json["groups"][1]["cause"];
    assert_eq!((&cause["kind"], &cause["step"]), (&"steps".into(), &"sim".into()));
    let text = render::text(&report, 10);
    let line = "PT002 failure: steps of sim: longest wall time 10.0 s -> 20.0 s";
    assert!(text.contains(line), "{text}");
}

/// Figures by group alone, as of a job whose programs are the same.
#[test]
fn a_new_group_is_told_and_so_is_one_that_is_gone() {
    let only_steps = |groups: &[(&str, f64)]| {
        let of = |(group, steps): &(&str, f64)| metric("step_runs", &[("group", group)], *steps);
        run("run", groups.iter().map(of).collect())
    };
    let budget = Budget::parse("gate.toml", "[limits]\n'step_runs{group=\"*\"}' = '0%'\n").unwrap();
    let (before, after) = (only_steps(&[("sim", 4.0)]), only_steps(&[("sim", 6.0), ("qc", 3.0)]));
    let of = |before: &RunMetrics, after: &RunMetrics| {
        let (before, after) = (std::slice::from_ref(before), std::slice::from_ref(after));
        gate(&budget, before, after, Options::default()).unwrap()
    };
    let report = of(&before, &after);
    assert_eq!(
        causes(&report),
        [
            (r#"step_runs{group="qc"}"#, "+3 steps of qc, a new group: 0 -> 3"),
            (r#"step_runs{group="sim"}"#, "+2 steps of sim: 4 -> 6")
        ]
    );
    // Fewer steps are no increase, unless fewer are worse.
    assert_eq!(of(&after, &before).verdict, Verdict::Pass);
    let fewer = "[limits]\n'step_runs{group=\"*\"}' = { relative_percent = 0, worse = 'lower' }\n";
    let fewer = Budget::parse("gate.toml", fewer).unwrap();
    let report = gate(&fewer, &[after], &[before], Options::default()).unwrap();
    let messages: Vec<&str> = report.findings.iter().map(|it| &*it.message).collect();
    assert_eq!(
        messages,
        [
            "3 before, 0 after (-3, -100 %); at least 3 is allowed (the baseline)",
            "6 before, 4 after (-2, -33 %); at least 6 is allowed (the baseline)"
        ]
    );
    // Without a baseline, a rule about a group that is gone matches nothing.
    let gone = Budget::parse("gate.toml", "[limits]\n'step_runs{group=\"sim\"}' = '|4'\n").unwrap();
    let report = gate(&gone, &[], &[only_steps(&[("qc", 3.0)])], Options::default()).unwrap();
    assert_eq!(report.findings[0].code, Code::Unmatched);
    assert!(report.findings[0].message.contains("it no longer occurs"));
}

/// What a baseline without any steps had cannot be told from what was removed from it.
#[test]
fn steps_that_a_baseline_lacks_altogether_have_no_cause() {
    let mut before = Workflow::example().run();
    before.metrics.metrics.retain(|metric| !metric.name.starts_with("step_"));
    let budget =
        Budget::parse("gate.toml", "[limits]\n'step_failures{group=\"*\"}' = '|0'\n").unwrap();
    let after = Workflow::example().with("sim", |group| group.failures = 1.0);
    let report = gate(&budget, &[before], &[after.run()], Options::default()).unwrap();
    assert_eq!(causes(&report), [(r#"step_failures{group="sim"}"#, "-")]);
}

#[test]
fn steps_that_a_recording_does_not_know_are_refused() {
    let mut after = run("log", vec![metric("total_processes", &[], 3.0)]);
    after.metrics.unknown = vec![Unknown::family("step_runs", "arguments are not recorded".into())];
    let budget =
        Budget::parse("gate.toml", "[limits]\n'step_runs{group=\"sim\"}' = '|4'\n").unwrap();
    let report = gate(&budget, &[], &[after], Options::default()).unwrap();
    assert_eq!((report.findings[0].code, report.verdict), (Code::Unknown, Verdict::Refused));
    assert!(report.findings[0].message.contains("arguments are not recorded"));
}

#[test]
fn a_total_has_the_groups_of_steps_among_what_changed_with_it() {
    let before = [Workflow::example()];
    let after = before[0].with("sim", |group| (group.cpu, group.wall) = (9.0, 12.0));
    let budget = "[limits]\ntotal_cpu_seconds = '|39'\nwall_seconds = '|15'\n";
    let report = judged(budget, &before, &after);
    let of = |metric: &str| -> Vec<&str> {
        let finding = report.findings.iter().find(|it| it.metric.as_deref() == Some(metric));
        finding.unwrap().contributors.iter().map(|it| &*it.metric).collect()
    };
    assert!(of("total_cpu_seconds").contains(&r#"step_cpu_seconds{group="sim"}"#));
    assert_eq!(of("wall_seconds")[0], r#"step_longest_wall_seconds{group="sim"}"#);
}

fn line<'t>(text: &'t str, begin: &str) -> &'t str {
    text.lines().find(|line| line.starts_with(begin)).unwrap_or_else(|| panic!("{begin}: {text}"))
}

#[test]
fn a_first_budget_limits_groups_of_steps() {
    let good = Workflow::example();
    let runs = [1.0, 1.02, 1.01].map(|x| good.with("sim", |group| group.cpu = 8.0 * x));
    let text = init(&runs.each_ref().map(Workflow::run)).0;
    let any =
        r#"'step_runs{group="*"}' = { absolute = 0, severity = "warn", unmatched = "allow" }"#;
    assert_eq!(line(&text, r#"'step_runs{group="*"}'"#), any);
    assert_eq!(line(&text, r#"'step_runs{group="sim"}'"#), r#"'step_runs{group="sim"}' = "|4""#);
    let none = r#"'step_failures{group="*"}' = { absolute = 0, unmatched = "allow" }"#;
    assert_eq!(line(&text, "'step_failures"), none);
    assert!(text.contains("# No step may fail, of whichever group.\n"), "{text}");
    let cpu = line(&text, r#"'step_cpu_seconds{group="sim"}'"#);
    assert!(cpu.contains("min_runs = 3, inconclusive = \"warn\""), "{cpu}");
    assert!(cpu.ends_with("# 32.0 s to 32.6 s in 3 runs"), "{cpu}");
    let wall =
        "# 'step_longest_wall_seconds{group=\"sim\"}' = { absolute = 20, severity = \"warn\" }";
    assert_eq!(line(&text, "# 'step_longest"), wall);
    // It is kept by what it was made of, and not by others.
    let findings = |after: &Workflow| {
        let found = judged(&text, &[], after).findings;
        found.into_iter().map(|it| (it.code, it.effect, it.metric)).collect::<Vec<_>>()
    };
    for run in &runs {
        assert_eq!(findings(run), []);
    }
    let failed = findings(&good.with("sim", |group| group.failures = 1.0));
    let metric = Some(r#"step_failures{group="sim"}"#.to_owned());
    assert_eq!(failed, [(Code::Absolute, Effect::Fails, metric)]);
    let mut new = good.clone();
    new.0.push(Group {
        name: "qc",
        steps: 2.0,
        processes: 0.0,
        cpu: 0.01,
        wall: 1.0,
        failures: 0.0,
    });
    let found = findings(&new);
    let metric = Some(r#"step_runs{group="qc"}"#.to_owned());
    assert_eq!(found, [(Code::Absolute, Effect::Warns, metric)]);
    let gone = Workflow(good.0[..1].to_vec());
    let found = judged(&text, &[], &gone).findings;
    let told =
        |it: &proctrace_gate::Finding| it.message.contains(r#"matches step_runs{group="reco"}"#);
    assert!(found.iter().any(told), "{found:#?}");
}

#[test]
fn a_first_budget_lets_fail_what_failed_and_has_room_for_many_groups() {
    let names: Vec<String> = (0..30).map(|n| format!("group {}", char::from(b'A' + n))).collect();
    let of = |runs: f64, failures: f64| -> RunMetrics {
        let figures = names.iter().flat_map(|name| {
            let group = [("group", &**name)];
            [metric("step_runs", &group, runs), metric("step_failures", &group, failures)]
        });
        run("run", figures.collect())
    };
    let good = [of(40.0, 2.0)];
    let text = init(&good).0;
    let unlisted = r#"'step_runs{group="*"}' = { absolute = 80, unmatched = "allow" }"#;
    assert_eq!(line(&text, r#"'step_runs{group="*"}'"#), unlisted);
    let failures = r#"'step_failures{group="*"}' = { absolute = 2, unmatched = "allow" }"#;
    assert_eq!(line(&text, "'step_failures"), failures);
    assert_eq!(text.lines().filter(|line| line.starts_with("'step_runs")).count(), 21);
    let budget = Budget::parse("gate.toml", &text).unwrap();
    let report = gate(&budget, &[], &good, Options::default()).unwrap();
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    // A job without steps has no rules about them.
    let text = init(&[run("run", vec![metric("total_execs", &[], 3.0)])]).0;
    assert!(!text.contains("step"), "{text}");
}
