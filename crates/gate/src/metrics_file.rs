//! Figures of a recording as JSON, as a table, and the list of all names there are.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use proctrace_findings::{FAMILIES, Kind, Metric, MetricFamily, Metrics, Table, Worse};
use proctrace_report::escape;

use crate::words;

/// Why a file holds no figures.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// It is not JSON of this shape.
    #[error("{file} is no output of `proctrace metrics --format json`: {source}")]
    Json {
        /// What it is called.
        file: String,
        /// What is wrong, and where.
        source: serde_json::Error,
    },
    /// A figure in it cannot be.
    #[error("{file}: {metric}: {why}")]
    Metric {
        /// What it is called.
        file: String,
        /// Which figure.
        metric: String,
        /// What is wrong.
        why: &'static str,
    },
}

/// Reads figures that [`to_json`] wrote; `file` is their name for errors. Families of later
/// versions are kept; no rule can be about them.
///
/// # Errors
///
/// For anything else, and for figures that cannot be: negative, twice there, with other labels.
pub fn from_json(file: &str, text: &str) -> Result<Metrics, MetricsError> {
    let metrics: Metrics = serde_json::from_str(text)
        .map_err(|source| MetricsError::Json { file: file.to_owned(), source })?;
    let mut seen = BTreeSet::new();
    for metric in &metrics.metrics {
        let labels = || metric.labels.iter().map(|(label, _)| label.as_str());
        let why = match MetricFamily::named(&metric.name) {
            _ if !metric.value.is_finite() || metric.value < 0.0 => "it is negative",
            _ if !seen.insert((&metric.name, &metric.labels)) => "it is there twice",
            Some(family) if !labels().eq(family.labels.iter().copied()) => {
                "its labels are not those of its family"
            }
            _ => continue,
        };
        let metric = metric.to_string();
        return Err(MetricsError::Metric { file: file.to_owned(), metric, why });
    }
    Ok(metrics)
}

/// The figures as JSON, with a line feed at its end.
///
/// # Errors
///
/// None that is known: figures are finite.
pub fn to_json(metrics: &Metrics) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(metrics).map(|text| escape::json(&text).into_owned() + "\n")
}

/// The figures as a table, "metrics"; values are written out because their units differ.
pub fn table(metrics: &Metrics) -> Table {
    let known: Vec<(&Metric, &MetricFamily)> = metrics
        .metrics
        .iter()
        .filter_map(|metric| Some((metric, MetricFamily::named(&metric.name)?)))
        .collect();
    let table = Table::new("metrics", "Figures by their stable names")
        .text("metric", "metric", known.iter().map(|(metric, _)| metric.to_string()))
        .text("value", "value", known.iter().map(|(m, family)| words::value(family, m.value)));
    metrics
        .doubts
        .iter()
        .fold(table, |table, doubt| table.note(format!("Not to be trusted: {doubt}")))
}

/// Every name there is, as Markdown: what the documentation of the names is made of.
pub fn names() -> String {
    let mut out =
        String::from("| metric | unit | compared | worse | what it is |\n|---|---|---|---|---|\n");
    for family in FAMILIES {
        let labels: Vec<String> =
            family.labels.iter().map(|label| format!("{label}=\"…\"")).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let compared = match family.kind {
            Kind::Count => "exactly",
            Kind::Wall => "by interval, if named",
            Kind::Varying | Kind::Cpu | Kind::Memory | Kind::Bytes | Kind::Ratio => "by interval",
        };
        let worse = match family.worse {
            Worse::Higher => "higher",
            Worse::Lower => "lower",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "| `{}{labels}` | {} | {compared} | {worse} | {} |",
            family.name, family.unit, family.help
        );
    }
    out
}
