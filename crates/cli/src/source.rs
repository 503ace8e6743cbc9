//! Where records come from: the only place that knows which sources there are.

use anyhow::Result;
use proctrace_probe::{EbpfOptions, Probe};
use proctrace_record::{Options, Source};

/// A source, with what only that one is told.
#[derive(Debug)]
pub(crate) enum Backend {
    /// Programs in the kernel.
    Ebpf(EbpfOptions),
}

impl Backend {
    /// Makes the source ready to record what is wanted.
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
