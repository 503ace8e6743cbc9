//! The groups of options in the help of `record`. Those that most recordings need come first, without a heading.

pub(super) const WHAT: &str = "What is recorded";
pub(super) const LONG: &str = "How long";
pub(super) const ELSE: &str = "What else is recorded";
pub(super) const HOW: &str = "How, and with which rights";
/// Heading of what is for nodes and batch jobs.
pub const NODES: &str = "Nodes and batch jobs";
