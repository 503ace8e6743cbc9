//! What names programs: the rules of the analysis, in builds that have it.

use anyhow::Result;
use proctrace_live::Classify;

use crate::args::TopArgs;

/// Names programs by the rules, as `report` does.
#[cfg(feature = "analyse")]
pub(super) fn classifier(args: &TopArgs) -> Result<Box<dyn Classify>> {
    let rules = crate::rules::chosen(&args.rules)?;
    Ok(Box::new(ByRules(proctrace_analysis::LiveClassifier::new(rules))))
}

/// Without the analysis there are no rules.
#[cfg(not(feature = "analyse"))]
#[expect(clippy::unnecessary_wraps, reason = "the rules of the other build can be wrong")]
pub(super) fn classifier(_: &TopArgs) -> Result<Box<dyn Classify>> {
    Ok(Box::new(proctrace_live::ByFile))
}

/// Classifies by the rules of the analysis.
#[cfg(feature = "analyse")]
struct ByRules(proctrace_analysis::LiveClassifier);

#[cfg(feature = "analyse")]
impl Classify for ByRules {
    fn classify(
        &mut self,
        exec: &proctrace_wire::Exec<'_>,
        spawner: Option<&proctrace_live::ProgramName>,
    ) -> proctrace_live::ProgramName {
        let spawner = spawner.map(|s| (s.category.as_deref().unwrap_or(""), s.name.as_str()));
        let program = self.0.classify(exec, spawner);
        let category = Some(program.category().to_owned());
        proctrace_live::ProgramName { category, name: program.name }
    }
}
