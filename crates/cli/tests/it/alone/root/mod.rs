//! Tests that need root, and a machine of their own.

mod advise_pairs;
mod critical_path;
mod pressure;
mod scopes;
mod split;
mod waits;
