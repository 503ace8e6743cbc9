//! The template of a command line: what stays the same when it is run again and again.

use std::hash::BuildHasher;

use proctrace_classify::names::Names;
use proctrace_classify::random::random_part;
use proctrace_wire::escape::to_text;

use crate::lines::{Gathered, Lines};

/// Numbers of templates, with a cache of the last few command lines by their bytes: most are run
/// again soon, and deriving a template is the most expensive part of handling an exec.
#[derive(Debug, Default)]
pub struct Templates {
    names: Names,
    recent: Vec<Option<(Box<[u8]>, u32)>>,
    lines: Gathered,
    hash: foldhash::fast::RandomState,
}

/// Entries in the cache.
const RECENT: usize = 512;

impl Templates {
    /// The number of the template of the next program run.
    pub fn number_of(&mut self, argv: &[u8]) -> u32 {
        // Bytes beyond this do not change the result.
        let key = &argv[..argv.len().min(LOOKED_AT_MAX + 1)];
        if self.recent.is_empty() {
            self.recent.resize(RECENT, None);
        }
        let at = self.hash.hash_one(key) as usize % RECENT;
        let number = match &self.recent[at] {
            Some((known, number)) if **known == *key => *number,
            _ => {
                let number = self.names.number_of(&template(argv));
                self.recent[at] = Some((key.into(), number));
                number
            }
        };
        if self.lines.wants(number) {
            self.lines.keep(number, &line(argv));
        }
        number
    }

    /// A hash of what is executed, with which arguments, where and with which search variables; 0 if the
    /// arguments are not all in the record.
    pub fn call(&self, exec: &proctrace_wire::Exec<'_>) -> u64 {
        if exec.fixed.argv_here < exec.fixed.argv_bytes || exec.argv.is_empty() {
            return 0;
        }
        let call = (exec.exe, exec.cwd, exec.argv, exec.fixed.env_id);
        self.hash.hash_one(call).max(1)
    }

    /// The templates, and command lines as they were.
    pub fn into_inner(self) -> (Vec<String>, Lines) {
        (self.names.into_inner(), self.lines.done())
    }
}

/// Maximum length of a template, which is cut there: a shell may be given a whole script in one argument.
const TEMPLATE_BYTES_MAX: usize = 160;
/// Bytes of an argv that are examined.
const LOOKED_AT_MAX: usize = 1024;

/// The arguments separated by single spaces, with numbers replaced by `#`, and likewise random characters: those of
/// temporary files ([`random_part`]), and six or more that nobody writes by hand. White space of any length becomes
/// one space.
pub fn template(argv: &[u8]) -> String {
    joined(argv, shape)
}

/// The same with numbers and random characters as they were.
fn line(argv: &[u8]) -> String {
    joined(argv, |word, start, _, out| out.push_str(&word[start..]))
}

/// The words of a command line, each as `push` adds it from a place on, and whether its digits are left out.
fn joined(argv: &[u8], push: impl Fn(&str, usize, bool, &mut String)) -> String {
    let looked_at = &argv[..argv.len().min(LOOKED_AT_MAX)];
    let spaced: Vec<u8> =
        looked_at.iter().map(|byte| if byte.is_ascii_control() { b' ' } else { *byte }).collect();
    let text = to_text(&spaced);
    let mut out = String::with_capacity(text.len().min(TEMPLATE_BYTES_MAX));
    let mut cut = argv.len() > LOOKED_AT_MAX;
    for (at, word) in text.split_whitespace().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        // Digits in a program's name are part of it, and its directory carries little information.
        let start = if at == 0 { word.rfind('/').map_or(0, |slash| slash + 1) } else { 0 };
        push(word, start, at > 0, &mut out);
        if out.len() > TEMPLATE_BYTES_MAX {
            cut = true;
            break;
        }
    }
    if out.len() > TEMPLATE_BYTES_MAX {
        let end = (0..=TEMPLATE_BYTES_MAX).rev().find(|at| out.is_char_boundary(*at)).unwrap_or(0);
        out.truncate(end);
    }
    if cut {
        out.push('…');
    }
    out
}

/// Normalizes a word from `start` on, name by name of the paths in it.
fn shape(word: &str, start: usize, without_digits: bool, out: &mut String) {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    // Where the path begins that the next name belongs to.
    let (mut path, mut at) = (0, start);
    while at < word.len() {
        let end = word[at..].find(|c| !is_of_name(c)).map_or(word.len(), |length| at + length);
        let name = &word[at..end];
        match random_part(&word.as_bytes()[path..at], name.as_bytes()) {
            Some(part) => {
                shape_name(&name[..part.start], without_digits, out);
                out.push('#');
                shape_name(&name[part.end..], without_digits, out);
            }
            None => shape_name(name, without_digits, out),
        }
        let Some(next) = word[end..].chars().next() else { break };
        out.push(next);
        at = end + next.len_utf8();
        if next != '/' {
            path = at;
        }
    }
}

/// Normalizes a name: runs of letters and digits are examined, everything else is kept.
fn shape_name(name: &str, without_digits: bool, out: &mut String) {
    let mut rest = name;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        if end == 0 {
            let next = rest.chars().next().map_or(1, char::len_utf8);
            out.push_str(&rest[..next]);
            rest = &rest[next..];
            continue;
        }
        let (run, after) = rest.split_at(end);
        if is_random(run) {
            out.push('#');
        } else if without_digits {
            without_numbers(run, out);
        } else {
            out.push_str(run);
        }
        rest = after;
    }
}

/// Digits mixed with letters of both cases, or hexadecimal digits: nobody writes that by hand.
fn is_random(run: &str) -> bool {
    let any = |of: fn(&u8) -> bool| run.as_bytes().iter().any(of);
    let mixed =
        any(u8::is_ascii_digit) && any(u8::is_ascii_lowercase) && any(u8::is_ascii_uppercase);
    let hexadecimal =
        run.len() >= 8 && any(u8::is_ascii_digit) && run.bytes().all(|b| b.is_ascii_hexdigit());
    run.len() >= 6 && (mixed || hexadecimal)
}

fn without_numbers(run: &str, out: &mut String) {
    let mut in_number = false;
    for c in run.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !in_number {
            out.push('#');
        }
        in_number = c.is_ascii_digit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_differs_from_run_to_run_is_left_out() {
        for (argv, shape) in [
            (&b"ps\0-o\0command\x00-p\x001234\0"[..], "ps -o command -p #"),
            (b"sed\0-n\x003,17p\0log.7\0", "sed -n #,#p log.#"),
            (b"cat\0/tmp/tmp.aB3xQ9zzT1\0", "cat /tmp/tmp.#"),
            (b"as\0-o\0/tmp/ccHq7bXz.o\0", "as -o /tmp/cc#.o"),
            (
                b"python3\0.snakemake/scripts/tmp7r8eesgm.plot.py\0",
                "python3 .snakemake/scripts/tmp#.plot.py",
            ),
            (b"/w/.snakemake/scripts/tmp7r8eesgm.plot.py\0", "tmp#.plot.py"),
            (b"x\0--out=/tmp/pytest-of-me/pytest-3/log\0", "x --out=/tmp/pytest-of-#/pytest-#/log"),
            (b"git\0show\x009fceb02d0ae5\0", "git show #"),
            (b"/usr/bin/env7\0x\0", "env7 x"),
            (b"sh\0-c\0 a  &&\n b \0", "sh -c a && b"),
            (b"o2-sim\0--id\0worker12\0", "o2-sim --id worker#"),
            (b"", ""),
        ] {
            assert_eq!(template(argv), shape);
        }
        let long = template(&[b"x ".repeat(4000), vec![0]].concat());
        assert!(long.len() <= TEMPLATE_BYTES_MAX + "…".len() && long.ends_with('…'));
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_short_shape(argv in proptest::collection::vec(any::<u8>(), 0..3000)) {
            let shape = template(&argv);
            prop_assert!(shape.len() <= TEMPLATE_BYTES_MAX + "…".len());
            prop_assert!(!shape.chars().any(|c| c.is_ascii_control()));
        }
    }
}
