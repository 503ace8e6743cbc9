//! Compares the cost of decoding a record with that of copying its bytes: the distance to the limit
//! set by memory bandwidth.

use std::cell::Cell;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use proctrace_trace::Reader;

use super::replicate::Replica;
use super::table::Measured;

/// Larger than any cache.
const COPIED_BYTES: usize = 256 << 20;
const COPIES: usize = 5;

/// Reports the decoding time per record, and the time of copying its bytes once.
pub(super) fn beside(trace: &Path, replica: &Replica, decode: &Measured) -> Result<String> {
    let records = replica.records as f64;
    let raw_bytes = raw_bytes(trace)? as f64;
    let (decode_ns, copy_ns) = (decode.wall_s() * 1e9, raw_bytes / copied_per_ns());
    Ok(format!(
        "{:>23}decode: {:.0} ns for the {:.0} bytes of a record, {:.2} GB/s; copying them: {:.0} ns, {:.1} GB/s\n",
        "",
        decode_ns / records,
        raw_bytes / records,
        raw_bytes / decode_ns,
        copy_ns / records,
        raw_bytes / copy_ns,
    ))
}

/// Total bytes of all records.
fn raw_bytes(trace: &Path) -> Result<u64> {
    let mut reader = Reader::open(trace)?;
    let bytes = Cell::new(0);
    let count = |info: &proctrace_trace::BlockInfo| {
        bytes.set(bytes.get() + u64::from(info.raw_bytes));
        false
    };
    while reader.next_block_where(count).is_some() {}
    Ok(bytes.get())
}

/// Peak bytes per nanosecond copied by one core from memory to memory.
fn copied_per_ns() -> f64 {
    let from = vec![1u8; COPIED_BYTES];
    let mut to = vec![0u8; COPIED_BYTES];
    let best_ns = (0..COPIES)
        .map(|_| {
            let began = Instant::now();
            to.copy_from_slice(black_box(&from));
            black_box(&mut to);
            began.elapsed().as_nanos()
        })
        .min()
        .unwrap_or(0);
    COPIED_BYTES as f64 / (best_ns as f64).max(1.0)
}
