//! What a shell's text does: without the preparations before it, and the first program that it runs.

use crate::names::base;

/// Commands that prepare for the one that does the work.
const PREPARES: [&[u8]; 10] =
    [b":", b"cd", b"set", b"export", b"true", b"umask", b"ulimit", b".", b"source", b"trap"];
/// Words before the command that does the work.
const BEFORE: [&[u8]; 9] =
    [b"exec", b"env", b"time", b"nice", b"nohup", b"command", b"if", b"!", b"ccache"];

/// The text from the first command on that does not merely prepare; all of it if there is none.
pub(super) fn of_text(text: &[u8]) -> &[u8] {
    let mut begin = 0;
    for command in commands(text) {
        if first_word(command).is_some_and(|word| !PREPARES.contains(&word)) {
            return text[begin..].trim_ascii();
        }
        // Each command ends with a byte that is none of it.
        begin += command.len() + 1;
    }
    text.trim_ascii()
}

/// The name of the first program that does the work.
pub(super) fn program(text: &[u8]) -> Option<&[u8]> {
    let mut words = commands(text).filter_map(first_word);
    words.find(|word| !PREPARES.contains(word)).map(base).filter(|name| !name.is_empty())
}

/// The value of an option among the words of a shell's text.
pub(super) fn value_of<'a>(text: &'a [u8], option: &[u8]) -> Option<&'a [u8]> {
    let mut words = words(text);
    while let Some(word) = words.next() {
        match word.strip_prefix(option) {
            Some([]) => return words.next(),
            Some([b'=', value @ ..]) if !value.is_empty() => return Some(value),
            _ => {}
        }
    }
    None
}

/// Commands in order: what is between operators that end one, wherever these occur.
fn commands(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| matches!(byte, b';' | b'\n' | b'&' | b'|'))
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace)
        .map(|word| word.strip_suffix(b";").unwrap_or(word))
        .map(|word| match word {
            [quote @ (b'"' | b'\''), inner @ .., last] if quote == last => inner,
            _ => word,
        })
        .filter(|word| !word.is_empty())
}

/// The first word that is neither an assignment nor one of those before a command.
fn first_word(command: &[u8]) -> Option<&[u8]> {
    let opening = |byte: &u8| matches!(byte, b'(' | b'{');
    words(command)
        .map(|word| &word[word.iter().take_while(|byte| opening(byte)).count()..])
        .find(|word| !word.is_empty() && !is_assignment(word) && !BEFORE.contains(word))
}

fn is_assignment(word: &[u8]) -> bool {
    let name = word.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
    word.get(name.count()) == Some(&b'=')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn preparations_are_passed_over() {
        for (text, left, first) in [
            ("set -euo pipefail; bwa mem a.fq", "bwa mem a.fq", "bwa"),
            ("cd sub && FOO=1 /usr/bin/cc -c a.c", "FOO=1 /usr/bin/cc -c a.c", "cc"),
            (": && /usr/bin/c++ -o x a.o && :", "/usr/bin/c++ -o x a.o && :", "c++"),
            ("(gcc -c a.c)", "(gcc -c a.c)", "gcc"),
            ("set -e\n\n  sort a > b", "sort a > b", "sort"),
            ("sleep 0.4; cat a > b", "sleep 0.4; cat a > b", "sleep"),
        ] {
            assert_eq!(
                of_text(text.as_bytes()).escape_ascii().to_string(),
                left.escape_default().to_string()
            );
            assert_eq!(program(text.as_bytes()), Some(first.as_bytes()), "{text}");
        }
        assert_eq!((of_text(b"cd x; :"), program(b"cd x; :")), (&b"cd x; :"[..], None));
    }

    #[test]
    fn options_in_texts_have_values() {
        let text = b"cc -MD -o 'CMakeFiles/a.o' -c a.c --out=x";
        assert_eq!(value_of(text, b"-o"), Some(&b"CMakeFiles/a.o"[..]));
        assert_eq!(value_of(text, b"--out"), Some(&b"x"[..]));
        assert_eq!(value_of(text, b"-O"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart(text in "[ a-c;&|\n=({'\"-]{0,40}") {
            let bytes = text.as_bytes();
            let _ = (program(bytes), value_of(bytes, b"-c"));
            prop_assert!(bytes.windows(of_text(bytes).len().max(1)).any(|part| part == of_text(bytes)) || of_text(bytes).is_empty());
        }
    }
}
