//! Classification of the program that an exec ran: a system command, a program of an experiment's
//! software, or anything else; and the roles that distinguish processes of one program.
//!
//! Packs of rules define this (`rules/*.toml`, docs/rules.md). Execs are tested against all of them
//! while a trace is read (`examine`); the rule that applies is chosen at the end (`resolve`).

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![expect(missing_docs, reason = "fields are named after what they hold")]

mod call;
mod error;
mod examine;
pub mod fast;
mod grammar;
mod interpreters;
pub mod labels;
mod live;
pub mod names;
pub mod pack;
pub mod pattern;
pub mod random;
mod resolve;
mod rules;
pub mod sparse;
pub mod steps;
#[cfg(test)]
mod tests;

#[cfg(test)]
extern crate self as proctrace_classify;

use proctrace_findings::Class;

pub use error::RulesError;
pub use examine::Examiner;
pub use grammar::is_shell;
pub use live::LiveClassifier;
pub use pattern::Pattern;
pub use resolve::{Classification, PackUse, Programs, Runs};
pub use rules::Rules;

/// The program that an exec ran.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Program {
    /// System command, experiment software, or neither.
    pub class: Class,
    /// Kind of command or software; empty where no rule defines it.
    pub group: String,
    /// Name of the command, program or script.
    pub name: String,
}

impl Program {
    /// The category it is counted in: its group, or "other".
    pub fn category(&self) -> &str {
        if self.group.is_empty() { "other" } else { &self.group }
    }

    /// A program of which only the name is known, where no exec was seen.
    pub fn unknown(name: &str) -> Self {
        Self { class: Class::Program, group: String::new(), name: name.to_owned() }
    }
}
