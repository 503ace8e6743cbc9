//! `serial-stretch` and `make-without-j`: children that run one after the other while cores are idle.

use std::collections::{BTreeMap, BTreeSet};

use proctrace_classify::fast::Bits;
use proctrace_findings::{Advice, Gain, counted, time};

use super::counter::{
    are_turns, asks_for_jobs, asks_for_workers, files, is_of_tool, made, subcommand, without_jobs,
};
use super::engines::{Engine, engine_of, one_at_a_time};
use super::evidence::{Evidence, name};
use super::independence::{Independence, independence};
use super::names::{first_word, is_whole, script};
use super::rules::AdviceRules;
use super::{Found, PART_CERTAIN};

/// Minimum children that are worth starting at once.
const CHILDREN_MIN: usize = 3;
/// Minimum part of the wall time of a child that is worth a core: one in this many.
const PART_OF_WALL: u64 = 200;
/// Minimum time of such a child.
const CHILD_MIN_NS: u64 = 20_000_000;
/// Programs that run commands of which they know nothing.
const RUNS_ANYTHING: [&str; 2] = ["xargs", "parallel"];
const MAKES: [&str; 2] = ["make", "gmake"];
/// Minimum children of a make that name a file which is read by all, and tells of no order; they are most of them, too.
/// Of other children, all have to name it: lines of a recipe often name one file, a loop does not.
const NAMED_BY_MANY: usize = 4;
/// Percentage of the machine that others used from which on they may be in the way again.
const OTHERS_PERCENT: f64 = 10.0;
/// Minimum children of make that are of one kind: two or three may be lines of one recipe, as the pod2man of Perl's
/// MakeMaker.
const KIND_MIN: usize = 4;
/// Children before one that are asked whether it needs them.
const COMPARED_MAX: usize = 64;
/// Upper bound of the part of a core that is missing where one more is named.
const ROUND_UP: f64 = 0.35;
const BESIDE_MAX: f64 = 0.1;
/// Processes above one that are looked at.
const ABOVE_MAX: usize = 64;
/// Commands that choose the CPUs of others.
const PINS: [&str; 2] = ["taskset", "numactl"];

/// Per spawner process: a row of children of the same command, or of any if it is make. All rows of makes that leave
/// as many cores idle are one: S - L and S/k of each are added up.
///
/// The time of a child is its own on the critical path, and that of the sleeps there with which its parent looks
/// again and again whether it has ended. With S, the time of the row, L, that of its longest child, or of its longest chain of children that
/// name what the one before has made, and k cores that are idle
/// meanwhile and the one in use: middle S - max(L, S/k), as if the work could be spread evenly; high S - L,
/// as if the children mostly waited. Low: a quarter of the middle if the parent knows which of them need others, for make of
/// those of one kind, or if they are known not to (`independence`); otherwise 0. CPU: nothing.
///
/// Against it speak: a parent that decides itself what runs at once; make with -j, in its command line or seen by children
/// that ran at once; children that ask for threads, or use several cores; a child that names a file which the one before it
/// named.
pub(super) fn find(evidence: &Evidence<'_>, rules: &AdviceRules) -> Vec<Found> {
    if evidence.path.is_none() {
        return Vec::new();
    }
    let (mut found, mut joined) = (Vec::new(), Vec::<Vec<Stretch>>::new());
    let mut with_jobs = BTreeMap::new();
    let timers = evidence.timers();
    for (process, _) in evidence.processes() {
        if evidence.children(process).len() < CHILDREN_MIN
            || !evidence.pays(evidence.path_below_ns(process), 0)
        {
            continue;
        }
        let line = evidence.recording.line_of(evidence.process(process));
        let engine = evidence.own_template(process).and_then(|_| one_at_a_time(line));
        // It may have been asked by one of its own processes above it.
        let engine = engine.filter(|engine| !is_asked_above(evidence, process, engine.name));
        if engine.is_none() && evidence.own_template(process).is_some_and(is_of_tool) {
            continue;
        }
        let is_make = evidence.command(process).is_some_and(|name| MAKES.contains(&name));
        let sleeps = sleeps(evidence, &timers, process);
        let parent = Parent { process, is_make, engine, sleeps };
        if parent.is_make && has_jobs(evidence, process, &mut with_jobs) {
            continue;
        }
        for row in rows(evidence, &parent) {
            let Some(stretch) = Stretch::of(evidence, &parent, &row) else { continue };
            // As many of them as have as many cores.
            match joined.iter_mut().find(|of| stretch.joins(&of[0])) {
                Some(of) => of.push(stretch),
                None if parent.is_make
                    || parent.engine.is_some_and(|it| !RUNS_ANYTHING.contains(&it.name)) =>
                {
                    joined.push(vec![stretch]);
                }
                None if !evidence.pays(stretch.middle_ns(), 0) => {}
                None => match independence(evidence, rules, &stretch.row) {
                    Independence::Refuted => {}
                    known => found.extend(advice(evidence, &[stretch], known)),
                },
            }
        }
    }
    joined.iter_mut().for_each(|of| keep_outer(evidence, of));
    let known = Independence::Known;
    found.extend(joined.iter().filter_map(|of| advice(evidence, of, known)));
    found
}

/// The program that computes most below a process: a recipe is a shell, and a make another make, whatever they compile.
fn kind<'a>(evidence: &Evidence<'a>, process: u32) -> &'a str {
    let all = evidence.with_descendants(&[process]);
    let most = all.into_iter().max_by_key(|one| evidence.process(*one).cpu.total_ns());
    &evidence.recording.program_of(evidence.process(most.unwrap_or(process))).name
}

/// Gain of the largest kind of children of one make at once, as an even share for each core: steps of a build that differ
/// are often steps of one thing: convert, compile, link, document. Several of one kind are as many things.
fn of_kind_ns(evidence: &Evidence<'_>, stretch: &Stretch) -> u64 {
    let mut kinds: BTreeMap<&str, (usize, u64, u64)> = BTreeMap::new();
    for child in &stretch.row {
        let (children, sum_ns, longest_ns) = kinds.entry(kind(evidence, *child)).or_default();
        let own_ns = evidence.path_below_ns(*child);
        *children += 1;
        *sum_ns = sum_ns.saturating_add(own_ns);
        *longest_ns = own_ns.max(*longest_ns);
    }
    let kinds = kinds.into_values().filter(|(children, ..)| *children >= KIND_MIN);
    let gain_ns = |(_, sum_ns, longest_ns): (usize, u64, u64)| {
        let even_ns = (sum_ns as f64 / stretch.room.max(1.0)) as u64;
        sum_ns.saturating_sub(longest_ns.max(even_ns))
    };
    kinds.map(gain_ns).max().unwrap_or(0)
}

/// Returns whether a process above one is of the same engine, and was asked to run several at once.
fn is_asked_above(evidence: &Evidence<'_>, process: u32, engine: &str) -> bool {
    evidence.ancestors(process).skip(1).take(ABOVE_MAX).any(|at| {
        let line = evidence.recording.line_of(&evidence.recording.processes()[at]);
        engine_of(line) == Some(engine) && one_at_a_time(line).is_none()
    })
}

/// Leaves out rows within children of another row, whose time has all of theirs.
fn keep_outer(evidence: &Evidence<'_>, stretches: &mut Vec<Stretch>) {
    let mut rows = Bits::default();
    stretches.iter().flat_map(|it| &it.row).for_each(|child| rows.insert(*child as usize));
    stretches.retain(|it| !evidence.ancestors(it.parent).any(|at| rows.contains(at)));
}

/// A process that may run its children one after the other.
struct Parent {
    process: u32,
    is_make: bool,
    /// Another program that has been asked to run one child at a time.
    engine: Option<&'static Engine>,
    /// Begin and end of the sleeps on the path that are children of it, in order.
    sleeps: Vec<(u64, u64)>,
}

impl Parent {
    /// Returns whether the parent itself knows which of its children need others, so that they may be of any kind.
    fn knows_order(&self) -> bool {
        self.is_make || self.engine.is_some()
    }

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
        evidence.path_below_ns(child).saturating_add(slept_ns)
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

/// Returns whether make, or one above it, runs its children at once; `known` has the answers for others. Flags may come by MAKEFLAGS, which is not recorded:
/// children of make itself never overlap without -j.
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
            let parent = Parent { process, is_make: true, engine: None, sleeps: Vec::new() };
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

/// Children in order of birth, none of which begins before the one before it has ended.
struct Row {
    /// With the time of each on the path.
    children: Vec<(u32, u64)>,
    /// The longest time of children of which each is known to need what the one before it has made.
    chain_ns: u64,
}

/// Children that each take a while of the path, and of which none needs what the one before it has made, unless their parent knows
/// the order.
fn rows(evidence: &Evidence<'_>, parent: &Parent) -> Vec<Row> {
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
    let many = if parent.knows_order() { NAMED_BY_MANY.max(all / 2 + 1) } else { all };
    let is_read_by_all = |file: &str| named.get(file).is_some_and(|by| *by >= many);
    let needs = |child: u32, before: u32| {
        let made: BTreeSet<&str> =
            made(line(before)).filter(|file| !is_read_by_all(file)).collect();
        files(line(child)).any(|file| made.contains(file))
    };
    let mut rows: Vec<Vec<(u32, u64)>> = Vec::new();
    let mut until_ns = 0;
    for (child, on_path_ns) in candidates.iter().copied() {
        let follows = |row: &&mut Vec<(u32, u64)>| {
            let Some((last, _)) = row.last().copied() else { return false };
            let same = name(evidence, last) == name(evidence, child)
                && subcommand(line(last)) == subcommand(line(child))
                && are_turns(line(last), line(child))
                && !is_same_call(evidence, last, child);
            let follows = evidence.process(child).born_ns >= until_ns;
            // Who knows the order has children that need others, and only their longest chain counts.
            follows && (parent.knows_order() || same && !needs(child, last))
        };
        match rows.last_mut().filter(follows) {
            Some(row) => row.push((child, on_path_ns)),
            None => rows.push(vec![(child, on_path_ns)]),
        }
        until_ns = until_ns.max(evidence.ended_ns(child));
    }
    rows.retain(|row| row.len() >= CHILDREN_MIN);
    let chain_ns = |row: &[(u32, u64)]| {
        // That of each child ends with it.
        let mut chains_ns: Vec<u64> = Vec::with_capacity(row.len());
        for (at, (child, own_ns)) in row.iter().enumerate() {
            let before = row[..at].iter().zip(&chains_ns).rev().take(COMPARED_MAX);
            let needed =
                before.filter(|((before, _), _)| parent.knows_order() && needs(*child, *before));
            let longest_ns = needed.map(|(_, chain_ns)| *chain_ns).max().unwrap_or(0);
            chains_ns.push(own_ns.saturating_add(longest_ns));
        }
        chains_ns.into_iter().max().unwrap_or(0)
    };
    let row = |children: Vec<(u32, u64)>| Row { chain_ns: chain_ns(&children), children };
    rows.into_iter().map(row).collect()
}

/// Returns whether two processes ran the very same command, with all its arguments and directory; as far as that is
/// known.
fn is_same_call(evidence: &Evidence<'_>, one: u32, other: u32) -> bool {
    let call = |process: u32| {
        let run = evidence.process(process).run()?;
        evidence
            .recording
            .calls()
            .unwrap_or_default()
            .get(run as usize)
            .copied()
            .filter(|call| *call != 0)
    };
    call(one).is_some_and(|first| call(other) == Some(first))
}

/// Children that for at least half of their lives have company of their kind: they are run at once already,
/// and only those that end last are on the path.
fn at_once(evidence: &Evidence<'_>, parent: &Parent) -> Bits {
    let mut kinds: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for child in evidence.children(parent.process) {
        if evidence.command(*child).is_some() {
            let kind = if parent.knows_order() { "" } else { name(evidence, *child) };
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
    /// Times at which it changes, and for how long there was company until then.
    changes: Vec<(u64, u64)>,
    /// True if there is company after each change.
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

    /// Time of company between two times.
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
    engine: Option<&'static Engine>,
    row: Vec<u32>,
    sum_ns: u64,
    longest_ns: u64,
    chain_ns: u64,
    /// The idle cores and the one in use.
    cores: u64,
    /// Number of processes of the row that fit on these.
    room: f64,
}

impl Stretch {
    fn of(evidence: &Evidence<'_>, parent: &Parent, row: &Row) -> Option<Self> {
        let children = &row.children;
        let room = room(evidence, children);
        // What runs beside them for a moment is no part of a core.
        let room = if (room.round() - room).abs() < BESIDE_MAX { room.round() } else { room };
        let stretch = Self {
            parent: parent.process,
            is_make: parent.is_make,
            engine: parent.engine,
            sum_ns: children.iter().map(|(_, on_path_ns)| *on_path_ns).fold(0, u64::saturating_add),
            longest_ns: children.iter().map(|(_, on_path_ns)| *on_path_ns).max()?,
            chain_ns: row.chain_ns,
            row: children.iter().map(|(child, _)| *child).collect(),
            cores: (room + ROUND_UP) as u64,
            room,
        };
        (stretch.cores > 1).then_some(stretch)
    }

    /// Returns whether one option is for both.
    fn joins(&self, other: &Self) -> bool {
        let engine = |of: &Self| of.engine.map(|engine| engine.name);
        let is_one = self.is_make || self.engine.is_some();
        is_one
            && (self.is_make, engine(self)) == (other.is_make, engine(other))
            && self.cores == other.cores
    }

    fn middle_ns(&self) -> u64 {
        let even_ns = (self.sum_ns as f64 / self.room.clamp(1.0, self.row.len() as f64)) as u64;
        self.sum_ns.saturating_sub(self.chain_ns.max(even_ns))
    }
}

/// The same change of one or several rows: make hands its -j down to all that it starts.
fn advice(
    evidence: &Evidence<'_>,
    stretches: &[Stretch],
    independence: Independence,
) -> Option<Found> {
    let sum = |of: &dyn Fn(&Stretch) -> u64| stretches.iter().map(of).fold(0, u64::saturating_add);
    let middle_ns = sum(&Stretch::middle_ns);
    if !evidence.pays(middle_ns, 0) {
        return None;
    }
    let busy_percent = evidence.percent_without_idle_core();
    let low_ns = match independence {
        _ if busy_percent.is_some() => 0,
        Independence::Known if stretches.iter().any(|it| it.is_make) => {
            sum(&|it| of_kind_ns(evidence, it).min(it.middle_ns())) / PART_CERTAIN
        }
        Independence::Known => middle_ns / PART_CERTAIN,
        _ => 0,
    };
    let first = stretches.first()?;
    let (cores, children) = (first.cores, sum(&|it| it.row.len() as u64));
    let child = *first.row.first()?;
    let command = evidence.command(child)?;
    // As it is called, and not as it is counted.
    let child = evidence.recording.line_of(evidence.process(child));
    let called = script(child).unwrap_or_else(|| first_word(child));
    let line = evidence.recording.template_of(evidence.process(first.parent)).unwrap_or("");
    let change = change(evidence, first);
    let (kind, what) = if first.is_make {
        let program = change.as_ref().map_or("make", |(_, program, _)| *program);
        ("make-without-j", format!("Run {program} with -j{cores}"))
    } else if let Some(engine) = first.engine {
        let (name, asks) = (engine.name, engine.asks_for(cores));
        ("serial-stretch", format!("Let {name} run up to {cores} at a time: {name} {asks}"))
    } else {
        let what = format!(
            "Run the {children} processes of `{called}` at once, up to {cores} at a time: `&` and wait, or xargs -P",
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
        more => (format!(" and {}", counted(more as u64, "other", "others")), "run"),
    };
    let mut risk = "a child may need what an earlier one made; memory for all at once".to_owned();
    if let Some(pinned) = pinned_by(evidence, first.parent) {
        risk.push_str(&format!("; `{pinned}` may keep them on fewer cores: --cores"));
    }
    if let Some(percent) = evidence.recording.others_percent().filter(|it| *it >= OTHERS_PERCENT) {
        risk.push_str(&format!("; others used {percent:.0} % of the machine, and may again"));
    }
    if let Some(needs) = first.engine.and_then(|engine| engine.needs) {
        risk.push_str(&format!("; {needs}"));
    }
    let advice = Advice {
        kind,
        what,
        started: change.as_ref().map(|(process, _, _)| *process),
        proposed: change.and_then(|(_, _, line)| line),
        evidence: format!(
            "`{}`{others} {runs} {} one after the other, {} in total and {} the longest, while {} of {} {}",
            evidence.line(first.parent),
            counted(children, "child", "children"),
            time(sum(&|it| it.sum_ns)),
            time(stretches.iter().map(|it| it.longest_ns).max()?),
            cores - 1,
            counted(evidence.recording.header().cpus.into(), "core", "cores"),
            match busy_percent {
                None => "are idle".to_owned(),
                Some(percent) =>
                    format!("are not used by it, but others used {percent:.0} % of all"),
            },
        ),
        commands: vec![command.to_owned()],
        processes: processes.len() as u64,
        wall_ns: Gain::new(low_ns, middle_ns, sum(&|it| it.sum_ns.saturating_sub(it.chain_ns))),
        method: format!(
            "wall: their time on the critical path less that of the longest, or of the longest \
             chain by names of files (high), or less an even share for each idle core (middle); {}",
            match independence {
                _ if busy_percent.is_some() =>
                    "low is 0, as others left no core idle: record when fewer of them run",
                Independence::Known =>
                    "low is a quarter of that for those of one kind, as some may need others",
                _ => "low is 0, as dependencies are not recorded",
            }
        ),
        risk,
        check: "compare the results; then record again and use `advise --against`".into(),
        ..Advice::default()
    };
    Some(Found::about(processes, advice).keyed(line))
}

/// The process that is to be started otherwise, what it is called, and its new command line if it is not too long to be known
/// whole. The flags of the uppermost make are those of all below it.
fn change<'a>(evidence: &Evidence<'a>, first: &Stretch) -> Option<(u32, &'a str, Option<String>)> {
    let cores = first.cores;
    let line = |process: u32| evidence.recording.line_of(evidence.process(process));
    let with = |line: &'a str, asks: &str| {
        let (program, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = without_jobs(rest);
        is_whole(line).then(|| format!("{program} {asks} {rest}").trim_end().to_owned())
    };
    if let Some(engine) = first.engine {
        return Some((first.parent, engine.name, engine.asked_for(cores, line(first.parent))));
    }
    if !first.is_make {
        return None;
    }
    let parent = |process: u32| {
        let parent = evidence.process(process).parent()?;
        u32::try_from(parent).ok().filter(|parent| *parent < process)
    };
    let mut top = first.parent;
    let mut next = parent(top);
    // Between two makes there is a shell, and between cmake and make there may be one.
    while let Some(at) = next {
        match evidence.command(at) {
            Some(name) if MAKES.contains(&name) => top = at,
            Some("cmake") if line(at).contains(" --build") => {
                let line = line(at);
                let changed = is_whole(line).then(|| format!("{} -j{cores}", without_jobs(line)));
                return Some((at, "cmake --build", changed));
            }
            Some("sh" | "bash" | "dash") if line(at).split(' ').nth(1) == Some("-c") => {}
            None => {}
            Some(_) => break,
        }
        next = parent(at);
    }
    Some((top, "make", with(line(top), &format!("-j{cores}"))))
}

/// The command among the ancestors of a process, or that they ran before, that chooses the CPUs they may use.
fn pinned_by<'a>(evidence: &Evidence<'a>, process: u32) -> Option<&'a str> {
    let mut at = Some(process as usize);
    let mut ancestors = Bits::default();
    while let Some(process) = at.filter(|process| !ancestors.contains(*process)) {
        ancestors.insert(process);
        at = evidence.recording.processes()[process].parent();
    }
    let mut theirs = evidence.recording.runs().iter().filter_map(|run| {
        let name = &evidence.recording.programs().get(run.program as usize)?.name;
        ancestors.contains(run.process as usize).then_some(&**name)
    });
    theirs.find(|name| PINS.contains(name))
}

/// Number of processes of a row that fit beside each other: into the cores that all others leave idle, on average while it
/// runs, each with the cores that it uses itself.
fn room(evidence: &Evidence<'_>, row: &[(u32, u64)]) -> f64 {
    let (Some((first, _)), Some((last, _))) = (row.first(), row.last()) else { return 0.0 };
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
    let idle = (f64::from(evidence.recording.header().cpus) - busy).max(0.0);
    let sum =
        |of: &dyn Fn(u32) -> u64| row.iter().map(|child| of(*child)).fold(0, u64::saturating_add);
    let lives_ns = sum(&|child| evidence.life_ns(child));
    let own_ns = sum(&|child| evidence.cpu_below_ns[child as usize]);
    let own = (own_ns as f64 / lives_ns.max(1) as f64).max(1.0);
    idle / own
}
