//! The summary figures.

use proctrace_findings::{Run, Summary};
use proctrace_wire::Quantity::{
    Cpu, Execs, Faults, Forks, Io, LookupsExec, LookupsOpen, LookupsReadlink, OpenedFiles, PeakRss,
    RunDelay, Samples, Split, Switches, Times,
};
use proctrace_wire::{Family, Quantity};

use proctrace_classify::fast::counters;
use proctrace_recording::Recording;
use proctrace_recording::books::detached;
use proctrace_recording::books::waits::Accounting;
use proctrace_recording::counts::Totals;
use proctrace_recording::order::Intervals;
use proctrace_recording::process::Process;
use proctrace_recording::split::Divided;
use proctrace_stats::lower_median;

/// Quantities for the CPU time: without the forks, tasks would be missing from the CPU time.
const CPU: [Quantity; 2] = [Forks, Cpu];
const SPLIT: [Quantity; 3] = [Forks, Cpu, Split];

pub fn run(recording: &Recording) -> Run {
    let header = recording.header();
    let payload = recording.trailer().and_then(|trailer| trailer.payload.as_ref());
    Run {
        command: header.command.clone(),
        scope: header.scope.clone(),
        cgroup: header.cgroup.clone(),
        cwd: header.cwd.clone(),
        host: header.host.clone(),
        kernel: header.kernel.clone(),
        started_unix_ns: header.started_unix_ns,
        outcome: payload.map(|payload| payload.outcome),
        cores: header.cpus,
        wall_ns: recording.knows().some(&[Times], recording.wall_ns()),
        recorded_ns: recording.knows().some(&[Times], recording.recorded_ns()),
        after: detached::after(recording).filter(|_| recording.knows().all(&[Times])),
    }
}

pub fn summary(recording: &Recording, accounting: &Accounting) -> Summary {
    let ended = recording.processes().iter().filter_map(Process::life_ns);
    let median_life_ns = lower_median(&mut ended.collect::<Vec<u64>>());
    let summary = without_lives(recording, accounting);
    let median_life_ns = median_life_ns.filter(|_| knows_lives(recording, &summary));
    Summary { median_life_ns, ..summary }
}

/// True if lifetimes are known of all processes.
pub fn knows_lives(recording: &Recording, summary: &Summary) -> bool {
    summary.processes.is_some() && recording.knows().all(&[Times])
}

/// The summary except the median lifetime, for which all lifetimes have to be collected.
pub fn without_lives(recording: &Recording, accounting: &Accounting) -> Summary {
    let processes = recording.processes();
    let &Totals { used, threads, opens, alive, .. } = recording.totals();
    let totals_are_final = alive == 0;
    let cpu: proctrace_replay::CpuTime = processes.iter().map(|process| process.cpu).sum();
    // Descendants may outlive the command, which extends the time in which they could have run.
    let available_ns = recording.recorded_ns().max(recording.wall_ns()) as f64
        * f64::from(recording.header().cpus.max(1));
    let payload = recording.trailer().and_then(|trailer| trailer.payload.as_ref());
    // The usage in a trailer is 0 where the source cannot know it.
    let payload = payload.filter(|_| recording.knows().all(&[Cpu]));
    let largest = processes.iter().max_by_key(|process| process.maxrss_pages());
    let knows = recording.knows();
    let certain = recording.split().certainty(&Divided { cpu, ticks: recording.split().ticks });
    let interval = certain.interval_percent.filter(|_| knows.all(&SPLIT));
    let counts = recording.counts();
    let in_vain = counts.in_vain();
    // 0 of none that were seen is no count.
    let sees = counts.lookups_failed > 0 || recording.blind().compat.len() < processes.len();
    let lookups = |count| knows.some(&Quantity::LOOKUPS, count).filter(|_| sees);
    Summary {
        cpu_ns: knows.sum(&CPU, accounting.total_ns),
        user_ns: knows.sum(&SPLIT, cpu.user_ns),
        system_ns: knows.sum(&SPLIT, cpu.system_ns),
        ticks: knows.some(&SPLIT, certain.ticks),
        system_low_percent: interval.map(|interval| interval.0),
        system_high_percent: interval.map(|interval| interval.1),
        others_percent: recording.others_percent(),
        efficiency_percent: (available_ns > 0.0 && knows.all(&CPU))
            .then(|| 100.0 * cpu.total_ns() as f64 / available_ns),
        waited_cpu_ns: payload.map(|payload| payload.user_ns.saturating_add(payload.system_ns)),
        waited_system_ns: payload.map(|payload| payload.system_ns),
        unwaited_cpu_ns: knows.some(&CPU, accounting.unwaited_ns),
        detached_processes: knows.some(&[Forks], accounting.detached),
        detached_cpu_ns: knows.some(&CPU, accounting.detached_ns),
        processes: knows.some(&[Forks], processes.len() as u64),
        threads: knows.some(&[Forks], threads),
        execs: knows.some(&[Execs], counts.execs),
        execs_failed: knows.some(&[LookupsExec], counts.execs_failed),
        execs_searched: knows.some(&[LookupsExec], counts.execs_searched),
        peak_tasks: knows
            .some(&[Forks, Times], peak(recording.tasks(), |task| (task.born_ns, task.ended_ns()))),
        peak_processes: knows.some(&[Forks, Times], peak(processes, |p| (p.born_ns, p.ended_ns()))),
        // Too few samples may find nothing running, however much ran.
        peak_running: recording
            .peak_running()
            .filter(|running| *running > 0 && knows.all(&[Samples])),
        median_life_ns: None,
        lookups_failed: lookups(counts.lookups_failed.saturating_sub(counts.marks)),
        lookups_of_no_link: knows.some(&[LookupsReadlink], counts.not_links),
        lookups_in_vain: lookups(in_vain),
        lookups_in_vain_ns: recording.lookup_times().and_then(|times| times.of(lookups(in_vain)?)),
        lookups_failed_by_family: Family::ALL
            .into_iter()
            .zip(counts.by_family)
            .filter(|(family, count)| *count > 0 && knows.knows_family(family.name()))
            .map(|(family, count)| (family.name().to_owned(), count))
            .collect(),
        // A task tells its number at its end.
        opens: match totals_are_final {
            true => knows.some(&[LookupsOpen], opens),
            false => recording
                .opened()
                .and_then(|opened| knows.some(&[LookupsOpen, OpenedFiles], opened.opens)),
        },
        switches_voluntary: knows.some(&[Forks, Switches], used.nvcsw),
        switches_involuntary: knows.some(&[Forks, Switches], used.nivcsw),
        faults_minor: knows.some(&[Forks, Faults], used.minflt),
        faults_major: knows.some(&[Forks, Faults], used.majflt),
        read_bytes: knows.sum(&[Forks, Io], used.read_bytes),
        write_bytes: knows.sum(&[Forks, Io], used.write_bytes),
        run_delay_ns: knows.some(&[Forks, RunDelay], used.run_delay_ns),
        maxrss_bytes: largest
            .and_then(|process| recording.known_peak_rss_bytes(process))
            .filter(|_| knows.all(&[Forks, PeakRss])),
        maxrss_program: largest
            .map(|process| recording.program_of(process).name.clone())
            .filter(|_| knows.all(&[Forks, Execs, PeakRss])),
        alive_processes: knows.some(&[Forks], alive_at_end(recording)),
    }
}

/// Processes that had not ended when the recording did, as far as is known: not those that were let go before.
fn alive_at_end(recording: &Recording) -> u64 {
    let let_go = &recording.blind().let_go;
    let processes = recording.processes().iter().enumerate();
    processes.filter(|(at, process)| process.ended_ns().is_none() && !let_go.contains(at)).count()
        as u64
}

/// The maximum number of overlapping intervals. Intervals that only touch do not overlap.
///
/// Time is divided into many short intervals. How many overlap at the beginning of each follows from the numbers of
/// starts and ends before it; only where the starts within it could exceed the maximum of these do starts and ends
/// have to be sorted.
fn peak<T>(all: &[T], life: impl Fn(&T) -> (u64, Option<u64>)) -> u64 {
    let lives =
        || all.iter().map(&life).filter(|(born, ended)| ended.is_none_or(|end| end > *born));
    let intervals = Intervals::of(lives().map(|(born_ns, _)| born_ns));
    let (mut starts, mut ends) = (counters(intervals.count), counters(intervals.count));
    for (born_ns, ended_ns) in lives() {
        starts[intervals.at(born_ns)] += 1;
        if let Some(ended_ns) = ended_ns {
            ends[intervals.at(ended_ns)] += 1;
        }
    }
    // How many overlap at the beginning of each interval.
    let mut overlap = 0_u64;
    let at_begin: Vec<u64> = starts
        .iter()
        .zip(&ends)
        .map(|(starts, ends)| {
            let at_begin = overlap;
            overlap = (overlap + u64::from(*starts)).saturating_sub(u64::from(*ends));
            at_begin
        })
        .collect();
    let least = at_begin.iter().copied().max().unwrap_or(0);
    let may_exceed = |at: usize| at_begin[at] + u64::from(starts[at]) > least;
    // In order of time; what ends comes before what starts at the same time.
    let mut moments: Vec<(u64, bool)> = Vec::new();
    for (born_ns, ended_ns) in lives() {
        let starts = (born_ns, true);
        let both = ended_ns.map(|ended_ns| (ended_ns, false)).into_iter().chain([starts]);
        moments.extend(both.filter(|(time_ns, _)| may_exceed(intervals.at(*time_ns))));
    }
    moments.sort_unstable();
    let mut most = least;
    for moments in
        moments.chunk_by(|(one, _), (other, _)| intervals.at(*one) == intervals.at(*other))
    {
        let mut overlap = at_begin[intervals.at(moments[0].0)];
        for (_, starts) in moments {
            overlap = if *starts { overlap + 1 } else { overlap.saturating_sub(1) };
            most = most.max(overlap);
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use proctrace_trace::MachineUse;
    use proptest::prelude::*;

    use super::*;
    use proctrace_scenes::{MS, S, Scene};

    #[test]
    fn others_are_what_is_left_of_the_machine_if_all_is_known() {
        let of = |busy_ns: u64, all_ns: u64, change: fn(&mut Recording)| {
            let mut scene = Scene::new(2, 100 * MS);
            scene.fork(0, 1, 2).exit(S, 2, (400 * MS, 0)).exit(S, 1, (100 * MS, 0));
            let mut recording = scene.load(Some((S, 0, 0)));
            recording.trailer_mut().unwrap().machine =
                Some(MachineUse { busy_ns, all_ns, cpus: 2 });
            change(&mut recording);
            recording.others_percent()
        };
        assert_eq!(of(S, 2 * S, |_| ()), Some(25.0));
        assert_eq!(of(400 * MS, 2 * S, |_| ()), Some(0.0));
        // Too few ticks; not all of its own use is known; it is the whole machine.
        assert_eq!(of(S, 2 * S - 1, |_| ()), None);
        assert_eq!(of(S, 2 * S, |it| _ = it.blind_mut().let_go.insert(1)), None);
        assert_eq!(of(S, 2 * S, |it| it.header_mut().scope = "system".into()), None);
        assert_eq!(of(S, 2 * S, |it| it.trailer_mut().unwrap().machine = None), None);
    }

    #[test]
    fn the_peak_counts_what_overlaps() {
        let of = |lives: &[(u64, Option<u64>)]| peak(lives, |life| *life);
        assert_eq!(of(&[(0, Some(10)), (2, Some(4)), (4, Some(6)), (5, None), (20, Some(30))]), 3);
        // In a different order, and with a lifetime of zero.
        let lives =
            [(20, Some(30)), (5, None), (4, Some(6)), (2, Some(4)), (0, Some(10)), (4, Some(4))];
        assert_eq!(of(&lives), 3);
        assert_eq!(of(&[(5, Some(5)), (5, Some(5))]), 0);
        assert_eq!(of(&[(0, Some(1)), (1, Some(2)), (2, Some(3))]), 1);
        assert_eq!(of(&[]), 0);
        // Births of two CPUs, one after the other.
        let lives: Vec<_> =
            (0..2).flat_map(|cpu| (0..9000).map(move |n| (2 * n + cpu, 3))).collect();
        let lives: Vec<_> = lives.iter().map(|(born, life)| (*born, Some(born + life))).collect();
        assert_eq!(of(&lives), 3);
    }

    /// An interval overlaps with most others at its beginning or at the beginning of one of them.
    fn most(lives: &[(u64, Option<u64>)]) -> u64 {
        let lasts = |at: u64| {
            move |(born, ended): &&(u64, Option<u64>)| {
                *born <= at && ended.is_none_or(|ended| ended > at)
            }
        };
        let overlap = |at: u64| lives.iter().filter(lasts(at)).count() as u64;
        lives.iter().map(|(born, _)| overlap(*born)).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn the_peak_is_the_most_that_are_alive_at_a_birth(
            lives in proptest::collection::vec((0..400_u64, proptest::option::of(0..90_u64)), 0..300)
        ) {
            let lives: Vec<_> = lives
                .into_iter()
                .map(|(born, life)| (born, life.map(|life| born + life)))
                .collect();
            prop_assert_eq!(peak(&lives, |life| *life), most(&lives));
        }
    }
}
