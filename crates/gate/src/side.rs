//! The runs of one side of a comparison, seen as a series of values for each figure.

use std::collections::{BTreeMap, BTreeSet};

use proctrace_findings::{FAMILIES, Metric, MetricFamily, Metrics, Unknown};
use serde::Serialize;

use crate::selector::written;

/// A recording's figures, and what the recording is called: its file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// What it is called.
    pub name: String,
    /// Its figures.
    pub metrics: Metrics,
}

/// A figure, whichever runs have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key<'a> {
    /// Which of the families.
    family: usize,
    pub(crate) labels: &'a [(String, String)],
}

impl<'a> Key<'a> {
    fn of(metric: &'a Metric) -> Option<Self> {
        Self::new(&metric.name, &metric.labels)
    }

    /// The figure of that family with these labels; None if there is no such family.
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
    /// As it is written in a budget.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&written(self.family(), self.labels))
    }
}

/// All runs of a side.
#[derive(Debug)]
pub(crate) struct Side<'a> {
    runs: usize,
    /// What each run does not know.
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
            // Families of other versions are left out: no rule can be about them.
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

    /// Whether a run does not know a figure.
    pub(crate) fn lacks(&self, key: Key<'_>) -> bool {
        let is_about = |unknown: &Unknown| unknown.is_about(key.family().name, key.labels);
        self.unknown.iter().any(|unknown| unknown.iter().any(is_about))
    }

    /// A value for each run; None if the figure was not measured, or is not known, in one of them.
    pub(crate) fn values(&self, key: Key<'_>) -> Option<Vec<f64>> {
        if self.lacks(key) {
            return None;
        }
        let zero = (!key.labels.is_empty()).then_some(0.0);
        // A key lives as long as its labels, and the map's live longer.
        match self.figures.get::<Key<'_>>(&key) {
            Some(values) => values.iter().map(|value| value.or(zero)).collect(),
            None => zero.map(|zero| vec![zero; self.runs]),
        }
    }

    /// The figures of one family.
    pub(crate) fn family(&self, name: &str) -> impl Iterator<Item = Key<'a>> + '_ {
        let wanted = FAMILIES.iter().position(|family| family.name == name);
        self.figures.keys().copied().filter(move |key| Some(key.family) == wanted)
    }
}

/// Every figure that either side has, in the order of the families.
pub(crate) fn all_keys<'a>(sides: &[&Side<'a>]) -> BTreeSet<Key<'a>> {
    sides.iter().flat_map(|side| side.figures.keys().copied()).collect()
}

/// Every figure of one family that either side has.
pub(crate) fn family_keys<'a>(sides: &[&Side<'a>], name: &str) -> BTreeSet<Key<'a>> {
    sides.iter().flat_map(|side| side.family(name)).collect()
}
