//! What a figure shows, without a word on how it is drawn.

use serde::Serialize;

use crate::gantt::Gantt;
use crate::series::{Mark, Series};
use crate::table::Unit;

/// A figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// A stable name: that of its file.
    pub name: &'static str,
    /// A heading.
    pub title: String,
    /// What the reader must know to understand it: n, what is an estimate.
    pub notes: Vec<String>,
    /// What is in it.
    pub body: ChartBody,
}

/// What is in a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChartBody {
    /// Horizontal bars with a name each, and one or several values side by side or stacked.
    Bars(Bars),
    /// Values over a continuous axis.
    Lines(Lines),
    /// A number of things by size, on a logarithmic axis.
    Histogram(Histogram),
    /// A matrix of coefficients.
    HeatMap(HeatMap),
    /// Points with names.
    Scatter(Scatter),
    /// The life of every process.
    Gantt(Box<Gantt>),
    /// Stacks, folded: frames joined by `;`, a space, a weight.
    Flame(Flame),
    /// From one value to another in steps.
    Waterfall(Waterfall),
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Axis {
    /// What it is, without the unit.
    pub title: String,
    /// The unit of its values.
    pub unit: Unit,
    /// Whether it is logarithmic.
    pub logarithmic: bool,
}

/// Horizontal bars.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bars {
    /// A name for each row.
    pub rows: Vec<String>,
    /// The values.
    pub axis: Axis,
    /// One colour each.
    pub series: Vec<Series>,
    /// Whether the series of a row add up, or stand side by side.
    pub stacked: bool,
}

/// Lines, or areas on top of each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lines {
    /// The horizontal axis.
    pub x_axis: Axis,
    /// The vertical axis.
    pub y_axis: Axis,
    /// Where the values stand; rising.
    pub x: Vec<f64>,
    /// One colour each.
    pub series: Vec<Series>,
    /// Whether they are areas that add up.
    pub stacked: bool,
    /// Whether each x is drawn as a point: measurements, not a course of time.
    pub points: bool,
    /// Horizontal lines with a name: cores asked for, an ideal.
    pub marks: Vec<Mark>,
    /// Vertical lines with a name: ends of phases.
    pub moments: Vec<Mark>,
}

/// A histogram.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Histogram {
    /// What is counted by.
    pub axis: Axis,
    /// What the bars count.
    pub count_axis: Axis,
    /// Edges of the bars, one more than these; rising.
    pub edges: Vec<f64>,
    /// One colour each, on top of each other.
    pub series: Vec<Series>,
    /// Vertical lines with a name.
    pub marks: Vec<Mark>,
}

/// A matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeatMap {
    /// A name for each row and column.
    pub names: Vec<String>,
    /// By row, then column; between -1 and 1.
    pub values: Vec<Vec<Option<f64>>>,
}

/// Points.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scatter {
    /// The horizontal axis.
    pub x_axis: Axis,
    /// The vertical axis.
    pub y_axis: Axis,
    /// The points.
    pub points: Vec<Point>,
}

/// A point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// Where.
    pub y: f64,
    /// How large, between 0 and 1.
    pub weight: f64,
    /// What; the largest are labelled.
    pub name: String,
}

/// Stacks with weights.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flame {
    /// What the weights are: "processes", "µs of CPU time".
    pub weighs: String,
    /// Frames from the root, joined by `;`, then a space and the weight.
    pub folded: Vec<String>,
}

/// From one value to another in steps: what made the difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Waterfall {
    /// The values.
    pub axis: Axis,
    /// The value before.
    pub start: Mark,
    /// What was added, or taken away; in the order in which they are shown.
    pub steps: Vec<Step>,
    /// The value after: the one before and all steps.
    pub end: Mark,
}

/// A part of a difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// What it is.
    pub name: String,
    /// How much it adds; negative if it takes away.
    pub change: f64,
}

impl Chart {
    /// A figure.
    pub fn new(name: &'static str, title: impl Into<String>, body: ChartBody) -> Self {
        Self { name, title: title.into(), notes: Vec::new(), body }
    }

    /// With something the reader must know.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

impl Axis {
    /// A linear axis.
    pub fn linear(title: impl Into<String>, unit: Unit) -> Self {
        Self { title: title.into(), unit, logarithmic: false }
    }

    /// A logarithmic axis.
    pub fn logarithmic(title: impl Into<String>, unit: Unit) -> Self {
        Self { title: title.into(), unit, logarithmic: true }
    }
}
