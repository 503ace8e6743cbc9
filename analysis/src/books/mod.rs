//! The books of a recording: who waited for whom, who outlived whom, and the laws that must hold.

pub(crate) mod detached;
pub(crate) mod laws;
pub(crate) mod waits;
