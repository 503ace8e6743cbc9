//! Metrics as OpenMetrics text, for external monitoring.
//!
//! The format is that of the OpenMetrics specification 1.0 (2020), text format: one family after
//! the other, each with its TYPE, UNIT and HELP before its samples, and `# EOF` at the end.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proctrace_findings::{FAMILIES, Metrics};

/// Prefix of every name, to avoid collisions with other programs' metrics.
pub const PREFIX: &str = "proctrace_";

/// The metrics of a recording as OpenMetrics text. All are gauges: each belongs to one finished
/// run, and none is a running counter.
///
/// `proctrace_doubts` is the number of reasons not to trust them. Metrics of families unknown to
/// this version are left out.
pub fn openmetrics(metrics: &Metrics) -> String {
    let mut out = String::new();
    for family in FAMILIES {
        // Label sets that become equal by escaping are merged: duplicate label sets are not
        // allowed.
        let mut samples: BTreeMap<String, f64> = BTreeMap::new();
        let own = metrics.metrics.iter().filter(|metric| metric.name == family.name);
        for metric in own.filter(|metric| metric.value.is_finite()) {
            *samples.entry(labels(&metric.labels)).or_default() += metric.value;
        }
        if samples.is_empty() {
            continue;
        }
        head(&mut out, family.name, family.unit, family.help);
        for (labels, value) in samples {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{PREFIX}{}{labels} {value}", family.name);
        }
    }
    head(&mut out, "doubts", "", "Number of reasons not to trust the other metrics.");
    let _ = writeln!(out, "{PREFIX}doubts {}", metrics.doubts.len());
    out.push_str("# EOF\n");
    out
}

fn head(out: &mut String, name: &str, unit: &str, help: &str) {
    let _ = writeln!(out, "# TYPE {PREFIX}{name} gauge");
    // A unit must be the suffix of the name.
    if !unit.is_empty() && name.ends_with(&format!("_{unit}")) {
        let _ = writeln!(out, "# UNIT {PREFIX}{name} {unit}");
    }
    let _ = writeln!(out, "# HELP {PREFIX}{name} {}", escape(help));
}

fn labels(labels: &[(String, String)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let labels: Vec<String> =
        labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escape(value))).collect();
    format!("{{{}}}", labels.join(","))
}

/// Escapes backslash, quotation mark and line feed as the format requires, after making other
/// control characters visible, because this text is also read in terminals.
fn escape(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(proctrace_report::escape::terminal).collect();
    lines.join("\n").replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_the_format_allows() {
        for family in FAMILIES {
            // a unit is the last part of a name, and has its own line
            let ends = ["seconds", "bytes", "percent"];
            let unit = ends.iter().find(|unit| family.name.ends_with(&format!("_{unit}")));
            assert_eq!(family.unit, unit.copied().unwrap_or_default(), "{}", family.name);
            // reserved for samples of other types
            for reserved in ["_total", "_created", "_count", "_sum", "_bucket", "_info"] {
                assert!(!family.name.ends_with(reserved), "{}", family.name);
            }
        }
    }
}
