//! Credentials and namespaces of a process, as the kernel has them.

/// Credentials and namespaces of a process at the time of the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credentials {
    /// Real, effective and saved user id, in the initial user namespace.
    pub uids: [u32; 3],
    /// The same of groups.
    pub gids: [u32; 3],
    /// Permitted capabilities in its user namespace, as a mask.
    pub permitted: u64,
    /// Effective ones.
    pub effective: u64,
    /// Ambient ones.
    pub ambient: u64,
    /// Level of its user namespace; 0: the initial one.
    pub user_ns_level: u32,
    /// The user of the initial user namespace who has created the outermost namespace that it lives in; its own
    /// user id if it lives in none.
    pub owner: u32,
    /// Level of its pid namespace; 0: the initial one.
    pub pid_level: u32,
    /// Id of its cgroup of version 2.
    pub cgroup: u64,
    /// CLOCK_BOOTTIME of its start.
    pub started_ns: u64,
    pub(crate) user_ns: u64,
    pub(crate) pid_ns: u64,
}

impl Credentials {
    /// True if it acts for one user only: a set-user-ID program would record for its caller what its owner may see.
    #[must_use]
    pub fn is_one_user(&self) -> bool {
        let same = |ids: [u32; 3]| ids.iter().all(|id| *id == ids[0]);
        same(self.uids) && same(self.gids)
    }
}
