//! System calls by number of our own, the same on every architecture.

/// The system call behind a fork, a failed look-up or a failed exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum Call {
    /// Not one we know (an io_uring worker, for example).
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
    /// fork(2)
    Fork = 16,
    /// vfork(2)
    Vfork = 17,
    /// clone(2)
    Clone = 18,
    /// clone3(2)
    Clone3 = 19,
}

impl Call {
    /// The call with this number; what is not known is [`Call::Unknown`].
    pub fn from_number(number: u16) -> Self {
        match number {
            1 => Self::Open,
            2 => Self::Openat,
            3 => Self::Openat2,
            4 => Self::Creat,
            5 => Self::Execve,
            6 => Self::Execveat,
            16 => Self::Fork,
            17 => Self::Vfork,
            18 => Self::Clone,
            19 => Self::Clone3,
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
            Self::Fork => "fork",
            Self::Vfork => "vfork",
            Self::Clone => "clone",
            Self::Clone3 => "clone3",
        }
    }
}
