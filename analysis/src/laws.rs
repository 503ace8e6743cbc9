//! What must hold in every recording, and whether it does.

use std::collections::BTreeMap;

use proctrace_findings::{Health, Law, Loss};
use proctrace_trace::DamageKind;
use proctrace_wire::{Kind, LossReason};

use crate::accounting::Accounting;
use crate::recording::Recording;

/// The kernel's figure is as exact as ours but for the last slices of tasks that were released
/// early, which are allowed for by name (`EXIT_RELEASED`). What is left is microseconds in
/// wait4(2)'s own figure, and what scaling user and system time apart rounds off: 0.03 us a
/// process on Linux 6.18.
const ROUNDING_NS: f64 = 100_000.0;
const ROUNDING_PER_PROCESS_NS: f64 = 2_000.0;
const CGROUP_ROUNDING_NS: f64 = 200_000.0;

pub(crate) fn health(recording: &Recording, accounting: &Accounting) -> Health {
    let losses = losses(recording);
    let being_written = recording.is_being_written();
    // Of the last block of a trace that is being written a part may be there.
    let torn = being_written
        && recording.damage.last().is_some_and(|damage| damage.what == DamageKind::Truncated);
    let whole = recording.damage.len() - usize::from(torn);
    let mut damage: Vec<String> =
        recording.damage[..whole].iter().map(ToString::to_string).collect();
    if recording.undecodable > 0 {
        damage.push(format!("{} records make no sense", recording.undecodable));
    }
    Health {
        complete: recording.trailer.is_some(),
        recording_now: being_written,
        lost: losses.iter().fold(0, |lost, loss| lost.saturating_add(loss.count)),
        losses,
        damage,
        // Blocks of look-ups and of lives are written apart, so that the books balance at the end only.
        laws: if being_written { Vec::new() } else { laws(recording, accounting) },
    }
}

fn losses(recording: &Recording) -> Vec<Loss> {
    let mut totals: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut add = |kind, reason, count| {
        let total = totals.entry((kind, reason)).or_default();
        *total = total.saturating_add(count);
    };
    match &recording.trailer {
        Some(trailer) => {
            for loss in &trailer.losses {
                add(loss.kind.clone(), loss.reason.clone(), loss.count);
            }
        }
        // Cut short: what had been told by then.
        None => {
            for ((kind, reason, _), count) in &recording.counts.losses {
                let kind = Kind::from_number(*kind).map_or("unknown", Kind::name);
                let reason = LossReason::from_number(*reason).map_or("unknown", LossReason::name);
                add(kind.to_owned(), reason.to_owned(), *count);
            }
        }
    }
    totals.into_iter().map(|((kind, reason), count)| Loss { kind, reason, count }).collect()
}

fn laws(recording: &Recording, accounting: &Accounting) -> Vec<Law> {
    let counts = &recording.counts;
    let alive = recording.tasks.iter().filter(|task| task.end.is_none()).count() as u64;
    let ends = || recording.tasks.iter().filter_map(|task| task.end.as_ref());
    let mut laws = vec![
        equal(
            "births",
            "every task that was made has exited or is still there",
            counts.attaches + counts.forks,
            counts.exits + alive,
            "tasks",
        ),
        equal("parents", "every exec and look-up is of a known task", 0, counts.orphans, "records"),
        equal("starts", "every exit has a start", 0, counts.orphan_exits, "exits"),
        equal(
            "waits",
            "no parent was given more CPU time than its children had",
            0,
            accounting.overdrawn,
            "processes",
        ),
    ];
    // What each task counted for itself, against the records of it. A task that is alive has not
    // told its count.
    if alive == 0 {
        let sum = |of: fn(&crate::exit::Exit) -> u32| {
            ends().map(|end| u64::from(of(&end.record))).sum::<u64>()
        };
        laws.push(equal(
            "lookups",
            "every failed look-up that a task counted has a record",
            sum(|exit| exit.lookups_failed),
            counts.lookups_failed,
            "look-ups",
        ));
        laws.push(equal(
            "failed execs",
            "every failed exec that a task counted has a record",
            sum(|exit| exit.execs_failed),
            counts.execs_failed,
            "execs",
        ));
    }
    laws.extend(cpu_law(recording, accounting));
    laws.extend(cgroup_law(recording, accounting));
    laws
}

/// Sum of CPU time over all tasks = what the kernel counted for the recording's own cgroup.
fn cgroup_law(recording: &Recording, accounting: &Accounting) -> Option<Law> {
    let cgroup = recording.trailer.as_ref()?.cgroup.as_ref()?;
    // What is alive goes on between the two looks.
    if recording.processes.iter().any(|process| process.ended_ns.is_none()) {
        return None;
    }
    let (expected, found) = (cgroup.usage_ns as f64, accounting.total_ns as f64);
    // The command is born in it; the kernel counts in whole microseconds.
    let rounding = CGROUP_ROUNDING_NS + expected / 1000.0;
    Some(Law {
        name: "cgroup",
        says: "CPU time of all tasks is what the kernel counted for the cgroup they ran in",
        holds: (expected - rounding..=expected + rounding).contains(&found),
        expected: expected / 1e9,
        found: found / 1e9,
        unit: "s",
    })
}

/// Sum of CPU time over all tasks = what the kernel says of the command and all it waited for,
/// and what was never waited for.
fn cpu_law(recording: &Recording, accounting: &Accounting) -> Option<Law> {
    let payload = recording.trailer.as_ref()?.payload.as_ref()?;
    let kernel_ns = payload.user_ns.saturating_add(payload.system_ns);
    // A subtree whose top is still alive has not been waited for, and cannot be told apart from
    // one that was.
    if recording.processes.iter().any(|process| process.ended_ns.is_none()) {
        return None;
    }
    let expected = kernel_ns.saturating_add(accounting.unwaited_ns) as f64;
    let found = accounting.total_ns as f64;
    let rounding = ROUNDING_NS + recording.processes.len() as f64 * ROUNDING_PER_PROCESS_NS;
    let most = expected + rounding + accounting.tail_ns as f64;
    Some(Law {
        name: "cpu",
        says: "CPU time of all tasks is the kernel's own figure and what no one waited for",
        holds: (expected - rounding..=most).contains(&found),
        expected: expected / 1e9,
        found: found / 1e9,
        unit: "s",
    })
}

fn equal(
    name: &'static str,
    says: &'static str,
    expected: u64,
    found: u64,
    unit: &'static str,
) -> Law {
    let holds = expected == found;
    Law { name, says, holds, expected: expected as f64, found: found as f64, unit }
}
