//! The streams of a recording.

use strum::{FromRepr, VariantArray};

/// Records are transferred and stored in several streams, each in its own order of arrival, so that a
/// burst in one neither delays nor displaces records of another, and a reader can skip streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromRepr, VariantArray)]
#[repr(u8)]
pub enum Stream {
    /// attach, fork, exec, exit, rename, env, place, mounts, signal, loss.
    Lifecycle = 1,
    /// Failed look-ups, how long some of them took, and successful opens.
    Lookups = 2,
    /// Samples and ticks.
    Samples = 3,
    /// Times off the CPU.
    Waits = 4,
}

impl Stream {
    /// Every stream.
    pub const ALL: [Self; Self::VARIANTS.len()] =
        *Self::VARIANTS.first_chunk().expect("all of them");

    /// The stream with this number, if this version knows it.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::from_repr(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip() {
        for stream in Stream::ALL {
            assert_eq!(Stream::from_number(stream as u8), Some(stream));
        }
        assert_eq!(Stream::from_number(u8::MAX), None);
    }
}
