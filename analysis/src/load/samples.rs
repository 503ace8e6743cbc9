//! Samples, and what each task used between them: the figures of every moment.

use std::fs::File;
use std::io::BufReader;

use proctrace_replay::records;
use proctrace_trace::Reader;
use proctrace_wire::{Record, Stream};

use super::Loader;
use crate::bins::{Bins, Point, Quantity};
use crate::membership::Membership;
use crate::process::Look;
use crate::tracks::Tracks;
use crate::watch::Watch;

impl Loader<'_> {
    /// Whom samplers of the command's tree could see, and until when.
    pub(super) fn prepare_watch(&mut self, reader: &Reader<BufReader<File>>) {
        let launched = !reader.header().command.is_empty();
        let membership = Membership::of(&self.processes, &self.tasks, &self.runs, launched);
        let payload = reader.trailer().and_then(|trailer| trailer.payload.as_ref());
        let until_ns = payload
            .map(|payload| payload.exited_ns)
            .or_else(|| self.processes.first().filter(|_| launched)?.ended_ns)
            .unwrap_or(self.last_ns);
        self.watch =
            Watch::new(self.processes.len(), &membership, &self.bins, self.last_ns, until_ns);
    }

    /// Bins for everything that the other streams tell; the lives of tasks are known by now.
    pub(super) fn prepare_bins(&mut self) {
        for program in self.programs.iter() {
            let number = self.categories.number_of(program.category());
            self.category_of.push(number as usize);
        }
        let mut bins =
            Bins::new(self.first_ns, self.last_ns, self.interval_ns, self.categories.len());
        for time_ns in std::mem::take(&mut self.fork_times) {
            bins.add_event(Quantity::Forks, time_ns);
        }
        for run in &self.runs {
            bins.add_event(Quantity::Execs, run.time_ns);
        }
        for process in &self.processes {
            bins.add_process(self.category_of[process.program], process.born_ns);
        }
        for task in &self.tasks {
            if let Some(end) = &task.end {
                bins.add_event(Quantity::Exits, end.time_ns);
            }
            let end_ns = task.end.as_ref().map_or(self.last_ns, |end| end.time_ns);
            bins.add_life(task.born_ns, end_ns);
        }
        self.tracks = Tracks::choose(&self.processes, &self.tasks, &bins, self.last_ns);
        self.bins = bins;
    }

    pub(super) fn read_samples(&mut self, reader: &mut Reader<BufReader<File>>) {
        reader.rewind();
        // Where a task stands that was sampled or attached; few are, for most are gone before the
        // next sample.
        let mut points = std::mem::take(&mut self.attach_points);
        let Self {
            bins,
            tracks,
            tasks,
            processes,
            category_of,
            task_of_serial,
            process_of_serial,
            looks,
            ticks,
            peak_running,
            watch,
            ..
        } = self;
        let mut grow = |bins: &mut Bins, process: usize, from: &Point, to: Point| {
            let category = category_of[processes[process].program];
            let to =
                bins.add_growth(from, to, category, |bin, cpu_ns| tracks.add(process, bin, cpu_ns));
            watch.add(
                bins,
                (process, &processes[process]),
                (from.time_ns, to.time_ns),
                to.cpu_since(from),
            );
            to
        };
        let decoded = records(reader, Stream::Samples, |record| match record {
            Record::Sample(sample) => {
                if let Some(task) = task_of_serial.get(sample.head.task) {
                    let born = Point::born(tasks[task].born_ns);
                    let point = points.entry(task).or_insert(born);
                    *point = grow(bins, tasks[task].process, point, Point::of_sample(&sample));
                    if tasks[task].end.is_none() {
                        tasks[task].seen = Some(Box::new(sample));
                    }
                }
            }
            Record::Memory(memory) => {
                if let Some(process) = process_of_serial.get(memory.process) {
                    looks.push(Look { process, record: memory });
                }
            }
            Record::Tick(tick) => {
                bins.add_tick(&tick);
                let running = u64::from(tick.running);
                *peak_running = Some(peak_running.map_or(running, |peak| peak.max(running)));
                ticks.push(tick);
            }
            _ => {}
        });
        self.undecodable += decoded.undecodable;
        for (at, task) in tasks.iter().enumerate() {
            if let Some(end) = &task.end {
                let point = points.get(&at).copied().unwrap_or(Point::born(task.born_ns));
                grow(bins, task.process, &point, Point::of_end(end));
            }
        }
        bins.finish_ticks();
    }
}
