//! Numbers of events that a recording does not know, such as CPU time in an imported log: null instead of
//! the zeros that stand for them.

use std::borrow::Cow;

use proctrace_replay::KEYS_OF;
use proctrace_trace::{Header, Knowledge};

/// The keys that this recording does not know, as they occur in a line.
pub(super) fn keys(header: &Header) -> Vec<String> {
    KEYS_OF
        .iter()
        .filter(|(quantity, _)| matches!(header.knows(*quantity), Knowledge::Absent { .. }))
        .flat_map(|(_, keys)| keys.iter().map(|key| format!("\"{key}\":")))
        .collect()
}

/// A line with null for these keys. A quote in a string is escaped, so a key is found only as a key.
pub(super) fn without<'l>(line: &'l str, keys: &[String]) -> Cow<'l, str> {
    let mut line = Cow::Borrowed(line);
    for key in keys {
        let Some(at) = line.find(&**key).map(|at| at + key.len()) else { continue };
        let rest = &line[at..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        if digits > 0 {
            line = Cow::Owned(format!("{}null{}", &line[..at], &rest[digits..]));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_keys_and_numbers_are_replaced() {
        let keys = ["\"run_ns\":".to_owned(), "\"nvcsw\":".to_owned()];
        let line = r#"{"argv":["\"run_ns\":5"],"x_run_ns":7,"run_ns":12,"nvcsw":3}"#;
        let wanted = r#"{"argv":["\"run_ns\":5"],"x_run_ns":7,"run_ns":null,"nvcsw":null}"#;
        assert_eq!(without(line, &keys), wanted);
        assert_eq!(without(line, &[]), line);
    }
}
