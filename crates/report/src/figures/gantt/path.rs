//! The critical path, as a line on the bars that it is on.

use proctrace_findings::{Bar, Gantt};

use super::TimeAxis;
use super::bars::{joined, piece};
use super::rows::Rows;
use crate::figures::backend::{Drawn, Surface};
use crate::figures::elements::{Pen, Segments};
use crate::figures::look::{INK, PAPER};
use crate::figures::page::{Page, Swatch};

/// Thickness of the line and of its rim relative to the bar, and at least in pixels.
const LINE: (f64, f64) = (0.25, 1.2);
const RIM: (f64, f64) = (0.5, 2.4);
/// Shorter times, in pixels, are left out, which bounds the size of the file.
const LENGTH_MIN: f64 = 0.02;

/// A dark line with a bright rim, which can be seen on every colour.
pub(super) fn draw<S: Surface>(
    page: &Page<S>,
    gantt: &Gantt,
    rows: &Rows,
    time_axis: &TimeAxis,
    top: f64,
) -> Drawn {
    // On bars with an ordinary row, and on those with a taller, named one.
    let mut kinds = [Vec::new(), Vec::new()];
    for part in &gantt.path {
        let at = part.bar as usize;
        let (Some(bar), Some(y)) = (gantt.bars.get(at), rows.y.get(at)) else { continue };
        let (begin_ns, end_ns) =
            (part.begin_ns.max(gantt.from_ns), part.end_ns.min(gantt.until_ns));
        if begin_ns >= end_ns || time_axis.x_at(end_ns) - time_axis.x_at(begin_ns) < LENGTH_MIN {
            continue;
        }
        let named = usize::from(rows.named.binary_search(&at).is_ok());
        kinds[named].push(piece(&Bar { begin_ns, end_ns, ..*bar }, top + y, time_axis));
    }
    for (pieces, thick) in kinds.into_iter().zip([rows.thickness, rows.named_thickness]) {
        let ends = joined(pieces);
        for (colour, (part, least)) in [(PAPER, RIM), (INK, LINE)] {
            let pen = Pen::of(colour, (thick * part).max(least));
            page.area.draw(&Segments { ends: ends.clone(), pen })?;
        }
    }
    Ok(())
}

/// The entry of the legend.
pub(super) fn legend(gantt: &Gantt) -> Option<(Swatch, String)> {
    let entry = || (Swatch::Line(Pen::of(INK, LINE.1)), "on the critical path".to_owned());
    (!gantt.path.is_empty()).then(entry)
}
