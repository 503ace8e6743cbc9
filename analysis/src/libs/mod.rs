//! Failed look-ups by cause: which list of directories, which object, which variable.
//!
//! One pass over the events in order of time. Each start of a program has the look-ups that a model of the
//! dynamic linker predicts for it (`proctrace-libsearch`); a failed look-up that is among them has the
//! model's cause, any other a cause by its path.

mod by_path;
mod files;
mod remedies;
mod starts;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use proctrace_findings::{Libs, LookupCause};
use proctrace_libsearch::{Cache, Call, Cause, Files, Linker};
use proctrace_replay::{Body, Environment, Event, Miss, Replay};
use proctrace_wire::escape::to_text;
use proctrace_wire::{Call as SystemCall, Family};

use crate::error::AnalysisError;
use crate::libs::by_path::Surroundings;
use crate::libs::files::Inferred;
use crate::libs::starts::{Start, Starts};

/// The machine on which the job ran, as it is now.
#[derive(Clone, Copy)]
pub struct System<'a> {
    /// Its dynamic linker.
    pub linker: &'a Linker,
    /// /etc/ld.so.cache.
    pub cache: &'a Cache,
    /// Its files.
    pub files: &'a dyn Files,
}

/// Failed look-ups of a recording by cause, with what would avoid them.
///
/// # Errors
/// If the trace cannot be read.
pub fn libs(trace: &Path, system: System<'_>) -> Result<Libs, AnalysisError> {
    let inferred = Inferred::of(trace, system.files)?;
    let mut walk = Walk {
        starts: Starts::new(System { files: &inferred, ..system }),
        processes: HashMap::new(),
        process_of: HashMap::new(),
        causes: Causes::default(),
        found: Libs::default(),
    };
    for event in Replay::open(trace)? {
        walk.take(&event);
    }
    Ok(walk.finish())
}

/// A live process.
#[derive(Default, Clone)]
struct Process {
    start: Option<Arc<Start>>,
    /// Of each look-up that the start is expected to fail: how often it was seen.
    seen: Vec<u32>,
    environment: Option<Arc<Environment>>,
    /// The causes of its failed look-ups.
    causes: Vec<usize>,
}

struct Walk<'a> {
    starts: Starts<'a>,
    /// By serial.
    processes: HashMap<u32, Process>,
    /// By the serial of a task.
    process_of: HashMap<u32, u32>,
    causes: Causes,
    found: Libs,
}

impl Walk<'_> {
    fn take(&mut self, event: &Event) {
        match &event.body {
            Body::Attach(attach) => {
                self.process_of.insert(event.task, attach.process);
                self.processes.entry(attach.process).or_default();
            }
            Body::Fork(fork) => {
                let (child, process) = (fork.record.child, fork.record.child_process);
                self.process_of.insert(child, process);
                if child == process {
                    let parent = self.process_of.get(&event.task);
                    let parent = parent.and_then(|parent| self.processes.get(parent));
                    let environment = parent.and_then(|parent| parent.environment.clone());
                    self.processes.insert(process, Process { environment, ..Process::default() });
                }
            }
            Body::Exec(exec) => {
                self.process_of.insert(event.task, exec.record.process);
                let start = self.starts.of(exec);
                match start {
                    Some(_) => self.found.starts += 1,
                    None => self.found.starts_not_modelled += 1,
                }
                let process = self.processes.entry(exec.record.process).or_default();
                process.seen = vec![0; start.as_ref().map_or(0, |start| start.misses.len())];
                process.start = start;
                process.environment.clone_from(&exec.environment);
            }
            Body::ExecFailed(miss) | Body::LookupFailed(miss) => self.miss(event.task, miss),
            Body::Exit(exit) => {
                let process = self.process_of.remove(&event.task);
                if exit.is_process()
                    && let Some(process) = process.and_then(|at| self.processes.remove(&at))
                {
                    self.causes.end(&process);
                }
            }
            Body::LookupTime(_)
            | Body::Opened(_)
            | Body::Place(_)
            | Body::Mounts(_)
            | Body::Rename(_)
            | Body::Workdir(_)
            | Body::Sample(_)
            | Body::Tick(_)
            | Body::Memory(_)
            | Body::Blind(_)
            | Body::Loss(_) => {}
        }
    }

    fn miss(&mut self, task: u32, miss: &Miss) {
        let process = self.process_of.get(&task).copied().unwrap_or_default();
        let process = self.processes.entry(process).or_default();
        let call = SystemCall::from_number(miss.record.call);
        let key = match Family::of(call) {
            Some(Family::Open) => Some(Call::Open),
            Some(Family::Stat) => Some(Call::Stat),
            _ => None,
        };
        let expected = process.start.as_ref().zip(key).and_then(|(start, key)| {
            let at = *start.index.get(&(key, miss.path.clone()))?;
            (process.seen[at] < start.misses[at].times).then_some((at, &start.misses[at].cause))
        });
        let cause = if let Some((at, cause)) = expected {
            process.seen[at] += 1;
            self.found.confirmed_library_misses += 1;
            let list = process.start.as_ref().and_then(|start| start.library_path.as_deref());
            self.causes.of_linker(cause, list)
        } else {
            let surroundings = Surroundings {
                environment: process.environment.as_deref().map(Vec::as_slice).unwrap_or_default(),
                start: process.start.as_deref(),
                linker: self.starts.linker(),
            };
            let (kind, entry) = surroundings.cause_of(&miss.path, call);
            if kind == by_path::UNEXPLAINED {
                self.found.unexplained_library_misses += 1;
            }
            self.causes.number_of(kind, &entry)
        };
        self.causes.all[cause].misses += 1;
        if !process.causes.contains(&cause) {
            process.causes.push(cause);
        }
    }

    fn finish(mut self) -> Libs {
        for process in self.processes.values() {
            self.causes.end(process);
        }
        for (start, times) in self.starts.all() {
            self.found.predicted_library_misses += start.search.misses().count() as u64 * times;
            for probe in &start.search.probes {
                let cause = self.causes.of_linker(&probe.cause, start.library_path.as_deref());
                let cause = &mut self.causes.all[cause];
                *cause.probes.get_or_insert(0) += times;
                let hit = probe.found && probe.call == Call::Open;
                *cause.hits.get_or_insert(0) += if hit { times } else { 0 };
            }
        }
        self.found.remedies = remedies::remedies(&self.starts);
        self.found.causes = self.causes.all;
        self.found.causes.retain(|cause| cause.misses > 0 || cause.probes.is_some());
        self.found.causes.sort_by(|a, b| {
            b.misses.cmp(&a.misses).then_with(|| (a.kind, &a.entry).cmp(&(b.kind, &b.entry)))
        });
        self.found
    }
}

/// The causes found so far.
#[derive(Default)]
struct Causes {
    all: Vec<LookupCause>,
    numbers: BTreeMap<(&'static str, Vec<u8>), usize>,
}

impl Causes {
    fn number_of(&mut self, kind: &'static str, entry: &[u8]) -> usize {
        if let Some(number) = self.numbers.get(&(kind, entry.to_vec())) {
            return *number;
        }
        let number = self.all.len();
        self.numbers.insert((kind, entry.to_vec()), number);
        let entry = to_text(entry).into_owned();
        self.all.push(LookupCause {
            kind,
            entry,
            probes: None,
            hits: None,
            misses: 0,
            processes: 0,
        });
        number
    }

    /// A cause of the linker's, with the entry of the list as it was written.
    fn of_linker(&mut self, cause: &Cause, library_path: Option<&[u8]>) -> usize {
        let entry = |list: Option<&[u8]>, at: usize| {
            let list = list.unwrap_or_default();
            let mut entries = list.split(|byte| matches!(byte, b':' | b';'));
            entries.nth(at).unwrap_or_default().to_vec()
        };
        match cause {
            Cause::LibraryPath(at) => self.number_of("LD_LIBRARY_PATH", &entry(library_path, *at)),
            Cause::Rpath(object, _) => self.number_of("RPATH", object),
            Cause::Runpath(object, _) => self.number_of("RUNPATH", object),
            Cause::Cache => self.number_of("cache", b"/etc/ld.so.cache"),
            Cause::Default(_) => self.number_of("default", b""),
            Cause::Path => self.number_of("path", b""),
            Cause::PathFile => self.number_of("ld-musl.path", b""),
        }
    }

    fn end(&mut self, process: &Process) {
        for cause in &process.causes {
            self.all[*cause].processes += 1;
        }
    }
}
