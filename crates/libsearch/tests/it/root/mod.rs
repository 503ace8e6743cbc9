//! Tests that need root: set-user-ID programs, other root directories, musl.

mod hostile;
mod musl;
mod secure;
