//! The record layout of proctrace: what the BPF programs write, what the trace file holds and
//! what the analyzer reads are the same bytes, described here once.
//!
//! [`layout`] mirrors `bpf/wire.h` field by field (a test compares the two through BTF).
//! [`Frames`] cuts a block of bytes into records, [`Record`] gives one a meaning. Both are total:
//! any bytes give records or a [`DecodeError`], never a panic, and nothing is allocated.
//!
//! ```
//! use proctrace_wire::{Frames, Record, layout::{Head, Rename}, IntoBytes};
//!
//! let rename = Rename {
//!     head: Head { kind: 8, size: 48, task: 1, time_ns: 17 },
//!     process: 1, tgid: 4711, tid: 4711, pad: 0, comm: *b"worker_3\0\0\0\0\0\0\0\0",
//! };
//! let mut frames = Frames::new(rename.as_bytes());
//! let frame = frames.next().unwrap().unwrap();
//! assert!(matches!(Record::decode(frame)?, Record::Rename(r) if r.tgid == 4711));
//! # Ok::<(), proctrace_wire::DecodeError>(())
//! ```

mod call;
mod decode;
pub mod escape;
mod kind;
pub mod layout;
mod stream;

pub use call::{Call, Family};
pub use decode::{DecodeError, Exec, Frame, Frames, Record};
pub use kind::{BlindSpot, Kind, LossReason};
pub use stream::Stream;
pub use zerocopy::IntoBytes;

/// Version of the record layout; equal to `WIRE_VERSION` in `bpf/wire.h`.
///
/// * 1: first layout.
/// * 2: failed look-ups come in full once, and then by number.
/// * 3: where forked workers work, and how often a task changed its CPU.
pub const WIRE_VERSION: u32 = 3;
