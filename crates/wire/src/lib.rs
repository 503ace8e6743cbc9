//! The record layout of proctrace, defined once for the BPF programs that write records, the trace
//! file that stores them and the analyzer that reads them.
//!
//! [`layout`] mirrors `bpf/wire.h` field by field (a test compares the two through BTF). [`Frames`]
//! splits a block of bytes into records, [`Record`] decodes one. Both accept any input: they return
//! records or a [`DecodeError`], never panic, and allocate nothing.
//!
//! ```
//! use proctrace_wire::{Frames, Record, layout::{Head, Rename}, IntoBytes};
//!
//! let rename = Rename {
//! head: Head { kind: 8, size: 48, task: 1, time_ns: 17 },
//! process: 1, tgid: 4711, tid: 4711, pad: 0, comm: *b"worker_3\0\0\0\0\0\0\0\0",
//! };
//! let mut frames = Frames::new(rename.as_bytes());
//! let frame = frames.next().unwrap().unwrap();
//! assert!(matches!(Record::decode(frame)?, Record::Rename(r) if r.tgid == 4711));
//! # Ok::<(), proctrace_wire::DecodeError>(())
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod call;
mod decode;
pub mod escape;
mod kind;
pub mod layout;
mod line;
mod lives;
mod mark;
mod outcome;
mod quantity;
mod stream;
mod wait;

pub use call::{Call, Family};
pub use decode::{DecodeError, Exec, Frame, Frames, Record};
pub use kind::{BlindSpot, Kind, LossReason};
pub use layout::WIRE_VERSION;
pub use mark::{MARK_BYTES_MAX, MARK_PATH, MarkError, mark_of_path, mark_of_words, step_of_words};
pub use outcome::{Outcome, dumped_core, signal_name};
pub use quantity::Quantity;
pub use stream::Stream;
pub use wait::{Architecture, WaitFor, Woken};
pub use zerocopy::IntoBytes;
