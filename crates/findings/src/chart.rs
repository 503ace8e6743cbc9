//! The content of a figure, independent of how it is drawn.

use proctrace_wire::Quantity;
use serde::Serialize;

use crate::gantt::Gantt;
use crate::series::{Mark, Series};
use crate::table::Unit;

/// A figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// A stable name, used as the file name.
    pub name: &'static str,
    /// A heading.
    pub title: String,
    /// Notes needed to interpret it: n, which values are estimates.
    pub notes: Vec<String>,
    /// Its content.
    pub body: ChartBody,
    /// Quantities without which it is not drawn; `None` if that is not declared.
    #[serde(skip)]
    pub needs: Option<&'static [Quantity]>,
}

/// The content of a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChartBody {
    /// Labelled horizontal bars, with one or several values grouped or stacked.
    Bars(Bars),
    /// Values over a continuous axis.
    Lines(Lines),
    /// Counts by size, on a logarithmic axis.
    Histogram(Histogram),
    /// A matrix of coefficients.
    HeatMap(HeatMap),
    /// Labelled points.
    Scatter(Scatter),
    /// The lifetime of every process.
    Gantt(Box<Gantt>),
    /// Folded stacks: frames joined by `;`, a space, a weight.
    Flame(Flame),
    /// The steps from one value to another.
    Waterfall(Waterfall),
    /// Estimates with their intervals, in groups.
    Intervals(Intervals),
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Axis {
    /// Its name, without the unit.
    pub title: String,
    /// The unit of its values.
    pub unit: Unit,
    /// True if it is logarithmic.
    pub logarithmic: bool,
}

/// Horizontal bars.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bars {
    /// One label per row.
    pub rows: Vec<String>,
    /// The value axis.
    pub axis: Axis,
    /// The series, one colour each.
    pub series: Vec<Series>,
    /// True if the series of a row are stacked rather than grouped.
    pub stacked: bool,
}

/// Lines, or stacked areas.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lines {
    /// The horizontal axis.
    pub x_axis: Axis,
    /// The vertical axis.
    pub y_axis: Axis,
    /// The x values, ascending.
    pub x: Vec<f64>,
    /// The series, one colour each.
    pub series: Vec<Series>,
    /// True if the series are stacked areas.
    pub stacked: bool,
    /// True if each value is drawn as a point: separate measurements rather than a time series.
    pub points: bool,
    /// Labelled horizontal lines: cores asked for, an ideal.
    pub marks: Vec<Mark>,
    /// Labelled vertical lines: ends of phases.
    pub moments: Vec<Mark>,
}

/// A histogram.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Histogram {
    /// The quantity that is binned.
    pub axis: Axis,
    /// The count axis.
    pub count_axis: Axis,
    /// Bin edges, ascending; one more than there are bins.
    pub edges: Vec<f64>,
    /// The series, one colour each, stacked.
    pub series: Vec<Series>,
    /// Labelled vertical lines.
    pub marks: Vec<Mark>,
}

/// A matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeatMap {
    /// One name per row and column.
    pub names: Vec<String>,
    /// Values by row, then column; coefficients between -1 and 1.
    pub values: Vec<Vec<Option<f64>>>,
}

/// A scatter plot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scatter {
    /// The horizontal axis.
    pub x_axis: Axis,
    /// The vertical axis.
    pub y_axis: Axis,
    /// The points.
    pub points: Vec<Point>,
}

/// A point of a scatter plot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Horizontal position.
    pub x: f64,
    /// Vertical position.
    pub y: f64,
    /// Size, between 0 and 1.
    pub weight: f64,
    /// Its label; only the largest points are labelled.
    pub name: String,
}

/// Stacks with weights.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flame {
    /// Unit of the weights: "processes", "µs of CPU time".
    pub weighs: String,
    /// Frames from the root, joined by `;`, then a space and the weight.
    pub folded: Vec<String>,
}

/// The steps from one value to another, by cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Waterfall {
    /// The value axis.
    pub axis: Axis,
    /// The initial value.
    pub start: Mark,
    /// Increases and decreases, in display order.
    pub steps: Vec<Step>,
    /// The final value: the initial value plus all steps.
    pub end: Mark,
}

/// One contribution to a difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// Its signed amount; negative for a decrease.
    pub change: f64,
}

/// Estimates with their intervals: one panel per group, all on the same axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Intervals {
    /// The value axis.
    pub axis: Axis,
    /// A value marked in every panel: 1 for a ratio.
    pub reference: Option<f64>,
    /// The panels.
    pub groups: Vec<IntervalGroup>,
}

/// A panel of estimates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IntervalGroup {
    /// Its heading.
    pub name: String,
    /// The range that the same measurement has without any difference: its noise.
    pub noise: Option<(f64, f64)>,
    /// Its estimates. A name has the same colour in all groups.
    pub estimates: Vec<Estimate>,
}

/// An estimate with its interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// Name of the estimate.
    pub name: String,
    /// The estimate.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end of its interval.
    pub high: f64,
    /// True if it is comparable with the others; if not, it is drawn hollow.
    pub comparable: bool,
}

impl Chart {
    /// A figure without notes.
    pub fn new(name: &'static str, title: impl Into<String>, body: ChartBody) -> Self {
        Self { name, title: title.into(), notes: Vec::new(), body, needs: None }
    }

    /// Declares quantities without which it is not drawn.
    #[must_use]
    pub fn needs(mut self, needs: &'static [Quantity]) -> Self {
        self.needs = Some(needs);
        self
    }

    /// Adds a note.
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
