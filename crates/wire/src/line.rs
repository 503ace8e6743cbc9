//! The command line of an exec, as people write it.

use crate::escape::to_text;
use crate::layout::EXEC_WITHHELD;

impl super::Exec<'_> {
    /// The command line: its words separated by spaces, of which the first `bytes_max` bytes are shown. A line that goes
    /// on ends in "…". None if the recorder's user may not see it.
    pub fn line(&self, bytes_max: usize) -> Option<String> {
        if self.fixed.bits & EXEC_WITHHELD != 0 {
            return None;
        }
        if self.argv.is_empty() {
            return Some(to_text(self.path).into_owned());
        }
        let here = &self.argv[..self.argv.len().min(bytes_max)];
        let is_cut = here.len() < self.fixed.argv_bytes as usize;
        let here = here.strip_suffix(b"\0").unwrap_or(here);
        let words: Vec<_> = here.split(|byte| *byte == 0).map(to_text).collect();
        let mut line = words.join(" ");
        if is_cut {
            line.push('…');
        }
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use crate::Exec;
    use crate::layout::{EXEC_WITHHELD, ExecFixed};
    use zerocopy::FromZeros;

    fn line(argv: &[u8], argv_bytes: u32, bits: u32, bytes_max: usize) -> Option<String> {
        let mut fixed = ExecFixed::new_zeroed();
        (fixed.argv_bytes, fixed.bits) = (argv_bytes, bits);
        let exec =
            Exec { fixed, path: b"/bin/sh", interp: b"", exe: b"/bin/dash", cwd: b"/", argv };
        exec.line(bytes_max)
    }

    #[test]
    fn words_are_separated_by_spaces_and_what_is_missing_is_shown() {
        let argv = b"sleep\x00600\0";
        assert_eq!(line(argv, 10, 0, 200).unwrap(), "sleep 600");
        assert_eq!(line(argv, 10, 0, 7).unwrap(), "sleep 6…");
        assert_eq!(line(argv, 20_000, 0, 200).unwrap(), "sleep 600…");
        assert_eq!(line(b"a\xff\0", 3, 0, 200).unwrap(), "a\\xff");
        assert_eq!(line(b"", 0, 0, 200).unwrap(), "/bin/sh");
        assert_eq!(line(argv, 10, EXEC_WITHHELD, 200), None);
    }
}
