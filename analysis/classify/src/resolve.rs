//! Resolves verdicts to programs, once the applicable packs and all spawners are known.

use std::collections::HashMap;

use proctrace_findings::Class;

use crate::Program;
use crate::examine::{Clue, Examiner, RuleNumber, Verdict};
use crate::fast::{FastIndexSet, FastMap};
use crate::names::{Names, text};
use crate::pack::{Pack, Source, Tier};
use crate::rules::Rules;

/// Classes of the programs of a recording.
#[derive(Debug, Clone, Default)]
pub struct Classification {
    /// Packs in order of precedence.
    pub packs: Vec<PackUse>,
    /// Programs and the rules that matched them.
    pub outcomes: Vec<Outcome>,
    /// Number of the outcome of each run.
    pub of_run: Vec<u32>,
}

/// Use of a pack.
#[derive(Debug, Clone)]
pub struct PackUse {
    pub name: String,
    pub asked_for: bool,
    pub applies: bool,
    /// The program that selected it.
    pub told_by: Option<String>,
    /// Lines of its rules, and the number of execs each matched.
    pub rules: Vec<(usize, u64)>,
}

/// A program and the rule that matched it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Outcome {
    pub program: u32,
    /// `None` if no rule matched.
    pub rule: Option<RuleNumber>,
}

/// The programs of a recording, without duplicates.
#[derive(Debug, Default)]
pub struct Programs {
    programs: FastIndexSet<Program>,
}

impl Programs {
    pub fn number_of(&mut self, program: Program) -> u32 {
        u32::try_from(self.programs.insert_full(program).0).unwrap_or(u32::MAX)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Program> {
        self.programs.iter()
    }

    pub fn into_inner(self) -> Vec<Program> {
        self.programs.into_iter().collect()
    }
}

/// The execs and processes of a recording by number; the execs in the order in which they were examined.
pub trait Runs {
    /// Number of execs.
    fn count(&self) -> usize;
    /// Number of the program that forked the process of an exec; `None` if nobody is known to have
    /// forked it. The programs of all execs before this one are set.
    fn spawner(&self, run: u32) -> Option<u32>;
    /// Sets the program of an exec.
    fn set_program(&mut self, run: u32, program: u32);
    /// Number of the process that called exec.
    fn process(&self, run: u32) -> u32;
    /// Sets the role of a process, if the program that it ran last, its own or its forker's, is that of this exec.
    fn set_role(&mut self, process: u32, run: u32, role: u32);
}

impl Examiner<'_> {
    /// Assigns programs and roles to execs; returns the role names as well.
    pub fn resolve(self, runs: &mut impl Runs, programs: &mut Programs) -> (Classification, Names) {
        let mut resolver = Resolver::new(&self, programs);
        let examined = self.of_run.iter().take(runs.count());
        for (run, verdict) in (0..).zip(examined) {
            let program = resolver.run(*verdict, runs.spawner(run));
            runs.set_program(run, program);
        }
        let classification = resolver.classification;
        let mut roles = self.roles;
        for found in &self.roles_of_runs {
            let outcome = classification.outcome_of_run(found.run);
            if outcome.is_some_and(|outcome| outcome.rule == Some(found.rule)) {
                runs.set_role(runs.process(found.run), found.run, found.role);
            }
        }
        let texts = self.clue_texts.into_inner();
        for clue in &self.clues {
            if let Some(rule) = classification.outcome_of_run(clue.run).and_then(|o| o.rule)
                && let Some(role) = role_by_clue(self.rules, rule, clue, &texts)
            {
                runs.set_role(clue.process, clue.run, roles.number_of(&role));
            }
        }
        (classification, roles)
    }
}

impl Classification {
    /// Warnings about the packs that were asked for: rules that matched nothing, by pack.
    pub fn idle_rules(&self) -> Vec<String> {
        self.packs
            .iter()
            .filter(|pack| pack.asked_for)
            .filter_map(|pack| {
                let idle = pack.rules.iter().filter(|(_, execs)| *execs == 0);
                let lines: Vec<String> = idle.map(|(line, _)| line.to_string()).collect();
                let rules = match &lines[..] {
                    [] => return None,
                    [line] => format!("the rule in line {line}"),
                    lines => format!("the rules in lines {}", lines.join(", ")),
                };
                Some(format!("{}: {rules} matched nothing in this recording", pack.name))
            })
            .collect()
    }

    pub(crate) fn outcome_of_run(&self, run: u32) -> Option<&Outcome> {
        self.outcomes.get(*self.of_run.get(run as usize)? as usize)
    }
}

struct Resolver<'a> {
    rules: &'a Rules,
    examiner: &'a Examiner<'a>,
    programs: &'a mut Programs,
    classification: Classification,
    outcome_numbers: HashMap<Outcome, u32>,
    /// Programs by verdict, and by the spawner's program where a rule depends on it.
    known: FastMap<(u32, Option<u32>), u32>,
    asks_spawner: Vec<bool>,
}

impl<'a> Resolver<'a> {
    fn new(examiner: &'a Examiner<'a>, programs: &'a mut Programs) -> Self {
        let rules = examiner.rules;
        let asks = |verdict: &Verdict| {
            verdict.rules.iter().any(|number| !rules.rule(*number).spawner.is_empty())
        };
        let packs = rules.packs.iter().map(|pack| pack_use(pack, examiner)).collect();
        Self {
            rules,
            examiner,
            programs,
            classification: Classification {
                packs,
                of_run: Vec::with_capacity(examiner.of_run.len()),
                ..Classification::default()
            },
            outcome_numbers: HashMap::new(),
            known: FastMap::default(),
            asks_spawner: examiner.verdicts.iter().map(asks).collect(),
        }
    }

    /// The program of the next run.
    fn run(&mut self, verdict: u32, spawner: Option<u32>) -> u32 {
        let key = (verdict, spawner.filter(|_| self.asks_spawner[verdict as usize]));
        let number = match self.known.get(&key) {
            Some(number) => *number,
            None => {
                let number = self.decide(&self.examiner.verdicts[verdict as usize], spawner);
                self.known.insert(key, number);
                number
            }
        };
        let outcome = self.classification.outcomes[number as usize];
        if let Some(rule) = outcome.rule {
            let pack = &mut self.classification.packs[rule.pack as usize];
            pack.rules[rule.rule as usize].1 += 1;
        }
        self.classification.of_run.push(number);
        outcome.program
    }

    fn decide(&mut self, verdict: &Verdict, spawner: Option<u32>) -> u32 {
        let spawner = spawner.map(|number| &self.programs.programs[number as usize]);
        let holds = |number: &&RuleNumber| {
            let patterns = &self.rules.rule(**number).spawner;
            self.classification.packs[number.pack as usize].applies
                && (patterns.is_empty()
                    || spawner.is_some_and(|spawner| {
                        patterns.iter().any(|pattern| {
                            pattern.matches(spawner.name.as_bytes())
                                || pattern.matches(spawner.group.as_bytes())
                        })
                    }))
        };
        let rule = verdict.rules.iter().find(holds).copied();
        let generic_class = || {
            let generic =
                |number: &&RuleNumber| self.rules.packs[number.pack as usize].tier == Tier::Generic;
            let rules = verdict.rules.iter().filter(generic).filter(holds);
            rules.into_iter().find_map(|number| self.rules.rule(*number).class)
        };
        let own_name = || text(&self.examiner.known[verdict.known as usize].called);
        let program = match rule.map(|number| self.rules.rule(number)) {
            Some(rule) => Program {
                class: rule.class.or_else(generic_class).unwrap_or(Class::Program),
                group: rule.group.clone(),
                name: rule.called.clone().unwrap_or_else(own_name),
            },
            None => Program::unknown(&own_name()),
        };
        let outcome = Outcome { program: self.programs.number_of(program), rule };
        let outcomes = &mut self.classification.outcomes;
        let next = u32::try_from(outcomes.len()).unwrap_or(u32::MAX);
        *self.outcome_numbers.entry(outcome).or_insert_with(|| {
            outcomes.push(outcome);
            next
        })
    }
}

fn pack_use(pack: &Pack, examiner: &Examiner<'_>) -> PackUse {
    let told_by = pack.selected_by.as_ref().and_then(|patterns| {
        let tells = |name: &&Vec<u8>| patterns.iter().any(|pattern| pattern.matches(name));
        examiner.known.iter().map(|known| &known.name).find(tells)
    });
    PackUse {
        name: pack.name.clone(),
        asked_for: pack.asked_for,
        applies: pack.asked_for || pack.selected_by.is_none() || told_by.is_some(),
        told_by: told_by.map(|name| text(name)),
        rules: pack.rules.iter().map(|rule| (rule.line, 0)).collect(),
    }
}

fn role_by_clue(rules: &Rules, rule: RuleNumber, clue: &Clue, texts: &[String]) -> Option<String> {
    let found = texts.get(clue.text as usize)?;
    rules.rule(rule).roles.iter().find_map(|role| {
        let word = match &role.source {
            Source::Directory(pattern) if clue.is_directory => pattern.find(found.as_bytes())?,
            Source::Rename(pattern) if !clue.is_directory => pattern.find(found.as_bytes())?,
            _ => return None,
        };
        Some(role.called.replace("{}", &String::from_utf8_lossy(word)))
    })
}
