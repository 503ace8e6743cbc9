//! Policy of writing: for whom files are written, and whose files they may replace.

/// A user, as the owner of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// Users who may read a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Mode 0600.
    Owner,
    /// Mode 0666 without what the umask says.
    Umask,
    /// This mode, whatever the umask says.
    Mode(u32),
}

/// Rule for names that belong to something else than a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Specials {
    /// A user has given the name on the command line: character devices, and FIFOs of this user, are written to.
    Asked,
    /// The name follows from others.
    Refused,
}

/// Policy for whom this process writes files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outputs {
    /// The effective user.
    pub(crate) uid: u32,
    /// Owner of the files, if not the effective user.
    pub(crate) owner: Option<Owner>,
    /// Other users whose files and links root accepts.
    trusted: Vec<u32>,
}

impl Outputs {
    /// Files of the effective user.
    pub fn of_this_process() -> Self {
        Self { uid: rustix::process::geteuid().as_raw(), owner: None, trusted: Vec::new() }
    }

    /// Files are given to this user, whose files may be replaced. Only root can do that.
    #[must_use]
    pub fn owned_by(self, owner: Owner) -> Self {
        Self { owner: Some(owner), ..self.trusting(owner.uid) }
    }

    /// Files and links of this user are treated as root's own: the one who called sudo, who could have root write
    /// anything anyway.
    #[must_use]
    pub fn trusting(mut self, uid: u32) -> Self {
        self.trusted.push(uid);
        self
    }

    /// True if rules for root apply: others can write no more than what is theirs.
    pub(crate) fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// True if a file, link or directory of this user is as good as an own one.
    pub fn trusts(&self, uid: u32) -> bool {
        uid == 0 || uid == self.uid || self.trusted.contains(&uid)
    }
}
