//! Contributions of a program, of a directory, or of a group of steps, to the figures that increased.

use std::collections::BTreeMap;

use crate::growth::{Changes, Grown, grown};
use crate::side::Key;
use crate::verdict::CauseKind;

/// Program, directory or group of steps that does something else than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who<'a> {
    /// A program, which starts others or does more itself.
    Program(&'a str),
    /// A directory that is searched more often, by whichever programs.
    Directory(&'a str),
    /// A group of steps, of which there are more or which take more, by no program that is known.
    Step(&'a str),
}

/// Parts of increased figures that have the same source.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Amounts {
    pub(crate) processes: f64,
    pub(crate) execs: f64,
    pub(crate) threads: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) lookups: f64,
    pub(crate) detached: f64,
    pub(crate) failed: f64,
}

/// One source.
#[derive(Debug, Clone)]
pub(crate) struct Source<'a> {
    pub(crate) who: Who<'a>,
    /// A metric of the program, for its labels; None of a program that only started others.
    pub(crate) key: Option<Key<'a>>,
    /// The programs that ran more often because of it, the largest increase first.
    pub(crate) started: Vec<Grown<'a>>,
    /// The searched directories: the one of the name, and those below it.
    pub(crate) directories: Vec<Key<'a>>,
    /// Usage of these programs.
    pub(crate) by_start: Amounts,
    /// Usage of the program itself, or what was done in the directory.
    pub(crate) inside: Amounts,
}

/// The families by program that have a part inside of a program.
const INSIDE: [(&str, CauseKind); 5] = [
    ("command_threads", CauseKind::Threads),
    ("command_cpu_seconds", CauseKind::CpuTime),
    ("command_failed_lookups", CauseKind::FailedLookups),
    ("detached_processes", CauseKind::Detached),
    ("failed_processes", CauseKind::Failed),
];

/// The families by group of steps.
const STEPS: [&str; 7] = [
    "step_runs",
    "step_failures",
    "step_wall_seconds",
    "step_longest_wall_seconds",
    "step_cpu_seconds",
    "step_processes",
    "step_peak_pss_bytes",
];

/// All sources, and which part of which figure they explain.
#[derive(Debug)]
pub(crate) struct Sources<'c, 's, 'a> {
    changes: &'c Changes<'s, 'a>,
    all: Vec<Source<'a>>,
    by_who: BTreeMap<Who<'a>, usize>,
    grown: BTreeMap<&'a str, Grown<'a>>,
}

/// A source and what it did more of.
pub(crate) type Explained = (usize, CauseKind);

impl<'c, 's, 'a> Sources<'c, 's, 'a> {
    pub(crate) fn of(changes: &'c Changes<'s, 'a>) -> Self {
        let mut sources =
            Self { changes, all: Vec::new(), by_who: BTreeMap::new(), grown: BTreeMap::new() };
        for program in grown(changes) {
            sources.grown.insert(program.name, program);
            let at = sources.source(Who::Program(program.origin));
            let expected = |family| changes.expected(family, program.key, program.more());
            let parts = Amounts {
                processes: program.processes,
                execs: program.execs,
                threads: expected("command_threads"),
                cpu_seconds: expected("command_cpu_seconds"),
                lookups: expected("command_failed_lookups"),
                detached: sources.in_new("detached_processes", program),
                failed: sources.in_new("failed_processes", program),
            };
            let source = &mut sources.all[at];
            source.by_start.add(&parts);
            source.started.push(program);
        }
        for (family, kind) in INSIDE {
            for key in changes.keys(family) {
                sources.add_inside(key, kind);
            }
        }
        sources.add_directories();
        sources.add_steps();
        sources
    }

    pub(crate) fn all(&self) -> &[Source<'a>] {
        &self.all
    }

    fn source(&mut self, who: Who<'a>) -> usize {
        *self.by_who.entry(who).or_insert_with(|| {
            self.all.push(Source {
                who,
                key: None,
                started: Vec::new(),
                directories: Vec::new(),
                by_start: Amounts::default(),
                inside: Amounts::default(),
            });
            self.all.len() - 1
        })
    }

    /// The part of an increase that the additional processes may have caused, whatever the earlier
    /// ones did.
    fn in_new(&self, family: &str, program: Grown<'a>) -> f64 {
        self.changes.more(family, program.key).min(program.processes)
    }

    /// The part of the increase of a figure by program that additional processes explain, and the
    /// rest.
    fn parts(&self, key: Key<'a>, kind: CauseKind) -> (f64, f64) {
        let family = key.family().name;
        let more = self.changes.more(family, key);
        let program = key.label("command").and_then(|name| self.grown.get(name));
        let by_start = program.map_or(0.0, |program| match kind {
            CauseKind::Detached | CauseKind::Failed => self.in_new(family, *program),
            _ => self.changes.expected(family, key, program.more()),
        });
        (by_start, more - by_start)
    }

    fn add_inside(&mut self, key: Key<'a>, kind: CauseKind) {
        let Some(name) = key.label("command") else { return };
        let (_, rest) = self.parts(key, kind);
        if rest > 0.0 {
            let at = self.source(Who::Program(name));
            let source = &mut self.all[at];
            source.key = Some(key);
            *source.inside.of_mut(kind) += rest;
        }
    }

    /// Directories that are searched more often. Those below another one belong to it, if that was
    /// searched about as often: the loader looks into several below each.
    fn add_directories(&mut self) {
        let mut more: BTreeMap<&'a str, (f64, Vec<Key<'a>>)> = BTreeMap::new();
        for key in self.changes.keys("directory_failed_lookups") {
            let by = self.changes.change(key).map_or(0.0, |change| change.by);
            if let (Some(directory), true) = (key.label("directory"), by > 0.0) {
                let entry = more.entry(directory).or_default();
                entry.0 += by;
                entry.1.push(key);
            }
        }
        for (directory, (by, keys)) in &more {
            let ancestors = directory.match_indices('/').map(|(at, _)| &directory[..at]);
            let top = ancestors
                .filter(|above| !above.is_empty())
                .find_map(|above| {
                    more.get_key_value(above).filter(|(_, (most, _))| 2.0 * most >= *by)
                })
                .map_or(*directory, |(above, _)| *above);
            let at = self.source(Who::Directory(top));
            let source = &mut self.all[at];
            source.inside.lookups += by;
            source.directories.extend(keys);
        }
    }

    fn add_steps(&mut self) {
        for key in STEPS.iter().flat_map(|family| self.changes.keys(family)) {
            let grew = self.changes.change(key).is_some_and(|change| change.by > 0.0);
            if let (Some(group), true) = (key.label("group"), grew) {
                self.source(Who::Step(group));
            }
        }
    }

    /// The source that explains at least half of the increase of a figure.
    pub(crate) fn explain(&self, key: Key<'a>, by: f64) -> Option<Explained> {
        use CauseKind::{CpuTime, Starts, Threads};
        let family = key.family().name;
        match family {
            "execs" | "command_processes" => self.started(key.label("command")?),
            "spawns" => self.started(key.label("child")?),
            "command_threads" => self.of_program(key, Threads),
            "command_cpu_seconds" => self.of_program(key, CpuTime),
            "detached_processes" => self.of_program(key, CauseKind::Detached),
            "failed_processes" => self.of_program(key, CauseKind::Failed),
            "total_failed_lookups" | "failed_lookups" => self.of_lookups(by),
            "command_failed_lookups" | "directory_failed_lookups" => self.of_some_lookups(key, by),
            "total_processes"
            | "total_commands"
            | "total_framework_processes"
            | "processes"
            | "peak_processes" => {
                self.nearest(by, |source| vec![(Starts, source.by_start.processes)])
            }
            "total_execs" => self.nearest(by, |source| vec![(Starts, source.by_start.execs)]),
            "total_threads" | "threads" => {
                let parts = |source: &Source<'_>| source.both(Threads).into();
                self.nearest(by, parts)
            }
            "total_tasks" | "peak_tasks" => self.nearest(by, |source| {
                let [(_, of_started), (_, inside)] = source.both(Threads);
                vec![(Starts, source.by_start.processes + of_started), (Threads, inside)]
            }),
            "total_detached" => self.nearest(by, |source| source.both(CauseKind::Detached).into()),
            "total_failed" => self.nearest(by, |source| source.both(CauseKind::Failed).into()),
            "total_execs_failed"
            | "total_opens"
            | "faults_minor"
            | "switches_voluntary"
            | "switches_involuntary" => self.most_started(),
            name if STEPS.contains(&name) => self.of_step(key, by),
            name if name.ends_with("_seconds") => {
                self.nearest(by, |source| source.both(CpuTime).into())
            }
            _ => None,
        }
    }

    /// Explanation of the additional runs of a program.
    fn started(&self, program: &str) -> Option<Explained> {
        let origin = Who::Program(self.grown.get(program)?.origin);
        Some((*self.by_who.get(&origin)?, CauseKind::Starts))
    }

    /// Explanation of an increased figure of a program: more processes, or what they do.
    fn of_program(&self, key: Key<'a>, kind: CauseKind) -> Option<Explained> {
        let (by_start, rest) = self.parts(key, kind);
        let name = key.label("command")?;
        if by_start > 0.0 && by_start >= rest {
            return self.started(name);
        }
        let at = *self.by_who.get(&Who::Program(name))?;
        (rest > 0.0).then_some((at, kind))
    }

    /// Failed look-ups of all: of additional processes, of a program that searches more, or in a
    /// directory that is searched more.
    fn of_lookups(&self, by: f64) -> Option<Explained> {
        let started = |source: &Source<'_>| vec![(CauseKind::Starts, source.by_start.lookups)];
        let inside = |directories: bool| {
            self.nearest(by, move |source| {
                let is_directory = matches!(source.who, Who::Directory(_));
                let amount = if is_directory == directories { source.inside.lookups } else { 0.0 };
                vec![(CauseKind::FailedLookups, amount)]
            })
        };
        let amount =
            |found: Option<Explained>| found.map_or(0.0, |(at, _)| self.all[at].inside.lookups);
        self.nearest(by, started).or_else(|| {
            let (directory, program) = (inside(true), inside(false));
            if amount(program) > amount(directory) { program } else { directory }
        })
    }

    /// Failed look-ups of a program or in a directory: if the source of most look-ups may have made
    /// them, that; otherwise the program or the directory itself.
    fn of_some_lookups(&self, key: Key<'a>, by: f64) -> Option<Explained> {
        let total: f64 = self
            .changes
            .keys("command_failed_lookups")
            .into_iter()
            .map(|key| self.changes.more("command_failed_lookups", key))
            .sum();
        let own = if let Some(directory) = key.label("directory") {
            let is_there = |source: &&Source<'a>| {
                source.directories.iter().any(|one| one.label("directory") == Some(directory))
            };
            self.all
                .iter()
                .position(|source| is_there(&source))
                .map(|at| (at, CauseKind::FailedLookups))
        } else {
            self.of_program(key, CauseKind::FailedLookups)
        };
        let Some((at, kind)) = self.of_lookups(total).filter(|_| total > 0.0) else { return own };
        let source = &self.all[at];
        let is_same = match (source.who, kind, key.label("directory")) {
            (Who::Program(_), CauseKind::Starts, Some(_)) => by <= 2.0 * source.by_start.lookups,
            (Who::Program(_), _, Some(_)) => by <= source.inside.lookups,
            (Who::Directory(_), _, None) => {
                by <= source.inside.lookups && own.is_none_or(|(_, kind)| kind != CauseKind::Starts)
            }
            _ => false,
        };
        if is_same { Some((at, kind)) } else { own }
    }

    /// A figure of a group of steps: of a program that does about as much more as the steps of this group do, otherwise of
    /// the group itself. Figures by program and group are not known.
    fn of_step(&self, key: Key<'a>, by: f64) -> Option<Explained> {
        let more = |family| self.changes.more(family, key);
        let processes = more("step_processes");
        let cpu_seconds = more("step_cpu_seconds");
        let program = match key.family().name {
            "step_runs" | "step_processes" => {
                self.alike(processes, |source| vec![(CauseKind::Starts, source.by_start.processes)])
            }
            // Steps that only wait longer have no program that computes more.
            "step_cpu_seconds" | "step_wall_seconds" | "step_longest_wall_seconds"
                if 2.0 * cpu_seconds >= by =>
            {
                self.alike(cpu_seconds, |source| source.both(CauseKind::CpuTime).into())
            }
            _ => None,
        };
        program.or_else(|| {
            let at = self.by_who.get(&Who::Step(key.label("group")?))?;
            Some((*at, CauseKind::Steps))
        })
    }

    /// The source that fits an increase best, if it is about as large.
    fn alike(
        &self,
        by: f64,
        parts: impl Fn(&Source<'a>) -> Vec<(CauseKind, f64)>,
    ) -> Option<Explained> {
        let amount = |at: usize| parts(&self.all[at]).iter().map(|(_, amount)| amount).sum();
        self.nearest(by, &parts).filter(|(at, _)| is_about(amount(*at), by))
    }

    /// The source that fits an increase best, of those that explain at least half of it.
    fn nearest(
        &self,
        by: f64,
        parts: impl Fn(&Source<'a>) -> Vec<(CauseKind, f64)>,
    ) -> Option<Explained> {
        let mut best: Option<(f64, Explained)> = None;
        for (at, source) in self.all.iter().enumerate() {
            let parts = parts(source);
            let amount: f64 = parts.iter().map(|(_, amount)| amount).sum();
            let largest = parts.iter().max_by(|a, b| a.1.total_cmp(&b.1));
            let Some((kind, _)) = largest.filter(|_| amount > 0.0 && 2.0 * amount >= by) else {
                continue;
            };
            let single = source.started.iter().map(|program| (program.more() - by).abs());
            let single = single.filter(|_| *kind == CauseKind::Starts);
            let distance = single.fold((amount - by).abs(), f64::min);
            if best.is_none_or(|(nearest, _)| distance < nearest) {
                best = Some((distance, (at, *kind)));
            }
        }
        best.map(|(_, explained)| explained)
    }

    /// The source of at least half of all additional processes: for figures that are not known by
    /// program.
    fn most_started(&self) -> Option<Explained> {
        let all: f64 = self.all.iter().map(|source| source.by_start.processes).sum();
        self.nearest(all, |source| vec![(CauseKind::Starts, source.by_start.processes)])
    }
}

/// True if one amount is neither less than half of another one nor more than twice as much.
fn is_about(amount: f64, of: f64) -> bool {
    of > 0.0 && 2.0 * amount >= of && amount <= 2.0 * of
}

impl Amounts {
    fn add(&mut self, other: &Self) {
        self.processes += other.processes;
        self.execs += other.execs;
        self.threads += other.threads;
        self.cpu_seconds += other.cpu_seconds;
        self.lookups += other.lookups;
        self.detached += other.detached;
        self.failed += other.failed;
    }

    fn of_mut(&mut self, kind: CauseKind) -> &mut f64 {
        match kind {
            CauseKind::Starts | CauseKind::Steps => &mut self.processes,
            CauseKind::Threads => &mut self.threads,
            CauseKind::CpuTime => &mut self.cpu_seconds,
            CauseKind::FailedLookups => &mut self.lookups,
            CauseKind::Detached => &mut self.detached,
            CauseKind::Failed => &mut self.failed,
        }
    }
}

impl Source<'_> {
    /// The group of steps in which a program does more of this, if the steps of one do about as much more. Of several, such
    /// as a group and the one around it, the one that fits best, then the smaller one.
    pub(crate) fn step<'a>(&self, kind: CauseKind, changes: &Changes<'_, 'a>) -> Option<&'a str> {
        let (family, amount) = match (self.who, kind) {
            (Who::Step(_) | Who::Directory(_), _) => return None,
            (_, CauseKind::Starts) => ("step_processes", self.by_start.processes),
            (_, CauseKind::CpuTime) => {
                ("step_cpu_seconds", self.both(kind).iter().map(|(_, amount)| amount).sum())
            }
            _ => return None,
        };
        let fits = |key: Key<'a>| {
            let change = changes.change(key)?;
            let group = key.label("group")?;
            is_about(change.by, amount).then_some(((change.by - amount).abs(), change.after, group))
        };
        let found = changes.keys(family).into_iter().filter_map(fits);
        let best = found.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        best.map(|(_, _, group)| group)
    }

    /// Its contributions to such a figure: by additional processes, and inside of the program.
    fn both(&self, kind: CauseKind) -> [(CauseKind, f64); 2] {
        let (mut by_start, mut inside) = (self.by_start, self.inside);
        [(CauseKind::Starts, *by_start.of_mut(kind)), (kind, *inside.of_mut(kind))]
    }
}
