//! Escaping of untrusted strings, one function per output format.
//!
//! The set of active characters is the same for all formats: control characters (ECMA-48),
//! characters that are invisible or change the text direction (Unicode's format characters, line
//! and paragraph separators and default ignorable code points), and the prefixes of commands that
//! CI systems look for in logs. The formats differ in how such a character is escaped.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;

/// Text for a terminal or the log of a CI job: active characters become visible escapes, including
/// line feeds.
pub fn terminal(text: &str) -> Cow<'_, str> {
    replaced(text, |c, out| {
        if c.is_ascii_punctuation() {
            out.extend(c.escape_unicode())
        } else {
            out.extend(c.escape_default())
        }
    })
}

/// Text for Markdown: anything that could start a link, an image, emphasis, code, mathematics or
/// HTML is escaped to be taken literally.
pub fn markdown(text: &str) -> String {
    let visible = terminal(text);
    let mut out = String::with_capacity(visible.len());
    for (at, c) in visible.char_indices() {
        let (before, after) = (&visible[..at], &visible[at + c.len_utf8()..]);
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '!' | '~' => out.extend(['\\', c]),
            '$' => out.push_str("&#36;"),
            c if links(before, c, after) => out.push_str(&unlinked(c)),
            c => out.push(c),
        }
    }
    out
}

/// Text for a separate paragraph of Markdown: additionally prevents it from starting a list or a
/// heading.
pub fn markdown_paragraph(text: &str) -> String {
    let text = markdown(text.trim_start());
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (front, rest) = text.split_at(digits);
    if (digits == 0 && rest.starts_with(['-', '+', '=']))
        || (digits > 0 && rest.starts_with(['.', ')']))
    {
        return format!("{front}\\{rest}");
    }
    text
}

/// True if GitHub and GitLab would autolink text around this character: an address, a user name, a
/// site (GitHub Flavored Markdown 0.29, section 6.9).
pub fn links(before: &str, c: char, after: &str) -> bool {
    match c {
        '@' => true,
        ':' => {
            after.starts_with("//")
                || ["mailto", "xmpp"].iter().any(|scheme| ends_with_word(before, scheme))
        }
        '.' => ends_with_word(before, "www"),
        _ => false,
    }
}

fn ends_with_word(text: &str, word: &str) -> bool {
    let start = text.len().checked_sub(word.len());
    start.and_then(|start| text.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(word))
}

/// The character as Markdown, followed by an empty comment: autolinks are detected after character
/// references are resolved, but not across HTML.
pub fn unlinked(c: char) -> String {
    format!("&#{};<!-- -->", u32::from(c))
}

/// Text for SVG and JUnit. Markup is escaped where it is written; this handles characters that XML
/// forbids, and those active when the text is displayed.
pub fn xml(text: &str) -> Cow<'_, str> {
    terminal(text)
}

/// A value as indented JSON without active characters, and with a line feed at its end.
///
/// # Errors
/// If it cannot be serialised.
pub fn json_text(value: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(json(&serde_json::to_string_pretty(value)?).into_owned() + "\n")
}

/// Text for serialised JSON: active characters become `\uXXXX`, which decodes to the same strings.
/// JSON contains no such characters outside strings.
pub fn json(text: &str) -> Cow<'_, str> {
    // The only ASCII control characters in serde_json's output are the line feeds of its layout.
    let plain = |byte: &u8| matches!(byte, b' '..=b'"' | b'$'..=b'~' | b'\n');
    if text.as_bytes().iter().all(plain) {
        return text.into();
    }
    let mut lines = text.split('\n').map(|line| {
        replaced(line, |c, out| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail, here and below.
                let _ = write!(out, "\\u{unit:04x}");
            }
        })
    });
    let mut out = lines.next().unwrap_or_default().into_owned();
    for line in lines {
        out.push('\n');
        out.push_str(&line);
    }
    out.into()
}

/// Text for a CSV cell. Active characters become `\xHH` for each of their bytes, the escape already
/// used for names of programs and files that are not UTF-8 (`proctrace_wire::escape`). Cells that a
/// spreadsheet would interpret as a formula are prefixed with an apostrophe (OWASP, "CSV
/// injection"); a number is not a formula. Quoted where needed.
pub fn csv(text: &str) -> String {
    let visible = replaced(text, push_bytes);
    let visible = inner_formulas(&visible);
    // A cell that already begins with apostrophes gets one more, so that the escape can be
    // reversed.
    let bare = visible.trim_start_matches('\'');
    let is_number = visible.parse::<f64>().is_ok_and(f64::is_finite);
    let apostrophe = if begins_formula(bare) && !is_number { "'" } else { "" };
    let cell = format!("{apostrophe}{visible}");
    if cell.contains(['"', ',', ';']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

/// Escapes formulas behind semicolons. Where the decimal sign is a comma, spreadsheets split at
/// semicolons even inside quotes: one before a formula is escaped.
fn inner_formulas(text: &str) -> Cow<'_, str> {
    let starts = |rest: &str| begins_formula(rest.trim_start_matches([' ', '"', '\'']));
    if !text.match_indices(';').any(|(at, _)| starts(&text[at + 1..])) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for (at, c) in text.char_indices() {
        if c == ';' && starts(&text[at + 1..]) { push_bytes(c, &mut out) } else { out.push(c) }
    }
    out.into()
}

/// Characters that begin a formula, including the full-width forms of some languages.
fn begins_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'])
}

fn push_bytes(c: char, out: &mut String) {
    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
        let _ = write!(out, "\\x{byte:02x}");
    }
}

/// The text with each active character replaced by `write`.
fn replaced(text: &str, write: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let Some(first) = text.char_indices().position(|(at, c)| acts(text, at, c)) else {
        return text.into();
    };
    let mut out = String::with_capacity(text.len() + 16);
    for (number, (at, c)) in text.char_indices().enumerate() {
        if number >= first && acts(text, at, c) { write(c, &mut out) } else { out.push(c) }
    }
    out.into()
}

fn acts(text: &str, at: usize, c: char) -> bool {
    match c {
        ' '..='"' | '$'..='9' | ';'..='~' => false,
        ':' => begins_command(&text[..at], &text[at + 1..]),
        // Azure Pipelines and older GitHub runners look for these anywhere in a line.
        '#' => {
            text[..at].ends_with('#')
                && ["[", "vso[", "teamcity["].iter().any(|name| text[at + 1..].starts_with(name))
        }
        c => is_unseen(c),
    }
}

/// GitHub's runner interprets a line starting with `::name` as a command (actions/runner,
/// ActionCommand.cs). The final position of a text in its line is unknown here, so every word start
/// is checked.
fn begins_command(before: &str, after: &str) -> bool {
    let name = after
        .strip_prefix(':')
        .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()));
    name && before.chars().next_back().is_none_or(char::is_whitespace)
}

/// True if a character is active rather than printable: control characters, format characters, line
/// and paragraph separators (Unicode 16, general categories Cc, Cf, Zl, Zp), default ignorable code
/// points, and the two non-characters that XML forbids.
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
            | '\u{890}' | '\u{891}' | '\u{8e2}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
            | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
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

    #[test]
    fn what_is_not_seen_is_made_visible() {
        for hidden in ['\u{200b}', '\u{2028}', '\u{feff}', '\u{ad}', '\u{e0041}', '\u{fe0f}'] {
            let text = format!("a{hidden}b");
            assert_eq!(terminal(&text), format!("a{}b", hidden.escape_unicode()));
        }
    }

    #[test]
    fn a_log_has_no_commands_for_its_runner() {
        assert_eq!(terminal("::error::x"), "\\u{3a}:error::x");
        assert_eq!(terminal("a ::add-mask::x"), "a \\u{3a}:add-mask::x");
        assert_eq!(terminal("##vso[x]##[y]"), "#\\u{23}vso[x]#\\u{23}[y]");
        for plain in ["std::sort", "::1", "::", "## heading", "a:b", "#[derive]"] {
            assert_eq!(terminal(plain), plain);
        }
    }

    #[test]
    fn json_means_the_same() {
        let value = "\u{9b}\u{7f}\u{202e}\u{e0041}##[error]x\n::error::";
        let written = serde_json::to_string_pretty(&[value]).unwrap();
        let visible = json(&written);
        assert!(visible.chars().all(|c| c == '\n' || !is_unseen(c)) && !visible.contains("##["));
        assert_eq!(serde_json::from_str::<Vec<String>>(&visible).unwrap(), [value]);
    }

    #[test]
    fn a_cell_is_no_formula_and_a_number_stays() {
        for (text, cell) in [
            ("-525357", "-525357"),
            ("+1.5", "+1.5"),
            ("-1+cmd()", "'-1+cmd()"),
            ("'=1", "''=1"),
            ("'quoted'", "'quoted'"),
            ("\t=1", "\\x09=1"),
            ("\u{ff1d}1", "'\u{ff1d}1"),
            ("a;=1", "a\\x3b=1"),
            ("a; \"=1", "\"a\\x3b \"\"=1\""),
            ("a;b", "\"a;b\""),
            ("\u{1b}\n\u{9b}", "\\x1b\\x0a\\xc2\\x9b"),
            ("::error::x", "\\x3a:error::x"),
        ] {
            assert_eq!(csv(text), cell);
        }
    }

    #[test]
    fn markdown_makes_no_links_of_its_own() {
        assert_eq!(markdown("a@b.c"), "a&#64;<!-- -->b.c");
        assert_eq!(markdown("http://x"), "http&#58;<!-- -->//x");
        assert_eq!(markdown("WWW.x: 1:2"), "WWW&#46;<!-- -->x: 1:2");
        assert_eq!(markdown("mailto:x"), "mailto&#58;<!-- -->x");
        assert_eq!(markdown("ä.x"), "ä.x");
        assert_eq!(markdown_paragraph("  - a"), "\\- a");
        assert_eq!(markdown_paragraph("12. a"), "12\\. a");
        assert_eq!(markdown_paragraph("12 of 13"), "12 of 13");
    }
}
