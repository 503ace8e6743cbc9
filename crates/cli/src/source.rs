//! Record sources: the only place that knows which ones exist.

use anyhow::Result;
use proctrace_probe::{EbpfOptions, Probe};
use proctrace_record::{Options, Source};

/// A source, with the options specific to it.
#[derive(Debug)]
pub(crate) enum Backend {
    /// BPF programs in the kernel.
    Ebpf(EbpfOptions),
}

impl Backend {
    /// Prepares the source to record what `wanted` selects.
    pub(crate) fn load(&self, wanted: &Options) -> Result<Box<dyn Source>> {
        Ok(match self {
            Self::Ebpf(options) => Box::new(Probe::load(wanted, options)?),
        })
    }
}

impl Default for Backend {
    fn default() -> Self {
        Self::Ebpf(EbpfOptions::default())
    }
}
