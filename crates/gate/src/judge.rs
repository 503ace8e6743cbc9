//! Judges one metric by one rule.

use proctrace_findings::{MetricFamily, Worse};

use crate::budget::Rule;
use crate::code::Code;
use crate::numbers::{Numbers, is_exact};
use crate::verdict::Status;
use crate::words;
use proctrace_stats::{
    FEWEST_FOR_INTERVAL, Interval, least_probability, mann_whitney, mean, median,
};

/// Maximum probability that a measured metric fails by chance if its true ratio to the baseline is
/// exactly at the limit.
pub(crate) const CHANCE: f64 = 0.01;

/// The result of judging a metric.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Judgement {
    pub(crate) status: Status,
    pub(crate) code: Option<Code>,
    pub(crate) p_value: Option<f64>,
    pub(crate) message: String,
    /// The limit that decided, in a few words.
    pub(crate) allowed: Option<String>,
    /// Excess over the limit, relative to the limit; 0 if the limit is met or there is none. For a
    /// count, a limit below 1 is treated as 1: two instead of none is not infinitely bad.
    pub(crate) beyond: f64,
}

/// The result for one part of a rule: relative to the baseline, or absolute.
struct Part {
    status: Status,
    code: Code,
    p_value: Option<f64>,
    says: String,
    /// The limit in a few words: "at most 6,094".
    allowed: String,
    beyond: f64,
}

/// Judges the values of one metric; both series contain one value per run.
pub(crate) fn judge(
    rule: &Rule,
    family: &MetricFamily,
    before: Option<&[f64]>,
    after: &[f64],
    numbers: &Numbers,
) -> Judgement {
    let interval = numbers.interval_percent;
    let worse = rule.worse.unwrap_or(family.worse);
    let figure = Figure {
        family,
        worse,
        min_change: rule.min_change.unwrap_or(0.0),
        min_runs: rule.min_runs.unwrap_or(1),
    };
    let relative = rule.limit.relative_percent.map(|percent| match before {
        None => Part {
            status: Status::Unjudged,
            code: Code::NoBaseline,
            p_value: None,
            says: format!("{} is allowed, but no baseline was given", figure.allowance(percent)),
            allowed: figure.allowance(percent),
            beyond: 0.0,
        },
        Some(before) if is_exact(family.kind) => figure.count(percent, before, after),
        Some(before) => figure.measured(percent, before, after, interval),
    });
    let absolute = rule.limit.absolute.map(|limit| figure.absolute(limit, after));
    // The worse of the two; the relative one if they are equal.
    let worst = match (relative, absolute) {
        (Some(relative), Some(absolute)) if absolute.status > relative.status => Some(absolute),
        (Some(relative), _) => Some(relative),
        (None, absolute) => absolute,
    };
    let comparison = words::comparison(family, numbers, is_exact(family.kind));
    match worst {
        Some(part) => Judgement {
            status: part.status,
            code: (part.status != Status::Passed).then_some(part.code),
            p_value: part.p_value,
            message: format!("{comparison}; {}", part.says),
            allowed: Some(part.allowed),
            beyond: part.beyond,
        },
        None => Judgement {
            status: Status::Passed,
            code: None,
            p_value: None,
            message: comparison,
            allowed: None,
            beyond: 0.0,
        },
    }
}

struct Figure<'a> {
    family: &'a MetricFamily,
    worse: Worse,
    min_change: f64,
    min_runs: usize,
}

impl Figure<'_> {
    fn is_beyond(&self, value: f64, limit: f64) -> bool {
        // Tolerance for rounding: 1.07 * 1,000 is not exactly 1,070 in floating point.
        let slack = 1e-9 * limit.abs();
        match self.worse {
            Worse::Higher => value > limit + slack,
            Worse::Lower => value < limit - slack,
        }
    }

    /// Excess of the centre of these values over a limit, relative to the limit.
    fn beyond(&self, after: &[f64], limit: f64) -> f64 {
        let exact = is_exact(self.family.kind);
        let centre = if exact { median(after) } else { mean(after) }.unwrap_or(limit);
        let by = match self.worse {
            Worse::Higher => centre - limit,
            Worse::Lower => limit - centre,
        };
        let limit = if exact { limit.abs().max(1.0) } else { limit.abs() };
        if by > 0.0 { by / limit } else { 0.0 }
    }

    /// The allowed ratio to the baseline: 1.05 for 5 %.
    fn factor(&self, percent: f64) -> f64 {
        match self.worse {
            Worse::Higher => 1.0 + percent / 100.0,
            Worse::Lower => (1.0 - percent / 100.0).max(0.0),
        }
    }

    /// The allowed change as text: "an increase of up to 5 % or 100 ms", whichever is more.
    fn allowance(&self, percent: f64) -> String {
        let (any, some) = match self.worse {
            Worse::Higher => ("no increase", "an increase"),
            Worse::Lower => ("no decrease", "a decrease"),
        };
        let small = words::value(self.family, self.min_change);
        match (percent == 0.0, self.min_change > 0.0) {
            (true, false) => any.into(),
            (true, true) => format!("{some} of up to {small}"),
            (false, false) => format!("{some} of up to {percent} %"),
            (false, true) => format!("{some} of up to {percent} % or {small}"),
        }
    }

    /// The limit of a count relative to its baseline as text: "the baseline + 5 %".
    fn relative_to(&self, baseline: &str, percent: f64) -> String {
        let sign = match self.worse {
            Worse::Higher => '+',
            Worse::Lower => '-',
        };
        if percent == 0.0 { baseline.into() } else { format!("{baseline} {sign} {percent} %") }
    }

    fn bound(&self) -> &'static str {
        match self.worse {
            Worse::Higher => "at most",
            Worse::Lower => "at least",
        }
    }

    /// The last integer within the limit of a count.
    fn whole(&self, limit: f64) -> f64 {
        match self.worse {
            Worse::Higher => (limit * (1.0 + 1e-9)).floor(),
            Worse::Lower => (limit * (1.0 - 1e-9)).ceil(),
        }
    }

    /// The last count that passes: changes smaller than `min_change` pass as well.
    fn allowed(&self, limit: f64, worst: f64) -> f64 {
        if self.min_change <= 0.0 {
            return limit;
        }
        match self.worse {
            Worse::Higher => limit.max((worst + self.min_change).ceil() - 1.0),
            Worse::Lower => limit.min((worst - self.min_change).floor() + 1.0),
        }
    }

    /// Judges a count relative to the worst baseline.
    fn count(&self, percent: f64, before: &[f64], after: &[f64]) -> Part {
        let values = before.iter().copied();
        let worst = match self.worse {
            Worse::Higher => values.max_by(f64::total_cmp),
            Worse::Lower => values.min_by(f64::total_cmp),
        }
        .unwrap_or(0.0);
        let limit = worst * self.factor(percent);
        let is_beyond =
            |value: f64| self.is_beyond(value, limit) && (value - worst).abs() >= self.min_change;
        let runs = after.iter().filter(|value| is_beyond(**value)).count();
        let baseline = if before.len() == 1 { "the baseline" } else { "the worst baseline" };
        let allowed = format!(
            "{} {}",
            self.bound(),
            words::value(self.family, self.whole(self.allowed(limit, worst)))
        );
        let says = format!("{allowed} is allowed ({})", self.relative_to(baseline, percent));
        let (status, code, says) = if runs == after.len() {
            (Status::Regression, Code::Count, says)
        } else if is_beyond(median(after).unwrap_or(0.0)) {
            let says = format!("{says}, but {runs} of {} runs are beyond it", after.len());
            (Status::Inconclusive, Code::RunsDisagree, says)
        } else {
            (Status::Passed, Code::Count, says)
        };
        Part { status, code, p_value: None, says, allowed, beyond: self.beyond(after, limit) }
    }

    /// Judges any metric by an absolute limit.
    fn absolute(&self, limit: f64, after: &[f64]) -> Part {
        let runs = after.iter().filter(|value| self.is_beyond(**value, limit)).count();
        let allowed = format!("{} {}", self.bound(), words::value(self.family, limit));
        let says = format!("{allowed} is allowed");
        let (status, code, says) = if runs == after.len() && runs < self.min_runs {
            let few = if runs == 1 { "1 run is".to_owned() } else { format!("{runs} runs are") };
            let says = format!("{says}, but {few} too few to decide: {} are needed", self.min_runs);
            (Status::Inconclusive, Code::FewRuns, says)
        } else if runs == after.len() {
            (Status::Regression, Code::Absolute, says)
        } else if runs > 0 {
            let says = format!("{says}, but {runs} of {} runs are beyond it", after.len());
            (Status::Inconclusive, Code::RunsDisagree, says)
        } else {
            (Status::Passed, Code::Absolute, says)
        };
        Part { status, code, p_value: None, says, allowed, beyond: self.beyond(after, limit) }
    }

    /// Judges a measured metric relative to the baselines: by the interval of the ratio of means,
    /// and by a test whether the candidate is worse than the worst allowed value.
    fn measured(
        &self,
        percent: f64,
        before: &[f64],
        after: &[f64],
        interval: Option<Interval>,
    ) -> Part {
        let allowed = self.allowance(percent);
        let centre = mean(before).unwrap_or(0.0);
        // Small absolute changes are allowed whatever their percentage.
        let small = |value: f64| match self.worse {
            Worse::Higher => value + self.min_change,
            Worse::Lower => value - self.min_change,
        };
        let factor = match self.worse {
            Worse::Higher if centre > 0.0 => self.factor(percent).max(small(centre) / centre),
            Worse::Lower if centre > 0.0 => self.factor(percent).min(small(centre) / centre),
            Worse::Higher | Worse::Lower => self.factor(percent),
        };
        let beyond = self.beyond(after, centre * factor);
        let part = |status, code, p_value, says| Part {
            status,
            code,
            p_value,
            says,
            allowed: allowed.clone(),
            beyond,
        };
        if before.iter().chain(after).all(|value| *value == 0.0) {
            return part(Status::Passed, Code::Measured, None, format!("{allowed} is allowed"));
        }
        let limits: Vec<f64> = if centre > 0.0 {
            before.iter().map(|value| value * factor).collect()
        } else {
            before.iter().map(|value| small(*value)).collect()
        };
        let p_value = mann_whitney(after, &limits).map(|test| match self.worse {
            Worse::Higher => test.p_greater,
            Worse::Lower => test.p_less,
        });
        if interval.is_some_and(|interval| self.lies_within(interval, factor)) {
            let says = format!("{allowed} is allowed, and the interval lies within the limit");
            return part(Status::Passed, Code::Measured, p_value, says);
        }
        // If a value before is 0 there is no ratio and no interval: then only the test decides, and
        // values within the range of the baselines pass.
        let has_interval = before.len().min(after.len()) >= FEWEST_FOR_INTERVAL;
        let reach = limits.iter().copied().reduce(|a, b| match self.worse {
            Worse::Higher => a.max(b),
            Worse::Lower => a.min(b),
        });
        if interval.is_none()
            && has_interval
            && reach.is_some_and(|reach| !after.iter().any(|value| self.is_beyond(*value, reach)))
        {
            let says = format!("{allowed} is allowed, and all runs lie within the limit");
            return part(Status::Passed, Code::Measured, p_value, says);
        }
        let is_beyond = match interval {
            Some(interval) => self.lies_beyond(interval, factor),
            None => has_interval && p_value.is_some_and(|p| p <= CHANCE),
        };
        let (n, m) = (before.len(), after.len());
        if !has_interval {
            let says = format!(
                "{allowed} is allowed, but {n} and {m} runs give no interval (at least \
                 {FEWEST_FOR_INTERVAL} on each side are needed)"
            );
            return part(Status::Inconclusive, Code::FewRuns, p_value, says);
        }
        let p = p_value.unwrap_or(1.0);
        if is_beyond && p <= CHANCE {
            let says = format!("{allowed} is allowed, and the excess is significant (p = {p:.4})");
            return part(Status::Regression, Code::Measured, p_value, says);
        }
        if is_beyond && least_probability(m, n) > CHANCE {
            let says = format!(
                "{allowed} is allowed, but {n} and {m} runs are too few to exclude chance \
                 (p = {p:.2})"
            );
            return part(Status::Inconclusive, Code::FewRuns, p_value, says);
        }
        let says = if is_beyond {
            format!(
                "{allowed} is allowed: the interval lies beyond that, but by the ranks of the runs \
                 chance is not excluded (p = {p:.3}, at most {CHANCE} is needed)"
            )
        } else {
            format!("{allowed} is allowed, but noise hides whether the limit is met")
        };
        part(Status::Inconclusive, Code::Noise, p_value, says)
    }

    /// The interval is of the change in percent, the factor is the allowed ratio.
    fn lies_within(&self, interval: Interval, factor: f64) -> bool {
        let percent = 100.0 * (factor - 1.0);
        match self.worse {
            Worse::Higher => interval.high <= percent,
            Worse::Lower => interval.low >= percent,
        }
    }

    fn lies_beyond(&self, interval: Interval, factor: f64) -> bool {
        let percent = 100.0 * (factor - 1.0);
        match self.worse {
            Worse::Higher => interval.low > percent,
            Worse::Lower => interval.high < percent,
        }
    }
}

#[cfg(test)]
mod tests;
