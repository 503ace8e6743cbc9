//! `serial-stretch` and `make-without-j`: children that run one after the other while cores are idle.

use proctrace_findings::{Advice, Gain, counted, time};

use super::Found;
use super::evidence::{Evidence, short};

/// Fewer are not worth starting at once.
const CHILDREN_MIN: usize = 3;
/// A child with a smaller part of the wall time is not worth a core: one in this many.
const PART_OF_WALL: u64 = 200;
/// Nor is one that takes less time than this.
const CHILD_MIN_NS: u64 = 20_000_000;
const MAKES: [&str; 2] = ["make", "gmake"];

/// Per spawner process: a row of children of the same command, or of any if it is make.
///
/// With S, the time of the row on the critical path, L, that of its longest child, and k cores that are idle
/// meanwhile and the one in use: middle S - max(L, S/k), as if the work could be spread evenly; high S - L,
/// as if the children mostly waited; low 0, because what depends on what is not recorded. CPU: nothing.
pub(super) fn find(evidence: &Evidence<'_>) -> Vec<Found> {
    if evidence.path.is_none() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (process, _) in evidence.processes() {
        if evidence.children(process).len() < CHILDREN_MIN
            || !evidence.pays(evidence.path_below_ns[process as usize], 0)
        {
            continue;
        }
        let is_make = evidence.command(process).is_some_and(|name| MAKES.contains(&name));
        for row in rows(evidence, process, is_make) {
            found.extend(advice(evidence, process, &row, is_make));
        }
    }
    found
}

/// Children that each take a while of the path, none of which begins before the one before it has ended.
fn rows(evidence: &Evidence<'_>, parent: u32, is_make: bool) -> Vec<Vec<u32>> {
    let mut rows: Vec<Vec<u32>> = Vec::new();
    let mut until_ns = 0;
    for child in evidence.children(parent) {
        let on_path_ns = evidence.path_below_ns[*child as usize];
        if on_path_ns < CHILD_MIN_NS.max(evidence.wall_ns / PART_OF_WALL)
            || matches!(evidence.command(*child), None | Some("sleep"))
        {
            continue;
        }
        let follows = |row: &&mut Vec<u32>| {
            let same =
                row.last().is_some_and(|last| evidence.command(*last) == evidence.command(*child));
            (is_make || same) && evidence.process(*child).born_ns >= until_ns
        };
        match rows.last_mut().filter(follows) {
            Some(row) => row.push(*child),
            None => rows.push(vec![*child]),
        }
        until_ns = until_ns.max(evidence.ended_ns(*child));
    }
    rows.retain(|row| row.len() >= CHILDREN_MIN);
    rows
}

fn advice(evidence: &Evidence<'_>, parent: u32, row: &[u32], is_make: bool) -> Option<Found> {
    let of = |child: &u32| evidence.path_below_ns[*child as usize];
    let sum_ns: u64 = row.iter().map(of).sum();
    let longest_ns = row.iter().map(of).max()?;
    let cores = idle_cores(evidence, row);
    if cores < 2 {
        return None;
    }
    let even_ns = sum_ns / cores.min(row.len() as u64);
    let middle_ns = sum_ns.saturating_sub(longest_ns.max(even_ns));
    if !evidence.pays(middle_ns, 0) {
        return None;
    }
    let command = evidence.command(row[0])?;
    let line = evidence.recording.template_of(evidence.process(parent)).unwrap_or("");
    let (kind, what) = if is_make {
        ("make-without-j", format!("Run make with -j{cores}"))
    } else {
        let what = format!(
            "Run the {} processes of `{command}` at once, up to {cores} at a time: `&` and wait, or xargs -P",
            row.len()
        );
        ("serial-stretch", what)
    };
    let processes = evidence.with_descendants(row);
    let advice = Advice {
        kind,
        what,
        evidence: format!(
            "`{}` runs {} one after the other, {} in total and {} the longest, while {} of {} are idle",
            short(line),
            counted(row.len() as u64, "child", "children"),
            time(sum_ns),
            time(longest_ns),
            cores - 1,
            counted(evidence.recording.header.cpus.into(), "core", "cores"),
        ),
        commands: vec![command.to_owned()],
        processes: processes.len() as u64,
        wall_ns: Gain::new(0, middle_ns, sum_ns - longest_ns),
        method:
            "wall: their time on the critical path less that of the longest (high), or less an \
                 even share for each idle core (middle); low is 0, as dependencies are not recorded"
                .into(),
        risk: "a child may need what an earlier one made; memory for all at once".into(),
        check: "compare the results; then record again and use `advise --against`".into(),
        ..Advice::default()
    };
    Some(Found { advice, processes })
}

/// The cores that all processes other than the row leave idle, on average while it runs.
fn idle_cores(evidence: &Evidence<'_>, row: &[u32]) -> u64 {
    let (Some(first), Some(last)) = (row.first(), row.last()) else { return 0 };
    let (begin_ns, end_ns) = (evidence.process(*first).born_ns, evidence.ended_ns(*last));
    let in_row = evidence.with_descendants(row);
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
