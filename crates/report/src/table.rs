//! Text tables with aligned columns.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::fit::{at_left, at_right, beginning, columns, cut, ending};

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    /// Left-aligned, and truncated between items.
    List,
    Right,
}

/// A table fitted to a width: every column is as wide as its text. If the total is too wide,
/// prefixes common to all cells of a column are moved to a line below the table; then lists are
/// shortened, then the widest text column. Numbers and headings are never truncated.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(Cow<'static, str>, Align)>,
    rows: Vec<Vec<String>>,
    /// True if common prefixes may be moved below the table.
    prefixes: bool,
}

const GAP: usize = 2;
const INDENT: usize = 2;
/// Minimum width of a truncated column.
const WIDTH_MIN: usize = 8;
/// Preferred minimum widths of lists and text, while other columns can still shrink.
const LIST_FAIR: usize = 30;
const WORDS_FAIR: usize = 14;
/// Minimum length of a common prefix to be moved below the table.
const PREFIX_MIN: usize = 6;

impl Table {
    pub(crate) fn new<T: Clone + Into<Cow<'static, str>>>(columns: &[(T, Align)]) -> Self {
        let columns = columns.iter().map(|(title, align)| (title.clone().into(), *align)).collect();
        Self { columns, rows: Vec::new(), prefixes: true }
    }

    /// Keeps common prefixes in the cells.
    pub(crate) fn without_prefixes(mut self) -> Self {
        self.prefixes = false;
        self
    }

    /// True if it fits the width without truncating any cell below its preferred minimum.
    pub(crate) fn fits(&self, width: usize) -> bool {
        let widths = self.widths(&self.rows);
        let least = widths.iter().enumerate().map(|(at, natural)| match self.columns[at].1 {
            Align::Right => *natural,
            Align::Left | Align::List => {
                (*natural).min(WORDS_FAIR.max(columns(&self.columns[at].0)))
            }
        });
        INDENT + least.sum::<usize>() + GAP * widths.len().saturating_sub(1) <= width
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The lines, heading first; at the end, the omitted prefixes.
    pub(crate) fn lines(&self, width: usize) -> Vec<String> {
        let mut rows = self.rows.clone();
        let mut widths = self.widths(&rows);
        let taken = |widths: &[usize]| {
            INDENT + widths.iter().sum::<usize>() + GAP * (widths.len().saturating_sub(1))
        };
        let mut left_out = Vec::new();
        let mut words: Vec<usize> = self.aligned(Align::Left).collect();
        words.sort_by_key(|column| std::cmp::Reverse(widths[*column]));
        for column in words {
            if taken(&widths) <= width || !self.prefixes {
                break;
            }
            if let Some(prefix) = take_prefix(&mut rows, column) {
                left_out.push((column, prefix));
                widths = self.widths(&rows);
            }
        }
        // A few list items are worth more than full names, and part of a name is worth more than
        // all items.
        for (align, least) in [
            (Align::List, LIST_FAIR),
            (Align::Left, WORDS_FAIR),
            (Align::List, WIDTH_MIN),
            (Align::Left, WIDTH_MIN),
        ] {
            while taken(&widths) > width {
                let least = |column: usize| columns(&self.columns[column].0).max(least);
                let widest = self
                    .aligned(align)
                    .filter(|column| widths[*column] > least(*column))
                    .max_by_key(|column| widths[*column]);
                let Some(column) = widest else { break };
                widths[column] -= 1;
            }
        }
        for column in self.aligned(Align::Left).collect::<Vec<_>>() {
            let mut cells: Vec<&mut String> = rows.iter_mut().map(|row| &mut row[column]).collect();
            shorten_apart(&mut cells, widths[column]);
        }
        let heading: Vec<String> = self.columns.iter().map(|(name, _)| name.to_string()).collect();
        let lines = std::iter::once(&heading).chain(&rows).map(|cells| self.line(cells, &widths));
        let mut lines: Vec<String> = lines.collect();
        for (column, prefix) in left_out {
            let title = &*self.columns[column].0;
            let before = if title.is_empty() { String::new() } else { format!("{title}: ") };
            let room = width.saturating_sub(INDENT + columns(&before) + 4);
            lines.push(format!("{}{before}… = {}", " ".repeat(INDENT), shorten(&prefix, room)));
        }
        lines
    }

    fn aligned(&self, align: Align) -> impl Iterator<Item = usize> {
        (0..self.columns.len()).filter(move |column| self.columns[*column].1 == align)
    }

    fn widths(&self, rows: &[Vec<String>]) -> Vec<usize> {
        (0..self.columns.len())
            .map(|column| {
                let cells = rows.iter().map(|row| columns(&row[column]));
                cells.chain([columns(&self.columns[column].0)]).max().unwrap_or(0)
            })
            .collect()
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = " ".repeat(INDENT);
        for (column, cell) in cells.iter().enumerate() {
            let align = self.columns[column].1;
            let text = match align {
                Align::List => shorten_list(cell, widths[column]),
                _ => shorten(cell, widths[column]),
            };
            line.push_str(&match align {
                Align::Left | Align::List => at_left(&text, widths[column]),
                Align::Right => at_right(&text, widths[column]),
            });
            line.push_str(&" ".repeat(GAP));
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// Replaces the prefix common to all cells of a column, up to a slash or a space, by an ellipsis.
fn take_prefix(rows: &mut [Vec<String>], column: usize) -> Option<String> {
    let (first, others) = rows.split_first()?;
    let mut end = first[column].len();
    for row in others {
        let same = first[column].bytes().zip(row[column].bytes()).take_while(|(a, b)| a == b);
        end = end.min(same.count());
    }
    // Requires at least two cells, each with a non-empty remainder.
    let end = first[column].as_bytes()[..end].iter().rposition(|byte| b"/ ".contains(byte))? + 1;
    let prefix = first[column][..end].to_owned();
    // "taskwrapper (57 %)" is not a path: its name must stay.
    if others.is_empty() || !prefix.contains('/') || columns(&prefix) < PREFIX_MIN {
        return None;
    }
    for row in rows {
        row[column].replace_range(..end, "…");
    }
    Some(prefix)
}

/// Truncates between items: "grep 57, ps 38, …".
pub(crate) fn shorten_list(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    for item in text.split(", ") {
        if columns(&out) + columns(item) + columns(", …") > width {
            break;
        }
        out.push_str(item);
        out.push_str(", ");
    }
    if out.is_empty() { shorten(text, width) } else { out + "…" }
}

/// Truncates texts like [`shorten`], but where different ones would become the same, so that the first place where
/// they differ stays: "tests/…y::test_create", "tests/…y::test_delete".
pub(crate) fn shorten_apart(texts: &mut [&mut String], width: usize) {
    let mut same: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, text) in texts.iter().enumerate().filter(|(_, text)| columns(text) > width) {
        same.entry(shorten(text, width)).or_default().push(at);
    }
    for (_, members) in same {
        let Some(shared) = shared(texts, &members) else { continue };
        // Some of what is shared tells where the rest is.
        let head = beginning(&shared, width / 3);
        let two_back = shared.char_indices().nth_back(1).map_or(0, |(at, _)| at);
        for at in members {
            let tail = &texts[at][two_back.max(head.len())..];
            *texts[at] = cut(&format!("{head}…{tail}"), width).into_owned();
        }
    }
}

/// The beginning that all of these have; `None` if they do not differ.
fn shared(texts: &[&mut String], members: &[usize]) -> Option<String> {
    let (first, others) = members.split_first()?;
    let first = &**texts[*first];
    let with = |at: &usize| {
        let other = &**texts[*at];
        let same = first.chars().zip(other.chars()).take_while(|(one, other)| one == other);
        (other != first).then(|| same.map(|(c, _)| c).collect())
    };
    others.iter().filter_map(with).min_by_key(String::len)
}

/// Truncates in the middle, because both ends of a name are more informative than its middle.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    if width < 3 {
        return beginning(text, width).to_owned();
    }
    let front = beginning(text, front_width(text, width - 1));
    format!("{front}…{}", ending(text, width - 1 - columns(front)))
}

/// Number of the kept columns that are taken from the front. Program names differ near both ends
/// ("o2-tpc-reco-workflow", "x86_64-linux-gnu-gcc-12"). Paths differ towards the end, and keep the
/// whole file name if it fits.
fn front_width(text: &str, kept: usize) -> usize {
    if !text.starts_with('/') {
        return kept * 2 / 5;
    }
    let file = text.rsplit('/').next().map_or(0, columns);
    let front = kept / 3;
    if file <= kept { front.min(kept - file) } else { front }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_stays() {
        let mut cells: Vec<String> = ["alpha", "beta", "gamma"]
            .iter()
            .map(|name| format!("tests/integration/test_of_everything.py::{name}::with_database"))
            .collect();
        cells.push(cells[0].clone());
        let mut texts: Vec<&mut String> = cells.iter_mut().collect();
        shorten_apart(&mut texts, 24);
        assert_eq!(cells[0], "tests/in…::alpha::with_…");
        assert_eq!(cells[1], "tests/in…::beta::with_d…");
        assert_eq!(cells[3], cells[0]);
        // Those that are no longer than the width stay as they are, and equal ones have nothing to keep.
        let mut cells = ["short".to_owned(), "x".repeat(30), "x".repeat(30)];
        shorten_apart(&mut cells.iter_mut().collect::<Vec<_>>(), 24);
        assert_eq!(cells, ["short".to_owned(), "x".repeat(30), "x".repeat(30)]);
    }

    #[test]
    fn columns_stand_below_each_other_whatever_is_in_them() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        for name in ["漢字漢字漢字漢字漢字", "plain"] {
            table.row([name.to_owned(), "7".to_owned()]);
        }
        for (width, first) in [(80, "  漢字漢字漢字漢字漢字  7"), (15, "  漢…字漢字   7")]
        {
            let lines = table.lines(width);
            assert_eq!(lines[1], first);
            assert!(lines.iter().all(|line| columns(line) == columns(&lines[1])), "{lines:#?}");
        }
    }

    #[test]
    fn long_text_loses_its_middle() {
        assert_eq!(shorten("short", 8), "short");
        assert_eq!(shorten("/usr/lib/x86_64-linux-gnu", 13), "/usr…inux-gnu");
        assert_eq!(shorten("abc", 2), "ab");
        assert_eq!(columns(&shorten("grüße aus köln", 5)), 5);
        assert_eq!(shorten("漢字漢字漢字", 7), "漢…漢字");
    }

    #[test]
    fn both_ends_of_a_name_remain() {
        let compiler = "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus";
        for (text, width, shown) in [
            ("x86_64-linux-gnu-gcc-12", 24, "x86_64-linux-gnu-gcc-12"),
            ("x86_64-linux-gnu-gcc-12", 16, "x86_64…nu-gcc-12"),
            ("x86_64-linux-gnu-g++-12", 14, "x86_6…u-g++-12"),
            ("o2-tpc-reco-workflow", 14, "o2-tp…workflow"),
            ("o2-trd-reco-workflow", 14, "o2-tr…workflow"),
            ("taskwrapper (0.5 %)", 14, "taskw… (0.5 %)"),
            (compiler, 24, "/usr/li…x-gnu/12/cc1plus"),
            (compiler, 14, "/usr…2/cc1plus"),
            (compiler, 8, "…cc1plus"),
            ("/usr/bin/x86_64-linux-gnu-gcc-12", 24, "…x86_64-linux-gnu-gcc-12"),
        ] {
            assert_eq!(shorten(text, width), shown, "{text}");
        }
    }

    #[test]
    fn lists_are_cut_between_items() {
        assert_eq!(shorten_list("grep 57, ps 38", 14), "grep 57, ps 38");
        assert_eq!(shorten_list("grep 57, ps 38, sed 3", 20), "grep 57, ps 38, …");
        assert_eq!(shorten_list("grep 57, ps 38, sed 3", 16), "grep 57, …");
        let mut table = Table::new(&[("name", Align::Left), ("what", Align::List)]);
        table.row(["a".repeat(20), "grep 57, ps 38, sed 3".into()]);
        // First names shrink to the minimum that distinguishes them, then lists.
        assert!(table.lines(40)[1].ends_with("a  grep 57, ps 38, sed 3"), "{:?}", table.lines(40));
        assert!(table.lines(30)[1].ends_with("a  grep 57, …"), "{:?}", table.lines(30));
    }

    #[test]
    fn what_cells_share_is_said_once() {
        let mut table = Table::new(&[("directory", Align::Left)]);
        for name in ["/opt/grüße/lib/00", "/opt/grüße/lib/01"] {
            table.row([name.into()]);
        }
        assert_eq!(table.lines(40)[1], "  /opt/grüße/lib/00");
        assert_eq!(table.lines(18)[1..3], ["  …00", "  …01"]);
        assert!(table.lines(18)[3].starts_with("  directory: … = "));
    }

    #[test]
    fn headings_are_never_cut() {
        let mut table = Table::new(&[("its command line", Align::Left)]);
        table.row(["a".repeat(90)]);
        assert_eq!(table.lines(10)[0], "  its command line");
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
