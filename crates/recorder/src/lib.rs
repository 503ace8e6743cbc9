//! The commands that record, or that need no more than a loaded recording, and what all commands of proctrace have in common: arguments,
//! messages, exit codes, what a command may still do once its arguments are known.
//!
//! Two programs are made of it: `proctrace-recorder` (src/main.rs), which has only these commands, and `proctrace`
//! (crates/cli), which adds those that analyse.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod args;
pub mod broker;
pub mod check;
pub mod confine;
pub mod doctor;
pub mod dump;
pub mod exit_code;
pub mod invoker;
pub mod live;
pub mod manual;
pub mod mark;
pub mod misspelt;
mod notify;
pub mod output;
pub mod program;
pub mod record;
pub mod say;
pub mod source;
pub mod summaries;
pub mod top;
mod users;
pub mod waiting;
mod watch;

// Without it cargo would compile dependencies of this program twice.
use proctrace_one_build as _;
