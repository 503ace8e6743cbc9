//! Reading a trace into tables: lifecycle first, then look-ups, then samples.

pub mod file_numbers;
pub mod left_behind;
pub mod lifecycle;
pub mod lookups;
pub mod moved_directories;
mod moves;
pub mod opens;
pub mod phases;
pub mod processes;
pub mod samples;
mod sizes;
pub mod starts;
pub mod template;
pub mod unseen;
pub mod waits;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use proctrace_classify::fast::FastMap;
use proctrace_classify::names::Names;
use proctrace_classify::{Classification, Examiner, Programs, Rules};
use proctrace_findings::counted;
use proctrace_lineage::Serials;
use proctrace_trace::{Damage, Header, Meter, Reader};
use proctrace_wire::Quantity;

use crate::Recording;
use crate::at_once::both;
use crate::bins::Point;
use crate::error::AnalysisError;
use crate::knowledge::Knows;
use crate::load::template::Templates;
use crate::split::{Balance, ENOUGH_TICKS, Pools, Stretches};
use crate::steps::Stepping;
use crate::tracks::Tracks;

impl Recording {
    /// Reads the trace at `path`.
    ///
    /// # Errors
    /// If it is not a trace, or not one that this version can read. Damaged or missing parts are
    /// not errors; [`Recording::damage`] and the conservation laws report them.
    pub fn load(path: impl AsRef<Path>, rules: &Rules) -> Result<Self, AnalysisError> {
        Self::load_metered(path, rules, &Meter::default())
    }

    /// The same, while another thread may see how far it is.
    ///
    /// # Errors
    /// Those of [`Recording::load`].
    pub fn load_metered(
        path: impl AsRef<Path>,
        rules: &Rules,
        meter: &Meter,
    ) -> Result<Self, AnalysisError> {
        Self::load_parts(path.as_ref(), rules, (true, meter))
    }

    /// The same without failed look-ups and opens, of which a recording may have a thousand for each process:
    /// for questions about who lived when. They count as not known.
    ///
    /// # Errors
    /// Those of [`Recording::load`].
    pub fn load_lives(
        path: impl AsRef<Path>,
        rules: &Rules,
        meter: &Meter,
    ) -> Result<Self, AnalysisError> {
        Self::load_parts(path.as_ref(), rules, (false, meter))
    }

    fn load_parts(
        path: &Path,
        rules: &Rules,
        (with_lookups, meter): (bool, &Meter),
    ) -> Result<Self, AnalysisError> {
        let mut reader = Reader::open(path)?.metered(meter);
        let mut loader = Loader::new(&reader, rules);
        loader.reads_lookups = with_lookups;
        // Births and execs come first, because all other records refer to their tasks. Samples come
        // last: they are attributed to categories, which need all execs, and stop at the ends of
        // processes. Look-ups and waits need nothing but the tasks.
        loader.read_lifecycle(&mut reader);
        loader.note_damage(&reader);
        loader.find_end(&mut reader);
        let (classification, roles) = loader.with_lookups(&mut reader, |loader, reader| {
            let classified = loader.classify();
            loader.end_processes();
            loader.find_reapers();
            loader.prepare_bins();
            loader.prepare_watch(reader);
            loader.read_samples(reader);
            // Look-ups take longer than all this.
            loader.read_waits(reader);
            classified
        });
        if with_lookups {
            loader.read_opens(&mut reader);
        }
        loader.note_damage(&reader);
        loader.sum_up_processes();
        loader.read_left_behind(&mut reader);
        loader.read_phases(&mut reader);
        Ok(loader.finish(&reader, classification, roles))
    }
}

/// A recording under construction, and what only its construction needs.
struct Loader<'a> {
    made: Recording,
    rules: &'a Rules,
    examiner: Examiner<'a>,
    /// These number what `made` holds as lists at the end.
    programs: Programs,
    templates: Templates,
    categories: Names,
    damage: BTreeSet<Damage>,
    /// The latest process with a pid.
    process_of_pid: Serials,
    task_of_serial: Serials,
    /// Processes that another process than their parent could wait for, with its pid.
    adopted: Vec<(usize, i32)>,
    tracks: Tracks,
    stretches: Stretches,
    pools: Pools,
    balance: Balance,
    /// Counters of attached tasks at the time of attaching.
    attach_points: FastMap<usize, Point>,
    interval_ns: u64,
    reads_lookups: bool,
    stepping: Stepping<&'a Rules>,
}

impl<'a> Loader<'a> {
    fn new(reader: &Reader<BufReader<File>>, rules: &'a Rules) -> Self {
        let header = reader.header();
        Self {
            made: Recording::empty(header.clone()),
            rules,
            examiner: Examiner::new(rules),
            programs: Programs::default(),
            templates: Templates::default(),
            categories: Names::default(),
            damage: BTreeSet::new(),
            process_of_pid: Serials::default(),
            adopted: Vec::new(),
            task_of_serial: Serials::default(),
            tracks: Tracks::default(),
            stretches: Stretches::default(),
            pools: Pools::default(),
            balance: Balance::default(),
            attach_points: FastMap::default(),
            interval_ns: header.interval_ns,
            reads_lookups: true,
            stepping: Stepping::new(rules),
        }
    }

    /// Knowledge that the header declares, corrected by what reading showed.
    fn knows(&self, header: &Header) -> Knows {
        let mut knows = Knows::of(header);
        if !self.reads_lookups {
            let opens = [Quantity::LookupTimes, Quantity::OpenedFiles, Quantity::FileSizes];
            for quantity in Quantity::LOOKUPS.into_iter().chain(opens) {
                knows.lacks(quantity, "not read from the trace".to_owned());
            }
        }
        if !self.made.split.is_known() {
            let ticks = self.made.split.count(self.made.split.ticks).round();
            knows.lacks(
                Quantity::Split,
                format!(
                    "only {} in the recording; at least {ENOUGH_TICKS} are needed to split CPU \
                     time",
                    counted(ticks as u64, "scheduler tick", "scheduler ticks")
                ),
            );
        }
        let bounds = self.made.counts.rss_bounds;
        if bounds > 0 {
            knows.estimates(
                Quantity::PeakRss,
                format!(
                    "for {} an upper bound: the peak before the last exec",
                    counted(bounds, "task", "tasks")
                ),
            );
        }
        if self.made.processes.iter().any(|process| process.status().is_none()) {
            knows.bounds(Quantity::PeakRss, "of processes that have not ended the largest reading");
        }
        if !self.made.blind.withheld.is_empty() {
            let why = "not recorded for set-user-ID programs and similar";
            for quantity in
                [Quantity::Argv, Quantity::Environment, Quantity::Io, Quantity::FileSizes]
            {
                knows.bounds(quantity, why);
            }
            Quantity::LOOKUPS.into_iter().for_each(|quantity| knows.bounds(quantity, why));
            knows.bounds(Quantity::LookupsExec, why);
        }
        if !(self.made.blind.compat.is_empty() && self.made.blind.io_uring.is_empty()) {
            let why = "calls by 32-bit programs and through io_uring are not recorded";
            Quantity::LOOKUPS.into_iter().for_each(|quantity| knows.bounds(quantity, why));
            knows.bounds(Quantity::FileSizes, why);
        }
        if !self.made.blind.let_go.is_empty() {
            use Quantity::{
                Cpu, Execs, Faults, FileSizes, Forks, Io, LookupsExec, OpenedFiles, PeakRss,
                RunDelay,
            };
            let why = "not recorded of what a debugger of the command took over";
            let others = [
                Forks,
                Execs,
                Cpu,
                RunDelay,
                Faults,
                PeakRss,
                Io,
                LookupsExec,
                OpenedFiles,
                FileSizes,
            ];
            Quantity::LOOKUPS
                .into_iter()
                .chain(others)
                .for_each(|quantity| knows.bounds(quantity, why));
        }
        knows
    }

    /// Counts look-ups concurrently with other work that does not depend on them.
    fn with_lookups<T>(
        &mut self,
        reader: &mut Reader<BufReader<File>>,
        meanwhile: impl FnOnce(&mut Self, &mut Reader<BufReader<File>>) -> T,
    ) -> T {
        if !self.reads_lookups {
            return meanwhile(self, reader);
        }
        let who = self.who();
        let Some(mut other) = reader.again() else {
            let found = who.read_lookups(reader);
            self.note_damage(reader);
            let done = meanwhile(self, reader);
            self.take_lookups(found);
            return done;
        };
        let (found, done) = both(|| who.read_lookups(&mut other), || meanwhile(self, reader));
        self.note_damage(&other);
        self.take_lookups(found);
        done
    }

    /// Each pass unpacks the blocks of one stream and finds the damage in them; damage between
    /// blocks is found by every pass.
    fn note_damage(&mut self, reader: &Reader<BufReader<File>>) {
        self.damage.extend(reader.damage().iter().cloned());
    }

    /// Finds the end of a recording without a trailer: the last block of any stream shows how far it got, as a task
    /// that is alive but idle occurs only in samples.
    fn find_end(&mut self, reader: &mut Reader<BufReader<File>>) {
        if reader.trailer().is_some()
            || self.made.tasks.iter().all(|task| task.ended_ns().is_some())
        {
            return;
        }
        reader.rewind();
        let last_ns = std::cell::Cell::new(self.made.last_ns);
        while reader
            .next_block_where(|info| {
                last_ns.set(last_ns.get().max(info.last_ns));
                false
            })
            .is_some()
        {}
        self.made.last_ns = last_ns.get();
    }

    fn finish(
        self,
        reader: &Reader<BufReader<File>>,
        classification: Classification,
        roles: Names,
    ) -> Recording {
        let knows = self.knows(reader.header());
        let (templates, lines) = self.templates.into_inner();
        Recording {
            steps: self.stepping.steps(),
            trailer: reader.trailer().cloned(),
            knows,
            damage: self.damage.into_iter().collect(),
            programs: self.programs.into_inner(),
            classification,
            templates,
            lines,
            roles: roles.into_inner(),
            categories: self.categories.into_inner(),
            tracks: self.tracks.into_inner(),
            ..self.made
        }
    }
}
