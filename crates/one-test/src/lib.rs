//! Nothing: the dependencies in Cargo.toml are what this crate is for.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
