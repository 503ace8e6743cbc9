//! Limits that are exceeded for the same reason are one finding, which names the reason; none is lost.

use crate::common::{metric, run};
use proctrace_findings::{Advice, Advised, Gain, Metric};
use proctrace_gate::{
    Budget, CauseKind, Effect, Group, Options, Report, RunMetrics, gate, init, render,
};

/// A spawner, a program, its processes and its execs.
type Started = (&'static str, &'static str, f64, f64);

struct Job {
    programs: Vec<Started>,
    /// Threads and CPU time of a program.
    threads: Vec<(&'static str, f64)>,
    failed: Vec<(&'static str, f64)>,
    cpu_seconds: Vec<(&'static str, f64)>,
    /// Failed look-ups of each process, and their directory.
    directories: Vec<(&'static str, f64)>,
}

impl Job {
    /// A script with some steps, each of which starts sed in a subshell.
    fn of(seds: f64) -> Self {
        Self {
            programs: vec![
                ("", "build.sh", 1.0, 1.0),
                ("build.sh", "build.sh", seds, 0.0),
                ("build.sh", "sed", seds, seds),
                ("build.sh", "pool", 10.0, 10.0),
                ("monitor", "ps", 5.0, 5.0),
                ("build.sh", "monitor", 1.0, 1.0),
            ],
            threads: vec![("pool", 80.0)],
            failed: Vec::new(),
            cpu_seconds: vec![("pool", 1.0), ("sed", seds / 100.0), ("build.sh", 0.1)],
            directories: vec![("/opt/lib", 3.0)],
        }
    }

    fn run(&self) -> RunMetrics {
        let sum = |of: fn(&Started) -> f64| -> f64 { self.programs.iter().map(of).sum() };
        let (processes, execs) = (sum(|one| one.2), sum(|one| one.3));
        let threads: f64 = self.threads.iter().map(|one| one.1).sum();
        let cpu: f64 = self.cpu_seconds.iter().map(|one| one.1).sum();
        let each: f64 = self.directories.iter().map(|one| one.1).sum();
        let mut metrics = vec![
            metric("total_processes", &[], processes),
            metric("total_execs", &[], execs),
            metric("total_threads", &[], threads),
            metric("total_tasks", &[], processes + threads),
            metric("total_commands", &[], execs - 2.0),
            metric("total_failed_lookups", &[], execs * each),
            metric("total_cpu_seconds", &[], cpu),
            metric("total_failed", &[], self.failed.iter().map(|one| one.1).sum()),
            metric("failed_lookups", &[("kind", "open")], execs * each),
        ];
        let mut names: Vec<&str> = self.programs.iter().map(|one| one.1).collect();
        names.dedup();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let own = |of: fn(&Started) -> f64| -> f64 {
                self.programs.iter().filter(|one| one.1 == name).map(of).sum()
            };
            let (processes, execs) = (own(|one| one.2), own(|one| one.3));
            metrics.push(metric("execs", &[("command", name)], execs));
            metrics.push(metric("command_processes", &[("command", name)], processes));
            metrics.push(metric("command_failed_lookups", &[("command", name)], execs * each));
        }
        for (parent, child, processes, _) in self.programs.iter().filter(|one| !one.0.is_empty()) {
            metrics.push(metric("spawns", &[("parent", parent), ("child", child)], *processes));
        }
        let of = |family: &str, (name, value): &(&'static str, f64)| -> Metric {
            metric(family, &[("command", *name)], *value)
        };
        metrics.extend(self.threads.iter().map(|one| of("command_threads", one)));
        metrics.extend(self.failed.iter().map(|one| of("failed_processes", one)));
        metrics.extend(self.cpu_seconds.iter().map(|one| of("command_cpu_seconds", one)));
        for (directory, lookups) in &self.directories {
            let labels = [("directory", *directory), ("kind", "open")];
            metrics.push(metric("directory_failed_lookups", &labels, lookups * execs));
        }
        run("run", metrics)
    }
}

const ALL: &str = r#"[limits]
"total_*" = "0%"
'execs{command="*"}' = "0%"
'command_*{command="*"}' = "0%"
'spawns{parent="*",child="*"}' = "0%"
'failed_lookups{kind="*"}' = "0%"
'directory_failed_lookups{directory="*"}' = "0%"
total_cpu_seconds = "|100"
'command_cpu_seconds{command="*"}' = "|100"
"#;

fn judged(budget: &str, before: Option<&Job>, after: &Job) -> Report {
    let budget = Budget::parse("gate.toml", budget).unwrap();
    let before: Vec<RunMetrics> = before.into_iter().map(Job::run).collect();
    let report = gate(&budget, &before, &[after.run()], Options::default()).unwrap();
    assert_complete(&report);
    report
}

/// Every finding is in exactly one group, and every text names it.
fn assert_complete(report: &Report) {
    let mut grouped: Vec<usize> =
        report.groups.iter().flat_map(|group| group.findings.clone()).collect();
    grouped.sort_unstable();
    assert_eq!(grouped, (0..report.findings.len()).collect::<Vec<_>>(), "{report:#?}");
    for (number, group) in report.groups.iter().enumerate() {
        for at in &group.findings {
            assert_eq!(report.findings[*at].group, number);
        }
        let worst = group.findings.iter().map(|at| report.findings[*at].effect).min();
        assert_eq!(worst, Some(group.effect));
    }
    let text = render::text(report, usize::MAX).replace('\n', " ");
    let markdown = render::markdown(report);
    let junit = render::junit(report).unwrap();
    for finding in &report.findings {
        let metric = finding.metric.as_deref().unwrap_or_default();
        assert!(text.contains(metric), "{metric} is not in {text}");
        let name = metric.split('{').next().unwrap().replace('_', "&#95;");
        assert!(markdown.contains(&name), "{name} is not in {markdown}");
        assert!(junit.contains(&metric.replace('"', "&quot;")), "{metric} is not in {junit}");
    }
}

fn causes(report: &Report) -> Vec<&str> {
    report.groups.iter().map(cause_of).collect()
}

fn cause_of(group: &Group) -> &str {
    group.cause.as_ref().map_or("-", |cause| &cause.text)
}

/// The metrics of a group, the first one first.
fn metrics<'r>(report: &'r Report, group: &Group) -> Vec<&'r str> {
    group.findings.iter().filter_map(|at| report.findings[*at].metric.as_deref()).collect()
}

#[test]
fn one_more_sed_per_step_is_one_finding() {
    let report = judged(ALL, Some(&Job::of(12.0)), &Job::of(24.0));
    assert_eq!(causes(&report), ["+12 sed, started by build.sh: 41 -> 65 processes"]);
    let group = &report.groups[0];
    assert_eq!(metrics(&report, group)[0], r#"execs{command="sed"}"#);
    assert!(group.findings.len() >= 8, "{:?}", metrics(&report, group));
    let cause = group.cause.as_ref().unwrap();
    assert_eq!((cause.kind, cause.program.as_deref()), (CauseKind::Starts, Some("build.sh")));
    assert_eq!(group.programs, ["sed", "build.sh"]);
    assert!(report.headline().starts_with("Regression: 1 failure ("), "{}", report.headline());
    assert_eq!(render::annotations(&report).lines().count(), 1);
}

#[test]
fn different_causes_are_different_findings() {
    let mut after = Job::of(24.0);
    after.programs[4].2 += 3.0;
    after.programs[4].3 += 3.0;
    let report = judged(ALL, Some(&Job::of(12.0)), &after);
    assert_eq!(
        causes(&report),
        [
            "+12 sed, started by build.sh: 41 -> 68 processes",
            "+3 ps, started by monitor: 41 -> 68 processes"
        ]
    );
    let of_ps = metrics(&report, &report.groups[1]);
    assert!(of_ps.contains(&r#"spawns{parent="monitor",child="ps"}"#), "{of_ps:?}");
    assert!(!of_ps.contains(&"total_processes"), "{of_ps:?}");
}

/// Programs started by one that is itself started more often have the cause of that one.
#[test]
fn descendants_have_the_cause_of_their_ancestor() {
    let with = |gccs: f64| {
        let mut job = Job::of(12.0);
        job.programs.push(("build.sh", "gcc", gccs, gccs));
        job.programs.push(("gcc", "cc1", gccs, gccs));
        job.programs.push(("gcc", "as", gccs, gccs));
        job
    };
    let report = judged(ALL, Some(&with(2.0)), &with(7.0));
    assert_eq!(causes(&report), ["+5 gcc, started by build.sh: 47 -> 62 processes"]);
    // A compiler driver that starts another program more is the cause itself.
    let mut other = with(2.0);
    other.programs.push(("gcc", "ld", 9.0, 9.0));
    let report = judged(ALL, Some(&with(2.0)), &other);
    assert_eq!(causes(&report), ["+9 ld, started by gcc: 47 -> 56 processes"]);
}

#[test]
fn a_doubled_pool_names_its_program() {
    let mut after = Job::of(12.0);
    after.threads[0].1 = 160.0;
    let report = judged(ALL, Some(&Job::of(12.0)), &after);
    assert_eq!(causes(&report), ["program pool: threads per process 8 -> 16 (80 -> 160 threads)"]);
    let mut found = metrics(&report, &report.groups[0]);
    found.sort_unstable();
    assert_eq!(found, [r#"command_threads{command="pool"}"#, "total_tasks", "total_threads"]);
    // Twice as many processes with as many threads each have another cause.
    let mut after = Job::of(12.0);
    (after.programs[3].2, after.programs[3].3) = (20.0, 20.0);
    after.threads[0].1 = 160.0;
    let report = judged(ALL, Some(&Job::of(12.0)), &after);
    assert_eq!(causes(&report), ["+10 pool, started by build.sh: 41 -> 51 processes"]);
}

/// Members that are not there are zero if the total is known.
#[test]
fn programs_that_fail_name_themselves() {
    let budget = "[limits]\ntotal_failed = '|0'\n'failed_processes{command=\"*\"}' = '0%'\n";
    let mut after = Job::of(12.0);
    after.failed.push(("pool", 3.0));
    let report = judged(budget, Some(&Job::of(12.0)), &after);
    let cause = "program pool: failed processes 0 -> 3 (per process 0 -> 0.3)";
    assert_eq!(causes(&report), [cause]);
    assert_eq!(report.groups[0].cause.as_ref().unwrap().kind, CauseKind::Failed);
    let mut found = metrics(&report, &report.groups[0]);
    found.sort_unstable();
    assert_eq!(found, [r#"failed_processes{command="pool"}"#, "total_failed"]);
}

#[test]
fn cpu_time_and_directories_name_theirs() {
    let mut after = Job::of(12.0);
    after.cpu_seconds[0].1 = 1.5;
    let budget =
        "[limits]\ntotal_cpu_seconds = '|1.3'\n'command_cpu_seconds{command=\"*\"}' = '|1.2'\n";
    let report = judged(budget, Some(&Job::of(12.0)), &after);
    assert_eq!(
        causes(&report),
        ["program pool: CPU time 1.00 s -> 1.50 s (per process 100 ms -> 150 ms)"]
    );
    let mut after = Job::of(12.0);
    after.directories.push(("/opt/new", 2.0));
    after.directories.push(("/opt/new/sub", 2.0));
    let report = judged(ALL, Some(&Job::of(12.0)), &after);
    assert_eq!(
        causes(&report),
        ["+116 failed look-ups in /opt/new and a directory below it: 0 -> 116"]
    );
    // 3 look-ups of each of 29 execs, then 7; of all programs alike.
    assert_eq!(report.findings.len(), 2 + 2 + 5, "{report:#?}");
}

/// Without a baseline, the excess over the limits takes the place of the change.
#[test]
fn a_first_budget_finds_the_cause_without_a_baseline() {
    let budget = init(&[Job::of(12.0).run()]).0;
    let report = judged(&budget, None, &Job::of(24.0));
    assert_eq!(
        causes(&report),
        ["12 sed too many, started by build.sh: 65 processes, at most 41"],
        "{budget}"
    );
    let mut after = Job::of(12.0);
    after.threads[0].1 = 160.0;
    let report = judged(&budget, None, &after);
    assert_eq!(causes(&report), ["program pool: threads per process 16 (160 threads, at most 80)"]);
}

#[test]
fn what_has_no_known_cause_stays_by_itself() {
    let mut after = Job::of(24.0);
    let mut run = after.run();
    run.metrics.metrics.push(metric("peak_rss_bytes", &[], 9e9));
    let budget = format!("{ALL}peak_rss_bytes = '|1e9'\n'execs{{command=\"gawk\"}}' = '|5'\n");
    let budget = Budget::parse("gate.toml", &budget).unwrap();
    let report = gate(&budget, &[Job::of(12.0).run()], &[run], Options::default()).unwrap();
    assert_complete(&report);
    let mut found = causes(&report);
    found.sort_unstable();
    assert_eq!(found, ["+12 sed, started by build.sh: 41 -> 65 processes", "-", "-"]);
    // Less than allowed is not explained by what there is more of.
    after.programs.clear();
    after.programs.push(("", "build.sh", 1.0, 1.0));
    let budget = "[limits]\ntotal_execs = { relative_percent = 0, worse = 'lower' }\n";
    let report = judged(budget, Some(&Job::of(12.0)), &after);
    assert_eq!(causes(&report), ["-"]);
}

/// The severity of a group is that of its worst finding, which comes first.
#[test]
fn a_group_is_as_bad_as_its_worst_finding() {
    let budget = r#"[limits]
'execs{command="*"}' = { relative_percent = 0, severity = "warn", because = "of sed" }
total_execs = { relative_percent = 0, because = "of all" }
"#;
    let report = judged(budget, Some(&Job::of(12.0)), &Job::of(24.0));
    assert_eq!(report.groups.len(), 1);
    assert_eq!(report.groups[0].effect, Effect::Fails);
    assert_eq!(metrics(&report, &report.groups[0])[0], "total_execs");
    let text = render::text(&report, 10);
    assert!(
        text.contains("execs{command=\"sed\"}: 12 -> 24 (+12), at most 12 (warning)"),
        "{text}"
    );
    assert!(text.contains("limit: of sed") && text.contains("limit: of all"), "{text}");
}

#[test]
fn figures_that_were_removed_from_a_baseline_are_not_zero() {
    let mut before = Job::of(12.0).run();
    before.metrics.metrics.retain(|metric| metric.name != "command_processes");
    let budget = Budget::parse("gate.toml", "[limits]\ntotal_execs = '0%'\n").unwrap();
    let report = gate(&budget, &[before], &[Job::of(24.0).run()], Options::default()).unwrap();
    assert_eq!(causes(&report), ["+12 sed, started by build.sh: 41 -> 65 processes"]);
}

#[test]
fn advice_about_the_programs_of_a_finding_goes_with_it() {
    let mut report = judged(ALL, Some(&Job::of(12.0)), &Job::of(24.0));
    let advice = |command: &str| Advice {
        kind: "short-commands",
        what: format!("Let the shell do it: {command}"),
        commands: vec![command.to_owned()],
        wall_ns: Gain::new(10_000_000, 20_000_000, 30_000_000),
        ..Advice::default()
    };
    let advised = Advised {
        wall_ns: 1_000_000_000,
        cpu_ns: 500_000_000,
        has_path: true,
        min_percent: 1.0,
        advice: vec![advice("sed"), advice("awk")],
        ..Advised::default()
    };
    assert!(report.has_programs());
    report.advise(&advised);
    assert_eq!(report.groups[0].advice.len(), 1);
    let said = "wall 20.0 ms (10.0 ms to 30.0 ms), 2.0 %; CPU nothing";
    for (format, text) in [
        ("text", render::text(&report, 10)),
        ("annotations", render::annotations(&report).replace("%25", "%")),
        ("markdown", render::markdown(&report).replace("&#58;", ":")),
        ("junit", render::junit(&report).unwrap()),
    ] {
        assert!(text.contains("short-commands: Let the shell do it: sed"), "{format}: {text}");
        assert!(text.contains(said), "{format}: {text}");
        assert!(!text.contains("awk"), "{format}: {text}");
    }
    let json: serde_json::Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    let group = &json["groups"][0];
    assert_eq!(group["advice"][0]["kind"], "short-commands");
    assert_eq!(group["advice"][0]["wall_ns"]["middle"], 20_000_000);
    assert_eq!(group["cause"]["kind"], "starts");
    assert_eq!(json["findings"][0]["group"], 0);
    assert_eq!(json["findings"][0]["cause"], group["cause"]["text"]);
}
