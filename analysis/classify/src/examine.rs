//! Tests execs against all rules while a trace is read, before it is known which packs apply.
//!
//! The packs that apply are known only when all programs are, and command lines are not kept. So
//! each exec is reduced to a verdict: the rules it satisfies, in order of precedence.

use proctrace_wire::Exec;

use crate::call::{Invocation, joined, value_of, variants};
use crate::fast::{FastIndexSet, FastMap};
use crate::names::{Names, base, text};
use crate::pack::{Pack, Rule, Source, Tier};
use crate::pattern::Pattern;
use crate::rules::Rules;

/// A rule, identified by the numbers of its pack and of the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleNumber {
    pub pack: u32,
    pub rule: u32,
}

/// A program, identified by its file, name and interpreter.
#[derive(Debug)]
pub struct KnownProgram {
    pub name: Vec<u8>,
    /// The same without what is random in it: what the program is called.
    pub called: Vec<u8>,
    /// Rules that hold except for conditions on arguments, in order of precedence.
    candidates: Vec<RuleNumber>,
    /// The verdict, if arguments do not matter.
    verdict: Option<u32>,
}

/// The classification of an exec, pending which packs apply.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Verdict {
    /// Number of the program.
    pub known: u32,
    /// The rules that hold except for conditions on the spawner, in order.
    pub rules: Vec<RuleNumber>,
}

/// The role that an exec gets if this rule applies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoleOfRun {
    pub run: u32,
    pub rule: RuleNumber,
    pub role: u32,
}

/// Something from which the role of a process may be derived later.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clue {
    pub process: u32,
    /// The program run of the process at that time.
    pub run: u32,
    pub is_directory: bool,
    /// Number of the string.
    pub text: u32,
}

/// Examines execs as they are read.
#[derive(Debug)]
pub struct Examiner<'a> {
    pub rules: &'a Rules,
    key: Vec<u8>,
    known_of: FastMap<Vec<u8>, u32>,
    pub known: Vec<KnownProgram>,
    pub verdicts: FastIndexSet<Verdict>,
    /// Verdicts by run.
    pub of_run: Vec<u32>,
    pub(crate) roles_of_runs: Vec<RoleOfRun>,
    pub(crate) clues: Vec<Clue>,
    pub(crate) clue_texts: Names,
    pub roles: Names,
    reads_directories: bool,
    reads_renames: bool,
}

impl<'a> Examiner<'a> {
    pub fn new(rules: &'a Rules) -> Self {
        let any_role = |of: fn(&Source) -> bool| {
            let roles = rules.packs.iter().flat_map(|pack| &pack.rules);
            roles.flat_map(|rule| &rule.roles).any(|role| of(&role.source))
        };
        Self {
            rules,
            key: Vec::new(),
            known_of: FastMap::default(),
            known: Vec::new(),
            verdicts: FastIndexSet::default(),
            of_run: Vec::new(),
            roles_of_runs: Vec::new(),
            clues: Vec::new(),
            clue_texts: Names::default(),
            roles: Names::default(),
            reads_directories: any_role(|source| matches!(source, Source::Directory(_))),
            reads_renames: any_role(|source| matches!(source, Source::Rename(_))),
        }
    }

    /// Adds the exec that begins the next program run; returns the number of its program.
    pub fn exec(&mut self, exec: &Exec<'_>) -> u32 {
        let call = Invocation::of(exec, &self.rules.interpreters);
        let known = self.known(&call);
        let verdict = match self.known[known as usize].verdict {
            Some(verdict) => verdict,
            None => self.with_arguments(known, &call, exec),
        };
        self.of_run.push(verdict);
        known
    }

    /// Records the working directory of a process that does not call exec.
    pub fn directory(&mut self, process: u32, run: Option<u32>, path: &[u8]) {
        if self.reads_directories {
            self.clue(process, run, true, &text(base(path)));
        }
    }

    /// Records the name that a process gave itself.
    pub fn rename(&mut self, process: u32, run: Option<u32>, name: &str) {
        if self.reads_renames {
            self.clue(process, run, false, name);
        }
    }

    fn clue(&mut self, process: u32, run: Option<u32>, is_directory: bool, text: &str) {
        let Some(run) = run else { return };
        let text = self.clue_texts.number_of(text);
        self.clues.push(Clue { process, run, is_directory, text });
    }

    fn known(&mut self, call: &Invocation<'_>) -> u32 {
        self.key.clear();
        let kind = [u8::from(call.is_script), u8::from(call.text.is_some())];
        for part in [call.name, call.given, call.resolved, call.interpreter.unwrap_or(b"")] {
            self.key.extend_from_slice(part);
            self.key.push(0);
        }
        self.key.extend_from_slice(&kind);
        if let Some(number) = self.known_of.get(&self.key) {
            return *number;
        }
        let number = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        let candidates = candidates(self.rules, call);
        let reads_arguments =
            candidates.iter().any(|number| self.rules.rule(*number).reads_arguments());
        let verdict = (!reads_arguments)
            .then(|| self.verdict(Verdict { known: number, rules: candidates.clone() }));
        let called = call.called().into_owned();
        self.known.push(KnownProgram { name: call.name.to_vec(), called, candidates, verdict });
        self.known_of.insert(self.key.clone(), number);
        number
    }

    fn with_arguments(&mut self, known: u32, call: &Invocation<'_>, exec: &Exec<'_>) -> u32 {
        let arguments = joined(exec.argv);
        let run = u32::try_from(self.of_run.len()).unwrap_or(u32::MAX);
        let mut holding = Vec::new();
        for number in &self.known[known as usize].candidates {
            let rule = self.rules.rule(*number);
            if !arguments_hold(rule, call, &arguments) {
                continue;
            }
            holding.push(*number);
            let role = rule.roles.iter().find_map(|role| {
                let word = match &role.source {
                    Source::Argument(option) => value_of(exec.argv, option),
                    Source::Argv(pattern) => pattern.find(&arguments),
                    Source::Directory(pattern) => pattern.find(base(exec.cwd)),
                    Source::Rename(_) => None,
                };
                Some(role.called.replace("{}", &text(word?)))
            });
            if let Some(role) = role {
                let role = self.roles.number_of(&role);
                self.roles_of_runs.push(RoleOfRun { run, rule: *number, role });
            }
        }
        self.verdict(Verdict { known, rules: holding })
    }

    fn verdict(&mut self, verdict: Verdict) -> u32 {
        u32::try_from(self.verdicts.insert_full(verdict).0).unwrap_or(u32::MAX)
    }
}

impl Rules {
    pub fn rule(&self, number: RuleNumber) -> &Rule {
        &self.packs[number.pack as usize].rules[number.rule as usize]
    }
}

/// The rules that hold for a file, name and interpreter, in order of precedence: user rules;
/// experiment rules for executables, then for scripts and texts run by interpreters; generic rules.
pub(super) fn candidates(rules: &Rules, call: &Invocation<'_>) -> Vec<RuleNumber> {
    let of_system = rules.of_system(call.resolved) || rules.of_system(call.given);
    let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let mut found = Vec::new();
    for (pack_at, pack) in rules.packs.iter().enumerate() {
        for (rule_at, rule) in pack.rules.iter().enumerate() {
            if holds_without_arguments(rule, call, of_system) {
                let number = RuleNumber { pack: number(pack_at), rule: number(rule_at) };
                found.push((pack.tier, rank(pack, rule, call), number));
            }
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(.., number)| number).collect()
}

fn rank(pack: &Pack, rule: &Rule, call: &Invocation<'_>) -> u8 {
    let by_script = call.is_script && !rule.name.is_empty();
    u8::from(pack.tier == Tier::Experiment && (by_script || !rule.text.is_empty()))
}

fn holds_without_arguments(rule: &Rule, call: &Invocation<'_>, of_system: bool) -> bool {
    let met = |patterns: &[Pattern], texts: &[&[u8]]| {
        patterns.is_empty()
            || patterns.iter().any(|pattern| texts.iter().any(|text| pattern.matches(text)))
    };
    (of_system || !rule.system)
        && (rule.text.is_empty() || call.text.is_some())
        && met(&rule.file, &[call.given, call.resolved])
        && met(&rule.name, &variants(call.name))
        && match call.interpreter {
            Some(interpreter) => met(&rule.interpreter, &variants(interpreter)),
            None => rule.interpreter.is_empty(),
        }
}

pub(super) fn arguments_hold(rule: &Rule, call: &Invocation<'_>, arguments: &[u8]) -> bool {
    let any = |patterns: &[Pattern], text: &[u8]| patterns.iter().any(|p| p.matches(text));
    (rule.text.is_empty() || call.text.is_some_and(|text| any(&rule.text, text)))
        && (rule.argv.is_empty() || any(&rule.argv, arguments))
        && !any(&rule.without, arguments)
}
