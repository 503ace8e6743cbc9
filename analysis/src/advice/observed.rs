//! What was predicted from one recording, and what a recording of the changed job shows.

use std::collections::BTreeSet;

use proctrace_findings::{
    Advice, Concerned, Gain, Left, Observed, ObservedAdvice, Outturn, Taken, Verdict, count,
};

use super::evidence::Evidence;
use super::rules::AdviceRules;
use super::same::{Units, called};
use super::taken_over::taken_over_ns;
use super::{Effect, Found, advised_of, caches, find, ranked};
use crate::recording::Recording;
use crate::recording::fast::Bits;

/// Compares both recordings as a whole, and looks for the advice of the first, which pays at least this part, in the
/// second: what is found there by the same rules is what is left of it.
pub fn observed(
    before: &Recording,
    after: &Recording,
    rules: &AdviceRules,
    min_percent: f64,
) -> Observed {
    let (before, after) = (Evidence::of(before, min_percent), Evidence::of(after, 0.0));
    let found = ranked(find(&before, rules), &before);
    let mut left: Vec<Option<Found>> = find(&after, rules).into_iter().map(Some).collect();
    let units: Vec<Units> =
        found.iter().map(|found| Units::of((&before, found), &after, rules)).collect();
    let seen: Vec<Seen> = found
        .iter()
        .zip(&units)
        .map(|(found, units)| {
            let cure = found.cure.and_then(|cure| rules.cures.get(cure));
            Seen {
                concerned: concerned(&before, &after, units),
                units: (units.before.len() as u64, units.after.len() as u64),
                at_once: (at_once(&before, &units.before), at_once(&after, &units.after)),
                left: take_same(&mut left, &found.advice).as_ref().map(left_of),
                effect: found.effect,
                fills: cure.is_some_and(|it| caches::is_taken(it, (&before, found), &after)),
            }
        })
        .collect();
    let predicted = advised_of(&before, found);
    let taken_over = others_ns((&before, &after), &predicted.advice, (&seen, &units));
    let taken = predicted.advice.iter().zip(&seen).filter(|(advice, seen)| {
        // What is part of another one is followed with it.
        advice.part_of.is_none() && matches!(seen.taken(advice).0, Taken::Yes | Taken::InPart)
    });
    let totals = Totals {
        followed: taken.count(),
        wall_ns: reduced(before.wall_ns, after.wall_ns),
        memory_bytes: before.peak_bytes().zip(after.peak_bytes()).map(|(was, is)| reduced(was, is)),
    };
    let all = predicted.advice.into_iter().zip(seen).zip(taken_over);
    let advice = all.map(|((advice, seen), taken_over_ns)| ObservedAdvice {
        verdict: seen.verdict(&advice, taken_over_ns, &totals),
        left: seen.left,
        // Of processes that go on, the number says nothing.
        concerned: Some(seen.concerned)
            .filter(|_| matches!(seen.effect, Effect::Removed | Effect::Replaced)),
        advice,
    });
    Observed {
        wall_before_ns: before.wall_ns,
        wall_after_ns: after.wall_ns,
        cpu_before_ns: before.cpu_ns,
        cpu_after_ns: after.cpu_ns,
        peak_before_bytes: before.peak_bytes(),
        peak_after_bytes: after.peak_bytes(),
        min_percent,
        together: predicted.together,
        advice: advice.collect(),
        caches_filled: caches::filled(&before, &after),
    }
}

/// As many more processes run at once where advice to run them so was followed.
const MORE_AT_ONCE: f64 = 1.25;

/// What the changed job shows of one piece of advice.
struct Seen {
    concerned: Concerned,
    /// How many processes it is about, without those that they start, before and after.
    units: (u64, u64),
    /// How many of them run at once on average, before and after.
    at_once: (f64, f64),
    left: Option<Left>,
    effect: Effect,
    /// Whether it is a cache that is used now.
    fills: bool,
}

/// What changed in total.
struct Totals {
    /// Pieces of advice that were followed.
    followed: usize,
    wall_ns: i64,
    memory_bytes: Option<i64>,
}

impl Seen {
    fn verdict(&self, advice: &Advice, taken_over_ns: u64, totals: &Totals) -> Verdict {
        let (taken, because) = self.taken(advice);
        if !matches!(taken, Taken::Yes | Taken::InPart) {
            return Verdict { taken, because, ..Verdict::default() };
        }
        let Concerned { path_before_ns, path_after_ns, cpu_before_ns, cpu_after_ns, .. } =
            self.concerned;
        let of_path = path_before_ns.zip(path_after_ns).map(|(was, is)| {
            let less_ns =
                reduced(was, is).saturating_add(self.concerned.spawners_path_ns.unwrap_or(0));
            less_ns.saturating_sub(i64::try_from(taken_over_ns).unwrap_or(i64::MAX))
        });
        // What is about no process is about all of them, and without a path nothing else is known.
        let wall_ns = match of_path.filter(|_| self.units.0 > 0) {
            None if totals.followed == 1 => Some(totals.wall_ns),
            of_path => of_path,
        };
        let cpu_ns =
            reduced(cpu_before_ns, cpu_after_ns).saturating_add(self.concerned.spawners_cpu_ns);
        let outturn = |observed: i64, predicted: Gain| {
            (predicted.high > 0).then(|| Outturn::of(observed, predicted))
        };
        Verdict {
            taken,
            because,
            wall: wall_ns.and_then(|wall_ns| outturn(wall_ns, advice.wall_ns)),
            cpu: outturn(cpu_ns, advice.cpu_ns),
            memory: advice
                .memory_bytes
                .zip(totals.memory_bytes)
                .and_then(|(predicted, bytes)| outturn(bytes, predicted)),
        }
    }

    /// Whether it was followed: by the number of processes that it wants gone, by how many run at once if it wants that,
    /// or else by what it would still gain.
    fn taken(&self, advice: &Advice) -> (Taken, String) {
        if ["serial-stretch", "make-without-j"].contains(&advice.kind) && self.units.1 > 0 {
            let (was, is) = self.at_once;
            let taken = if is >= was * MORE_AT_ONCE { Taken::Yes } else { Taken::No };
            return (taken, format!("{was:.1} -> {is:.1} at once"));
        }
        let by_number = matches!(self.effect, Effect::Removed | Effect::Replaced)
            && advice.kind != "detached-cpu";
        let (was, is, because) = match (by_number, self.left) {
            (true, _) => {
                let (was, is) = self.units;
                let noun = if is == 1 && was == 1 { "process" } else { "processes" };
                (was, is, format!("{} -> {} {noun}", count(was), count(is)))
            }
            (false, None) => (1, 0, "not found any more".to_owned()),
            (false, Some(left)) => {
                let (was, is) = main_figure(advice, &left);
                let part = 100.0 * is as f64 / was.max(1) as f64;
                (was, is, format!("{part:.0} % of its gain is still to be had"))
            }
        };
        let taken = match u128::from(is) * 100 / u128::from(was.max(1)) {
            ..=50 => Taken::Yes,
            _ if self.fills => Taken::OnlyFilled,
            51..90 => Taken::InPart,
            _ => Taken::No,
        };
        (taken, because)
    }
}

/// How many processes run at once, on average over the time in which one of them does.
fn at_once(evidence: &Evidence<'_>, units: &[u32]) -> f64 {
    let lives_ns: u64 = units.iter().map(|unit| evidence.life_ns(*unit)).sum();
    lives_ns as f64 / evidence.alive_ns(units).max(1) as f64
}

/// What it mainly gains, and would still gain.
fn main_figure(advice: &Advice, left: &Left) -> (u64, u64) {
    if advice.wall_ns.middle > 0 {
        return (advice.wall_ns.middle, left.wall_ns.middle);
    }
    match (advice.memory_bytes, left.memory_bytes) {
        (Some(was), is) if was.middle > 0 => (was.middle, is.map_or(0, |is| is.middle)),
        _ => (advice.cpu_ns.middle, left.cpu_ns.middle),
    }
}

fn reduced(before: u64, after: u64) -> i64 {
    let by = i64::try_from(before.abs_diff(after)).unwrap_or(i64::MAX);
    if after > before { -by } else { by }
}

/// Takes the advice out that says the same: in the same words if there is one, else about the same commands.
fn take_same(left: &mut [Option<Found>], advice: &Advice) -> Option<Found> {
    let place = |is_same: &dyn Fn(&Advice) -> bool| {
        left.iter().position(|found| {
            let found = found.as_ref().filter(|found| found.advice.kind == advice.kind);
            found.is_some_and(|found| is_same(&found.advice))
        })
    };
    let of_commands =
        |other: &Advice| other.commands.iter().any(|command| advice.commands.contains(command));
    let at = place(&|other| other.what == advice.what && other.commands == advice.commands)
        .or_else(|| place(&of_commands))
        .or_else(|| place(&|other| other.what == advice.what))?;
    left[at].take()
}

fn left_of(found: &Found) -> Left {
    let Advice { wall_ns, cpu_ns, memory_bytes, .. } = found.advice;
    Left { wall_ns, cpu_ns, memory_bytes }
}

/// Processes of both with all that they start, and what their spawners use for them.
fn concerned(before: &Evidence<'_>, after: &Evidence<'_>, units: &Units) -> Concerned {
    let processes = (before.with_descendants(&units.before), after.with_descendants(&units.after));
    let (spawners_cpu_ns, spawners_path_ns) = of_spawners((before, after), units);
    Concerned {
        processes_before: processes.0.len() as u64,
        processes_after: processes.1.len() as u64,
        cpu_before_ns: before.cpu_ns_of(&processes.0),
        cpu_after_ns: after.cpu_ns_of(&processes.1),
        path_before_ns: before.path_ns_of(&processes.0),
        path_after_ns: after.path_ns_of(&processes.1),
        spawners_cpu_ns,
        spawners_path_ns,
    }
}

/// For each piece of advice that was followed, what others take of the path now.
fn others_ns(
    (before, after): (&Evidence<'_>, &Evidence<'_>),
    advice: &[Advice],
    (seen, units): (&[Seen], &[Units]),
) -> Vec<u64> {
    let (mut was, mut is) = (Bits::default(), Bits::default());
    let mut add = |evidence: &Evidence<'_>, units: &[u32], of_after: bool| {
        let of = if of_after { &mut is } else { &mut was };
        let parents = units.iter().filter_map(|unit| evidence.process(*unit).parent());
        let all = evidence.with_descendants(units).into_iter().map(|process| process as usize);
        all.chain(parents).for_each(|process| of.insert(process));
    };
    let followed = |at: usize| {
        advice[at].part_of.is_none()
            && matches!(seen[at].taken(&advice[at]).0, Taken::Yes | Taken::InPart)
    };
    let mut advised = vec![Vec::new(); advice.len()];
    for (at, units) in units.iter().enumerate() {
        add(before, &units.before, false);
        add(after, &units.after, true);
        if followed(at) {
            advised[at] = before.with_descendants(&units.before);
        }
    }
    taken_over_ns((before, after), (&was, &is), &advised)
}

/// What the spawners use less themselves, of which the part is due to these processes that they are of all children that
/// are not started any more; where none is gone, that of all children.
fn of_spawners(
    (before, after): (&Evidence<'_>, &Evidence<'_>),
    units: &Units,
) -> (i64, Option<i64>) {
    let parents = |evidence: &Evidence<'_>, units: &[u32]| -> Vec<u32> {
        let of = |unit: &u32| u32::try_from(evidence.process(*unit).parent()?).ok();
        units.iter().filter_map(of).collect::<BTreeSet<u32>>().into_iter().collect()
    };
    let before_parents = parents(before, &units.before);
    // Those that have started them before may start none now.
    let names: BTreeSet<&str> = before_parents
        .iter()
        .filter_map(|parent| before.own_template(*parent))
        .map(called)
        .collect();
    let is_one = |at: u32| after.own_template(at).is_some_and(|line| names.contains(called(line)));
    let mut after_parents: BTreeSet<u32> = parents(after, &units.after).into_iter().collect();
    let all = after.processes().map(|(at, _)| at);
    after_parents.extend(all.filter(|at| is_one(*at)));
    let after_parents: Vec<u32> = after_parents.into_iter().collect();
    let children = |evidence: &Evidence<'_>, parents: &[u32]| -> u64 {
        parents.iter().map(|parent| evidence.children(*parent).len() as u64).sum()
    };
    let all = (children(before, &before_parents), children(after, &after_parents));
    let (was, is) = (units.before.len() as u64, units.after.len() as u64);
    let part = match was.saturating_sub(is) {
        0 => was as f64 / all.0.max(1) as f64,
        gone => gone as f64 / all.0.saturating_sub(all.1).max(gone) as f64,
    };
    let share = |less: i64| (less as f64 * part.min(1.0)) as i64;
    let cpu_ns = reduced(before.cpu_ns_of(&before_parents), after.cpu_ns_of(&after_parents));
    let path_ns = before.path_ns_of(&before_parents).zip(after.path_ns_of(&after_parents));
    (share(cpu_ns), path_ns.map(|(was, is)| share(reduced(was, is))))
}
