//! The conservation laws that must hold in every recording, and whether they do.

use std::collections::BTreeMap;

use proctrace_findings::{Health, Law, Loss, counted};
use proctrace_trace::{DamageKind, Knowledge};
use proctrace_wire::{Kind, LossReason, Quantity};

use crate::Recording;
use crate::books::waits::Accounting;
use crate::counts::Totals;
use crate::task::Task;

/// The kernel's CPU times are as exact as ours, except for the last time slices of tasks that were
/// released early; these are accounted separately (`EXIT_RELEASED`). What remains is microseconds
/// of wait4(2)'s own resolution, and the rounding from scaling user and system time separately:
/// 0.03 us per process on Linux 6.18.
const ROUNDING_NS: f64 = 100_000.0;
const ROUNDING_PER_PROCESS_NS: f64 = 2_000.0;
const CGROUP_ROUNDING_NS: f64 = 200_000.0;

impl Recording {
    /// Trustworthiness of the recording: losses, damage, and the conservation laws.
    pub fn health(&self) -> Health {
        health(self, &Accounting::of(self))
    }
}

/// The same, if the accounting is there already.
pub fn health(recording: &Recording, accounting: &Accounting) -> Health {
    let losses = losses(recording);
    let being_written = recording.is_being_written();
    // The last block of a trace that is still being written may be incomplete.
    let torn = being_written
        && recording.damage.last().is_some_and(|damage| damage.what == DamageKind::Truncated);
    let whole = recording.damage.len() - usize::from(torn);
    let mut damage: Vec<String> =
        recording.damage[..whole].iter().map(ToString::to_string).collect();
    if recording.undecodable > 0 {
        let records = counted(recording.undecodable, "record", "records");
        damage.push(format!("{records} cannot be decoded"));
    }
    Health {
        complete: recording.trailer.is_some(),
        recording_now: being_written,
        lost: losses.iter().fold(0, |lost, loss| lost.saturating_add(loss.count)),
        losses,
        damage,
        // Look-ups and births and exits are in separate blocks, so the laws hold only at the end.
        laws: if being_written { Vec::new() } else { laws(recording, accounting) },
    }
}

pub fn losses(recording: &Recording) -> Vec<Loss> {
    let mut totals: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let mut add = |kind, reason, count| {
        let total = totals.entry((kind, reason)).or_default();
        *total = total.saturating_add(count);
    };
    match &recording.trailer {
        Some(trailer) => {
            for loss in &trailer.losses {
                add(loss.kind.name(), loss.reason.name(), loss.count);
            }
        }
        // Cut short: the losses reported until then.
        None => {
            for ((kind, reason, _), count) in &recording.counts.losses {
                let kind = Kind::from_number(*kind).map_or("unknown", Kind::name);
                let reason = LossReason::from_number(*reason).map_or("unknown", LossReason::name);
                add(kind, reason, *count);
            }
        }
    }
    let loss = |((kind, reason), count): ((&str, &str), u64)| Loss {
        kind: kind.to_owned(),
        reason: reason.to_owned(),
        count,
    };
    totals.into_iter().map(loss).collect()
}

fn laws(recording: &Recording, accounting: &Accounting) -> Vec<Law> {
    let counts = &recording.counts;
    let Totals { alive, opens, lookups_failed, execs_failed, .. } = recording.totals;
    // The counts that each task kept for itself, compared with the records of it.
    let told = |told: u64| match alive {
        0 => Ok(told as f64),
        _ if !recording.blind.let_go.is_empty() => {
            Err("what a debugger took over has not reported its counts".to_owned())
        }
        _ => Err("live tasks have not reported their counts yet".to_owned()),
    };
    let laws = [
        law("births", Ok((counts.attaches + counts.forks) as f64), (counts.exits + alive) as f64),
        law("parents", Ok(0.0), counts.orphans as f64),
        law("starts", Ok(0.0), counts.orphan_exits as f64),
        law("clock", Ok(0.0), outside(recording) as f64),
        law("waits", Ok(0.0), accounting.overdrawn as f64),
        law("lookups", told(lookups_failed), counts.lookups_failed as f64),
        law("failed execs", told(execs_failed), counts.execs_failed as f64),
        cpu_law(recording, accounting),
    ];
    let opens = || law("opens", told(opens), recording.opened.opens as f64);
    let opens = recording.header.opens.then(opens);
    let laws = laws.into_iter().chain(opens).chain(cgroup_law(recording, accounting));
    let checked = |law: Law| {
        // Look-ups that were left out are still counted, but that count is not conclusive.
        let unknown = match law.name {
            "lookups"
                if Quantity::LOOKUPS.iter().all(|family| !recording.knows.all(&[*family])) =>
            {
                recording.knows.why_not(&Quantity::LOOKUPS)
            }
            // Less than a child used may be credited to it, and all of it to its parent.
            "waits" => match recording.header.knows(Quantity::Cpu) {
                Knowledge::Estimate { method } => Some(format!("an estimate: {method}")),
                _ => recording.knows.why_not(about("waits").2),
            },
            name => recording.knows.why_not(about(name).2),
        };
        match unknown {
            Some(why) => {
                Law { holds: None, not_checked: Some(why), expected: None, found: None, ..law }
            }
            None => law,
        }
    };
    laws.map(checked).collect()
}

/// The words of a law, its unit, and the quantities that its check needs.
fn about(name: &str) -> (&'static str, &'static str, &'static [Quantity]) {
    use Quantity::{Cpu, Forks, LookupsExec, OpenedFiles};
    match name {
        "births" => ("every task that was created has exited or is still alive", "tasks", &[Forks]),
        "parents" => ("every exec and look-up belongs to a known task", "records", &[Forks]),
        "starts" => ("every exit has a matching start", "exits", &[Forks]),
        "clock" => {
            ("every task lived between the start and the end of the recording", "tasks", &[])
        }
        "waits" => (
            "no parent was credited with more CPU time than its children used",
            "processes",
            &[Forks, Cpu],
        ),
        // Checked as far as some family of calls is known.
        "lookups" => ("every failed look-up counted by a task has a record", "look-ups", &[]),
        "opens" => ("every open counted by a task has a record", "opens", &[OpenedFiles]),
        "failed execs" => {
            ("every failed exec counted by a task has a record", "execs", &[LookupsExec])
        }
        "cpu" => (
            "CPU time of all tasks agrees with the kernel's total plus unwaited CPU time",
            "s",
            &[Forks, Cpu],
        ),
        _ => (
            "CPU time of all tasks agrees with the kernel's total for their cgroup",
            "s",
            &[Forks, Cpu],
        ),
    }
}

/// A law whose two sides must be equal, or the reason why it cannot be checked.
fn law(name: &'static str, expected: Result<f64, String>, found: f64) -> Law {
    within(name, expected.map(|expected| (expected, expected..=expected)), found)
}

/// A law whose found value must lie in a range around the expected one.
fn within(
    name: &'static str,
    expected: Result<(f64, std::ops::RangeInclusive<f64>), String>,
    found: f64,
) -> Law {
    let (says, unit, _) = about(name);
    match expected {
        Ok((expected, range)) => Law {
            name,
            says,
            holds: Some(range.contains(&found)),
            not_checked: None,
            expected: Some(expected),
            found: Some(found),
            unit,
        },
        Err(why) => Law {
            name,
            says,
            holds: None,
            not_checked: Some(why),
            expected: None,
            found: None,
            unit,
        },
    }
}

/// Converts a range from nanoseconds to seconds.
fn range_s(low_ns: f64, high_ns: f64) -> std::ops::RangeInclusive<f64> {
    low_ns / 1e9..=high_ns / 1e9
}

/// Fails unless all processes have ended: live tasks keep running between the two readings, and a
/// subtree whose root is alive cannot be distinguished from one that was waited for.
fn all_ended(recording: &Recording) -> Result<(), String> {
    let alive = recording.processes.iter().filter(|process| process.ended_ns().is_none()).count();
    match alive {
        0 => Ok(()),
        _ if !recording.blind.let_go.is_empty() => Err(format!(
            "the end of {} is not recorded",
            counted(alive as u64, "process", "processes")
        )),
        _ => Err(format!("{} still alive", counted(alive as u64, "process was", "processes were"))),
    }
}

/// The recorder reads its clock before the first and after the last record.
const CLOCK_ROUNDING_NS: u64 = 1_000_000_000;

/// Tasks that were created before the recording began or ended after its end. The recorder's clock and that of the
/// records are not the same one then: in a time namespace, CLOCK_BOOTTIME differs (time_namespaces(7)).
fn outside(recording: &Recording) -> usize {
    let from_ns = recording.header.started_ns.saturating_sub(CLOCK_ROUNDING_NS);
    let to_ns = recording
        .trailer
        .as_ref()
        .map_or(u64::MAX, |trailer| trailer.ended_ns.saturating_add(CLOCK_ROUNDING_NS));
    let is_outside = |task: &&Task| {
        let began = task.before().is_none() && task.born_ns < from_ns;
        began || task.ended_ns().is_some_and(|ended_ns| ended_ns > to_ns)
    };
    recording.tasks.iter().filter(is_outside).count()
}

/// Sum of CPU time over all tasks = what the kernel counted for the recording's own cgroup.
fn cgroup_law(recording: &Recording, accounting: &Accounting) -> Option<Law> {
    let cgroup = recording.trailer.as_ref()?.cgroup.as_ref()?;
    let expected = all_ended(recording).map(|()| {
        let expected = cgroup.usage_ns as f64;
        // The command is created inside it; the kernel counts in whole microseconds.
        let rounding = CGROUP_ROUNDING_NS + expected / 1000.0;
        (expected / 1e9, range_s(expected - rounding, expected + rounding))
    });
    Some(within("cgroup", expected, accounting.total_ns as f64 / 1e9))
}

/// Sum of CPU time over all tasks = the kernel's total for the command and everything it waited
/// for, plus that of everything never waited for.
fn cpu_law(recording: &Recording, accounting: &Accounting) -> Law {
    let payload = recording.trailer.as_ref().and_then(|trailer| trailer.payload.as_ref());
    let expected = all_ended(recording).and_then(|()| match payload {
        None => Err("no command was waited for".to_owned()),
        Some(payload) => {
            let kernel_ns = payload.user_ns.saturating_add(payload.system_ns);
            let expected = kernel_ns.saturating_add(accounting.unwaited_ns) as f64;
            let rounding = ROUNDING_NS + recording.processes.len() as f64 * ROUNDING_PER_PROCESS_NS;
            let most = expected + rounding + accounting.tail_ns as f64;
            // What the kernel left out of the children of a subreaper hides as much of what it waited for in place of
            // others, which then counts as not waited for.
            let hidden_ns = accounting.tail_ns.min(accounting.unwaited_ns);
            Ok((expected / 1e9, range_s(expected - rounding - hidden_ns as f64, most)))
        }
    });
    within("cpu", expected, accounting.total_ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use proctrace_wire::layout::EXIT_RELEASED;

    use super::*;
    use crate::testing::{MS, S, Scene};

    /// As by a recorder in a time namespace whose clock is ahead.
    #[test]
    fn clocks_that_differ_are_noticed() {
        let broken = |ahead_ns: u64| {
            let mut scene = Scene::new(1, 100 * MS);
            scene.fork(MS, 1, 2).exit(100 * MS, 2, (MS, 0)).exit(S, 1, (MS, 0));
            scene.header().started_ns += ahead_ns;
            let recording = scene.load(None);
            let health = health(&recording, &Accounting::of(&recording));
            let law = health.laws.into_iter().find(|law| law.name == "clock").unwrap();
            (law.is_broken(), law.found)
        };
        assert_eq!(broken(0), (false, Some(0.0)));
        assert_eq!(broken(1000 * S), (true, Some(2.0)));
    }

    /// A subreaper (1) waits for 3, whose parent (2) was killed before it could, and for 4, of whose last slice the
    /// kernel has left out 8 of 10 ms: it has waited for no more than its own children have used.
    #[test]
    fn what_the_kernel_left_out_may_hide_what_a_subreaper_waited_for() {
        let holds = |used_ns: u64| {
            let mut scene = Scene::new(1, 100 * MS);
            scene.fork(0, 1, 2).fork(MS, 2, 3).fork(2 * MS, 1, 4);
            scene.exit(20 * MS, 3, (3 * MS, 0)).exit(30 * MS, 2, (2 * MS, 0));
            scene.exit_with(40 * MS, 4, (10 * MS, 0), |exit| {
                (exit.run_at_exit_ns, exit.bits) = (2 * MS, exit.bits | EXIT_RELEASED);
            });
            scene.exit_with(S, 1, (MS, 0), |exit| exit.waited_utime_ns = 7 * MS);
            let recording = scene.load(Some((S, used_ns, 0)));
            let laws = health(&recording, &Accounting::of(&recording)).laws;
            laws.into_iter().find(|law| law.name == "cpu").unwrap().holds.unwrap()
        };
        assert!(holds(8 * MS));
        assert!(!holds(17 * MS) && !holds(4 * MS));
    }
}

#[cfg(test)]
#[path = "law_tests.rs"]
mod law_tests;
