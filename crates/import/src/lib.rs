//! Logs of other tools as records of proctrace: what the log says becomes records, what it does not say
//! is declared absent in the header.
//!
//! [`strace()`] and [`prmon()`] pass records one by one to a callback, and return header and trailer at the
//! end, because only then it is known what the log knows. They read any input, in memory that is bounded
//! by the tasks that are alive at a time; what they do not understand they count.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod body;
mod call;
mod clock;
mod doubts;
mod emit;
mod error;
mod header;
mod held;
mod kept;
mod line;
mod log;
mod merge;
mod names;
mod numbers;
mod prmon;
mod reading;
mod remark;
mod seen;
mod strace;
mod style;
mod syscalls;
mod text;
mod totals;
mod untimed;
mod world;

pub use doubts::{Doubt, Doubts};
pub use emit::Push;
pub use error::ImportError;
pub use header::blank;
pub use log::{Log, Open, is_without_pids};
pub use prmon::prmon;
pub use strace::{Imported, strace};
