//! Symbolic names in logs: errors, signals, and flags of calls, as on x86-64 and ARM64.

use proctrace_wire::signal_name;

/// AT_FDCWD of openat(2).
pub(crate) const AT_FDCWD: i32 = -100;

/// sched.h: a thread of the same process.
pub(crate) const CLONE_THREAD: u64 = 0x0001_0000;
/// sched.h: a sibling of the caller.
pub(crate) const CLONE_PARENT: u64 = 0x8000;
/// vfork(2) is clone(2) with these.
pub(crate) const VFORK_FLAGS: u64 = 0x4000 | 0x100;
/// creat(2) is open(2) with these.
pub(crate) const CREAT_FLAGS: u64 = 0o1101;
/// `flags` of renameat2(2).
pub(crate) const RENAME_EXCHANGE: u64 = 2;
/// The signal of a child that ended.
pub(crate) const SIGCHLD: i32 = 17;

/// errno(3), and the results by which the kernel restarts a call.
#[rustfmt::skip]
const ERRORS: &[(&str, u16)] = &[
    ("EPERM", 1),     ("ENOENT", 2),     ("ESRCH", 3),
    ("EINTR", 4),     ("EIO", 5),     ("ENXIO", 6),
    ("E2BIG", 7),     ("ENOEXEC", 8),     ("EBADF", 9),
    ("ECHILD", 10),     ("EAGAIN", 11),     ("ENOMEM", 12),
    ("EACCES", 13),     ("EFAULT", 14),     ("ENOTBLK", 15),
    ("EBUSY", 16),     ("EEXIST", 17),     ("EXDEV", 18),
    ("ENODEV", 19),     ("ENOTDIR", 20),     ("EISDIR", 21),
    ("EINVAL", 22),     ("ENFILE", 23),     ("EMFILE", 24),
    ("ENOTTY", 25),     ("ETXTBSY", 26),     ("EFBIG", 27),
    ("ENOSPC", 28),     ("ESPIPE", 29),     ("EROFS", 30),
    ("EMLINK", 31),     ("EPIPE", 32),     ("EDOM", 33),
    ("ERANGE", 34),     ("EDEADLK", 35),     ("ENAMETOOLONG", 36),
    ("ENOLCK", 37),     ("ENOSYS", 38),     ("ENOTEMPTY", 39),
    ("ELOOP", 40),     ("ENOMSG", 42),     ("EIDRM", 43),
    ("ECHRNG", 44),     ("EL2NSYNC", 45),     ("EL3HLT", 46),
    ("EL3RST", 47),     ("ELNRNG", 48),     ("EUNATCH", 49),
    ("ENOCSI", 50),     ("EL2HLT", 51),     ("EBADE", 52),
    ("EBADR", 53),     ("EXFULL", 54),     ("ENOANO", 55),
    ("EBADRQC", 56),     ("EBADSLT", 57),     ("EBFONT", 59),
    ("ENOSTR", 60),     ("ENODATA", 61),     ("ETIME", 62),
    ("ENOSR", 63),     ("ENONET", 64),     ("ENOPKG", 65),
    ("EREMOTE", 66),     ("ENOLINK", 67),     ("EADV", 68),
    ("ESRMNT", 69),     ("ECOMM", 70),     ("EPROTO", 71),
    ("EMULTIHOP", 72),     ("EDOTDOT", 73),     ("EBADMSG", 74),
    ("EOVERFLOW", 75),     ("ENOTUNIQ", 76),     ("EBADFD", 77),
    ("EREMCHG", 78),     ("ELIBACC", 79),     ("ELIBBAD", 80),
    ("ELIBSCN", 81),     ("ELIBMAX", 82),     ("ELIBEXEC", 83),
    ("EILSEQ", 84),     ("ERESTART", 85),     ("ESTRPIPE", 86),
    ("EUSERS", 87),     ("ENOTSOCK", 88),     ("EDESTADDRREQ", 89),
    ("EMSGSIZE", 90),     ("EPROTOTYPE", 91),     ("ENOPROTOOPT", 92),
    ("EPROTONOSUPPORT", 93),     ("ESOCKTNOSUPPORT", 94),     ("EOPNOTSUPP", 95),
    ("EPFNOSUPPORT", 96),     ("EAFNOSUPPORT", 97),     ("EADDRINUSE", 98),
    ("EADDRNOTAVAIL", 99),     ("ENETDOWN", 100),     ("ENETUNREACH", 101),
    ("ENETRESET", 102),     ("ECONNABORTED", 103),     ("ECONNRESET", 104),
    ("ENOBUFS", 105),     ("EISCONN", 106),     ("ENOTCONN", 107),
    ("ESHUTDOWN", 108),     ("ETOOMANYREFS", 109),     ("ETIMEDOUT", 110),
    ("ECONNREFUSED", 111),     ("EHOSTDOWN", 112),     ("EHOSTUNREACH", 113),
    ("EALREADY", 114),     ("EINPROGRESS", 115),     ("ESTALE", 116),
    ("EUCLEAN", 117),     ("ENOTNAM", 118),     ("ENAVAIL", 119),
    ("EISNAM", 120),     ("EREMOTEIO", 121),     ("EDQUOT", 122),
    ("ENOMEDIUM", 123),     ("EMEDIUMTYPE", 124),     ("ECANCELED", 125),
    ("ENOKEY", 126),     ("EKEYEXPIRED", 127),     ("EKEYREVOKED", 128),
    ("EKEYREJECTED", 129),     ("EOWNERDEAD", 130),     ("ENOTRECOVERABLE", 131),
    ("ERFKILL", 132),     ("EHWPOISON", 133),     ("ERESTARTSYS", 512),
    ("ERESTARTNOINTR", 513),     ("ERESTARTNOHAND", 514),     ("ENOIOCTLCMD", 515),
    ("ERESTART_RESTARTBLOCK", 516),     ("ENOTSUPP", 524), 
];

/// Flags of open(2), of the `at` calls, and the modes of access(2). Those of other machines differ in
/// a few; they are only shown.
const CALL_FLAGS: &[(&str, u64)] = &[
    ("O_RDONLY", 0),
    ("O_WRONLY", 0o1),
    ("O_RDWR", 0o2),
    ("O_CREAT", 0o100),
    ("O_EXCL", 0o200),
    ("O_NOCTTY", 0o400),
    ("O_TRUNC", 0o1000),
    ("O_APPEND", 0o2000),
    ("O_NONBLOCK", 0o4000),
    ("O_DSYNC", 0o10000),
    ("O_ASYNC", 0o20000),
    ("O_DIRECT", 0o40000),
    ("O_LARGEFILE", 0o100_000),
    ("O_DIRECTORY", 0o200_000),
    ("O_NOFOLLOW", 0o400_000),
    ("O_NOATIME", 0o1_000_000),
    ("O_CLOEXEC", 0o2_000_000),
    ("O_SYNC", 0o4_010_000),
    ("O_PATH", 0o10_000_000),
    ("O_TMPFILE", 0o20_200_000),
    ("AT_SYMLINK_NOFOLLOW", 0x100),
    ("AT_EACCESS", 0x200),
    ("AT_SYMLINK_FOLLOW", 0x400),
    ("AT_NO_AUTOMOUNT", 0x800),
    ("AT_EMPTY_PATH", 0x1000),
    ("AT_STATX_FORCE_SYNC", 0x2000),
    ("AT_STATX_DONT_SYNC", 0x4000),
    ("RENAME_EXCHANGE", RENAME_EXCHANGE),
    ("R_OK", 4),
    ("W_OK", 2),
    ("X_OK", 1),
    ("F_OK", 0),
];

/// clone(2).
const CLONE_FLAGS: &[(&str, u64)] = &[
    ("CLONE_VM", 0x100),
    ("CLONE_FS", 0x200),
    ("CLONE_FILES", 0x400),
    ("CLONE_SIGHAND", 0x800),
    ("CLONE_PIDFD", 0x1000),
    ("CLONE_PTRACE", 0x2000),
    ("CLONE_VFORK", 0x4000),
    ("CLONE_PARENT", CLONE_PARENT),
    ("CLONE_THREAD", CLONE_THREAD),
    ("CLONE_NEWNS", 0x2_0000),
    ("CLONE_SYSVSEM", 0x4_0000),
    ("CLONE_SETTLS", 0x8_0000),
    ("CLONE_PARENT_SETTID", 0x10_0000),
    ("CLONE_CHILD_CLEARTID", 0x20_0000),
    ("CLONE_DETACHED", 0x40_0000),
    ("CLONE_UNTRACED", 0x80_0000),
    ("CLONE_CHILD_SETTID", 0x100_0000),
    ("CLONE_NEWCGROUP", 0x200_0000),
    ("CLONE_NEWUTS", 0x400_0000),
    ("CLONE_NEWIPC", 0x800_0000),
    ("CLONE_NEWUSER", 0x1000_0000),
    ("CLONE_NEWPID", 0x2000_0000),
    ("CLONE_NEWNET", 0x4000_0000),
    ("CLONE_IO", 0x8000_0000),
    ("CLONE_CLEAR_SIGHAND", 0x1_0000_0000),
    ("CLONE_INTO_CGROUP", 0x2_0000_0000),
];

/// The number of an error.
pub(crate) fn error(name: &[u8]) -> Option<u16> {
    // By far the most frequent first.
    if name == b"ENOENT" {
        return Some(2);
    }
    find(ERRORS, name)
}

/// The number of a signal.
pub(crate) fn signal(name: &[u8]) -> Option<i32> {
    if let Some(number) = name.strip_prefix(b"SIGRT_") {
        return Some(32 + i32::try_from(number_in(number)?).ok()?).filter(|number| *number <= 64);
    }
    (1..=31).find(|number| signal_name(*number).as_bytes() == name)
}

/// Flags of a call that looks a path up: `O_RDONLY|O_CLOEXEC`, or a number.
pub(crate) fn call_flags(text: &[u8]) -> u64 {
    sum(CALL_FLAGS, text)
}

/// Flags of clone(2), and the signal that comes with them.
pub(crate) fn clone_flags(text: &[u8]) -> (u64, i32) {
    let flags = sum(CLONE_FLAGS, text);
    let signal_part = text.split(|byte| *byte == b'|').find_map(|part| signal(part.trim_ascii()));
    // The lowest byte of a number is the signal.
    let number = i32::try_from(flags & 0xff).unwrap_or(0);
    (flags & !0xff, signal_part.unwrap_or(number))
}

/// A decimal, octal or hexadecimal number, as in C.
pub(crate) fn number_in(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    match text.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => u64::from_str_radix(octal, 8).ok(),
        _ => text.parse().ok(),
    }
}

fn sum(names: &[(&str, u64)], text: &[u8]) -> u64 {
    // -X verbose: `0x80000 /* O_RDONLY|O_CLOEXEC */`
    let text = text.split(|byte| *byte == b' ').next().unwrap_or_default();
    let parts = text.split(|byte| *byte == b'|');
    parts.fold(0, |sum, part| sum | find(names, part).or_else(|| number_in(part)).unwrap_or(0))
}

fn find<T: Copy>(names: &[(&str, T)], name: &[u8]) -> Option<T> {
    names.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_numbers_of_the_kernel() {
        for (name, number) in
            [("ENOENT", 2), ("EACCES", 13), ("ELOOP", 40), ("EDQUOT", 122), ("ERESTARTSYS", 512)]
        {
            assert_eq!(error(name.as_bytes()), Some(number), "{name}");
        }
        assert_eq!(error(b"EWHAT"), None);
        assert_eq!(
            (signal(b"SIGKILL"), signal(b"SIGRT_2"), signal(b"SIG")),
            (Some(9), Some(34), None)
        );
    }

    #[test]
    fn flags_are_names_numbers_or_both() {
        assert_eq!(call_flags(b"O_RDONLY|O_CLOEXEC"), 0o2_000_000);
        assert_eq!(call_flags(b"0x80000 /* O_RDONLY|O_CLOEXEC */"), 0x80000);
        assert_eq!(call_flags(b"O_WRONLY|0x40000000"), 0x4000_0001);
        assert_eq!(clone_flags(b"CLONE_VM|CLONE_VFORK|SIGCHLD"), (0x4100, 17));
        assert_eq!(clone_flags(b"0x1200011"), (0x120_0000, 17));
        assert_eq!(clone_flags(b"CLONE_THREAD"), (CLONE_THREAD, 0));
    }
}
