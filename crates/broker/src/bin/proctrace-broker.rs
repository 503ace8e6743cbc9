//! `proctrace-broker`: the service on its own, for sites whose nodes have the recorder from elsewhere.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

use anyhow::Result;
use clap::Parser;
use proctrace_broker::{Arguments, serve};

/// Loads proctrace's BPF programs for users who may not, limited to what they run
#[derive(Debug, Parser)]
#[command(version)]
struct Line {
    #[command(flatten)]
    arguments: Arguments,
}

fn main() -> Result<()> {
    let line = Line::parse();
    match serve(&line.arguments, Box::new(std::io::stderr()))? {}
}
