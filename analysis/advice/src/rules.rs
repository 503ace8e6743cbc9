//! Rules of advice in their TOML form: commands with replacements, and known cures.

use proctrace_classify::Pattern;
use proctrace_classify::RulesError;
use proctrace_wire::escape::to_text;
use serde::Deserialize;

use super::names::{first_word, script};

/// Marks forms of whole lines among programs.
const QUERY_LINE: &str = "line:";

/// Rules of advice: the commands that a shell can do itself, those that must not be left out, and the known cures.
#[derive(Debug, Clone)]
pub struct AdviceRules {
    replacements: Vec<Replacement>,
    effects: Vec<String>,
    queries: Vec<Pattern>,
    query_lines: Vec<Pattern>,
    independent: Vec<String>,
    pub(super) cures: Vec<Cure>,
}

/// Replacement in the shell for starting a command.
#[derive(Debug, Clone)]
pub(super) struct Replacement {
    commands: Vec<String>,
    lines: Vec<Pattern>,
    pub(super) instead: String,
    /// Difference from the command that it replaces.
    pub(super) risk: String,
}

/// A known cure for commands that match.
#[derive(Debug, Clone)]
pub(super) struct Cure {
    pub(super) name: String,
    commands: Vec<Pattern>,
    lines: Vec<Pattern>,
    below: Vec<Pattern>,
    /// Command lines of which one must be in the recording, too.
    beside: Vec<Pattern>,
    pub(super) at_least: u64,
    /// The part of their cost that the cure removes, in percent: at least, about, at most.
    pub(super) saves_percent: [u64; 3],
    pub(super) what: String,
    /// The changed command line; `{spawner}` is that of the program that started what it concerns.
    pub(super) change: Option<String>,
    pub(super) risk: String,
    /// Command lines that show that the cure is taken, if it is a cache that the first run fills.
    pub(super) fills_cache: Vec<Pattern>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandsFile {
    #[serde(rename = "about")]
    _about: String,
    effects: Vec<String>,
    queries: Vec<String>,
    independent: Vec<String>,
    rule: Vec<FileReplacement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileReplacement {
    command: Vec<String>,
    #[serde(default)]
    line: Vec<String>,
    instead: String,
    risk: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct CuresFile {
    #[serde(default, rename = "about")]
    _about: String,
    #[serde(default)]
    cure: Vec<FileCure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileCure {
    name: String,
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    line: Vec<String>,
    #[serde(default)]
    below: Vec<String>,
    #[serde(default)]
    beside: Vec<String>,
    at_least: u64,
    saves_percent: [u64; 3],
    what: String,
    change: Option<String>,
    risk: String,
    #[serde(default)]
    fills_cache: Vec<String>,
}

impl AdviceRules {
    /// The rules that are compiled in.
    ///
    /// # Panics
    /// Never: a test parses them.
    pub fn built_in() -> Self {
        let commands = include_str!("../../rules/commands.toml");
        let file: CommandsFile = toml::from_str(commands).expect("a test parses them");
        let replacement = |rule: FileReplacement| Replacement {
            commands: rule.command,
            lines: patterns(&rule.line),
            instead: rule.instead,
            risk: rule.risk,
        };
        let lines = file.queries.iter().filter_map(|text| text.strip_prefix(QUERY_LINE));
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        let programs: Vec<String> =
            file.queries.iter().filter(|text| !text.starts_with(QUERY_LINE)).cloned().collect();
        let rules = Self {
            queries: patterns(&programs),
            query_lines: patterns(&lines),
            independent: file.independent,
            replacements: file.rule.into_iter().map(replacement).collect(),
            effects: file.effects,
            cures: Vec::new(),
        };
        rules.with("cures", include_str!("../../rules/cures.toml")).expect("a test parses them")
    }

    /// Adds cures, which are looked for before those added earlier. `name` is used in messages: the path
    /// of their file.
    ///
    /// # Errors
    /// If they are not well-formed, with line and column.
    pub fn with(mut self, name: &str, toml: &str) -> Result<Self, RulesError> {
        let wrong = |at: usize, message: String| {
            let before = &toml[..at.min(toml.len())];
            let line_begin = before.rfind('\n').map_or(0, |newline| newline + 1);
            RulesError {
                name: name.to_owned(),
                line: before.matches('\n').count() + 1,
                column: before[line_begin..].chars().count() + 1,
                message,
            }
        };
        let file: CuresFile = toml::from_str(toml).map_err(|error| {
            wrong(error.span().unwrap_or_default().start, error.message().to_owned())
        })?;
        let mut cures = Vec::new();
        for cure in file.cure {
            let [low, middle, high] = cure.saves_percent;
            if !(low <= middle && middle <= high && high <= 100) {
                let message = format!(
                    "cure {:?}: saves-percent is [at least, about, at most], at most 100",
                    cure.name
                );
                return Err(wrong(0, message));
            }
            if cure.command.is_empty() && cure.line.is_empty() {
                let message = format!("cure {:?} needs `command` or `line`", cure.name);
                return Err(wrong(0, message));
            }
            let lists = [&cure.command, &cure.line, &cure.below, &cure.beside, &cure.fills_cache];
            if lists.into_iter().flatten().any(|text| Pattern::new(text).is_too_long()) {
                return Err(wrong(0, format!("cure {:?}: a pattern is too long", cure.name)));
            }
            cures.push(Cure {
                commands: patterns(&cure.command),
                lines: patterns(&cure.line),
                below: patterns(&cure.below),
                beside: patterns(&cure.beside),
                fills_cache: patterns(&cure.fills_cache),
                name: cure.name,
                at_least: cure.at_least,
                saves_percent: cure.saves_percent,
                what: cure.what,
                change: cure.change,
                risk: cure.risk,
            });
        }
        cures.append(&mut self.cures);
        self.cures = cures;
        Ok(self)
    }

    /// Replacement in the shell for a command, given the template of its command line.
    pub(super) fn replacement(&self, template: &str) -> Option<&Replacement> {
        let command = first_word(template);
        self.replacements.iter().find(|rule| {
            rule.commands.iter().any(|name| name == command) && matches(&rule.lines, template)
        })
    }

    /// Returns whether a command only answers: its program is known for that, or the form of its line.
    pub(super) fn is_query(&self, command: &str, template: &str) -> bool {
        let matches = |patterns: &[Pattern], text: &str| {
            patterns.iter().any(|pattern| pattern.matches(text.as_bytes()))
        };
        matches(&self.queries, command) || matches(&self.query_lines, template)
    }

    /// Returns whether several runs of a program do not get into each other's way.
    pub(super) fn is_independent(&self, command: &str) -> bool {
        self.independent.iter().any(|name| name == command)
    }

    /// Returns whether a second run of a command is not like the first.
    pub(super) fn has_effects(&self, command: &str) -> bool {
        self.effects.iter().any(|name| name == command)
    }
}

impl Cure {
    /// Returns whether a command line is concerned, if its spawner is.
    pub(super) fn concerns(&self, template: &str) -> bool {
        let named = |name: &str| matches(&self.commands, name);
        (named(first_word(template)) || script(template).is_some_and(named))
            && matches(&self.lines, template)
    }

    /// Returns whether a command line shows that this cure, a cache, is taken.
    pub(super) fn is_taken_by(&self, template: &str) -> bool {
        self.fills_cache.iter().any(|pattern| pattern.matches(template.as_bytes()))
    }

    /// Returns whether a recording with these command lines is one in which the cure helps.
    pub(super) fn is_beside(&self, templates: &[String]) -> bool {
        self.beside.is_empty() || templates.iter().any(|line| matches(&self.beside, line))
    }

    /// Returns whether the command line of a spawner is one of those below which the cure helps.
    pub(super) fn is_below(&self, spawner: Option<&str>) -> bool {
        self.below.is_empty() || spawner.is_some_and(|line| matches(&self.below, line))
    }
}

/// Returns whether one of the patterns matches, or there are none.
fn matches(patterns: &[Pattern], text: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(text.as_bytes()))
}

/// Templates are escaped text, so patterns are escaped the same way.
fn patterns(texts: &[String]) -> Vec<Pattern> {
    texts.iter().map(|text| Pattern::new(&to_text(text.as_bytes()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_that_are_compiled_in_are_sound() {
        let rules = AdviceRules::built_in();
        assert!(rules.replacement("basename /a/b").is_some());
        assert!(rules.replacement("g++ -c x.cc").is_none());
        assert!(rules.has_effects("mktemp") && !rules.has_effects("root-config"));
        assert!(!rules.cures.is_empty());
        assert!(rules.is_query("root-config", "root-config --libs"));
        assert!(
            rules.is_query("gcc-#", "gcc-# --version")
                && rules.is_query("xml#-config", "xml#-config --libs")
        );
        assert!(!rules.is_query("rpm", "rpm -i x") && rules.is_query("rpm", "rpm -qa"));
        assert!(!rules.is_query("gcc", "gcc -c x.c") && !rules.is_query("dh_clean", "dh_clean"));
        assert!(rules.is_independent("gzip") && !rules.is_independent("easyrsa"));
    }

    #[test]
    fn a_cure_of_the_user_comes_first_and_says_whom_it_concerns() {
        let toml = "[[cure]]\nname = 'a'\ncommand = ['tool*']\nbelow = ['sh *']\nat-least = 2\n\
                    saves-percent = [10, 20, 30]\nwhat = 'w'\nrisk = 'r'\n";
        let rules = AdviceRules::built_in().with("mine.toml", toml).unwrap();
        let cure = &rules.cures[0];
        assert_eq!(cure.name, "a");
        assert!(cure.concerns("tool9 -x") && !cure.concerns("other"));
        assert!(cure.concerns("sh ./tool9 -x") && cure.concerns("python# /usr/bin/tool"));
        assert!(!cure.concerns("sh -c tool") && !cure.concerns("cat tool"));
        assert!(cure.is_below(Some("sh job.sh")));
        assert!(!cure.is_below(Some("make")) && !cure.is_below(None));
    }

    #[test]
    fn errors_name_the_place() {
        let says =
            |toml: &str| AdviceRules::built_in().with("mine.toml", toml).unwrap_err().to_string();
        assert!(says("\n[[cure]]\nnme = 1\n").starts_with("mine.toml:"), "{}", says("\nx"));
        let cure = |rest: &str| {
            format!("[[cure]]\nname = 'a'\nat-least = 1\nwhat = ''\nrisk = ''\n{rest}")
        };
        let percent = says(&cure("command = ['x']\nsaves-percent = [50, 20, 30]"));
        assert!(percent.contains("saves-percent"), "{percent}");
        let nothing = says(&cure("saves-percent = [1, 2, 3]"));
        assert!(nothing.contains("needs `command` or `line`"), "{nothing}");
    }
}
