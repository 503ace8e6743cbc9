//! A coordinator in its TOML form: the programs that it is, and which of the programs that it starts are steps.

use std::borrow::Cow;

use serde::Deserialize;
use toml::Spanned;

use super::{Named, NamedBy, Run, command, name_of};
use crate::call::value_of;
use crate::error::RulesError;
use crate::names::text;
use crate::pack::{TOO_LONG, Wrong, any_too_long, located, parsed, patterns};
use crate::pattern::Pattern;

/// A program that starts steps.
#[derive(Debug, Clone)]
pub struct Coordinator {
    /// Its name.
    pub name: String,
    /// Names of its programs.
    programs: Vec<Pattern>,
    /// Command lines that it must have one of, if there are any, and must not have.
    line: Vec<Pattern>,
    without: Vec<Pattern>,
    steps: Vec<StepRule>,
}

/// Which program runs are steps: each condition must hold with at least one of its patterns.
#[derive(Debug, Clone)]
struct StepRule {
    /// True if it need not be started by the coordinator itself.
    anywhere: bool,
    name: Vec<Pattern>,
    program: Vec<Pattern>,
    line: Vec<Pattern>,
    without: Vec<Pattern>,
    directory: Vec<Pattern>,
    /// The first that gives something is the name.
    called: Vec<Part>,
    group: Vec<Part>,
}

/// A part of a program run that a name is made of.
#[derive(Debug, Clone)]
struct Part {
    source: Source,
    /// The name, with `{}` for the part.
    called: String,
}

#[derive(Debug, Clone)]
enum Source {
    /// The value of this option, also within the text that a shell was given.
    Option(Vec<u8>),
    /// The captured word of the command line.
    Line(Pattern),
    /// That of the working directory.
    Directory(Pattern),
    /// An environment variable, or the captured word of its value.
    Variable(Vec<u8>, Option<Pattern>, Vec<u8>),
    /// The name of the program that does the work.
    Program,
    /// The command: the text that a shell was given, or the command line.
    Command,
    /// Nothing: the name is always the same.
    Nothing,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    /// Description, for readers of the file.
    #[serde(default, rename = "about")]
    _about: Option<String>,
    #[serde(default)]
    coordinator: Vec<String>,
    #[serde(default)]
    line: Vec<String>,
    #[serde(default)]
    without: Vec<String>,
    step: Vec<Spanned<FileStep>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileStep {
    #[serde(default)]
    anywhere: bool,
    #[serde(default)]
    name: Vec<String>,
    #[serde(default)]
    program: Vec<String>,
    #[serde(default)]
    line: Vec<String>,
    #[serde(default)]
    without: Vec<String>,
    #[serde(default)]
    directory: Vec<String>,
    called: Vec<FilePart>,
    #[serde(default)]
    group: Vec<FilePart>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilePart {
    option: Option<String>,
    line: Option<String>,
    directory: Option<String>,
    variable: Option<String>,
    value: Option<String>,
    before: Option<String>,
    #[serde(default)]
    program: bool,
    #[serde(default)]
    command: bool,
    #[serde(rename = "as")]
    called: Option<String>,
}

impl Coordinator {
    /// Parses its file; `name` is its own, and used in messages.
    ///
    /// # Errors
    /// If the file is not well-formed or says what can never hold, with line and column.
    pub fn parse(name: &str, toml: &str) -> Result<Self, RulesError> {
        let wrong = |wrong: Wrong| located(name, toml, wrong);
        let file: File = parsed(name, toml)?;
        if any_too_long(file.coordinator.iter().chain(&file.line).chain(&file.without)) {
            return Err(wrong((0..0, TOO_LONG.into())));
        }
        let has_programs = !file.coordinator.is_empty();
        let steps = file.step.into_iter().map(|step| checked(step, has_programs));
        let steps: Vec<_> = steps.collect::<Result<_, _>>().map_err(wrong)?;
        if steps.is_empty() {
            return Err(wrong((0..0, "a coordinator needs a [[step]]".into())));
        }
        Ok(Self {
            name: crate::names::base(name.as_bytes()).escape_ascii().to_string(),
            programs: patterns(&file.coordinator),
            line: patterns(&file.line),
            without: patterns(&file.without),
            steps,
        })
    }

    /// Environment variables that name its steps.
    pub(super) fn variables(&self) -> impl Iterator<Item = &[u8]> {
        let parts = self.steps.iter().flat_map(|step| step.called.iter().chain(&step.group));
        parts.filter_map(|part| match &part.source {
            Source::Variable(name, ..) => Some(&name[..]),
            _ => None,
        })
    }

    /// True if a program of these names may be this coordinator.
    pub(super) fn may_be(&self, names: [&[u8]; 3]) -> bool {
        any(&self.programs, |pattern| names.iter().any(|name| pattern.matches(name)))
    }

    /// True if a program of these names may be a step of it, whoever started it and without a variable.
    pub(super) fn may_have_anywhere(&self, names: [&[u8]; 3]) -> bool {
        self.steps.iter().filter(|step| step.anywhere && !step.is_by_variable()).any(|step| {
            step.name.is_empty()
                || any(&step.name, |pattern| names.iter().any(|name| pattern.matches(name)))
        })
    }

    /// True if it has steps that are known by a variable, whoever started them.
    pub(super) fn is_by_variable(&self) -> bool {
        self.steps.iter().any(|step| step.anywhere && step.is_by_variable())
    }

    /// True if a program run is this coordinator.
    pub(super) fn is(&self, run: &Run<'_, '_>) -> bool {
        self.may_be(run.names)
            && (self.line.is_empty() || any(&self.line, |pattern| pattern.matches(run.line())))
            && !any(&self.without, |pattern| pattern.matches(run.line()))
    }

    /// The step that a program run is; `is_child` if this coordinator started it.
    pub(super) fn step(
        &self,
        run: &Run<'_, '_>,
        is_child: bool,
        variables: &[(Vec<u8>, Vec<u8>)],
    ) -> Option<Named> {
        self.steps.iter().filter(|step| is_child || step.anywhere).find_map(|step| {
            if !step.holds(run) {
                return None;
            }
            Some(Named {
                name: step.called.iter().find_map(|part| part.of(run, variables))?,
                group: step.group.iter().find_map(|part| part.of(run, variables)),
                by: NamedBy::Rule,
                coordinator: self.name.clone(),
            })
        })
    }
}

fn any(patterns: &[Pattern], holds: impl Fn(&Pattern) -> bool) -> bool {
    patterns.iter().any(holds)
}

impl StepRule {
    /// True if nothing but a variable can give it a name.
    fn is_by_variable(&self) -> bool {
        self.called.iter().all(|part| matches!(part.source, Source::Variable(..)))
    }

    fn holds(&self, run: &Run<'_, '_>) -> bool {
        let or_none = |patterns: &[Pattern], holds: &dyn Fn(&Pattern) -> bool| {
            patterns.is_empty() || patterns.iter().any(holds)
        };
        or_none(&self.name, &|pattern| run.names.iter().any(|name| pattern.matches(name)))
            && or_none(&self.program, &|pattern| pattern.matches(run.program()))
            && or_none(&self.line, &|pattern| pattern.matches(run.line()))
            && or_none(&self.directory, &|pattern| pattern.matches(run.exec.cwd))
            && !any(&self.without, |pattern| pattern.matches(run.line()))
    }
}

impl Part {
    fn of(&self, run: &Run<'_, '_>, variables: &[(Vec<u8>, Vec<u8>)]) -> Option<String> {
        let part: Cow<'_, [u8]> = match &self.source {
            Source::Option(option) => match run.call.text {
                Some(text) => command::value_of(text, option)?.into(),
                None => value_of(run.exec.argv, option)?.into(),
            },
            Source::Line(pattern) => pattern.find(run.line())?.into(),
            Source::Directory(pattern) => pattern.find(run.exec.cwd)?.into(),
            Source::Variable(name, pattern, before) => {
                let (_, value) = variables.iter().find(|(of, _)| of == name)?;
                let end = value.windows(before.len().max(1)).rposition(|window| window == before);
                match pattern {
                    Some(pattern) => pattern.find(value)?.into(),
                    None => value[..end.unwrap_or(value.len())].into(),
                }
            }
            Source::Program => run.program().into(),
            Source::Command => run.command(),
            Source::Nothing => return name_of(self.called.as_bytes()),
        };
        let name = name_of(&part)?;
        // What replaces is not replaced again.
        Some(if self.called == "{}" { name } else { self.called.replace("{}", &name) })
    }
}

fn checked(step: Spanned<FileStep>, has_programs: bool) -> Result<StepRule, Wrong> {
    let span = step.span();
    let step = step.into_inner();
    let wrong = |message: &str| Err((span.clone(), message.to_owned()));
    let lists = [&step.name, &step.program, &step.line, &step.without, &step.directory];
    if lists.iter().any(|list| any_too_long(list.iter())) {
        return wrong(TOO_LONG);
    }
    if step.called.is_empty() {
        return wrong("a step needs a name: `called` with at least one part");
    }
    if !step.anywhere && !has_programs {
        return wrong("no `coordinator` can have started it: name one, or say `anywhere = true`");
    }
    let parts = |parts: Vec<FilePart>| parts.into_iter().map(part).collect::<Result<_, _>>();
    let (called, group) = match (parts(step.called), parts(step.group)) {
        (Ok(called), Ok(group)) => (called, group),
        (Err(message), _) | (_, Err(message)) => return wrong(message),
    };
    Ok(StepRule {
        anywhere: step.anywhere,
        name: patterns(&step.name),
        program: patterns(&step.program),
        line: patterns(&step.line),
        without: patterns(&step.without),
        directory: patterns(&step.directory),
        called,
        group,
    })
}

fn part(part: FilePart) -> Result<Part, &'static str> {
    const ONE: &str = "a part of a name is one of option, line, directory, variable, program, command, or only `as`";
    let captures = |pattern: &str| {
        let pattern = Pattern::new(pattern);
        match (pattern.is_too_long(), pattern.words()) {
            (true, _) => Err(TOO_LONG),
            (_, 1..) => Ok(pattern),
            // The name does not depend on what it matches.
            (_, 0) if part.called.as_ref().is_some_and(|name| !name.contains("{}")) => Ok(pattern),
            _ => Err("a pattern of a name needs a {}"),
        }
    };
    let given = (&part.option, &part.line, &part.directory, &part.variable);
    let source = match (given, part.program, part.command) {
        ((Some(option), None, None, None), false, false) => {
            Source::Option(option.clone().into_bytes())
        }
        ((None, Some(line), None, None), false, false) => Source::Line(captures(line)?),
        ((None, None, Some(directory), None), false, false) => {
            Source::Directory(captures(directory)?)
        }
        ((None, None, None, Some(name)), false, false) => {
            let value = part.value.as_deref().map(captures).transpose()?;
            let before = part.before.clone().unwrap_or_default();
            Source::Variable(name.clone().into_bytes(), value, before.into_bytes())
        }
        ((None, None, None, None), true, false) => Source::Program,
        ((None, None, None, None), false, true) => Source::Command,
        ((None, None, None, None), false, false) if part.called.is_some() => Source::Nothing,
        _ => return Err(ONE),
    };
    if part.value.is_some() && !matches!(source, Source::Variable(..)) {
        return Err("only a variable has a `value`");
    }
    if part.before.is_some() && (part.value.is_some() || part.variable.is_none()) {
        return Err("only a variable without a `value` has a `before`");
    }
    let called = part.called.unwrap_or_else(|| "{}".to_owned());
    Ok(Part { source, called: text(called.as_bytes()) })
}
