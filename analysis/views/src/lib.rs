//! Views of a recording: the page, the chart, the timeline, single processes and their tree.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod gantt;
mod inspect;
mod page;
mod prmon;
mod timeline;
mod workflow;

pub use gantt::gantt;
pub use inspect::{
    AliveSort, AliveView, Chosen, TreeSort, TreeView, Wanted, alive, choose, show, tree,
};
pub use page::page;
pub use prmon::prmon;
pub use timeline::{timeline, timeline_items};
pub use workflow::{requests, step_graph, steps_used, workflow};
