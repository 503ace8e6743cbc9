//! Known cures: rules that name a command, and what makes it cheaper.

use proctrace_findings::{Advice, Gain, counted};

use super::evidence::Evidence;
use super::names::{first_word, is_whole, script};
use super::rules::{AdviceRules, Cure};
use super::{Effect, Found};

/// Placeholder in a changed command line for that of the program that started the processes.
const SPAWNER: &str = "{spawner}";

/// Per cure, all processes that it concerns.
///
/// Wall and CPU: as [`Evidence::without`] for all of them, times the part that the rule says is saved.
pub(super) fn find(evidence: &Evidence<'_>, rules: &AdviceRules) -> Vec<Found> {
    let advice = rules.cures.iter().enumerate();
    advice.filter_map(|(number, cure)| advice_of(evidence, (number, cure))).collect()
}

/// The processes that a cure concerns, in order.
pub(super) fn units(evidence: &Evidence<'_>, cure: &Cure) -> Vec<u32> {
    let templates = evidence.recording.templates();
    let concerned: Vec<bool> = templates.iter().map(|line| cure.concerns(line)).collect();
    if !concerned.contains(&true) || !cure.is_beside(templates) {
        return Vec::new();
    }
    let is_concerned = |process: u32| -> bool {
        let it = evidence.process(process);
        let run = it.run().and_then(|run| evidence.recording.runs().get(run as usize));
        let here = run.is_some_and(|run| it.execs > 0 && concerned[run.template as usize]);
        let spawner = evidence.spawner(process);
        let line = spawner.and_then(|at| templates.get(at as usize)).map(String::as_str);
        here && cure.is_below(line)
    };
    let numbers = evidence.processes().map(|(number, _)| number);
    numbers.filter(|process| is_concerned(*process)).collect()
}

fn advice_of(evidence: &Evidence<'_>, (number, cure): (usize, &Cure)) -> Option<Found> {
    let units = units(evidence, cure);
    if (units.len() as u64) < cure.at_least.max(1) {
        return None;
    }
    let mut removal = evidence.without(&units)?;
    let [low, middle, high] = cure.saves_percent;
    let part = |gain: Gain| {
        let of = |ns: u64, percent: u64| ns / 100 * percent;
        Gain::new(of(gain.low, low), of(gain.middle, middle), of(gain.high, high))
    };
    (removal.wall, removal.cpu) = (part(removal.wall), part(removal.cpu));
    let template = evidence.own_template(units[0])?;
    let run = evidence.process(units[0]).spawned_in();
    let spawner = run.map_or("", |run| evidence.recording.line_of_run(run));
    let is_taken = cure.fills_cache.iter().any(|pattern| pattern.matches(spawner.as_bytes()));
    let is_known = |change: &&String| !change.contains(SPAWNER) || is_whole(spawner) && !is_taken;
    let change = cure.change.as_ref().filter(is_known);
    let by = run.and_then(|run| evidence.recording.runs().get(run as usize));
    let advice = Advice {
        kind: "known-cure",
        what: cure.what.clone(),
        // What is added to the line of the spawner is added where that is started.
        started: change.filter(|change| change.contains(SPAWNER)).and(by).map(|run| run.process),
        proposed: change.map(|change| change.replace(SPAWNER, spawner)),
        evidence: format!(
            "cure {}: {} such as `{}`",
            cure.name,
            counted(units.len() as u64, "process", "processes"),
            evidence.line(units[0])
        ),
        commands: vec![script(template).unwrap_or_else(|| first_word(template)).to_owned()],
        method: format!("{}; of that {low} % to {high} %, as the rule says", evidence.method()),
        risk: cure.risk.clone(),
        check: match cure.fills_cache.is_empty() {
            true => "record again, and use `advise --against`".into(),
            false => "the first run only fills the cache: record the next one, and use `advise \
                      --against`"
                .into(),
        },
        ..Advice::default()
    };
    // Only a part of what they do is saved.
    let found = Found::without(removal, advice);
    Some(Found { effect: Effect::Replaced, cure: Some(number), ..found })
}
