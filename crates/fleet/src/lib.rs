//! Summaries of recordings, and questions about many of them.
//!
//! [`summarize`] is a function from a loaded recording to the rows of [`FLEET_TABLES`]; a
//! [`Layout`] says where their files are. docs/fleet.md describes both.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod claims;
mod columns;
mod compact;
mod cut;
pub mod day;
mod engine;
mod engines;
mod error;
mod identity;
mod key;
mod lake;
mod parquet;
mod privacy;
mod programs;
mod queries;
mod redact;
mod schema;
mod sound;
mod summary;
mod table_file;
mod thrift;
mod user;
mod write;

pub use compact::{Compacted, compact};
pub use engine::{ask, files};
pub use engines::{ENGINES_SCRIPT, handed_back, handed_over};
pub use error::FleetError;
pub use identity::Identity;
pub use lake::{Layout, LayoutError, create_lake};
pub use privacy::{PRIVACY, Redacted, Statement, kept_names_markdown, privacy_markdown};
pub use programs::PROGRAMS_MAX;
pub use queries::{FLEET_QUERIES, FleetQuery};
pub use schema::{FLEET_TABLES, fleet_markdown, table_named};
pub use summary::{About, MISSES_MAX, Summary, summarize};
pub use user::{KEY_BYTES_MIN, user_hash};
pub use write::{JOB_BYTES_MAX, encode};
