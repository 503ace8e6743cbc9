//! `serial-stretch` and `make-without-j`: children that run one after the other while cores are idle.

use std::collections::BTreeMap;

use proctrace_findings::{Advice, Gain, counted, time};

use super::Found;
use super::evidence::Evidence;
use crate::recording::fast::Bits;

/// Fewer are not worth starting at once.
const CHILDREN_MIN: usize = 3;
/// A child with a smaller part of the wall time is not worth a core: one in this many.
const PART_OF_WALL: u64 = 200;
/// Nor is one that takes less time than this.
const CHILD_MIN_NS: u64 = 20_000_000;
const MAKES: [&str; 2] = ["make", "gmake"];
/// Commands that choose the CPUs of others.
const PINS: [&str; 2] = ["taskset", "numactl"];

/// Per spawner process: a row of children of the same command, or of any if it is make. All rows of makes that leave
/// as many cores idle are one: S - L and S/k of each are added up.
///
/// The time of a child is its own on the critical path, and that of the sleeps there with which its parent looks
/// again and again whether it has ended. With S, the time of the row, L, that of its longest child, and k cores that are idle
/// meanwhile and the one in use: middle S - max(L, S/k), as if the work could be spread evenly; high S - L,
/// as if the children mostly waited; low 0, because what depends on what is not recorded. CPU: nothing.
pub(super) fn find(evidence: &Evidence<'_>) -> Vec<Found> {
    if evidence.path.is_none() {
        return Vec::new();
    }
    let (mut found, mut makes) = (Vec::new(), Vec::<Vec<Stretch>>::new());
    let timers = evidence.timers();
    for (process, _) in evidence.processes() {
        if evidence.children(process).len() < CHILDREN_MIN
            || !evidence.pays(evidence.path_below_ns[process as usize], 0)
        {
            continue;
        }
        let parent = Parent {
            process,
            is_make: evidence.command(process).is_some_and(|name| MAKES.contains(&name)),
            sleeps: sleeps(evidence, &timers, process),
        };
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

/// Children that each take a while of the path, none of which begins before the one before it has ended.
fn rows(evidence: &Evidence<'_>, parent: &Parent) -> Vec<Vec<(u32, u64)>> {
    let mut rows: Vec<Vec<(u32, u64)>> = Vec::new();
    let mut until_ns = 0;
    let at_once = at_once(evidence, parent);
    for child in evidence.children(parent.process) {
        let on_path_ns = parent.waits_for_ns(evidence, *child);
        if on_path_ns < CHILD_MIN_NS.max(evidence.wall_ns / PART_OF_WALL)
            || matches!(evidence.command(*child), None | Some("sleep"))
            || at_once.contains(*child as usize)
        {
            continue;
        }
        let follows = |row: &&mut Vec<(u32, u64)>| {
            let same =
                row.last().is_some_and(|last| evidence.command(last.0) == evidence.command(*child));
            (parent.is_make || same) && evidence.process(*child).born_ns >= until_ns
        };
        match rows.last_mut().filter(follows) {
            Some(row) => row.push((*child, on_path_ns)),
            None => rows.push(vec![(*child, on_path_ns)]),
        }
        until_ns = until_ns.max(evidence.ended_ns(*child));
    }
    rows.retain(|row| row.len() >= CHILDREN_MIN);
    rows
}

/// Children that for at least half of their lives have company of their kind: they are run at once already,
/// and only those that end last are on the path.
fn at_once(evidence: &Evidence<'_>, parent: &Parent) -> Bits {
    let mut at_once = Bits::default();
    let mut latest: BTreeMap<&str, (u32, u64)> = BTreeMap::new();
    for child in evidence.children(parent.process) {
        let Some(command) = evidence.command(*child) else { continue };
        let (born_ns, ended_ns) = (evidence.process(*child).born_ns, evidence.ended_ns(*child));
        let kind = if parent.is_make { "" } else { command };
        if let Some((other, until_ns)) = latest.get(kind).copied() {
            let both_ns = until_ns.min(ended_ns).saturating_sub(born_ns);
            for one in [*child, other] {
                if both_ns > evidence.life_ns(one) / 2 {
                    at_once.insert(one as usize);
                }
            }
        }
        let last = latest.entry(kind).or_insert((*child, ended_ns));
        if ended_ns >= last.1 {
            *last = (*child, ended_ns);
        }
    }
    at_once
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
            sum_ns: row.iter().map(|(_, on_path_ns)| on_path_ns).sum(),
            longest_ns: row.iter().map(|(_, on_path_ns)| *on_path_ns).max()?,
            row: row.iter().map(|(child, _)| *child).collect(),
            cores: idle_cores(evidence, row),
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

/// The cores that all processes other than the row leave idle, on average while it runs.
fn idle_cores(evidence: &Evidence<'_>, row: &[(u32, u64)]) -> u64 {
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
    u64::from(evidence.recording.header.cpus).saturating_sub(busy.round() as u64)
}
