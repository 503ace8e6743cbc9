//! Samples, and each task's usage between them: the quantities over time.

use std::fs::File;
use std::io::BufReader;

use proctrace_classify::fast::{Bits, FastMap};
use proctrace_lineage::Register;
use proctrace_replay::{CpuTime, records};
use proctrace_trace::Reader;
use proctrace_wire::layout::Sample;
use proctrace_wire::{Record, Stream};

use super::Loader;
use crate::Recording;
use crate::bin_series::BinSeries;
use crate::bins::{Bins, Point};
use crate::membership::Membership;
use crate::process::MemoryReading;
use crate::split::{Growth, Pools, Split, Stretches, Ticks, divide};
use crate::task::Task;
use crate::tracks::Tracks;
use crate::watch::Watch;
use proctrace_replay::Usage;

impl Loader<'_> {
    /// Determines which processes samplers of the command's tree could see, and until when.
    pub(super) fn prepare_watch(&mut self, reader: &Reader<BufReader<File>>) {
        let launched = !reader.header().command.is_empty();
        let membership = Membership::of(&self.made, launched);
        let payload = reader.trailer().and_then(|trailer| trailer.payload.as_ref());
        let until_ns = payload
            .map(|payload| payload.exited_ns)
            .or_else(|| self.made.processes.first().filter(|_| launched)?.ended_ns())
            .unwrap_or(self.made.last_ns);
        self.made.watch = Watch::new(membership, &self.made.bins, self.made.last_ns, until_ns);
    }

    /// Creates bins for everything that the other streams contain; task lifetimes are known by now.
    pub(super) fn prepare_bins(&mut self) {
        for program in self.programs.iter() {
            let number = self.categories.number_of(program.category());
            self.made.category_of.push(number as usize);
        }
        let mut bins = Bins::new(
            self.made.first_ns,
            self.made.last_ns,
            self.interval_ns,
            self.categories.count(),
        );
        let mut forks = bins.events(BinSeries::Forks);
        let forked = self.made.tasks.iter().filter(|task| task.forked);
        forked.for_each(|task| forks.add(task.born_ns));
        let mut execs = bins.events(BinSeries::Execs);
        let here = self.made.runs.iter().filter(|run| run.happened_here);
        here.for_each(|run| execs.add(run.time_ns));
        let mut exits = bins.events(BinSeries::Exits);
        self.made.tasks.iter().filter_map(Task::ended_ns).for_each(|ended_ns| exits.add(ended_ns));
        for process in self.made.processes.iter().filter(|process| !process.was_there()) {
            bins.add_process(self.made.category_of[process.program()], process.born_ns);
        }
        for task in &self.made.tasks {
            bins.add_life(task.born_ns, task.ended_ns().unwrap_or(self.made.last_ns));
        }
        self.tracks =
            Tracks::choose(&self.made.processes, &self.made.tasks, &bins, self.made.last_ns);
        self.made.bins = bins;
    }

    /// Reads the samples and computes each task's usage between them. It is split into user and
    /// system time once the deciding ticks are known: within the task's own stretches while
    /// reading, for everything else after all ticks have been pooled.
    pub(super) fn read_samples(&mut self, reader: &mut Reader<BufReader<File>>) {
        reader.rewind();
        let tick_ns = reader.header().tick_ns;
        // If the tick length was not recorded, it is estimated from exit records.
        let is_told = tick_ns.is_some_and(|tick_ns| tick_ns > 0);
        let ends = self.made.tasks.iter().take_while(|_| !is_told).filter_map(Task::end);
        let charged = ends.map(|end| end.record.used.ticks());
        self.stretches = Stretches::new(Split::new(tick_ns, charged).tick_ns);
        // Counters of tasks that were sampled or attached; these are few, since most tasks end
        // before the next sample.
        let mut points = std::mem::take(&mut self.attach_points);
        let mut sampled = Bits::default();
        points.keys().for_each(|task| sampled.insert(*task));
        let own_since = match reader.header().memory_interval_ns {
            Some(_) => self.first_execs_of_sharers(),
            None => FastMap::default(),
        };
        let decoded = records(reader, Stream::Samples, |record| match record {
            Record::Sample(sample) => {
                if let Some(task) = self.task_of_serial.get(sample.head.task) {
                    let born = Point::born(self.made.tasks[task].born_ns);
                    let point = points.entry(task).or_insert(born);
                    sampled.insert(task);
                    *point = self.grow(
                        task,
                        point,
                        Point::new(sample.head.time_ns, Usage::from(&sample)),
                        true,
                    );
                    if self.made.tasks[task].ended_ns().is_none() {
                        self.note_rss(task, &sample);
                        self.made.tasks[task].is_seen(sample);
                    }
                }
            }
            Record::Memory(memory) => {
                if let Some(process) = self.process(memory.process)
                    && !self.has_its_forkers(process, memory.head.time_ns, &own_since)
                {
                    self.made.memory_readings.push(MemoryReading { process, record: memory });
                }
            }
            Record::Tick(tick) => {
                self.made.bins.add_tick(&tick);
                let running = u64::from(tick.running);
                self.made.peak_running =
                    Some(self.made.peak_running.map_or(running, |peak| peak.max(running)));
                self.made.ticks.push(tick);
            }
            _ => {}
        });
        self.made.undecodable += decoded.undecodable;
        for task in 0..self.made.tasks.len() {
            let Some(end) = self.made.tasks[task].end() else { continue };
            let known = if sampled.contains(task) { points.get(&task).copied() } else { None };
            let point = known.unwrap_or(Point::born(self.made.tasks[task].born_ns));
            self.grow(task, &point, Point::new(end.time_ns, end.record.used), known.is_some());
        }
        drop(points);
        self.made.bins.finish_ticks();
        self.divide_rest(tick_ns, &sampled);
    }

    /// The time of the first exec of each process that shares the memory of its forker until then.
    fn first_execs_of_sharers(&self) -> FastMap<u32, u64> {
        let mut first: FastMap<u32, u64> = FastMap::default();
        for run in self.made.runs.iter().filter(|run| run.happened_here) {
            if self.made.sharers.contains(run.process as usize) {
                let time_ns = first.entry(run.process).or_insert(run.time_ns);
                *time_ns = run.time_ns.min(*time_ns);
            }
        }
        first
    }

    /// True if the memory of a process is that of its forker at a time (vfork(2), posix_spawn(3)), which counts it: the
    /// kernel tells the whole of it, also as PSS, for both.
    fn has_its_forkers(&self, process: usize, time_ns: u64, own_since: &FastMap<u32, u64>) -> bool {
        if !self.made.sharers.contains(process) {
            return false;
        }
        let number = u32::try_from(process).unwrap_or(u32::MAX);
        let parent = self.made.processes[process].parent();
        let lives = |parent: usize| {
            self.made.processes[parent].ended_ns().is_none_or(|ended_ns| ended_ns > time_ns)
        };
        own_since.get(&number).is_none_or(|since_ns| time_ns < *since_ns)
            && parent.is_some_and(lives)
    }

    /// The largest reading of the program that it runs now stands for the peak of a process whose end is not recorded.
    fn note_rss(&mut self, task: usize, sample: &Sample) {
        let Recording { tasks, processes, runs, .. } = &mut self.made;
        let at = tasks[task].process();
        let process = &mut processes[at];
        let run = process.run().and_then(|run| runs.get(run as usize));
        let since_ns = run.filter(|run| run.process as usize == at).map_or(0, |run| run.time_ns);
        if process.status().is_none() && sample.head.time_ns >= since_ns {
            process.set_maxrss_pages(sample.rss_pages.max(process.maxrss_pages()));
        }
    }

    /// Accounts a task's usage between two points. An increase that is not `remembered` is split
    /// later, over the time from birth to end, unless it has enough ticks by itself.
    fn grow(&mut self, task: usize, from: &Point, to: Point, remembered: bool) -> Point {
        let Self { made, tracks, stretches, .. } = self;
        let Recording { bins, tasks, processes, category_of, watch, .. } = made;
        let process = tasks[task].process();
        let to = bins.add_growth(from, to, |bin, cpu_ns| tracks.add(process, bin, cpu_ns));
        watch.add(
            bins,
            (process, &processes[process]),
            (from.time_ns, to.time_ns),
            to.told_since(from),
        );
        let growth = to.growth_since(from);
        if remembered || stretches.suffices(&growth) {
            let category = category_of[processes[process].program()];
            stretches.push(task, growth, |growth, share| bins.add_divided(growth, share, category));
        }
        to
    }

    /// Pools the ticks that no stretch has used, and splits the remaining CPU time by them.
    fn divide_rest(&mut self, tick_ns: Option<u64>, sampled: &Bits) {
        let mut left = vec![Ticks::default(); self.programs.iter().count()];
        let charged = self.made.tasks.iter().enumerate().map(|(at, task)| {
            let (_, ticks) = task.cpu_used();
            let program = self.made.processes[task.process()].program();
            if ticks != Ticks::default()
                && let Some(left) = left.get_mut(program)
            {
                *left = left.plus(ticks.minus(self.stretches.own(at).ticks));
            }
            ticks
        });
        self.made.split = Split::new(tick_ns, charged);
        let Split { tick_ns, ticks } = self.made.split;
        self.pools = Pools::new(tick_ns, ticks, &left, &self.made.category_of);
        let mut parts = CpuTime::default();
        for (at, task) in self.made.tasks.iter().enumerate() {
            let program = self.made.processes[task.process()].program();
            let (share, category) = (self.pools.share(program), self.made.category_of[program]);
            let own = self.stretches.own(at);
            let (run_ns, ticks) = task.cpu_used();
            parts += divide(run_ns, &own, share);
            if sampled.contains(at) {
                for growth in self.stretches.take_pending(at) {
                    self.made.bins.add_divided(&growth, share, category);
                }
            } else if let Some(to_ns) = task.ended_ns()
                && own.run_ns == 0
            {
                // It was followed from birth to end.
                let growth = Growth { from_ns: task.born_ns, to_ns, run_ns, ticks };
                self.made.bins.add_divided(&growth, share, category);
            }
        }
        self.balance = self.made.split.balance(parts);
        self.made.bins.balance(self.balance);
    }
}
