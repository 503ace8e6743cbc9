//! Details of processes that the interactive page, the questions about single processes and summaries show.

pub(crate) mod calls;
mod root;
pub(crate) mod waited;

pub use root::{JobRoot, job_root};
