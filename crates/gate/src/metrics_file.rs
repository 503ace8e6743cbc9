//! Metrics of a recording as JSON and as a table, and the list of all metric names.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use proctrace_findings::{FAMILIES, Kind, Metric, MetricFamily, Metrics, Table, Unknown, Worse};
use proctrace_report::escape;

use crate::words;

/// Errors of a metrics file.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// It is not JSON of the expected structure.
    #[error("{file} is not output of `proctrace metrics --format json`: {source}")]
    Json {
        /// The file name.
        file: String,
        /// The error and its position.
        source: serde_json::Error,
    },
    /// It contains an invalid metric.
    #[error("{file}: {metric}: {why}")]
    Metric {
        /// The file name.
        file: String,
        /// The invalid metric.
        metric: String,
        /// The reason.
        why: &'static str,
    },
}

/// Parses metrics written by [`to_json`]; `file` is the name used in errors. Families of later
/// versions are kept, but no rule can select them. Of files that lack a later family, it is unknown.
///
/// # Errors
///
/// For anything else, and for invalid metrics: negative, duplicate, or with unexpected labels.
pub fn from_json(file: &str, text: &str) -> Result<Metrics, MetricsError> {
    let mut metrics: Metrics = serde_json::from_str(text)
        .map_err(|source| MetricsError::Json { file: file.to_owned(), source })?;
    let mut seen = BTreeSet::new();
    for metric in &metrics.metrics {
        let labels = || metric.labels.iter().map(|(label, _)| label.as_str());
        let why = match MetricFamily::named(&metric.name) {
            _ if !metric.value.is_finite() || metric.value < 0.0 => "negative value",
            _ if !seen.insert((&metric.name, &metric.labels)) => "duplicate metric",
            Some(family) if !labels().eq(family.labels.iter().copied()) => "unexpected labels",
            _ => continue,
        };
        let metric = metric.to_string();
        return Err(MetricsError::Metric { file: file.to_owned(), metric, why });
    }
    mark_unwritten(&mut metrics);
    Ok(metrics)
}

/// An absent labelled metric is zero, unless the file is older than its family.
fn mark_unwritten(metrics: &mut Metrics) {
    // With the total that shows that there would be members.
    for (name, total) in
        [("command_threads", "total_threads"), ("command_peak_rss_bytes", "peak_rss_bytes")]
    {
        let is_there = metrics.metrics.iter().any(|metric| metric.name == name)
            || metrics.unknown.iter().any(|unknown| unknown.name == name);
        let has_some = |metric: &Metric| metric.name == total && metric.value > 0.0;
        if !is_there && metrics.metrics.iter().any(has_some) {
            let why = "the file with the metrics does not have it".to_owned();
            metrics.unknown.push(Unknown::family(name, why));
        }
    }
}

/// The metrics as JSON with a trailing line feed.
///
/// # Errors
///
/// None known: metrics are finite.
pub fn to_json(metrics: &Metrics) -> Result<String, serde_json::Error> {
    escape::json_text(metrics)
}

/// The metrics as a table, "metrics"; values are preformatted because their units differ.
pub fn table(metrics: &Metrics) -> Table {
    let known: Vec<(&Metric, &MetricFamily)> = metrics
        .metrics
        .iter()
        .filter_map(|metric| Some((metric, MetricFamily::named(&metric.name)?)))
        .collect();
    let table = Table::new("metrics", "Metrics by their stable names")
        .text("metric", "metric", known.iter().map(|(metric, _)| metric.to_string()))
        .text("value", "value", known.iter().map(|(m, family)| words::value(family, m.value)));
    metrics
        .doubts
        .iter()
        .fold(table, |table, doubt| table.note(format!("Cannot be trusted: {doubt}")))
}

/// All metric names as Markdown, from which their documentation is generated.
pub fn names() -> String {
    let mut out =
        String::from("| metric | unit | compared | worse | description |\n|---|---|---|---|---|\n");
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
