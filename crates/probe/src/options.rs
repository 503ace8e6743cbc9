//! What the eBPF source can be told beside what every source is told.

use proctrace_record::Options;

/// How the programs go about what the recording wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EbpfOptions {
    /// Where to take failed look-ups from.
    pub lookup_hook: LookupHook,
    /// Attach programs that do nothing: what a run then costs is what the hooks themselves do.
    pub empty_programs: bool,
    /// Bytes of each of the two ring buffers: a power of two, at least a page.
    pub ring_bytes: u32,
    /// What to do when a ring buffer is nearly full.
    pub on_full: OnFull,
}

/// Everything the programs are told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings<'a> {
    /// What the recording wants of any source.
    pub(crate) wanted: &'a Options,
    /// What it wants of this one.
    pub(crate) ebpf: &'a EbpfOptions,
}

/// The longest name of an environment variable that can be asked for.
pub const ENV_NAME_MAX: usize = 31;

/// As many environment variables can be asked for.
pub const ENV_NAMES_MAX: usize = 32;

/// As many processes can be asked for by their pids.
pub const PIDS_MAX: usize = 1024;

/// What to do when a ring buffer is nearly full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFull {
    /// Nothing: what does not fit is dropped and counted.
    Drop,
    /// Make the payload wait for the recorder.
    Block,
}

/// Where failed look-ups are taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupHook {
    /// The first of the following that this kernel gives us: the cheapest.
    Auto,
    /// The functions that serve the calls.
    Fexit,
    /// The tracepoints of the calls.
    Tracepoint,
    /// The one tracepoint of all calls.
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

/// The size of a ring buffer for a machine with so many CPUs.
///
/// It has to hold what all of them can write until the recorder gets the CPU: 2 MiB are 20 ms of the
/// worst storm, look-ups of paths that were never looked up before. The kernel clears it when it is
/// made, 1 ms for each MiB, so it is not larger than that.
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
