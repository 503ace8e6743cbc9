//! The result of a gate: the verdict, the findings, and every checked metric.

use proctrace_findings::Advice;
use proctrace_report::escape;
use serde::Serialize;

use crate::budget::{Origin, Rule};
use crate::code::Code;
use crate::numbers::Numbers;

/// Verdict of the gate on the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No rule that fails the gate is violated.
    Pass,
    /// No rule is certainly violated, but for at least one it is unknown.
    Inconclusive,
    /// At least one rule is violated.
    Regression,
    /// Nothing was judged: a recording does not know a metric that a rule selects.
    Refused,
}

impl Verdict {
    /// The exit status of a gate; 1 is also used for errors, 2 for wrong usage.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Regression => 3,
            Self::Inconclusive => 4,
            Self::Refused => 1,
        }
    }
}

/// The result of checking one metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The limit is met.
    Passed,
    /// It could not be checked.
    Unjudged,
    /// It is unknown whether the limit is met.
    Inconclusive,
    /// The limit is violated.
    Regression,
}

/// The effect of a finding on the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// There is no verdict.
    Refuses,
    /// The verdict is a regression.
    Fails,
    /// The verdict is at best inconclusive.
    Inconclusive,
    /// It is reported without affecting the verdict.
    Warns,
}

impl Effect {
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Refuses => "refused",
            Self::Fails => "failure",
            Self::Inconclusive => "inconclusive",
            Self::Warns => "warning",
        }
    }
}

/// The complete result of a gate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Verdict on the payload.
    pub verdict: Verdict,
    /// The recorded command of the first candidate.
    pub command: Vec<String>,
    /// Names of the baseline recordings.
    pub baselines: Vec<String>,
    /// Names of the judged recordings.
    pub candidates: Vec<String>,
    /// The rules, in order.
    pub rules: Vec<RuleInfo>,
    /// The findings, the most severe first: one for each exceeded limit.
    pub findings: Vec<Finding>,
    /// Findings with the same cause, the group with the most severe one first. Each finding is in
    /// exactly one group.
    pub groups: Vec<Group>,
    /// Every metric that a rule selects.
    pub checks: Vec<Check>,
}

/// A rule in its source form.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleInfo {
    /// Limit in `--limit` notation.
    pub text: String,
    /// Place at which it is defined.
    pub origin: Origin,
    /// The reason given for it.
    pub because: Option<String>,
}

impl RuleInfo {
    pub(crate) fn of(rule: &Rule) -> Self {
        Self { text: rule.to_string(), origin: rule.origin.clone(), because: rule.because.clone() }
    }
}

/// A problem found by the gate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The kind of problem.
    pub code: Code,
    /// The effect on the verdict.
    pub effect: Effect,
    /// The metric in budget notation; None if it does not concern a single one.
    pub metric: Option<String>,
    /// Index of the rule; None if it concerns the recordings.
    pub rule: Option<usize>,
    /// A sentence with the numbers.
    pub message: String,
    /// The numbers.
    pub numbers: Option<Numbers>,
    /// The limit in a few words: "at most 6,094".
    pub allowed: Option<String>,
    /// Metrics that changed along with it, or its largest components: only for the first findings.
    pub contributors: Vec<Contributor>,
    /// Index of its group.
    pub group: usize,
    /// The cause of its group in a sentence; None if it is not known.
    pub cause: Option<String>,
}

/// Findings with the same cause; a finding without a known cause is a group by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// The cause; None if it is not known.
    pub cause: Option<Cause>,
    /// The effect of the most severe finding.
    pub effect: Effect,
    /// Indices of the findings; the first one is the most severe.
    pub findings: Vec<usize>,
    /// The programs concerned.
    pub programs: Vec<String>,
    /// Advice of `proctrace advise` about these programs.
    pub advice: Vec<GroupAdvice>,
}

/// Activity of a program, or in a directory, that exceeds what it was before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// Kind of what increased.
    pub kind: CauseKind,
    /// The program that does more than before; None if it is a directory or a group of steps.
    pub program: Option<String>,
    /// The directory that is searched more often.
    pub directory: Option<String>,
    /// The group of steps that takes more, or in which the program does that; None if it is not known.
    pub step: Option<String>,
    /// A sentence with the numbers: "+12 sed, started by build.sh: 130 -> 142 processes".
    pub text: String,
}

/// Kinds of what can increase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// Processes, which a program starts.
    Starts,
    /// Threads of a program.
    Threads,
    /// CPU time of a program.
    CpuTime,
    /// Failed look-ups of a program or in a directory.
    FailedLookups,
    /// Processes that outlive their parent.
    Detached,
    /// Processes that do not exit with 0.
    Failed,
    /// Steps of a group: how many there are, how many fail, what they take.
    Steps,
}

/// Advice about the programs of a group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupAdvice {
    /// Advice as `proctrace advise --json` prints it.
    #[serde(flatten)]
    pub advice: Advice,
    /// The predicted gain of wall time: "1.20 s (0.90 s to 1.50 s), 34 %".
    pub wall: String,
    /// The predicted gain of CPU time.
    pub cpu: String,
}

/// A metric that changed along with another one and may explain it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contributor {
    /// The metric in budget notation.
    pub metric: String,
    /// Its value before; None without a baseline.
    pub before: Option<f64>,
    /// Its value after.
    pub after: f64,
    /// The change from before to after; the value itself without a baseline.
    pub change: f64,
    /// The change as text: "+600 (1,204 before, 1,804 after)".
    pub message: String,
}

/// A checked metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// The metric in budget notation.
    pub metric: String,
    /// The rule that decides it.
    pub rule: usize,
    /// The result.
    pub status: Status,
    /// Code of the reason it did not pass.
    pub code: Option<Code>,
    /// The numbers; None if it was not measured.
    pub numbers: Option<Numbers>,
    /// The probability of a difference this large by chance, if the true ratio were exactly at the
    /// limit; None for exact comparisons.
    pub p_value: Option<f64>,
    /// A sentence with the numbers.
    pub message: String,
}

impl Report {
    /// Number of groups of findings with this effect.
    pub fn count(&self, effect: Effect) -> usize {
        self.groups.iter().filter(|group| group.effect == effect).count()
    }

    /// The first and most severe finding of a group.
    pub fn first_of(&self, group: &Group) -> Option<&Finding> {
        self.findings.get(*group.findings.first()?)
    }

    /// Number of metrics that passed.
    pub fn passed(&self) -> usize {
        self.checks.iter().filter(|check| check.status == Status::Passed).count()
    }

    /// The verdict in one line.
    pub fn headline(&self) -> String {
        let plural =
            |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        let mut parts = Vec::new();
        for (effect, one, many) in [
            (Effect::Refuses, "metric not available", "metrics not available"),
            (Effect::Fails, "failure", "failures"),
            (Effect::Inconclusive, "inconclusive", "inconclusive"),
            (Effect::Warns, "warning", "warnings"),
        ] {
            let n = self.count(effect);
            let of_effect = self.groups.iter().filter(|group| group.effect == effect);
            let limits: usize = of_effect.map(|group| group.findings.len()).sum();
            if n > 0 {
                let of = if limits > n { format!(" ({limits} limits)") } else { String::new() };
                parts.push(plural(n, one, many) + &of);
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
            plural(self.checks.len(), "metric", "metrics"),
            plural(self.rules.len(), "rule", "rules")
        );
        match parts[..] {
            [] => format!("{verdict}: {checked}"),
            _ => format!("{verdict}: {}; {checked}", parts.join(", ")),
        }
    }

    /// The report as JSON with a trailing line feed.
    ///
    /// # Errors
    ///
    /// None known: all fields are serialisable.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        escape::json_text(self)
    }
}
