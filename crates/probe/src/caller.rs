//! For whom the programs record: which process starts the command, and what its user may see.

use std::os::unix::fs::MetadataExt;

use crate::error::ProbeError;
use crate::rights::Rights;

/// PROC_PID_INIT_INO of linux/proc_ns.h.
pub(crate) const INITIAL_PID_NAMESPACE: u64 = 0xefff_fffc;

/// For whom the programs record.
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
    /// Another one, by its pid in the initial namespace. Records have pids of the namespace at this level.
    Elsewhere { tgid: u32, pid_level: u32 },
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
    /// nothing else. `tgid` is its process id in the initial pid namespace, `pid_level` the level of its own
    /// namespace; the user and group ids are those of the initial user namespace, and `capabilities` is the
    /// mask of those it has there.
    #[must_use]
    pub fn other(tgid: u32, pid_level: u32, (uid, gid): (u32, u32), capabilities: u64) -> Self {
        let rights = Rights { restricted: true, uid, gid, capabilities };
        Self { rights, recorder: Recorder::Elsewhere { tgid, pid_level } }
    }
}

/// Whether this process has the pids of the initial namespace: only then does it know others by pids that
/// the programs know as well.
///
/// # Errors
/// When /proc cannot be read.
pub fn is_in_initial_pid_namespace() -> Result<bool, ProbeError> {
    Ok(PidNamespace::own()?.inode == INITIAL_PID_NAMESPACE)
}
