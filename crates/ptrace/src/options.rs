//! The options specific to the ptrace source.

/// Options of the ptrace source: how records get from the tracer to the recorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PtraceOptions {
    /// Bytes of each of the two buffers; rounded up to a power of two, at least 1 MiB.
    pub ring_bytes: u32,
    /// True if the payload waits while a buffer is full; otherwise records that do not fit are
    /// dropped and counted.
    pub block_when_full: bool,
}

impl Default for PtraceOptions {
    fn default() -> Self {
        Self { ring_bytes: 8 << 20, block_when_full: false }
    }
}

impl PtraceOptions {
    /// The size that is used: no record may be larger than a small part of it.
    pub(crate) fn ring_len(&self) -> usize {
        self.ring_bytes.clamp(1 << 20, 1 << 31).next_power_of_two() as usize
    }
}
