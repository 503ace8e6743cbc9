//! Rights of the caller: the tasks that it may record, and how capabilities are dropped once they
//! are no longer needed.
//!
//! BPF programs see every task, whoever loaded them. So a recorder without CAP_SYS_PTRACE passes
//! its user's ids to its programs, and they record only tasks that this user could trace: see
//! bpf/rights.bpf.h.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::process::{getegid, geteuid, getgid, getuid};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, capabilities_secure_bits,
    capability_is_in_ambient_set, clear_ambient_capability_set, set_capabilities,
};

use crate::capable::INITIAL_USER_NAMESPACE;
use crate::error::ProbeError;

/// The rights of the recording user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rights {
    /// True if only tasks that the caller could trace are recorded.
    pub(crate) restricted: bool,
    /// The real user id.
    pub(crate) uid: u32,
    /// The real group id.
    pub(crate) gid: u32,
    /// Bit mask of the caller's own permitted capabilities, without those of the recorder's file.
    pub(crate) capabilities: u64,
    /// True if the caller has CAP_SYS_PTRACE in effect in its user namespace.
    pub(crate) may_trace: bool,
    /// True if it has CAP_DAC_READ_SEARCH or CAP_DAC_OVERRIDE there.
    pub(crate) may_read: bool,
    /// The address of its user namespace; 0: the initial one.
    pub(crate) user_ns: u64,
    /// The level of that namespace.
    pub(crate) user_ns_level: u32,
}

impl Rights {
    /// The rights of this process.
    pub(crate) fn of_this_process() -> io::Result<Self> {
        let sets = capabilities(None)?;
        let (uid, gid) = (getuid(), getgid());
        // A set-user-ID copy of the recorder has rights that its caller does not have.
        let borrowed = uid != geteuid() || gid != getegid();
        let may_trace_all = sets.effective.contains(CapabilitySet::SYS_PTRACE)
            && fs::metadata("/proc/self/ns/user")?.ino() == INITIAL_USER_NAMESPACE;
        // Root regains its capabilities at every exec. Other users keep only ambient ones, and
        // executing a file with capabilities clears those (cap_bprm_creds_from_file()). So ambient
        // capabilities belong to the caller; the others may come from the recorder's file.
        let by_being_root = uid.is_root()
            && !borrowed
            && !capabilities_secure_bits()?.contains(CapabilitiesSecureBits::NO_ROOT);
        let own = if by_being_root { sets.permitted } else { ambient() };
        Ok(Self {
            restricted: borrowed || !may_trace_all,
            uid: uid.as_raw(),
            gid: gid.as_raw(),
            capabilities: own.bits(),
            // Those who have it are not restricted.
            may_trace: false,
            may_read: false,
            // BPF programs can be loaded only there.
            user_ns: 0,
            user_ns_level: 0,
        })
    }

    /// Drops the capabilities needed to load and attach. `works` checks whether the recording can
    /// continue with the remaining ones.
    ///
    /// Real root keeps its capabilities: it may have to launch the command as another user, and
    /// could regain them anyway.
    pub(crate) fn give_up(self, works: impl Fn() -> bool) -> Result<(), ProbeError> {
        let sets = capabilities(None).map_err(io::Error::from).map_err(failed)?;
        if self.uid == 0 || (sets.permitted.is_empty() && sets.inheritable.is_empty()) {
            return Ok(());
        }
        // Capabilities are per thread.
        let threads = fs::read_dir("/proc/self/task").map_err(failed)?.count();
        if threads != 1 {
            return Err(ProbeError::Option(format!(
                "a recorder with capabilities must load its programs before it creates threads, \
                 so that it can drop the capabilities: it has {threads} threads"
            )));
        }
        give_up(sets, self.needed(), works).map_err(failed)
    }

    /// Capabilities to read /proc of other users' processes, if they may be recorded.
    fn needed(self) -> CapabilitySet {
        if self.restricted { CapabilitySet::empty() } else { CapabilitySet::SYS_PTRACE }
    }

    /// Checks that the kernel allows the caller to read this process; a nonexistent process is
    /// reported elsewhere.
    pub(crate) fn check(self, pid: u32) -> Result<(), ProbeError> {
        let looked = fs::read_link(format!("/proc/{pid}/exe"));
        let denied = looked.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
        if self.restricted && denied {
            return Err(ProbeError::NotYours(format!("process {pid}")));
        }
        Ok(())
    }
}

/// The reason why none of these processes is recorded, if it is missing rights; otherwise they have
/// ended.
pub(crate) fn hidden(pids: &[u32], restricted: bool) -> Option<ProbeError> {
    let is_hidden = |pid: &&u32| restricted && is_there(**pid);
    let hidden: Vec<String> = pids.iter().filter(is_hidden).map(u32::to_string).collect();
    (!hidden.is_empty()).then(|| ProbeError::NotYours(format!("process {}", hidden.join(", "))))
}

/// True if this process exists and is not a zombie.
fn is_there(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/status"))
        .is_ok_and(|status| !status.lines().any(|line| line.starts_with("State:\tZ")))
}

fn ambient() -> CapabilitySet {
    // Numbers unknown to the kernel give an error, and thus do not count.
    (0..u64::BITS)
        .map(|number| CapabilitySet::from_bits_retain(1 << number))
        .filter(|capability| capability_is_in_ambient_set(*capability).unwrap_or(false))
        .collect()
}

fn give_up(
    before: CapabilitySets,
    needed: CapabilitySet,
    works: impl Fn() -> bool,
) -> io::Result<()> {
    // Kernels before 6.0 (c8644cd0efe7) require CAP_BPF even for maps and programs held by
    // descriptor, if kernel.unprivileged_bpf_disabled is set; CAP_SYS_ADMIN serves as well.
    let bpf = before.permitted & CapabilitySet::BPF;
    let bpf = if bpf.is_empty() { before.permitted & CapabilitySet::SYS_ADMIN } else { bpf };
    let needed = before.permitted & needed;
    let set = |effective, permitted| {
        let sets = CapabilitySets { effective, permitted, inheritable: CapabilitySet::empty() };
        set_capabilities(None, sets)
    };
    clear_ambient_capability_set()?;
    set(needed, needed | bpf)?;
    if works() {
        set(needed, needed)?
    } else {
        set(needed | bpf, needed | bpf)?
    }
    Ok(())
}

fn failed(source: io::Error) -> ProbeError {
    ProbeError::System { what: "drop capabilities", source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Capabilities in a separate thread: capabilities are per thread.
    fn in_a_thread(works: bool) -> CapabilitySets {
        let thread = std::thread::spawn(move || {
            let before = capabilities(None).unwrap();
            give_up(before, CapabilitySet::SYS_PTRACE, || works).unwrap();
            capabilities(None).unwrap()
        });
        thread.join().unwrap()
    }

    #[test]
    fn only_what_is_needed_is_kept() {
        let before = capabilities(None).unwrap();
        let needed = before.permitted & CapabilitySet::SYS_PTRACE;
        let left = in_a_thread(true);
        assert_eq!((left.effective, left.permitted), (needed, needed));
        assert!(left.inheritable.is_empty());
        // If the kernel requires more, nothing beyond that.
        let bpf = before.permitted & CapabilitySet::BPF;
        let left = in_a_thread(false);
        assert_eq!((left.effective, left.permitted), (needed | bpf, needed | bpf));
    }

    #[test]
    fn root_is_not_restricted() {
        let rights = Rights::of_this_process().unwrap();
        let sets = capabilities(None).unwrap();
        assert_eq!(rights.uid, getuid().as_raw());
        assert_eq!(rights.restricted, !sets.effective.contains(CapabilitySet::SYS_PTRACE));
        if rights.uid == 0 {
            assert_eq!(rights.capabilities, sets.permitted.bits());
        }
    }

    #[test]
    fn who_is_not_recorded_has_ended_or_may_not_be() {
        let me = std::process::id();
        assert!(hidden(&[4_194_304], true).is_none());
        assert!(hidden(&[me], false).is_none());
        assert_eq!(
            hidden(&[4_194_304, me], true).unwrap().to_string().lines().next().unwrap(),
            format!("process {me} belongs to another user, or you may not trace it")
        );
    }
}
