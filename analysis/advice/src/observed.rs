//! Comparison of what was predicted from one recording with what a recording of the changed job shows.

use std::collections::{BTreeMap, BTreeSet};

use proctrace_classify::fast::Bits;
use proctrace_findings::{
    Advice, Concerned, Gain, Left, Observed, ObservedAdvice, Outturn, Taken, Verdict, count,
};
use proctrace_recording::Recording;
use proctrace_wire::Quantity;

use super::evidence::{Evidence, name};
use super::names::called;
use super::rules::AdviceRules;
use super::same::Units;
use super::taken_over::taken_over_ns;
use super::{Effect, Found, advised_of, caches, find, ranked};

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
    let same = same_of(&found, find(&after, rules));
    let units: Vec<Units> =
        found.iter().map(|found| Units::of((&before, found), &after, rules)).collect();
    let below: Vec<Vec<u32>> =
        units.iter().map(|units| before.with_descendants(&units.before)).collect();
    let mut seen: Vec<Seen> = found
        .iter()
        .zip(&units)
        .zip(same)
        .map(|((found, units), same)| {
            let cure = found.cure.and_then(|cure| rules.cures.get(cure));
            // Its evidence counts all processes of a command, such as the subshell around it.
            let number = |evidence: &Evidence<'_>, units: &[u32]| match found.advice.kind {
                "short-commands" => evidence.with_descendants(units).len() as u64,
                _ => units.len() as u64,
            };
            Seen {
                concerned: concerned(&before, &after, units),
                units: (number(&before, &units.before), number(&after, &units.after)),
                at_once: is_told_by_row(found.advice.kind)
                    .then(|| (at_once(&before, &units.before), at_once(&after, &units.after))),
                left: same.as_ref().map(left_of),
                not_told: not_told(found.advice.kind, &before, &after),
                knows_cpu: knows(&before, Quantity::Cpu) && knows(&after, Quantity::Cpu),
                is_shared: false,
                effect: found.effect,
                fills: cure.is_some_and(|it| caches::is_taken(it, (&before, found), &after)),
            }
        })
        .collect();
    let predicted = advised_of(&before, found);
    let followed: Vec<bool> =
        predicted.advice.iter().zip(&seen).map(|(advice, seen)| seen.counts(advice)).collect();
    for at in 0..seen.len() {
        let others = (0..seen.len()).filter(|other| *other != at && followed[*other]);
        seen[at].is_shared = matches!(seen[at].effect, Effect::Reduced | Effect::Kept)
            && others.into_iter().any(|other| have_common(&below[at], &below[other]));
    }
    let taken_over = others_ns((&before, &after), &followed, &units);
    let totals = Totals {
        followed: followed.iter().filter(|followed| **followed).count(),
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

/// Minimum ratio of the processes that run at once after the change to those before, if advice to do so was followed.
const MORE_AT_ONCE: f64 = 1.25;
/// Advice that is found where processes have more than a certain share of the wall time.
const BY_SHARE: [&str; 2] = ["straggler", "serial-process"];
/// Minimum children of a row.
const ROW_MIN: usize = 3;
/// Percentage of what it was below which something is noticeably less.
const NOTICEABLE_PERCENT: u64 = 90;

/// Observations in the changed job about one piece of advice.
struct Seen {
    concerned: Concerned,
    /// Number of processes it is about, without those that they start, before and after.
    units: (u64, u64),
    /// Number of them that run at once on average, before and after, if that tells whether it was followed.
    at_once: Option<(f64, f64)>,
    left: Option<Left>,
    effect: Effect,
    /// True if it is a cache that is used now.
    fills: bool,
    /// Reason why it cannot be told whether it was followed.
    not_told: Option<String>,
    /// True if both recordings have CPU times.
    knows_cpu: bool,
    /// True if its processes go on, and other advice about some of them was followed: what came of which is not told
    /// apart.
    is_shared: bool,
}

/// Changes in total.
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
            of_path => of_path.filter(|_| !self.is_shared),
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
            cpu: Some(cpu_ns)
                .filter(|_| self.knows_cpu && !self.is_shared)
                .and_then(|cpu_ns| outturn(cpu_ns, advice.cpu_ns)),
            memory: advice
                .memory_bytes
                .zip(totals.memory_bytes)
                .and_then(|(predicted, bytes)| outturn(bytes, predicted)),
        }
    }

    /// Returns whether its outcome counts by itself: what is part of another one is followed with it.
    fn counts(&self, advice: &Advice) -> bool {
        advice.part_of.is_none() && matches!(self.taken(advice).0, Taken::Yes | Taken::InPart)
    }

    /// Returns whether its processes take noticeably less than before.
    fn takes_less(&self) -> bool {
        let Concerned { path_before_ns, path_after_ns, cpu_before_ns, cpu_after_ns, .. } =
            self.concerned;
        let is_less = |(was, is): (u64, u64)| is < was / 100 * NOTICEABLE_PERCENT;
        path_before_ns.zip(path_after_ns).is_some_and(is_less)
            || is_less((cpu_before_ns, cpu_after_ns))
    }

    /// Verdict on whether it was followed, and why: by the number of processes that it wants gone, by how many run at once if it
    /// wants that, or else by what it would still gain.
    fn taken(&self, advice: &Advice) -> (Taken, String) {
        if let Some(why) = &self.not_told {
            return (Taken::Unknown, why.clone());
        }
        if let Some((was, is)) = self.at_once.filter(|_| self.units.1 > 0) {
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
            // A part of the wall time that was just enough before may be just too small now.
            (false, None) if BY_SHARE.contains(&advice.kind) && !self.takes_less() => {
                (1, 1, "its processes take as long as before".to_owned())
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

/// Returns whether advice of this kind was followed if more of its processes run at once.
fn is_told_by_row(kind: &str) -> bool {
    matches!(kind, "serial-stretch" | "make-without-j")
}

/// Number of processes that run at once, on average over the time in which one of them does: of these, or of what they
/// start, the children of one process with a name of theirs that live longest in sum. Makes that cmake has written are
/// children of a make that is the only child of another one.
fn at_once(evidence: &Evidence<'_>, units: &[u32]) -> f64 {
    let mut rows: BTreeMap<(Option<usize>, &str), Vec<u32>> = BTreeMap::new();
    for process in evidence.with_descendants(units) {
        let key = (evidence.process(process).parent(), name(evidence, process));
        rows.entry(key).or_default().push(process);
    }
    let lives_ns = |row: &[u32]| {
        row.iter().fold(0_u64, |sum, unit| sum.saturating_add(evidence.life_ns(*unit)))
    };
    let at_once = |row: &[u32]| lives_ns(row) as f64 / evidence.alive_ns(row).max(1) as f64;
    let names: BTreeSet<&str> = units.iter().map(|unit| name(evidence, *unit)).collect();
    let rows =
        rows.into_iter().filter(|((_, name), row)| row.len() >= ROW_MIN && names.contains(name));
    let rows = rows.map(|(_, row)| row);
    let longest = rows.max_by_key(|row| lives_ns(row)).unwrap_or_default();
    at_once(units).max(at_once(&longest))
}

/// The figure that it mainly gains, and the same figure of what it would still gain.
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

/// Finds for each piece of advice the same one of the changed job, each of these once: first those of the same key,
/// then, of those that are left, one about the same commands.
fn same_of(found: &[Found], after: Vec<Found>) -> Vec<Option<Found>> {
    let mut left: Vec<Option<Found>> = after.into_iter().map(Some).collect();
    let mut take = |one: &Found, is_same: &dyn Fn(&Found) -> bool| {
        let at = left.iter().position(|other| {
            other
                .as_ref()
                .is_some_and(|other| other.advice.kind == one.advice.kind && is_same(other))
        });
        at.and_then(|at| left[at].take())
    };
    let of_key = |one: &Found| {
        let commands = &one.advice.commands;
        take(one, &|other| other.key == one.key && other.advice.commands == *commands)
    };
    let mut same: Vec<Option<Found>> = found.iter().map(of_key).collect();
    for (one, same) in found.iter().zip(&mut same).filter(|(_, same)| same.is_none()) {
        let commands = &one.advice.commands;
        let of_commands = |other: &Found| {
            other.advice.commands.iter().any(|command| commands.contains(command))
                || other.key == one.key
        };
        *same = take(one, &of_commands);
    }
    same
}

/// Quantities that a kind of advice is found by, beside the processes and their command lines.
fn found_by(kind: &str) -> &'static [Quantity] {
    match kind {
        "timer-in-path" | "polling" | "straggler" | "shared-writer" | "serial-process"
        | "large-fork" => &[Quantity::Waits],
        "memory-peak" => &[Quantity::Memory],
        "repeated-opens" => &[Quantity::LookupsOpen, Quantity::OpenedFiles],
        "search-in-vain" | "startup-cost" => &[Quantity::LookupsOpen],
        "detached-cpu" => &[Quantity::Cpu],
        _ => &[],
    }
}

fn knows(evidence: &Evidence<'_>, quantity: Quantity) -> bool {
    evidence.recording.knows().all(&[quantity])
}

/// Reason why the recording after the change cannot tell whether advice was followed, which the one before it could
/// give.
fn not_told(kind: &str, before: &Evidence<'_>, after: &Evidence<'_>) -> Option<String> {
    let always = [Quantity::Forks, Quantity::Execs, Quantity::Argv];
    let needs: Vec<Quantity> = always
        .iter()
        .chain(found_by(kind))
        .copied()
        .filter(|quantity| knows(before, *quantity))
        .collect();
    let why = after.recording.knows().why_not(&needs)?;
    Some(format!("not known after the change: {why}"))
}

/// Returns whether two lists in order have a process in common.
fn have_common(one: &[u32], other: &[u32]) -> bool {
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    short.iter().any(|process| long.binary_search(process).is_ok())
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

/// Time that others take of the path now, for each piece of advice that was followed.
fn others_ns(
    (before, after): (&Evidence<'_>, &Evidence<'_>),
    followed: &[bool],
    units: &[Units],
) -> Vec<u64> {
    let (mut was, mut is) = (Bits::default(), Bits::default());
    let mut add = |evidence: &Evidence<'_>, units: &[u32], of_after: bool| {
        let of = if of_after { &mut is } else { &mut was };
        let parents = units.iter().filter_map(|unit| evidence.process(*unit).parent());
        let all = evidence.with_descendants(units).into_iter().map(|process| process as usize);
        all.chain(parents).for_each(|process| of.insert(process));
    };
    let mut advised = vec![Vec::new(); units.len()];
    for (at, units) in units.iter().enumerate() {
        add(before, &units.before, false);
        add(after, &units.after, true);
        if followed[at] {
            advised[at] = before.with_descendants(&units.before);
        }
    }
    taken_over_ns((before, after), (&was, &is), &advised)
}

/// Reduction of the CPU time and of the time on the critical path that the spawners use themselves because of this
/// advice: of what all their children together cost them less, the part that these processes have in the number of
/// those that are gone. Where none is gone, the part that they have in all children.
fn of_spawners(
    (before, after): (&Evidence<'_>, &Evidence<'_>),
    units: &Units,
) -> (i64, Option<i64>) {
    let parents = |evidence: &Evidence<'_>, units: &[u32]| -> BTreeSet<u32> {
        let of = |unit: &u32| u32::try_from(evidence.process(*unit).parent()?).ok();
        units.iter().filter_map(of).collect()
    };
    let of_units = parents(before, &units.before);
    let names: BTreeSet<&str> =
        of_units.iter().filter_map(|parent| before.own_template(*parent)).map(called).collect();
    // All of these names in both: those that have started them may start none now. The command itself is the same
    // one, whatever its arguments are.
    let is_root = |evidence: &Evidence<'_>, at: u32| evidence.process(at).is_root();
    let has_root = of_units.iter().any(|parent| is_root(before, *parent));
    let all = |evidence: &Evidence<'_>, mut parents: BTreeSet<u32>| -> Vec<u32> {
        let is_one = |at: &u32| {
            evidence.own_template(*at).is_some_and(|line| names.contains(called(line)))
                || has_root && is_root(evidence, *at)
        };
        parents.extend(evidence.processes().map(|(at, _)| at).filter(is_one));
        parents.into_iter().collect()
    };
    let (before_parents, after_parents) =
        (all(before, of_units.clone()), all(after, parents(after, &units.after)));
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
