//! A pack of rules in its TOML form, with the location of every error in it.

use std::ops::Range;

use proctrace_findings::Class;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;

use crate::error::RulesError;
use crate::pattern::Pattern;

/// The precedence of its rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Rules of the user, before all others.
    User,
    /// Rules of an experiment, applied if one of its programs occurs.
    Experiment,
    /// Rules after all others.
    Generic,
}

/// A set of rules that are applied together.
#[derive(Debug, Clone)]
pub struct Pack {
    /// Its name, or the path of its file.
    pub name: String,
    pub(crate) tier: Tier,
    /// True if it was requested explicitly, so that its unused rules are reported.
    pub asked_for: bool,
    /// Names of programs whose occurrence selects the pack; `None` if it always applies.
    pub(crate) selected_by: Option<Vec<Pattern>>,
    /// Programs whose first operand is what really runs.
    pub interpreters: Vec<String>,
    /// System directories, each with a trailing slash.
    pub directories: Vec<Vec<u8>>,
    pub rules: Vec<Rule>,
}

/// A rule: all of its conditions must hold, each with at least one of its patterns.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Line number in the file.
    pub line: usize,
    pub group: String,
    /// `None`: as the generic rules decide.
    pub class: Option<Class>,
    /// Replacement for the program's own name.
    pub called: Option<String>,
    pub name: Vec<Pattern>,
    pub file: Vec<Pattern>,
    pub interpreter: Vec<Pattern>,
    pub system: bool,
    pub text: Vec<Pattern>,
    pub argv: Vec<Pattern>,
    pub without: Vec<Pattern>,
    pub spawner: Vec<Pattern>,
    pub roles: Vec<Role>,
}

/// A role, which distinguishes processes of one program.
#[derive(Debug, Clone)]
pub struct Role {
    pub source: Source,
    /// The role, with `{}` for the captured word.
    pub called: String,
}

/// The source from which a role is read.
#[derive(Debug, Clone)]
pub enum Source {
    /// The value of this option.
    Argument(Vec<u8>),
    /// The arguments joined by spaces.
    Argv(Pattern),
    /// The last component of the working directory.
    Directory(Pattern),
    /// The name a process gave itself.
    Rename(Pattern),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    /// Description, for readers of the file.
    #[serde(default, rename = "about")]
    _about: Option<String>,
    selected_by: Option<Vec<String>>,
    class: Option<Spanned<String>>,
    #[serde(default)]
    interpreters: Vec<String>,
    #[serde(default)]
    directories: Vec<String>,
    #[serde(default)]
    rule: Vec<Spanned<FileRule>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileRule {
    group: Spanned<String>,
    class: Option<Spanned<String>>,
    #[serde(rename = "as")]
    called: Option<Spanned<String>>,
    name: Option<Spanned<Vec<String>>>,
    file: Option<Spanned<Vec<String>>>,
    interpreter: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    system: bool,
    text: Option<Spanned<Vec<String>>>,
    argv: Option<Spanned<Vec<String>>>,
    without: Option<Spanned<Vec<String>>>,
    spawner: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    roles: Vec<Spanned<FileRole>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRole {
    argument: Option<String>,
    argv: Option<String>,
    directory: Option<String>,
    rename: Option<String>,
    #[serde(rename = "as")]
    called: Option<String>,
}

/// An error message and its location.
pub(crate) type Wrong = (Range<usize>, String);

/// The error with line and column in a file of this name.
pub(crate) fn located(name: &str, toml: &str, (span, message): Wrong) -> RulesError {
    let (line, column) = place(toml, span.start);
    RulesError { name: name.to_owned(), line, column, message }
}

/// The content of a file of this name.
pub(crate) fn parsed<T: DeserializeOwned>(name: &str, toml: &str) -> Result<T, RulesError> {
    toml::from_str(toml).map_err(|error| {
        located(name, toml, (error.span().unwrap_or_default(), error.message().to_owned()))
    })
}

impl Pack {
    /// Parses a pack; `name` is used in messages.
    ///
    /// # Errors
    /// If it is not well-formed or a rule is invalid, with line and column.
    pub fn parse(name: &str, tier: Tier, toml: &str) -> Result<Self, RulesError> {
        let wrong = |wrong: Wrong| located(name, toml, wrong);
        let file: File = parsed(name, toml)?;
        if any_too_long(file.selected_by.iter().flatten()) {
            return Err(wrong((0..0, TOO_LONG.into())));
        }
        let class = file.class.as_ref().map(class_of).transpose().map_err(wrong)?;
        let rules = file.rule.into_iter().map(|rule| {
            let (line, _) = place(toml, rule.span().start);
            checked(rule, line, class)
        });
        Ok(Self {
            name: name.to_owned(),
            tier,
            asked_for: tier == Tier::User,
            selected_by: file.selected_by.map(|names| patterns(&names)),
            interpreters: file.interpreters,
            directories: file
                .directories
                .into_iter()
                .map(|directory| format!("{}/", directory.trim_end_matches('/')).into_bytes())
                .collect(),
            rules: rules.collect::<Result<_, _>>().map_err(wrong)?,
        })
    }
}

impl Rule {
    /// True if conditions or roles use the arguments: then each exec is examined individually.
    pub(crate) fn reads_arguments(&self) -> bool {
        !(self.text.is_empty()
            && self.argv.is_empty()
            && self.without.is_empty()
            && self.roles.is_empty())
    }
}

fn checked(rule: Spanned<FileRule>, line: usize, class: Option<Class>) -> Result<Rule, Wrong> {
    let span = rule.span();
    let rule = rule.into_inner();
    if rule.group.get_ref().trim().is_empty() {
        return Err((rule.group.span(), "a group needs a name".into()));
    }
    if let Some(called) = &rule.called
        && called.get_ref().trim().is_empty()
    {
        return Err((called.span(), "`as` needs a name".into()));
    }
    if let Some(names) = &rule.name
        && let Some(name) = names.get_ref().iter().find(|name| name.contains('/'))
    {
        let message = format!("a name contains no slash, so {name:?} never matches; use `file`");
        return Err((names.span(), message));
    }
    let lists = [
        &rule.name,
        &rule.file,
        &rule.interpreter,
        &rule.text,
        &rule.argv,
        &rule.without,
        &rule.spawner,
    ];
    if let Some(empty) = lists.into_iter().flatten().find(|list| list.get_ref().is_empty()) {
        return Err((empty.span(), "an empty list matches nothing".into()));
    }
    if let Some(long) = lists.into_iter().flatten().find(|list| any_too_long(list.get_ref())) {
        return Err((long.span(), TOO_LONG.into()));
    }
    if lists.into_iter().all(|list| list.is_none()) && !rule.system {
        let message = "a rule needs a condition: name, file, interpreter, text, argv, spawner";
        return Err((span, message.into()));
    }
    let of = |list: &Option<Spanned<Vec<String>>>| {
        list.as_ref().map_or_else(Vec::new, |list| patterns(list.get_ref()))
    };
    Ok(Rule {
        line,
        class: rule.class.as_ref().map(class_of).transpose()?.or(class),
        called: rule.called.map(Spanned::into_inner),
        name: of(&rule.name),
        file: of(&rule.file),
        interpreter: of(&rule.interpreter),
        system: rule.system,
        text: of(&rule.text),
        argv: of(&rule.argv),
        without: of(&rule.without),
        spawner: of(&rule.spawner),
        roles: rule.roles.into_iter().map(role).collect::<Result<_, _>>()?,
        group: rule.group.into_inner(),
    })
}

fn role(role: Spanned<FileRole>) -> Result<Role, Wrong> {
    let span = role.span();
    let role = role.into_inner();
    let wrong = |message: &str| Err((span.clone(), message.to_owned()));
    let pattern = |text: String| Pattern::new(&text);
    let source = match (role.argument, role.argv, role.directory, role.rename) {
        (Some(option), None, None, None) => Source::Argument(option.into_bytes()),
        (None, Some(argv), None, None) => Source::Argv(pattern(argv)),
        (None, None, Some(directory), None) => Source::Directory(pattern(directory)),
        (None, None, None, Some(name)) => Source::Rename(pattern(name)),
        _ => return wrong("a role needs exactly one of argument, argv, directory, rename"),
    };
    let words = match &source {
        Source::Argument(_) => 1,
        Source::Argv(pattern) | Source::Directory(pattern) | Source::Rename(pattern) => {
            pattern.words()
        }
    };
    if let Source::Argv(pattern) | Source::Directory(pattern) | Source::Rename(pattern) = &source
        && pattern.is_too_long()
    {
        return wrong(TOO_LONG);
    }
    match (words, role.called) {
        (0 | 1, Some(called)) => Ok(Role { source, called }),
        (1, None) => Ok(Role { source, called: "{}".into() }),
        (0, None) => wrong("a role needs {} in its pattern, or `as`"),
        _ => wrong("a role's pattern may contain only one {}"),
    }
}

fn class_of(class: &Spanned<String>) -> Result<Class, Wrong> {
    match class.get_ref().as_str() {
        "command" => Ok(Class::Command),
        "framework" => Ok(Class::Framework),
        "program" => Ok(Class::Program),
        other => Err((
            class.span(),
            format!("unknown class {other:?}; the classes are command, framework, program"),
        )),
    }
}

pub(crate) const TOO_LONG: &str = "a pattern has too many * and {}";

pub(crate) fn any_too_long<'t>(texts: impl IntoIterator<Item = &'t String>) -> bool {
    texts.into_iter().any(|text| Pattern::new(text).is_too_long())
}

pub(crate) fn patterns(texts: &[String]) -> Vec<Pattern> {
    texts.iter().map(|text| Pattern::new(text)).collect()
}

/// Line and column of a position, from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(toml: &str) -> Result<Pack, String> {
        Pack::parse("mine.toml", Tier::User, toml).map_err(|error| error.to_string())
    }

    #[test]
    fn whatever_is_wrong_says_where() {
        for (toml, says) in [
            ("directories = []\ninterpreters = 3\n", "mine.toml:2:16: "),
            ("[[rule]]\ngroup = \"x\"\nnmae = [\"a\"]\n", "mine.toml:3:1: unknown field"),
            ("[[rule]]\ngroup = \"x\"\n", "mine.toml:1:1: a rule needs a condition"),
            ("[[rule]]\ngroup = \" \"\nname = [\"a\"]\n", "mine.toml:2:9: a group needs a name"),
            ("[[rule]]\ngroup = \"x\"\nname = []\n", "mine.toml:3:8: an empty list"),
            (
                "[[rule]]\ngroup = \"x\"\nname = [\"/bin/a\"]\n",
                "mine.toml:3:8: a name contains no slash",
            ),
            ("class = \"comand\"\n", "mine.toml:1:9: unknown class \"comand\""),
            (
                "[[rule]]\ngroup = \"x\"\nname = [\"a\"]\nroles = [{ argv = \"x\" }]\n",
                "mine.toml:4:10: a role needs {}",
            ),
            (
                "[[rule]]\ngroup = \"x\"\nname = [\"a\"]\nroles = [{ argv = \"{} {}\" }]\n",
                "mine.toml:4:10: a role's pattern may contain only one {}",
            ),
            (
                "[[rule]]\ngroup = \"x\"\nname = [\"a\"]\nroles = [{ as = \"x\" }]\n",
                "mine.toml:4:10: a role needs exactly one of",
            ),
        ] {
            let error = parse(toml).unwrap_err();
            assert!(error.starts_with(says), "{error} is not {says}");
        }
    }

    #[test]
    fn patterns_that_could_exhaust_the_stack_are_refused() {
        let long = "*a".repeat(100_000);
        for (toml, says) in [
            (format!("[[rule]]\ngroup = \"x\"\nargv = [\"{long}\"]\n"), "mine.toml:3:8: a pattern"),
            (format!("selected-by = [\"{long}\"]\n"), "mine.toml:1:1: a pattern"),
            (
                format!(
                    "[[rule]]\ngroup = \"x\"\nname = [\"a\"]\nroles = [{{ argv = \"{long}{{}}\" }}]\n"
                ),
                "mine.toml:4:10: a pattern",
            ),
        ] {
            let error = parse(&toml).unwrap_err();
            assert!(error.starts_with(says), "{error} is not {says}");
        }
    }

    #[test]
    fn rules_know_their_lines() {
        let pack = parse(
            "class = \"framework\"\n\n[[rule]]\ngroup = \"a\"\nname = [\"x\"]\n\n\
             [[rule]]\ngroup = \"b\"\nclass = \"program\"\ntext = [\"*y*\"]\n",
        );
        let rules = pack.unwrap().rules;
        assert_eq!((rules[0].line, rules[0].class), (3, Some(Class::Framework)));
        assert_eq!((rules[1].line, rules[1].class), (7, Some(Class::Program)));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(toml in "(\\[\\[rule\\]\\]\n|group = \"[a-z*{}]*\"\n|name = \\[\"\\*\"\\]\n|[a-z\\[\\]=\" {}\u{e4}]{0,9}\n){0,8}") {
            let _ = parse(&toml);
        }
    }
}
