//! CPU accounting: which process waited for which, which outlived its parent, and the laws that
//! must hold.

pub(crate) mod detached;
pub(crate) mod laws;
pub(crate) mod waits;
