//! Tests that need root: eBPF, several users, other root directories, capabilities.

mod backends;
mod broker;
mod ci_line;
mod node;
mod planted;
mod rights;
mod rights_races;
mod unharmed;
mod withheld;
