//! Wildcard patterns with stars, and matching.

use std::fmt;

/// The literal pieces between the stars, one more than there are stars.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Pattern {
    pieces: Vec<String>,
}

impl Pattern {
    /// A pattern from its literal pieces. No pieces at all mean the empty text.
    pub(crate) fn new(mut pieces: Vec<String>) -> Self {
        if pieces.is_empty() {
            pieces.push(String::new());
        }
        Self { pieces }
    }

    /// A pattern from text in which every star is a wildcard.
    pub(crate) fn plain(text: &str) -> Self {
        Self { pieces: text.split('*').map(str::to_owned).collect() }
    }

    /// True if it matches only one text.
    pub(crate) fn is_exact(&self) -> bool {
        self.pieces.len() == 1
    }

    /// True if it matches this text: a star matches any characters, including none.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let (first, rest) = match self.pieces.split_first() {
            None => return text.is_empty(),
            Some((only, [])) => return text == only,
            Some(split) => split,
        };
        let (last, middle) = rest.split_last().expect("the case of one piece is above");
        let Some(text) = text.strip_prefix(first.as_str()) else { return false };
        let Some(mut text) = text.strip_suffix(last.as_str()) else { return false };
        // Matching each piece at the earliest position leaves the most text for the following ones.
        for piece in middle {
            match text.find(piece.as_str()) {
                Some(at) => text = &text[at + piece.len()..],
                None => return false,
            }
        }
        true
    }
}

impl fmt::Display for Pattern {
    /// The notation between quotation marks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, piece) in self.pieces.iter().enumerate() {
            if at > 0 {
                f.write_str("*")?;
            }
            f.write_str(&quoted(piece))?;
        }
        Ok(())
    }
}

/// Text quoted for a selector, with its stars escaped.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\\' | '"' | '*' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, matched, others) in [
            ("sed", vec!["sed"], vec!["", "se", "sedx", "xsed"]),
            ("s*", vec!["s", "sed"], vec!["", "xs"]),
            ("*", vec!["", "sed"], vec![]),
            ("*ed", vec!["ed", "sed"], vec!["eds", "d"]),
            ("a*a", vec!["aa", "aba", "aaa"], vec!["a", "ab"]),
            ("a*b*b", vec!["abb", "axbxb"], vec!["ab", "axb"]),
            ("**", vec!["", "x"], vec![]),
        ] {
            let parsed = Pattern::plain(pattern);
            for text in matched {
                assert!(parsed.matches(text), "{pattern} {text}");
            }
            for text in others {
                assert!(!parsed.matches(text), "{pattern} {text}");
            }
        }
    }
}
