//! Pairs of real jobs with a fault and with its cure (fixtures/pairs.toml): the advice appears for the fault
//! only, and what is gained lies in the predicted range.
//!
//! `ROUNDS=10 cargo test --release --package proctrace --test it advise_pairs -- --nocapture` repeats all of them
//! ten times, requires nine, and prints a table; `PAIR=wrappers` selects by kind.

use std::ffi::OsString;
use std::path::Path;

use crate::common::{Recorded, Recorder, payload, proctrace};
use proctrace_fixtures::pairs::{Figure, Outcome, Pair, pairs};
use serde_json::Value;

/// Maximum runs of each side.
const ROUNDS: usize = 6;

#[test]
fn gains_of_cures_are_as_predicted() {
    let rounds: Option<usize> = std::env::var("ROUNDS").ok().map(|rounds| rounds.parse().unwrap());
    let required = rounds.map_or(1, |rounds| (9 * rounds).div_ceil(10));
    let wanted = std::env::var("PAIR").unwrap_or_default();
    let mut failures = Vec::new();
    println!("| fault | advice | predicted | observed | within |\n|---|---|---|---|---|");
    for pair in pairs().iter().filter(|pair| pair.kind.contains(&wanted)) {
        let (outcomes, errors) =
            rounds.map_or_else(|| shortest(pair, ROUNDS), |rounds| repeat(pair, rounds));
        let held = outcomes.iter().filter(|outcome| outcome.holds()).count();
        if !outcomes.is_empty() {
            println!("{}", row(pair, &outcomes, held));
        }
        // A round in which the advice is missing, or still there, has not held.
        if held < required {
            failures.push(format!("{}: {outcomes:?}", pair.name));
            failures.extend(errors.into_iter().map(|error| format!("{}: {error}", pair.name)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Every round, for a table.
fn repeat(pair: &Pair, rounds: usize) -> (Vec<Outcome>, Vec<String>) {
    let (mut outcomes, mut errors): (Vec<Outcome>, _) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let before = advise(&record(pair, &pair.fault));
        let after = advise(&record(pair, &pair.cure));
        match pair.judge(&before, &after) {
            Ok(outcome) => outcomes.push(outcome),
            Err(error) => errors.push(error),
        }
    }
    (outcomes, errors)
}

/// The shortest run of each side, of as many as it takes: whatever else the machine or its host does only adds to the
/// wall time.
fn shortest(pair: &Pair, rounds: usize) -> (Vec<Outcome>, Vec<String>) {
    let mut best: [Option<Value>; 2] = [None, None];
    let mut judged = (Vec::new(), Vec::new());
    for round in 0..rounds {
        for (best, script) in best.iter_mut().zip([&pair.fault, &pair.cure]) {
            let advised = advise(&record(pair, script));
            let wall_ns = |advised: &Value| advised["wall_ns"].as_u64().unwrap();
            if best.as_ref().is_none_or(|best| wall_ns(&advised) < wall_ns(best)) {
                *best = Some(advised);
            }
        }
        let (Some(before), Some(after)) = (&best[0], &best[1]) else { continue };
        judged = match pair.judge(before, after) {
            Ok(outcome) => (vec![outcome], Vec::new()),
            Err(error) => (Vec::new(), vec![error]),
        };
        if round > 0 && judged.0.iter().any(Outcome::holds) {
            break;
        }
    }
    judged
}

fn record(pair: &Pair, script: &str) -> Recorded {
    let payload = payload();
    let programs = [proctrace_fixtures::programs(), payload.parent().unwrap()];
    let system = std::env::var_os("PATH").unwrap_or_default();
    let system = std::env::split_paths(&system).map(OsString::from).collect::<Vec<_>>();
    let path = programs.iter().map(|it| it.as_os_str().to_owned()).chain(system);
    let path = std::env::join_paths(path).unwrap();
    let recorder = Recorder::new().option(&pair.record).env("PATH", path.to_str().unwrap());
    let workflow =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../fixtures/workflow");
    let recorder = recorder.env("WORKFLOW", workflow.to_str().unwrap());
    let recorded = recorder.run(["bash", "-c", script]);
    assert_eq!(recorded.code(), 0, "{}: {}", pair.name, recorded.stderr());
    recorded
}

fn advise(recorded: &Recorded) -> Value {
    let trace: &Path = &recorded.trace();
    let output = proctrace().args(["advise", "--json"]).arg(trace).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Row of all rounds of a pair: the medians of the range and of the estimate, and of what was observed.
fn row(pair: &Pair, outcomes: &[Outcome], held: usize) -> String {
    let median = |of: &dyn Fn(&Outcome) -> i64| {
        let mut values: Vec<i64> = outcomes.iter().map(of).collect();
        values.sort_unstable();
        let value = values[values.len() / 2] as f64;
        match pair.figure {
            Figure::Wall | Figure::Cpu => format!("{:.0} ms", value / 1e6),
            Figure::Memory => format!("{:.0} MB", value / 1e6),
        }
    };
    format!(
        "| {} | `{}` | {} ({} to {}) | {} | {held} of {} |",
        pair.name,
        pair.kind,
        median(&|it| it.predicted[1]),
        median(&|it| it.predicted[0]),
        median(&|it| it.predicted[2]),
        median(&|it| it.observed),
        outcomes.len(),
    )
}
