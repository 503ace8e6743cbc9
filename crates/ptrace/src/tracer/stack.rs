//! The stack of a program that has not run yet: its arguments, environment and auxiliary vector.
//!
//! The kernel has just written them, argv first, then the environment, then the path that was given to
//! execve(2), all of it above the stack pointer. So one read returns what would take several files of
//! /proc.

use crate::arch::Registers;
use crate::sys::{self, Tid};

/// getauxval(3)
const AT_NULL: u64 = 0;
const AT_SECURE: u64 = 23;
const AT_EXECFN: u64 = 31;

/// Bytes read at first: most programs have less.
const FIRST_READ: usize = 32 << 10;

/// The kernel allows no more arguments and environment than this: 6 MiB, and pointers to them.
const MOST: usize = 16 << 20;

/// Arguments and environment that a new program was given.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Given<'a> {
    pub(super) argc: u32,
    /// Each with its NUL.
    pub(super) arguments: &'a [u8],
    pub(super) environment: &'a [u8],
    /// Path as given to execve(2).
    pub(super) path: &'a [u8],
    /// AT_SECURE
    pub(super) is_secure: bool,
}

/// Reads the stack of a task at its exec into `buffer`, from its pointer up; returns how much it is.
pub(super) fn read(tid: Tid, registers: &Registers, buffer: &mut Vec<u8>) -> usize {
    let mut len = FIRST_READ;
    loop {
        buffer.resize(len, 0);
        let read = sys::read_memory(tid, registers.stack(), buffer);
        if read < len || len >= MOST {
            return read;
        }
        len *= 8;
    }
}

impl<'a> Given<'a> {
    /// Arguments and environment from the bytes above the stack pointer `base`; None if they are
    /// not what the kernel writes.
    pub(super) fn parse(stack: &'a [u8], base: u64, compat: bool) -> Option<Self> {
        let width = if compat { 4 } else { 8 };
        let mut words = stack.chunks_exact(width).map(|word| {
            let mut bytes = [0; 8];
            bytes[..width].copy_from_slice(word);
            u64::from_le_bytes(bytes)
        });
        let argc = words.next()?;
        let first_argument = words.next()?;
        // The rest of the arguments, and the NULL after them, which may be the one just read.
        let rest = usize::try_from(argc).ok()?;
        if rest > 0 && words.nth(rest - 1)? != 0 {
            return None;
        }
        let first_variable = words.next()?;
        let mut word = first_variable;
        while word != 0 {
            word = words.next()?;
        }
        let (mut path_at, mut is_secure) = (None, false);
        loop {
            let (key, value) = (words.next()?, words.next()?);
            match key {
                AT_NULL => break,
                AT_SECURE => is_secure = value != 0,
                AT_EXECFN => path_at = Some(value),
                _ => {}
            }
        }
        let path_at = path_at?;
        let environment_at = if first_variable == 0 { path_at } else { first_variable };
        let arguments_at = if argc == 0 { environment_at } else { first_argument };
        let offset = |address: u64| usize::try_from(address.checked_sub(base)?).ok();
        let between = |from: u64, to: u64| stack.get(offset(from)?..offset(to)?);
        let path = stack.get(offset(path_at)?..)?;
        let end = path.iter().position(|byte| *byte == 0)?;
        Some(Self {
            argc: u32::try_from(argc).ok()?,
            arguments: between(arguments_at, environment_at)?,
            environment: between(environment_at, path_at)?,
            path: &path[..end],
            is_secure,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack as the kernel lays it out, with words of this width.
    fn stack(base: u64, width: usize, arguments: &[&str], variables: &[&str]) -> Vec<u8> {
        let words = 1 + arguments.len() + 1 + variables.len() + 1 + 6;
        let mut at = base + (words * width) as u64;
        let mut strings = Vec::new();
        let mut pointers = |list: &[&str]| -> Vec<u64> {
            let place = |string: &&str| {
                let here = at;
                strings.extend_from_slice(string.as_bytes());
                strings.push(0);
                at += string.len() as u64 + 1;
                here
            };
            list.iter().map(place).collect()
        };
        let (argv, envp, path) = (pointers(arguments), pointers(variables), pointers(&["/bin/it"]));
        let mut all = vec![arguments.len() as u64];
        all.extend(argv);
        all.push(0);
        all.extend(envp);
        all.extend([0, AT_SECURE, 1, AT_EXECFN, path[0], AT_NULL, 0]);
        let bytes = all.iter().flat_map(|word| word.to_le_bytes()[..width].to_vec());
        bytes.chain(strings).collect()
    }

    #[test]
    fn all_parts_are_found() {
        for (width, compat) in [(8, false), (4, true)] {
            let base = 0x7000_0000;
            let bytes = stack(base, width, &["it", "", "-x"], &["A=1", "B="]);
            let given = Given::parse(&bytes, base, compat).expect("a stack");
            let expected = Given {
                argc: 3,
                arguments: b"it\0\0-x\0",
                environment: b"A=1\0B=\0",
                path: b"/bin/it",
                is_secure: true,
            };
            assert_eq!(given, expected);
            for (arguments, variables) in [(&[][..], &["A=1"][..]), (&["it"], &[]), (&[], &[])] {
                let bytes = stack(base, width, arguments, variables);
                let given = Given::parse(&bytes, base, compat).expect("a stack");
                assert_eq!(given.argc as usize, arguments.len());
                let bytes_of =
                    |list: &[&str]| list.iter().map(|text| text.len() + 1).sum::<usize>();
                assert_eq!(given.arguments.len(), bytes_of(arguments));
                assert_eq!(given.environment.len(), bytes_of(variables));
            }
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let base = 0x7000_0000;
        let bytes = stack(base, 8, &["it"], &["A=1"]);
        for len in 0..bytes.len() - 1 {
            assert_eq!(Given::parse(&bytes[..len], base, false), None, "{len}");
        }
        assert_eq!(Given::parse(&bytes, base + 1_000_000, false), None);
        assert_eq!(Given::parse(&[255; 4096], base, false), None);
    }
}
