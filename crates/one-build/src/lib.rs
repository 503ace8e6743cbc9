//! Nothing: the dependencies in Cargo.toml are what this crate is for.
