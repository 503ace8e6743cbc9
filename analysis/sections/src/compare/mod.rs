//! Comparisons of several recordings: one command in two environments, a pool of growing size.

pub(crate) mod environments;
pub mod series;
