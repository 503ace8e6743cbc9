//! Axes as coordinates of plotters charts.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use super::look::{GAP, TICK};
use super::scale::{Scale, Tick};

/// A scale with its ticks, as a coordinate of a plotters chart.
#[derive(Debug, Clone)]
pub(crate) struct Ticked {
    scale: Scale,
    ticks: Vec<Tick>,
    minor: Vec<f64>,
}

/// Rows or columns of equal size as a coordinate of a plotters chart: row 1 is between 0 and 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    /// The number of rows, with a fraction for free space behind the last.
    pub(crate) count: f64,
    /// True if they follow each other downwards.
    pub(crate) downwards: bool,
}

impl Scale {
    /// The scale with its own ticks.
    pub(crate) fn ticked(self) -> Ticked {
        let ticks = self.ticks();
        self.ticked_at(ticks)
    }

    /// The scale with these ticks.
    pub(crate) fn ticked_at(self, ticks: Vec<Tick>) -> Ticked {
        Ticked { minor: self.minor(), scale: self, ticks }
    }
}

impl Ticked {
    /// The same without the labels that would overlap others on an axis of this width in pixels.
    pub(crate) fn thinned(mut self, width: f64) -> Self {
        let mut taken = f64::NEG_INFINITY;
        for tick in &mut self.ticks {
            let (x, half) = (width * self.scale.part(tick.at), TICK.width(&tick.label) / 2.0);
            if x - half >= taken {
                taken = x + half + GAP;
            } else {
                tick.label.clear();
            }
        }
        self
    }
}

impl Ranged for Ticked {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + (f64::from(to - from) * self.scale.part(*value)).round() as i32
    }

    /// plotters draws the grid twice: fine lines at any points, then lines and labels at bold ones.
    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight().allow_light_points() {
            _ if hint.max_num_points() == 0 => Vec::new(),
            true => self.minor.clone(),
            false => self.ticks.iter().map(|tick| tick.at).collect(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.scale.range()
    }
}

impl ValueFormatter<f64> for Ticked {
    fn format_ext(&self, value: &f64) -> String {
        let tick = self.ticks.iter().find(|tick| tick.at == *value);
        tick.map_or_else(String::new, |tick| tick.label.clone())
    }
}

impl Ranged for Rows {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, row: &f64, (from, to): (i32, i32)) -> i32 {
        let part = (row / self.count).clamp(0.0, 1.0);
        let part = if self.downwards { 1.0 - part } else { part };
        from + (f64::from(to - from) * part).round() as i32
    }

    /// Names of rows are drawn beside them; there are no lines between them.
    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        Vec::new()
    }

    fn range(&self) -> Range<f64> {
        0.0..self.count
    }
}

impl ValueFormatter<f64> for Rows {
    fn format_ext(&self, _: &f64) -> String {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use plotters::coord::ranged1d::{BoldPoints, LightPoints};
    use proctrace_findings::{Axis, Unit};

    use super::*;

    #[test]
    fn values_are_where_their_scale_has_them() {
        let axis = Axis::linear("n", Unit::Count);
        let ticked = Scale::of(&axis, [10.0], 5).ticked();
        assert_eq!(
            [0.0, 5.0, 10.0, 99.0].map(|at| ticked.map(&at, (100, 300))),
            [100, 200, 300, 300]
        );
        assert_eq!(ticked.map(&5.0, (300, 100)), 200);
        let points = ticked.key_points(BoldPoints(11));
        assert_eq!(points, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        let labels: Vec<String> = points.iter().map(|at| ticked.format_ext(at)).collect();
        assert_eq!(labels, ["0", "2", "4", "6", "8", "10"]);
        assert!(ticked.key_points(LightPoints::new(11, 110)).is_empty(), "no fine lines");
    }

    #[test]
    fn fine_lines_are_between_decades_and_labels_do_not_overlap() {
        let axis = Axis::logarithmic("n", Unit::Count);
        let ticked = Scale::of(&axis, [1.0, 100.0], 5).ticked();
        assert_eq!(ticked.key_points(LightPoints::new(11, 110)).len(), 16);
        assert!(ticked.key_points(LightPoints::new(11, 0)).is_empty());
        let labels = |width: f64| {
            let thin = ticked.clone().thinned(width);
            thin.key_points(BoldPoints(11)).iter().map(|at| thin.format_ext(at)).collect::<Vec<_>>()
        };
        assert_eq!(labels(300.0), ["1", "10", "100"]);
        assert_eq!(labels(30.0), ["1", "", "100"]);
    }

    #[test]
    fn rows_follow_each_other() {
        let down = Rows { count: 4.0, downwards: true };
        // plotters gives vertical limits from the bottom to the top.
        assert_eq!([0.0, 1.0, 4.0, 9.0].map(|row| down.map(&row, (400, 0))), [0, 100, 400, 400]);
        let right = Rows { count: 4.0, downwards: false };
        assert_eq!([0.0, 1.0, 4.0].map(|column| right.map(&column, (0, 400))), [0, 100, 400]);
    }
}
