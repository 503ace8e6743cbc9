//! Making strings of unknown origin harmless.

use std::borrow::Cow;

/// For a terminal, which obeys control characters, and reads some invisible ones from right to
/// left: both become visible escapes. Line feeds are control characters, too.
pub fn terminal(text: &str) -> Cow<'_, str> {
    if !text.contains(is_harmful) {
        return text.into();
    }
    text.chars()
        .map(|c| if is_harmful(c) { c.escape_default().to_string() } else { c.to_string() })
        .collect()
}

/// For Markdown: what could begin a link, an image, emphasis, code or HTML is taken literally.
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in terminal(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '!' | '~' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// For SVG. The markup itself is escaped where it is written; this is about characters that XML
/// does not allow at all.
pub fn xml(text: &str) -> Cow<'_, str> {
    terminal(text)
}

fn is_harmful(c: char) -> bool {
    // bidirectional controls (Unicode 15, section 23.2), and non-characters XML forbids
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_made_visible() {
        assert_eq!(terminal("a\x1b]52;c;x\x07b\nc"), "a\\u{1b}]52;c;x\\u{7}b\\nc");
        assert_eq!(terminal("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(terminal("a\u{202e}gpj.exe"), "a\\u{202e}gpj.exe");
        assert!(matches!(terminal("grüße"), Cow::Borrowed("grüße")));
    }
}
