//! A generated budget passes for the recordings it was made from, and fails for a regression.

use crate::common::{job, metric, run};
use proctrace_gate::{Budget, Options, Verdict, gate, init};
use proptest::prelude::*;

#[test]
fn it_is_kept_by_what_it_was_made_of() {
    let runs = [
        job("a.ptrace", 100.0, 1.0, 3, 4.0),
        job("b.ptrace", 101.0, 1.0, 3, 4.2),
        job("c.ptrace", 100.0, 1.0, 3, 4.1),
    ];
    let (text, _) = init(&runs);
    let budget =
        Budget::parse("gate.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(budget.needs_baseline(), None);
    let report = gate(&budget, &[], &runs, Options::default()).unwrap();
    assert_eq!(report.verdict, Verdict::Pass, "{text}\n{report:#?}");
    assert!(report.findings.is_empty(), "{report:#?}");
    let more = [job("more", 100.0, 2.0, 3, 4.0)];
    let report = gate(&budget, &[], &more, Options::default()).unwrap();
    assert_eq!(report.verdict, Verdict::Regression);
    // a new command that is run often
    let mut new = job("new", 100.0, 1.0, 3, 4.0);
    new.metrics.metrics.push(metric("execs", &[("command", "pgrep")], 500.0));
    let report = gate(&budget, &[], &[new], Options::default()).unwrap();
    assert_eq!(report.findings[0].metric.as_deref(), Some(r#"execs{command="pgrep"}"#));
}

#[test]
fn a_first_budget_has_these_limits() {
    let runs = [job("a.ptrace", 100.0, 1.0, 3, 4.0), job("b.ptrace", 101.0, 1.0, 3, 4.2)];
    let budget: toml::Value = toml::from_str(&init(&runs).0).unwrap();
    insta::assert_json_snapshot!(budget);
}

/// Two runs that differ do not say how much others will. A third that differs as much again is no regression.
#[test]
fn what_varied_between_few_runs_does_not_fail_by_chance() {
    let of = |ticks: &[f64]| -> Vec<_> {
        ticks.iter().map(|ticks| job("a.ptrace", *ticks, 1.0, 3, 4.0)).collect()
    };
    let verdict = |of: &[_], next| {
        let (text, finding) = init(of);
        let budget = Budget::parse("gate.toml", &text).unwrap();
        let report =
            gate(&budget, &[], &[job("next", next, 1.0, 3, 4.0)], Options::default()).unwrap();
        let text = text.replace("\n# ", " ");
        (report.verdict, report.findings.len(), finding.missing(), text)
    };
    // 100 and 103 iterations, then 107: within the limits.
    let (two, findings, missing, text) = verdict(&of(&[100.0, 103.0]), 107.0);
    assert_eq!((two, findings, missing), (Verdict::Pass, 0, 8), "{text}");
    assert!(text.contains("8 more are advisable (10 in all)"), "{text}");
    // Twice as many are found, but two runs are too few to fail for that alone.
    let (two, findings, ..) = verdict(&of(&[100.0, 103.0]), 200.0);
    assert!(two == Verdict::Pass && findings > 5, "{two:?} {findings}");
    // With three, it fails.
    let three = of(&[100.0, 103.0, 101.0]);
    assert_eq!(verdict(&three, 107.0).0, Verdict::Pass);
    let (verdict_of_three, _, missing, _) = verdict(&three, 200.0);
    assert_eq!((verdict_of_three, missing), (Verdict::Regression, 7));
    // Where nothing varied, limits stay tight, also of a single run.
    let (one, _, missing, text) = verdict(&of(&[100.0]), 101.0);
    assert_eq!((one, missing), (Verdict::Regression, 2), "{text}");
    assert!(text.contains("2 more are advisable (3 in all)"), "{text}");
    assert_eq!(verdict(&of(&[100.0; 3]), 100.0).2, 0);
}

/// In a short job some runs have too few ticks to know their system time, and would be refused.
#[test]
fn system_time_is_limited_only_if_every_run_knows_it() {
    let limited = |cpu: f64| {
        let mut run = job("a.ptrace", 100.0, 1.0, 3, cpu);
        run.metrics.metrics.push(metric("total_cpu_system_seconds", &[], cpu / 2.0));
        init(&[run]).0.contains("\ntotal_cpu_system_seconds = ")
    };
    assert!(limited(4.0) && !limited(0.4));
}

proptest! {
    #[test]
    fn whatever_the_names_and_figures(
        name in "\\PC{0,12}|[\u{0}-\u{7f}]{0,12}|['\"\\\\*\n\r\u{7f}]{0,6}",
        count in 0_u32..100_000,
        cpu in 0.0..1e6_f64,
    ) {
        let count = f64::from(count);
        let runs = [run(&name, vec![
            metric("total_execs", &[], count),
            metric("total_cpu_seconds", &[], cpu),
            metric("peak_rss_bytes", &[], cpu * 1e4),
            metric("execs", &[("command", &name)], count),
            metric("step_runs", &[("group", &name)], count),
            metric("step_failures", &[("group", &name)], count),
            metric("step_cpu_seconds", &[("group", &name)], cpu),
            metric("step_longest_wall_seconds", &[("group", &name)], cpu),
        ])];
        let (text, _) = init(&runs);
        let budget = Budget::parse("gate.toml", &text);
        prop_assert!(budget.is_ok(), "{:?}\n{}", budget, text);
        let report = gate(&budget.unwrap(), &[], &runs, Options::default()).unwrap();
        prop_assert!(report.findings.is_empty(), "{:#?}\n{}", report, text);
    }
}
