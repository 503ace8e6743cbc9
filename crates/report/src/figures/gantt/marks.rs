//! Moments that the payload named: lines through strips and bars, with labels above that do not overlap.

use proctrace_findings::Gantt;

use super::TimeAxis;
use crate::figures::backend::{Drawn, Surface};
use crate::figures::elements::Pen;
use crate::figures::look::{GAP, LINE, MARGIN, MARK, TICK};
use crate::figures::page::{Page, Swatch};

/// Most lines of labels.
const LEVELS: usize = 4;
/// Widths of a label: at most, and at least if it is shortened.
const LABEL_MAX: f64 = 260.0;
const LABEL_MIN: f64 = 44.0;
/// Distance between a line and its label.
const INDENT: f64 = 4.0;
const PEN: Pen = Pen::dashed(MARK, 1.0);

/// A mark with its place.
#[derive(Debug, PartialEq)]
struct Placed {
    x: f64,
    /// The label with its level, counted from the lowest; `None` where there is no room.
    label: Option<(usize, String)>,
}

/// All marks, from right to left.
#[derive(Debug)]
pub(super) struct Marks {
    placed: Vec<Placed>,
    /// Lines of labels.
    levels: usize,
    /// The top of the labels.
    top: f64,
}

impl Marks {
    pub(super) fn of(gantt: &Gantt, time_axis: &TimeAxis, width: f64) -> Self {
        let mut placed: Vec<Placed> = Vec::new();
        for mark in gantt.marks.iter().rev() {
            let x = time_axis.x_at(mark.at as u64);
            let label = label(&placed, x, &mark.name, width - MARGIN);
            // Lines less than a pixel apart are one, which bounds the size of the file.
            let is_apart = placed.last().is_none_or(|last| last.x - x >= 1.0);
            if label.is_some() || is_apart {
                placed.push(Placed { x, label });
            }
        }
        let levels = placed.iter().filter_map(|mark| Some(mark.label.as_ref()?.0 + 1)).max();
        Self { placed, levels: levels.unwrap_or(0), top: 0.0 }
    }

    pub(super) fn draw_labels<S: Surface>(&mut self, page: &mut Page<S>) -> Drawn {
        self.top = page.take(self.levels as f64 * LINE);
        for mark in &self.placed {
            if let Some((level, text)) = &mark.label {
                page.text(mark.x + INDENT, self.middle(*level), text, TICK)?;
            }
        }
        Ok(())
    }

    fn middle(&self, level: usize) -> f64 {
        self.top + (self.levels - level) as f64 * LINE - LINE / 2.0
    }

    /// Lines from the labels, or from `top`, down to `bottom`.
    pub(super) fn draw_lines<S: Surface>(
        &self,
        page: &Page<S>,
        top: Option<f64>,
        bottom: f64,
    ) -> Drawn {
        for mark in &self.placed {
            let label = mark.label.as_ref().map(|(level, _)| self.middle(*level) - LINE / 2.0);
            let from = top.or(label).unwrap_or(self.top + self.levels as f64 * LINE);
            page.line((mark.x, from), (mark.x, bottom), PEN)?;
        }
        Ok(())
    }
}

/// The label of the next mark to the left of those that are placed. It is above every label whose line
/// it would touch, and so are its own line and all labels to its left.
fn label(placed: &[Placed], x: f64, name: &str, right: f64) -> Option<(usize, String)> {
    let mut room = (right - x - INDENT).min(LABEL_MAX);
    loop {
        if room < LABEL_MIN {
            return None;
        }
        let text = TICK.fit_name(name, room).to_string();
        let end = x + INDENT + TICK.width(&text) + GAP;
        let touched = placed.iter().rev().take_while(|other| other.x < end);
        let above = |other: &Placed| Some((other.label.as_ref()?.0 + 1, other.x));
        let highest = touched.filter_map(above).max_by(|a, b| a.0.cmp(&b.0));
        match highest {
            // Smaller each time, whatever the rounding.
            Some((level, other)) if level >= LEVELS => {
                room = (other - x - INDENT - GAP).min(room - 1.0);
            }
            highest => return Some((highest.map_or(0, |(level, _)| level), text)),
        }
    }
}

/// The entry of the legend.
pub(super) fn legend(gantt: &Gantt) -> Option<(Swatch, String)> {
    (!gantt.marks.is_empty()).then(|| (Swatch::Line(PEN), "mark of the payload".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{bar, gantt};
    use super::*;
    use crate::figures::gantt_svg;
    use proctrace_findings::Mark;
    use proptest::prelude::*;

    /// The left and right end of a label, and its level.
    fn extent(mark: &Placed) -> Option<(f64, f64, usize)> {
        let (level, text) = mark.label.as_ref()?;
        let left = mark.x + INDENT;
        Some((left, left + TICK.width(text), *level))
    }

    proptest! {
        #[test]
        fn labels_overlap_neither_each_other_nor_a_line(
            mut places in proptest::collection::vec((0.0..1000.0f64, "[a-z ]{1,60}"), 1..40),
        ) {
            places.sort_by(|a, b| b.0.total_cmp(&a.0));
            let mut placed = Vec::new();
            for (x, name) in &places {
                let label = label(&placed, *x, name, 1200.0);
                placed.push(Placed { x: *x, label });
            }
            prop_assert!(placed[0].label.is_some());
            for (at, one) in placed.iter().enumerate() {
                let Some((left, right, level)) = extent(one) else { continue };
                prop_assert!(level < LEVELS && right <= 1200.0);
                for (other_at, other) in placed.iter().enumerate() {
                    let Some((from, to, other_level)) = extent(other) else { continue };
                    let overlap = left < to && from < right && other_at != at;
                    prop_assert!(!(overlap && level == other_level), "{one:?} {other:?}");
                    // A line begins at its own label.
                    let crosses = left < other.x && other.x < right;
                    prop_assert!(!(crosses && other_level > level), "{one:?} {other:?}");
                }
            }
        }
    }

    #[test]
    fn marks_are_drawn_with_their_names_escaped() {
        let mut gantt = gantt(1, vec![bar(0, 0, 1_000_000)]);
        assert!(!gantt_svg(&gantt).contains("mark of the payload"));
        let mark = |at, name: &str| Mark { at, name: name.to_owned() };
        gantt.marks = vec![mark(0.0, "begin"), mark(400_000.0, "<script>\u{1b}&")];
        let svg = gantt_svg(&gantt);
        assert!(svg.contains("begin") && svg.contains("mark of the payload"));
        assert!(svg.contains("&lt;script&gt;") && !svg.contains('\u{1b}'), "{svg}");
    }

    #[test]
    fn any_number_of_marks_makes_a_file_that_opens() {
        let mut gantt = gantt(1, vec![bar(0, 0, 1_000_000)]);
        let mark = |at: u32| Mark { at: f64::from(at) * 100.0, name: format!("event {at}") };
        gantt.marks = (0..10_000).map(mark).collect();
        let svg = gantt_svg(&gantt);
        assert!(svg.len() < 1_000_000, "{} bytes", svg.len());
    }
}
