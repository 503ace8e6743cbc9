//! The runs of one side of a comparison, as a series of values per metric.

use std::collections::{BTreeMap, BTreeSet};

use proctrace_findings::{FAMILIES, Metric, MetricFamily, Metrics, Unknown};
use serde::Serialize;

use crate::selector::written;

/// The metrics of a recording, with the recording's name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunMetrics {
    /// Name of the recording: its file.
    pub name: String,
    /// Its figures.
    pub metrics: Metrics,
}

/// Percentage points more of the machine used by others that make times differ.
const BUSIER_PERCENT: f64 = 10.0;

/// Use of the machine by others on two sides, in words, if that differs enough to make times differ.
pub(crate) fn busier(before: &[RunMetrics], after: &[RunMetrics]) -> Option<String> {
    let median = |runs: &[RunMetrics]| {
        let mut percent: Vec<f64> =
            runs.iter().filter_map(|run| run.metrics.others_percent).collect();
        percent.retain(|percent| percent.is_finite());
        percent.sort_unstable_by(f64::total_cmp);
        let (middle, below) = (percent.len() / 2, percent.len().saturating_sub(1) / 2);
        Some(percent.get(middle)?.midpoint(*percent.get(below)?))
    };
    let (before, after) = (median(before)?, median(after)?);
    ((before - after).abs() >= BUSIER_PERCENT).then(|| {
        format!(
            "others used {before:.0} % of the machine before and {after:.0} % after: times may differ \
             for that alone"
        )
    })
}

/// Identifies a metric, independent of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key<'a> {
    /// Index of the family.
    family: usize,
    pub(crate) labels: &'a [(String, String)],
}

impl<'a> Key<'a> {
    fn of(metric: &'a Metric) -> Option<Self> {
        Self::new(&metric.name, &metric.labels)
    }

    /// The key of a metric; None if there is no such family.
    pub(crate) fn new(name: &str, labels: &'a [(String, String)]) -> Option<Self> {
        let family = FAMILIES.iter().position(|family| family.name == name)?;
        Some(Self { family, labels })
    }

    pub(crate) fn family(self) -> &'static MetricFamily {
        &FAMILIES[self.family]
    }

    pub(crate) fn label(self, name: &str) -> Option<&'a str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
    }
}

impl std::fmt::Display for Key<'_> {
    /// Text in budget notation.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&written(self.family(), self.labels))
    }
}

/// All runs of a side.
#[derive(Debug)]
pub(crate) struct Side<'a> {
    runs: usize,
    /// The metrics that each run does not know.
    unknown: Vec<&'a [Unknown]>,
    figures: BTreeMap<Key<'a>, Vec<Option<f64>>>,
}

impl<'a> Side<'a> {
    pub(crate) fn of(metrics: impl ExactSizeIterator<Item = &'a Metrics>) -> Self {
        let runs = metrics.len();
        let mut figures: BTreeMap<Key<'a>, Vec<Option<f64>>> = BTreeMap::new();
        let mut unknown = Vec::with_capacity(runs);
        for (run, metrics) in metrics.enumerate() {
            unknown.push(metrics.unknown.as_slice());
            // Families of other versions are left out: no rule can select them.
            for metric in metrics.metrics.iter().filter(|metric| metric.value.is_finite()) {
                if let Some(key) = Key::of(metric) {
                    let values = figures.entry(key).or_insert_with(|| vec![None; runs]);
                    *values[run].get_or_insert(0.0) += metric.value;
                }
            }
        }
        Self { runs, unknown, figures }
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs
    }

    /// True if any run does not know a metric.
    pub(crate) fn lacks(&self, key: Key<'_>) -> bool {
        let is_about = |unknown: &Unknown| unknown.is_about(key.family().name, key.labels);
        self.unknown.iter().any(|unknown| unknown.iter().any(is_about))
    }

    /// One value per run; None if the metric was not measured, or is not known, in one of them.
    pub(crate) fn values(&self, key: Key<'_>) -> Option<Vec<f64>> {
        if self.lacks(key) {
            return None;
        }
        let zero = (!key.labels.is_empty()).then_some(0.0);
        // A key's lifetime is that of its labels, and the map's labels live longer.
        match self.figures.get::<Key<'_>>(&key) {
            Some(values) => values.iter().map(|value| value.or(zero)).collect(),
            None => zero.map(|zero| vec![zero; self.runs]),
        }
    }

    /// The metrics of one family.
    pub(crate) fn family(&self, name: &str) -> impl Iterator<Item = Key<'a>> + '_ {
        let wanted = FAMILIES.iter().position(|family| family.name == name);
        self.figures.keys().copied().filter(move |key| Some(key.family) == wanted)
    }
}

/// Every metric that either side has, in the order of the families.
pub(crate) fn all_keys<'a>(sides: &[&Side<'a>]) -> BTreeSet<Key<'a>> {
    sides.iter().flat_map(|side| side.figures.keys().copied()).collect()
}

/// Every metric of one family that either side has.
pub(crate) fn family_keys<'a>(sides: &[&Side<'a>], name: &str) -> BTreeSet<Key<'a>> {
    sides.iter().flat_map(|side| side.family(name)).collect()
}
