//! What kind of thing a program is: a command of the system, a program of an experiment's
//! software, or anything else; and what tells processes of one program apart.
//!
//! Packs of rules say so (`rules/*.toml`, docs/rules.md). Execs are held against all of them while
//! a trace is read ([`examine`]); what counts is decided at the end ([`resolve`]).

mod call;
mod examine;
mod grammar;
mod interpreters;
pub(crate) mod labels;
mod pack;
mod pattern;
mod resolve;
mod rules;
#[cfg(test)]
mod tests;

use proctrace_findings::Class;

pub(crate) use examine::Examiner;
pub(crate) use resolve::{Classification, PackUse, Programs};
pub use rules::Rules;

/// What an exec ran.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Program {
    /// Of the system, of an experiment's software, or neither.
    pub class: Class,
    /// What sort of command or software; empty where no rule says.
    pub group: String,
    /// The command, program or script.
    pub name: String,
}

impl Program {
    /// What it is counted with: its group, or "other".
    pub fn category(&self) -> &str {
        if self.group.is_empty() { "other" } else { &self.group }
    }

    /// What a name alone tells, where no exec was seen.
    pub(crate) fn unknown(name: &str) -> Self {
        Self { class: Class::Program, group: String::new(), name: name.to_owned() }
    }
}
