//! `serial-stretch` and `make-without-j`: children that run one after the other while cores are idle.

use std::collections::{BTreeMap, BTreeSet};

use proctrace_findings::{Advice, Gain, counted, time};

use super::Found;
use super::counter::{asks_for_jobs, asks_for_workers, coordinates, files, subcommand};
use super::evidence::{Evidence, name};
use crate::recording::fast::Bits;

/// Fewer are not worth starting at once.
const CHILDREN_MIN: usize = 3;
/// A child with a smaller part of the wall time is not worth a core: one in this many.
const PART_OF_WALL: u64 = 200;
/// Nor is one that takes less time than this.
const CHILD_MIN_NS: u64 = 20_000_000;
const MAKES: [&str; 2] = ["make", "gmake"];
/// A file that so many children of a make name, and most of them, is read by all, and tells of no order. Of other
/// children, all have to name it: lines of a recipe often name one file, a loop does not.
const NAMED_BY_MANY: usize = 4;
/// Of the machine, that others used: from here on they may be in the way again.
const OTHERS_PERCENT: f64 = 10.0;
/// Commands that choose the CPUs of others.
const PINS: [&str; 2] = ["taskset", "numactl"];

/// Per spawner process: a row of children of the same command, or of any if it is make. All rows of makes that leave
/// as many cores idle are one: S - L and S/k of each are added up.
///
/// The time of a child is its own on the critical path, and that of the sleeps there with which its parent looks
/// again and again whether it has ended. With S, the time of the row, L, that of its longest child, and k cores that are idle
/// meanwhile and the one in use: middle S - max(L, S/k), as if the work could be spread evenly; high S - L,
/// as if the children mostly waited; low 0, because what depends on what is not recorded. CPU: nothing.
///
/// Against it speak: a parent that decides itself what runs at once; make with -j, in its command line or seen by children
/// that ran at once; children that ask for threads, or use several cores; a child that names a file which the one before it
/// named.
pub(super) fn find(evidence: &Evidence<'_>) -> Vec<Found> {
    if evidence.path.is_none() {
        return Vec::new();
    }
    let (mut found, mut makes) = (Vec::new(), Vec::<Vec<Stretch>>::new());
    let mut with_jobs = BTreeMap::new();
    let timers = evidence.timers();
    for (process, _) in evidence.processes() {
        if evidence.children(process).len() < CHILDREN_MIN
            || !evidence.pays(evidence.path_below_ns[process as usize], 0)
            || evidence.own_template(process).is_some_and(coordinates)
        {
            continue;
        }
        let parent = Parent {
            process,
            is_make: evidence.command(process).is_some_and(|name| MAKES.contains(&name)),
            sleeps: sleeps(evidence, &timers, process),
        };
        if parent.is_make && has_jobs(evidence, process, &mut with_jobs) {
            continue;
        }
        for row in rows(evidence, &parent) {
            let Some(stretch) = Stretch::of(evidence, &parent, &row) else { continue };
            // As many of them as have as many cores.
            match makes.iter_mut().find(|of| stretch.is_make && of[0].cores == stretch.cores) {
                Some(of) => of.push(stretch),
                None if stretch.is_make => makes.push(vec![stretch]),
                None => found.extend(advice(evidence, &[stretch])),
            }
        }
    }
    found.extend(makes.iter().filter_map(|of| advice(evidence, of)));
    found
}

/// A process that may run its children one after the other.
struct Parent {
    process: u32,
    is_make: bool,
    /// Begin and end of the sleeps on the path that are children of it, in order.
    sleeps: Vec<(u64, u64)>,
}

impl Parent {
    /// The time on the path that is for a child.
    fn waits_for_ns(&self, evidence: &Evidence<'_>, child: u32) -> u64 {
        let (born_ns, ended_ns) = (evidence.process(child).born_ns, evidence.ended_ns(child));
        let first = self.sleeps.partition_point(|(_, end_ns)| *end_ns <= born_ns);
        let slept_ns = self.sleeps[first..]
            .iter()
            .take_while(|(begin_ns, _)| *begin_ns < ended_ns)
            .map(|(begin_ns, end_ns)| {
                (*end_ns.min(&ended_ns)).saturating_sub(*begin_ns.max(&born_ns))
            })
            .fold(0_u64, u64::saturating_add);
        evidence.path_below_ns[child as usize].saturating_add(slept_ns)
    }
}

/// The sleeps among the children of a process.
fn sleeps(evidence: &Evidence<'_>, timers: &[(u32, u64, u64)], parent: u32) -> Vec<(u64, u64)> {
    let own = timers.iter().filter(|(process, _, _)| {
        evidence.process(*process).parent() == Some(parent as usize)
            && evidence.command(*process) == Some("sleep")
    });
    own.map(|(_, begin_ns, end_ns)| (*begin_ns, *end_ns)).collect()
}

/// Whether make, or one above it, runs its children at once; `known` has the answers for others. Flags may come by MAKEFLAGS, which is not recorded: children
/// of make itself never overlap without -j.
fn has_jobs(evidence: &Evidence<'_>, make: u32, known: &mut BTreeMap<u32, bool>) -> bool {
    let (mut at, mut asked) = (Some(make), Vec::new());
    let answer = loop {
        let Some(process) = at else { break false };
        if let Some(known) = known.get(&process) {
            break *known;
        }
        // A broken trace may contain a circle: whoever is asked about twice has none.
        known.insert(process, false);
        asked.push(process);
        if evidence.command(process).is_some_and(|name| MAKES.contains(&name)) {
            let line = evidence.recording.line_of(evidence.process(process));
            let parent = Parent { process, is_make: true, sleeps: Vec::new() };
            if asks_for_jobs(line) || !at_once(evidence, &parent).is_empty() {
                break true;
            }
        }
        at = evidence.process(process).parent().and_then(|parent| u32::try_from(parent).ok());
    };
    asked.into_iter().for_each(|process| {
        known.insert(process, answer);
    });
    answer
}

/// Children that each take a while of the path, none of which begins before the one before it has ended, or is known to
/// need what that has made.
fn rows(evidence: &Evidence<'_>, parent: &Parent) -> Vec<Vec<(u32, u64)>> {
    let at_once = at_once(evidence, parent);
    let line = |child: u32| evidence.recording.line_of(evidence.process(child));
    let candidates: Vec<(u32, u64)> = evidence
        .children(parent.process)
        .iter()
        .map(|child| (*child, parent.waits_for_ns(evidence, *child)))
        .filter(|(child, on_path_ns)| {
            *on_path_ns >= CHILD_MIN_NS.max(evidence.wall_ns / PART_OF_WALL)
                && !matches!(evidence.command(*child), None | Some("sleep"))
                && !at_once.contains(*child as usize)
                && !asks_for_workers(line(*child))
        })
        .collect();
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    for file in
        candidates.iter().flat_map(|(child, _)| files(line(*child)).collect::<BTreeSet<_>>())
    {
        *named.entry(file).or_default() += 1;
    }
    let all = candidates.len();
    let many = if parent.is_make { NAMED_BY_MANY.max(all / 2 + 1) } else { all };
    let is_read_by_all = |file: &str| named.get(file).is_some_and(|by| *by >= many);
    let needs = |child: u32, before: u32| {
        let made: BTreeSet<&str> =
            files(line(before)).filter(|file| !is_read_by_all(file)).collect();
        files(line(child)).any(|file| made.contains(file))
    };
    let mut rows: Vec<Vec<(u32, u64)>> = Vec::new();
    let mut until_ns = 0;
    for (child, on_path_ns) in candidates.iter().copied() {
        let follows = |row: &&mut Vec<(u32, u64)>| {
            let Some((last, _)) = row.last().copied() else { return false };
            let same = name(evidence, last) == name(evidence, child)
                && subcommand(line(last)) == subcommand(line(child));
            (parent.is_make || same)
                && evidence.process(child).born_ns >= until_ns
                && !needs(child, last)
        };
        match rows.last_mut().filter(follows) {
            Some(row) => row.push((child, on_path_ns)),
            None => rows.push(vec![(child, on_path_ns)]),
        }
        until_ns = until_ns.max(evidence.ended_ns(child));
    }
    rows.retain(|row| row.len() >= CHILDREN_MIN);
    rows
}

/// Children that for at least half of their lives have company of their kind: they are run at once already,
/// and only those that end last are on the path.
fn at_once(evidence: &Evidence<'_>, parent: &Parent) -> Bits {
    let mut kinds: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for child in evidence.children(parent.process) {
        if evidence.command(*child).is_some() {
            let kind = if parent.is_make { "" } else { name(evidence, *child) };
            kinds.entry(kind).or_default().push(*child);
        }
    }
    let mut at_once = Bits::default();
    for children in kinds.into_values() {
        let life = |child: &u32| (evidence.process(*child).born_ns, evidence.ended_ns(*child));
        let company = Company::of(children.iter().map(life));
        for child in children.iter().filter(|child| {
            let (born_ns, ended_ns) = life(child);
            company.ns(born_ns, ended_ns) > ended_ns.saturating_sub(born_ns) / 2
        }) {
            at_once.insert(*child as usize);
        }
    }
    at_once
}

/// The times at which two or more of several lives overlap.
struct Company {
    /// When it changes, and for how long there was company until then.
    changes: Vec<(u64, u64)>,
    /// Whether there is company after each change.
    after: Vec<bool>,
}

impl Company {
    fn of(lives: impl Iterator<Item = (u64, u64)>) -> Self {
        // Ends come before births at the same time: lives that only touch do not overlap.
        let mut events: Vec<(u64, i64)> = lives
            .flat_map(|(born_ns, ended_ns)| [(born_ns, 1), (ended_ns.max(born_ns), -1)])
            .collect();
        events.sort_unstable();
        let (mut alive, mut sum_ns, mut last_ns) = (0_i64, 0_u64, 0_u64);
        let mut company = Self { changes: Vec::new(), after: Vec::new() };
        for (time_ns, change) in events {
            if alive >= 2 {
                sum_ns = sum_ns.saturating_add(time_ns - last_ns);
            }
            (alive, last_ns) = (alive + change, time_ns);
            company.changes.push((time_ns, sum_ns));
            company.after.push(alive >= 2);
        }
        company
    }

    /// For how long there is company between two times.
    fn ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        let until = |time_ns: u64| {
            let at = self.changes.partition_point(|(change_ns, _)| *change_ns <= time_ns);
            let Some(last) = at.checked_sub(1) else { return 0 };
            let (change_ns, sum_ns) = self.changes[last];
            if self.after[last] { sum_ns.saturating_add(time_ns - change_ns) } else { sum_ns }
        };
        until(to_ns).saturating_sub(until(from_ns))
    }
}

/// A row, and what it gains to run it at once.
struct Stretch {
    parent: u32,
    is_make: bool,
    row: Vec<u32>,
    sum_ns: u64,
    longest_ns: u64,
    /// The idle cores and the one in use.
    cores: u64,
}

impl Stretch {
    fn of(evidence: &Evidence<'_>, parent: &Parent, row: &[(u32, u64)]) -> Option<Self> {
        let stretch = Self {
            parent: parent.process,
            is_make: parent.is_make,
            sum_ns: row.iter().map(|(_, on_path_ns)| *on_path_ns).fold(0, u64::saturating_add),
            longest_ns: row.iter().map(|(_, on_path_ns)| *on_path_ns).max()?,
            row: row.iter().map(|(child, _)| *child).collect(),
            cores: cores(evidence, row),
        };
        (stretch.cores > 1).then_some(stretch)
    }

    fn middle_ns(&self) -> u64 {
        let even_ns = self.sum_ns / self.cores.min(self.row.len() as u64);
        self.sum_ns.saturating_sub(self.longest_ns.max(even_ns))
    }
}

/// The same change of one or several rows: make hands its -j down to all that it starts.
fn advice(evidence: &Evidence<'_>, stretches: &[Stretch]) -> Option<Found> {
    let sum = |of: &dyn Fn(&Stretch) -> u64| stretches.iter().map(of).fold(0, u64::saturating_add);
    let middle_ns = sum(&Stretch::middle_ns);
    if !evidence.pays(middle_ns, 0) {
        return None;
    }
    let first = stretches.first()?;
    let (cores, children) = (first.cores, sum(&|it| it.row.len() as u64));
    let command = evidence.command(*first.row.first()?)?;
    let line = evidence.recording.template_of(evidence.process(first.parent)).unwrap_or("");
    let (kind, what) = if first.is_make {
        ("make-without-j", format!("Run make with -j{cores}"))
    } else {
        let what = format!(
            "Run the {children} processes of `{command}` at once, up to {cores} at a time: `&` and wait, or xargs -P",
        );
        ("serial-stretch", what)
    };
    let row: Vec<u32> = stretches.iter().flat_map(|it| &it.row).copied().collect();
    let processes = evidence.with_descendants(&row);
    let mut parents: Vec<u32> = stretches.iter().map(|it| it.parent).collect();
    parents.sort_unstable();
    parents.dedup();
    let (others, runs) = match parents.len() - 1 {
        0 => (String::new(), "runs"),
        more => (format!(" and {}", counted(more as u64, "other make", "other makes")), "run"),
    };
    let mut risk = "a child may need what an earlier one made; memory for all at once".to_owned();
    if let Some(pinned) = pinned_by(evidence, first.parent) {
        risk.push_str(&format!("; `{pinned}` may keep them on fewer cores: --cores"));
    }
    if let Some(percent) = evidence.recording.others_percent().filter(|it| *it >= OTHERS_PERCENT) {
        risk.push_str(&format!("; others used {percent:.0} % of the machine, and may again"));
    }
    let advice = Advice {
        kind,
        what,
        evidence: format!(
            "`{}`{others} {runs} {} one after the other, {} in total and {} the longest, while {} of {} are idle",
            evidence.line(first.parent),
            counted(children, "child", "children"),
            time(sum(&|it| it.sum_ns)),
            time(stretches.iter().map(|it| it.longest_ns).max()?),
            cores - 1,
            counted(evidence.recording.header.cpus.into(), "core", "cores"),
        ),
        commands: vec![command.to_owned()],
        processes: processes.len() as u64,
        wall_ns: Gain::new(0, middle_ns, sum(&|it| it.sum_ns - it.longest_ns)),
        method:
            "wall: their time on the critical path less that of the longest (high), or less an \
                 even share for each idle core (middle); low is 0, as dependencies are not recorded"
                .into(),
        risk,
        check: "compare the results; then record again and use `advise --against`".into(),
        ..Advice::default()
    };
    Some(Found::about(processes, advice).keyed(line))
}

/// The command among the ancestors of a process, or that they ran before, that chooses the CPUs they may use.
fn pinned_by<'a>(evidence: &Evidence<'a>, process: u32) -> Option<&'a str> {
    let mut at = Some(process as usize);
    let mut ancestors = Bits::default();
    while let Some(process) = at.filter(|process| !ancestors.contains(*process)) {
        ancestors.insert(process);
        at = evidence.recording.processes[process].parent();
    }
    let mut theirs = evidence.recording.runs.iter().filter_map(|run| {
        let name = &evidence.recording.programs.get(run.program as usize)?.name;
        ancestors.contains(run.process as usize).then_some(&**name)
    });
    theirs.find(|name| PINS.contains(name))
}

/// How many of a row fit beside each other: into the cores that all others leave idle, on average while it runs, each with
/// the cores that it uses itself.
fn cores(evidence: &Evidence<'_>, row: &[(u32, u64)]) -> u64 {
    let (Some((first, _)), Some((last, _))) = (row.first(), row.last()) else { return 0 };
    let (begin_ns, end_ns) = (evidence.process(*first).born_ns, evidence.ended_ns(*last));
    let row: Vec<u32> = row.iter().map(|(child, _)| *child).collect();
    let in_row = evidence.with_descendants(&row);
    let mut busy_ns = 0.0;
    for (number, process) in evidence.processes() {
        let until_ns = evidence.ended_ns(number).min(end_ns);
        let both_ns = until_ns.saturating_sub(process.born_ns.max(begin_ns));
        if both_ns > 0 && in_row.binary_search(&number).is_err() {
            let part = both_ns as f64 / evidence.life_ns(number).max(1) as f64;
            busy_ns += part * process.cpu.total_ns() as f64;
        }
    }
    let busy = busy_ns / end_ns.saturating_sub(begin_ns).max(1) as f64;
    let idle = (f64::from(evidence.recording.header.cpus) - busy).max(0.0);
    let sum =
        |of: &dyn Fn(u32) -> u64| row.iter().map(|child| of(*child)).fold(0, u64::saturating_add);
    let lives_ns = sum(&|child| evidence.life_ns(child));
    let own_ns = sum(&|child| evidence.cpu_below_ns[child as usize]);
    let own = (own_ns as f64 / lives_ns.max(1) as f64).max(1.0);
    (idle / own).round() as u64
}
