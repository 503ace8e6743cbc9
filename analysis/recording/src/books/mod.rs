//! CPU accounting: which process waited for which, which outlived its parent, and the laws that
//! must hold.

pub mod detached;
pub mod laws;
pub mod waits;
