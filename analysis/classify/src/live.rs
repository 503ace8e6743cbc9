//! Classifies execs one by one, while a recording is being made.

use proctrace_findings::Class;
use proctrace_wire::Exec;

use crate::Program;
use crate::call::{Invocation, joined};
use crate::examine::{RuleNumber, arguments_hold, candidates};
use crate::fast::FastMap;
use crate::names::text;
use crate::rules::Rules;

/// Programs whose candidates are remembered; a recording may have any number.
const KNOWN_MAX: usize = 4096;

/// Applies rules to execs as they happen.
///
/// An analysis knows all programs of a recording before it decides which packs apply. Here, a pack
/// applies from the first program on that selects it, and earlier execs keep what they were given.
/// Roles are not determined.
#[derive(Debug)]
pub struct LiveClassifier {
    rules: Rules,
    /// Flags by pack: true if it applies.
    applies: Vec<bool>,
    /// The rules that hold except for conditions on arguments and spawner, by file, name and
    /// interpreter.
    known: FastMap<Vec<u8>, Vec<RuleNumber>>,
    key: Vec<u8>,
}

impl LiveClassifier {
    /// Makes a classifier that has seen no exec yet.
    pub fn new(rules: Rules) -> Self {
        let applies =
            rules.packs.iter().map(|pack| pack.asked_for || pack.selected_by.is_none()).collect();
        Self { rules, applies, known: FastMap::default(), key: Vec::new() }
    }

    /// The program that an exec ran. `spawner` is the category and the name of the program that the
    /// forking process was running.
    pub fn classify(&mut self, exec: &Exec<'_>, spawner: Option<(&str, &str)>) -> Program {
        let call = Invocation::of(exec, &self.rules.interpreters);
        for (pack, applies) in self.rules.packs.iter().zip(&mut self.applies) {
            let selects =
                |patterns: &Vec<_>| patterns.iter().any(|p: &crate::Pattern| p.matches(call.name));
            *applies = *applies || pack.selected_by.as_ref().is_some_and(selects);
        }
        self.remember(&call);
        let arguments = joined(exec.argv);
        let rule = self.known.get(&self.key).into_iter().flatten().find(|number| {
            let rule = self.rules.rule(**number);
            self.applies[number.pack as usize]
                && arguments_hold(rule, &call, &arguments)
                && (rule.spawner.is_empty()
                    || spawner.is_some_and(|(category, name)| {
                        rule.spawner.iter().any(|pattern| {
                            pattern.matches(name.as_bytes()) || pattern.matches(category.as_bytes())
                        })
                    }))
        });
        let own_name = || text(&call.called());
        match rule.map(|number| self.rules.rule(*number)) {
            Some(rule) => Program {
                class: rule.class.unwrap_or(Class::Program),
                group: rule.group.clone(),
                name: rule.called.clone().unwrap_or_else(own_name),
            },
            None => Program::unknown(&own_name()),
        }
    }

    /// Finds the rules for a call, and leaves their key in `key`.
    fn remember(&mut self, call: &Invocation<'_>) {
        self.key.clear();
        for part in [call.name, call.given, call.resolved, call.interpreter.unwrap_or(b"")] {
            self.key.extend_from_slice(part);
            self.key.push(0);
        }
        self.key.extend([u8::from(call.is_script), u8::from(call.text.is_some())]);
        if self.known.contains_key(&self.key) {
            return;
        }
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(self.key.clone(), candidates(&self.rules, call));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_wire::layout::ExecFixed;
    use zerocopy::FromZeros;

    fn exec<'a>(path: &'a [u8], argv: &'a [u8]) -> Exec<'a> {
        let fixed = ExecFixed::new_zeroed();
        Exec { fixed, path, interp: b"", exe: path, cwd: b"/", argv }
    }

    #[test]
    fn programs_are_those_of_the_rules() {
        let mut live = LiveClassifier::new(Rules::built_in());
        let mut of = |path: &[u8], argv: &[u8], spawner| {
            let program = live.classify(&exec(path, argv), spawner);
            (program.category().to_owned(), program.name)
        };
        let pair = |category: &str, name: &str| (category.to_owned(), name.to_owned());
        assert_eq!(of(b"/usr/bin/sed", b"sed\0-n\0", None), pair("text", "sed"));
        assert_eq!(of(b"/home/me/sed", b"sed\0", None), pair("other", "sed"));
        let script = b"bash\0-e\0job.sh\0";
        assert_eq!(of(b"/usr/bin/bash", script, None), pair("other", "job.sh"));
        // A rule on the spawner.
        let root = Some(("root start-up", "sh"));
        assert_eq!(of(b"/usr/bin/ls", b"ls\0", root), pair("root start-up", "ls"));
        assert_eq!(of(b"/usr/bin/ls", b"ls\0", None), pair("file", "ls"));
    }

    #[test]
    fn a_pack_applies_from_its_first_program_on() {
        let mut live = LiveClassifier::new(Rules::built_in());
        let cms = Rules::names().position(|name| name == "cms").unwrap();
        live.classify(&exec(b"/bin/true", b"true\0"), None);
        assert!(!live.applies[cms]);
        live.classify(&exec(b"/cvmfs/cmsRun", b"cmsRun\0"), None);
        assert!(live.applies[cms]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut live = LiveClassifier::new(Rules::generic());
        for number in 0..10_000 {
            let path = format!("/opt/p{number}");
            live.classify(&exec(path.as_bytes(), b"p\0"), None);
            assert!(live.known.len() <= KNOWN_MAX);
        }
    }
}
