//! Emptying the kernel's rings.

use aya::maps::{MapData, RingBuf};
use proctrace_wire::{Frame, Frames};

/// Takes at most this many records from one ring before the other gets its turn.
const BATCH: usize = 65_536;

/// Hands every record that is in the ring to `take`; returns how many there were.
pub(crate) fn drain<E>(
    ring: &mut RingBuf<MapData>,
    mut take: impl FnMut(Frame<'_>) -> Result<(), E>,
) -> Result<usize, E> {
    let mut taken = 0;
    while taken < BATCH
        && let Some(item) = ring.next()
    {
        // One item is one record; anything else would be a fault of our own programs, and the
        // record's size in its head is checked before it is believed.
        if let Some(Ok(frame)) = Frames::new(&item).next() {
            take(frame)?;
        }
        taken += 1;
    }
    Ok(taken)
}
