//! Parses TOML budgets into rules, with the location of every error.

use std::ops::Range;

use proctrace_findings::Worse;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::budget::{Budget, BudgetError, Inconclusive, Origin, Rule, Severity, Unmatched};
use crate::limit::{Limit, number};
use crate::selector::Selector;
use crate::suggest::{hint, nearest};

const SECTIONS: &[&str] = &["defaults", "limits"];
const DEFAULT_KEYS: &[&str] = &["severity", "inconclusive", "unmatched"];
const RULE_KEYS: &[&str] = &[
    "relative_percent",
    "absolute",
    "min_change",
    "min_runs",
    "worse",
    "severity",
    "inconclusive",
    "unmatched",
    "because",
];

const SEVERITY: &[(&str, Severity)] = &[("deny", Severity::Deny), ("warn", Severity::Warn)];
const INCONCLUSIVE: &[(&str, Inconclusive)] =
    &[("fail", Inconclusive::Fail), ("warn", Inconclusive::Warn)];
const UNMATCHED: &[(&str, Unmatched)] =
    &[("allow", Unmatched::Allow), ("warn", Unmatched::Warn), ("deny", Unmatched::Deny)];
const WORSE: &[(&str, Worse)] = &[("higher", Worse::Higher), ("lower", Worse::Lower)];

type Key<'i> = Spanned<std::borrow::Cow<'i, str>>;
type Value<'i> = Spanned<DeValue<'i>>;

struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    /// Converts a byte offset to line and column, in characters from 1.
    fn place(&self, at: usize) -> (usize, usize) {
        let boundary = (0..=at.min(self.text.len())).rfind(|at| self.text.is_char_boundary(*at));
        let before = &self.text[..boundary.unwrap_or(0)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    fn error(&self, at: usize, message: impl Into<String>) -> BudgetError {
        let (line, column) = self.place(at);
        BudgetError { file: self.file.to_owned(), line, column, message: message.into() }
    }

    fn wrong_type(&self, value: &Value<'_>, wanted: &str) -> BudgetError {
        let found = value.get_ref().type_str();
        self.error(value.span().start, format!("expected {wanted}, found {}", article(found)))
    }

    fn unknown_key(&self, key: &Key<'_>, known: &[&str]) -> BudgetError {
        let hint = hint(key.get_ref(), known);
        self.error(key.span().start, format!("unknown key {}: {hint}", key.get_ref()))
    }

    fn table<'t, 'i>(&self, value: &'t Value<'i>) -> Result<&'t DeTable<'i>, BudgetError> {
        value.get_ref().as_table().ok_or_else(|| self.wrong_type(value, "a table"))
    }

    fn choice<T: Copy>(&self, value: &Value<'_>, choices: &[(&str, T)]) -> Result<T, BudgetError> {
        let words: Vec<String> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let wanted = words.join(" or ");
        let Some(text) = value.get_ref().as_str() else {
            return Err(self.wrong_type(value, &wanted));
        };
        choices.iter().find(|(word, _)| *word == text).map(|(_, choice)| *choice).ok_or_else(|| {
            let near = nearest(text, choices.iter().map(|(word, _)| *word));
            let hint = near.map_or(String::new(), |near| format!(": did you mean {near}?"));
            self.error(value.span().start, format!("expected {wanted}, found \"{text}\"{hint}"))
        })
    }

    fn number(&self, value: &Value<'_>) -> Result<f64, BudgetError> {
        let text = match value.get_ref() {
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
            DeValue::Float(float) => float.as_str(),
            _ => return Err(self.wrong_type(value, "a decimal number")),
        };
        number(text).map_err(|why| self.error(value.span().start, why))
    }

    /// A number of runs.
    fn runs(&self, value: &Value<'_>) -> Result<usize, BudgetError> {
        let number = self.number(value)?;
        if number.fract() != 0.0 || !(1.0..=1000.0).contains(&number) {
            let message =
                format!("{number} is not a number of runs: write a whole number from 1 to 1000");
            return Err(self.error(value.span().start, message));
        }
        Ok(number as usize)
    }

    fn text(&self, value: &Value<'_>) -> Result<String, BudgetError> {
        (value.get_ref().as_str().map(str::to_owned))
            .ok_or_else(|| self.wrong_type(value, "a string"))
    }

    /// The file offset of a byte in a decoded string: exact if the string has no escapes, otherwise
    /// the start of the string.
    fn within(&self, span: &Range<usize>, decoded: &str, at: usize) -> usize {
        let raw = self.text.get(span.clone()).unwrap_or_default();
        let quote = usize::from(raw.starts_with(['"', '\'']));
        match raw.get(quote..quote + decoded.len()) {
            Some(plain) if plain == decoded => span.start + quote + at,
            _ => span.start,
        }
    }
}

fn article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {noun}")
}

impl Budget {
    /// Parses a budget; `file` is the name used in errors and findings.
    ///
    /// # Errors
    ///
    /// For any invalid content, with its line and column.
    pub fn parse(file: &str, text: &str) -> Result<Self, BudgetError> {
        let source = Source { file, text };
        let document = DeTable::parse(text).map_err(|wrong| {
            let at = wrong.span().map_or(0, |span| span.start);
            source.error(at, wrong.message().lines().collect::<Vec<_>>().join(", "))
        })?;
        let mut budget = Budget::default();
        let mut limits = None;
        for (key, value) in document.get_ref() {
            match &**key.get_ref() {
                "defaults" => defaults(&source, source.table(value)?, &mut budget)?,
                "limits" => limits = Some(source.table(value)?),
                _ => return Err(source.unknown_key(key, SECTIONS)),
            }
        }
        let Some(limits) = limits else {
            return Err(source.error(0, "section [limits] is missing, so nothing would be checked"));
        };
        let mut rules = limits.iter().collect::<Vec<_>>();
        // The map is sorted by name, but rules apply in file order.
        rules.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in rules {
            let rule = rule(&source, &budget, key, value)?;
            budget.rules.push(rule);
        }
        Ok(budget)
    }
}

fn defaults(
    source: &Source<'_>,
    table: &DeTable<'_>,
    budget: &mut Budget,
) -> Result<(), BudgetError> {
    for (key, value) in table {
        match &**key.get_ref() {
            "severity" => budget.defaults.severity = source.choice(value, SEVERITY)?,
            "inconclusive" => budget.defaults.inconclusive = source.choice(value, INCONCLUSIVE)?,
            "unmatched" => budget.defaults.unmatched = source.choice(value, UNMATCHED)?,
            _ => return Err(source.unknown_key(key, DEFAULT_KEYS)),
        }
    }
    Ok(())
}

fn rule(
    source: &Source<'_>,
    budget: &Budget,
    key: &Key<'_>,
    value: &Value<'_>,
) -> Result<Rule, BudgetError> {
    let selector = Selector::parse(key.get_ref()).map_err(|wrong| {
        source.error(source.within(&key.span(), key.get_ref(), wrong.at), wrong.message)
    })?;
    let (line, column) = source.place(key.span().start);
    let mut rule = Rule {
        selector,
        limit: Limit::default(),
        min_change: None,
        min_runs: None,
        worse: None,
        severity: budget.defaults.severity,
        inconclusive: budget.defaults.inconclusive,
        unmatched: budget.defaults.unmatched,
        because: None,
        origin: Origin::File { file: source.file.to_owned(), line, column },
    };
    match value.get_ref() {
        DeValue::String(text) => {
            rule.limit = text.parse().map_err(|wrong: crate::limit::LimitError| {
                source.error(source.within(&value.span(), text, wrong.at), wrong.message)
            })?;
        }
        DeValue::Table(table) => fill(source, table, &mut rule)?,
        _ => return Err(source.wrong_type(value, "a limit such as \"5%|500\" or a table")),
    }
    if rule.limit == Limit::default() {
        let message = "no limit given: set relative_percent or absolute";
        return Err(source.error(key.span().start, message));
    }
    if rule.min_change.is_some() && rule.limit.relative_percent.is_none() {
        let message = "min_change needs relative_percent: it is the smallest change from the \
                       baseline that counts";
        return Err(source.error(key.span().start, message));
    }
    if rule.min_runs.is_some() && rule.limit.absolute.is_none() {
        let message =
            "min_runs needs absolute: relative limits of measurements have a test of their own";
        return Err(source.error(key.span().start, message));
    }
    Ok(rule)
}

fn fill(source: &Source<'_>, table: &DeTable<'_>, rule: &mut Rule) -> Result<(), BudgetError> {
    for (key, value) in table {
        match &**key.get_ref() {
            "relative_percent" => rule.limit.relative_percent = Some(source.number(value)?),
            "absolute" => rule.limit.absolute = Some(source.number(value)?),
            "min_change" => rule.min_change = Some(source.number(value)?),
            "min_runs" => rule.min_runs = Some(source.runs(value)?),
            "worse" => rule.worse = Some(source.choice(value, WORSE)?),
            "severity" => rule.severity = source.choice(value, SEVERITY)?,
            "inconclusive" => rule.inconclusive = source.choice(value, INCONCLUSIVE)?,
            "unmatched" => rule.unmatched = source.choice(value, UNMATCHED)?,
            "because" => rule.because = Some(source.text(value)?),
            _ => return Err(source.unknown_key(key, RULE_KEYS)),
        }
    }
    Ok(())
}
