//! System calls, numbered independently of the architecture.

/// The system call behind a fork, a failed look-up or a failed exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum Call {
    /// Unknown (an io_uring worker, for example).
    Unknown = 0,
    /// open(2)
    Open = 1,
    /// openat(2)
    Openat = 2,
    /// openat2(2)
    Openat2 = 3,
    /// creat(2)
    Creat = 4,
    /// execve(2)
    Execve = 5,
    /// execveat(2)
    Execveat = 6,
    /// stat(2)
    Stat = 7,
    /// lstat(2)
    Lstat = 8,
    /// newfstatat(2)
    Newfstatat = 9,
    /// statx(2)
    Statx = 10,
    /// access(2)
    Access = 11,
    /// faccessat(2)
    Faccessat = 12,
    /// faccessat2(2)
    Faccessat2 = 13,
    /// readlink(2)
    Readlink = 14,
    /// readlinkat(2)
    Readlinkat = 15,
    /// fork(2)
    Fork = 16,
    /// vfork(2)
    Vfork = 17,
    /// clone(2)
    Clone = 18,
    /// clone3(2)
    Clone3 = 19,
    /// chdir(2)
    Chdir = 20,
}

impl Call {
    /// The call with this number; [`Call::Unknown`] if there is none.
    pub fn from_number(number: u16) -> Self {
        match number {
            1 => Self::Open,
            2 => Self::Openat,
            3 => Self::Openat2,
            4 => Self::Creat,
            5 => Self::Execve,
            6 => Self::Execveat,
            7 => Self::Stat,
            8 => Self::Lstat,
            9 => Self::Newfstatat,
            10 => Self::Statx,
            11 => Self::Access,
            12 => Self::Faccessat,
            13 => Self::Faccessat2,
            14 => Self::Readlink,
            15 => Self::Readlinkat,
            16 => Self::Fork,
            17 => Self::Vfork,
            18 => Self::Clone,
            19 => Self::Clone3,
            20 => Self::Chdir,
            _ => Self::Unknown,
        }
    }

    /// The name as in the manual pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Open => "open",
            Self::Openat => "openat",
            Self::Openat2 => "openat2",
            Self::Creat => "creat",
            Self::Execve => "execve",
            Self::Execveat => "execveat",
            Self::Stat => "stat",
            Self::Lstat => "lstat",
            Self::Newfstatat => "newfstatat",
            Self::Statx => "statx",
            Self::Access => "access",
            Self::Faccessat => "faccessat",
            Self::Faccessat2 => "faccessat2",
            Self::Readlink => "readlink",
            Self::Readlinkat => "readlinkat",
            Self::Fork => "fork",
            Self::Vfork => "vfork",
            Self::Clone => "clone",
            Self::Clone3 => "clone3",
            Self::Chdir => "chdir",
        }
    }
}

/// Calls that look a path up for the same purpose, selectable together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// open, openat, openat2, creat
    Open,
    /// stat, lstat, newfstatat, statx
    Stat,
    /// access, faccessat, faccessat2
    Access,
    /// readlink, readlinkat
    Readlink,
    /// chdir
    Chdir,
    /// execve, execveat
    Exec,
}

impl Family {
    /// Every family.
    pub const ALL: [Self; 6] =
        [Self::Open, Self::Stat, Self::Access, Self::Readlink, Self::Chdir, Self::Exec];

    /// Its calls.
    pub fn calls(self) -> &'static [Call] {
        match self {
            Self::Open => &[Call::Open, Call::Openat, Call::Openat2, Call::Creat],
            Self::Stat => &[Call::Stat, Call::Lstat, Call::Newfstatat, Call::Statx],
            Self::Access => &[Call::Access, Call::Faccessat, Call::Faccessat2],
            Self::Readlink => &[Call::Readlink, Call::Readlinkat],
            Self::Chdir => &[Call::Chdir],
            Self::Exec => &[Call::Execve, Call::Execveat],
        }
    }

    /// The family of a call, if it looks a path up.
    pub fn of(call: Call) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.calls().contains(&call))
    }

    /// The name used on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Stat => "stat",
            Self::Access => "access",
            Self::Readlink => "readlink",
            Self::Chdir => "chdir",
            Self::Exec => "exec",
        }
    }

    /// The family of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_families_are_consistent() {
        for number in 0..64 {
            let call = Call::from_number(number);
            assert!(call as u16 == number || call == Call::Unknown, "{number}");
        }
        for family in Family::ALL {
            assert_eq!(Family::from_name(family.name()), Some(family));
            for call in family.calls() {
                assert_eq!(Family::of(*call), Some(family));
            }
        }
        assert_eq!(Family::of(Call::Fork), None);
    }
}
