//! `proctrace broker`: serves users who may not load BPF programs.

use std::process::ExitCode;

use anyhow::Result;

use crate::args::BrokerArgs;

/// Serves until it is stopped.
///
/// # Errors
/// If it cannot serve.
pub fn run(args: &BrokerArgs) -> Result<ExitCode> {
    match proctrace_broker::serve(&args.arguments, Box::new(std::io::stderr()))? {}
}
