//! `proctrace top`: its view of a recording that is made, with programs named by the rules, as `report` does.

mod keys;
mod show;
mod terminal;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use proctrace_analysis::{LiveClassifier, LiveSteps};
use proctrace_live::{Classify, ProgramName, StepName};
use proctrace_recorder::args::TopArgs;
use proctrace_recorder::top;
use proctrace_wire::Exec;

use crate::args::{RulesArgs, With};
use crate::{NAME, rules};

pub(crate) fn run(args: &With<TopArgs, RulesArgs>) -> Result<ExitCode> {
    let classify = || -> Result<Box<dyn Classify>> {
        let rules = rules::chosen(&args.more)?;
        Ok(Box::new(ByRules {
            programs: LiveClassifier::new(rules.clone()),
            steps: LiveSteps::new(Arc::new(rules)),
        }))
    };
    top::run(&args.base, NAME, classify, Some(show::show))
}

/// Classifies by the rules of the analysis.
struct ByRules {
    programs: LiveClassifier,
    steps: LiveSteps,
}

impl Classify for ByRules {
    fn classify(&mut self, exec: &Exec<'_>, spawner: Option<&ProgramName>) -> ProgramName {
        let spawner = spawner.map(|s| (s.category.as_deref().unwrap_or(""), s.name.as_str()));
        let program = self.programs.classify(exec, spawner);
        let category = Some(program.category().to_owned());
        ProgramName { category, name: program.name }
    }

    fn knows_steps(&self) -> bool {
        true
    }

    fn environment(&mut self, id: u64, block: &[u8]) {
        self.steps.environment(id, block);
    }

    fn born(&mut self, process: u32, forker: Option<u32>) {
        self.steps.born(process, forker);
    }

    fn step(&mut self, exec: &Exec<'_>, process: u32, parent: Option<u32>, unix_ns: u64) {
        self.steps.exec(exec, process, parent, unix_ns);
    }

    fn gone(&mut self, process: u32) {
        self.steps.gone(process);
    }

    fn step_of(&self, process: u32) -> Option<u32> {
        self.steps.of(process)
    }

    fn named(&self, step: u32) -> Option<StepName> {
        let step = self.steps.all().get(step as usize)?;
        Some(StepName { name: step.named.name.clone(), parent: step.parent })
    }
}
