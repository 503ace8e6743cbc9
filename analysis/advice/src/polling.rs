//! `polling`: loops that sleep and look again until something has ended.

use proctrace_classify::fast::Bits;
use proctrace_findings::{Advice, Gain, counted, time};

use super::Found;
use super::evidence::{Evidence, less, more};

/// Minimum sleeps in a row that are a loop.
const SLEEPS_MIN: usize = 3;
/// Time by which, with a quarter, sleeps of the same duration may differ.
const SLACK_NS: u64 = 10_000_000;
/// Processes between two sleeps, as in `ps | grep x | grep -v grep`: a loop with more takes samples.
const CHECKS_MAX: usize = 5;
/// Commands that do nothing but sleep.
const SLEEPERS: [&str; 2] = ["sleep", "usleep"];

/// Sleeps in a row, with nothing but short checks between them: one wait for one event.
struct Wait {
    /// The process that loops.
    poller: u32,
    sleeps: Vec<u32>,
    interval_ns: u64,
}

impl Wait {
    /// Time from the first sleep to the one in the middle.
    fn half_ns(&self, evidence: &Evidence<'_>) -> u64 {
        let born_ns = |at: usize| evidence.process(self.sleeps[at]).born_ns;
        born_ns(self.sleeps.len() / 2).saturating_sub(born_ns(0))
    }
}

/// What is found of loops, with the processes of their sleeps in order.
#[derive(Default)]
pub(super) struct Loops {
    pub(super) found: Vec<Found>,
    /// Of loops that may wait for something of the recording.
    pub(super) sleeps: Vec<u32>,
    /// Of others.
    pub(super) alone: Vec<u32>,
}

/// The loops of all processes with the same command line, and the processes of the sleeps.
///
/// Wall: of each wait whose last sleep is on the critical path, the time from the event until the sleep is
/// over. The event is the latest end of another process during that sleep (middle); where there is none, half
/// an interval. It is at least 0 and at most one interval. CPU: sleeps and checks, as they are in the
/// recording.
///
/// Also returns the sleeps of rows without anything that they may wait for in the recording: it may be outside, where the
/// last one ends as soon as without the others.
pub(super) fn find(evidence: &Evidence<'_>) -> Loops {
    let mut waits: Vec<Wait> = Vec::new();
    for (process, _) in evidence.processes() {
        if evidence.children(process).len() >= SLEEPS_MIN {
            waits_of(evidence, process, &mut waits);
        }
    }
    let others = Others::of(evidence, &waits);
    let (mut waits, mut alone): (Vec<Wait>, Vec<Wait>) =
        waits.into_iter().partition(|wait| others.something_else_ran(evidence, wait));
    // Who does more than to look has another reason to sleep: it takes samples, or works.
    let only_looks = |wait: &Wait| {
        let processes = evidence.with_descendants(&in_loop(evidence, wait)).len();
        processes <= (CHECKS_MAX + 1) * wait.sleeps.len()
    };
    let sleeps_of = |waits: &[Wait]| {
        let mut sleeps: Vec<u32> =
            waits.iter().flat_map(|wait| wait.sleeps.iter().copied()).collect();
        sleeps.sort_unstable();
        sleeps
    };
    alone.retain(only_looks);
    let (sleeps, alone) = (sleeps_of(&waits), sleeps_of(&alone));
    let template = |wait: &Wait| {
        let template = evidence.recording.template_of(evidence.process(wait.poller));
        (template.unwrap_or(""), evidence.own_template(wait.sleeps[0]).unwrap_or(""))
    };
    waits.retain(only_looks);
    waits.sort_by_key(template);
    let found = waits
        .chunk_by(|one, other| template(one) == template(other))
        .filter_map(|same| advice(evidence, &others, template(&same[0]), same))
        .collect();
    Loops { found, sleeps, alone }
}

/// The waits of one process.
fn waits_of(evidence: &Evidence<'_>, poller: u32, waits: &mut Vec<Wait>) {
    let mut row: Vec<u32> = Vec::new();
    for child in evidence.children(poller) {
        let is_sleep = evidence.command(*child).is_some_and(|name| SLEEPERS.contains(&name));
        if !is_sleep {
            continue;
        }
        if let Some(last) = row.last() {
            let slept_ns = evidence.life_ns(*last);
            let born_ns = evidence.process(*child).born_ns;
            let since_ns = born_ns.saturating_sub(evidence.ended_ns(*last));
            // Numbers are not in the template: a sleep of another duration is not of this loop.
            let same = evidence.own_template(*last) == evidence.own_template(*child)
                && evidence.life_ns(*child).abs_diff(slept_ns)
                    <= (slept_ns / 4).saturating_add(SLACK_NS);
            // The check is short, and the sleeps do not overlap.
            if !same || born_ns < evidence.ended_ns(*last) || since_ns > slept_ns / 2 {
                close(evidence, poller, std::mem::take(&mut row), waits);
            }
        }
        row.push(*child);
    }
    close(evidence, poller, row, waits);
}

fn close(evidence: &Evidence<'_>, poller: u32, sleeps: Vec<u32>, waits: &mut Vec<Wait>) {
    if sleeps.len() < SLEEPS_MIN {
        return;
    }
    let mut lives: Vec<u64> = sleeps.iter().map(|sleep| evidence.life_ns(*sleep)).collect();
    lives.sort_unstable();
    let interval_ns = lives[lives.len() / 2];
    waits.push(Wait { poller, sleeps, interval_ns });
}

/// Processes that a loop may wait for.
struct Others {
    /// The ends of all processes in order of time.
    ends: Vec<(u64, u32)>,
    /// Those that live as long as half of the shortest wait.
    long: Vec<u32>,
}

impl Others {
    fn of(evidence: &Evidence<'_>, waits: &[Wait]) -> Self {
        let Some(shortest_ns) = waits.iter().map(|wait| wait.half_ns(evidence)).min() else {
            return Self { ends: Vec::new(), long: Vec::new() };
        };
        let processes = evidence.processes();
        let mut ends: Vec<(u64, u32)> =
            processes.filter_map(|(number, process)| Some((process.ended_ns()?, number))).collect();
        ends.sort_unstable();
        let numbers = evidence.processes().map(|(number, _)| number);
        let long = numbers.filter(|number| evidence.life_ns(*number) >= shortest_ns).collect();
        Self { ends, long }
    }

    /// Returns whether a process that does not belong to the loop was alive in its second half: what the loop waits
    /// for. If there is none, it is a sequence of delays, or it waits for something outside.
    fn something_else_ran(&self, evidence: &Evidence<'_>, wait: &Wait) -> bool {
        let first_ns = evidence.process(wait.sleeps[0]).born_ns;
        let middle_ns = first_ns.saturating_add(wait.half_ns(evidence));
        let ancestors = ancestors(evidence, wait.poller);
        self.long.iter().any(|number| {
            evidence.process(*number).born_ns <= first_ns
                && evidence.ended_ns(*number) > middle_ns
                && !ancestors.contains(*number as usize)
        })
    }

    /// Time at which the last process other than sleeps ended in the last sleep of a wait.
    fn event_ns(&self, evidence: &Evidence<'_>, wait: &Wait, last: u32) -> Option<u64> {
        let (begin_ns, end_ns) = (evidence.process(last).born_ns, evidence.ended_ns(last));
        let until = self.ends.partition_point(|(ended_ns, _)| *ended_ns < end_ns);
        self.ends[..until]
            .iter()
            .rev()
            .take_while(|(ended_ns, _)| *ended_ns > begin_ns)
            .find(|(_, process)| *process != last && !wait.sleeps.contains(process))
            .map(|(ended_ns, _)| *ended_ns)
    }
}

/// A process and all that it descends from.
fn ancestors(evidence: &Evidence<'_>, process: u32) -> Bits {
    let mut ancestors = Bits::default();
    let mut next = Some(process as usize);
    while let Some(at) = next {
        if ancestors.contains(at) {
            break;
        }
        ancestors.insert(at);
        next = evidence.recording.processes()[at].parent();
    }
    ancestors
}

fn advice(
    evidence: &Evidence<'_>,
    others: &Others,
    (poller, sleep): (&str, &str),
    waits: &[Wait],
) -> Option<Found> {
    let wall =
        waits.iter().fold(Gain::default(), |sum, wait| sum.plus(late(evidence, others, wait)));
    let mut processes: Vec<u32> = waits.iter().flat_map(|wait| in_loop(evidence, wait)).collect();
    processes.sort_unstable();
    processes.dedup();
    let processes = evidence.with_descendants(&processes);
    let cpu_ns = processes
        .iter()
        .fold(0_u64, |sum, process| sum.saturating_add(evidence.process(*process).cpu.total_ns()));
    let sleeps: usize = waits.iter().map(|wait| wait.sleeps.len()).sum();
    let interval_ns = waits.iter().map(|wait| wait.interval_ns).max()?;
    let advice = Advice {
        kind: "polling",
        what: format!(
            "Wait for the event instead of looking every {}: `wait PID`, a pipe, flock(1) or inotifywait(1)",
            time(interval_ns)
        ),
        evidence: format!(
            "`{}` runs `{}` {} in {}, with {} for sleeps and checks",
            evidence.line(waits.first()?.poller),
            evidence.line(*waits.first()?.sleeps.first()?),
            counted(sleeps as u64, "time", "times"),
            counted(waits.len() as u64, "wait", "waits"),
            counted(processes.len() as u64, "process", "processes"),
        ),
        processes: processes.len() as u64,
        commands: vec![super::names::first_word(sleep).to_owned()],
        wall_ns: wall.at_most(evidence.wall_ns),
        cpu_ns: Gain::new(less(cpu_ns), cpu_ns, more(cpu_ns)).at_most(evidence.cpu_ns),
        method:
            "wall: from the event, taken to be the latest end of another process, to the end of \
                 the last sleep of each wait; at least 0, at most one interval"
                .into(),
        risk: "an event in another container or on another machine cannot be waited for like this"
            .into(),
        check: "record again: the sleeps are gone, and `advise --against` shows the gain".into(),
        ..Advice::default()
    };
    Some(Found::instead(processes, advice).keyed(&format!("{poller}: {sleep}")))
}

/// Time that a wait lasts longer than it has to.
fn late(evidence: &Evidence<'_>, others: &Others, wait: &Wait) -> Gain {
    let Some(last) = wait.sleeps.last().copied() else { return Gain::default() };
    let most_ns = more(wait.interval_ns);
    if evidence.path.is_none() {
        return Gain::new(0, wait.interval_ns / 2, most_ns);
    }
    if evidence.path_ns(last) == 0 {
        return Gain::default();
    }
    let late_ns = match others.event_ns(evidence, wait, last) {
        Some(event_ns) => evidence.ended_ns(last).saturating_sub(event_ns),
        None => wait.interval_ns / 2,
    };
    Gain::new(0, late_ns, most_ns.max(late_ns))
}

/// The sleeps of a wait and the children between them: the checks.
fn in_loop(evidence: &Evidence<'_>, wait: &Wait) -> Vec<u32> {
    let begin_ns = evidence.process(wait.sleeps[0]).born_ns;
    let end_ns = wait.sleeps.last().map_or(begin_ns, |last| evidence.ended_ns(*last));
    let born_ns = |child: &u32| evidence.process(*child).born_ns;
    // They are in order of birth.
    let children = evidence.children(wait.poller);
    let begin = children.partition_point(|child| born_ns(child) < begin_ns);
    let of_row = children[begin..].iter().copied().take_while(|child| born_ns(child) <= end_ns);
    let longest_ns = wait.interval_ns.saturating_mul(2);
    of_row.filter(|child| evidence.life_ns(*child) <= longest_ns).collect()
}
