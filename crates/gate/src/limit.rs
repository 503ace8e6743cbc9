//! Limits such as `5%|500`, and parsing of complete `--limit` arguments.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::selector::Selector;

/// Limit of a metric: how much worse than the baseline it may be, an absolute limit, or both.
///
/// Written `5%`, `|500` or `5%|500`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Limit {
    /// Permitted increase over the baseline for the worse, in percent; 0 or greater.
    pub relative_percent: Option<f64>,
    /// The worst allowed value, in the family's unit; 0 or greater.
    pub absolute: Option<f64>,
}

/// An invalid limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LimitError {
    /// Byte offset in the text.
    pub at: usize,
    /// The problem, and the correct form.
    pub message: String,
}

/// An invalid `--limit` argument.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--limit '{text}', column {column}: {message}")]
pub struct ArgumentError {
    /// The whole argument.
    pub text: String,
    /// Column in characters, from 1.
    pub column: usize,
    /// The problem, and the correct form.
    pub message: String,
}

/// Parses a finite, non-negative number.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    let refused = |why: &str| Err(format!("{text} is {why}"));
    // Rejects "inf", "nan" and other forms that only Rust accepts; allows 1_000 as TOML does.
    if text.is_empty() {
        return Err("a number is missing".to_owned());
    }
    if text.contains(|c: char| !c.is_ascii_digit() && !"+-._eE".contains(c)) {
        return refused("not a number");
    }
    match text.replace('_', "").parse::<f64>() {
        Ok(value) if value.is_sign_negative() && value != 0.0 => {
            refused("negative: limits must be 0 or greater")
        }
        Ok(value) if value.is_finite() => Ok(value.abs()),
        Ok(_) => refused("too large"),
        Err(_) => refused("not a number"),
    }
}

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let error = |at, message: String| LimitError { at, message };
        let (relative, absolute) = match text.split_once('|') {
            Some((relative, absolute)) => (relative, Some(absolute)),
            None => (text, None),
        };
        let mut limit = Self::default();
        let relative_at = relative.len() - relative.trim_start().len();
        if !relative.trim().is_empty() {
            let Some(percent) = relative.trim().strip_suffix('%') else {
                let number = relative.trim();
                let message = format!(
                    "{number} is neither a relative nor an absolute limit: write 5% for at most 5 % \
                     worse than the baseline, or |{number} for at most {number}"
                );
                return Err(error(relative_at, message));
            };
            let percent = number(percent.trim_end()).map_err(|why| error(relative_at, why))?;
            limit.relative_percent = Some(percent);
        }
        if let Some(absolute) = absolute
            && !absolute.trim().is_empty()
        {
            let at = relative.len() + 1 + (absolute.len() - absolute.trim_start().len());
            limit.absolute = Some(number(absolute.trim()).map_err(|why| error(at, why))?);
        }
        if limit == Self::default() {
            return Err(error(0, "no limit given: write 5%, |500 or 5%|500".into()));
        }
        Ok(limit)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(percent) = self.relative_percent {
            write!(f, "{percent}%")?;
        }
        if let Some(absolute) = self.absolute {
            write!(f, "|{absolute}")?;
        }
        Ok(())
    }
}

/// Parses a `--limit` argument: `execs{command="sed"}=0%|500`.
///
/// # Errors
///
/// For an invalid selector or limit, with the column.
pub(crate) fn argument(text: &str) -> Result<(Selector, Limit), ArgumentError> {
    let error = |at: usize, message: String| ArgumentError {
        text: text.to_owned(),
        column: text[..at].chars().count() + 1,
        message,
    };
    let (selector, at) =
        Selector::parse_front(text).map_err(|wrong| error(wrong.at, wrong.message))?;
    let Some(limit) = text[at..].strip_prefix('=') else {
        let message = "= and a limit are missing: write NAME=5%, NAME=|500 or NAME=5%|500";
        return Err(error(at, message.into()));
    };
    let limit =
        limit.parse().map_err(|wrong: LimitError| error(at + 1 + wrong.at, wrong.message))?;
    Ok((selector, limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limit(relative_percent: Option<f64>, absolute: Option<f64>) -> Limit {
        Limit { relative_percent, absolute }
    }

    #[test]
    fn either_part_may_be_missing() {
        for (text, expected) in [
            ("0%|500", limit(Some(0.0), Some(500.0))),
            ("5%", limit(Some(5.0), None)),
            ("|500", limit(None, Some(500.0))),
            (" 2.5 % | 1_000 ", limit(Some(2.5), Some(1000.0))),
            ("5%|", limit(Some(5.0), None)),
            ("-0%", limit(Some(0.0), None)),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn errors_say_where_and_why() {
        for (text, column, part) in [
            (r#"execs{command="sed"}=-1%"#, 22, "negative"),
            (r#"execs{command="sed"}=5%|-1"#, 25, "negative"),
            (r#"execs{command="sed"}=500"#, 22, "write 5%"),
            (r#"execs{command="sed"}=x%"#, 22, "x is not a number"),
            (r#"execs{command="sed"}=inf%"#, 22, "not a number"),
            ("execs=%", 7, "a number is missing"),
            ("execs=1e999%", 7, "too large"),
            ("execs=", 7, "no limit given"),
            ("execs=|", 7, "no limit given"),
            ("execs", 6, "missing"),
            ("exces=5%", 1, "did you mean execs?"),
            (r#"execs{command="grüße"x}=5%"#, 22, "comma"),
        ] {
            let error = argument(text).unwrap_err();
            assert_eq!(error.column, column, "{error}");
            assert!(error.message.contains(part), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_limit_comes_back(relative in proptest::option::of(0.0..1e12), absolute in proptest::option::of(0.0..1e300)) {
            let limit = limit(relative, absolute);
            if limit == Limit::default() {
                prop_assert!(limit.to_string().parse::<Limit>().is_err());
            } else {
                prop_assert_eq!(limit.to_string().parse::<Limit>(), Ok(limit));
                let text = format!("spawns{{child=\"s=\\\"*\"}}={limit}");
                prop_assert_eq!(argument(&text).unwrap().1, limit);
            }
        }

        #[test]
        fn any_text_gives_a_limit_or_an_error(text in ".{0,40}", limit in r"[-+0-9eE._%| ]{0,12}") {
            let _ = argument(&text);
            let _ = argument(&format!("execs={limit}"));
        }
    }
}
