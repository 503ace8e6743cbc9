//! System calls, numbered independently of the architecture.

use strum::{FromRepr, IntoStaticStr, VariantArray};

/// The system call behind a fork, a failed look-up or a failed exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromRepr, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
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
        Self::from_repr(number).unwrap_or(Self::Unknown)
    }

    /// The name as in the manual pages.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Calls that look a path up for the same purpose, selectable together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
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
    pub const ALL: [Self; Self::VARIANTS.len()] =
        *Self::VARIANTS.first_chunk().expect("all of them");

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
        self.into()
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
        let calls: usize = Family::ALL.iter().map(|family| family.calls().len()).sum();
        assert_eq!((calls, Family::of(Call::Statx)), (16, Some(Family::Stat)));
    }
}
