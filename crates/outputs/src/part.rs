//! The name of a file before it is complete.

use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, RandomState};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Bytes of the name that the name of the part repeats, so that it is not too long.
const NAME_BYTES_MAX: usize = 200;
const PART: &[u8] = b".part";
/// Hexadecimal digits between the two.
const DIGITS: usize = 16;

/// A name that nobody can guess: hidden, so that readers of a directory pass it over.
pub(crate) fn part_name(name: &OsStr) -> OsString {
    let name = name.as_bytes();
    let name = &name[..name.len().min(NAME_BYTES_MAX)];
    // The keys of the standard library's hash are random numbers of the kernel.
    let number = RandomState::new().hash_one(std::process::id());
    let number = format!(".{number:0width$x}", width = DIGITS);
    OsString::from_vec([b".", name, number.as_bytes(), PART].concat())
}

/// True if this is the name that a file had before it was complete: a process that was killed leaves it. `of` is the name
/// that it would have got.
pub fn is_part(name: &OsStr, of: &OsStr) -> bool {
    let (name, of) = (name.as_bytes(), of.as_bytes());
    let of = &of[..of.len().min(NAME_BYTES_MAX)];
    let inner = || {
        let digits = name.strip_prefix(b".")?.strip_prefix(of)?.strip_prefix(b".")?;
        digits.strip_suffix(PART)
    };
    inner().is_some_and(|digits| digits.len() == DIGITS && digits.iter().all(u8::is_ascii_hexdigit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts_are_random_and_recognized() {
        let long = "x".repeat(255);
        for name in ["a", "job.ptrace", &long] {
            let (first, second) = (part_name(name.as_ref()), part_name(name.as_ref()));
            assert_ne!(first, second);
            assert!(first.len() <= 255 && first.as_bytes().starts_with(b"."));
            assert!(is_part(&first, name.as_ref()));
            assert!(!is_part(&first, "other".as_ref()));
        }
        for wrong in ["a", ".a.part", ".a.0123456789abcde.part", ".a.0123456789abcdeg.part"] {
            assert!(!is_part(wrong.as_ref(), "a".as_ref()), "{wrong}");
        }
    }
}
