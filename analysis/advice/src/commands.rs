//! `short-commands`: commands that a shell could do itself, or one process for all of them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use proctrace_classify::fast::{FastMap, FastSet};
use proctrace_findings::{Advice, Gain, count as count_of, counted};
use proctrace_recording::process::Process;

use super::Found;
use super::counter::is_of_tool;
use super::evidence::{Evidence, Removal, most};
use super::names::SUBSHELL;
use super::rules::AdviceRules;

/// Minimum commands that are worth a change.
const COUNT_MIN: usize = 10;
/// Maximum CPU time of a command that only transforms a few words.
const CPU_MAX_NS: u64 = 20_000_000;
/// Maximum life of a command that does not wait for something.
const LIFE_MAX_NS: u64 = 200_000_000;
/// Difference in CPU time between starts of programs.
const START_SLACK_NS: u64 = 4_000_000;
/// Maximum CPU time, as a multiple of that of a start, of a command that does no work of its own.
const STARTS_MAX: u64 = 4;
/// Commands that are named.
const NAMED: usize = 4;

/// Per spawner, all of its short commands.
///
/// Wall: as [`Evidence::without`] for all of them; the lower end keeps the longest one, since one process
/// may have to do the work of all, and subshells that run commands, as `$(…)` may stay around what replaces these. CPU:
/// likewise.
pub(super) fn find(evidence: &Evidence<'_>, rules: &AdviceRules) -> Vec<Found> {
    let mut units: FastMap<u32, Vec<u32>> = FastMap::default();
    for (process, spawner) in all(evidence, rules) {
        units.entry(spawner).or_default().push(process);
    }
    let mut found: Vec<Found> = units
        .into_iter()
        .filter(|(spawner, units)| {
            let by = evidence.recording.templates().get(*spawner as usize);
            units.len() >= COUNT_MIN && !by.is_some_and(|line| is_of_tool(line))
        })
        .filter_map(|(spawner, units)| advice(evidence, rules, spawner, &units))
        .collect();
    found.sort_by(|one, other| one.advice.evidence.cmp(&other.advice.evidence));
    found
}

/// All short commands, in order, each with the number of its spawner's template.
pub(super) fn all(evidence: &Evidence<'_>, rules: &AdviceRules) -> Vec<(u32, u32)> {
    let short = shorts(evidence, rules);
    let of = |(process, it): (u32, &Process)| {
        let inside = it.parent().is_some_and(|parent| short[parent]);
        let spawner = evidence.spawner(process)?;
        (short[process as usize] && !inside).then_some((process, spawner))
    };
    evidence.processes().filter_map(of).collect()
}

/// Commands that do more than start, by the template of their spawner and their first word: somebody else would have to do
/// that work. The median CPU time of each is compared with the first quartile of all commands that may be short.
fn with_work(evidence: &Evidence<'_>, known: &[bool]) -> FastSet<(u32, u32)> {
    let mut kinds: FastMap<(u32, u32), Vec<u64>> = FastMap::default();
    let mut all = Vec::new();
    for (process, it) in evidence.processes() {
        let run = it.run().and_then(|run| evidence.recording.runs().get(run as usize));
        let is_known = it.execs > 0 && run.is_some_and(|run| known[run.template as usize]);
        if let (true, Some(command), Some(by)) =
            (is_known, evidence.command_number(process), evidence.spawner(process))
        {
            kinds.entry((by, command)).or_default().push(it.cpu.total_ns());
            all.push(it.cpu.total_ns());
        }
    }
    all.sort_unstable();
    let start_ns = all.get(all.len() / 4).copied().unwrap_or(0);
    let most_ns = start_ns.saturating_mul(STARTS_MAX).max(start_ns.saturating_add(START_SLACK_NS));
    let median = |mut of: Vec<u64>| {
        of.sort_unstable();
        of[of.len() / 2]
    };
    kinds.into_iter().filter_map(|(kind, of)| (median(of) > most_ns).then_some(kind)).collect()
}

/// For each process, whether it and all that it starts could be done by the shell that started it.
fn shorts(evidence: &Evidence<'_>, rules: &AdviceRules) -> Vec<bool> {
    let templates = evidence.recording.templates();
    let known: Vec<bool> =
        templates.iter().map(|template| rules.replacement(template).is_some()).collect();
    let works = with_work(evidence, &known);
    let has_work = |process: u32| {
        let kind = evidence.spawner(process).zip(evidence.command_number(process));
        kind.is_some_and(|kind| works.contains(&kind))
    };
    let runs = evidence.recording.runs();
    let mut short = vec![false; evidence.recording.processes().len()];
    // Children follow their parents, so all of them are decided before.
    for process in (0..evidence.recording.processes().len() as u32).rev() {
        let it = evidence.process(process);
        let children = evidence.children(process);
        let itself = match it.run().and_then(|run| runs.get(run as usize)) {
            Some(run) if it.execs > 0 => children.is_empty() && known[run.template as usize],
            // A subshell: `$(…)` with commands of the shell, or a part of a pipe.
            _ => it.execs == 0,
        };
        short[process as usize] = itself
            && evidence.spawned_by_shell(process)
            && it.cpu.total_ns() <= CPU_MAX_NS
            && !has_work(process)
            && evidence.life_ns(process) <= LIFE_MAX_NS
            && children.iter().all(|child| *child > process && short[*child as usize]);
    }
    short
}

/// Risks of the replacements of these commands, each with the commands that have it.
fn risk(rules: &AdviceRules, counts: &[(&str, u64)]) -> String {
    let mut risks: Vec<(&str, Vec<&str>)> = Vec::new();
    for (command, _) in counts {
        let Some(rule) = rules.replacement(command) else { continue };
        match risks.iter_mut().find(|(risk, _)| *risk == rule.risk) {
            Some((_, commands)) => commands.push(command),
            None => risks.push((&rule.risk, vec![command])),
        }
    }
    match &risks[..] {
        [] => "a subshell keeps what it sets, its directory and its traps to itself".to_owned(),
        [(risk, _)] => (*risk).to_owned(),
        several => {
            let each = several.iter().map(|(risk, of)| format!("{}: {risk}", of.join(", ")));
            each.collect::<Vec<_>>().join("; ")
        }
    }
}

/// The subshells among processes that run commands, other than in their own place; without those of one unit.
fn subshells_around(evidence: &Evidence<'_>, processes: &[u32], unit: u32) -> Vec<u32> {
    let of_unit = evidence.with_descendants(&[unit]);
    let is_around = |at: &u32| {
        evidence.process(*at).execs == 0
            && !evidence.children(*at).is_empty()
            && of_unit.binary_search(at).is_err()
    };
    processes.iter().copied().filter(is_around).collect()
}

/// The unit with the first of the commonest command lines of the commonest program among these processes: where it is
/// started is where to begin. Subshells count only if there is nothing else.
fn commonest(evidence: &Evidence<'_>, units: &[u32], processes: &[u32]) -> Option<u32> {
    let mut programs: BTreeMap<Option<&str>, u64> = BTreeMap::new();
    let mut lines: BTreeMap<(Option<&str>, &str), (u64, u32)> = BTreeMap::new();
    for process in processes {
        let command = evidence.command(*process);
        let line = evidence.recording.line_of(evidence.process(*process));
        *programs.entry(command).or_default() += 1;
        lines.entry((command, line)).or_insert((0, *process)).0 += 1;
    }
    let most = lines.into_iter().max_by_key(|((command, _), (number, first))| {
        (command.is_some(), programs[command], *number, Reverse(*first))
    });
    let (_, (_, first)) = most?;
    let units: FastSet<u32> = units.iter().copied().collect();
    let above = evidence.ancestors(first).filter_map(|at| u32::try_from(at).ok());
    above.into_iter().find(|at| units.contains(at))
}

fn advice(
    evidence: &Evidence<'_>,
    rules: &AdviceRules,
    spawner: u32,
    units: &[u32],
) -> Option<Found> {
    let removal = evidence.without(units)?;
    let longest = units.iter().max_by_key(|unit| evidence.life_ns(**unit)).copied()?;
    let around = subshells_around(evidence, &removal.processes, longest);
    let around_ns = evidence.path_ns_of(&around).unwrap_or(0);
    let kept_ns = evidence.path_below_ns(longest).saturating_add(around_ns);
    let longest_cpu_ns = evidence.cpu_below_ns[longest as usize];
    let kept_cpu_ns = longest_cpu_ns.saturating_add(evidence.cpu_ns_of(&around));
    let removal = Removal {
        wall: Gain { low: removal.wall.low.saturating_sub(kept_ns), ..removal.wall },
        cpu: Gain { low: removal.cpu.low.saturating_sub(kept_cpu_ns), ..removal.cpu },
        ..removal
    };
    // Of those that are as frequent, the ones that take more CPU time are named first.
    let mut costs: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for process in &removal.processes {
        let cost = costs.entry(evidence.command(*process).unwrap_or(SUBSHELL)).or_default();
        cost.0 += 1;
        cost.1 = cost.1.saturating_add(evidence.process(*process).cpu.total_ns());
    }
    let costs = most(costs.into_iter().collect(), NAMED);
    let counts: Vec<(&str, u64)> =
        costs.into_iter().map(|(command, (count, _))| (command, count)).collect();
    let others = removal.processes.len() as u64 - counts.iter().map(|(_, n)| n).sum::<u64>();
    let instead = counts.iter().filter_map(|(command, _)| {
        let rule = rules.replacement(command)?;
        Some(format!("{command} → {}", rule.instead))
    });
    let instead: Vec<String> = instead.collect();
    let what = if instead.is_empty() {
        "Do in the shell itself what subshells do: set a variable instead of $(…)".to_owned()
    } else {
        format!("Let the shell do it, or one process for all: {}", instead.join("; "))
    };
    let named = counts.iter().map(|(command, count)| format!("{} × {command}", count_of(*count)));
    let others = (others > 0).then(|| format!("{} others", count_of(others)));
    let listed: Vec<String> = named.chain(others).collect();
    let commands = counts.iter().map(|(command, _)| (*command).to_owned()).collect();
    let advice = Advice {
        kind: "short-commands",
        what,
        evidence: format!(
            "`{}` starts {}: {}",
            evidence.spawner_line(*units.first()?),
            counted(removal.processes.len() as u64, "short process", "short processes"),
            listed.join(", ")
        ),
        commands,
        started: commonest(evidence, units, &removal.processes),
        method: format!("{}; at least one process is kept", evidence.method()),
        risk: risk(rules, &counts),
        check: "record again: these commands are gone, and `advise --against` shows the gain"
            .into(),
        ..Advice::default()
    };
    let by = evidence.recording.templates().get(spawner as usize).map_or("", String::as_str);
    Some(Found::without(removal, advice).keyed(by))
}
