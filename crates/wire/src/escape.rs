//! Bytes as text and back: a reversible escape that leaves ordinary strings unchanged.
//!
//! Arguments, paths and environments are bytes; JSON and terminals require Unicode. Bytes that are
//! not UTF-8 become `\xHH`. A backslash is unchanged, unless the characters after it would make it
//! look like such an escape; then it becomes `\x5c`. So `s/\(a\)/b/` is unchanged, and [`to_bytes`]
//! restores every byte string exactly.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Text for these bytes; borrowed if they are plain UTF-8.
pub fn to_text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !(0..bytes.len()).any(|at| escaped_byte(&bytes[at..]).is_some())
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        push_valid(&mut out, chunk.valid());
        for byte in chunk.invalid() {
            push_escape(&mut out, *byte);
        }
    }
    Cow::Owned(out)
}

/// The bytes that [`to_text`] converted to this text.
pub fn to_bytes(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut out = Vec::with_capacity(rest.len());
    while let Some((&first, tail)) = rest.split_first() {
        match escaped_byte(rest) {
            Some(byte) => {
                out.push(byte);
                rest = &rest[4..];
            }
            None => {
                out.push(first);
                rest = tail;
            }
        }
    }
    out
}

fn push_valid(out: &mut String, valid: &str) {
    // An escape is ASCII, so it lies entirely within one valid chunk: an invalid byte after a
    // backslash is itself written as an escape and cannot complete another.
    let mut from = 0;
    for at in 0..valid.len() {
        if escaped_byte(&valid.as_bytes()[at..]).is_some() {
            out.push_str(&valid[from..at]);
            push_escape(out, b'\\');
            from = at + 1;
        }
    }
    out.push_str(&valid[from..]);
}

fn push_escape(out: &mut String, byte: u8) {
    write!(out, "\\x{byte:02x}").expect("writing to a String cannot fail");
}

/// The byte encoded by an escape at the start of `text`.
fn escaped_byte(text: &[u8]) -> Option<u8> {
    let [b'\\', b'x', high, low, ..] = text else { return None };
    let digit = |c: &u8| char::from(*c).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in ["", "sed", r"s/\(a\)/b/", "grüße", r"C:\xylophone", "a\\", "\\x", "\\xg0"] {
            assert_eq!(to_text(text.as_bytes()), text);
            assert!(matches!(to_text(text.as_bytes()), Cow::Borrowed(_)));
        }
    }

    #[test]
    fn other_bytes_become_escapes() {
        assert_eq!(to_text(b"caf\xe9"), r"caf\xe9");
        assert_eq!(to_text(b"\xff\xfe"), r"\xff\xfe");
        assert_eq!(to_text(br"\xff"), r"\x5cxff");
        assert_eq!(to_text(b"\\\xff"), r"\\xff");
    }

    proptest! {
        #[test]
        fn every_byte_string_comes_back(bytes: Vec<u8>) {
            prop_assert_eq!(to_bytes(&to_text(&bytes)), bytes);
        }

        #[test]
        fn strings_full_of_escapes_come_back(text in r"[\\xXa0f\xff]{0,24}", tail: Vec<u8>) {
            let mut bytes = text.into_bytes();
            bytes.extend(tail);
            prop_assert_eq!(to_bytes(&to_text(&bytes)), bytes);
        }
    }
}
