//! The chain of steps that the end of a job waited for, and how much later each step could have ended.

use std::collections::BTreeMap;

use proctrace_recording::Recording;
use proctrace_recording::steps::Steps;

use crate::path::steps as path_steps;
use crate::steps::StepSum;

/// What a stretch of the chain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Along {
    /// A step, without its parts that are stretches of their own.
    Step(u32),
    /// All that this step needs had ended; others ran, and it did not.
    Slot(u32),
    /// No step: the coordinator.
    Coordinator,
    /// So many stretches too short to be told apart.
    Short(u64),
}

/// A stretch of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// What it is.
    pub along: Along,
    /// Its begin.
    pub begin_ns: u64,
    /// Its end, which is the begin of the next one.
    pub end_ns: u64,
}

impl Stretch {
    /// Its length.
    pub fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

/// Stretches shorter than this part of all are joined.
const SHORT: u64 = 200;

/// The critical path by the innermost steps of its processes, in order of time and without gaps.
pub fn by_waits(recording: &Recording, path: &[path_steps::Step]) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for part in path {
        let step = recording.steps().of_process(part.process);
        let along = step.map_or(Along::Coordinator, Along::Step);
        push(&mut stretches, Stretch { along, begin_ns: part.begin_ns, end_ns: part.end_ns });
    }
    without_short(stretches, recording.wall_ns() / SHORT)
}

/// Adds a stretch; one that goes on with the same is joined.
fn push(stretches: &mut Vec<Stretch>, stretch: Stretch) {
    match stretches.last_mut() {
        Some(last) if last.along == stretch.along => last.end_ns = stretch.end_ns,
        _ if stretch.length_ns() == 0 => {}
        _ => stretches.push(stretch),
    }
}

fn without_short(stretches: Vec<Stretch>, limit_ns: u64) -> Vec<Stretch> {
    let mut out: Vec<Stretch> = Vec::new();
    for stretch in stretches {
        let is_short = stretch.length_ns() < limit_ns;
        match out.last_mut() {
            Some(Stretch { along: Along::Short(number), end_ns, .. }) if is_short => {
                *number += 1;
                *end_ns = stretch.end_ns;
            }
            _ if is_short => out.push(Stretch { along: Along::Short(1), ..stretch }),
            _ => out.push(stretch),
        }
    }
    out
}

/// Steps within each other, and their ends.
struct Walk<'a> {
    sums: &'a [StepSum],
    needs: &'a [Option<Vec<u32>>],
    /// Parts of each step, and of none; earliest end first.
    parts: BTreeMap<Option<u32>, Vec<u32>>,
    /// The place of each step among the parts of its whole.
    place: Vec<usize>,
    /// From the last to the first.
    back: Vec<Stretch>,
}

/// The chain back from the end of the command, by what [`declared_needs`](crate::step_needs::declared_needs) says: before a
/// step comes the one that it needs and that ended last; before one of which nothing is declared, the one that had ended
/// last. In order of time and without gaps.
pub fn by_needs(
    recording: &Recording,
    sums: &[StepSum],
    needs: &[Option<Vec<u32>>],
) -> Vec<Stretch> {
    let mut parts: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
    for (at, step) in (0_u32..).zip(&recording.steps().all) {
        parts.entry(step.parent).or_default().push(at);
    }
    for parts in parts.values_mut() {
        parts.sort_by_key(|at| sums[*at as usize].end_ns);
    }
    let mut place = vec![0; sums.len()];
    for (at, step) in parts.values().flat_map(|parts| parts.iter().enumerate()) {
        place[*step as usize] = at;
    }
    let mut walk = Walk { sums, needs, parts, place, back: Vec::new() };
    let end_ns = recording.first_ns().saturating_add(recording.wall_ns());
    walk.back(None, recording.first_ns(), end_ns);
    let mut stretches = Vec::with_capacity(walk.back.len());
    walk.back.into_iter().rev().for_each(|stretch| push(&mut stretches, stretch));
    without_short(stretches, recording.wall_ns() / SHORT)
}

impl Walk<'_> {
    /// What a step (or the job, without any) waited for between two times, from the end to the beginning. Steps are at
    /// most as deep within each other as a recording keeps them.
    fn back(&mut self, whole: Option<u32>, begin_ns: u64, end_ns: u64) {
        let parts = self.parts.remove(&whole).unwrap_or_default();
        let own = whole.map_or(Along::Coordinator, Along::Step);
        let (mut now_ns, mut next): (u64, Option<u32>) = (end_ns, None);
        // Each is passed once: what began at the same time as it ended could be found again.
        let mut left = parts.len();
        while now_ns > begin_ns {
            let ended =
                parts[..left].partition_point(|at| self.sums[*at as usize].end_ns <= now_ns);
            let needed = next.and_then(|next| self.last_needed(next, &parts[..ended]));
            let Some(at) = needed.or(ended.checked_sub(1)) else { break };
            let part = parts[at];
            let sum = &self.sums[part as usize];
            let part_end_ns = sum.end_ns;
            if part_end_ns <= begin_ns {
                break;
            }
            let gap = match (needed, next) {
                // Another one ended shortly before it began, and gave it its slot; a coordinator that looks again now and
                // then lets time pass as well.
                (Some(_), Some(next)) if at + 1 < ended => {
                    let last_ns = self.sums[parts[ended - 1] as usize].end_ns;
                    let is_freed = now_ns - last_ns <= (now_ns - part_end_ns) / 2;
                    if is_freed { Along::Slot(next) } else { own }
                }
                _ => own,
            };
            self.back.push(Stretch { along: gap, begin_ns: part_end_ns, end_ns: now_ns });
            let part_begin_ns = sum.begin_ns.clamp(begin_ns, part_end_ns);
            self.back(Some(part), part_begin_ns, part_end_ns);
            (now_ns, next, left) = (part_begin_ns, Some(part), at);
        }
        if now_ns > begin_ns {
            self.back.push(Stretch { along: own, begin_ns, end_ns: now_ns });
        }
    }

    /// Of these parts, by their ends, the last one that a step is declared to need.
    fn last_needed(&self, step: u32, ended: &[u32]) -> Option<usize> {
        let needs = self.needs.get(step as usize)?.as_ref()?;
        let places = needs.iter().map(|need| (self.place[*need as usize], need));
        places.filter(|(place, need)| ended.get(*place) == Some(need)).map(|(place, _)| place).max()
    }
}

/// How much later each step could have ended without the last one ending later, given what steps need; `None` for those
/// that had not ended, or of which, or of whose whole, nothing is declared.
pub fn slacks(steps: &Steps, sums: &[StepSum], needs: &[Option<Vec<u32>>]) -> Vec<Option<u64>> {
    let last_ns = sums.iter().map(|sum| sum.end_ns).max().unwrap_or(0);
    let mut latest = vec![last_ns; sums.len()];
    let mut order: Vec<usize> = (0..sums.len()).collect();
    // Who needs a step begins after it, and after its parts.
    order.sort_by_key(|at| std::cmp::Reverse(sums[*at].begin_ns));
    for at in order {
        let around = u32::try_from(at).into_iter().flat_map(|at| steps.up(at).skip(1));
        latest[at] = around.map(|whole| latest[whole as usize]).fold(latest[at], u64::min);
        let begin_ns = latest[at].saturating_sub(sums[at].wall_ns());
        for need in needs.get(at).into_iter().flatten().flatten() {
            let of = &mut latest[*need as usize];
            *of = (*of).min(begin_ns);
        }
    }
    let is_known =
        |at: u32| steps.up(at).all(|at| needs.get(at as usize).is_some_and(Option::is_some));
    let slack = |(at, (sum, latest)): (u32, (&StepSum, u64))| {
        (sum.has_ended && is_known(at)).then(|| latest.saturating_sub(sum.end_ns))
    };
    (0..).zip(sums.iter().zip(latest)).map(slack).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Doing;
    use crate::step_needs::declared_needs;
    use crate::steps::sums;
    use proctrace_classify::Rules;
    use proctrace_scenes::{MS, Scene};

    /// A runner of two slots: gen and other begin; merge needs gen, and gets a slot when other has ended; end needs merge,
    /// and has a part.
    fn scene(table: &str) -> Recording {
        let mut scene = Scene::new(2, 100 * MS);
        scene.exec(0, 1, "/bin/runner", (0, 0));
        for (task, name, begin, end) in
            [(2, "gen", 10, 30), (3, "other", 11, 50), (4, "merge", 51, 80), (5, "end", 81, 99)]
        {
            scene.fork(begin * MS, 1, task);
            scene.in_environment(&[&format!("PROCTRACE_STEP={name}")]);
            scene.exec(begin * MS, task, "/bin/sh", (0, 0));
            if name == "end" {
                scene.fork(90 * MS, 5, 6).in_environment(&["PROCTRACE_STEP=part"]);
                scene.exec(90 * MS, 6, "/bin/part", (0, 0)).exit(95 * MS, 6, (0, 0));
            }
            scene.in_environment(&[]).exit(end * MS, task, (0, 0));
        }
        scene.exit(100 * MS, 1, (0, 0));
        let rules = Rules::generic().with_steps("steps.json", table.as_bytes()).unwrap();
        scene.load_by(&rules, None)
    }

    const TABLE: &str = r#"[
        {"name": "gen", "command": "x", "needs": []}, {"name": "other", "command": "x", "needs": []},
        {"name": "merge", "command": "x", "needs": ["gen"]}, {"name": "end", "command": "x", "needs": ["merge"]}]"#;

    fn told(recording: &Recording, path: &[Stretch]) -> Vec<(String, u64)> {
        let name = |step: u32| recording.steps().all[step as usize].named.name.clone();
        let along = |stretch: &Stretch| match stretch.along {
            Along::Step(step) => name(step),
            Along::Slot(step) => format!("slot for {}", name(step)),
            Along::Coordinator => "-".to_owned(),
            Along::Short(number) => format!("{number} short"),
        };
        path.iter().map(|of| (along(of), of.length_ns() / MS)).collect()
    }

    fn expect(recording: &Recording, path: &[Stretch], expected: &[(&str, u64)]) {
        let of: Vec<_> = expected.iter().map(|(name, ms)| ((*name).to_owned(), *ms)).collect();
        assert_eq!(told(recording, path), of);
        assert_eq!(of.iter().map(|(_, ms)| ms).sum::<u64>(), recording.wall_ns() / MS);
    }

    #[test]
    fn where_nothing_is_declared_a_step_follows_the_one_that_ended_last() {
        let recording = scene(&TABLE.replace(r#", "needs": ["gen"]"#, ""));
        let sums = sums(&recording);
        let path = by_needs(&recording, &sums, &declared_needs(&recording).unwrap());
        let tail = [("end", 9), ("part", 5), ("end", 4), ("-", 1)];
        let head = [("-", 11), ("other", 39), ("-", 1), ("merge", 29), ("-", 1)];
        expect(&recording, &path, &[&head[..], &tail].concat());
    }

    #[test]
    fn what_was_ready_waited_for_a_slot() {
        let recording = scene(TABLE);
        let needs = declared_needs(&recording).unwrap();
        let sums = sums(&recording);
        let path = by_needs(&recording, &sums, &needs);
        let tail = [("end", 9), ("part", 5), ("end", 4), ("-", 1)];
        let head = [("-", 10), ("gen", 20), ("slot for merge", 21), ("merge", 29), ("-", 1)];
        expect(&recording, &path, &[&head[..], &tail].concat());
        // gen could have ended as late as merge may begin; other has until the end.
        let slacks: Vec<_> = slacks(recording.steps(), &sums, &needs)
            .into_iter()
            .map(|of| of.map(|ns| ns / MS))
            .collect();
        assert_eq!(slacks, [Some(22), Some(49), Some(1), Some(0), None]);
    }

    #[test]
    fn the_critical_path_goes_by_innermost_steps() {
        let recording = scene(TABLE);
        let part = |process, begin, end| path_steps::Step {
            process,
            program: 0,
            doing: Doing::Running,
            begin_ns: begin * MS,
            end_ns: end * MS,
        };
        // The runner, two programs of gen, and the part of end.
        let parts =
            [part(0, 0, 10), part(1, 10, 20), part(1, 20, 30), part(0, 30, 31), part(5, 31, 100)];
        expect(
            &recording,
            &by_waits(&recording, &parts),
            &[("-", 10), ("gen", 20), ("-", 1), ("part", 69)],
        );
    }

    #[test]
    fn short_stretches_are_joined() {
        let of = |along, begin_ns, end_ns| Stretch { along, begin_ns, end_ns };
        let all = vec![
            of(Along::Coordinator, 0, 2),
            of(Along::Step(0), 2, 5),
            of(Along::Step(1), 5, 50),
            of(Along::Coordinator, 50, 51),
        ];
        let joined = without_short(all, 10);
        assert_eq!(
            joined,
            [of(Along::Short(2), 0, 5), of(Along::Step(1), 5, 50), of(Along::Short(1), 50, 51)]
        );
    }
}
