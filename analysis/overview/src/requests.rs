//! What to request from a batch system for the steps of each group: cores, memory and wall time, with a margin.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use proctrace_findings::{Figure, MemoryFrom, Request};
use proctrace_recording::Recording;
use proctrace_recording::bin_series::BinSeries;
use proctrace_recording::steps::{NamedBy, Step};
use proctrace_stats::lower_median;

use crate::disk::DiskSpace;
use crate::figures::is_known;
use crate::passes::passes;
use crate::step_files::{Level, at_level};
use crate::steps::{StepSum, group_of};

/// Least margin on memory and disk space, as a part of the largest peak.
const PEAK_MARGIN: f64 = 0.1;
/// Margin on wall time: machines differ more than memory does.
const WALL_MARGIN: f64 = 0.5;
/// Part of a CPU by which use may exceed whole CPUs: a helper that runs now and then needs none of its own.
const SPARE_CORES: f64 = 0.15;
/// Part of the time in which more CPUs are used that does not count: a moment of parallel work.
const BUSIEST_PART: f64 = 0.05;
/// Memory and disk space are requested in multiples of this, wall time in minutes.
const STEP_BYTES: u64 = 50_000_000;
const MINUTE_NS: u64 = 60_000_000_000;

/// The request for the job as a whole: all processes that it started.
pub fn job_request(recording: &Recording, disk: Option<&DiskSpace>) -> Request {
    let read = passes(recording, |_| true).iter().map(|pass| pass.pss_bytes).max();
    let largest =
        recording.processes().iter().map(|process| recording.peak_rss_bytes(process)).max();
    let largest = largest.filter(|_| is_known(recording, Figure::PeakRssBytes));
    let at_once = AtOnce::of(recording).map(|of| of.job);
    let (peak, memory_from) = peak(read, largest, at_once);
    let wall_ns = recording.wall_ns();
    let used = Used {
        cores: cores(recording),
        memory_bytes: peak.into_iter().collect(),
        memory_from,
        disk_bytes: disk.map(|disk| disk.peak.bytes).into_iter().collect(),
        wall_ns,
    };
    request(None, 1, &used)
}

/// CPUs in use in all but the busiest part of the time, or on average if that is more: a job that needs all of them for a
/// part of the time would take longer with fewer.
fn cores(recording: &Recording) -> Option<f64> {
    let wall_ns = recording.wall_ns();
    if wall_ns == 0 || !is_known(recording, Figure::CpuNs) {
        return None;
    }
    let all = recording.processes().iter().map(|process| process.cpu.total_ns());
    let cpu_ns = all.fold(0_u64, u64::saturating_add);
    let bins = recording.bins();
    let each = bins.of(BinSeries::ToldUser).iter().zip(bins.of(BinSeries::ToldSystem));
    let mut used: Vec<f64> =
        each.map(|(user_ns, system_ns)| (user_ns + system_ns) / bins.width_ns as f64).collect();
    used.retain(|used| used.is_finite());
    used.sort_unstable_by(f64::total_cmp);
    let at = (used.len() as f64 * (1.0 - BUSIEST_PART)) as usize;
    let usual = used.get(at.min(used.len().saturating_sub(1))).copied().unwrap_or(0.0);
    Some(usual.max(cpu_ns as f64 / wall_ns as f64))
}

/// What is known of a peak of memory: PSS as it was read, but at least the peak RSS of the largest process, which the
/// kernel notes, and which may be between two readings; without readings, the upper bound.
fn peak(
    read: Option<u64>,
    largest: Option<u64>,
    at_once: Option<u64>,
) -> (Option<u64>, MemoryFrom) {
    match (read, largest) {
        (None, _) => (at_once, MemoryFrom::PeaksAtOnce),
        (Some(read), Some(largest)) if largest > read => (Some(largest), MemoryFrom::Largest),
        (read, _) => (read, MemoryFrom::Pss),
    }
}

/// True if a step is one of a coordinator, as its rule says, or somebody named it who knew what it is: its environment or
/// a table.
pub fn is_step_of(step: &Step, coordinator: &str) -> bool {
    step.named.coordinator == coordinator
        || matches!(step.named.by, NamedBy::Variable | NamedBy::Table)
}

/// Requests for the groups of steps that have ended, those with the longest step first. Of all steps that somebody
/// schedules: the outermost ones and those that a table names; or the outermost ones of a coordinator, if one is given.
pub fn step_requests(
    recording: &Recording,
    sums: &[StepSum],
    disk: Option<&DiskSpace>,
    coordinator: Option<&str>,
) -> Vec<Request> {
    let steps = recording.steps();
    let at_once = AtOnce::of(recording);
    let is_of = |at: u32| coordinator.is_some_and(|name| is_step_of(&steps.all[at as usize], name));
    let is_unit = |at: u32| match coordinator {
        None => at_level(steps, at, Level::Workflow) == at,
        Some(_) => is_of(at) && !steps.up(at).skip(1).any(is_of),
    };
    let mut by_group: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, step) in steps.all.iter().enumerate() {
        if u32::try_from(at).is_ok_and(is_unit) && sums[at].has_ended {
            by_group.entry(group_of(step)).or_default().push(at);
        }
    }
    let mut requests: Vec<Request> = by_group
        .into_iter()
        .map(|(group, members)| {
            let of = || members.iter().map(|at| &sums[*at]);
            let peaks: Vec<(Option<u64>, MemoryFrom)> = members
                .iter()
                .map(|at| {
                    let (read, largest) =
                        (sums[*at].peak_pss_bytes, sums[*at].figures[Figure::PeakRssBytes]);
                    peak(read, largest, at_once.as_ref().map(|of| of.steps[*at]))
                })
                .collect();
            // A step that was too short to be read has an upper bound only, and so has the group.
            let memory_from = peaks.iter().map(|(_, from)| *from).max().unwrap_or(MemoryFrom::Pss);
            let disk = disk.into_iter().flat_map(|disk| members.iter().map(|at| disk.by_step[*at]));
            let used = Used {
                cores: of().filter_map(StepSum::cores_in_use).reduce(f64::max),
                memory_bytes: peaks.into_iter().filter_map(|(peak, _)| peak).collect(),
                memory_from,
                disk_bytes: disk.collect(),
                wall_ns: of().map(StepSum::wall_ns).max().unwrap_or(0),
            };
            request(Some(group), members.len() as u64, &used)
        })
        .collect();
    requests.sort_by_key(|request| Reverse(request.wall_used_ns));
    requests
}

/// Requests from several recordings as one for each group: what the largest needed, with a margin from their spread.
pub fn together(of_recordings: Vec<Vec<Request>>) -> Vec<Request> {
    let mut by_group: BTreeMap<Option<String>, Vec<Request>> = BTreeMap::new();
    for request in of_recordings.into_iter().flatten() {
        by_group.entry(request.group.clone()).or_default().push(request);
    }
    let one = |(group, all): (Option<String>, Vec<Request>)| {
        let used = Used {
            cores: all.iter().filter_map(|request| request.cores_used).reduce(f64::max),
            memory_bytes: all.iter().filter_map(|request| request.memory_used_bytes).collect(),
            memory_from: all.iter().map(|of| of.memory_from).max().unwrap_or(MemoryFrom::Pss),
            disk_bytes: all.iter().filter_map(|request| request.disk_used_bytes).collect(),
            wall_ns: all.iter().map(|request| request.wall_used_ns).max().unwrap_or(0),
        };
        let steps = all.iter().map(|request| request.steps).sum();
        let spread = request(group, steps, &used);
        let of_one = all.iter().filter_map(|request| request.memory_bytes).max();
        let disk_of_one = all.iter().filter_map(|request| request.disk_bytes).max();
        Request {
            memory_bytes: spread.memory_bytes.max(of_one),
            disk_bytes: spread.disk_bytes.max(disk_of_one),
            ..spread
        }
    };
    let mut requests: Vec<Request> = by_group.into_iter().map(one).collect();
    // The job as a whole comes first.
    requests.sort_by_key(|request| (request.group.is_some(), Reverse(request.wall_used_ns)));
    requests
}

/// What steps of a group, or jobs, used.
struct Used {
    cores: Option<f64>,
    /// The peak of each.
    memory_bytes: Vec<u64>,
    memory_from: MemoryFrom,
    /// The peak of each; none if sizes of files are not known.
    disk_bytes: Vec<u64>,
    /// The longest.
    wall_ns: u64,
}

fn request(group: Option<String>, steps: u64, used: &Used) -> Request {
    let wall_ns = (used.wall_ns as f64 * (1.0 + WALL_MARGIN)) as u64;
    Request {
        group,
        steps,
        cores_used: used.cores,
        cores: used.cores.map(|used| ((used - SPARE_CORES).ceil() as u64).max(1)),
        memory_used_bytes: used.memory_bytes.iter().copied().max(),
        memory_from: used.memory_from,
        memory_bytes: with_margin(&used.memory_bytes),
        disk_used_bytes: used.disk_bytes.iter().copied().max(),
        disk_bytes: with_margin(&used.disk_bytes),
        wall_used_ns: used.wall_ns,
        wall_ns: up_to(wall_ns, MINUTE_NS),
    }
}

/// The largest peak with a margin: a tenth, or as much as it is above the median if that is more.
fn with_margin(peaks: &[u64]) -> Option<u64> {
    let largest = peaks.iter().copied().max().filter(|largest| *largest > 0)?;
    let spread = largest.saturating_sub(lower_median(&mut peaks.to_vec())?);
    let margin = spread.max((largest as f64 * PEAK_MARGIN) as u64);
    Some(up_to(largest.saturating_add(margin), STEP_BYTES))
}

fn up_to(value: u64, step: u64) -> u64 {
    value.div_ceil(step).max(1).saturating_mul(step)
}

/// Largest sums of the peak RSS of processes that were alive at one time: at least as much as was in use.
#[derive(Debug)]
pub struct AtOnce {
    /// Of all processes of the job.
    pub job: u64,
    /// By step, those of its parts included.
    pub steps: Vec<u64>,
}

impl AtOnce {
    /// `None` if peak RSS is not known.
    pub fn of(recording: &Recording) -> Option<Self> {
        if !is_known(recording, Figure::PeakRssBytes) {
            return None;
        }
        let mut moments: Vec<(u64, bool, Option<u32>, u64)> = Vec::new();
        for (at, process) in recording.processes().iter().enumerate() {
            let step = u32::try_from(at).ok().and_then(|at| recording.steps().of_process(at));
            let bytes = recording.peak_rss_bytes(process);
            let ended_ns = process.ended_ns().unwrap_or(recording.last_ns());
            moments.push((process.born_ns, true, step, bytes));
            moments.push((ended_ns.max(process.born_ns), false, step, bytes));
        }
        // An end comes before a birth at the same time.
        moments.sort_unstable();
        let steps = recording.steps().all.len();
        let (mut now, mut largest) = (vec![0_u64; steps], vec![0_u64; steps]);
        let (mut job_now, mut job) = (0_u64, 0_u64);
        let after = |sum: u64, is_birth: bool, bytes: u64| match is_birth {
            true => sum.saturating_add(bytes),
            false => sum.saturating_sub(bytes),
        };
        for (_, is_birth, step, bytes) in moments {
            job_now = after(job_now, is_birth, bytes);
            job = job.max(job_now);
            for step in step.into_iter().flat_map(|step| recording.steps().up(step)) {
                let sum = &mut now[step as usize];
                *sum = after(*sum, is_birth, bytes);
                largest[step as usize] = largest[step as usize].max(*sum);
            }
        }
        Some(Self { job, steps: largest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::sums;
    use proctrace_scenes::{MS, S, Scene};

    const PAGE: u64 = 4096;

    /// Two steps of a group; the second has two processes at one time, and one after them.
    fn scene() -> Recording {
        let mut scene = Scene::new(4, 100 * MS);
        scene.exec(0, 1, "/bin/runner", (0, 0));
        scene.fork(0, 1, 2).in_environment(&["PROCTRACE_STEP=sim_1"]);
        scene.exec(0, 2, "/bin/sim", (0, 0));
        scene.exit_with(10 * S, 2, (11 * S, 0), |exit| exit.maxrss_pages = 25_000);
        scene.fork(S, 1, 3).in_environment(&["PROCTRACE_STEP=sim_2"]);
        scene.exec(S, 3, "/bin/sim", (0, 0)).fork(2 * S, 3, 4);
        scene.exit_with(3 * S, 4, (0, 0), |exit| exit.maxrss_pages = 10_000);
        scene.fork(3 * S, 3, 5);
        scene.exit_with(4 * S, 5, (0, 0), |exit| exit.maxrss_pages = 5_000);
        scene.exit_with(5 * S, 3, (S, 0), |exit| exit.maxrss_pages = 20_000);
        scene.exit(11 * S, 1, (0, 0)).load(None)
    }

    #[test]
    fn a_request_covers_the_largest_step_with_a_margin() {
        let recording = scene();
        let [request] = &step_requests(&recording, &sums(&recording), None, None)[..] else {
            panic!()
        };
        assert_eq!((request.group.as_deref(), request.steps), (Some("sim"), 2));
        // 11 s of CPU in 10 s: the tenth above one CPU needs none of its own.
        assert_eq!((request.cores_used, request.cores), (Some(1.1), Some(1)));
        assert_eq!(request.memory_used_bytes, Some(30_000 * PAGE));
        assert_eq!(request.memory_from, MemoryFrom::PeaksAtOnce);
        // 122.9 MB, and the 20.5 MB by which it is above the median.
        assert_eq!(request.memory_bytes, Some(150_000_000));
        assert_eq!((request.wall_used_ns, request.wall_ns), (10 * S, 60 * S));
        // The environment names them: whoever did that knows.
        assert_eq!(step_requests(&recording, &sums(&recording), None, Some("nextflow")).len(), 1);
        // Both steps at once, for four of eleven seconds; all that were alive at one time.
        let job = job_request(&recording, None);
        assert_eq!((job.cores, job.memory_used_bytes), (Some(2), Some(55_000 * PAGE)));
        assert_eq!((job.group, job.wall_ns), (None, 60 * S));
    }

    #[test]
    fn a_peak_between_two_readings_is_not_missed() {
        use MemoryFrom::{Largest, PeaksAtOnce, Pss};
        assert_eq!(peak(Some(5), Some(4), Some(9)), (Some(5), Pss));
        assert_eq!(peak(Some(5), Some(7), Some(9)), (Some(7), Largest));
        assert_eq!(peak(Some(5), None, None), (Some(5), Pss));
        assert_eq!(peak(None, Some(7), Some(9)), (Some(9), PeaksAtOnce));
    }

    /// Ten seconds of one CPU, and one of four.
    #[test]
    fn cpus_that_are_needed_for_a_part_of_the_time_count() {
        let mut scene = Scene::new(4, S);
        scene.exec(0, 1, "/bin/job", (0, 0));
        for task in 2..6 {
            scene.fork(10 * S, 1, task).exec(10 * S, task, "/bin/sim", (0, 0));
            scene.exit(11 * S, task, (S, 0));
        }
        let recording = scene.exit(11 * S, 1, (10 * S, 0)).load(Some((11 * S, 0, 0)));
        let used = job_request(&recording, None).cores_used.unwrap();
        assert!(used > 4.0, "{used}");
    }

    #[test]
    fn several_recordings_are_taken_together() {
        let of = |peak: u64, seconds: u64| {
            let used = Used {
                cores: Some(1.0),
                memory_bytes: vec![peak],
                memory_from: MemoryFrom::Pss,
                disk_bytes: vec![peak / 2],
                wall_ns: seconds * S,
            };
            request(Some("sim".into()), 2, &used)
        };
        let [sim] = &together(vec![vec![of(1_000_000_000, 100)], vec![of(600_000_000, 200)]])[..]
        else {
            panic!()
        };
        assert_eq!((sim.steps, sim.memory_bytes), (4, Some(1_400_000_000)));
        assert_eq!((sim.disk_used_bytes, sim.disk_bytes), (Some(500_000_000), Some(700_000_000)));
        assert_eq!(sim.wall_ns, 300 * S);
    }

    #[test]
    fn margins_are_a_tenth_at_least() {
        assert_eq!(with_margin(&[1_000_000_000; 3]), Some(1_100_000_000));
        assert_eq!(with_margin(&[500_000_000, 1_000_000_000, 500_000_000]), Some(1_500_000_000));
        assert_eq!((with_margin(&[]), with_margin(&[0])), (None, None));
    }
}
