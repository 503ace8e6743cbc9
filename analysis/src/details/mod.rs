//! Details of processes that both the interactive page and the questions about single processes show.

pub(crate) mod calls;
pub(crate) mod waited;
