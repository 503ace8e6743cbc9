//! Beginning of the lines of one log: decided by most of them, so that output of programs does not decide
//! it.

use std::collections::HashMap;

use crate::line::{Line, Style};

/// Lines that are asked.
const LINES: usize = 1 << 12;

/// The style of most lines at the beginning of a log that are whole; `None` if none is.
pub(crate) fn style_of(beginning: &[u8]) -> Option<Style> {
    let mut votes: HashMap<Style, (usize, usize)> = HashMap::new();
    let lines = beginning.split(|byte| *byte == b'\n').take(LINES);
    for (at, raw) in lines.enumerate() {
        let mut raw = raw.to_vec();
        without_colours(&mut raw);
        let line = Line::of(&raw);
        if line.says().is_of_a_task() {
            votes.entry(line.style).or_insert((0, at)).0 += 1;
        }
    }
    // Of equals the one that comes first.
    votes
        .into_iter()
        .max_by_key(|(_, (count, first))| (*count, std::cmp::Reverse(*first)))
        .map(|(style, _)| style)
}

/// Removes the escape sequences of `--color`: `ESC [ 1 ; 33 m`. strace escapes those in strings.
pub(crate) fn without_colours(line: &mut Vec<u8>) {
    if !line.contains(&0x1b) {
        return;
    }
    let mut kept = Vec::with_capacity(line.len());
    let mut rest = &line[..];
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first == 0x1b
            && let Some(sequence) = after.strip_prefix(b"[")
        {
            let inside = sequence.iter().take_while(|it| it.is_ascii_digit() || **it == b';');
            let end = inside.count();
            if sequence.get(end) == Some(&b'm') {
                rest = &sequence[end + 1..];
                continue;
            }
        }
        kept.push(first);
    }
    *line = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_lines_decide() {
        let style = |line: &str| Line::of(line.as_bytes()).style;
        let log = "00:00:01 close(3) = 0\n[pid 7] 12:00:00.000001 close(3) = 0\nhello\n\
                   12:00:00.000002 close(4) = 0\n00:00:02 elapsed\n00:00:03 elapsed\n";
        assert_eq!(style_of(log.as_bytes()), Some(style("12:00:00.000001 x(")));
        assert_eq!(style_of(b"hello\nworld\n"), None);
    }

    #[test]
    fn colours_are_taken_out() {
        let of = |line: &str| {
            let mut line = line.as_bytes().to_vec();
            without_colours(&mut line);
            String::from_utf8(line).unwrap()
        };
        assert_eq!(of("\x1b[33mbrk\x1b[0m(\x1b[1;35mNULL\x1b[m)"), "brk(NULL)");
        assert_eq!(of("plain"), "plain");
        assert_eq!(of("\x1b[33"), "\x1b[33");
        assert_eq!(of("\x1b]0;x\x07\x1b"), "\x1b]0;x\x07\x1b");
    }
}
