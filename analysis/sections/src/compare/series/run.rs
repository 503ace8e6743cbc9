//! One recording of a series, reduced to the values that are compared.

use proctrace_overview::options::Options;
use proctrace_overview::passes::passes;
use proctrace_recording::Recording;
use proctrace_wire::Quantity;

use crate::sections::pool::pools;

/// Minimum share of the CPU time of the busiest thread with which a thread counts.
pub(super) const BUSY_PERCENT: u64 = 10;

/// One recording of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesRun {
    /// Its name.
    pub name: String,
    /// The variant that it belongs to; empty if there is only one.
    pub group: String,
    /// Workers or threads: the cores it needs.
    pub workers: u64,
    /// Time from the command's start to its exit.
    pub wall_ns: u64,
    /// CPU time of every task.
    pub cpu_ns: Option<u64>,
    /// Events it processed.
    pub events: Option<u64>,
    /// Peak memory: the largest PSS of all processes in one pass; without memory readings the peak
    /// RSS of a single process, if there is no pool.
    pub peak_bytes: Option<u64>,
    /// PSS of all processes, averaged over all passes.
    pub mean_bytes: Option<u64>,
    /// Bytes written by system calls.
    pub written_bytes: Option<u64>,
}

impl SeriesRun {
    /// The values of a recording. Workers are those of a pool, if they used most of the CPU time;
    /// otherwise they are threads.
    pub fn of(recording: &Recording, options: &Options, name: &str) -> Self {
        let cpu_ns = recording
            .processes()
            .iter()
            .map(|process| process.cpu.total_ns())
            .fold(0, u64::saturating_add);
        let pool = workers_of_pool(recording, options, cpu_ns);
        let told: Vec<u64> =
            options.event_logs.iter().filter_map(|log| log.events.events).collect();
        let passes = passes(recording, |_| true);
        let pss = || passes.iter().map(|pass| pass.pss_bytes);
        let knows = recording.knows();
        let rss = || recording.processes().iter().filter_map(|p| recording.known_peak_rss_bytes(p));
        let largest = || knows.some(&[Quantity::PeakRss], rss().max()).flatten();
        let n = passes.len() as u64;
        Self {
            name: name.to_owned(),
            group: String::new(),
            workers: pool.unwrap_or_else(|| busy_threads(recording)),
            wall_ns: recording.wall_ns(),
            cpu_ns: knows.some(&[Quantity::Cpu], cpu_ns),
            events: (!told.is_empty()).then(|| told.iter().copied().fold(0, u64::saturating_add)),
            peak_bytes: pss().max().or_else(|| if pool.is_none() { largest() } else { None }),
            mean_bytes: (n > 0).then(|| pss().map(|bytes| bytes / n).fold(0, u64::saturating_add)),
            written_bytes: knows.some(&[Quantity::Io], recording.totals().used.wchar),
        }
    }

    /// Events per second of wall time.
    pub(super) fn rate(&self) -> Option<f64> {
        let events = self.events? as f64;
        (self.wall_ns > 0).then(|| events / (self.wall_ns as f64 / 1e9))
    }

    /// Events per second of wall time and worker.
    pub(super) fn rate_per_worker(&self) -> Option<f64> {
        self.per_worker(self.rate())
    }

    pub(super) fn per_worker(&self, value: Option<f64>) -> Option<f64> {
        (self.workers > 0).then_some(value? / self.workers as f64)
    }

    /// Memory per worker: the mean, or the peak where the mean is not known.
    pub(super) fn memory_per_worker(&self) -> Option<f64> {
        self.per_worker(self.mean_bytes.or(self.peak_bytes).map(|bytes| bytes as f64))
    }

    /// Cores times wall time, in nanoseconds.
    pub(super) fn core_time_ns(&self) -> f64 {
        self.workers as f64 * self.wall_ns as f64
    }

    pub(super) fn per_event(&self, value: f64) -> Option<f64> {
        self.events.filter(|events| *events > 0).map(|events| value / events as f64)
    }
}

fn workers_of_pool(recording: &Recording, options: &Options, all_ns: u64) -> Option<u64> {
    let pools = pools(recording, options, 2);
    let pool = pools.first()?;
    let theirs_ns = pool.cpu_ns(recording);
    (options.pool.is_some() || theirs_ns >= all_ns / 2).then_some(pool.workers.len() as u64)
}

/// Busy threads of the process that used most CPU time. Its first thread may be one that works
/// (OpenMP), or one that only initialises and then waits for the others: it counts if that many
/// tasks were seen running at once.
fn busy_threads(recording: &Recording) -> u64 {
    let Some(process) = recording.processes().iter().max_by_key(|process| process.cpu.total_ns())
    else {
        return 1;
    };
    let tasks = || process.tasks().map(|task| &recording.tasks()[task]);
    let most_ns = |threads: bool| {
        let used = tasks().filter(|task| task.is_thread == threads).map(|task| task.used().run_ns);
        used.max().unwrap_or(0)
    };
    let least_ns = most_ns(true) / 100 * BUSY_PERCENT;
    let threads =
        tasks().filter(|task| task.is_thread && task.used().run_ns > least_ns).count() as u64;
    let first_is_one = most_ns(false) > least_ns && running_often(recording) > threads;
    (threads + u64::from(first_is_one)).max(1)
}

/// The number of tasks running or runnable that a tenth of the samples reach or exceed.
fn running_often(recording: &Recording) -> u64 {
    let mut running: Vec<u32> =
        recording.ticks().unwrap_or_default().iter().map(|tick| tick.running).collect();
    running.sort_unstable();
    running.get(running.len() * 9 / 10).map_or(0, |running| u64::from(*running))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::pool::testing::{MS, PAGE_BYTES, Tape, Used};
    use proctrace_overview::events::{EventLog, Events};
    use zerocopy::FromZeros;

    #[test]
    fn threads_that_work_are_counted() {
        let mut tape = Tape::new("cmsRun");
        for thread in 2..=5 {
            tape.thread(100, 1, thread).thread_exit(900, thread, Used::ms(700));
        }
        tape.thread(100, 1, 6).thread_exit(900, 6, Used::ms(3));
        let used = Used { user_ms: 20, peak_pages: 100, written_bytes: 4000, ..Used::default() };
        let recording = tape.exit(1000, 1, used).recording();
        let run = SeriesRun::of(&recording, &Options::default(), "x");
        assert_eq!((run.workers, run.wall_ns, run.cpu_ns), (4, 1000 * MS, Some(2823 * MS)));
        assert_eq!((run.peak_bytes, run.mean_bytes), (Some(100 * PAGE_BYTES), None));
        assert_eq!((run.events, run.written_bytes), (None, Some(4000)));
    }

    #[test]
    fn the_first_thread_counts_if_it_works_beside_the_others() {
        let mut tape = Tape::new("cmsRun");
        for thread in 2..=4 {
            tape.thread(500, 1, thread).thread_exit(900, thread, Used::ms(350));
        }
        let mut recording = tape.exit(1000, 1, Used::ms(400)).recording();
        let mut with_running = |running: u32| {
            let mut tick = proctrace_wire::layout::Tick::new_zeroed();
            tick.running = running;
            recording.replace_ticks(vec![tick; 20]);
            SeriesRun::of(&recording, &Options::default(), "x").workers
        };
        assert_eq!((with_running(3), with_running(4)), (3, 4));
    }

    #[test]
    fn workers_of_a_pool_are_counted_and_their_events_add_up() {
        let mut tape = Tape::new("athena");
        tape.memory_every(100);
        for child in 2..=4 {
            tape.fork(100, 1, child).exit(900, child, Used::ms(500));
        }
        for (at_ms, pss) in [(200, 20), (400, 30)] {
            for child in 2..=4 {
                tape.memory(at_ms, child, (30, pss, 10));
            }
        }
        let recording = tape.exit(1000, 1, Used::ms(100)).recording();
        let log = |events| EventLog {
            path: "a".into(),
            events: Events { events: Some(events), loop_ns: None, lines: 1 },
        };
        let options = Options { event_logs: vec![log(5), log(7)], ..Options::default() };
        let run = SeriesRun::of(&recording, &options, "x");
        assert_eq!((run.workers, run.events), (3, Some(12)));
        assert_eq!((run.peak_bytes, run.mean_bytes), (Some(90), Some(75)));
        assert_eq!(run.rate_per_worker(), Some(4.0));
        assert_eq!(run.core_time_ns(), 3e9);
    }
}
