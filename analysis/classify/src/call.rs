//! The properties of an exec that rules test, extracted before any rule is applied.

use std::borrow::Cow;
use std::collections::HashSet;

use proctrace_wire::Exec;
use proctrace_wire::layout::EXEC_WITHHELD;

use crate::interpreters::{Code, task};
use crate::names::base;
use crate::random::stable_name;

/// The name of programs whose identity is withheld in the recording.
const WITHHELD: &[u8] = b"(withheld)";

/// Maximum length of a text that is examined: a shell may be given a whole script in one argument.
pub(crate) const ARGUMENTS_MAX: usize = 16 << 10;

/// The properties of an exec that rules test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Invocation<'a> {
    /// Its name: of the script, if there is one, otherwise of the file.
    pub name: &'a [u8],
    /// The file with that name, as given.
    pub given: &'a [u8],
    /// The same with symbolic links resolved; as given where that is not known.
    pub resolved: &'a [u8],
    /// The interpreter of the script or text.
    pub interpreter: Option<&'a [u8]>,
    /// True if the name is that of an interpreter's script.
    pub is_script: bool,
    /// The program text it was given, as after `-c`.
    pub text: Option<&'a [u8]>,
}

impl<'a> Invocation<'a> {
    /// The program that this exec ran, given the names of interpreters.
    pub(crate) fn of(exec: &'a Exec<'_>, interpreters: &HashSet<Vec<u8>>) -> Self {
        if exec.fixed.bits & EXEC_WITHHELD != 0 {
            return Self {
                name: WITHHELD,
                given: WITHHELD,
                resolved: WITHHELD,
                interpreter: None,
                is_script: false,
                text: None,
            };
        }
        let given = exec.known_as();
        let called = base(given);
        if !exec.interp.is_empty() {
            // A script with #! is identified by its own name and location.
            return Self {
                name: called,
                given,
                resolved: given,
                interpreter: Some(base(exec.interp)),
                is_script: true,
                text: None,
            };
        }
        let own = Self {
            name: called,
            given,
            resolved: if exec.exe.is_empty() { given } else { exec.exe },
            interpreter: None,
            is_script: false,
            text: None,
        };
        let interpreter = unversioned(called);
        if !interpreters.contains(interpreter) {
            return own;
        }
        match task(interpreter, exec.argv) {
            Code::Script(script) => Self {
                name: base(script),
                given: script,
                resolved: script,
                interpreter: Some(called),
                is_script: true,
                text: None,
            },
            Code::Text(text) => Self { interpreter: Some(called), text: Some(text), ..own },
            Code::None => Self { interpreter: Some(called), ..own },
        }
    }
}

impl<'a> Invocation<'a> {
    /// Name of the program, without the characters that are drawn anew in every run. Rules match the name itself.
    pub(crate) fn called(&self) -> Cow<'a, [u8]> {
        stable_name(self.given)
    }
}

/// The names to match: gcc-12 and gcc; x86_64-linux-gnu-gcc-12 and gcc.
pub(crate) fn variants(name: &[u8]) -> [&[u8]; 3] {
    [name, unversioned(name), without_triplet(unversioned(name))]
}

/// Arguments joined by spaces.
pub(crate) fn joined(argv: &[u8]) -> Cow<'_, [u8]> {
    let argv = &argv[..argv.len().min(ARGUMENTS_MAX)];
    let argv = argv.strip_suffix(b"\0").unwrap_or(argv);
    if !argv.contains(&0) {
        return Cow::Borrowed(argv);
    }
    Cow::Owned(argv.iter().map(|byte| if *byte == 0 { b' ' } else { *byte }).collect())
}

/// The value of an option: the next argument, or what follows the `=`.
pub(crate) fn value_of<'a>(argv: &'a [u8], option: &[u8]) -> Option<&'a [u8]> {
    let argv = &argv[..argv.len().min(ARGUMENTS_MAX)];
    let mut arguments = argv.split(|byte| *byte == 0).skip(1);
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix(option) {
            Some([]) => return arguments.next().filter(|value| !value.is_empty()),
            Some([b'=', value @ ..]) if !value.is_empty() => return Some(value),
            _ => {}
        }
    }
    None
}

/// python for python3.11, gcc for gcc-12.
fn unversioned(name: &[u8]) -> &[u8] {
    let end = name
        .iter()
        .rposition(|byte| !(byte.is_ascii_digit() || matches!(byte, b'.' | b'-')))
        .map_or(0, |at| at + 1);
    if end == 0 { name } else { &name[..end] }
}

/// gcc for x86_64-linux-gnu-gcc.
fn without_triplet(name: &[u8]) -> &[u8] {
    match name.windows(5).rposition(|part| part == b"-gnu-") {
        Some(at) => &name[at + 5..],
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(argv: &[&str]) -> Vec<u8> {
        argv.iter().flat_map(|argument| [argument.as_bytes(), b"\0"].concat()).collect()
    }

    #[test]
    fn a_withheld_program_has_a_name_that_says_so() {
        use proctrace_wire::layout::ExecFixed;
        use zerocopy::FromZeros;

        let mut fixed = ExecFixed::new_zeroed();
        fixed.bits = EXEC_WITHHELD;
        let exec = Exec { fixed, path: b"", interp: b"", exe: b"", cwd: b"", argv: b"" };
        assert_eq!(Invocation::of(&exec, &HashSet::new()).name, b"(withheld)");
        let known = Exec { path: b"/bin/true", fixed: ExecFixed::new_zeroed(), ..exec };
        assert_eq!(Invocation::of(&known, &HashSet::new()).name, b"true");
    }

    #[test]
    fn options_have_values() {
        let argv = of(&["o2", "-b", "--id", "worker1", "--idle", "--port=7"]);
        assert_eq!(value_of(&argv, b"--id"), Some(&b"worker1"[..]));
        assert_eq!(value_of(&argv, b"--port"), Some(&b"7"[..]));
        assert_eq!(value_of(&argv, b"--idle"), Some(&b"--port=7"[..]));
        assert_eq!(value_of(&argv, b"--i"), None);
        assert_eq!(value_of(&of(&["x", "--id"]), b"--id"), None);
    }

    #[test]
    fn arguments_are_joined() {
        assert_eq!(&*joined(&of(&["ps", "-p", "1"])), b"ps -p 1");
        assert_eq!(&*joined(b""), b"");
    }

    #[test]
    fn names_lose_versions_and_targets() {
        assert_eq!(variants(b"python3.11"), [&b"python3.11"[..], b"python", b"python"]);
        let variants = variants(b"x86_64-linux-gnu-gcc-12");
        assert_eq!(variants[1..], [&b"x86_64-linux-gnu-gcc"[..], b"gcc"]);
    }

    proptest! {
        #[test]
        fn any_arguments_have_values(argv: Vec<u8>) {
            let _ = value_of(&argv, b"-c");
            let _ = joined(&argv);
        }
    }
}
