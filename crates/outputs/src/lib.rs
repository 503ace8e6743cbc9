//! The one way in which proctrace writes files: beside their name, then by a rename.
//!
//! Results of a recording contain arguments and environments, and are often written by root into directories that
//! others can write to. So a file is never written into because it has the right name: a new one is created beside it
//! (a random name, `O_EXCL`, relative to a descriptor of the directory) with the mode and owner that were asked for,
//! and renamed over the name when it is complete. What another user has put there is not opened, not followed, and
//! sees nothing.
//!
//! [`Outputs`] says for whom files are written, [`Directory`] is where, and [`NewFile`] is one that does not have its name
//! yet. clippy.toml denies the other ways (docs/decisions/0060).

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod directory;
mod error;
mod failure;
mod found;
mod named;
mod new_file;
mod outputs;
mod part;
mod policy;
mod walk;

pub use directory::Directory;
pub use error::OutputError;
pub use failure::{Failure, Watched};
pub use found::{Found, Kind};
pub use new_file::NewFile;
pub use part::is_part;
pub use policy::{Access, Outputs, Owner, Specials};
