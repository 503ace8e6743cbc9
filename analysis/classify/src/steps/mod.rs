//! Steps: which program runs begin a unit of work of whatever coordinates the job, and what it is called.

mod action_log;
mod command;
mod coordinator;
mod declared;
mod graph;
mod ninja_log;
mod snakemake;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashSet};

use proctrace_wire::Exec;

pub(crate) use action_log::ActionLog;
pub use coordinator::Coordinator;
pub use declared::{Declared, DeclaredStep};
pub use graph::FileGraph;
pub(crate) use ninja_log::SIGNATURE as NINJA_LOG;
pub use snakemake::SnakemakeRecord;

use crate::call::{ARGUMENTS_MAX, Invocation, joined, variants};
use crate::names::text;

/// Longest name in bytes: a longer one is cut.
pub const NAME_BYTES_MAX: usize = 200;

/// The way in which a step got its name, those that are asked first before others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NamedBy {
    /// `PROCTRACE_STEP` in its environment.
    Variable,
    /// The span in its environment (`TRACEPARENT`).
    Span,
    /// `proctrace mark --step`.
    Mark,
    /// A table from outside (`--steps`).
    Table,
    /// A rule for the program that started it.
    Rule,
}

impl NamedBy {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Variable, Self::Span, Self::Mark, Self::Table, Self::Rule];

    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Variable => "environment",
            Self::Span => "span",
            Self::Mark => "mark",
            Self::Table => "table",
            Self::Rule => "rule",
        }
    }
}

/// What an environment, a table or a rule says of a step.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Named {
    /// Name of the step.
    pub name: String,
    /// Name of its group, if one is given.
    pub group: Option<String>,
    /// The way in which it got them.
    pub by: NamedBy,
    /// The coordinator whose rule gave the name; empty otherwise.
    pub coordinator: String,
}

/// A name from bytes of a payload, cut if it is too long; `None` if nothing is left of it.
pub fn name_of(bytes: &[u8]) -> Option<String> {
    let bytes = bytes.trim_ascii();
    let mut end = bytes.len().min(NAME_BYTES_MAX);
    // Not within a character: one has at most four bytes.
    let is_within = |end: usize| bytes.get(end).is_some_and(|byte| byte & 0xc0 == 0x80);
    for _ in 0..3 {
        end -= usize::from(end > 0 && is_within(end));
    }
    let name = text(&bytes[..end]);
    (!name.is_empty()).then_some(name)
}

/// True for a helper that only executes the program that its parent asked for, in the same process. Java has had one since
/// JDK 12 (jdk.lang.Process.launchMechanism).
pub fn is_stand_in(exec: &Exec<'_>) -> bool {
    crate::names::base(exec.known_as()) == b"jspawnhelper"
}

/// Rules and tables that name steps.
#[derive(Debug, Clone, Default)]
pub struct StepRules {
    /// In the order in which they are asked.
    pub coordinators: Vec<Coordinator>,
    /// What files from outside say.
    pub declared: Declared,
}

/// The coordinators that are compiled in.
const BUILT_IN: [(&str, &str); 23] = [
    ("o2dpg", include_str!("../../../rules/steps/o2dpg.toml")),
    ("snakemake", include_str!("../../../rules/steps/snakemake.toml")),
    ("nextflow", include_str!("../../../rules/steps/nextflow.toml")),
    ("cwltool", include_str!("../../../rules/steps/cwltool.toml")),
    ("slurm", include_str!("../../../rules/steps/slurm.toml")),
    ("ci", include_str!("../../../rules/steps/ci.toml")),
    ("make", include_str!("../../../rules/steps/make.toml")),
    ("ninja", include_str!("../../../rules/steps/ninja.toml")),
    ("ctest", include_str!("../../../rules/steps/ctest.toml")),
    ("cargo", include_str!("../../../rules/steps/cargo.toml")),
    ("go", include_str!("../../../rules/steps/go.toml")),
    ("maven", include_str!("../../../rules/steps/maven.toml")),
    ("gradle", include_str!("../../../rules/steps/gradle.toml")),
    ("meson", include_str!("../../../rules/steps/meson.toml")),
    ("scons", include_str!("../../../rules/steps/scons.toml")),
    ("just", include_str!("../../../rules/steps/just.toml")),
    ("npm", include_str!("../../../rules/steps/npm.toml")),
    ("yarn", include_str!("../../../rules/steps/yarn.toml")),
    ("bazel", include_str!("../../../rules/steps/bazel.toml")),
    ("tox", include_str!("../../../rules/steps/tox.toml")),
    ("pytest", include_str!("../../../rules/steps/pytest.toml")),
    ("parallel", include_str!("../../../rules/steps/parallel.toml")),
    ("xargs", include_str!("../../../rules/steps/xargs.toml")),
];

/// A set of coordinators, by their numbers.
pub type Coordinating = u64;

/// The coordinator whose records name shell commands: of a Snakemake that runs a single job for another one, that job is the step.
const SNAKEMAKE: &str = "snakemake";

/// The coordinator whose log names processes that it itself started.
const O2DPG: &str = "o2dpg";

/// Maximum number of coordinators.
pub const COORDINATORS_MAX: usize = Coordinating::BITS as usize;

impl StepRules {
    /// The coordinators that are compiled in.
    ///
    /// # Panics
    /// Never: a test parses them.
    pub fn built_in() -> Self {
        let coordinators = BUILT_IN
            .iter()
            .map(|(name, toml)| Coordinator::parse(name, toml).expect("a test parses them"))
            .collect();
        Self { coordinators, declared: Declared::default() }
    }

    /// Names of the coordinators that are compiled in.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// Coordinators with steps that are known by a variable only.
    fn by_variable(&self) -> Coordinating {
        let all = self.coordinators.iter().enumerate();
        all.filter(|(_, it)| it.is_by_variable()).fold(0, |set, (at, _)| set | 1 << at)
    }

    /// Environment variables that name steps.
    pub fn variables(&self) -> BTreeSet<Vec<u8>> {
        self.coordinators.iter().flat_map(Coordinator::variables).map(<[u8]>::to_vec).collect()
    }
}

/// A program run as rules and tables for steps see it.
#[derive(Debug)]
pub(crate) struct Run<'a, 'e> {
    pub call: Invocation<'a>,
    /// Its names with which rules are compared.
    pub names: [&'a [u8]; 3],
    pub exec: &'a Exec<'e>,
    line: OnceCell<Cow<'a, [u8]>>,
}

impl<'a, 'e> Run<'a, 'e> {
    fn of(exec: &'a Exec<'e>, interpreters: &HashSet<Vec<u8>>) -> Self {
        let call = Invocation::of(exec, interpreters);
        Self { names: variants(call.name), call, exec, line: OnceCell::new() }
    }

    /// Arguments joined by spaces.
    fn line(&self) -> &[u8] {
        self.line.get_or_init(|| joined(self.exec.argv))
    }

    /// The text that a shell was given, or the command line with the name of the program for its path.
    fn command(&self) -> Cow<'a, [u8]> {
        if let Some(text) = self.call.text {
            return command::of_text(&text[..text.len().min(ARGUMENTS_MAX)]).into();
        }
        let argv = &self.exec.argv[..self.exec.argv.len().min(ARGUMENTS_MAX)];
        let mut rest = argv.splitn(2, |byte| *byte == 0);
        let arguments = rest.nth(1).unwrap_or_default();
        let program = crate::names::base(self.exec.known_as());
        joined(&[program, b"\0", arguments].concat()).into_owned().into()
    }

    /// The name of the program that does the work: the first one of a shell's text.
    fn program(&self) -> &'a [u8] {
        self.call.text.and_then(command::program).unwrap_or(self.call.name)
    }
}

/// Coordinators whose rules a program may concern, by its names only: the same for all its runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Candidates {
    /// It may be one of these.
    coordinators: Coordinating,
    /// It may be a step of one of these, whoever started it.
    anywhere: Coordinating,
}

impl StepRules {
    /// Coordinators whose rules the program of an exec may concern, given the names of interpreters.
    pub fn candidates(&self, exec: &Exec<'_>, interpreters: &HashSet<Vec<u8>>) -> Candidates {
        let names = variants(Invocation::of(exec, interpreters).name);
        let set = |holds: &dyn Fn(&Coordinator) -> bool| {
            let all = self.coordinators.iter().enumerate();
            all.filter(|(_, it)| holds(it)).fold(0, |set, (at, _)| set | 1 << at)
        };
        Candidates {
            coordinators: set(&|coordinator| coordinator.may_be(names)),
            anywhere: set(&|coordinator| coordinator.may_have_anywhere(names)),
        }
    }

    /// What a program run is, where `started_by` are the coordinators that the process runs that started it, if this is
    /// its first exec. `variables` are those of its environment that rules read.
    ///
    /// Tables are asked first, then the coordinators that started it, then those whose steps may be anywhere.
    pub fn step_of(
        &self,
        exec: &Exec<'_>,
        interpreters: &HashSet<Vec<u8>>,
        candidates: Candidates,
        process: RunBy,
        started_by: Coordinating,
        variables: &[(Vec<u8>, Vec<u8>)],
    ) -> RunOf {
        let by_variable = if variables.is_empty() { 0 } else { self.by_variable() };
        let anywhere = candidates.anywhere | by_variable;
        // Most program runs are neither.
        if candidates.coordinators | started_by | anywhere == 0 && self.declared.is_empty() {
            return RunOf::default();
        }
        let run = Run::of(exec, interpreters);
        let of = |set: Coordinating| {
            let all = self.coordinators.iter().enumerate();
            all.filter(move |(at, _)| set & 1 << at != 0)
        };
        let coordinating = of(candidates.coordinators)
            .filter(|(_, coordinator)| coordinator.is(&run))
            .fold(0, |set, (at, _)| set | 1 << at);
        let ruled = |set: Coordinating, is_child: bool| {
            of(set).find_map(|(_, coordinator)| coordinator.step(&run, is_child, variables))
        };
        let with = |step: Option<Named>, is_told| RunOf { coordinating, step, is_told };
        let is_of = |name: &str| of(started_by).any(|(_, it)| it.name == name);
        if let Some(named) = self.declared.of(&run, process, is_of) {
            return with(Some(named), false);
        }
        match ruled(started_by, true) {
            Some(named) => with(Some(named), true),
            None => with(ruled(anywhere, false), false),
        }
    }
}

/// The process of a program run.
#[derive(Debug, Clone, Copy)]
pub struct RunBy {
    /// Its ID where the recorder is.
    pub pid: i32,
    /// Its ID in its own pid namespace, where its coordinator is, too.
    pub own_pid: i32,
    /// When it ran the program, in nanoseconds since 1970.
    pub unix_ns: u64,
}

/// What a program run is for steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunOf {
    /// The coordinators that it is.
    pub coordinating: Coordinating,
    /// The step that begins with it, unless it merely inherits the signs of one around.
    pub step: Option<Named>,
    /// True if it is one because its coordinator started it, so that it inherits nothing.
    pub is_told: bool,
}
