//! Columns that a text takes in a terminal, and texts that are made to fit into so many.
//!
//! A wide character, such as those of Chinese and most emoji, takes two columns, a combining one none.

use std::borrow::Cow;

use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};
use unicode_truncate::{Alignment, UnicodeTruncateStr};
use unicode_width::UnicodeWidthStr;

/// Columns of a text.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// The first columns of a text, at most so many.
pub fn beginning(text: &str, width: usize) -> &str {
    text.unicode_truncate(width).0
}

/// The last ones.
pub(crate) fn ending(text: &str, width: usize) -> &str {
    text.unicode_truncate_start(width).0
}

/// A text and behind it so many spaces that it has this width, or at least its own.
pub(crate) fn at_left(text: &str, width: usize) -> Cow<'_, str> {
    text.unicode_pad(width, Alignment::Left, false)
}

/// The same with the spaces before it.
pub(crate) fn at_right(text: &str, width: usize) -> Cow<'_, str> {
    text.unicode_pad(width, Alignment::Right, false)
}

/// The beginning of a text that is too wide, with an ellipsis; other texts as they are.
pub fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if columns(text) <= width {
        return text.into();
    }
    format!("{}…", beginning(text, width.saturating_sub(1))).into()
}

/// A text in parts of at most this width, or of one character that is wider; an empty text is one part.
pub fn pieces(text: &str, width: usize) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let one = text.chars().next().map_or(0, char::len_utf8);
        let (piece, after) = text.split_at(beginning(text, width).len().max(one));
        rest = (!after.is_empty()).then_some(after);
        Some(piece)
    })
}

/// Units that stay in the line of their number.
const UNITS: [&str; 12] = ["ns", "µs", "ms", "s", "min", "h", "B", "kB", "MB", "GB", "TB", "%"];

/// A space at which no line is broken; none is left of the text's own, which are whitespace.
const KEPT: char = '\u{a0}';

/// Lines of at most this width, broken between words, but not between a number and its unit; a wider word gets a line of
/// its own.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut joined = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        let unit = word.trim_end_matches([',', ';', ':', '.', ')']);
        let is_of_number = joined.ends_with(|c: char| c.is_ascii_digit()) && UNITS.contains(&unit);
        if !joined.is_empty() {
            joined.push(if is_of_number { KEPT } else { ' ' });
        }
        joined.push_str(word);
    }
    let between_words = Options::new(width)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    let lines = textwrap::wrap(&joined, between_words);
    lines.into_iter().map(|line| line.replace(KEPT, " ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!([columns("grüße"), columns("漢字"), columns("e\u{301}")], [5, 4, 1]);
        assert_eq!([cut("漢字漢", 5), cut("漢字漢", 4), cut("漢字", 4)], ["漢字…", "漢…", "漢字"]);
        assert_eq!(
            [at_left("漢字", 6), at_right("漢字", 6), at_left("漢字", 3)],
            ["漢字  ", "  漢字", "漢字"]
        );
        assert_eq!(pieces("a漢字b", 3).collect::<Vec<_>>(), ["a漢", "字b"]);
        assert_eq!(pieces("漢字", 1).collect::<Vec<_>>(), ["漢", "字"]);
        assert_eq!(wrap("漢字 漢字 a", 6), ["漢字", "漢字 a"]);
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrap("one  two\nthree-four", 7), ["one two", "three-four"]);
        assert_eq!([wrap("", 5), wrap("a b", 0)], [vec![""], vec!["a", "b"]]);
        assert_eq!(wrap("CPU 10 s, (3.1 ms) a b", 7), ["CPU", "10 s,", "(3.1 ms)", "a b"]);
        assert_eq!(wrap("x1 sh 2\u{a0}s", 4), ["x1", "sh", "2 s"]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_too_wide(text: String, width in 0..9_usize) {
            prop_assert!(columns(&cut(&text, width)) <= width.max(1));
            prop_assert_eq!(pieces(&text, width).collect::<String>(), text);
        }
    }
}
