//! Calls that strace was asked to log, as far as the log shows.

use proctrace_wire::{Call, Family};

use crate::call::Role;
use crate::text::find;

/// The families of calls, and others that show what strace was asked to log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seen(u32);

impl Seen {
    const FORK: u32 = 1 << 8;
    const OF_FILES: u32 = 1 << 9;
    const SUCCESS: u32 = 1 << 10;
    const FAILURE: u32 = 1 << 11;
    /// Calls that every start of a program makes, so that logs of all calls have them.
    const EVERYWHERE: [&'static [u8]; 4] = [b"read", b"mmap", b"close", b"brk"];

    pub(crate) fn note(&mut self, name: &[u8], role: Role) {
        self.0 |= match role {
            Role::Lookup(call) | Role::Exec(call) => family_bit(call),
            Role::Fork(_) => Self::FORK,
            Role::Other => match Self::EVERYWHERE.iter().position(|known| *known == name) {
                Some(at) => 1 << (16 + at),
                None if is_of_files(name) => Self::OF_FILES,
                None => 0,
            },
            Role::Whereabouts | Role::Move(_) => Self::OF_FILES,
            Role::Directory | Role::Name | Role::End | Role::Id => 0,
        };
    }

    /// Notes how a call ended.
    pub(crate) fn note_end(&mut self, text: &[u8]) {
        const BOTH: u32 = Seen::SUCCESS | Seen::FAILURE;
        if self.0 & BOTH == BOTH || text.ends_with(b"...>") {
            return;
        }
        if find(text, 0, b"= -1 ").is_some() {
            self.0 |= Self::FAILURE;
        } else if find(text, 0, b"= ?").is_none() {
            self.0 |= Self::SUCCESS;
        }
    }

    /// True if only successful calls seem to have been logged (`-z`): of all calls or all of files, some fail.
    pub(crate) fn lacks_failures(self) -> bool {
        let all = self.is_everything() || self.has(Family::Open) && self.has(Family::Access);
        self.0 & (Self::FAILURE | Self::SUCCESS) == Self::SUCCESS && all
    }

    /// True if only failed calls seem to have been logged (`-Z`).
    pub(crate) fn lacks_successes(self) -> bool {
        self.0 & (Self::FAILURE | Self::SUCCESS) == Self::FAILURE
    }

    /// True if calls were not limited by `-e`, as far as the log shows.
    pub(crate) fn is_everything(self) -> bool {
        self.0 >> 16 == (1 << Self::EVERYWHERE.len()) - 1
    }

    pub(crate) fn has_forks(self) -> bool {
        self.0 & Self::FORK != 0
    }

    /// True if the log would have calls of a family.
    pub(crate) fn has(self, family: Family) -> bool {
        let bit = family.calls().first().map_or(0, |call| family_bit(*call));
        self.0 & bit != 0 || self.is_everything() || self.0 & Self::OF_FILES != 0
    }
}

fn family_bit(call: Call) -> u32 {
    let family = Family::of(call);
    let at = Family::ALL.iter().position(|known| Some(*known) == family);
    at.map_or(0, |at| 1 << at)
}

/// Calls that nobody asks for one by one: `-e trace=%file` includes them.
fn is_of_files(name: &[u8]) -> bool {
    matches!(
        name,
        b"statfs"
            | b"unlink"
            | b"unlinkat"
            | b"mkdir"
            | b"mkdirat"
            | b"rmdir"
            | b"rename"
            | b"renameat"
            | b"renameat2"
            | b"link"
            | b"linkat"
            | b"symlink"
            | b"symlinkat"
            | b"chmod"
            | b"fchmodat"
            | b"utimensat"
            | b"chown"
            | b"fchownat"
            | b"truncate"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_logged_shows_in_the_calls() {
        let of = |names: &[&[u8]]| {
            let mut seen = Seen::default();
            names.iter().for_each(|name| seen.note(name, Role::of(name)));
            seen
        };
        let few = of(&[b"openat", b"execve"]);
        assert!(few.has(Family::Open) && few.has(Family::Exec) && !few.has(Family::Stat));
        assert!(!few.has_forks() && !few.is_everything());
        let files = of(&[b"openat", b"getcwd"]);
        assert!(files.has(Family::Chdir) && !files.is_everything());
        assert!(of(&[b"read", b"mmap", b"close", b"brk"]).is_everything());
        let mut all = of(&[b"read", b"mmap", b"close", b"brk"]);
        assert!(!all.lacks_failures() && !all.lacks_successes());
        all.note_end(b"3) = 0");
        assert!(all.lacks_failures());
        all.note_end(b"3) = -1 EBADF (Bad file descriptor)");
        assert!(!all.lacks_failures() && !all.lacks_successes());
        let mut failed = files;
        failed.note_end(b"3) = -1 EBADF (Bad file descriptor)");
        assert!(failed.lacks_successes());
    }
}
