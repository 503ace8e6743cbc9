//! Labelled lines of text: "  CPU      12.4 s · …", wrapped beside the label.

use std::fmt::Write as _;

use crate::escape::terminal;
use crate::fit::{beginning, columns, pieces, wrap};
use crate::style::Style;

/// Column at which the words begin.
const INDENT: usize = 11;

/// Appends a labelled paragraph. Words are escaped here; a word that is longer than the line, such as a
/// path, is broken.
pub(crate) fn push_words(out: &mut String, label: &str, words: &str, style: Style) {
    for (at, line) in broken(words, style.width.saturating_sub(INDENT)).iter().enumerate() {
        let label = if at == 0 { label } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "  {label:<9}{line}");
    }
}

/// Lines of at most this width.
pub(crate) fn broken(words: &str, width: usize) -> Vec<String> {
    let lines = wrap(&terminal(words), width);
    lines.iter().flat_map(|line| pieces(line, width)).map(str::to_owned).collect()
}

/// Arguments as a shell would take them, so that empty ones and those with spaces can be seen.
pub(crate) fn command_line(arguments: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-+=./,:@%^~#{}[]".contains(c);
    let quoted = |argument: &String| {
        if !argument.is_empty() && argument.chars().all(plain) {
            argument.clone()
        } else {
            format!("'{}'", argument.replace('\'', "'\\''"))
        }
    };
    arguments.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// The beginning of a text that is too long.
pub(crate) fn begins(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    format!("{}…", beginning(text, width.saturating_sub(1)).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_told_apart() {
        let all = ["sed", "-n", "s/a b/'/", "", "x=1"].map(str::to_owned);
        assert_eq!(command_line(&all), r"sed -n 's/a b/'\''/' '' x=1");
    }

    #[test]
    fn paragraphs_keep_to_their_width() {
        let mut out = String::new();
        push_words(&mut out, "Path", &format!("a {} \x1b[1m", "b".repeat(100)), Style::default());
        assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
        assert!(out.starts_with("  Path     a\n           bbb") && !out.contains('\x1b'), "{out}");
        assert_eq!(begins("abcdef", 4), "abc…");
    }
}
