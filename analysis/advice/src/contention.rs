//! `overcommit`: the command waits for a CPU, because more of its tasks want to run than there are cores.

use proctrace_classify::fast::Bits;
use proctrace_findings::{Advice, Gain, count, time};
use proctrace_overview::path::{Doing, Part};
use proctrace_recording::bin_series::BinSeries;
use proctrace_recording::process::Process;

use super::Found;
use super::counter::{coordinates, workers};
use super::evidence::{Evidence, more};
use super::model::Cut;

/// Minimum excess of tasks that want a core over the cores that there are, on average.
const EXCESS_MIN: f64 = 0.5;

/// The whole recording, if its tasks want more cores than there are on average, and not only in one sample, and if its
/// own tasks take most of the time in which others of it wait.
///
/// Wall: at most the time on the critical path in which a task was ready and had no CPU, times the part of all
/// CPUs that tasks of the recording used meanwhile: who waits, waits for all that run, and the others are not
/// the recording's. To that comes the time on the path in which a task ran, times the part of the tasks that had no
/// CPU meanwhile at the peak: it may have waited for them by spinning. Middle, half of the same part of what the recorded order of births and wake-ups gains
/// without all waits for CPUs; low 0: with fewer tasks at a time the same work needs the same CPU time. CPU:
/// not known, 0.
pub(super) fn find(evidence: &Evidence<'_>) -> Vec<Found> {
    let (mut all_ns, mut waited_ns, mut running_ns) = (0_u64, 0.0, 0_u64);
    let mut coordinated_ns = 0_u64;
    let coordinated = coordinated(evidence);
    for part in evidence.path.iter().flat_map(|path| &path.parts) {
        if part.doing == Doing::WaitingForCpu {
            let part_ns = part.end_ns - part.begin_ns;
            all_ns = all_ns.saturating_add(part_ns);
            waited_ns += part_ns as f64 * in_use(evidence, part);
            let process = evidence.recording.tasks()[part.task as usize].process();
            if coordinated.contains(process) || is_runtime(evidence, process as u32) {
                coordinated_ns = coordinated_ns.saturating_add(part_ns);
            }
        } else if part.doing == Doing::Running {
            running_ns = running_ns.saturating_add(part.end_ns - part.begin_ns);
        }
    }
    let waited_ns = waited_ns as u64;
    // Who starts as many as there are cores, as go and ninja do, leaves it to the kernel if these have threads of their own.
    if !evidence.pays(waited_ns, 0) || coordinated_ns > all_ns / 2 {
        return Vec::new();
    }
    // Otherwise it is other jobs on the machine that take the CPUs.
    let cores = evidence.recording.header().cpus;
    let Some(peak) = evidence.recording.peak_running().filter(|peak| *peak > cores.into()) else {
        return Vec::new();
    };
    if waited_ns < all_ns / 2 || wanted(evidence) < f64::from(cores) + EXCESS_MIN {
        return Vec::new();
    }
    let Some(earlier) = evidence.earlier(Cut::CpuWaits) else { return Vec::new() };
    let earlier_ns = earlier.ns;
    let without_cpu = 1.0 - f64::from(cores) / peak as f64;
    let spun_ns = (running_ns as f64 * without_cpu) as u64;
    let own = waited_ns as f64 / all_ns.max(1) as f64;
    let middle_ns = (earlier_ns.min(all_ns) as f64 * own / 2.0) as u64;
    let used = &evidence.recording.totals().used;
    let advice = Advice {
        kind: "overcommit",
        what: format!("Start fewer tasks at a time: as many as there are cores, {cores}, less what else runs"),
        evidence: format!(
            "on its critical path the command waits {} for a CPU, {} of it for its own tasks, by their part of \
             all CPU time; up to {} of them want to run; {} involuntary context switches",
            time(all_ns),
            time(waited_ns),
            count(peak),
            count(used.nivcsw)
        ),
        processes: evidence.recording.processes().len() as u64,
        wall_ns: Gain::new(0, middle_ns, more(waited_ns.saturating_add(spun_ns))).at_most(evidence.wall_ns),
        method: "wall: time on the critical path without a CPU, and in which tasks may have spun meanwhile \
                 (high); half of what is gained if nothing waits for a CPU (middle); low is 0, as the same \
                 work needs the same CPU time"
            .into(),
        risk: "other jobs on the machine take CPUs, too: then nothing changes".into(),
        check: "record with fewer workers; `proctrace series` compares several numbers".into(),
        ..Advice::default()
    };
    vec![Found::about(Vec::new(), advice)]
}

/// Programs whose threads are not started by who runs them: of garbage collectors, compilers at run time.
const RUNTIMES: [&str; 6] = ["java", "node", "nodejs", "dotnet", "beam.smp", "deno"];

fn is_runtime(evidence: &Evidence<'_>, process: u32) -> bool {
    evidence.command(process).is_some_and(|name| RUNTIMES.contains(&name))
}

/// Processes of which one above them, or themselves, decides what runs at once, and was not asked for more than there are cores.
pub(super) fn coordinated(evidence: &Evidence<'_>) -> Bits {
    let cores = evidence.recording.header().cpus;
    let templates: Vec<bool> =
        evidence.recording.templates().iter().map(|line| coordinates(line)).collect();
    let decides = |process: &Process| {
        let run = process.run().and_then(|run| evidence.recording.runs().get(run as usize));
        process.execs > 0
            && run.is_some_and(|run| templates[run.template as usize])
            && workers(evidence.recording.line_of(process)).is_none_or(|asked| asked <= cores)
    };
    let mut coordinated = Bits::default();
    for (at, process) in evidence.recording.processes().iter().enumerate() {
        // Parents precede their children.
        let above = process.parent().is_some_and(|parent| coordinated.contains(parent));
        if above || decides(process) {
            coordinated.insert(at);
        }
    }
    coordinated
}

/// Number of tasks that run or wait for a CPU, on average.
fn wanted(evidence: &Evidence<'_>) -> f64 {
    let used = &evidence.recording.totals().used;
    used.run_ns.saturating_add(used.run_delay_ns) as f64 / evidence.wall_ns.max(1) as f64
}

/// The part of all CPUs that the tasks of the recording use during a part of the path.
fn in_use(evidence: &Evidence<'_>, part: &Part) -> f64 {
    let recording = evidence.recording;
    let bins = recording.bins();
    let (user, system) = (bins.of(BinSeries::User), bins.of(BinSeries::System));
    let whole_ns = bins.width_ns.max(1) as f64 * f64::from(recording.header().cpus.max(1));
    let used = |bin: usize| Some((user.get(bin)? + system.get(bin)?) / whole_ns);
    let shares = bins.shares(part.begin_ns, part.end_ns);
    shares.map(|(bin, share)| share * used(bin).unwrap_or(0.0).clamp(0.0, 1.0)).sum()
}
