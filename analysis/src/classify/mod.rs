//! Classification of the program that an exec ran: a system command, a program of an experiment's
//! software, or anything else; and the roles that distinguish processes of one program.
//!
//! Packs of rules define this (`rules/*.toml`, docs/rules.md). Execs are tested against all of them
//! while a trace is read ([`examine`]); the rule that applies is chosen at the end ([`resolve`]).

mod call;
mod examine;
mod grammar;
mod interpreters;
pub(crate) mod labels;
mod live;
mod pack;
mod pattern;
mod resolve;
mod rules;
#[cfg(test)]
mod tests;

use proctrace_findings::Class;

pub(crate) use examine::Examiner;
pub use live::LiveClassifier;
pub(crate) use pattern::Pattern;
pub(crate) use resolve::{Classification, PackUse, Programs};
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
    pub(crate) fn unknown(name: &str) -> Self {
        Self { class: Class::Program, group: String::new(), name: name.to_owned() }
    }
}
