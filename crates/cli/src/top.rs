//! `proctrace top`: its view of a recording that is made, with programs named by the rules, as `report` does.

use std::process::ExitCode;

use anyhow::{Result, bail};
use proctrace_analysis::LiveClassifier;
use proctrace_live::{Classify, ProgramName};
use proctrace_recorder::args::TopArgs;
use proctrace_recorder::top;
use proctrace_wire::Exec;

use crate::args::{RulesArgs, With};
use crate::exit_code::Misuse;
use crate::{NAME, rules};

pub(crate) fn run(args: &With<TopArgs, RulesArgs>) -> Result<ExitCode> {
    if !args.more.steps.is_empty() {
        let why =
            "top shows processes: report --section steps has steps when the recording is complete";
        bail!(Misuse(why.to_owned()));
    }
    top::run(&args.base, NAME, || {
        let rules = rules::chosen(&args.more)?;
        Ok(Box::new(ByRules(LiveClassifier::new(rules))))
    })
}

/// Classifies by the rules of the analysis.
struct ByRules(LiveClassifier);

impl Classify for ByRules {
    fn classify(&mut self, exec: &Exec<'_>, spawner: Option<&ProgramName>) -> ProgramName {
        let spawner = spawner.map(|s| (s.category.as_deref().unwrap_or(""), s.name.as_str()));
        let program = self.0.classify(exec, spawner);
        let category = Some(program.category().to_owned());
        ProgramName { category, name: program.name }
    }
}
