//! The text of one call: its arguments, quoted strings and result.

use crate::names::{error, number_in};

/// MAX_ERRNO of the kernel.
const ERROR_MAX: u16 = 4095;

/// A string in quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Quoted {
    pub(crate) bytes: Vec<u8>,
    /// strace left out the rest (`-s`).
    pub(crate) is_cut: bool,
}

/// An array of strings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Strings {
    pub(crate) strings: Vec<Quoted>,
    /// strace left out further elements.
    pub(crate) is_cut: bool,
}

impl Strings {
    /// True if any of it is missing.
    pub(crate) fn lacks_something(&self) -> bool {
        self.is_cut || self.strings.iter().any(|string| string.is_cut)
    }
}

/// Result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Returned<'a> {
    /// A number, and the path that `-y` prints after it.
    Value(i64, Option<&'a [u8]>),
    /// It failed.
    Error(u16),
    /// `?`: it did not return.
    Nothing,
    /// An error that no kernel returns: strace misread it.
    Unclear,
}

/// Splits `a, b) = 0` into the arguments and what follows the parenthesis.
pub(crate) fn arguments(text: &[u8]) -> Option<(Vec<&[u8]>, &[u8])> {
    let mut arguments = Vec::new();
    let (mut depth, mut from, mut at) = (0_u32, 0, 0);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => {
                at = after_quotes(text, at)?;
                continue;
            }
            b'/' if text[at..].starts_with(b"/*") => {
                at = find(text, at + 2, b"*/")? + 2;
                continue;
            }
            b'<' if is_after_descriptor(text, at) => {
                at = after_angles(text, at)?;
                continue;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                push(&mut arguments, &text[from..at]);
                return Some((arguments, &text[at + 1..]));
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                push(&mut arguments, &text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

fn push<'a>(arguments: &mut Vec<&'a [u8]>, argument: &'a [u8]) {
    let argument = argument.trim_ascii();
    if !(argument.is_empty() && arguments.is_empty()) {
        arguments.push(argument);
    }
}

/// `-y` prints paths after descriptors: `3</etc>`, `AT_FDCWD</home>`.
fn is_after_descriptor(text: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    let is_number = before.is_some_and(|byte| byte.is_ascii_digit() || *byte == b'D');
    // -X verbose: `-100 /* AT_FDCWD */</home>`
    (is_number || text[..at].ends_with(b"*/")) && text.get(at + 1).is_some_and(|byte| *byte != b'<')
}

/// Devices have angles inside: `0</dev/pts/0<char 136:0>>`.
fn after_angles(text: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, byte) in text.iter().enumerate().skip(at) {
        match byte {
            b'<' => depth += 1,
            // Of a socket: `3<TCP:[127.0.0.1:80->127.0.0.1:81]>`.
            b'>' if text.get(at.saturating_sub(1)) == Some(&b'-') => {}
            b'>' if depth <= 1 => return Some(at + 1),
            b'>' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn after_quotes(text: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

pub(crate) fn find(text: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    let rest = text.get(from..)?;
    rest.windows(wanted.len()).position(|window| window == wanted).map(|at| from + at)
}

/// A whole argument that is a string.
pub(crate) fn quoted(argument: &[u8]) -> Option<Quoted> {
    let (string, rest) = quoted_first(argument)?;
    let rest = rest.trim_ascii();
    // --secontext prints the context of the file.
    let is_context = rest.starts_with(b"[") && rest.ends_with(b"]");
    (rest.is_empty() || is_context).then_some(string)
}

fn quoted_first(text: &[u8]) -> Option<(Quoted, &[u8])> {
    let end = text.first().filter(|byte| **byte == b'"').and_then(|_| after_quotes(text, 0))?;
    let bytes = unescape(text.get(1..end.checked_sub(1)?)?);
    let rest = text.get(end..)?;
    Some(match rest.strip_prefix(b"...") {
        Some(rest) => (Quoted { bytes, is_cut: true }, rest),
        None => (Quoted { bytes, is_cut: false }, rest),
    })
}

/// The bytes that strace wrote with escapes, in quotes or as the path of a descriptor.
pub(crate) fn unescape(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'\\' {
            bytes.push(first);
            continue;
        }
        let Some((&kind, after)) = rest.split_first() else { break };
        rest = after;
        match kind {
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'r' => bytes.push(b'\r'),
            b'v' => bytes.push(0x0b),
            b'f' => bytes.push(0x0c),
            b'a' => bytes.push(0x07),
            b'b' => bytes.push(0x08),
            b'x' => bytes.push(digits(&mut rest, 16, 2)),
            b'0'..=b'7' => {
                rest = text_from(text, rest.len() + 1);
                bytes.push(digits(&mut rest, 8, 3));
            }
            other => bytes.push(other),
        }
    }
    bytes
}

/// The last `left` bytes.
fn text_from(text: &[u8], left: usize) -> &[u8] {
    text.get(text.len().saturating_sub(left)..).unwrap_or_default()
}

/// Takes up to `most` digits.
fn digits(rest: &mut &[u8], radix: u32, most: usize) -> u8 {
    let mut value = 0_u32;
    for _ in 0..most {
        let Some((first, after)) = rest.split_first() else { break };
        let Some(digit) = char::from(*first).to_digit(radix) else { break };
        value = value * radix + digit;
        *rest = after;
    }
    (value & 0xff) as u8
}

/// An argument that is an array of strings: `["sh", "-c"...]`, `["a", ...]`, or an address, maybe with
/// the number of elements: `0x7ffd /* 24 vars */`.
pub(crate) fn strings(argument: &[u8]) -> Option<Strings> {
    let mut rest = argument.strip_prefix(b"[")?.trim_ascii_start();
    let mut found = Strings::default();
    loop {
        if let Some(end) = rest.strip_prefix(b"...") {
            found.is_cut = true;
            rest = &end[end.iter().position(|byte| *byte == b',' || *byte == b']')?..];
        } else if let Some((string, after)) = quoted_first(rest) {
            found.strings.push(string);
            rest = after;
        } else if let Some(after) = rest.strip_prefix(b"]") {
            return after.is_empty().then_some(found);
        } else if rest.starts_with(b"0x") || rest.starts_with(b"NULL") {
            // An element that could not be read.
            found.is_cut = true;
            let end = rest.iter().position(|byte| *byte == b',' || *byte == b']')?;
            rest = &rest[end..];
        } else {
            return None;
        }
        rest = rest.trim_ascii_start();
        rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
    }
}

/// Result behind the arguments: ` = 3</etc/passwd> <0.000012>`.
pub(crate) fn returned(text: &[u8]) -> Option<Returned<'_>> {
    let text = text.trim_ascii_start().strip_prefix(b"=")?.trim_ascii();
    if let Some(why) = text.strip_prefix(b"?") {
        let name = why.trim_ascii_start().split(|byte| *byte == b' ').next().unwrap_or_default();
        return Some(match error(name) {
            Some(error) => Returned::Error(error),
            None => Returned::Nothing,
        });
    }
    let end = text.iter().position(|byte| *byte == b' ' || *byte == b'<').unwrap_or(text.len());
    let (number, after) = text.split_at(end);
    if number == b"-1" {
        let after = after.trim_ascii_start();
        // An error without a name: `-1 (errno 530)`.
        if let Some(unnamed) = after.strip_prefix(b"(errno ") {
            let digits = unnamed.split(|byte| *byte == b')').next()?;
            let error = u16::try_from(number_in(digits)?).ok().filter(|it| *it <= ERROR_MAX);
            return Some(error.map_or(Returned::Unclear, Returned::Error));
        }
        let name = after.split(|byte| *byte == b' ').next().unwrap_or_default();
        return if name.is_empty() { None } else { error(name).map(Returned::Error) };
    }
    let value = i64::try_from(number_in(number)?).unwrap_or(i64::MAX);
    let path = after.starts_with(b"<").then(|| path_of_descriptor(after)).flatten();
    Some(Returned::Value(value, path))
}

/// The path in `</dev/pts/0<char 136:0>>`.
fn path_of_descriptor(text: &[u8]) -> Option<&[u8]> {
    let inside = text.get(1..after_angles(text, 0)?.checked_sub(1)?)?;
    let end = inside.iter().position(|byte| *byte == b'<').unwrap_or(inside.len());
    let path = &inside[..end];
    path.starts_with(b"/").then_some(path)
}

/// A directory descriptor and, with `-y`, its path.
pub(crate) fn descriptor(argument: &[u8]) -> Option<(i32, Option<&[u8]>)> {
    let end = argument.iter().position(|byte| *byte == b'<' || *byte == b' ');
    let (number, after) = argument.split_at(end.unwrap_or(argument.len()));
    let comment = after.strip_prefix(b" /*");
    let after = comment.and_then(|it| it.get(find(it, 0, b"*/")? + 2..)).unwrap_or(after);
    let path = after.starts_with(b"<").then(|| path_of_descriptor(after)).flatten();
    let number = match number {
        b"AT_FDCWD" => crate::names::AT_FDCWD,
        number => match number.strip_prefix(b"-") {
            Some(number) => -i32::try_from(number_in(number)?).ok()?,
            None => i32::try_from(number_in(number)?).ok()?,
        },
    };
    Some((number, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> (Vec<String>, String) {
        let (arguments, rest) = arguments(text.as_bytes()).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (arguments.into_iter().map(text).collect(), text(rest))
    }

    #[test]
    fn arguments_end_where_the_call_does() {
        for (text, wanted) in [
            (") = 5", vec![]),
            (r#""a, b\")", O_RDONLY) = 3"#, vec![r#""a, b\")""#, "O_RDONLY"]),
            (
                r#""/x", ["a", "b,)"], 0x7f /* 2 vars, ) */) = 0"#,
                vec![r#""/x""#, r#"["a", "b,)"]"#, "0x7f /* 2 vars, ) */"],
            ),
            (
                "{flags=A|B, x=1} => {parent_tid=[7]}, 88) = 7",
                vec!["{flags=A|B, x=1} => {parent_tid=[7]}", "88"],
            ),
            ("3</a,b)<char 1:3>>, \"x\") = 0", vec!["3</a,b)<char 1:3>>", "\"x\""]),
            ("-100 /* AT_FDCWD */</a,b)>, \"x\") = 0", vec!["-100 /* AT_FDCWD */</a,b)>", "\"x\""]),
            ("AT_FDCWD</a b>, \"x\", 1<<3) = 0", vec!["AT_FDCWD</a b>", "\"x\"", "1<<3"]),
        ] {
            let (arguments, rest) = split(text);
            assert_eq!(arguments, wanted, "{text}");
            assert!(rest.starts_with(" = "), "{text}: {rest}");
        }
        for open in ["\"a", "(", "\"a\\", "3</x", "/* x", "a, b"] {
            assert_eq!(arguments(open.as_bytes()), None, "{open}");
        }
    }

    #[test]
    fn escapes_are_bytes() {
        let bytes =
            |text: &str| quoted(text.as_bytes()).map(|quoted| (quoted.bytes, quoted.is_cut));
        assert_eq!(bytes(r#""a\"b\\c\n\t""#), Some((b"a\"b\\c\n\t".to_vec(), false)));
        assert_eq!(bytes(r#""\1\0012\377\08""#), Some((b"\x01\x012\xff\x008".to_vec(), false)));
        assert_eq!(bytes(r#""\x41\x0aB"..."#), Some((b"A\nB".to_vec(), true)));
        assert_eq!(bytes(r#""\x4""#), Some((b"\x04".to_vec(), false)));
        assert_eq!(bytes("\"a\" [u:r]"), Some((b"a".to_vec(), false)));
        assert_eq!(bytes("NULL"), None);
        assert_eq!(bytes("\"a\"b"), None);
    }

    #[test]
    fn arrays_may_be_cut_between_and_inside_strings() {
        let of = |text: &str| {
            let strings = strings(text.as_bytes())?;
            let lacks = strings.lacks_something();
            Some((
                strings.strings.into_iter().map(|string| string.bytes).collect::<Vec<_>>(),
                lacks,
            ))
        };
        let two = vec![b"a".to_vec(), b"b]".to_vec()];
        assert_eq!(of(r#"["a", "b]"]"#), Some((two.clone(), false)));
        assert_eq!(of(r#"["a", "b]"...]"#), Some((two.clone(), true)));
        assert_eq!(of(r#"["a", "b]", ...]"#), Some((two.clone(), true)));
        assert_eq!(of(r#"["a", "b]", ... /* 0x7f */]"#), Some((two.clone(), true)));
        assert_eq!(of(r#"["a", "b]", 0x10]"#), Some((two, true)));
        assert_eq!(of("[]"), Some((vec![], false)));
        assert_eq!(of("0x7ffd /* 24 vars */"), None);
        assert_eq!(of("[\"a\""), None);
    }

    #[test]
    fn results_are_numbers_errors_or_nothing() {
        for (text, wanted) in [
            (" = 0", Returned::Value(0, None)),
            ("    = 3</etc/pass wd> <0.000012>", Returned::Value(3, Some(b"/etc/pass wd"))),
            (" = 3</dev/null<char 1:3>>", Returned::Value(3, Some(b"/dev/null"))),
            (" = 3<socket:[12]>", Returned::Value(3, None)),
            (" = -1 ENOENT (No such file or directory) <0.000008>", Returned::Error(2)),
            (" = -1 EACCES (Permission denied) (INJECTED)", Returned::Error(13)),
            (" = -1 (errno 530)", Returned::Error(530)),
            (" = -1 (errno 18446744073709551595)", Returned::Unclear),
            (" = ? ERESTARTSYS (To be restarted if SA_RESTART is set)", Returned::Error(512)),
            (" = ?", Returned::Nothing),
            (" = ? <unavailable>", Returned::Nothing),
            (" = 0x7f0000001000", Returned::Value(0x7f00_0000_1000, None)),
            (" = 7<sh>", Returned::Value(7, None)),
        ] {
            assert_eq!(returned(text.as_bytes()), Some(wanted), "{text}");
        }
        for wrong in ["", " 0", " = -1", " = -1 EWHAT", " = x"] {
            assert_eq!(returned(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn descriptors_may_have_paths() {
        assert_eq!(descriptor(b"AT_FDCWD"), Some((-100, None)));
        assert_eq!(descriptor(b"AT_FDCWD</home>"), Some((-100, Some(&b"/home"[..]))));
        assert_eq!(descriptor(b"-100 /* AT_FDCWD */"), Some((-100, None)));
        let home = Some((-100, Some(&b"/home"[..])));
        assert_eq!(descriptor(b"-100 /* AT_FDCWD */</home>"), home);
        assert_eq!(descriptor(b"AT_FDCWD</home> [u:r:t]"), home);
        assert_eq!(descriptor(b"5</tmp>"), Some((5, Some(&b"/tmp"[..]))));
        assert_eq!(descriptor(b"\"x\""), None);
    }
}
