//! The stable codes of findings.

use std::fmt;

use serde::Serialize;
use strum::{IntoStaticStr, VariantArray};

/// The kind of a finding. Codes are stable: a published number keeps its meaning.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, Serialize, VariantArray,
)]
#[serde(into = "&'static str")]
pub enum Code {
    /// A count exceeds the baseline by more than is allowed.
    #[strum(serialize = "PT001")]
    Count,
    /// A metric exceeds its absolute limit.
    #[strum(serialize = "PT002")]
    Absolute,
    /// A measurement is worse than the baseline by more than is allowed.
    #[strum(serialize = "PT003")]
    Measured,
    /// Noise hides whether a limit is met.
    #[strum(serialize = "PT004")]
    Noise,
    /// There are too few runs to decide.
    #[strum(serialize = "PT005")]
    FewRuns,
    /// Some runs meet the limit, and others do not.
    #[strum(serialize = "PT006")]
    RunsDisagree,
    /// A rule matches nothing that was recorded.
    #[strum(serialize = "PT007")]
    Unmatched,
    /// Later rules override a rule for everything it matches.
    #[strum(serialize = "PT008")]
    Shadowed,
    /// There is no baseline for a relative limit.
    #[strum(serialize = "PT009")]
    NoBaseline,
    /// A metric was not measured in every run.
    #[strum(serialize = "PT010")]
    NotMeasured,
    /// A recording is compared although it cannot be trusted.
    #[strum(serialize = "PT011")]
    Doubtful,
    /// The two sides were recorded on different machines.
    #[strum(serialize = "PT012")]
    OtherMachine,
    /// A recording does not know a metric that a rule selects.
    #[strum(serialize = "PT013")]
    Unknown,
    /// Others used more of the machine on one side than on the other.
    #[strum(serialize = "PT014")]
    Busy,
}

impl Code {
    /// All codes.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The code itself: "PT001".
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Finds a code by name, ignoring case.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.name().eq_ignore_ascii_case(name))
    }

    /// A short heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Count => "count worse than the baseline",
            Self::Absolute => "absolute limit violated",
            Self::Measured => "measurement worse than the baseline",
            Self::Noise => "too much noise to decide",
            Self::FewRuns => "too few runs to decide",
            Self::RunsDisagree => "results differ between runs",
            Self::Unmatched => "rule matches no metric",
            Self::Shadowed => "rule overridden by later rules",
            Self::NoBaseline => "no baseline",
            Self::NotMeasured => "not measured",
            Self::Doubtful => "a recording cannot be trusted",
            Self::OtherMachine => "different numbers of CPUs",
            Self::Unknown => "metric not available",
            Self::Busy => "the machine was busier on one side",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_own_name_and_is_found_by_it() {
        for (at, code) in Code::ALL.iter().enumerate() {
            assert_eq!(code.name(), format!("PT{:03}", at + 1));
            assert_eq!(Code::named(&code.name().to_lowercase()), Some(*code));
            assert_eq!(serde_json::to_value(code).unwrap(), code.name());
        }
        assert_eq!(Code::named("PT999"), None);
    }
}
