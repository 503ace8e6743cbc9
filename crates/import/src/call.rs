//! The calls that become records, and what their arguments say.

use proctrace_wire::{Call, Kind};

use crate::names::number_in;
use crate::names::{
    AT_FDCWD, CLONE_THREAD, CREAT_FLAGS, RENAME_EXCHANGE, SIGCHLD, VFORK_FLAGS, call_flags,
    clone_flags,
};
use crate::text::{
    Returned, Strings, arguments, descriptor, find, quoted, returned, strings, unescape,
};

/// Role of a call in the import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It creates a task.
    Fork(Call),
    /// It executes a program.
    Exec(Call),
    /// It looks a path up.
    Lookup(Call),
    /// rename(2), renameat(2), renameat2(2); true if its paths are relative to descriptors.
    Move(bool),
    /// fchdir(2)
    Directory,
    /// getcwd(2)
    Whereabouts,
    /// prctl(2), which names a task.
    Name,
    /// It ends the caller.
    End,
    /// set_tid_address(2), which returns the caller's thread id.
    Id,
    /// Nothing of interest.
    Other,
}

impl Role {
    pub(crate) fn of(name: &[u8]) -> Self {
        match name {
            b"openat" => Self::Lookup(Call::Openat),
            b"open" => Self::Lookup(Call::Open),
            b"openat2" => Self::Lookup(Call::Openat2),
            b"creat" => Self::Lookup(Call::Creat),
            b"stat" | b"stat64" => Self::Lookup(Call::Stat),
            b"lstat" | b"lstat64" => Self::Lookup(Call::Lstat),
            b"newfstatat" | b"fstatat64" => Self::Lookup(Call::Newfstatat),
            b"statx" => Self::Lookup(Call::Statx),
            b"access" => Self::Lookup(Call::Access),
            b"faccessat" => Self::Lookup(Call::Faccessat),
            b"faccessat2" => Self::Lookup(Call::Faccessat2),
            b"readlink" => Self::Lookup(Call::Readlink),
            b"readlinkat" => Self::Lookup(Call::Readlinkat),
            b"chdir" => Self::Lookup(Call::Chdir),
            b"rename" => Self::Move(false),
            b"renameat" | b"renameat2" => Self::Move(true),
            b"fchdir" => Self::Directory,
            b"getcwd" => Self::Whereabouts,
            b"execve" => Self::Exec(Call::Execve),
            b"execveat" => Self::Exec(Call::Execveat),
            b"fork" => Self::Fork(Call::Fork),
            b"vfork" => Self::Fork(Call::Vfork),
            b"clone" => Self::Fork(Call::Clone),
            b"clone3" => Self::Fork(Call::Clone3),
            b"prctl" => Self::Name,
            b"exit" | b"_exit" | b"exit_group" => Self::End,
            b"set_tid_address" => Self::Id,
            _ => Self::Other,
        }
    }

    /// The kind of record that a call becomes.
    pub(crate) fn kind(self) -> Option<Kind> {
        match self {
            Self::Fork(_) => Some(Kind::Fork),
            Self::Exec(_) => Some(Kind::Exec),
            Self::Lookup(_) => Some(Kind::LookupNamed),
            Self::Name => Some(Kind::Rename),
            Self::Move(_) => Some(Kind::Moved),
            Self::Directory | Self::Whereabouts | Self::End | Self::Id | Self::Other => None,
        }
    }
}

/// A path that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) call: Call,
    pub(crate) dirfd: i32,
    /// The path of that directory, if the log has it (`-y`).
    pub(crate) directory: Option<Vec<u8>>,
    /// None if it could not be read.
    pub(crate) path: Option<Vec<u8>>,
    pub(crate) flags: u32,
}

/// A path that was given to a call which renames: the descriptor of its directory with that directory's path, if the log
/// has it, and the path itself, unless it could not be read or is cut.
pub(crate) type Given = (i32, Option<Vec<u8>>, Option<Vec<u8>>);

/// A rename that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Renamed {
    pub(crate) from: Given,
    pub(crate) to: Given,
    pub(crate) is_exchange: bool,
}

/// A program to execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Executed {
    pub(crate) asked: Asked,
    /// None if it could not be read.
    pub(crate) argv: Option<Strings>,
    /// None if the log has only its address.
    pub(crate) environment: Option<Strings>,
}

/// Creation of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Forked {
    pub(crate) call: Call,
    pub(crate) flags: u64,
    pub(crate) exit_signal: i16,
    /// The new task, in strace's pid namespace.
    pub(crate) child: i32,
    /// The new task as the caller sees it.
    pub(crate) child_ns: i32,
}

/// The text of a call after its parenthesis, taken apart.
#[derive(Debug)]
pub(crate) struct Parsed<'a> {
    pub(crate) arguments: Vec<&'a [u8]>,
    pub(crate) returned: Returned<'a>,
    after: &'a [u8],
    text: &'a [u8],
}

impl<'a> Parsed<'a> {
    pub(crate) fn of(text: &'a [u8]) -> Option<Self> {
        let (arguments, after) = arguments(text)?;
        Some(Self { arguments, returned: returned(after)?, after, text })
    }

    /// An argument without its name (`-N`).
    fn argument(&self, at: usize) -> &'a [u8] {
        without_name(self.arguments.get(at).copied().unwrap_or_default())
    }

    /// True if strace was told not to decode arguments of this call that the kernel could read: with `-e raw=…`
    /// there are addresses.
    pub(crate) fn is_raw(&self, role: Role) -> bool {
        let address = |at: usize| self.argument(at).starts_with(b"0x");
        let is_done = matches!(self.returned, Returned::Value(..));
        is_done
            && match role {
                Role::Fork(Call::Clone3) => address(0),
                Role::Exec(call) => {
                    let path = usize::from(call == Call::Execveat);
                    address(path) && address(path + 1)
                }
                _ => false,
            }
    }

    /// True if the path of a look-up that did not fault is not in the log.
    pub(crate) fn lacks_its_path(&self, call: Call) -> bool {
        const EFAULT: u16 = 14;
        let path = self.argument(usize::from(has_directory(call)));
        let is_asked = !matches!(self.returned, Returned::Error(EFAULT) | Returned::Nothing);
        // Linux takes NULL for an empty path where AT_EMPTY_PATH is given.
        is_asked && !self.arguments.is_empty() && quoted(path).is_none() && path != b"NULL"
    }

    /// The path of a look-up or an exec.
    pub(crate) fn asked(&self, call: Call) -> Asked {
        let has_directory = has_directory(call);
        let (dirfd, directory) = match has_directory {
            true => descriptor(self.argument(0)).unwrap_or((AT_FDCWD, None)),
            false => (AT_FDCWD, None),
        };
        let path = quoted(self.argument(usize::from(has_directory)));
        let flags = match call {
            Call::Creat => CREAT_FLAGS,
            Call::Open | Call::Access => call_flags(self.argument(1)),
            Call::Openat | Call::Statx | Call::Faccessat | Call::Faccessat2 => {
                call_flags(self.argument(2))
            }
            Call::Newfstatat => call_flags(self.argument(3)),
            Call::Execveat => call_flags(self.argument(4)),
            Call::Openat2 => field(self.argument(2), b"flags=").map_or(0, call_flags),
            _ => 0,
        };
        Asked {
            call,
            dirfd,
            directory: directory.map(unescape),
            path: path.map(|path| path.bytes),
            flags: u32::try_from(flags & u64::from(u32::MAX)).unwrap_or(0),
        }
    }

    /// A rename; None if it failed.
    pub(crate) fn renamed(&self, has_directories: bool) -> Option<Renamed> {
        let Returned::Value(0, _) = self.returned else { return None };
        let given = |directory: Option<usize>, path: usize| {
            let directory = directory.and_then(|at| descriptor(self.argument(at)));
            let (dirfd, shown) = directory.unwrap_or((AT_FDCWD, None));
            let path = quoted(self.argument(path)).filter(|path| !path.is_cut);
            (dirfd, shown.map(unescape), path.map(|path| path.bytes))
        };
        Some(match has_directories {
            true => Renamed {
                from: given(Some(0), 1),
                to: given(Some(2), 3),
                is_exchange: call_flags(self.argument(4)) & RENAME_EXCHANGE != 0,
            },
            false => Renamed { from: given(None, 0), to: given(None, 1), is_exchange: false },
        })
    }

    pub(crate) fn executed(&self, call: Call) -> Executed {
        let first = if call == Call::Execveat { 2 } else { 1 };
        Executed {
            asked: self.asked(call),
            argv: strings(self.argument(first)),
            environment: strings(self.argument(first + 1)),
        }
    }

    /// The task that was created; None if the call failed.
    pub(crate) fn forked(&self, call: Call) -> Option<Forked> {
        let Returned::Value(child, _) = self.returned else { return None };
        let child_ns = i32::try_from(child).ok().filter(|child| *child > 0)?;
        let (flags, signal) = match call {
            Call::Fork => (0, SIGCHLD),
            Call::Vfork => (VFORK_FLAGS, SIGCHLD),
            _ => match flags(self.text) {
                Some(flags) => clone_flags(&flags),
                // -e raw=clone
                None if call == Call::Clone => clone_flags(self.argument(0)),
                None => (0, 0),
            },
        };
        let signal = match field(self.text, b"exit_signal=") {
            Some(name) if call == Call::Clone3 => {
                let number = || i32::try_from(number_in(name)?).ok();
                crate::names::signal(name).or_else(number).unwrap_or(0)
            }
            _ => signal,
        };
        // As the kernel has it: a thread sends none.
        let signal = if flags & CLONE_THREAD == 0 { signal } else { -1 };
        Some(Forked {
            call,
            flags,
            exit_signal: i16::try_from(signal).unwrap_or(0),
            child: self.translated().unwrap_or(child_ns),
            child_ns,
        })
    }

    /// `--pidns-translation` prints `2 /* 4711 in strace's PID NS */`.
    fn translated(&self) -> Option<i32> {
        let at = find(self.after, 0, b"/* ")? + 3;
        let (rest, number) = crate::numbers::decimal(self.after.get(at..)?)?;
        rest.starts_with(b" in strace's PID NS").then(|| crate::numbers::id(number)).flatten()
    }

    /// The name that a task gave itself.
    pub(crate) fn new_name(&self) -> Option<Vec<u8>> {
        let option = self.argument(0).split(|byte| *byte == b' ').next().unwrap_or_default();
        let set = matches!(option, b"PR_SET_NAME" | b"0xf" | b"15");
        let done = matches!(self.returned, Returned::Value(0, _));
        (set && done).then(|| quoted(self.argument(1))).flatten().map(|name| name.bytes)
    }

    /// Directory that getcwd(2) found.
    pub(crate) fn whereabouts(&self) -> Option<Vec<u8>> {
        quoted(self.argument(0)).filter(|path| !path.is_cut).map(|path| path.bytes)
    }

    /// The path of the directory in fchdir(2), if the log has it.
    pub(crate) fn directory(&self) -> Option<Vec<u8>> {
        descriptor(self.argument(0))?.1.map(unescape)
    }
}

/// The exit code in `0) = ?`.
pub(crate) fn exit_code(text: &[u8]) -> Option<u32> {
    let text = without_name(text);
    let negative = text.strip_prefix(b"-");
    let end = text.iter().position(|byte| b") ".contains(byte)).unwrap_or(text.len());
    let code = match text.starts_with(b"0x") {
        true => number_in(&text[..end])?,
        false => crate::numbers::decimal(negative.unwrap_or(text))?.1,
    };
    let code = u32::try_from(code & 0xff).ok()?;
    // exit(-1) is exit(255)
    Some(if negative.is_none() { code } else { code.wrapping_neg() & 0xff })
}

/// Text behind the name of an argument: `dirfd=AT_FDCWD`.
fn without_name(argument: &[u8]) -> &[u8] {
    let is_of_name =
        |byte: &&u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || **byte == b'_';
    let name = argument.iter().take_while(is_of_name).count();
    match argument.get(name) {
        Some(b'=') if argument[0].is_ascii_lowercase() => &argument[name + 1..],
        _ => argument,
    }
}

fn has_directory(call: Call) -> bool {
    matches!(
        call,
        Call::Openat
            | Call::Openat2
            | Call::Newfstatat
            | Call::Statx
            | Call::Faccessat
            | Call::Faccessat2
            | Call::Readlinkat
            | Call::Execveat
    )
}

/// The flags of clone(2) without the comments of `-X verbose`: `0x1200000 /* CLONE_FS */|17 /* SIGCHLD */`.
fn flags(text: &[u8]) -> Option<Vec<u8>> {
    let from = find(text, 0, b"flags=")? + b"flags=".len();
    let mut rest = text.get(from..)?;
    let mut flags = Vec::new();
    while let Some((first, after)) = rest.split_first() {
        if let Some(comment) = rest.strip_prefix(b" /*") {
            rest = comment.get(find(comment, 0, b"*/")? + 2..)?;
            continue;
        }
        if b",)} ".contains(first) {
            break;
        }
        flags.push(*first);
        rest = after;
    }
    Some(flags)
}

/// Text behind `name=` up to the next separator.
fn field<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let from = find(text, 0, name)? + name.len();
    let rest = text.get(from..)?;
    let end = rest.iter().position(|byte| b",)} ".contains(byte)).unwrap_or(rest.len());
    Some(&rest[..end])
}

/// Error number of a call that returned this, if it failed.
pub(crate) fn failure(returned: Returned<'_>) -> Option<u16> {
    match returned {
        Returned::Error(error) => Some(error),
        Returned::Value(..) | Returned::Nothing | Returned::Unclear => None,
    }
}

/// Text before the mark of a call that ends on a later line.
pub(crate) fn beginning(text: &[u8]) -> Option<&[u8]> {
    if let Some(text) = text.strip_suffix(b"<unfinished ...>") {
        return Some(text);
    }
    if let Some(text) = text.strip_suffix(b"<detached ...>") {
        return Some(text);
    }
    // The task takes over the pid of its process.
    let at = text.strip_suffix(b" ...>").and_then(|_| find(text, 0, PID_CHANGED))?;
    text.get(..at)
}

const PID_CHANGED: &[u8] = b"<pid changed to ";

/// The pid that a thread takes over which has called exec.
pub(crate) fn changed_pid(text: &[u8]) -> Option<i32> {
    let at = find(text, 0, PID_CHANGED)? + PID_CHANGED.len();
    let (rest, number) = crate::numbers::decimal(text.get(at..)?)?;
    rest.ends_with(b" ...>").then(|| crate::numbers::id(number)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Parsed<'_> {
        Parsed::of(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_look_up_has_its_arguments_where_the_call_has_them() {
        let of = |call, text| {
            let asked = parsed(text).asked(call);
            let path = asked.path.map(|path| String::from_utf8(path).unwrap());
            (asked.dirfd, path, asked.flags)
        };
        let x = Some("x".to_owned());
        assert_eq!(
            of(Call::Open, r#""x", O_RDONLY|O_CLOEXEC) = 3"#),
            (-100, x.clone(), 0o2_000_000)
        );
        assert_eq!(of(Call::Openat, r#"5, "x", O_RDWR|O_CREAT, 0644) = 3"#), (5, x.clone(), 0o102));
        assert_eq!(
            of(Call::Openat2, r#"AT_FDCWD, "x", {flags=O_WRONLY, resolve=0}, 24) = 3"#),
            (-100, x.clone(), 1)
        );
        assert_eq!(
            of(Call::Newfstatat, r#"AT_FDCWD, "x", 0x7ff, AT_SYMLINK_NOFOLLOW) = -1 ENOENT (No)"#),
            (-100, x.clone(), 0x100)
        );
        assert_eq!(of(Call::Access, r#""x", R_OK) = -1 ENOENT (No)"#), (-100, x, 4));
        assert_eq!(of(Call::Stat, "NULL, 0x7ff) = -1 EFAULT (Bad)"), (-100, None, 0));
        assert_eq!(of(Call::Openat, ") = -1 ENOENT (the start is missing)"), (-100, None, 0));
    }

    #[test]
    fn a_rename_has_two_paths() {
        let renamed =
            parsed(r#"3</w>, "a", AT_FDCWD</v>, "b", RENAME_NOREPLACE|RENAME_EXCHANGE) = 0"#)
                .renamed(true)
                .unwrap();
        assert_eq!(renamed.from, (3, Some(b"/w".to_vec()), Some(b"a".to_vec())));
        assert_eq!(renamed.to, (AT_FDCWD, Some(b"/v".to_vec()), Some(b"b".to_vec())));
        assert!(renamed.is_exchange);
        // -X raw
        for (flags, is_exchange) in [("0", false), ("0x1", false), ("0x2", true), ("0x6", true)] {
            let text = format!(r#"-100, "a", 0x4, "b", {flags}) = 0"#);
            let renamed = parsed(&text).renamed(true).unwrap();
            assert_eq!(renamed.to, (4, None, Some(b"b".to_vec())));
            assert_eq!((renamed.from.0, renamed.is_exchange), (AT_FDCWD, is_exchange), "{text}");
        }
        let renamed = parsed(r#""a"..., 0x7ffe) = 0"#).renamed(false).unwrap();
        assert_eq!((renamed.from.2, renamed.to.2, renamed.is_exchange), (None, None, false));
        assert_eq!(parsed(r#""a", "b") = -1 ENOENT (No)"#).renamed(false), None);
        assert_eq!(parsed(r#""a", "b") = ?"#).renamed(false), None);
    }

    #[test]
    fn arguments_may_have_names() {
        let named = parsed(r#"pathname="./a", argv=["a", "b=c"], envp=0x7f /* 2 vars */) = 0"#);
        let executed = named.executed(Call::Execve);
        assert_eq!(executed.asked.path.as_deref(), Some(&b"./a"[..]));
        assert_eq!(executed.argv.unwrap().strings[1].bytes, b"b=c");
        let asked = parsed(r#"dirfd=-100 /* AT_FDCWD */</d>, pathname="x", flags=0x1) = 3"#);
        let asked = asked.asked(Call::Openat);
        assert_eq!((asked.dirfd, asked.directory, asked.flags), (-100, Some(b"/d".to_vec()), 1));
        let name = parsed(r#"op=PR_SET_NAME, name="helper") = 0"#).new_name();
        assert_eq!(name.as_deref(), Some(&b"helper"[..]));
        assert_eq!(without_name(b"\"a=b\""), b"\"a=b\"");
        assert_eq!(without_name(b"O_RDONLY"), b"O_RDONLY");
    }

    #[test]
    fn what_is_not_decoded_is_told_from_what_the_kernel_could_not_read() {
        let raw = |role, text| parsed(text).is_raw(role);
        assert!(raw(Role::Exec(Call::Execve), "0x7ffc, 0x7ffd, 0x7ffe) = 0"));
        assert!(!raw(Role::Exec(Call::Execve), "0x7ffc, 0x7ffd, 0x7ffe) = -1 EFAULT (Bad)"));
        assert!(!raw(Role::Exec(Call::Execve), "\"/x\", 0x7ffd, 0x7ffe) = 0"));
        assert!(raw(Role::Fork(Call::Clone3), "0x7ffc, 0x58) = 0x7"));
        let lacks = |text| parsed(text).lacks_its_path(Call::Openat);
        assert!(lacks("0xffffff9c, 0x7ffc, 0x80000, 0) = 0x3"));
        assert!(!lacks("AT_FDCWD, 0x7ffc, O_RDONLY) = -1 EFAULT (Bad address)"));
        assert!(!lacks("AT_FDCWD, \"x\", O_RDONLY) = 3"));
        // Its beginning is missing.
        assert!(!lacks(") = 3"));
    }

    #[test]
    fn forks_have_flags_and_a_child() {
        let of = |call, text: &str| parsed(text).forked(call);
        let thread = "child_stack=0x7f, flags=CLONE_VM|CLONE_THREAD, parent_tid=[7], tls=0x7f) = 7";
        let forked = of(Call::Clone, thread).unwrap();
        assert_eq!((forked.child, forked.flags, forked.exit_signal), (7, 0x1_0100, -1));
        let three =
            "{flags=CLONE_VM, exit_signal=SIGCHLD, stack=0x7f} => {parent_tid=[7]}, 88) = 7";
        let forked = of(Call::Clone3, three).unwrap();
        assert_eq!((forked.child, forked.flags, forked.exit_signal), (7, 0x100, 17));
        let inner = "child_stack=NULL, flags=SIGCHLD) = 2 /* 4711 in strace's PID NS */";
        let forked = of(Call::Clone, inner).unwrap();
        assert_eq!((forked.child, forked.child_ns, forked.exit_signal), (4711, 2, 17));
        let verbose = "child_stack=NULL, flags=0x1200000 /* CLONE_CHILD_CLEARTID|CLONE_X */|17 \
                       /* SIGCHLD */, child_tidptr=0x7f) = 7";
        let forked = of(Call::Clone, verbose).unwrap();
        assert_eq!((forked.flags, forked.exit_signal), (0x120_0000, 17));
        let named = "cl_args={flags=0x10100, exit_signal=17 /* SIGCHLD */}, size=88) = 7";
        let forked = of(Call::Clone3, named).unwrap();
        assert_eq!((forked.flags, forked.exit_signal), (0x1_0100, -1));
        let raw = "0x1200011, 0, 0, 0x7f013102f290, 0) = 0x5c55";
        let forked = of(Call::Clone, raw).unwrap();
        assert_eq!((forked.child, forked.flags, forked.exit_signal), (0x5c55, 0x120_0000, 17));
        assert_eq!(of(Call::Fork, ") = -1 EAGAIN (Resource)"), None);
        assert_eq!(of(Call::Clone, "flags=SIGCHLD) = ? ERESTARTNOINTR (To be restarted)"), None);
    }

    #[test]
    fn exit_codes_have_eight_bits() {
        assert_eq!(exit_code(b"3) = ?"), Some(3));
        assert_eq!(exit_code(b"-1) = ?"), Some(255));
        assert_eq!(exit_code(b"256) = ?"), Some(0));
        assert_eq!(exit_code(b"status=3) = ?"), Some(3));
        assert_eq!(exit_code(b"0x7) = ?"), Some(7));
        assert_eq!(exit_code(b"x"), None);
    }
}
