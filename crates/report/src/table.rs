//! Columns of text.

/// Where a column's text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table that keeps to a width: every column is as wide as its text, and where that is too much,
/// the widest left-aligned column gives way.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

const GAP: usize = 2;
const INDENT: usize = 2;

impl Table {
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The lines, heading first.
    pub(crate) fn lines(&self, width: usize) -> Vec<String> {
        let mut widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = self.rows.iter().map(|row| row[column].chars().count());
                cells.chain([self.columns[column].0.chars().count()]).max().unwrap_or(0)
            })
            .collect();
        let taken = |widths: &[usize]| {
            INDENT + widths.iter().sum::<usize>() + GAP * (widths.len().saturating_sub(1))
        };
        while taken(&widths) > width {
            // The widest left-aligned column: figures are never cut.
            let widest = (0..widths.len())
                .filter(|column| self.columns[*column].1 == Align::Left)
                .max_by_key(|column| widths[*column]);
            match widest {
                Some(column) if widths[column] > 8 => widths[column] -= 1,
                _ => break,
            }
        }
        let heading: Vec<String> = self.columns.iter().map(|(name, _)| (*name).into()).collect();
        std::iter::once(&heading)
            .chain(&self.rows)
            .map(|cells| {
                let mut line = " ".repeat(INDENT);
                for (column, cell) in cells.iter().enumerate() {
                    let text = shorten(cell, widths[column]);
                    let pad = " ".repeat(widths[column] - text.chars().count());
                    match self.columns[column].1 {
                        Align::Left => line.extend([text, pad]),
                        Align::Right => line.extend([pad, text]),
                    }
                    line.push_str(&" ".repeat(GAP));
                }
                line.truncate(line.trim_end().len());
                line
            })
            .collect()
    }
}

/// Cut in the middle, because both ends of a path tell more than its middle.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    if width < 3 {
        return text.chars().take(width).collect();
    }
    let front = (width - 1) / 3;
    let back = width - 1 - front;
    text.chars().take(front).chain(['…']).chain(text.chars().skip(length - back)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_loses_its_middle() {
        assert_eq!(shorten("short", 8), "short");
        assert_eq!(shorten("/usr/lib/x86_64-linux-gnu", 13), "/usr…inux-gnu");
        assert_eq!(shorten("abc", 2), "ab");
        assert_eq!(shorten("grüße aus köln", 5).chars().count(), 5);
    }

    #[test]
    fn a_table_keeps_to_its_width_and_its_figures() {
        let mut table = Table::new(&[("n", Align::Right), ("name", Align::Left)]);
        table.row(["1,234,567".into(), "a".repeat(200)]);
        table.row(["1".into(), "b".into()]);
        let lines = table.lines(40);
        assert!(lines.iter().all(|line| line.chars().count() <= 40), "{lines:#?}");
        assert!(lines[1].starts_with("  1,234,567  aaa"));
        assert_eq!(lines[2], "          1  b");
    }
}
