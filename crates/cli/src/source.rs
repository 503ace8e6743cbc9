//! Record sources: the only place that knows which ones exist.

use anyhow::Result;
use proctrace_probe::{EbpfOptions, LookupHook, Probe, ProbeError};
use proctrace_ptrace::{PtraceOptions, Traced};
use proctrace_record::{Options, Scope, Source};

use crate::say;

/// A source, with the options specific to it.
#[derive(Debug)]
pub(crate) enum Backend {
    /// BPF programs in the kernel.
    Ebpf(EbpfOptions),
    /// A process that traces by ptrace(2).
    Ptrace(PtraceOptions),
    /// The first of these that this user may use on this kernel.
    Auto(EbpfOptions, PtraceOptions),
}

impl Backend {
    /// Prepares the source to record what `wanted` selects. Unless `quiet`, prints what a source costs
    /// that changes the behaviour of the payload.
    pub(crate) fn load(&self, wanted: &Options, quiet: bool) -> Result<Box<dyn Source>> {
        Ok(match self {
            Self::Ebpf(options) => Box::new(Probe::load(wanted, options)?),
            Self::Ptrace(options) => Box::new(traced(wanted, options, quiet)?),
            Self::Auto(ebpf, ptrace) => match Probe::load(wanted, ebpf) {
                Ok(probe) => Box::new(probe),
                Err(error) if is_refused(&error) && needs_no_ebpf(wanted, ebpf) => {
                    Box::new(traced(wanted, ptrace, quiet)?)
                }
                Err(error) => return Err(error.into()),
            },
        })
    }
}

fn traced(wanted: &Options, options: &PtraceOptions, quiet: bool) -> Result<Traced> {
    let traced = Traced::start(wanted, options)?;
    if !quiet {
        say::note(match traced.stops_at_lookups() {
            true => "by ptrace: each process and look-up takes longer; no set-user-ID",
            false => "by ptrace: each process takes longer; no look-ups; no set-user-ID",
        });
    }
    Ok(traced)
}

/// Whether this user or this kernel cannot use eBPF at all.
fn is_refused(error: &ProbeError) -> bool {
    use ProbeError::{Load, NoBtf, NoHook, NoTaskStorage, NotPermitted};
    matches!(error, NotPermitted { .. } | NoBtf(_) | NoTaskStorage(_) | NoHook { .. } | Load(_))
}

/// Whether no option requests what only eBPF can do.
fn needs_no_ebpf(wanted: &Options, ebpf: &EbpfOptions) -> bool {
    wanted.scope == Scope::Launched
        && wanted.cgroup.is_none()
        && ebpf.lookup_hook == LookupHook::Auto
        && !ebpf.empty_programs
}

impl Default for Backend {
    fn default() -> Self {
        Self::Ebpf(EbpfOptions::default())
    }
}
