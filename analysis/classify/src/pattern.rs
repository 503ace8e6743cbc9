//! Patterns of rules: `*` matches anything, `{}` captures one word; of several words, what is from the first to the last.

/// A piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// These bytes.
    Literal(Vec<u8>),
    /// Any bytes, or none.
    Any,
    /// One or more bytes, neither white space nor a slash.
    Word,
}

/// A pattern over bytes. It must match the whole text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    pieces: Vec<Piece>,
}

/// The search recurses once per piece, so more pieces could exhaust the stack.
const PIECES_MAX: usize = 1000;

impl Pattern {
    pub fn new(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        let mut rest = text.as_bytes();
        let mut push = |literal: &mut Vec<u8>, piece: Option<Piece>| {
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(literal)));
            }
            if let Some(piece) = piece
                && !(piece == Piece::Any && pieces.last() == Some(&Piece::Any))
            {
                pieces.push(piece);
            }
        };
        while let [first, after @ ..] = rest {
            rest = after;
            match (first, after) {
                (b'*', _) => push(&mut literal, Some(Piece::Any)),
                (b'{', [b'}', after @ ..]) => {
                    push(&mut literal, Some(Piece::Word));
                    rest = after;
                }
                (byte, _) => literal.push(*byte),
            }
        }
        push(&mut literal, None);
        Self { pieces }
    }

    /// True if it has more pieces than the search can handle.
    pub fn is_too_long(&self) -> bool {
        self.pieces.len() > PIECES_MAX
    }

    /// Number of words it captures.
    pub fn words(&self) -> usize {
        self.pieces.iter().filter(|piece| **piece == Piece::Word).count()
    }

    pub fn matches(&self, text: &[u8]) -> bool {
        // Most are names of programs.
        if let [Piece::Literal(bytes)] = &self.pieces[..] {
            return bytes == text;
        }
        self.find(text).is_some()
    }

    /// The captured word, or from the first captured word to the end of the last; the whole text if the pattern captures
    /// none, or `None` if it does not match.
    pub fn find<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        let mut search = Search { text, failed: vec![None; self.pieces.len()], captured: None };
        search
            .from(&self.pieces, 0)
            .then(|| search.captured.map_or(text, |(from, to)| &text[from..to]))
    }
}

fn is_of_word(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && byte != b'/'
}

/// Backtracking search that never retries a failed position, so its time is at most the product of
/// both lengths: the text is untrusted.
struct Search<'a> {
    text: &'a [u8],
    /// Failed attempts by number of remaining pieces: where this piece failed, and how far that
    /// attempt reached.
    failed: Vec<Option<(usize, usize)>>,
    /// Begin of the first and end of the last word.
    captured: Option<(usize, usize)>,
}

impl Search<'_> {
    fn from(&mut self, pieces: &[Piece], at: usize) -> bool {
        let Some((first, rest)) = pieces.split_first() else { return at == self.text.len() };
        if let Piece::Literal(bytes) = first {
            return self.text[at..].starts_with(bytes) && self.from(rest, at + bytes.len());
        }
        // The rest of the match depends on where this piece ends, not on where it began; and a word
        // that begins within another ends where that does.
        if self.failed[rest.len()].is_some_and(|(from, to)| from <= at && at <= to) {
            return false;
        }
        let ends = if *first == Piece::Any {
            at..=self.text.len()
        } else {
            let word = self.text[at..].iter().take_while(|byte| is_of_word(**byte));
            at + 1..=at + word.count()
        };
        let last = *ends.end();
        for end in ends {
            if self.from(rest, end) {
                if *first == Piece::Word {
                    // Later words are known already.
                    self.captured = Some((at, self.captured.map_or(end, |(_, last)| last)));
                }
                return true;
            }
        }
        self.failed[rest.len()] = Some((at, last));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn find<'a>(pattern: &str, text: &'a str) -> Option<&'a str> {
        let found = Pattern::new(pattern).find(text.as_bytes())?;
        Some(std::str::from_utf8(found).unwrap())
    }

    #[test]
    fn stars_stand_for_anything() {
        assert!(find("o2-*-workflow", "o2-its-reco-workflow").is_some());
        assert!(find("o2-*", "o2-").is_some());
        assert!(find("o2-*", "xo2-sim").is_none());
        assert!(find("**a**", "a").is_some());
        assert!(find("sed", "sedx").is_none());
        assert!(find("", "").is_some());
        assert!(find("", "x").is_none());
        assert!(find("a*b*c", "a-b-b-c-c").is_some());
    }

    #[test]
    fn words_are_kept() {
        assert_eq!(find("*taskwrapper {}.log*", ". x.sh; taskwrapper tpc_1.log o2"), Some("tpc_1"));
        assert_eq!(find("*taskwrapper {}.log*", "taskwrapper() { }; taskwrapper a.log"), Some("a"));
        assert_eq!(find("*taskwrapper {}.log*", "taskwrapper a b.log"), None);
        assert_eq!(find("*taskwrapper *{}.log*", "taskwrapper tf1/a_1.log x"), Some("a_1"));
        assert_eq!(find("*/{}.sh", "bash /a/b/c.sh"), Some("c"));
        assert_eq!(find("worker_{}", "worker_12"), Some("12"));
        assert_eq!(find("worker_{}", "worker_"), None);
        assert_eq!(find("shared_writer", "shared_writer"), Some("shared_writer"));
    }

    #[test]
    fn several_words_are_kept_with_what_is_between() {
        assert_eq!(find("*/work/{}/{}", "/w/work/3f/a01b"), Some("3f/a01b"));
        assert_eq!(find("*/{}/{}", "/w/work/3f/a01b"), Some("3f/a01b"));
        assert_eq!(find("{}*{}!", "ab cd ef!"), Some("ab cd ef"));
        assert_eq!(find("*/work/{}/{}", "/w/work/3f"), None);
    }

    #[test]
    fn hostile_text_takes_no_time() {
        let text = vec![b'a'; 1 << 16];
        for pattern in ["*{}x", "*a*a*a*a*a*a*b", "*a{}a*a*x"] {
            assert!(!Pattern::new(pattern).matches(&text), "{pattern}");
        }
    }

    /// The definition of a match, implemented naively.
    fn defined(pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', rest @ ..] => (0..=text.len()).any(|at| defined(rest, &text[at..])),
            [b'{', b'}', rest @ ..] => (1..=text.len())
                .take_while(|at| is_of_word(text[at - 1]))
                .any(|at| defined(rest, &text[at..])),
            [byte, rest @ ..] => text.first() == Some(byte) && defined(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn it_does_what_is_defined(pattern in "([ab/ ]|\\*|\\{\\}){0,7}", text in "[ab/ ]{0,12}") {
            prop_assert_eq!(
                Pattern::new(&pattern).matches(text.as_bytes()),
                defined(pattern.as_bytes(), text.as_bytes())
            );
        }

        #[test]
        fn any_bytes_will_do(pattern: String, text: Vec<u8>) {
            let _ = Pattern::new(&pattern).find(&text);
        }
    }
}
