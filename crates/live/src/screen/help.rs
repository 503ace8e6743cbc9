//! The page that explains keys and columns.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::paint::{Line, Theme};

const LINES: [(&str, &str); 19] = [
    ("Up Down j k", "move; PgUp PgDn Home End (g G) move further"),
    ("Tab 1-4", "next list: processes, programs, searched in vain, losses"),
    ("s S", "next or previous order of the list"),
    ("/", "show only what has this text: Enter keeps it, Esc clears it"),
    ("f F", "fold the subtree or category; fold or unfold all"),
    ("Enter", "open the process: command line, relatives, accounting, look-ups"),
    ("Space", "pause: the recording goes on, the view catches up later"),
    ("q Ctrl-C", "quit; the recording goes on. Under record --live, Ctrl-C stops"),
    ("", "the command, as without --live"),
    ("", ""),
    ("CPU% NOW%", "of one CPU, in the last 2 s; CPU: CPU time since the start, of"),
    ("", "programs that of ended processes included"),
    ("TASKS", "threads that are alive; RSS: resident memory at the last sample"),
    ("FAILED", "look-ups of paths that failed"),
    ("SYS", "share of system time, from 30 scheduler ticks on; else \"-\""),
    ("PROCS", "processes whose last program it is"),
    ("births", "processes that began in the last complete second. Records reach"),
    ("", "the file once a second"),
    ("[+3]", "a folded subtree: its figures are sums"),
];

pub(super) fn draw(area: Rect, buffer: &mut Buffer, theme: &Theme) {
    for (row, (keys, text)) in (0..).zip(LINES) {
        Line::new(buffer, area, row).space(1).column(keys, 12, theme.value).text(text, theme.plain);
    }
}
