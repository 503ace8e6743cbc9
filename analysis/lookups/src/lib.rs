//! Failed look-ups by cause: which list of directories, which object, which variable.
//!
//! One pass over the events in order of time, after the recording was loaded. Each start of a program has the look-ups that a model of the
//! dynamic linker predicts for it (`proctrace-libsearch`); a failed look-up that is among them has the
//! model's cause, any other a cause by its path.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod by_path;
mod candidates;
mod causes;
mod farm;
mod file_systems;
mod files;
mod held;
mod lists;
mod merge;
#[cfg(test)]
mod merge_tests;
mod mounts;
mod needed;
mod own_lists;
mod places;
mod remedies;
mod searches;
mod starts;
mod trial;
mod uses;
mod views;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proctrace_findings::{Libs, NotModelled};
use proctrace_libsearch::{Cache, Files, Linker, LinkerCall};
use proctrace_lineage::{Living, Process};
use proctrace_replay::{Assembler, Body, Environment, Event, Exec, Miss, MountTable, Replay};
use proctrace_wire::{Call, Family, mark_of_path};

pub use crate::candidates::{Candidate, Conflict, Link};
pub use crate::farm::{FarmPlan, Kept};
pub use crate::lists::ListChange;
pub use crate::needed::Rewrite;
pub use crate::remedies::Fixes;
pub use crate::trial::{Applied, best_of, misses};

use proctrace_recording::Recording;
use proctrace_recording::costs::Durations;
use proctrace_recording::error::AnalysisError;
use proctrace_recording::misses::found_no_link;

use crate::by_path::Surroundings;
use crate::causes::Causes;
use crate::file_systems::FileSystems;
use crate::files::Inferred;
use crate::mounts::{Mounts, Root};
use crate::own_lists::{Headers, Lists};
use crate::remedies::Evidence;
use crate::starts::{Start, Starts};
pub use crate::views::{MakeView, SeenMount};
use crate::views::{SomeFiles, Views};

/// The machine on which the job ran, as it is now.
#[derive(Clone, Copy)]
pub struct Machine<'a> {
    /// Its dynamic linker.
    pub linker: &'a Linker,
    /// /etc/ld.so.cache.
    pub cache: &'a Cache,
    /// Its files.
    pub files: &'a dyn Files,
    /// The mounts, as this process sees them.
    pub mounts: &'a MountTable,
    /// Makes the view of a process whose root or mount namespace differs.
    pub view: MakeView<'a>,
}

/// System by which a start is modelled: the machine, or a changed one.
#[derive(Clone, Copy)]
pub(crate) struct System<'a> {
    pub(crate) linker: &'a Linker,
    pub(crate) cache: &'a Cache,
    pub(crate) files: &'a dyn Files,
    pub(crate) views: &'a Views<'a>,
}

/// Failed look-ups of a recording by cause, with what would avoid them, and what carries that out. The recording goes
/// before its trace is replayed.
///
/// # Errors
/// If the trace cannot be read.
pub fn libs(
    recording: Recording,
    trace: &Path,
    machine: Machine<'_>,
) -> Result<(Libs, Fixes), AnalysisError> {
    let Machine { linker, cache, files, mounts, view } = machine;
    let none = proctrace_recording::misses::MissedPaths::default();
    let inferred = Inferred::of(recording.missed_paths().unwrap_or(&none), files);
    drop(recording);
    let (mut recorded, mut assembler) = (Mounts::default(), Assembler::default());
    let replay = Replay::open_with(trace, |record| recorded.take(&mut assembler, record))?;
    let views = Views::new(recorded, mounts.clone(), view);
    let system = System { linker, cache, files: &inferred, views: &views };
    let mut walk = Walk {
        starts: Starts::new(system),
        living: Living::flat(),
        nobody: Default::default(),
        causes: Causes::default(),
        file_systems: FileSystems::default(),
        not_modelled: BTreeMap::new(),
        of_linker: Durations::default(),
        evidence: Evidence::default(),
        found: Libs::default(),
    };
    for event in replay {
        walk.take(&event);
    }
    Ok(walk.finish())
}

/// State of the searches of a process that is alive: what it searches with, and what it did not find.
#[derive(Default, Clone)]
struct Searching {
    start: Option<Arc<Start>>,
    /// Number of times that each look-up which the start is expected to fail was seen.
    seen: Vec<u32>,
    environment: Option<Arc<Environment>>,
    root: Option<Arc<Root>>,
    cwd: Vec<u8>,
    /// The lists by which its program searches, and what it did not find by them.
    lists: Option<Arc<Lists>>,
    headers: Headers,
    /// The causes of its failed look-ups.
    causes: Vec<usize>,
    /// The file systems on which they were made.
    file_systems: Vec<usize>,
}

/// Cause and file system of the last failed look-up of a task, and whether it was one of the linker's: its duration,
/// if it was timed, follows in the trace.
type Last = Option<(usize, usize, bool)>;

struct Walk<'a> {
    starts: Starts<'a>,
    living: Living<Searching, Last>,
    /// State that stands for tasks whose birth was lost.
    nobody: (Last, Searching),
    causes: Causes,
    file_systems: FileSystems,
    not_modelled: BTreeMap<&'static str, u64>,
    /// Failed look-ups that the model predicts.
    of_linker: Durations,
    evidence: Evidence,
    found: Libs,
}

impl Walk<'_> {
    fn take(&mut self, event: &Event) {
        match &event.body {
            Body::Attach(attach) => {
                self.living.attach(attach, Searching::default(), None);
            }
            Body::Fork(fork) => {
                let inherited = |forker: Option<&mut Process<Searching>>| {
                    forker.map_or_else(Searching::default, |forker| Searching {
                        environment: forker.environment.clone(),
                        root: forker.root.clone(),
                        cwd: forker.cwd.clone(),
                        lists: forker.lists.clone(),
                        ..Searching::default()
                    })
                };
                self.living.fork(fork, inherited, None);
            }
            Body::Place(place) => {
                let record = &place.record;
                self.is_of(event.task, record.process, record.tgid);
                if let Some(process) = self.living.get_mut(record.process) {
                    let (namespace, path) = (record.mount_namespace, place.root.clone());
                    process.root = Some(Arc::new(Root { namespace, path }));
                }
            }
            Body::Exec(exec) => self.exec(event.task, exec),
            Body::ExecFailed(miss) => {
                self.evidence.values.failed(miss);
                self.miss(event.task, miss);
            }
            Body::LookupFailed(miss) if !is_search(miss) => {}
            Body::LookupFailed(miss) => self.miss(event.task, miss),
            Body::LookupTime(timed) if !is_search(&timed.miss) => {}
            Body::LookupTime(timed) => self.time(event.task, timed.duration_ns),
            Body::Exit(exit) => {
                let exited = self.living.exit(&exit.record);
                if let Some(process) = exited.and_then(|exited| exited.ended) {
                    self.end(&process);
                }
            }
            Body::Opened(_)
            | Body::Mounts(_)
            | Body::Rename(_)
            | Body::Workdir(_)
            | Body::Sample(_)
            | Body::Tick(_)
            | Body::Memory(_)
            | Body::Blind(_)
            | Body::Wait(_)
            | Body::Moved(_)
            | Body::Written(_)
            | Body::Signal(_)
            | Body::Loss(_) => {}
        }
    }

    /// A record tells of which process a task is; its birth may be lost.
    fn is_of(&mut self, task: u32, process: u32, pid: i32) {
        if let Some(stood_for_it) = self.living.add_unborn(process, pid, task).stood_for_it {
            self.end(&stood_for_it);
        }
    }

    fn exec(&mut self, task: u32, exec: &Exec) {
        self.evidence.values.started(exec);
        self.is_of(task, exec.record.process, exec.record.tgid);
        let Some(process) = self.living.get_mut(exec.record.process) else { return };
        let start = self.starts.of(exec, process.root.as_ref());
        match &start {
            Ok(_) => self.found.starts += 1,
            Err(why) => {
                self.found.starts_not_modelled += 1;
                *self.not_modelled.entry(why).or_insert(0) += 1;
            }
        }
        let start = start.ok();
        process.seen = vec![0; start.as_ref().map_or(0, |start| start.misses.len())];
        process.start = start;
        process.environment.clone_from(&exec.environment);
        process.cwd.clone_from(&exec.cwd);
        let lists = Lists::of(&exec.exe, &exec.argv).map(Arc::new);
        let before = std::mem::replace(&mut process.lists, lists);
        let headers = std::mem::take(&mut process.headers);
        self.searched(before.as_deref(), &headers);
    }

    fn miss(&mut self, task: u32, miss: &Miss) {
        let (last, process) = match self.living.task_mut(task) {
            Some((last, process)) => (last, &mut process.more),
            None => (&mut self.nobody.0, &mut self.nobody.1),
        };
        let call = Call::from_number(miss.record.call);
        let key = match Family::of(call) {
            Some(Family::Open) => Some(LinkerCall::Open),
            Some(Family::Stat) => Some(LinkerCall::Stat),
            _ => None,
        };
        let expected = process.start.as_ref().zip(key).and_then(|(start, key)| {
            let at = *start.index.get(&(key, miss.path.clone()))?;
            (process.seen[at] < start.misses[at].times).then_some((at, &start.misses[at].cause))
        });
        let System { views, files, .. } = self.starts.system();
        let files = views.files(process.root.as_ref(), files);
        let files = files.as_ref().map(SomeFiles::get);
        let is_of_linker = expected.is_some();
        let cause = if let Some((at, cause)) = expected {
            process.seen[at] += 1;
            self.found.confirmed_library_misses += 1;
            self.of_linker.misses += 1;
            let list = process.start.as_ref().and_then(|start| start.library_path.as_deref());
            self.causes.of_linker(cause, list, files)
        } else {
            let surroundings = Surroundings {
                environment: process.environment.as_deref().map(Vec::as_slice).unwrap_or_default(),
                start: process.start.as_deref(),
                linker: self.starts.linker(),
                lists: process.lists.as_deref(),
            };
            let (kind, entry) = surroundings.cause_of(&miss.path, call);
            if kind == by_path::UNEXPLAINED {
                self.found.unexplained_library_misses += 1;
            }
            if kind == "dlopen"
                && let Some(start) = &process.start
            {
                self.evidence.dlopened.take(start, &miss.path);
            }
            if let Some(lists) = &process.lists {
                process.headers.miss(lists, &miss.path);
            }
            self.causes.number_of(kind, &entry)
        };
        self.causes.miss(cause);
        if !process.causes.contains(&cause) {
            process.causes.push(cause);
        }
        let directory = directory(miss, &process.cwd);
        let root = process.root.as_ref();
        let family = Family::of(call).map_or("other", Family::name);
        let place = self.file_systems.of(views, files, root, &directory, family);
        self.file_systems.miss(place);
        if !process.file_systems.contains(&place) {
            process.file_systems.push(place);
        }
        *last = Some((cause, place, is_of_linker));
    }

    fn time(&mut self, task: u32, duration_ns: u32) {
        let last = self.living.task_mut(task).map_or(&mut self.nobody.0, |(last, _)| last);
        let Some((cause, place, is_of_linker)) = last.take() else { return };
        self.causes.time(cause, duration_ns);
        self.file_systems.time(place, duration_ns);
        if is_of_linker {
            self.of_linker.time(duration_ns);
        }
    }

    /// Counts the headers that a compiler found by each of its options, once it has read all.
    fn searched(&mut self, lists: Option<&Lists>, headers: &Headers) {
        let Some(lists) = lists else { return };
        for (kind, directory, probes, hits) in headers.finish(lists) {
            let cause = self.causes.number_of(kind, directory);
            self.causes.probe(cause, probes - hits, false);
            self.causes.probe(cause, hits, true);
        }
    }

    fn end(&mut self, process: &Searching) {
        self.searched(process.lists.as_deref(), &process.headers);
        self.causes.end(&process.causes);
        self.file_systems.end(&process.file_systems);
    }

    fn finish(mut self) -> (Libs, Fixes) {
        let living = std::mem::take(&mut self.living);
        let nobody = std::mem::take(&mut self.nobody.1);
        living.iter().map(|process| &process.more).chain([&nobody]).for_each(|of| self.end(of));
        let System { files, views, .. } = self.starts.system();
        for (start, times) in self.starts.all() {
            self.found.predicted_library_misses += start.search.misses().count() as u64 * times;
            let seen = views.files(start.kind.root(), files);
            let seen = seen.as_ref().map(SomeFiles::get);
            for probe in &start.search.probes {
                let list = start.library_path.as_deref();
                let cause = self.causes.of_linker(&probe.cause, list, seen);
                self.causes.probe(cause, times, probe.found && probe.call == LinkerCall::Open);
            }
        }
        let reasons = self.not_modelled.into_iter();
        let mut not_modelled: Vec<_> =
            reasons.map(|(why, starts)| NotModelled { why, starts }).collect();
        not_modelled.sort_by_key(|reason| Reverse(reason.starts));
        let causes = self.causes.finish();
        let (mut remedies, fixes) = remedies::remedies(&self.starts, &self.evidence, &causes);
        for remedy in remedies.iter_mut().filter(|remedy| remedy.about == "libraries") {
            let avoided = remedy.today_misses as f64 - remedy.predicted_misses as f64;
            remedy.saves_ns = self.of_linker.mean_ns().map(|mean_ns| (mean_ns * avoided) as i64);
        }
        let found = Libs {
            remedies,
            not_modelled,
            causes,
            file_systems: self.file_systems.finish(views.recorded()),
            libraries: searches::libraries(&self.starts),
            programs: searches::programs(&self.starts),
            ..self.found
        };
        (found, fixes)
    }
}

/// Returns whether a look-up failed to find a file: a mark is no search for one.
fn is_search(miss: &Miss) -> bool {
    !found_no_link(&miss.record) && mark_of_path(&miss.path).is_none()
}

/// The directory of a look-up; a relative one if that to which it is relative is not known.
fn directory(miss: &Miss, cwd: &[u8]) -> Vec<u8> {
    /// AT_FDCWD of openat(2).
    const CURRENT: i32 = -100;
    let path = &miss.path;
    let end = path.iter().rposition(|byte| *byte == b'/');
    match end {
        Some(0) => b"/".to_vec(),
        Some(end) if path.starts_with(b"/") => path[..end].to_vec(),
        _ if miss.record.dirfd != CURRENT || path.is_empty() => Vec::new(),
        Some(end) => [cwd, b"/", &path[..end]].concat(),
        None => cwd.to_vec(),
    }
}
