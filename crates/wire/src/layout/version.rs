//! The version of the record layout, and what each one brought.

/// Version of the record layout; equal to `WIRE_VERSION` in `bpf/wire.h`.
///
/// * 1: first layout.
/// * 2: failed look-ups are recorded in full once, and then by number.
/// * 3: working directories of forked workers, and each task's CPU migrations.
/// * 4: mount tables, durations of failed look-ups, successful opens.
/// * 5: times off the CPU with who ended them, and signals with their senders.
/// * 6: the address space in readings of memory.
/// * 7: the resident pages of files at the end of a process.
/// * 8: renames of files.
/// * 9: sizes of files that were written, and removals.
pub const WIRE_VERSION: u32 = 9;
