//! `repeated-command`: the same command with the same arguments, directory and environment again and again.

use proctrace_classify::fast::FastMap;
use proctrace_findings::{Advice, counted, time};
use proctrace_wire::Quantity;

use super::Found;
use super::counter::is_of_system;
use super::evidence::Evidence;
use super::names::{is_interpreter, script};
use super::rules::AdviceRules;

/// Minimum repeated runs that are worth a change.
const COUNT_MIN: usize = 5;

/// Per command line, directory and environment: all runs but the first, whose answer is kept.
///
/// Only if all runs read and write as many bytes by system calls, and only those that begin after the first one has ended:
/// workers of a pool have the same command line, too.
/// Wall and CPU: as [`Evidence::without`]; low is 0 unless the command is known to answer and to change nothing.
pub(super) fn find(evidence: &Evidence<'_>, rules: &AdviceRules) -> Vec<Found> {
    // The answer may depend on variables that were not recorded.
    if !evidence.recording.knows().all(&[Quantity::Environment]) {
        return Vec::new();
    }
    let calls = evidence.recording.calls().unwrap_or_default();
    let mut groups: FastMap<u64, Vec<u32>> = FastMap::default();
    for (process, it) in evidence.processes() {
        let call = it.run().and_then(|run| calls.get(run as usize));
        if let Some(call) = call.filter(|call| it.execs > 0 && **call != 0) {
            groups.entry(*call).or_default().push(process);
        }
    }
    let mut found: Vec<Found> = groups
        .into_values()
        .filter(|runs| runs.len() > COUNT_MIN)
        .filter_map(|runs| advice(evidence, rules, &runs))
        .collect();
    found.sort_by(|one, other| one.advice.evidence.cmp(&other.advice.evidence));
    found
}

fn advice(evidence: &Evidence<'_>, rules: &AdviceRules, runs: &[u32]) -> Option<Found> {
    let (first, rest) = runs.split_first()?;
    let template = evidence.own_template(*first)?;
    let command = evidence.command(*first)?;
    let line = evidence.recording.line_of(evidence.process(*first));
    if rules.has_effects(command) {
        return None;
    }
    // Nobody changes a script of the system, such as ldd(1), which asks each linker for its version.
    if is_of_system(&evidence.spawner_line(*first)) {
        return None;
    }
    let first_ended_ns = evidence.ended_ns(*first);
    let later: Vec<u32> = rest
        .iter()
        .copied()
        .filter(|run| evidence.process(*run).born_ns >= first_ended_ns)
        .collect();
    if later.len() < COUNT_MIN || later.len() * 2 < rest.len() {
        return None;
    }
    // A test whose verdict changes, as that of `git bisect run`, is asked again for good reason.
    let status = |run: &u32| evidence.process(*run).status();
    if runs.iter().any(|run| status(run) != status(first)) {
        return None;
    }
    // What it is to do may be on its standard input.
    if is_interpreter(command) && !line.split(' ').skip(1).any(|word| !word.starts_with('-')) {
        return None;
    }
    // Other input, or another answer: what was read and written shows it, though not all of it.
    let bytes = |run: &u32| evidence.recording.bytes_used_by(evidence.process(*run));
    let [read, written, _] = bytes(first);
    // Whoever writes files has not only an answer.
    let is_another = |run: &u32| bytes(run) != [read, written, 0];
    if later.iter().any(is_another) {
        return None;
    }
    let mut removal = evidence.without(&later)?;
    // What else it may change is not recorded: a file that it removes, a request that it sends.
    let named = script(template).unwrap_or(command);
    let is_query = rules.is_query(named, template) && !template.contains(" -c ");
    if !is_query {
        (removal.wall.low, removal.cpu.low) = (0, 0);
    }
    let alive_ns = later.iter().fold(0_u64, |sum, run| sum.saturating_add(evidence.life_ns(*run)));
    let advice = Advice {
        kind: "repeated-command",
        what: format!(
            "Run `{}` once and keep its answer in a variable or file",
            evidence.line(*first)
        ),
        evidence: format!(
            "{} of `{}` with the same arguments, directory and search variables, {} each{}",
            counted(runs.len() as u64, "run", "runs"),
            evidence.line(*first),
            time(alive_ns / later.len() as u64),
            evidence.started_by(*first),
        ),
        commands: vec![command.to_owned()],
        method: evidence.method().into(),
        risk: "its answer may depend on files that change in between, or on its standard input"
            .into(),
        check: "compare what the runs print; then record again and use `advise --against`".into(),
        ..Advice::default()
    };
    Some(Found::without(removal, advice).keyed(template))
}
