//! The words of an SQL text, to determine which tables and columns it may need.
//!
//! Reading too much only costs time, so this need not understand SQL: it finds what follows FROM
//! and JOIN, and every word that may be a column.

use std::collections::BTreeSet;

/// The names that an SQL text refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mentioned {
    /// Words in table positions, in the order of the text.
    pub(crate) tables: Vec<String>,
    /// All words.
    pub(crate) words: BTreeSet<String>,
    /// True if a `*` for all columns occurs.
    pub(crate) all_columns: bool,
}

/// A part of an SQL text; texts in single quotes and comments are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A name, or a keyword.
    Word(String),
    /// A quoted name, which is never a keyword.
    Quoted(String),
    Other(char),
}

impl Token {
    fn is(&self, keyword: &str) -> bool {
        matches!(self, Self::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::Word(name) | Self::Quoted(name) => Some(name),
            Self::Other(_) => None,
        }
    }
}

/// Words that end a list of tables.
const CLAUSES: [&str; 9] =
    ["select", "where", "group", "order", "having", "limit", "union", "window", "qualify"];

impl Mentioned {
    pub(crate) fn of(sql: &str) -> Self {
        let tokens = tokens(sql);
        let mut mentioned = Self::default();
        // Whether a list of tables has begun, and whether the next word is a table: after FROM,
        // JOIN, or a comma, which may also separate the columns of USING and ON.
        let (mut in_list, mut is_next) = (false, false);
        for (at, token) in tokens.iter().enumerate() {
            if let Some(name) = token.name() {
                mentioned.words.insert(name.to_owned());
                if is_next {
                    mentioned.tables.push(name.to_owned());
                }
            }
            if *token == Token::Other('*') && !is_product(&tokens, at) {
                mentioned.all_columns = true;
            }
            if token.is("from") || token.is("join") {
                (in_list, is_next) = (true, true);
            } else {
                in_list &= !CLAUSES.iter().any(|clause| token.is(clause));
                is_next = in_list && *token == Token::Other(',');
            }
        }
        mentioned
    }
}

/// True if a `*` multiplies, or counts rows: a `*` for all columns follows SELECT, a comma, a dot,
/// or an opening parenthesis other than that of count(*).
fn is_product(tokens: &[Token], at: usize) -> bool {
    match at.checked_sub(1).and_then(|before| tokens.get(before)) {
        None => false,
        Some(Token::Other('(')) => {
            at.checked_sub(2).and_then(|name| tokens.get(name)).is_some_and(|name| name.is("count"))
        }
        Some(Token::Other(before)) => *before == ')',
        Some(before) => !["select", "distinct", "all"].iter().any(|keyword| before.is(keyword)),
    }
}

/// The parts of an SQL text, in order.
pub(super) fn tokens(sql: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, rest)| rest);
        } else if matches!(first, '\'' | '"' | '`') {
            let (text, behind) = quoted(&rest[1..], first);
            if first != '\'' {
                tokens.push(Token::Quoted(text));
            }
            rest = behind;
        } else if first.is_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            tokens.push(Token::Word(word.to_owned()));
            rest = behind;
        } else {
            if !first.is_whitespace() {
                tokens.push(Token::Other(first));
            }
            rest = &rest[first.len_utf8()..];
        }
    }
    tokens
}

/// The SQL with numbers like 1e9 written out, which the engine cannot parse.
pub(crate) fn with_plain_numbers(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let taken = if first.is_ascii_digit() {
            let number = exponential(rest);
            if let Some((_, value)) = number {
                // As a float, so that dividing by it is not an integer division.
                out.push_str(&format!("{value:.1}"));
            }
            number.map(|(taken, _)| taken)
        } else {
            None
        };
        match taken {
            Some(taken) => rest = &rest[taken..],
            None => {
                let taken = inert(rest);
                out.push_str(&rest[..taken]);
                rest = &rest[taken..];
            }
        }
    }
    out
}

/// Length and value of a number with an exponent at the beginning of a text. Numbers too small to
/// be written out are left for the engine to reject.
fn exponential(text: &str) -> Option<(usize, f64)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut at = digits(text);
    if let Some(fraction) = text[at..].strip_prefix('.') {
        at += 1 + digits(fraction);
    }
    let exponent = text[at..].strip_prefix(['e', 'E'])?;
    let sign = usize::from(exponent.starts_with(['+', '-']));
    let power = digits(&exponent[sign..]);
    let end = at + 1 + sign + power;
    let behind = text[end..].chars().next();
    // What goes on is no number, but must not become one.
    if power == 0 || behind.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.')) {
        return None;
    }
    let value: f64 = text[..end].parse().ok()?;
    (value == 0.0 || (1e-1..1e30).contains(&value)).then_some((end, value))
}

/// Length of the token at the beginning of a text inside which no number can begin: a quoted text,
/// a comment, a word, or one character.
fn inert(text: &str) -> usize {
    let first = text.chars().next().unwrap_or(' ');
    if let Some(comment) = text.strip_prefix("--") {
        2 + comment.find('\n').unwrap_or(comment.len())
    } else if let Some(comment) = text.strip_prefix("/*") {
        2 + comment.find("*/").map_or(comment.len(), |end| end + 2)
    } else if matches!(first, '\'' | '"' | '`') {
        text.len() - quoted(&text[1..], first).1.len()
    } else if first.is_alphanumeric() || first == '_' {
        text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len())
    } else {
        first.len_utf8()
    }
}

/// The text up to the closing quote, which is doubled inside the text, and the rest.
fn quoted(text: &str, quote: char) -> (String, &str) {
    let mut out = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c != quote {
            out.push(c);
        } else if chars.next_if(|(_, next)| *next == quote).is_some() {
            out.push(quote);
        } else {
            return (out, &text[at + quote.len_utf8()..]);
        }
    }
    (out, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tables(sql: &str) -> Vec<String> {
        Mentioned::of(sql).tables
    }

    #[test]
    fn tables_follow_from_and_join() {
        assert_eq!(tables("SELECT execs, lookups FROM processes"), ["processes"]);
        assert_eq!(
            tables("select p.pid from processes AS p JOIN execs e USING (process_id), memory m"),
            ["processes", "execs", "memory"]
        );
        assert_eq!(
            tables("SELECT 1 FROM a JOIN b USING (c, d) WHERE e IN (f, g)"),
            ["a", "b", "d"]
        );
        assert_eq!(
            tables("WITH a AS (SELECT * FROM bins) SELECT * FROM a LEFT JOIN \"losses\" ON true"),
            ["bins", "a", "losses"]
        );
        assert_eq!(
            tables("SELECT 1 FROM (SELECT 2 FROM samples) x, threads"),
            ["samples", "threads"]
        );
        assert_eq!(tables("SELECT 'FROM lookups' -- FROM execs\n FROM bins"), ["bins"]);
    }

    #[test]
    fn all_columns_are_told_from_products_and_counts() {
        for sql in
            ["SELECT * FROM a", "SELECT a.* FROM a", "SELECT b, * FROM a", "select distinct *"]
        {
            assert!(Mentioned::of(sql).all_columns, "{sql}");
        }
        for sql in ["SELECT count(*) FROM a", "SELECT a * 2 FROM a", "SELECT sum(a) * 2, 3 * b"] {
            assert!(!Mentioned::of(sql).all_columns, "{sql}");
        }
    }

    #[test]
    fn words_are_names_and_not_texts() {
        let words = Mentioned::of("SELECT \"a b\", c AS d FROM e WHERE f = 'g'").words;
        for word in ["a b", "c", "d", "e", "f"] {
            assert!(words.contains(word), "{word}");
        }
        assert!(!words.contains("g"));
    }

    #[test]
    fn exponents_are_written_out() {
        for (sql, plain) in [
            ("a / 1e9", "a / 1000000000.0"),
            ("2.5E+3, 1e-1", "2500.0, 0.1"),
            ("e1e9, a1e9 x_1e9", "e1e9, a1e9 x_1e9"),
            ("'1e9' \"1e9\" -- 1e9\n/* 1e9 */ 1.5", "'1e9' \"1e9\" -- 1e9\n/* 1e9 */ 1.5"),
            ("1e 1e999 12 3e5x", "1e 1e999 12 3e5x"),
            ("0E+0e0'", "0E+0.0'"),
            ("0E+0.0'", "0E+0.0'"),
        ] {
            assert_eq!(with_plain_numbers(sql), plain);
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(sql: String) {
            Mentioned::of(&sql);
            with_plain_numbers(&sql);
        }

        #[test]
        fn any_numbers_can_be_read(sql in "[-0-9eE.+'\" a]{0,30}") {
            Mentioned::of(&sql);
            let plain = with_plain_numbers(&sql);
            prop_assert_eq!(with_plain_numbers(&plain), plain);
        }
    }
}
