//! The page that explains keys and columns.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::keymap::BINDINGS;
use crate::paint::{Line, Theme};

const COLUMNS: [(&str, &str); 8] = [
    ("CPU% NOW%", "of one CPU, in the last 2 s; CPU: CPU time since the start, of"),
    ("", "programs that of ended processes included"),
    ("TASKS", "threads that are alive; RSS: resident memory at the last sample"),
    ("FAILED", "look-ups of paths that failed"),
    ("SYS", "share of system time, as in a report; \"-\" of fewer than 30 ticks"),
    ("PROCS", "processes whose last program it is"),
    ("births", "processes that began in the last complete second"),
    ("9 ended", "so many of a program, in the last 2 s: sums, the largest peak RSS"),
];

pub(super) fn draw(area: Rect, buffer: &mut Buffer, theme: &Theme) {
    let keys = BINDINGS.iter().flat_map(|binding| {
        let labels = std::iter::once(binding.keys).chain(std::iter::repeat(""));
        labels.zip(binding.does.iter().copied())
    });
    for (row, (keys, text)) in (0..).zip(keys.chain(COLUMNS)) {
        Line::new(buffer, area, row).space(1).column(keys, 12, theme.value).text(text, theme.plain);
    }
}
