//! Payload strings as a page shows them.

use std::borrow::Cow;
use std::fmt::Write as _;

use proctrace_report::escape::is_unseen;
use serde_json::Value;

/// The text with every character that would not be seen, or that changes the direction of the text, as
/// `\u{…}`.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unseen) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unseen(c) {
            // Writing to a String cannot fail.
            let _ = write!(out, "{}", c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out.into()
}

/// The same for all strings of a value.
pub(crate) fn visible_value(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(changed) = visible(text) {
                *text = changed;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(visible_value),
        Value::Object(map) => {
            if map.keys().any(|key| key.contains(is_unseen)) {
                *map = std::mem::take(map)
                    .into_iter()
                    .map(|(key, value)| (visible(&key).into_owned(), value))
                    .collect();
            }
            map.values_mut().for_each(visible_value);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Text between tags or in an attribute.
pub(crate) fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_hidden_stays_hidden_and_nothing_becomes_markup() {
        assert_eq!(visible("a\u{202e}b\u{2028}\u{1b}[31m"), "a\\u{202e}b\\u{2028}\\u{1b}[31m");
        assert!(matches!(visible("grüße <b>"), Cow::Borrowed("grüße <b>")));
        assert_eq!(markup("</title><script>\"'&"), "&lt;/title&gt;&lt;script&gt;&quot;&#39;&amp;");
        let mut value = json!({"a\u{200b}": ["\u{feff}", 1, null], "b": "c"});
        visible_value(&mut value);
        assert_eq!(value, json!({"a\\u{200b}": ["\\u{feff}", 1, null], "b": "c"}));
    }
}
