//! Steps: the process subtrees that are units of work of whatever coordinates the job, with the names that it gives them.
//!
//! A program run begins a step if its environment names another one than is in effect where it was started, if a mark, a
//! table or a rule says so. A process belongs to the innermost step of its last program run, and so does what it starts.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use proctrace_classify::Rules;
use proctrace_classify::fast::{FastMap, FastSet};
use proctrace_classify::steps::{
    Candidates, Coordinating, FileGraph, NAME_BYTES_MAX, RunBy, is_stand_in, name_of,
};
pub use proctrace_classify::steps::{Named, NamedBy};
use proctrace_replay::variables;
use proctrace_wire::Exec;

/// Environment variable with the name of a step.
pub const NAME: &str = "PROCTRACE_STEP";
/// Environment variable with the name of the group of a step.
pub const GROUP: &str = "PROCTRACE_STEP_GROUP";
/// Environment variable with the span of a distributed trace: version, trace, span and flags (W3C Trace Context).
pub const TRACEPARENT: &str = "TRACEPARENT";

/// Maximum number of environments that are kept: each has a name of its own in a hostile trace.
const ENVIRONMENTS_MAX: usize = 1 << 20;
/// Maximum number of steps.
const STEPS_MAX: usize = 1 << 20;
/// Maximum number of steps within each other: a program may execute itself with a new name again and again, and each
/// step is added to all around it.
const DEPTH_MAX: usize = 64;
/// Maximum length of all directories that are kept.
const DIRECTORY_BYTES_MAX: usize = 16 << 20;

/// The step that an environment names, as NAME=value strings with their NULs.
fn of_environment(variables: &[(Vec<u8>, Vec<u8>)]) -> Option<Named> {
    let value = |name: &str| value_of(variables, name.as_bytes());
    let named = |name, group, by| Named { name, group, by, coordinator: String::new() };
    if let Some(name) = value(NAME).and_then(name_of) {
        return Some(named(name, value(GROUP).and_then(name_of), NamedBy::Variable));
    }
    let (_, span) = span_of(value(TRACEPARENT)?)?;
    Some(named(format!("{SPAN}{span}"), None, NamedBy::Span))
}

fn value_of<'a>(variables: &'a [(Vec<u8>, Vec<u8>)], name: &[u8]) -> Option<&'a [u8]> {
    variables.iter().find(|(key, _)| key == name).map(|(_, value)| &value[..])
}

/// A span of a distributed trace, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceSpan {
    /// 32 digits.
    pub trace: String,
    /// 16 digits.
    pub span: String,
}

/// What the name of a step by its span begins with.
const SPAN: &str = "span ";

/// The trace and the span of a `traceparent`: 32 and 16 hexadecimal digits, not all of which are zero.
fn span_of(value: &[u8]) -> Option<(&str, &str)> {
    let value = std::str::from_utf8(value).ok()?;
    let mut parts = value.split('-');
    let (version, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |part: &str, digits: usize| {
        part.len() == digits && part.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_zero = |part: &str| part.bytes().all(|digit| digit == b'0');
    let well_formed = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16);
    (well_formed && version != "ff" && !is_zero(trace) && !is_zero(span)).then_some((trace, span))
}

/// What an environment says of steps.
#[derive(Debug)]
struct Environment {
    named: Option<Arc<Named>>,
    /// Variables that rules read.
    variables: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What started a process, and its ID in its own pid namespace.
#[derive(Debug, Clone, Copy)]
struct StartedBy {
    coordinating: Coordinating,
    own_pid: Option<i32>,
}

/// The steps of a recording, while its births and execs are read.
#[derive(Debug)]
pub(crate) struct Stepping<R> {
    rules: R,
    /// Variables that rules read.
    wanted: BTreeSet<Vec<u8>>,
    /// What rules a program may concern, by its number.
    candidates: FastMap<u32, Candidates>,
    /// Without those that say nothing.
    environments: FastMap<u64, Environment>,
    /// Equal names are kept once.
    known: FastSet<Arc<Named>>,
    made: Steps,
    /// The step of what a process starts from now on, if that is not its own.
    hands_on: FastMap<u32, u32>,
    /// What processes coordinate, if they do.
    coordinating: FastMap<u32, Coordinating>,
    /// Processes that have not called exec yet, of those that coordinate.
    started_by: FastMap<u32, StartedBy>,
    /// What is said of the whole recording: spans and signs that its command was given, and everything inherits.
    around_all: FastSet<Arc<Named>>,
    /// Directories of steps.
    directories: FastSet<Arc<[u8]>>,
    directory_bytes: usize,
}

impl<R: Deref<Target = Rules>> Stepping<R> {
    pub(crate) fn new(rules: R) -> Self {
        Self {
            wanted: rules.steps.variables(),
            rules,
            candidates: FastMap::default(),
            environments: FastMap::default(),
            known: FastSet::default(),
            made: Steps::default(),
            hands_on: FastMap::default(),
            coordinating: FastMap::default(),
            started_by: FastMap::default(),
            around_all: FastSet::default(),
            directories: FastSet::default(),
            directory_bytes: 0,
        }
    }

    fn kept(&mut self, named: Named) -> Arc<Named> {
        if let Some(known) = self.known.get(&named) {
            return Arc::clone(known);
        }
        let named = Arc::new(named);
        if self.known.len() < ENVIRONMENTS_MAX {
            self.known.insert(Arc::clone(&named));
        }
        named
    }

    /// An environment, before the execs that have it.
    pub(crate) fn environment(&mut self, id: u64, block: &[u8]) {
        // A later one of this number replaces it.
        self.environments.remove(&id);
        if self.environments.len() >= ENVIRONMENTS_MAX {
            return;
        }
        let all = variables(block);
        if let Some((trace, span)) = value_of(&all, TRACEPARENT.as_bytes()).and_then(span_of)
            && self.made.traces.len() < ENVIRONMENTS_MAX
        {
            self.made.traces.insert(span.to_owned(), trace.to_owned());
        }
        let named = of_environment(&all).map(|named| self.kept(named));
        let read = all.into_iter().filter(|(name, _)| self.wanted.contains(name));
        let cut = |(name, mut value): (Vec<u8>, Vec<u8>)| {
            value.truncate(NAME_BYTES_MAX);
            (name, value)
        };
        let variables: Vec<_> = read.map(cut).collect();
        if named.is_some() || !variables.is_empty() {
            self.environments.insert(id, Environment { named, variables });
        }
    }

    /// A process is born, with this ID in its own pid namespace; none if that is not known.
    pub(crate) fn fork(&mut self, process: u32, own_pid: Option<i32>, forker: Option<u32>) {
        let Some(forker) = forker else { return };
        if let Some(coordinating) = self.coordinating.get(&forker) {
            let coordinating = *coordinating;
            self.started_by.insert(process, StartedBy { coordinating, own_pid });
        }
        if !self.made.all.is_empty() {
            let step = self.hands_on.get(&forker).copied().or_else(|| self.made.of_process(forker));
            self.set(process, step.unwrap_or(NONE));
        }
    }

    /// A process executes the program of this number, if it has one, with which this run begins; at this time since 1970.
    pub(crate) fn exec(
        &mut self,
        exec: &Exec<'_>,
        program: Option<u32>,
        (process, run): (u32, u32),
        parent: Option<u32>,
        unix_ns: u64,
    ) {
        if let Some(name) = exec.step_mark() {
            self.mark(&name, exec.cwd, (process, run), parent);
            return;
        }
        if is_stand_in(exec) {
            return;
        }
        let around = self.made.of_process(process);
        let environment = self.environments.get(&exec.fixed.env_id);
        let given = environment.and_then(|environment| environment.named.clone());
        let pid = exec.fixed.tgid;
        let nobody = StartedBy { coordinating: 0, own_pid: None };
        let started_by = self.started_by.remove(&process).unwrap_or(nobody);
        let variables = environment.map_or(&[][..], |environment| &environment.variables);
        let rules = &*self.rules;
        let find = || rules.steps.candidates(exec, &rules.interpreters);
        let candidates = match program.map(|program| self.candidates.entry(program)) {
            Some(Entry::Occupied(known)) => *known.get(),
            Some(Entry::Vacant(new)) => *new.insert(find()),
            None => find(),
        };
        let run_by = RunBy { pid, own_pid: started_by.own_pid.unwrap_or(pid), unix_ns };
        let run_of = rules.steps.step_of(
            exec,
            &rules.interpreters,
            candidates,
            run_by,
            started_by.coordinating,
            variables,
        );
        if run_of.coordinating == 0 {
            self.coordinating.remove(&process);
        } else {
            self.coordinating.insert(process, run_of.coordinating);
        }
        if let Some(named) = given
            && !self.made.has(around, |step| step.by == named.by, &named)
            && !self.around_all.contains(&named)
        {
            if named.by == NamedBy::Span && parent.is_none() {
                self.made.around = self.made.around.take().or(self.made.span_named(&named));
                self.around_all.insert(named);
            } else {
                self.begin(named, exec.cwd, around, (process, run));
                return;
            }
        }
        let Some(named) = run_of.step.map(|named| self.kept(named)) else { return };
        let same = |step: &Named| step.by == named.by && step.coordinator == named.coordinator;
        if named.by == NamedBy::Rule && parent.is_none() {
            self.around_all.insert(named);
        } else if run_of.is_told
            || !(self.around_all.contains(&named) || self.made.has(around, same, &named))
        {
            self.begin(named, exec.cwd, around, (process, run));
        }
    }

    /// `proctrace mark --step`: what its parent starts from now on is this step.
    fn mark(&mut self, name: &[u8], cwd: &[u8], (process, run): (u32, u32), parent: Option<u32>) {
        let Some(parent) = parent else { return };
        let around = self.made.of_process(parent);
        let Some(name) = name_of(name) else {
            self.hands_on.remove(&parent);
            if !self.made.all.is_empty() {
                self.set(process, around.unwrap_or(NONE));
            }
            return;
        };
        let named =
            self.kept(Named { name, group: None, by: NamedBy::Mark, coordinator: String::new() });
        if let Some(step) = self.begin(named, cwd, around, (process, run)) {
            self.hands_on.insert(parent, step);
        }
    }

    fn begin(
        &mut self,
        named: Arc<Named>,
        cwd: &[u8],
        parent: Option<u32>,
        (process, run): (u32, u32),
    ) -> Option<u32> {
        let depth = parent.map_or(0, |parent| self.made.up(parent).count());
        if self.made.all.len() >= STEPS_MAX || depth >= DEPTH_MAX {
            self.made.left_out += 1;
            return None;
        }
        let step = u32::try_from(self.made.all.len()).unwrap_or(NONE);
        let directory = self.directory(cwd);
        self.made.all.push(Step { named, parent, run, directory });
        self.set(process, step);
        Some(step)
    }

    /// A directory, kept once; empty if there are too many.
    fn directory(&mut self, cwd: &[u8]) -> Arc<[u8]> {
        if let Some(known) = self.directories.get(cwd) {
            return Arc::clone(known);
        }
        if self.directory_bytes.saturating_add(cwd.len()) > DIRECTORY_BYTES_MAX {
            return Arc::from([]);
        }
        self.directory_bytes += cwd.len();
        let directory: Arc<[u8]> = Arc::from(cwd);
        self.directories.insert(Arc::clone(&directory));
        directory
    }

    fn set(&mut self, process: u32, step: u32) {
        let of = &mut self.made.of_process;
        let at = process as usize;
        if at >= of.len() {
            of.resize(at + 1, NONE);
        }
        of[at] = step;
    }

    /// The steps so far.
    pub(crate) fn so_far(&self) -> &Steps {
        &self.made
    }

    /// A process has ended, and another one may have its number.
    pub(crate) fn gone(&mut self, process: u32) {
        self.coordinating.remove(&process);
        self.started_by.remove(&process);
        self.hands_on.remove(&process);
        if let Some(step) = self.made.of_process.get_mut(process as usize) {
            *step = NONE;
        }
    }

    /// The steps of all.
    pub(crate) fn steps(mut self) -> Steps {
        self.made.graph = Arc::clone(&self.rules.steps.declared.graph);
        for step in &self.rules.steps.declared.steps {
            if let Some(needs) = &step.needs {
                self.made.needs.insert(step.name.clone(), needs.clone());
            }
        }
        self.made
    }
}

/// A process subtree that is a unit of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its name and group.
    pub named: Arc<Named>,
    /// Index of the step that it is a part of.
    pub parent: Option<u32>,
    /// Index of the program run with which it begins.
    pub run: u32,
    /// The directory in which it begins; empty if there are too many.
    pub directory: Arc<[u8]>,
}

/// The steps of a recording.
#[derive(Debug, Default)]
pub struct Steps {
    /// In order of their beginnings, so that a step comes after the one that it is a part of.
    pub all: Vec<Step>,
    /// Steps beyond the limits on their number and depth.
    pub left_out: u64,
    /// Names of the steps that must come before the one of this name, where a table says so.
    pub needs: BTreeMap<String, Vec<String>>,
    /// The span that the whole recording is a part of.
    pub around: Option<TraceSpan>,
    /// Traces by span.
    traces: FastMap<String, String>,
    /// What files are made from, where a file from outside says so.
    pub graph: Arc<FileGraph>,
    /// The step of each process, `NONE` for none; those at the end may be missing.
    of_process: Vec<u32>,
}

pub(crate) const NONE: u32 = u32::MAX;

impl Steps {
    /// The innermost step that a process belongs to.
    pub fn of_process(&self, process: u32) -> Option<u32> {
        self.of_process.get(process as usize).copied().filter(|step| *step != NONE)
    }

    /// The span of a distributed trace that a step is.
    pub fn span_of(&self, step: u32) -> Option<TraceSpan> {
        self.span_named(&self.all.get(step as usize)?.named)
    }

    fn span_named(&self, named: &Named) -> Option<TraceSpan> {
        let span = named.name.strip_prefix(SPAN).filter(|_| named.by == NamedBy::Span)?;
        let trace = self.traces.get(span)?;
        Some(TraceSpan { trace: trace.clone(), span: span.to_owned() })
    }

    /// A step and those that it is a part of, innermost first.
    pub fn up(&self, step: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(step), |at| self.all.get(*at as usize)?.parent)
    }

    /// True if the innermost one around that is of a kind is called so.
    fn has(&self, around: Option<u32>, kind: impl Fn(&Named) -> bool, named: &Named) -> bool {
        let mut names = around.into_iter().flat_map(|step| self.up(step));
        names
            .find(|step| kind(&self.all[*step as usize].named))
            .is_some_and(|step| *self.all[step as usize].named == *named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_name_steps() {
        let named = |block: &[u8]| of_environment(&variables(block));
        let variable = |name: &str, group: Option<&str>| {
            let group = group.map(str::to_owned);
            Some(Named {
                name: name.to_owned(),
                group,
                by: NamedBy::Variable,
                coordinator: String::new(),
            })
        };
        assert_eq!(named(b"PATH=/bin\0PROCTRACE_STEP=digi_3\0"), variable("digi_3", None));
        let both = b"PROCTRACE_STEP_GROUP=digi\0PROCTRACE_STEP=digi_3\0";
        assert_eq!(named(both), variable("digi_3", Some("digi")));
        assert_eq!(named(b"PROCTRACE_STEP= \0PATH=/bin\0"), None);
        assert_eq!(named(b"PROCTRACE_STEP=a\nb\xff\0"), variable("a\nb\\xff", None));
        assert_eq!(named(b""), None);
        let long = [b"PROCTRACE_STEP=", &[b'x'; 5000][..], b"\0"].concat();
        assert_eq!(named(&long).unwrap().name.len(), NAME_BYTES_MAX);
    }

    #[test]
    fn spans_are_steps_only_if_they_are_well_formed() {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let named = |value: &str| {
            of_environment(&variables(format!("TRACEPARENT={value}\0").as_bytes()))
                .map(|it| it.name)
        };
        let good = named(&format!("00-{trace}-b7ad6b7169203331-01"));
        assert_eq!(good.as_deref(), Some("span b7ad6b7169203331"));
        for bad in [
            format!("00-{trace}-0000000000000000-01"),
            format!("ff-{trace}-b7ad6b7169203331-01"),
            format!("00-{trace}-B7AD6B7169203331-01"),
            format!("00-{trace}-b7ad6b71692033-01"),
            "00-b7ad6b7169203331-01".to_owned(),
            String::new(),
        ] {
            assert_eq!(named(&bad), None, "{bad}");
        }
    }
}
