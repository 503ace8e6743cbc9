//! Names for moments: which execs and which failed look-ups of a payload are marks.

/// Beginning of the path of a failed look-up that is a mark; its text follows. No file can have such a path, and the
/// look-up ends in /proc itself: no disk, network or automounter is asked.
pub const MARK_PATH: &[u8] = b"/proc/proctrace-mark/";

/// Longest text of a mark in bytes; a name in a path can have 255.
pub const MARK_BYTES_MAX: usize = 200;

/// Errors of words that are not the text of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MarkError {
    /// There is none, or only white space.
    #[error("the text of a mark is empty")]
    Empty,
    /// More than [`MARK_BYTES_MAX`].
    #[error("the text of a mark has {bytes} bytes; at most {MARK_BYTES_MAX} are possible")]
    TooLong {
        /// Size of the text.
        bytes: usize,
    },
    /// An option instead of a text.
    #[error("options are not the text of a mark; a text that begins with - comes after --")]
    Option,
}

fn checked<T: AsRef<[u8]>>(text: T) -> Result<T, MarkError> {
    let bytes = text.as_ref();
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(MarkError::Empty);
    }
    match bytes.len() {
        bytes if bytes > MARK_BYTES_MAX => Err(MarkError::TooLong { bytes }),
        _ => Ok(text),
    }
}

/// The text of the mark that a failed look-up of this path is.
pub fn mark_of_path(path: &[u8]) -> Option<&[u8]> {
    checked(path.strip_prefix(MARK_PATH)?).ok()
}

/// The text given by the words after `proctrace mark`, joined by spaces.
///
/// # Errors
/// If these words are not a text, so that the command fails and nothing is marked.
pub fn mark_of_words<'a>(words: impl Iterator<Item = &'a [u8]>) -> Result<Vec<u8>, MarkError> {
    let mut words = words.peekable();
    match words.peek() {
        Some(&b"--") => _ = words.next(),
        Some([b'-', _, ..]) => return Err(MarkError::Option),
        _ => {}
    }
    checked(words.collect::<Vec<_>>().join(&b' '))
}

/// The name of the step that begins with `proctrace mark --step NAME`, given the words after `mark`; an empty one if
/// none begins, but the one before ends. `None` if these words are not about a step.
///
/// # Errors
/// If the name is too long, so that the command fails and no step begins.
pub fn step_of_words<'a>(
    mut words: impl Iterator<Item = &'a [u8]>,
) -> Option<Result<Vec<u8>, MarkError>> {
    let mut name = match words.next()?.strip_prefix(b"--step")? {
        [] => vec![words.next()?],
        [b'=', name @ ..] => vec![name],
        _ => return None,
    };
    name.extend(words);
    let name = name.join(&b' ');
    Some(match name.len() {
        bytes if bytes > MARK_BYTES_MAX => Err(MarkError::TooLong { bytes }),
        _ => Ok(name),
    })
}

/// The programs that have the command `mark`.
const PROGRAMS: [&[u8]; 2] = [b"proctrace", b"proctrace-recorder"];

impl super::Exec<'_> {
    /// The text, if this is an exec of `proctrace mark TEXT`.
    pub fn mark(&self) -> Option<Vec<u8>> {
        mark_of_words(self.words_of_mark()?).ok()
    }

    /// The name, if this is an exec of `proctrace mark --step NAME`.
    pub fn step_mark(&self) -> Option<Vec<u8>> {
        step_of_words(self.words_of_mark()?)?.ok()
    }

    fn words_of_mark(&self) -> Option<impl Iterator<Item = &[u8]>> {
        let is_ours = |path: &[u8]| {
            let name = path.rsplit(|byte| *byte == b'/').next();
            name.is_some_and(|name| PROGRAMS.contains(&name))
        };
        if !(is_ours(self.path) || is_ours(self.exe)) {
            return None;
        }
        // Of an argv that ends here, nothing but NULs follows the last word.
        let argv = self.argv.strip_suffix(b"\0")?;
        let mut words = argv.split(|byte| *byte == 0).skip(1);
        (words.next() == Some(b"mark")).then_some(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Exec;
    use crate::layout::ExecFixed;
    use zerocopy::FromZeros;

    fn exec<'a>(path: &'a [u8], exe: &'a [u8], argv: &'a [u8]) -> Option<Vec<u8>> {
        let fixed = ExecFixed::new_zeroed();
        Exec { fixed, path, interp: b"", exe, cwd: b"/", argv }.mark()
    }

    #[test]
    fn a_path_is_a_mark_by_its_beginning() {
        assert_eq!(mark_of_path(b"/proc/proctrace-mark/a b/c"), Some(&b"a b/c"[..]));
        let longest = [MARK_PATH, &[b'x'; MARK_BYTES_MAX]].concat();
        assert_eq!(mark_of_path(&longest).map(<[u8]>::len), Some(MARK_BYTES_MAX));
        for other in [
            &b"/proc/proctrace-mark/"[..],
            b"/proc/proctrace-mark/ ",
            b"/proc/proctrace-mark",
            b"proc/proctrace-mark/a",
            b"",
            &[&longest[..], b"x"].concat(),
        ] {
            assert_eq!(mark_of_path(other), None, "{}", other.escape_ascii());
        }
    }

    #[test]
    fn a_step_is_named_after_its_option() {
        let step = |argv: &[u8]| {
            let fixed = ExecFixed::new_zeroed();
            let path = b"/usr/bin/proctrace";
            Exec { fixed, path, interp: b"", exe: path, cwd: b"/", argv }.step_mark()
        };
        let name = |text: &[u8]| Some(text.to_vec());
        assert_eq!(step(b"p\0mark\0--step\0digi 1\0"), name(b"digi 1"));
        assert_eq!(step(b"p\0mark\0--step=a\0b\0"), name(b"a b"));
        assert_eq!(step(b"p\0mark\0--step\0\0"), name(b""));
        for other in [
            &b"p\0mark\0a\0"[..],
            b"p\0mark\0--step\0",
            b"p\0mark\0--steps\0a\0",
            b"p\0record\0--step\0a\0",
        ] {
            assert_eq!(step(other), None, "{}", other.escape_ascii());
        }
        let of_length =
            |bytes: usize| step(&[&b"p\0mark\0--step\0"[..], &vec![b'x'; bytes], b"\0"].concat());
        assert_eq!(of_length(MARK_BYTES_MAX), Some(vec![b'x'; MARK_BYTES_MAX]));
        assert_eq!(of_length(MARK_BYTES_MAX + 1), None);
        let path = b"/usr/bin/proctrace";
        assert_eq!(exec(path, path, b"p\0mark\0--step\0a\0"), None);
    }

    #[test]
    fn an_exec_is_a_mark_by_program_and_first_argument() {
        let text = |text: &[u8]| Some(text.to_vec());
        let path = b"/opt/bin/proctrace";
        assert_eq!(exec(path, path, b"proctrace\0mark\0a b\0"), text(b"a b"));
        assert_eq!(exec(b"/x/link", path, b"x\0mark\0a\0b\0"), text(b"a b"));
        assert_eq!(exec(b"proctrace", b"/x/proctrace-1", b"p\0mark\0a\0"), text(b"a"));
        assert_eq!(exec(path, path, b"p\0mark\0--\0--check\0"), text(b"--check"));
        assert_eq!(exec(path, path, b"p\0mark\0a\0--\0b\0"), text(b"a -- b"));
        assert_eq!(exec(path, path, b"p\0mark\0-\0"), text(b"-"));
        let recorder = b"/opt/bin/proctrace-recorder";
        assert_eq!(exec(recorder, recorder, b"r\0mark\0a\0"), text(b"a"));
        for other in [
            &b"p\0mark\0"[..],
            b"p\0mark\0\0",
            b"p\0mark\0--\0",
            b"p\0mark\0--help\0",
            b"p\0report\0mark\0",
            b"p\0mark\0cut of",
            b"",
        ] {
            assert_eq!(exec(path, path, other), None, "{}", other.escape_ascii());
        }
        assert_eq!(exec(b"/bin/echo", b"/bin/echo", b"proctrace\0mark\0a\0"), None);
        let long = [b"p\0mark\0", &[b'x'; MARK_BYTES_MAX + 1][..], b"\0"].concat();
        assert_eq!(exec(path, path, &long), None);
    }
}
