//! Test for the capabilities that loading and attaching BPF programs takes.

use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities};

/// PROC_USER_INIT_INO of linux/proc_ns.h.
pub(crate) const INITIAL_USER_NAMESPACE: u64 = 0xefff_fffd;

/// True if this process has the capabilities that loading and attaching take, where they count: in the initial user
/// namespace.
pub(crate) fn may_use_bpf() -> bool {
    let Ok(CapabilitySets { effective, .. }) = capabilities(None) else { return false };
    let has = effective.contains(CapabilitySet::SYS_ADMIN)
        || effective.contains(CapabilitySet::BPF | CapabilitySet::PERFMON);
    has && fs::metadata("/proc/self/ns/user").is_ok_and(|it| it.ino() == INITIAL_USER_NAMESPACE)
}
