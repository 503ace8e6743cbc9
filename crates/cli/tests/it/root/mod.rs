//! Tests that need root: eBPF, several users, other root directories, capabilities.

mod backends;
mod broker;
mod broker_attempts;
mod ci_line;
mod node;
mod planted;
mod rights;
mod rights_pairs;
mod rights_races;
mod unharmed;
mod withheld;
