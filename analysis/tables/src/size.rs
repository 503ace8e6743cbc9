//! Refuses SQL that is too long or too deeply nested for those who read it, before anybody reads it.
//!
//! `1+1+…` becomes a tree as deep as the text has signs, a chain of UNION one as deep as it has queries. The parser
//! builds both without recursion, but everything after it recurs: checks, printing, the engine, even freeing the tree.
//! A stack that overflows ends the program.

use super::words::{Token, tokens};

/// Maximum length of SQL. Lists of values may be long.
const BYTES_MAX: usize = 1 << 20;

/// Most words and signs, not counting the elements of lists: no tree is deeper than this. The longest question of a
/// fleet has a fifth of them.
pub(crate) const PARTS_MAX: usize = 2_000;

/// Refuses SQL that is too large.
///
/// # Errors
/// What is too much, and how much is allowed.
pub(crate) fn check(sql: &str) -> Result<(), String> {
    if sql.len() > BYTES_MAX {
        return Err(format!("the SQL has {} bytes; at most {BYTES_MAX} are read", sql.len()));
    }
    let parts = parts(&tokens(sql));
    if parts > PARTS_MAX {
        return Err(format!(
            "the SQL has {parts} words and signs, besides elements of lists; at most {PARTS_MAX} are \
             read: put values into a list, x IN (…), or ask in several queries"
        ));
    }
    Ok(())
}

/// Words and signs. Commas, and single words between commas or parentheses, do not nest anything.
fn parts(tokens: &[Token]) -> usize {
    let is = |at: Option<usize>, signs: &[char]| {
        let token = at.and_then(|at| tokens.get(at));
        token.is_some_and(|token| matches!(token, Token::Other(sign) if signs.contains(sign)))
    };
    let nests = |at: usize| match tokens.get(at) {
        Some(Token::Other(',')) | None => false,
        Some(Token::Other(_)) => true,
        Some(Token::Word(_) | Token::Quoted(_)) => {
            !(is(at.checked_sub(1), &[',', '(']) && is(Some(at + 1), &[',', ')']))
        }
    };
    (0..tokens.len()).filter(|at| nests(*at)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_refused_and_lists_are_not() {
        let sum = |terms: usize| format!("SELECT {} FROM t", vec!["1"; terms].join("+"));
        assert_eq!(check(&sum(900)), Ok(()));
        assert!(check(&sum(50_000)).unwrap_err().contains("at most 2000 are read"));
        let list = |element: &str| {
            format!("SELECT 1 FROM t WHERE a IN ({})", [element; 90_000].join(", "))
        };
        for element in ["17", "'x'", "b"] {
            assert_eq!(check(&list(element)), Ok(()), "{element}");
        }
        let long = format!("SELECT 1 FROM t WHERE a = '{}'", "x".repeat(2 << 20));
        assert!(check(&long).unwrap_err().contains("bytes"));
        for chain in ["NOT ", "(", "f(", "- ", "a, (", "CASE WHEN ", "1 IS NULL ", "x[1]"] {
            assert!(check(&chain.repeat(5_000)).is_err(), "{chain}");
        }
    }
}
