//! Caller for whom the programs record: which process starts the command, and what its user may see.

use std::os::unix::fs::MetadataExt;

use rustix::thread::CapabilitySet;

use crate::credentials::Credentials;
use crate::error::ProbeError;
use crate::rights::Rights;

/// PROC_PID_INIT_INO of linux/proc_ns.h.
pub(crate) const INITIAL_PID_NAMESPACE: u64 = 0xefff_fffc;

/// Caller for whom the programs record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub(crate) rights: Rights,
    pub(crate) recorder: Recorder,
}

/// The process that starts the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorder {
    /// This one, by its pid in its namespace. Records have pids of the initial namespace.
    Here { pid: u32, namespace: PidNamespace },
    /// Another one, by its pid in the initial namespace and the time of its start. Records have pids of the
    /// namespace at this level and address.
    Elsewhere { tgid: u32, started_ns: u64, pid_level: u32, pid_namespace: u64 },
}

/// The identity of a pid namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PidNamespace {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl PidNamespace {
    fn own() -> Result<Self, ProbeError> {
        let namespace = std::fs::metadata("/proc/self/ns/pid")
            .map_err(ProbeError::system("read /proc/self/ns/pid: is /proc mounted?"))?;
        Ok(Self { device: namespace.dev(), inode: namespace.ino() })
    }
}

impl Caller {
    /// This process records.
    ///
    /// # Errors
    /// When /proc cannot be read.
    pub fn this_process() -> Result<Self, ProbeError> {
        let rights =
            Rights::of_this_process().map_err(ProbeError::system("read our capabilities"))?;
        let namespace = PidNamespace::own()?;
        Ok(Self { rights, recorder: Recorder::Here { pid: std::process::id(), namespace } })
    }

    /// Another process records, for which this one loads the programs. They record what it may trace, and
    /// nothing else. `tgid` is its process id in the initial pid namespace; `is_root_there` tells whether it is root
    /// in its own user namespace.
    #[must_use]
    pub fn other(tgid: u32, client: &Credentials, is_root_there: bool) -> Self {
        // As in a recorder's own process: those of root, or those that were given to the user. Others may come
        // from the file of the recorder.
        let own = if is_root_there { u64::MAX } else { client.ambient };
        let has = |any: CapabilitySet| client.effective & own & any.bits() != 0;
        let rights = Rights {
            restricted: true,
            uid: client.uids[0],
            gid: client.gids[0],
            capabilities: client.permitted & own,
            may_trace: has(CapabilitySet::SYS_PTRACE),
            may_read: has(CapabilitySet::DAC_READ_SEARCH | CapabilitySet::DAC_OVERRIDE),
            user_ns: client.user_ns,
            user_ns_level: client.user_ns_level,
        };
        let recorder = Recorder::Elsewhere {
            tgid,
            started_ns: client.started_ns,
            pid_level: client.pid_level,
            pid_namespace: client.pid_ns,
        };
        Self { rights, recorder }
    }
}

impl Caller {
    /// True if it may trace all tasks of the machine.
    #[must_use]
    pub fn may_trace_all(&self) -> bool {
        let Rights { may_trace, may_read, user_ns_level, .. } = self.rights;
        may_trace && may_read && user_ns_level == 0 && self.has_all_pids()
    }

    fn has_all_pids(&self) -> bool {
        match self.recorder {
            Recorder::Here { namespace, .. } => namespace.inode == INITIAL_PID_NAMESPACE,
            Recorder::Elsewhere { pid_level, .. } => pid_level == 0,
        }
    }
}

/// True if this process has the pids of the initial namespace: only then does it know others by pids that
/// the programs know as well.
///
/// # Errors
/// When /proc cannot be read.
pub fn is_in_initial_pid_namespace() -> Result<bool, ProbeError> {
    Ok(PidNamespace::own()?.inode == INITIAL_PID_NAMESPACE)
}
