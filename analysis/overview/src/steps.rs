//! What each step ran and used, alone and with those that are parts of it, and sums over groups of steps.

use std::collections::BTreeMap;

use proctrace_classify::fast::FastMap;
use proctrace_findings::{Figure, Figures, without_numbers};
use proctrace_recording::Recording;
use proctrace_recording::process::Process;
use proctrace_recording::steps::{NamedBy, Step};
use proctrace_stats::lower_median;
use proctrace_wire::Outcome;

use crate::ends::known_status;
use crate::figures::{OfProcesses, is_known};
use crate::passes::{is_divided, with_readings};

/// What a step ran and used, with all steps that are parts of it.
#[derive(Debug, Clone)]
pub struct StepSum {
    /// Birth of its first process, whose CPU time counts from there; or the program run with which the step begins, if
    /// the process had run another one before. If the step is a mark, the mark.
    pub begin_ns: u64,
    /// Time at which its first process ended, for which whoever started it waits; or the recording. If the step is a
    /// mark, the last of its processes.
    pub end_ns: u64,
    /// False if this process was alive when the recording ended.
    pub has_ended: bool,
    /// Processes, its first one included.
    pub processes: u64,
    /// Figures of all of them.
    pub figures: Figures,
    /// Largest sum of the PSS of all of them at one time; `None` if memory was not read while it was there.
    pub peak_pss_bytes: Option<u64>,
    /// The same of their RSS, in which shared pages count more than once.
    pub peak_rss_sum_bytes: Option<u64>,
    /// The same of their USS; `None` also if the source does not tell shared pages apart.
    pub peak_uss_bytes: Option<u64>,
    /// The end of its first process; `None` if that is not known.
    pub outcome: Option<Outcome>,
}

impl StepSum {
    /// Wall time from its begin to its end.
    pub fn wall_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }

    /// Mean number of CPUs that it used while it was there.
    pub fn cores_in_use(&self) -> Option<f64> {
        let cpu_ns = self.figures[Figure::CpuNs]?;
        (self.wall_ns() > 0).then(|| cpu_ns as f64 / self.wall_ns() as f64)
    }

    /// True if its first process did not exit with 0.
    pub fn failed(&self) -> bool {
        self.outcome.is_some_and(|outcome| outcome != Outcome::Code(0))
    }
}

/// The group of a step: that which it was given, or its name without a number at its end and with `#` in place of others.
pub fn group_of(step: &Step) -> String {
    let named = &step.named;
    named.group.clone().unwrap_or_else(|| {
        let without = named.name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let is_numbered = without.len() < named.name.len();
        let without = without.strip_suffix(['_', '-', '.', ' ', '#']).filter(|_| is_numbered);
        without_numbers(without.filter(|name| !name.is_empty()).unwrap_or(&named.name))
    })
}

/// The sums of all steps, in their order.
pub fn sums(recording: &Recording) -> Vec<StepSum> {
    let steps = recording.steps();
    let zero = |figure: Figure| {
        (is_known(recording, figure) && figure.adds_up() && !figure.is_largest()).then_some(0)
    };
    let empty = Figures::of(zero);
    // The first program runs of processes.
    let mut first_runs: FastMap<u32, u32> = FastMap::default();
    for (at, run) in (0_u32..).zip(recording.runs()).filter(|_| !steps.all.is_empty()) {
        first_runs.entry(run.process).or_insert(at);
    }
    let mut sums: Vec<StepSum> = steps
        .all
        .iter()
        .map(|step| {
            let run = &recording.runs()[step.run as usize];
            let process = recording.processes().get(run.process as usize);
            let is_mark = step.named.by == NamedBy::Mark;
            let first = process.filter(|_| !is_mark);
            let ended_ns = first.map_or(Some(run.time_ns), Process::ended_ns);
            let is_born = first_runs.get(&run.process) == Some(&step.run);
            let born_ns = first.filter(|_| is_born).map(|process| process.born_ns);
            StepSum {
                begin_ns: born_ns.unwrap_or(run.time_ns),
                end_ns: ended_ns.unwrap_or(recording.last_ns()),
                has_ended: ended_ns.is_some(),
                processes: 0,
                peak_pss_bytes: None,
                peak_rss_sum_bytes: None,
                peak_uss_bytes: None,
                figures: empty,
                outcome: first.and_then(known_status).map(Outcome::of_status),
            }
        })
        .collect();
    if sums.is_empty() {
        return sums;
    }
    let all = OfProcesses::new(recording, 0..recording.processes().len());
    for (at, process) in recording.processes().iter().enumerate() {
        let number = u32::try_from(at).unwrap_or(u32::MAX);
        let Some(step) = steps.of_process(number) else { continue };
        let sum = &mut sums[step as usize];
        sum.processes += 1;
        if steps.all[step as usize].named.by == NamedBy::Mark {
            sum.has_ended &= process.ended_ns().is_some();
            sum.end_ns = sum.end_ns.max(process.ended_ns().unwrap_or(recording.last_ns()));
        }
        sum.figures = sum.figures.plus(&all.of(at));
    }
    peaks(recording, &mut sums);
    // A part comes after the whole.
    for at in (0..sums.len()).rev() {
        let Some(whole) = steps.all[at].parent else { continue };
        let part = sums[at].clone();
        let is_mark = steps.all[whole as usize].named.by == NamedBy::Mark;
        let whole = &mut sums[whole as usize];
        if is_mark {
            whole.has_ended &= part.has_ended;
            whole.end_ns = whole.end_ns.max(part.end_ns);
        }
        whole.processes += part.processes;
        whole.figures = whole.figures.plus(&part.figures);
    }
    sums
}

/// Largest sums of memory at one time, with that of parts.
fn peaks(recording: &Recording, sums: &mut [StepSum]) {
    let steps = recording.steps();
    let mut at_once: BTreeMap<u32, (u64, u64, Option<u64>)> = BTreeMap::new();
    for (_, readings) in with_readings(recording, |_| true) {
        at_once.clear();
        for reading in readings {
            let Some(step) =
                u32::try_from(reading.process).ok().and_then(|at| steps.of_process(at))
            else {
                continue;
            };
            let read = &reading.record;
            let uss_bytes = is_divided(read).then_some(read.uss_bytes);
            for step in steps.up(step) {
                let (pss, rss, uss) = at_once.entry(step).or_insert((0, 0, Some(0)));
                *pss = pss.saturating_add(read.pss_bytes);
                *rss = rss.saturating_add(read.rss_bytes);
                *uss = uss.zip(uss_bytes).map(|(sum, bytes)| sum.saturating_add(bytes));
            }
        }
        for (step, (pss, rss, uss)) in &at_once {
            let sum = &mut sums[*step as usize];
            sum.peak_pss_bytes = sum.peak_pss_bytes.max(Some(*pss));
            sum.peak_rss_sum_bytes = sum.peak_rss_sum_bytes.max(Some(*rss));
            sum.peak_uss_bytes = sum.peak_uss_bytes.max(*uss);
        }
    }
}

/// Steps of one group.
#[derive(Debug, Clone)]
pub struct StepGroup {
    /// Its name.
    pub name: String,
    /// Number of its steps.
    pub steps: u64,
    /// Number of those whose first process did not exit with 0.
    pub failed: u64,
    /// Number of those that were started again after they had failed: by the same step, under the same name, with the same
    /// command and in the same directory.
    pub retried: u64,
    /// Median of their wall times.
    pub median_wall_ns: u64,
    /// The longest wall time.
    pub longest_wall_ns: u64,
    /// Sum of their wall times.
    pub wall_ns: u64,
    /// Processes of all.
    pub processes: u64,
    /// Largest peak of the PSS of one of them; `None` if memory was not read.
    pub peak_pss_bytes: Option<u64>,
    /// Figures of all.
    pub figures: Figures,
}

impl StepGroup {
    /// Mean number of CPUs that one of its steps used.
    pub fn cores_in_use(&self) -> Option<f64> {
        let cpu_ns = self.figures[Figure::CpuNs]?;
        (self.wall_ns > 0).then(|| cpu_ns as f64 / self.wall_ns as f64)
    }
}

/// The groups of steps, those with most wall time first. A step within another one of its group counts there only.
pub fn groups(recording: &Recording, sums: &[StepSum]) -> Vec<StepGroup> {
    let steps = recording.steps();
    let names: Vec<String> = steps.all.iter().map(group_of).collect();
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, name) in names.iter().enumerate() {
        let number = u32::try_from(at).unwrap_or(u32::MAX);
        let mut around = steps.up(number).skip(1);
        if around.all(|whole| names[whole as usize] != *name) {
            by_name.entry(name).or_default().push(at);
        }
    }
    let mut groups: Vec<StepGroup> = by_name
        .into_iter()
        .filter_map(|(name, members)| {
            let of = || members.iter().map(|at| &sums[*at]);
            let mut walls: Vec<u64> = of().map(StepSum::wall_ns).collect();
            let first = of().next()?.figures;
            Some(StepGroup {
                name: name.to_owned(),
                steps: members.len() as u64,
                failed: of().filter(|sum| sum.failed()).count() as u64,
                retried: retried(recording, sums, &members),
                longest_wall_ns: walls.iter().copied().max().unwrap_or(0),
                wall_ns: walls.iter().fold(0, |sum, wall| sum.saturating_add(*wall)),
                median_wall_ns: lower_median(&mut walls)?,
                processes: of().map(|sum| sum.processes).sum(),
                peak_pss_bytes: of().filter_map(|sum| sum.peak_pss_bytes).max(),
                figures: of().skip(1).fold(first, |all, sum| all.plus(&sum.figures)),
            })
        })
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.wall_ns));
    groups
}

/// Number of these steps that were started again after they had failed. If two of one name ran at one time, or one came
/// after a success, the name is not that of one unit of work.
fn retried(recording: &Recording, sums: &[StepSum], members: &[usize]) -> u64 {
    let mut by_name: BTreeMap<_, Vec<&StepSum>> = BTreeMap::new();
    for at in members {
        let step = &recording.steps().all[*at];
        // The same tests in another directory are others.
        let unit =
            (step.parent, &step.named.name, &step.directory, recording.line_of_run(step.run));
        by_name.entry(unit).or_default().push(&sums[*at]);
    }
    let are_tries = |all: &mut Vec<&StepSum>| {
        all.sort_by_key(|sum| sum.begin_ns);
        all.windows(2).all(|pair| pair[0].failed() && pair[0].end_ns <= pair[1].begin_ns)
    };
    by_name
        .into_values()
        .filter_map(|mut all| are_tries(&mut all).then(|| all.len() as u64 - 1))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MS, Scene};

    /// A coordinator that starts two steps of a group, of which the second has a part, and something that is no step.
    fn scene() -> Recording {
        let mut scene = Scene::new(1, 100 * MS);
        scene.exec(0, 1, "/bin/runner", (0, 0));
        scene.fork(MS, 1, 2).in_environment(&["PROCTRACE_STEP=digi_1"]);
        scene.exec(2 * MS, 2, "/bin/sh", (0, 0)).fork(3 * MS, 2, 3);
        // It inherits the name.
        scene.exec(4 * MS, 3, "/bin/sim", (0, 0)).exit(12 * MS, 3, (5 * MS, 0));
        scene.exit(14 * MS, 2, (MS, 0));
        scene.fork(15 * MS, 1, 4).in_environment(&["PROCTRACE_STEP=digi_2"]);
        scene.exec(16 * MS, 4, "/bin/sh", (0, 0)).fork(17 * MS, 4, 5);
        // Without an environment, but within the step; its child has it again.
        scene.in_environment(&[]).exec(18 * MS, 5, "/bin/env", (0, 0)).fork(19 * MS, 5, 6);
        scene.in_environment(&["PROCTRACE_STEP=digi_2"]).exec(20 * MS, 6, "/bin/sim", (0, 0));
        scene.exit(26 * MS, 6, (2 * MS, 0)).fork(26 * MS, 5, 7);
        scene.in_environment(&["PROCTRACE_STEP=part", "PROCTRACE_STEP_GROUP=parts"]);
        scene.exec(27 * MS, 7, "/bin/part", (0, 0)).exit(30 * MS, 7, (MS, 0));
        scene.exit(31 * MS, 5, (0, 0)).exit_with(32 * MS, 4, (0, 0), |exit| exit.status = 1 << 8);
        scene.fork(33 * MS, 1, 8).in_environment(&[]);
        scene.exec(34 * MS, 8, "/bin/true", (0, 0)).exit(35 * MS, 8, (0, 0));
        scene.exit(40 * MS, 1, (0, 0)).load(None)
    }

    #[test]
    fn processes_belong_to_the_innermost_step_and_sums_go_up() {
        let recording = scene();
        let names: Vec<&str> = recording.steps().all.iter().map(|step| &*step.named.name).collect();
        assert_eq!(names, ["digi_1", "digi_2", "part"]);
        assert_eq!(recording.steps().all[2].parent, Some(1));
        let of = |at: u32| recording.steps().of_process(at);
        let all: Vec<Option<u32>> = (0..8).map(of).collect();
        assert_eq!(all, [None, Some(0), Some(0), Some(1), Some(1), Some(1), Some(2), None]);
        let sums = sums(&recording);
        let told: Vec<_> = sums
            .iter()
            .map(|sum| {
                (sum.processes, sum.wall_ns() / MS, sum.figures[Figure::CpuNs], sum.failed())
            })
            .collect();
        assert_eq!(
            told,
            [(2, 13, Some(6 * MS), false), (4, 17, Some(3 * MS), true), (1, 4, Some(MS), false)]
        );
    }

    #[test]
    fn steps_with_numbers_in_their_names_are_a_group() {
        let recording = scene();
        let groups = groups(&recording, &sums(&recording));
        let told: Vec<_> = groups
            .iter()
            .map(|group| (&*group.name, group.steps, group.failed, group.processes))
            .collect();
        assert_eq!(told, [("digi", 2, 1, 6), ("parts", 1, 0, 1)]);
        assert_eq!((groups[0].median_wall_ns, groups[0].longest_wall_ns), (13 * MS, 17 * MS));
        assert_eq!(groups[0].figures[Figure::CpuNs], Some(9 * MS));
    }

    #[test]
    fn what_the_command_inherits_is_no_step() {
        let trace = "00-0af7651916cd43dd8448eb211c80319c";
        let (outer, inner) = ("b7ad6b7169203331", "b7ad6b7169203332");
        let span = |span: &str| format!("TRACEPARENT={trace}-{span}-01");
        let mut scene = Scene::new(1, 100 * MS);
        let inherited = ["GITHUB_ACTION=build", &span(outer)];
        scene.in_environment(&inherited).exec(0, 1, "/bin/sh", (0, 0));
        scene.fork(MS, 1, 2).exec(2 * MS, 2, "/bin/true", (0, 0)).exit(3 * MS, 2, (0, 0));
        scene.fork(4 * MS, 1, 3).in_environment(&["GITHUB_ACTION=build", &span(inner)]);
        scene.exec(5 * MS, 3, "/bin/true", (0, 0)).exit(6 * MS, 3, (0, 0));
        let recording = scene.exit(7 * MS, 1, (0, 0)).load(None);
        let names: Vec<&str> = recording.steps().all.iter().map(|step| &*step.named.name).collect();
        assert_eq!(names, ["span b7ad6b7169203332"]);
    }

    /// Java runs another program first, in the place of what it was asked for.
    #[test]
    fn a_step_begins_with_what_was_asked_for() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.exec(0, 1, "/usr/bin/just", (0, 0)).fork(MS, 1, 2);
        scene.exec(2 * MS, 2, "/usr/lib/jvm/java-17/lib/jspawnhelper", (0, 0));
        scene.exec(3 * MS, 2, "/bin/false", (0, 0)).exit(5 * MS, 2, (0, 0));
        let recording = scene.exit(7 * MS, 1, (0, 0)).load(None);
        let steps: Vec<_> = sums(&recording).iter().map(|sum| sum.wall_ns()).collect();
        assert_eq!((&*recording.steps().all[0].named.name, steps), ("false", vec![2 * MS]));
    }

    #[test]
    fn steps_within_each_other_are_limited_and_counted() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.exec(0, 1, "/bin/sh", (0, 0));
        for n in 0..100 {
            let name = format!("PROCTRACE_STEP=n{n}");
            scene.in_environment(&[&name]).exec(MS + n, 1, "/bin/sh", (0, 0));
        }
        let recording = scene.exit(7 * MS, 1, (0, 0)).load(None);
        assert_eq!((recording.steps().all.len(), recording.steps().left_out), (64, 36));
        assert_eq!(sums(&recording).len(), 64);
    }

    #[test]
    fn a_job_that_names_no_steps_has_none() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.exec(0, 1, "/bin/true", (0, 0));
        let recording = scene.exit(MS, 1, (0, 0)).load(None);
        assert!(recording.steps().all.is_empty() && sums(&recording).is_empty());
        assert_eq!(recording.steps().of_process(0), None);
    }

    #[test]
    fn a_step_that_is_started_again_after_a_failure_is_told() {
        let retried = |ends: &[(u64, u64, u32)]| {
            let mut scene = Scene::new(1, 100 * MS);
            scene.exec(0, 1, "/bin/runner", (0, 0));
            scene.in_environment(&["PROCTRACE_STEP=digi_1"]);
            for (task, (begin, ..)) in (2..).zip(ends) {
                scene.fork(begin * MS, 1, task).exec(begin * MS, task, "/bin/sim", (0, 0));
            }
            for (task, (_, end, code)) in (2..).zip(ends) {
                scene.exit_with(end * MS, task, (0, 0), |exit| exit.status = code << 8);
            }
            let recording = scene.exit(40 * MS, 1, (0, 0)).load(None);
            groups(&recording, &sums(&recording))[0].retried
        };
        assert_eq!(retried(&[(1, 5, 1), (6, 9, 2), (9, 12, 0)]), 2);
        assert_eq!(retried(&[(1, 5, 1), (6, 9, 1)]), 1);
        assert_eq!(retried(&[(1, 5, 0), (6, 9, 0)]), 0);
        assert_eq!(retried(&[(1, 5, 1), (4, 9, 0)]), 0, "two of one name at one time");
        assert_eq!(retried(&[(1, 5, 1)]), 0);
    }
}
