//! The rules of an analysis: the built-in packs and those of the user.

use std::collections::{BTreeSet, HashSet};

use crate::error::RulesError;
use crate::pack::{Pack, Tier};
use crate::steps::{
    ActionLog, COORDINATORS_MAX, Coordinator, NINJA_LOG, SnakemakeRecord, StepRules,
};

/// The classification rules: packs in order of precedence.
#[derive(Debug, Clone)]
pub struct Rules {
    pub packs: Vec<Pack>,
    pub interpreters: HashSet<Vec<u8>>,
    pub directories: Vec<Vec<u8>>,
    /// What begins a step, and how it is called.
    pub steps: StepRules,
}

/// The packs that are compiled in, in order of precedence.
const BUILT_IN: [(&str, Tier, &str); 6] = [
    ("alice-o2", Tier::Experiment, include_str!("../../rules/alice-o2.toml")),
    ("atlas", Tier::Experiment, include_str!("../../rules/atlas.toml")),
    ("cms", Tier::Experiment, include_str!("../../rules/cms.toml")),
    ("lhcb", Tier::Experiment, include_str!("../../rules/lhcb.toml")),
    ("monitoring", Tier::Experiment, include_str!("../../rules/monitoring.toml")),
    ("generic", Tier::Generic, include_str!("../../rules/generic.toml")),
];

impl Rules {
    /// The built-in packs. Those of experiments apply where one of their programs occurs.
    ///
    /// # Panics
    /// Never: they are compiled in, and a test parses them.
    pub fn built_in() -> Self {
        Self::of(&[])
    }

    /// Only the rules for common system commands.
    ///
    /// # Panics
    /// Never: they are compiled in, and a test parses them.
    pub fn generic() -> Self {
        Self::of(&["generic"])
    }

    /// No rules: programs have no class, and steps only the names that a payload gives them. For questions about neither.
    pub fn none() -> Self {
        Self {
            packs: Vec::new(),
            interpreters: HashSet::new(),
            directories: Vec::new(),
            steps: StepRules::default(),
        }
    }

    /// The packs of these names, or all if none are given.
    fn of(names: &[&str]) -> Self {
        let packs = BUILT_IN
            .iter()
            .filter(|(name, ..)| names.is_empty() || names.contains(name))
            .map(|(name, tier, toml)| Pack::parse(name, *tier, toml).expect("a test parses them"))
            .collect();
        let mut rules = Self {
            packs,
            interpreters: HashSet::new(),
            directories: Vec::new(),
            steps: StepRules::built_in(),
        };
        rules.collect();
        rules
    }

    /// Names of the built-in packs.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, ..)| *name)
    }

    /// Adds a user's rules, which take precedence over all others except user rules added earlier.
    /// `name` is used in messages: the path of their file.
    ///
    /// # Errors
    /// If they are not well-formed or a rule is invalid, with line and column.
    pub fn with(mut self, name: &str, toml: &str) -> Result<Self, RulesError> {
        let at = self.packs.iter().take_while(|pack| pack.tier == Tier::User).count();
        self.packs.insert(at, Pack::parse(name, Tier::User, toml)?);
        self.collect();
        Ok(self)
    }

    /// Adds a file that names steps or says what files are made from: CSV, JSON, Nextflow's trace, a graph of ninja, a data
    /// base of make, or the rules of a coordinator in TOML, which are asked before the built-in ones. `name` is its path.
    ///
    /// # Errors
    /// If it is not well-formed, with its line.
    pub fn with_steps(mut self, name: &str, content: &[u8]) -> Result<Self, RulesError> {
        let wrong = |message: &str| RulesError {
            name: name.to_owned(),
            line: 1,
            column: 1,
            message: message.to_owned(),
        };
        if name.ends_with(".toml") {
            let toml = std::str::from_utf8(content).map_err(|_| wrong("it is not UTF-8"))?;
            let coordinator = Coordinator::parse(name, toml)?;
            self.steps.coordinators.insert(0, coordinator);
            if self.steps.coordinators.len() > COORDINATORS_MAX {
                return Err(wrong("too many files with rules for steps"));
            }
        } else if content.trim_ascii_start().first().is_some_and(|byte| matches!(byte, b'[' | b'{'))
        {
            self.steps.declared.add_json(name, content)?;
        } else if content.trim_ascii_start().starts_with(b"digraph") {
            self.steps.declared.graph_mut().add_dot(name, content)?;
        } else if content.starts_with(NINJA_LOG) {
            self.steps.declared.add_ninja_log(name, content)?;
        } else if ActionLog::is(content) {
            self.steps.declared.add_action_log(name, content)?;
        } else if is_data_base_of_make(content) {
            self.steps.declared.graph_mut().add_make(name, content)?;
        } else if is_trace_of_nextflow(content) {
            self.steps.declared.add_nextflow_trace(name, content)?;
        } else {
            self.steps.declared.add_csv(name, content)?;
        }
        Ok(self)
    }

    /// Adds what Snakemake recorded of its jobs, which names steps and says what files are made from. `name` is the path of the
    /// directory.
    ///
    /// # Errors
    /// If none of these is a record that can be read.
    pub fn with_snakemake(
        mut self,
        name: &str,
        records: &[SnakemakeRecord],
    ) -> Result<Self, RulesError> {
        self.steps.declared.add_snakemake(name, records)?;
        Ok(self)
    }

    /// Applies a built-in pack whether or not one of its programs occurs. `None` if there is no
    /// such pack.
    #[must_use]
    pub fn with_pack(mut self, name: &str) -> Option<Self> {
        let pack =
            self.packs.iter_mut().find(|pack| pack.tier != Tier::User && pack.name == name)?;
        pack.asked_for = true;
        Some(self)
    }

    fn collect(&mut self) {
        let interpreters = self.packs.iter().flat_map(|pack| &pack.interpreters);
        self.interpreters = interpreters.map(|name| name.clone().into_bytes()).collect();
        let directories: BTreeSet<_> =
            self.packs.iter().flat_map(|pack| &pack.directories).cloned().collect();
        self.directories = directories.into_iter().collect();
    }

    /// True if a file is in a system directory.
    pub fn of_system(&self, file: &[u8]) -> bool {
        self.directories.iter().any(|directory| file.starts_with(directory))
    }
}

/// True for what `make -p` prints, whatever comes before it: with -n, the commands that it would run.
fn is_data_base_of_make(content: &[u8]) -> bool {
    const TITLE: &[u8] = b"# Make data base, printed on";
    content.windows(TITLE.len()).any(|window| window == TITLE)
}

/// True if the first line has the columns that tell tasks of Nextflow apart.
fn is_trace_of_nextflow(content: &[u8]) -> bool {
    let first = content.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut columns = first.trim_ascii_end().split(|byte| *byte == b'\t');
    columns.clone().any(|column| column == b"hash") && columns.any(|column| column == b"name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_are_asked_in_order() {
        let rules = Rules::built_in();
        let rules = rules.with("a.toml", "").unwrap().with("b.toml", "").unwrap();
        let names: Vec<&str> = rules.packs.iter().map(|pack| &*pack.name).collect();
        assert_eq!(names[..2], ["a.toml", "b.toml"]);
        assert!(rules.packs.is_sorted_by_key(|pack| pack.tier));
        let names: Vec<&str> = Rules::names().collect();
        assert!(names.is_sorted_by_key(|name| *name == "generic"));
    }

    #[test]
    fn packs_of_experiments_say_when_they_apply() {
        for pack in Rules::built_in().packs {
            let always = ["monitoring", "generic"].contains(&&*pack.name);
            assert_eq!(pack.selected_by.is_none(), always, "{}", pack.name);
            assert!(!pack.rules.is_empty(), "{}", pack.name);
        }
    }

    #[test]
    fn packs_are_asked_for_by_name() {
        assert!(Rules::built_in().with_pack("cms").is_some());
        assert!(Rules::built_in().with_pack("cern").is_none());
    }
}
