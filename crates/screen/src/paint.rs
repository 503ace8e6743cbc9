//! Painting text into a buffer: escaped, measured and cut.

use proctrace_live::View;
use proctrace_report::escape::terminal;
use proctrace_report::fit::{columns, cut};
use proctrace_report::number::{count, or_dash};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

/// The styles of the view.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Theme {
    pub(crate) title: Style,
    pub(crate) heading: Style,
    pub(crate) label: Style,
    pub(crate) value: Style,
    pub(crate) plain: Style,
    pub(crate) dim: Style,
    pub(crate) selected: Style,
    pub(crate) alarm: Style,
    pub(crate) busy: Style,
}

impl Theme {
    pub(crate) fn new(has_colour: bool) -> Self {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        let dim = plain.add_modifier(Modifier::DIM);
        let reversed = plain.add_modifier(Modifier::REVERSED);
        let coloured = |style: Style, colour| if has_colour { style.fg(colour) } else { style };
        Self {
            title: reversed,
            heading: bold.add_modifier(Modifier::UNDERLINED),
            label: coloured(plain, Color::Cyan),
            value: bold,
            plain,
            dim,
            selected: reversed,
            alarm: coloured(bold, Color::Red).add_modifier(Modifier::REVERSED),
            busy: coloured(bold, Color::Green),
        }
    }
}

/// A line that is written from left to right, within its area.
pub(crate) struct Line<'a> {
    buffer: &'a mut Buffer,
    x: u16,
    y: u16,
    end: u16,
}

impl<'a> Line<'a> {
    /// The line `row` of an area; one without width if the area does not have it.
    pub(crate) fn new(buffer: &'a mut Buffer, area: Rect, row: u16) -> Self {
        let area = area.intersection(buffer.area);
        let end = if row < area.height { area.right() } else { area.x };
        let y = area.y.saturating_add(row).min(area.bottom().saturating_sub(1));
        Self { buffer, x: area.x, y, end }
    }

    /// Columns that are left.
    pub(crate) fn left(&self) -> u16 {
        self.end.saturating_sub(self.x)
    }

    /// Writes text; what the payload chose is made visible. Cut where the line ends, with an ellipsis.
    pub(crate) fn text(&mut self, text: &str, style: Style) -> &mut Self {
        let width = self.left();
        self.field(text, width, style)
    }

    /// Writes at most `width` columns.
    fn field(&mut self, text: &str, width: u16, style: Style) -> &mut Self {
        let width = width.min(self.left());
        if width == 0 {
            return self;
        }
        // More characters than columns are never visible: a command line may have thousands.
        let few: String = text.chars().take(usize::from(width) * 2 + 8).collect();
        let visible = terminal(&few);
        let shown = cut(&visible, width.into());
        (self.x, _) = self.buffer.set_stringn(self.x, self.y, shown, width.into(), style);
        self
    }

    /// Leaves columns empty.
    pub(crate) fn space(&mut self, columns: u16) -> &mut Self {
        self.x = self.x.saturating_add(columns).min(self.end);
        self
    }

    /// Writes a column of a table, followed by a space.
    pub(crate) fn column(&mut self, text: &str, width: u16, style: Style) -> &mut Self {
        let end = self.x.saturating_add(width).min(self.end);
        self.field(text, width, style);
        self.x = end;
        self.space(1)
    }

    /// The same, aligned to the right.
    pub(crate) fn number(&mut self, text: &str, width: u16, style: Style) -> &mut Self {
        let used = u16::try_from(columns(text)).unwrap_or(u16::MAX).min(width);
        self.space(width - used).field(text, used, style).space(1)
    }

    /// Writes a label and its value, followed by two spaces.
    pub(crate) fn pair(&mut self, label: &str, value: &str, theme: &Theme) -> &mut Self {
        self.text(label, theme.label).space(1).text(value, theme.value).space(2)
    }

    /// Writes text at the right end, if there is room for it.
    pub(crate) fn at_right(&mut self, text: &str, style: Style) {
        let width = u16::try_from(columns(text)).unwrap_or(u16::MAX);
        if width < self.left() {
            self.x = self.end - width;
            self.text(text, style);
        }
    }
}

/// Fills a line of an area with a style.
pub(crate) fn fill(buffer: &mut Buffer, area: Rect, row: u16, style: Style) {
    if row < area.height {
        let line = Rect { y: area.y + row, height: 1, ..area };
        buffer.set_style(line.intersection(buffer.area), style);
    }
}

/// A number of failed look-ups; "-" in a recording without.
pub(crate) fn failed(view: &View, lookups: u64) -> String {
    or_dash(view.knows_lookups().then_some(lookups), count)
}

/// CPU time per second, in percent of one CPU.
pub(crate) fn cpu_percent(ns_per_second: f64) -> String {
    format!("{:.0}", ns_per_second / 1e7)
}

/// Bars for values, scaled to the largest.
pub(crate) fn bars(values: impl Iterator<Item = u64> + Clone) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.clone().max().unwrap_or(0);
    values
        .map(|value| match value {
            0 => ' ',
            value => BARS[usize::try_from(value.saturating_mul(7) / most).unwrap_or(7).min(7)],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(width: u16, write: impl Fn(&mut Line<'_>)) -> String {
        let area = Rect::new(0, 0, width, 1);
        let mut buffer = Buffer::empty(area);
        write(&mut Line::new(&mut buffer, area, 0));
        buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect()
    }

    #[test]
    fn long_text_is_cut_with_an_ellipsis() {
        let theme = Theme::new(false);
        assert_eq!(
            line(6, |l| {
                l.text("abcdefgh", theme.plain);
            }),
            "abcde…"
        );
        assert_eq!(
            line(6, |l| {
                l.text("abcdef", theme.plain);
            }),
            "abcdef"
        );
        assert_eq!(
            line(9, |l| {
                l.column("abcdefgh", 4, theme.plain).text("x", theme.plain);
            }),
            "abc… x   "
        );
        assert_eq!(
            line(7, |l| {
                l.number("12", 4, theme.plain).text("x", theme.plain);
            }),
            "  12 x "
        );
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let theme = Theme::new(false);
        let text = line(8, |l| {
            l.column("漢字漢字", 5, theme.plain).text("x", theme.plain);
        });
        // The second cell of a wide character is empty.
        assert_eq!(text.replace(' ', ""), "漢字…x");
    }

    #[test]
    fn what_a_terminal_would_act_upon_is_visible() {
        let theme = Theme::new(false);
        let text = line(40, |l| {
            l.text("a\x1b]0;b\x07c\u{202e}d\ne", theme.plain);
        });
        assert_eq!(text.trim_end(), "a\\u{1b}]0;b\\u{7}c\\u{202e}d\\ne");
    }

    #[test]
    fn an_area_without_room_is_left_alone() {
        let theme = Theme::new(true);
        let mut buffer = Buffer::empty(Rect::new(0, 0, 3, 1));
        Line::new(&mut buffer, Rect::new(0, 0, 3, 1), 5).text("abc", theme.plain);
        Line::new(&mut buffer, Rect::new(9, 9, 3, 1), 0).text("abc", theme.plain);
        Line::new(&mut buffer, Rect::new(2, 0, 0, 0), 0)
            .text("abc", theme.plain)
            .at_right("x", theme.plain);
        assert_eq!(buffer, Buffer::empty(Rect::new(0, 0, 3, 1)));
    }

    #[test]
    fn bars_are_scaled_to_the_largest() {
        assert_eq!(bars([0, 1, 7, 14].into_iter()), " ▁▄█");
        assert_eq!(bars([0, 0].into_iter()), "  ");
        assert_eq!(bars([u64::MAX, 1].into_iter()).chars().count(), 2);
    }
}
