//! Tests of the rules against values with a known verdict, and against simulated noise.

use super::*;
use crate::budget::Budget;
use proctrace_stats::noise::Noise;

fn rule(metric: &str, body: &str) -> Rule {
    let text = format!("[limits]\n{metric} = {body}\n");
    Budget::parse("gate.toml", &text).unwrap().rules.remove(0)
}

fn status(metric: &str, body: &str, before: &[f64], after: &[f64]) -> (Status, Option<Code>) {
    let family = MetricFamily::named(metric).unwrap();
    let before = (!before.is_empty()).then_some(before);
    let numbers = Numbers::of(family.kind, before, after).unwrap();
    let found = judge(&rule(metric, body), family, before, after, &numbers);
    (found.status, found.code)
}

const PASSED: (Status, Option<Code>) = (Status::Passed, None);

fn regression(code: Code) -> (Status, Option<Code>) {
    (Status::Regression, Some(code))
}

fn inconclusive(code: Code) -> (Status, Option<Code>) {
    (Status::Inconclusive, Some(code))
}

#[test]
fn counts_are_compared_exactly() {
    let count =
        |body: &str, before: &[f64], after: &[f64]| status("total_execs", body, before, after);
    assert_eq!(count("'0%'", &[100.0], &[100.0]), PASSED);
    assert_eq!(count("'0%'", &[100.0], &[101.0]), regression(Code::Count));
    assert_eq!(count("'0%'", &[100.0], &[99.0]), PASSED);
    assert_eq!(count("'7%'", &[1000.0], &[1070.0]), PASSED);
    assert_eq!(count("'7%'", &[1000.0], &[1071.0]), regression(Code::Count));
    // doubling from one to two is negligible
    let body = "{ relative_percent = 10, min_change = 5 }";
    assert_eq!(count(body, &[1.0], &[5.0]), PASSED);
    assert_eq!(count(body, &[1.0], &[6.0]), regression(Code::Count));
    assert_eq!(count(body, &[0.0], &[6.0]), regression(Code::Count));
    // the opposite direction
    let body = "{ relative_percent = 10, worse = 'lower' }";
    assert_eq!(count(body, &[100.0], &[200.0]), PASSED);
    assert_eq!(count(body, &[100.0], &[90.0]), PASSED);
    assert_eq!(count(body, &[100.0], &[89.0]), regression(Code::Count));
}

#[test]
fn counts_that_vary_are_compared_with_the_worst_baseline() {
    let before = [10.0, 12.0, 11.0];
    let count = |after: &[f64]| status("total_execs", "'0%'", &before, after);
    assert_eq!(count(&[12.0]), PASSED);
    assert_eq!(count(&[13.0]), regression(Code::Count));
    assert_eq!(count(&[13.0, 14.0, 13.0]), regression(Code::Count));
    assert_eq!(count(&[12.0, 14.0, 13.0]), inconclusive(Code::RunsDisagree));
    assert_eq!(count(&[12.0, 12.0, 13.0]), PASSED);
}

#[test]
fn absolute_limits_need_no_baseline() {
    let count = |body: &str, after: &[f64]| status("total_execs", body, &[], after);
    assert_eq!(count("'|500'", &[500.0]), PASSED);
    assert_eq!(count("'|500'", &[501.0, 502.0]), regression(Code::Absolute));
    assert_eq!(count("'|500'", &[500.0, 502.0]), inconclusive(Code::RunsDisagree));
    assert_eq!(count("'|0'", &[0.0]), PASSED);
    assert_eq!(count("'0%|500'", &[501.0]), regression(Code::Absolute));
    assert_eq!(count("'0%|500'", &[500.0]), (Status::Unjudged, Some(Code::NoBaseline)));
    assert_eq!(count("{ absolute = 5, worse = 'lower' }", &[4.0]), regression(Code::Absolute));
    // the worse of the two parts counts
    let both = |after: &[f64]| status("total_execs", "'10%|500'", &[480.0], after);
    assert_eq!(both(&[500.0]), PASSED);
    assert_eq!(both(&[510.0]), regression(Code::Absolute));
    assert_eq!(both(&[529.0]), regression(Code::Count));
}

#[test]
fn a_limit_may_ask_for_several_runs() {
    let cpu =
        |after: &[f64]| status("total_cpu_seconds", "{ absolute = 5, min_runs = 3 }", &[], after);
    assert_eq!(cpu(&[9.0]), inconclusive(Code::FewRuns));
    assert_eq!(cpu(&[9.0, 9.0]), inconclusive(Code::FewRuns));
    assert_eq!(cpu(&[9.0, 9.0, 9.0]), regression(Code::Absolute));
    assert_eq!(cpu(&[9.0, 9.0, 4.0]), inconclusive(Code::RunsDisagree));
    assert_eq!(cpu(&[4.0]), PASSED);
}

#[test]
fn measured_figures_fail_only_beyond_their_noise() {
    let cpu = |body: &str, before: &[f64], after: &[f64]| {
        status("total_cpu_seconds", body, before, after)
    };
    let quiet = [1.00, 1.01, 0.99, 1.00, 1.02];
    let times = |factor: f64| quiet.map(|value| value * factor);
    assert_eq!(cpu("'5%'", &quiet, &quiet), PASSED);
    assert_eq!(cpu("'5%'", &quiet, &times(0.5)), PASSED);
    assert_eq!(cpu("'5%'", &quiet, &times(1.2)), regression(Code::Measured));
    assert_eq!(cpu("'5%'", &quiet, &times(1.05)), inconclusive(Code::Noise));
    assert_eq!(cpu("'0%'", &quiet, &quiet), inconclusive(Code::Noise));
    let noisy = [0.6, 1.4, 0.9, 1.1, 1.0];
    assert_eq!(cpu("'10%'", &noisy, &noisy.map(|x| x * 1.16)), inconclusive(Code::Noise));
    // too few runs, however large the difference
    assert_eq!(cpu("'5%'", &[1.0], &[9.0]), inconclusive(Code::FewRuns));
    assert_eq!(cpu("'5%'", &[1.0], &[0.1]), inconclusive(Code::FewRuns));
    assert_eq!(cpu("'5%'", &quiet[..3], &times(2.0)[..3]), inconclusive(Code::FewRuns));
    assert_eq!(cpu("'5%'", &quiet[..4], &times(2.0)), regression(Code::Measured));
    // the opposite direction
    let body = "{ relative_percent = 5, worse = 'lower' }";
    assert_eq!(cpu(body, &quiet, &times(0.8)), regression(Code::Measured));
    assert_eq!(cpu(body, &quiet, &times(2.0)), PASSED);
}

#[test]
fn small_changes_of_measured_figures_pass() {
    let body = "{ relative_percent = 5, min_change = 0.1 }";
    let cpu = |before: &[f64], after: &[f64]| status("command_cpu_seconds", body, before, after);
    let quiet = [0.010, 0.011, 0.009, 0.010, 0.010];
    assert_eq!(cpu(&quiet, &quiet.map(|x| x * 5.0)), PASSED);
    assert_eq!(cpu(&quiet, &quiet.map(|x| x * 50.0)), regression(Code::Measured));
    // a baseline of zero has no ratio
    assert_eq!(cpu(&[0.0; 5], &[0.0; 5]), PASSED);
    assert_eq!(cpu(&[0.0; 5], &[0.5; 5]), regression(Code::Measured));
    assert_eq!(cpu(&[0.0; 5], &[0.05; 5]), PASSED);
    assert_eq!(cpu(&[0.0; 5], &[0.05, 0.05, 0.05, 0.05, 0.2]), inconclusive(Code::Noise));
    let faults = |before: &[f64], after: &[f64]| status("faults_major", "'5%'", before, after);
    assert_eq!(faults(&[0.0, 0.0, 1.0], &[0.0, 1.0, 1.0]), PASSED);
    assert_eq!(faults(&[0.0, 0.0, 1.0], &[0.0, 1.0, 2.0]), inconclusive(Code::Noise));
    assert_eq!(cpu(&[0.0; 2], &[0.5; 2]), inconclusive(Code::FewRuns));
}

/// An interval beyond the limit is not enough, and the message says so.
#[test]
fn what_the_ranks_do_not_show_is_told_from_noise_in_the_interval() {
    let (before, after) = ([0.27, 0.271, 0.275, 0.28, 0.364], [0.36, 0.37, 0.375, 0.38, 0.385]);
    let family = MetricFamily::named("command_cpu_seconds").unwrap();
    let numbers = Numbers::of(family.kind, Some(&before), &after).unwrap();
    let judged = judge(&rule(family.name, "'5%'"), family, Some(&before), &after, &numbers);
    assert_eq!((judged.status, judged.code), (Status::Inconclusive, Some(Code::Noise)));
    assert!(numbers.interval_percent.unwrap().low > 5.0, "{numbers:?}");
    assert!(judged.message.contains("the interval lies beyond that, but"), "{}", judged.message);
    assert!(judged.message.contains("at most 0.01 is needed"), "{}", judged.message);
}

/// The message names both parts of what is allowed; the larger one counts.
#[test]
fn the_smallest_change_that_counts_is_in_the_message() {
    let says = |body: &str, before: &[f64], after: &[f64]| {
        let family = MetricFamily::named("command_cpu_seconds").unwrap();
        let numbers = Numbers::of(family.kind, Some(before), after).unwrap();
        let rule = rule("command_cpu_seconds", body);
        judge(&rule, family, Some(before), after, &numbers).message
    };
    let quiet = [0.010, 0.011, 0.009, 0.010, 0.010];
    let body = "{ relative_percent = 5, min_change = 0.1 }";
    for after in [quiet.map(|x| x * 2.0), quiet.map(|x| x * 50.0)] {
        let message = says(body, &quiet, &after);
        assert!(message.contains("; an increase of up to 5 % or 100 ms is allowed"), "{message}");
    }
    let message = says("{ relative_percent = 0, min_change = 0.1 }", &quiet, &quiet);
    assert!(message.contains("; an increase of up to 100 ms is allowed"), "{message}");
    let message = says("'5%'", &quiet, &quiet.map(|x| x * 0.5));
    assert!(message.contains("; an increase of up to 5 % is allowed"), "{message}");
}

/// Runs `count` comparisons of 5 runs with 5; returns how many fail and how many pass.
fn trials(count: usize, seed: u64, noise: f64, ratio: f64, limit: &str) -> (usize, usize) {
    let family = MetricFamily::named("total_cpu_seconds").unwrap();
    let rule = rule("total_cpu_seconds", limit);
    let mut noise = Noise::new(seed, noise);
    let (mut failed, mut passed) = (0, 0);
    for _ in 0..count {
        let (before, after) = (noise.runs(5, 1.0), noise.runs(5, ratio));
        let numbers = Numbers::of(family.kind, Some(&before), &after).unwrap();
        match judge(&rule, family, Some(&before), &after, &numbers).status {
            Status::Regression => failed += 1,
            Status::Passed => passed += 1,
            Status::Inconclusive | Status::Unjudged => {}
        }
    }
    (failed, passed)
}

/// Two builds of the same program must not fail: less than one in a hundred fail even with a
/// limit of 0 %, where the true ratio is exactly at the limit, and at any noise level.
#[test]
fn a_against_a_fails_less_than_once_in_a_hundred() {
    for (seed, noise) in [(1, 0.01), (2, 0.03), (3, 0.10)] {
        for limit in ["'0%'", "'5%'", "'10%'"] {
            let (failed, passed) = trials(1000, seed, noise, 1.0, limit);
            println!("A/A, noise {noise}, limit {limit}: {failed} fail, {passed} pass of 1000");
            assert!(failed < 10, "noise {noise}, limit {limit}: {failed}");
        }
    }
    // and where the candidate is worse by exactly the allowed amount
    let (failed, _) = trials(10_000, 4, 0.03, 1.05, "'5%'");
    println!("5 % worse with a limit of 5 %, noise 0.03: {failed} fail of 10000");
    assert!(failed < 100, "{failed}");
}

/// The power to detect 10 % more CPU time, with noise of 3 % and 5 runs per side. If the limit is
/// close to the change, the remaining outcomes are "inconclusive": it never passes.
#[test]
fn the_power_for_ten_percent_is_as_documented() {
    for (limit, least) in [("'0%'", 850), ("'2%'", 680), ("'5%'", 260)] {
        let (failed, passed) = trials(1000, 5, 0.03, 1.10, limit);
        println!("10 % worse, noise 0.03, limit {limit}: {failed} fail, {passed} pass of 1000");
        assert!(failed >= least, "limit {limit}: {failed}");
        assert!(passed < 10, "limit {limit}: {passed}");
    }
    let (failed, _) = trials(1000, 6, 0.01, 1.10, "'5%'");
    println!("10 % worse, noise 0.01, limit 5 %: {failed} fail of 1000");
    assert!(failed >= 980, "{failed}");
}
