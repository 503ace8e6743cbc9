//! The options specific to the eBPF source.

use proctrace_record::Options;

use crate::tracefs::Tracefs;

/// Options of the programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EbpfOptions {
    /// The hook for failed look-ups.
    pub lookup_hook: LookupHook,
    /// Attach programs that do nothing, to measure the cost of the hooks alone.
    pub empty_programs: bool,
    /// Bytes of each of the two ring buffers: a power of two, at least a page.
    pub ring_bytes: u32,
    /// Behaviour when a ring buffer is nearly full.
    pub on_full: OnFull,
}

/// All settings of the programs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings<'a> {
    /// The options for any source.
    pub(crate) wanted: &'a Options,
    /// The options for this source.
    pub(crate) ebpf: &'a EbpfOptions,
    /// The id of the cgroup to record.
    pub(crate) cgroup: Option<u64>,
    /// Where tracepoints are looked up; `None` if that is still to be opened.
    pub(crate) tracefs: Option<&'a Tracefs>,
}

impl Settings<'_> {
    /// Size of the ring of waits: a quarter of the others, since few tasks can be off the CPU for long
    /// at a time; a page if there are none. No task can be held up where it leaves its CPU: if nothing
    /// is to be lost, the ring is as large as that of the lifecycle, which fills earlier.
    pub(crate) fn waits_ring_bytes(self) -> u32 {
        const PAGE: u32 = 4096;
        match (self.wanted.waits_min, self.ebpf.on_full) {
            (Some(_), OnFull::Block) => self.ebpf.ring_bytes,
            (Some(_), OnFull::Drop) => (self.ebpf.ring_bytes / 4).max(PAGE),
            (None, _) => PAGE,
        }
    }
}

/// Maximum length of the name of a requested environment variable.
pub const ENV_NAME_MAX: usize = 31;

/// Maximum number of requested environment variables.
pub const ENV_NAMES_MAX: usize = 32;

/// Maximum number of processes requested by pid.
pub const PIDS_MAX: usize = 1024;

/// Behaviour when a ring buffer is nearly full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFull {
    /// Records that do not fit are dropped and counted.
    Drop,
    /// Make the payload wait for the recorder.
    Block,
}

/// The hooks that can record failed look-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupHook {
    /// The first of the following that this kernel offers: the cheapest.
    Auto,
    /// The functions that implement the calls.
    Fexit,
    /// The tracepoints of the calls.
    Tracepoint,
    /// The single tracepoint of all calls.
    SysExit,
}

impl Default for EbpfOptions {
    fn default() -> Self {
        Self {
            lookup_hook: LookupHook::Auto,
            empty_programs: false,
            ring_bytes: ring_bytes_for(aya::util::nr_cpus().unwrap_or(1)),
            on_full: OnFull::Drop,
        }
    }
}

/// The size of a ring buffer for this number of CPUs.
///
/// It must hold what all of them can write until the recorder gets the CPU: 2 MiB are 20 ms of the
/// heaviest load, look-ups of always new paths. The kernel clears it at creation, 1 ms for each
/// MiB, so it is no larger than that.
fn ring_bytes_for(cpus: usize) -> u32 {
    const A_CPU: u32 = 2 << 20;
    let cpus = u32::try_from(cpus).unwrap_or(u32::MAX).clamp(2, 16);
    A_CPU * cpus.next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_powers_of_two() {
        let sizes = [0, 1, 2, 3, 12, 16, 1024].map(|cpus| ring_bytes_for(cpus) >> 20);
        assert_eq!(sizes, [4, 4, 4, 8, 32, 32, 32]);
    }
}
