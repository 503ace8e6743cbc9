//! What a gate says: a verdict, what was found, and every figure that was checked.

use proctrace_report::escape;
use serde::Serialize;

use crate::budget::{Origin, Rule};
use crate::code::Code;
use crate::numbers::Numbers;

/// Whether the payload may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No rule that fails the gate is broken.
    Pass,
    /// None is broken for certain, and of one that is not known.
    Inconclusive,
    /// One is broken.
    Regression,
    /// Nothing was judged: a recording does not know a figure that a rule is about.
    Refused,
}

impl Verdict {
    /// The exit status of a gate; 1 is also for errors, 2 for wrong usage.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Regression => 3,
            Self::Inconclusive => 4,
            Self::Refused => 1,
        }
    }
}

/// What came of checking one figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The limit is kept.
    Passed,
    /// It could not be checked.
    Unjudged,
    /// It is not known whether it is kept.
    Inconclusive,
    /// It is broken.
    Regression,
}

/// What a finding means for the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// There is no verdict.
    Refuses,
    /// The verdict is a regression.
    Fails,
    /// The verdict is at best inconclusive.
    Inconclusive,
    /// It is only said.
    Warns,
}

impl Effect {
    /// A word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Refuses => "refused",
            Self::Fails => "fails",
            Self::Inconclusive => "inconclusive",
            Self::Warns => "warning",
        }
    }
}

/// Everything a gate says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Whether the payload may pass.
    pub verdict: Verdict,
    /// What was recorded: the first candidate's command.
    pub command: Vec<String>,
    /// What it was compared with: names of recordings.
    pub baselines: Vec<String>,
    /// What was judged: names of recordings.
    pub candidates: Vec<String>,
    /// The rules, in order.
    pub rules: Vec<RuleInfo>,
    /// What is wrong, the worst first.
    pub findings: Vec<Finding>,
    /// Every figure that a rule is about.
    pub checks: Vec<Check>,
}

/// A rule, as it was written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleInfo {
    /// As a `--limit` is written.
    pub text: String,
    /// Where it was written.
    pub origin: Origin,
    /// Why it is there.
    pub because: Option<String>,
}

impl RuleInfo {
    pub(crate) fn of(rule: &Rule) -> Self {
        Self { text: rule.to_string(), origin: rule.origin.clone(), because: rule.because.clone() }
    }
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What it is about.
    pub code: Code,
    /// What it means for the verdict.
    pub effect: Effect,
    /// The figure, as it is written in a budget; None if it is about no single one.
    pub metric: Option<String>,
    /// Which of the rules; None if it is about the recordings.
    pub rule: Option<usize>,
    /// What was found, in a sentence with the numbers.
    pub message: String,
    /// The numbers.
    pub numbers: Option<Numbers>,
    /// What changed with it, or what the most of it is: only for the first findings.
    pub contributors: Vec<Contributor>,
}

/// A figure that changed with another one and says why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contributor {
    /// The figure, as it is written in a budget.
    pub metric: String,
    /// Its value before; None without a baseline.
    pub before: Option<f64>,
    /// Its value after.
    pub after: f64,
    /// After less before; the value itself without a baseline.
    pub change: f64,
    /// All of it in words: "+600 (1,204 before, 1,804 after)".
    pub message: String,
}

/// A figure that was checked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// The figure, as it is written in a budget.
    pub metric: String,
    /// The rule that decides it.
    pub rule: usize,
    /// What came of it.
    pub status: Status,
    /// Why it did not pass.
    pub code: Option<Code>,
    /// The numbers; None where it was not measured.
    pub numbers: Option<Numbers>,
    /// How likely so great a difference is by chance, if the true ratio were just the limit;
    /// None for what is compared exactly.
    pub p_value: Option<f64>,
    /// What was found, in a sentence with the numbers.
    pub message: String,
}

impl Report {
    /// How many of the findings have this effect.
    pub fn count(&self, effect: Effect) -> usize {
        self.findings.iter().filter(|finding| finding.effect == effect).count()
    }

    /// How many figures passed.
    pub fn passed(&self) -> usize {
        self.checks.iter().filter(|check| check.status == Status::Passed).count()
    }

    /// The verdict in one line.
    pub fn headline(&self) -> String {
        let plural =
            |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        let mut parts = Vec::new();
        for (effect, one, many) in [
            (Effect::Refuses, "figure not known", "figures not known"),
            (Effect::Fails, "failure", "failures"),
            (Effect::Inconclusive, "without an answer", "without an answer"),
            (Effect::Warns, "warning", "warnings"),
        ] {
            let n = self.count(effect);
            if n > 0 {
                parts.push(plural(n, one, many));
            }
        }
        let verdict = match self.verdict {
            Verdict::Pass => "Pass",
            Verdict::Inconclusive => "Inconclusive",
            Verdict::Regression => "Regression",
            Verdict::Refused => "Refused",
        };
        let checked = format!(
            "{}, {}",
            plural(self.checks.len(), "figure", "figures"),
            plural(self.rules.len(), "rule", "rules")
        );
        match parts[..] {
            [] => format!("{verdict}: {checked}"),
            _ => format!("{verdict}: {} ({checked})", parts.join(", ")),
        }
    }

    /// The report as JSON, with a line feed at its end.
    ///
    /// # Errors
    ///
    /// None that is known: all of it can be written as JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| escape::json(&text).into_owned() + "\n")
    }
}
