//! The gate from budget to verdict: planted regressions are detected and named, and nothing else is
//! reported.

use crate::common::{job, metric, run};
use proctrace_findings::Unknown;
use proctrace_gate::{
    Budget, Code, Diff, Effect, GateError, Options, Report, RunMetrics, Status, Verdict, gate,
};

fn judged(budget: &str, baselines: &[RunMetrics], candidates: &[RunMetrics]) -> Report {
    let budget = Budget::parse("gate.toml", budget).expect("the budget is a good one");
    gate(&budget, baselines, candidates, Options::default()).expect("there is something to judge")
}

fn codes(report: &Report) -> Vec<(Code, Effect)> {
    report.findings.iter().map(|finding| (finding.code, finding.effect)).collect()
}

const TIGHT: &str = r#"[limits]
total_processes = "0%"
'execs{command="*"}' = "0%"
'failed_lookups{kind="*"}' = "0%"
'directory_failed_lookups{directory="*"}' = { relative_percent = 0, min_change = 10 }
"#;

#[test]
fn the_same_again_passes() {
    let base = job("base", 100.0, 1.0, 3, 4.0);
    let report = judged(TIGHT, std::slice::from_ref(&base), std::slice::from_ref(&base));
    assert_eq!((report.verdict, report.verdict.exit_code()), (Verdict::Pass, 0));
    assert!(report.findings.is_empty(), "{report:#?}");
    assert_eq!(report.passed(), report.checks.len());
    assert_eq!(report.checks.len(), 1 + 2 + 1 + 3);
}

/// One additional sed per tick of a polling script.
#[test]
fn one_more_sed_per_tick_is_caught_and_its_parent_named() {
    let (base, more) = (job("base", 100.0, 1.0, 3, 4.0), job("more", 100.0, 2.0, 3, 4.0));
    let report = judged(TIGHT, &[base], &[more]);
    assert_eq!((report.verdict, report.verdict.exit_code()), (Verdict::Regression, 3));
    // Doubling sed exceeds its limit by more than the total that includes it.
    assert_eq!(report.findings[0].metric.as_deref(), Some(r#"execs{command="sed"}"#));
    let all = report.findings.iter().find(|f| f.metric.as_deref() == Some("total_processes"));
    let all = all.unwrap();
    let named: Vec<&str> = all.contributors.iter().map(|one| one.metric.as_str()).collect();
    assert_eq!(
        named,
        [r#"command_processes{command="sed"}"#, r#"spawns{parent="poll.sh",child="sed"}"#]
    );
    let sed =
        report.findings.iter().find(|f| f.metric.as_deref() == Some(r#"execs{command="sed"}"#));
    let sed = sed.unwrap();
    assert_eq!((sed.code, sed.rule), (Code::Count, Some(1)));
    assert_eq!(sed.contributors[0].message, "+100 (100 before, 200 after)");
    // ps did not change
    assert!(!report.findings.iter().any(|f| f.metric.as_deref() == Some(r#"execs{command="ps"}"#)));
}

/// One additional directory in LD_LIBRARY_PATH.
#[test]
fn one_more_search_directory_is_caught_and_named() {
    let (base, more) = (job("base", 100.0, 1.0, 3, 4.0), job("more", 100.0, 1.0, 4, 4.0));
    let report = judged(TIGHT, &[base], &[more]);
    assert_eq!(report.verdict, Verdict::Regression);
    let found = &report.findings[1];
    assert_eq!(found.metric.as_deref(), Some(r#"failed_lookups{kind="open"}"#));
    let new = r#"directory_failed_lookups{directory="/opt/lib3",kind="open"}"#;
    let named: Vec<&str> = found.contributors.iter().map(|one| one.metric.as_str()).collect();
    // Commands are not counted by kind, so none is named here.
    assert_eq!(named, [new]);
    assert_eq!(report.findings[0].metric.as_deref(), Some(new));
    assert_eq!(report.findings.len(), 2);
}

#[test]
fn cpu_time_needs_runs_and_is_named_by_command() {
    let budget = "[limits]\ntotal_cpu_seconds = '5%'\n";
    let runs = |cpu: f64| -> Vec<RunMetrics> {
        [0.99, 1.0, 1.01, 1.005, 0.995].iter().map(|x| job("run", 100.0, 1.0, 3, cpu * x)).collect()
    };
    let report = judged(budget, &runs(4.0), &runs(4.0));
    assert_eq!(report.verdict, Verdict::Pass);
    let report = judged(budget, &runs(4.0), &runs(5.0));
    assert_eq!(codes(&report), [(Code::Measured, Effect::Fails)]);
    assert_eq!(report.findings[0].contributors[0].metric, r#"command_cpu_seconds{command="sed"}"#);
    assert!(report.checks[0].p_value.unwrap() < 0.01);
    let report = judged(budget, &runs(4.0)[..1], &runs(5.0)[..1]);
    assert_eq!(codes(&report), [(Code::FewRuns, Effect::Inconclusive)]);
    assert_eq!(report.verdict.exit_code(), 4);
    let report = judged(
        "[defaults]\ninconclusive = 'warn'\n[limits]\ntotal_cpu_seconds = '5%'\n",
        &runs(4.0)[..1],
        &runs(5.0)[..1],
    );
    assert_eq!(codes(&report), [(Code::FewRuns, Effect::Warns)]);
    assert_eq!(report.verdict, Verdict::Pass);
}

#[test]
fn of_several_rules_the_last_one_decides() {
    let base = job("base", 100.0, 1.0, 3, 4.0);
    let budget = r#"[limits]
'execs{command="ps"}' = "|1"
'execs{command="*"}' = "|50"
'execs{command="sed"}' = { absolute = 99, severity = "warn" }
"#;
    let report = judged(budget, &[], std::slice::from_ref(&base));
    assert_eq!(
        codes(&report),
        [
            (Code::Absolute, Effect::Fails),
            (Code::Absolute, Effect::Warns),
            (Code::Shadowed, Effect::Warns)
        ]
    );
    assert_eq!(report.findings[0].metric.as_deref(), Some(r#"execs{command="ps"}"#));
    assert_eq!(report.findings[0].rule, Some(1));
    // a limit on the command line comes last
    let mut budget = Budget::parse("gate.toml", budget).unwrap();
    budget.push_argument(r#"execs{command="*"}=|1000"#).unwrap();
    let report = gate(&budget, &[], &[base], Options::default()).unwrap();
    assert_eq!(report.verdict, Verdict::Pass);
    assert_eq!(report.count(Effect::Warns), 3);
}

#[test]
fn a_rule_about_nothing_is_a_finding() {
    let base = job("base", 100.0, 1.0, 3, 4.0);
    let said = |unmatched: &str| {
        let budget =
            format!("[limits]\n'execs{{command=\"gawk\"}}' = {{ absolute = 5{unmatched} }}\n");
        let report = judged(&budget, &[], std::slice::from_ref(&base));
        (codes(&report), report.verdict)
    };
    assert_eq!(said(""), (vec![(Code::Unmatched, Effect::Warns)], Verdict::Pass));
    assert_eq!(said(", unmatched = 'allow'"), (vec![], Verdict::Pass));
    assert_eq!(
        said(", unmatched = 'deny'"),
        (vec![(Code::Unmatched, Effect::Fails)], Verdict::Regression)
    );
}

#[test]
fn what_was_not_measured_is_not_zero() {
    let with =
        run("with", vec![metric("peak_pss_bytes", &[], 1e9), metric("total_execs", &[], 5.0)]);
    let without = run("without", vec![metric("total_execs", &[], 5.0)]);
    let budget = "[limits]\npeak_pss_bytes = '5%'\n";
    let report = judged(budget, std::slice::from_ref(&with), std::slice::from_ref(&without));
    assert_eq!(codes(&report), [(Code::NotMeasured, Effect::Inconclusive)]);
    let report = judged(budget, std::slice::from_ref(&without), std::slice::from_ref(&without));
    assert_eq!(codes(&report), [(Code::Unmatched, Effect::Warns)]);
    assert!(report.findings[0].message.contains("was not measured"));
    // an absolute limit needs no baseline
    let report = judged("[limits]\npeak_pss_bytes = '|2e9'\n", &[without], &[with]);
    assert_eq!(report.verdict, Verdict::Pass);
    assert_eq!(report.checks[0].status, Status::Passed);
}

#[test]
fn a_relative_limit_without_a_baseline_has_no_answer() {
    let base = job("base", 100.0, 1.0, 3, 4.0);
    let budget = Budget::parse("gate.toml", "[limits]\ntotal_execs = '5%|1000'\n").unwrap();
    assert_eq!(budget.needs_baseline(), None);
    let report = gate(&budget, &[], std::slice::from_ref(&base), Options::default()).unwrap();
    assert_eq!(codes(&report), [(Code::NoBaseline, Effect::Inconclusive)]);
    let budget = Budget::parse("gate.toml", "[limits]\n\ntotal_execs = '5%'\n").unwrap();
    assert_eq!(budget.needs_baseline().unwrap().origin.to_string(), "gate.toml:3");
}

#[test]
fn recordings_that_cannot_be_trusted_are_refused() {
    let good = job("good", 100.0, 1.0, 3, 4.0);
    let mut bad = job("bad.ptrace", 100.0, 1.0, 3, 4.0);
    bad.metrics.doubts = vec!["3 records were lost".into(), "forks do not balance".into()];
    let budget = Budget::parse("gate.toml", TIGHT).unwrap();
    for (baselines, candidates) in
        [([good.clone()], [bad.clone()]), ([bad.clone()], [good.clone()])]
    {
        let error = gate(&budget, &baselines, &candidates, Options::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "bad.ptrace cannot be trusted: 3 records were lost; forks do not balance; record it \
             again, or judge it anyway with --allow-doubts"
        );
    }
    let report =
        gate(&budget, std::slice::from_ref(&good), &[bad], Options { allow_doubts: true }).unwrap();
    assert_eq!(codes(&report), [(Code::Doubtful, Effect::Warns)]);
    let mut other = good.clone();
    other.metrics.cores = 64;
    let report = judged(TIGHT, std::slice::from_ref(&good), &[other]);
    assert_eq!(codes(&report), [(Code::OtherMachine, Effect::Warns)]);
    // Others took half of the machine on one side only; within ten points, it is the same.
    let (mut quiet, mut busy) = (good.clone(), good.clone());
    quiet.metrics.others_percent = Some(3.0);
    busy.metrics.others_percent = Some(55.0);
    let report = judged(TIGHT, std::slice::from_ref(&quiet), std::slice::from_ref(&busy));
    assert_eq!(codes(&report), [(Code::Busy, Effect::Warns)]);
    let diff = Diff::of(std::slice::from_ref(&quiet), std::slice::from_ref(&busy)).unwrap();
    assert_eq!(
        diff.doubts,
        ["others used 3 % of the machine before and 55 % after: times may differ for that alone"]
    );
    busy.metrics.others_percent = Some(12.0);
    assert_eq!(codes(&judged(TIGHT, &[quiet], &[busy])), []);
    assert_eq!(gate(&budget, &[], &[], Options::default()), Err(GateError::NoCandidate));
    assert_eq!(gate(&Budget::default(), &[], &[good], Options::default()), Err(GateError::NoRule));
}

#[test]
fn json_has_what_a_script_needs() {
    let (base, more) = (job("base", 100.0, 1.0, 3, 4.0), job("more", 100.0, 2.0, 3, 4.0));
    let report = judged(TIGHT, &[base], &[more]);
    let json: serde_json::Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    assert_eq!(json["verdict"], "regression");
    assert_eq!(json["findings"][0]["code"], "PT001");
    assert_eq!(json["findings"][0]["numbers"]["change"], 100.0);
    assert_eq!(json["rules"][0]["origin"]["file"]["line"], 2);
    assert_eq!(
        json["findings"][0]["contributors"][0]["metric"],
        r#"spawns{parent="poll.sh",child="sed"}"#
    );
}

/// The limit that is printed is the last count that passes.
#[test]
fn small_changes_count_in_the_limit_that_is_printed() {
    let of = |count: f64| run("r", vec![metric("total_processes", &[], count)]);
    let budget = "[limits]\ntotal_processes = { relative_percent = 10, min_change = 5 }\n";
    for (count, status) in [(5.0, Status::Passed), (6.0, Status::Regression)] {
        let report = judged(budget, &[of(1.0)], &[of(count)]);
        assert_eq!(report.checks[0].status, status, "{report:#?}");
        assert!(report.checks[0].message.contains("at most 5 is allowed"), "{report:#?}");
    }
}

/// A phase without a reading of memory: its limit is refused, those of other phases are judged.
#[test]
fn a_phase_that_nobody_measured_is_refused() {
    let with = |loop_bytes: Option<f64>| {
        let mut one = run("one", vec![metric("total_processes", &[], 1.0)]);
        let peak = |phase: &str, bytes| metric("phase_peak_pss_bytes", &[("phase", phase)], bytes);
        one.metrics.metrics.push(peak("merge", 5e6));
        match loop_bytes {
            Some(bytes) => one.metrics.metrics.push(peak("loop", bytes)),
            None => one.metrics.unknown.push(Unknown {
                phase: Some("loop".into()),
                ..Unknown::family("phase_peak_pss_bytes", "not read".into())
            }),
        }
        one
    };
    let limit = |phase: &str| {
        format!(
            "[limits]\n'phase_peak_pss_bytes{{phase=\"{phase}\"}}' = {{ absolute = 9000000 }}\n"
        )
    };
    let verdict = |phase: &str, bytes| judged(&limit(phase), &[], &[with(bytes)]);
    assert_eq!(verdict("loop", Some(8e6)).verdict, Verdict::Pass);
    assert_eq!(verdict("merge", None).verdict, Verdict::Pass);
    let refused = verdict("loop", None);
    assert_eq!(
        (refused.verdict, &*codes(&refused)),
        (Verdict::Refused, &[(Code::Unknown, Effect::Refuses)][..])
    );
    let metric = refused.findings[0].metric.as_deref();
    assert_eq!(metric, Some(r#"phase_peak_pss_bytes{phase="loop"}"#));
}
