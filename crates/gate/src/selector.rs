//! Selectors, which choose the metrics that a rule applies to: `execs{command="s*"}`.

use std::fmt;

use proctrace_findings::{FAMILIES, Kind, Metric, MetricFamily};

use crate::pattern::{Pattern, quoted};
use crate::suggest::hint;

/// A name and labels, both of which may contain stars as wildcards.
///
/// The notation is that of metrics: `total_execs`, `execs{command="s*"}`, `failed_lookups`. Omitted
/// labels may have any value. Within quotation marks `\*`, `\"`, `\\` and `
/// ` denote a star, a quotation mark, a backslash and a line feed. A name with a star excludes
/// elapsed times: they depend on other load on the machine, and are limited only if selected by
/// name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Selector {
    name: Pattern,
    labels: Vec<(String, Pattern)>,
}

/// An invalid selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SelectorError {
    /// Byte offset in the text.
    pub at: usize,
    /// The problem, and the correct form.
    pub message: String,
}

impl Selector {
    /// Parses the whole text.
    ///
    /// # Errors
    ///
    /// For invalid syntax, an unknown metric, an unknown label.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut parser = Parser { text, at: 0 };
        let selector = parser.selector()?;
        if parser.at < text.len() {
            return Err(parser.error("unexpected text after the metric"));
        }
        Ok(selector)
    }

    /// Parses the selector at the start of the text; also returns its length in bytes.
    ///
    /// # Errors
    ///
    /// As [`Selector::parse`].
    pub(crate) fn parse_front(text: &str) -> Result<(Self, usize), SelectorError> {
        let mut parser = Parser { text, at: 0 };
        let selector = parser.selector()?;
        Ok((selector, parser.at))
    }

    /// The selector of exactly this metric.
    pub fn of(metric: &Metric) -> Self {
        Self {
            name: Pattern::plain(&metric.name),
            labels: (metric.labels.iter())
                .map(|(label, value)| (label.clone(), Pattern::new(vec![value.clone()])))
                .collect(),
        }
    }

    /// True if it selects the metric of this family with these labels.
    pub fn matches(&self, family: &MetricFamily, labels: &[(String, String)]) -> bool {
        self.takes(family)
            && self.labels.iter().all(|(label, pattern)| {
                labels.iter().any(|(name, value)| name == label && pattern.matches(value))
            })
    }

    /// The families it can select from.
    pub fn families(&self) -> impl Iterator<Item = &'static MetricFamily> + '_ {
        FAMILIES.iter().filter(|family| {
            self.takes(family)
                && self.labels.iter().all(|(label, _)| family.labels.contains(&label.as_str()))
        })
    }

    /// True if it can select metrics of this family, or of this kind in it.
    pub(crate) fn may_be_about(&self, family: &str, restricted: Option<(&str, &str)>) -> bool {
        MetricFamily::named(family).is_some_and(|family| self.takes(family))
            && self.labels.iter().all(|(label, pattern)| match restricted {
                Some((name, value)) if label == name => pattern.matches(value),
                _ => true,
            })
    }

    /// True if it names this family explicitly, rather than by a pattern.
    pub(crate) fn is_named(&self, family: &str) -> bool {
        self.name.is_exact() && self.name.matches(family)
    }

    /// True if it restricts this label.
    pub(crate) fn has_label(&self, name: &str) -> bool {
        self.labels.iter().any(|(label, _)| label == name)
    }

    fn takes(&self, family: &MetricFamily) -> bool {
        self.name.matches(family.name) && (self.name.is_exact() || family.kind != Kind::Wall)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        // Names contain no characters to escape except stars.
        for (at, (label, pattern)) in self.labels.iter().enumerate() {
            write!(f, "{}{label}=\"{pattern}\"", if at == 0 { '{' } else { ',' })?;
        }
        if self.labels.is_empty() { Ok(()) } else { f.write_str("}") }
    }
}

/// A metric in budget notation, with the stars of its labels escaped.
pub(crate) fn written(family: &MetricFamily, labels: &[(String, String)]) -> String {
    let labels: Vec<String> =
        labels.iter().map(|(label, value)| format!("{label}=\"{}\"", quoted(value))).collect();
    if labels.is_empty() {
        family.name.to_owned()
    } else {
        format!("{}{{{}}}", family.name, labels.join(","))
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn error(&self, message: impl Into<String>) -> SelectorError {
        SelectorError { at: self.at, message: message.into() }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.skip_space();
        let there = self.rest().starts_with(wanted);
        if there {
            self.at += wanted.len_utf8();
        }
        there
    }

    fn word(&mut self, extra: &[char]) -> (usize, String) {
        self.skip_space();
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || extra.contains(&c);
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let start = self.at;
        let word = rest[..length].to_owned();
        self.at += length;
        (start, word)
    }

    fn selector(&mut self) -> Result<Selector, SelectorError> {
        let (start, name) = self.word(&['*']);
        if name.is_empty() {
            return Err(self.error("the name of a metric is missing"));
        }
        let mut selector = Selector { name: Pattern::plain(&name), labels: Vec::new() };
        if selector.families().next().is_none() {
            let names: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
            let hint =
                if name.contains('*') && FAMILIES.iter().any(|f| selector.name.matches(f.name)) {
                    "patterns do not match elapsed times: write the metric's full name".to_owned()
                } else {
                    hint(&name, &names)
                };
            let message = format!("unknown metric {name}: {hint}");
            return Err(SelectorError { at: start, message });
        }
        if self.eat('{') {
            while !self.eat('}') {
                self.label(&mut selector)?;
                if !self.eat(',') && !self.rest().starts_with('}') {
                    return Err(self.error("a comma or a closing brace is missing"));
                }
            }
        }
        self.skip_space();
        Ok(selector)
    }

    fn label(&mut self, selector: &mut Selector) -> Result<(), SelectorError> {
        let (start, label) = self.word(&[]);
        let at_label = |message| SelectorError { at: start, message };
        if label.is_empty() {
            return Err(at_label("the name of a label is missing".into()));
        }
        let mut known: Vec<&str> =
            selector.families().flat_map(|family| family.labels.iter().copied()).collect();
        known.sort_unstable();
        known.dedup();
        if !known.contains(&label.as_str()) {
            let name = &selector.name;
            let hint = match known[..] {
                [] => "it has no labels".to_owned(),
                _ => hint(&label, &known),
            };
            return Err(at_label(format!("{name} has no label {label}: {hint}")));
        }
        if selector.labels.iter().any(|(other, _)| *other == label) {
            return Err(at_label(format!("label {label} is given twice")));
        }
        if !self.eat('=') {
            return Err(self.error(format!("= is missing after the label {label}")));
        }
        let pattern = self.quoted()?;
        selector.labels.push((label, pattern));
        Ok(())
    }

    fn quoted(&mut self) -> Result<Pattern, SelectorError> {
        if !self.eat('"') {
            return Err(self.error("a label value must be in quotation marks: \"sed\""));
        }
        let start = self.at;
        let mut pieces = vec![String::new()];
        let mut escaped = false;
        for (offset, c) in self.text[start..].char_indices() {
            let piece = pieces.last_mut().expect("there is always one");
            match (escaped, c) {
                (false, '\\') => {
                    escaped = true;
                    continue;
                }
                (false, '"') => {
                    self.at = start + offset + 1;
                    return Ok(Pattern::new(pieces));
                }
                (false, '*') => pieces.push(String::new()),
                (true, 'n') => piece.push('\n'),
                (true, '\\' | '"' | '*') | (false, _) => piece.push(c),
                (true, _) => {
                    self.at = start + offset;
                    return Err(self.error("a backslash must be followed by \\, \", * or n"));
                }
            }
            escaped = false;
        }
        Err(self.error("the closing quotation mark is missing"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn family(name: &str) -> &'static MetricFamily {
        FAMILIES.iter().find(|family| family.name == name).unwrap()
    }

    fn error(text: &str) -> (usize, String) {
        let error = Selector::parse(text).unwrap_err();
        (error.at, error.message)
    }

    #[test]
    fn patterns_select_what_they_say() {
        let selector = Selector::parse(r#"execs{command="s*"}"#).unwrap();
        let labels = |value: &str| vec![("command".to_owned(), value.to_owned())];
        assert!(selector.matches(family("execs"), &labels("sed")));
        assert!(!selector.matches(family("execs"), &labels("grep")));
        assert!(!selector.matches(family("command_processes"), &labels("sed")));
        let all = Selector::parse(r#" spawns { child = "sed" } "#).unwrap();
        let edge = [("parent".into(), "sh".into()), ("child".into(), "sed".into())];
        assert!(all.matches(family("spawns"), &edge));
        assert_eq!(all.to_string(), r#"spawns{child="sed"}"#);
    }

    #[test]
    fn a_pattern_takes_no_elapsed_time_in() {
        let seconds: Vec<_> =
            Selector::parse("*_seconds").unwrap().families().map(|f| f.name).collect();
        assert!(seconds.contains(&"total_cpu_seconds") && !seconds.contains(&"wall_seconds"));
        assert_eq!(Selector::parse("wall_seconds").unwrap().families().count(), 1);
        assert!(error("wall*").1.contains("full name"));
    }

    #[test]
    fn errors_say_where_and_what_was_meant() {
        assert_eq!(error("exec"), (0, "unknown metric exec: did you mean execs?".into()));
        let (at, message) = error(r#"execs{comand="sed"}"#);
        assert_eq!((at, &*message), (6, "execs has no label comand: did you mean command?"));
        assert_eq!(
            error(r#"total_execs{command="sed"}"#).1,
            "total_execs has no label command: it has no labels"
        );
        assert_eq!(error("execs{command=sed}").0, 14);
        assert_eq!(error(r#"execs{command="sed"#).1, "the closing quotation mark is missing");
        assert_eq!(error(r#"execs{command="a\d"}"#).0, 17);
        assert_eq!(error("execs x").0, 6);
        assert_eq!(error(""), (0, "the name of a metric is missing".into()));
    }

    proptest! {
        #[test]
        fn any_text_gives_a_selector_or_an_error(text in ".{0,60}") {
            let _ = Selector::parse(&text);
        }

        #[test]
        fn nearly_right_text_gives_a_selector_or_an_error(text in r#"execs *\{?(command)?=?"?[a*\\"\n]{0,5}"?\}?"#) {
            if let Ok(selector) = Selector::parse(&text) {
                prop_assert_eq!(Selector::parse(&selector.to_string()), Ok(selector));
            }
        }

        #[test]
        fn what_selects_one_metric_comes_back_and_matches_it(value in any::<String>(), other in any::<String>()) {
            let labels = vec![("command".to_owned(), value.clone())];
            let metric = Metric { name: "execs".into(), labels: labels.clone(), value: 1.0 };
            let selector = Selector::of(&metric);
            let parsed = Selector::parse(&selector.to_string()).unwrap();
            prop_assert_eq!(&parsed, &selector);
            prop_assert_eq!(written(family("execs"), &labels), selector.to_string());
            prop_assert!(parsed.matches(family("execs"), &labels));
            let labels = [("command".to_owned(), other.clone())];
            prop_assert_eq!(parsed.matches(family("execs"), &labels), other == value);
        }
    }
}
