//! Steps that a table from outside names: CSV, JSON, or the workflow of O2DPG's runner.

use std::sync::Arc;

use serde::Deserialize;

use super::action_log::{ActionLog, group_of};
use super::command::{of_text, program};
use super::ninja_log::NinjaLog;
use super::{FileGraph, Named, NamedBy, O2DPG, Run, RunBy, SNAKEMAKE, name_of};
use crate::call::ARGUMENTS_MAX;
use crate::error::RulesError;
use crate::fast::FastMap;
use crate::names::text;
use crate::pack::TOO_LONG;
use crate::pattern::Pattern;

/// What tables from outside say, by command.
#[derive(Debug, Clone, Default)]
pub struct Declared {
    /// In the order of the tables.
    pub steps: Vec<DeclaredStep>,
    /// Indices by whole command.
    by_command: FastMap<Vec<u8>, Vec<usize>>,
    /// Indices by pid.
    by_pid: FastMap<i32, Vec<usize>>,
    /// The same of those that a shell is given after preparations, by what comes after those.
    by_end: FastMap<Vec<u8>, Vec<usize>>,
    /// Indices of those with a pattern for the command or the directory only.
    by_pattern: Vec<usize>,
    ninja_logs: Vec<NinjaLog>,
    action_logs: Vec<ActionLog>,
    /// What files are made from, as the tools that build them say.
    pub graph: Arc<FileGraph>,
}

/// A step as a table names it.
#[derive(Debug, Clone)]
pub struct DeclaredStep {
    /// Its name.
    pub name: String,
    /// Name of its group, if the table has one.
    pub group: Option<String>,
    /// Names of the steps that must come before it; `None` if the table does not say.
    pub needs: Option<Vec<String>>,
    /// The process, and the time in nanoseconds since 1970 from which on it has this pid.
    process: Option<(i32, u64)>,
    command: Option<Command>,
    directory: Option<Pattern>,
}

#[derive(Debug, Clone)]
enum Command {
    /// The text that a shell was given, or the command line.
    Whole(Vec<u8>),
    /// The end of the text that a shell was given, after other commands.
    End(Vec<u8>),
    /// A pattern over it.
    Like(Pattern),
}

/// A row of a table, and an object of a JSON array.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    name: String,
    #[serde(default)]
    group: Option<String>,
    #[serde(default)]
    pid: Option<i32>,
    /// Unix time in seconds.
    #[serde(default)]
    begin: Option<f64>,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    directory: Option<String>,
    #[serde(default)]
    needs: Option<Vec<String>>,
    /// How the command is compared.
    #[serde(skip)]
    comparison: Comparison,
}

/// How the command of a row is compared with what was run.
#[derive(Default, PartialEq, Eq)]
enum Comparison {
    /// As a pattern if there is a * in it.
    #[default]
    Pattern,
    Whole,
    /// With the end of what a shell was given.
    End,
}

/// The workflow of O2DPG's runner, as far as it says what runs where.
#[derive(Deserialize)]
struct Workflow {
    stages: Vec<Stage>,
}

#[derive(Deserialize)]
struct Stage {
    name: String,
    cmd: String,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    needs: Vec<String>,
}

/// An entry of a compilation database, as `ninja -t compdb` prints it for all edges.
#[derive(Deserialize)]
struct Compilation {
    directory: String,
    command: String,
    output: String,
}

/// What `ctest --show-only=json-v1` prints.
#[derive(Deserialize)]
struct Tests {
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    name: String,
    /// Missing if the program has not been built.
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    properties: Vec<Property>,
}

#[derive(Deserialize)]
struct Property {
    name: String,
    value: serde_json::Value,
}

/// A line of Nextflow's trace.
#[derive(Deserialize)]
struct NextflowTask {
    /// The beginning of its directory below work/: `ab/123456`.
    hash: String,
    name: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Json {
    Workflow(Workflow),
    Tests(Tests),
    Compilations(Vec<Compilation>),
    Rows(Vec<Row>),
}

impl Declared {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.ninja_logs.is_empty() && self.action_logs.is_empty()
    }

    /// The step of this name.
    pub fn named(&self, name: &str) -> Option<&DeclaredStep> {
        self.steps.iter().find(|step| step.name == name)
    }

    /// Adds what a CSV file says: columns name, and any of group, pid, begin, command, directory. `file` is used in
    /// messages.
    ///
    /// # Errors
    /// If it is not well-formed, or a row says nothing that a program run could be recognised by.
    pub fn add_csv(&mut self, file: &str, csv: &[u8]) -> Result<(), RulesError> {
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(csv);
        // Any text is a line of CSV.
        let names = reader.byte_headers().map_err(|why| error(file, 1, why.to_string()))?;
        if !names.iter().any(|name| name == b"name") {
            let message =
                "its first line has no column \"name\", and it is nothing else that names steps";
            return Err(error(file, 1, message.to_owned()));
        }
        for row in reader.deserialize() {
            let line =
                row.as_ref().err().and_then(csv::Error::position).map_or(1, csv::Position::line);
            let wrong = |message: String| error(file, usize::try_from(line).unwrap_or(1), message);
            let row: Row = row.map_err(|why| wrong(why.to_string()))?;
            self.add(row).map_err(|why| wrong(why.to_owned()))?;
        }
        Ok(())
    }

    /// The graph of files, to add to it.
    pub fn graph_mut(&mut self) -> &mut FileGraph {
        Arc::make_mut(&mut self.graph)
    }

    /// Adds what ninja's log says: outputs by their commands. `file` is used in messages.
    ///
    /// # Errors
    /// If it is not well-formed.
    pub fn add_ninja_log(&mut self, file: &str, log: &[u8]) -> Result<(), RulesError> {
        self.ninja_logs.push(NinjaLog::parse(file, log)?);
        Ok(())
    }

    /// Adds what the log of O2DPG's runner says: names of tasks by their processes. `file` is used in messages.
    ///
    /// # Errors
    /// If it names none.
    pub fn add_action_log(&mut self, file: &str, log: &[u8]) -> Result<(), RulesError> {
        self.action_logs.push(ActionLog::parse(file, log)?);
        Ok(())
    }

    /// Adds what Nextflow's trace says: names and directories of tasks. `file` is used in messages.
    ///
    /// # Errors
    /// If it is not well-formed.
    pub fn add_nextflow_trace(&mut self, file: &str, trace: &[u8]) -> Result<(), RulesError> {
        let mut reader =
            csv::ReaderBuilder::new().delimiter(b'\t').flexible(true).from_reader(trace);
        for (at, row) in reader.deserialize().enumerate() {
            let wrong = |message: String| error(file, at + 2, message);
            let task: NextflowTask = row.map_err(|why| wrong(why.to_string()))?;
            self.add(task.into()).map_err(|why| wrong(why.to_owned()))?;
        }
        Ok(())
    }

    /// Adds what a JSON file says: an array of objects with the columns of [`Declared::add_csv`] and needs, a workflow of
    /// O2DPG's runner, a compilation database with outputs, or the tests of CTest.
    ///
    /// # Errors
    /// As there.
    pub fn add_json(&mut self, file: &str, json: &[u8]) -> Result<(), RulesError> {
        let rows = match serde_json::from_slice(json) {
            Ok(Json::Rows(rows)) => rows,
            Ok(Json::Tests(all)) => {
                let built = all.tests.into_iter().filter(|test| !test.command.is_empty());
                built.map(Row::from).collect()
            }
            Ok(Json::Compilations(all)) => {
                // Edges that are phony have none.
                let run = all.into_iter().filter(|of| !of.command.trim().is_empty());
                run.map(Row::from).collect()
            }
            Ok(Json::Workflow(workflow)) => workflow.stages.into_iter().map(Row::from).collect(),
            // What is wrong with it says only the type that it should have been.
            Err(_) => {
                let line = |why: serde_json::Error| error(file, why.line(), why.to_string());
                let value: serde_json::Value = serde_json::from_slice(json).map_err(line)?;
                if !value.is_array() {
                    let message = "neither an array of steps, a workflow with \"stages\", nor \"tests\" of CTest";
                    return Err(error(file, 1, message.to_owned()));
                }
                serde_json::from_slice(json).map_err(line)?
            }
        };
        rows.into_iter()
            .try_for_each(|row| self.add(row).map_err(|why| error(file, 1, why.to_owned())))
    }

    pub(super) fn add(&mut self, row: Row) -> Result<(), &'static str> {
        let given = |value: Option<String>| value.filter(|value| !value.trim().is_empty());
        let name = name_of(row.name.as_bytes()).ok_or("a step needs a name")?;
        let at = self.steps.len();
        let command = match given(row.command) {
            Some(command) => Some(match row.comparison {
                Comparison::Pattern if command.contains('*') => Command::Like(checked(&command)?),
                Comparison::End => Command::End(command.trim().into()),
                _ => Command::Whole(command.trim().into()),
            }),
            None => None,
        };
        let directory = given(row.directory).and_then(|path| directory(&path));
        let directory = directory.map(|pattern| checked(&pattern)).transpose()?;
        let begin_ns = row.begin.map_or(0.0, |seconds| (seconds - BEFORE_S) * 1e9) as u64;
        let process = row.pid.map(|pid| (pid, begin_ns));
        match (&process, &command, &directory) {
            (Some((pid, _)), ..) => self.by_pid.entry(*pid).or_default().push(at),
            (_, Some(Command::Whole(command)), _) => {
                self.by_command.entry(command.clone()).or_default().push(at);
            }
            (_, Some(Command::End(command)), _) => {
                self.by_end.entry(of_text(command).to_vec()).or_default().push(at);
            }
            (_, Some(Command::Like(_)), _) | (_, _, Some(_)) => self.by_pattern.push(at),
            (None, None, None) => return Err("a step needs a pid, a command or a directory"),
        }
        let group = given(row.group).and_then(|group| name_of(group.as_bytes()));
        self.steps.push(DeclaredStep {
            name,
            group,
            needs: row
                .needs
                .map(|all| all.iter().filter_map(|need| name_of(need.as_bytes())).collect()),
            process,
            command,
            directory,
        });
        Ok(())
    }

    /// The step that a program run of this process is. `is_of`: the coordinator of this name itself started it.
    pub(super) fn of(
        &self,
        run: &Run<'_, '_>,
        process: RunBy,
        is_of: impl Fn(&str) -> bool,
    ) -> Option<Named> {
        if self.is_empty() {
            return None;
        }
        let named =
            |name, group| Named { name, group, by: NamedBy::Table, coordinator: String::new() };
        if is_of(O2DPG)
            && let Some(task) =
                self.action_logs.iter().find_map(|log| log.task(process.own_pid, process.unix_ns))
        {
            return Some(named(task.name.clone(), task.group.clone()));
        }
        // Of a shell, the text that it was given, or all of its command line.
        let lines = [run.call.text.unwrap_or(run.line()), run.line()];
        let lines = lines.map(|line| line[..line.len().min(ARGUMENTS_MAX)].trim_ascii());
        // Of a long command, only the beginning is recorded.
        let is_cut = !run.exec.argv.ends_with(b"\0");
        let RunBy { pid, unix_ns, .. } = process;
        let of_pid = self.by_pid.get(&pid).into_iter().flatten().rev();
        let of_command = lines.iter().filter_map(|line| self.by_command.get(*line)).flatten();
        let of_cut = is_cut.then(|| self.by_command.iter()).into_iter().flatten();
        let of_cut =
            of_cut.filter(|(command, _)| lines.iter().any(|line| command.starts_with(line)));
        let of_cut = of_cut.flat_map(|(_, at)| at);
        let of_end = run.call.text.filter(|_| is_of(SNAKEMAKE));
        let of_end = of_end.and_then(|text| self.by_end.get(of_text(text))).into_iter().flatten();
        // The same command may be that of steps in several directories, and one may be in any.
        let rank = |step: &DeclaredStep| {
            let is_pattern = !matches!(step.command, Some(Command::Whole(_) | Command::End(_)));
            (step.process.is_none(), step.directory.is_none(), is_pattern)
        };
        let fitting = of_pid.chain(of_command).chain(of_cut).chain(of_end).chain(&self.by_pattern);
        let mut best: Option<&DeclaredStep> = None;
        let mut is_one = true;
        for step in fitting.map(|at| &self.steps[*at]) {
            if !lines.iter().any(|line| step.holds(line, is_cut, run.exec.cwd, (pid, unix_ns))) {
                continue;
            }
            match best {
                Some(known) if rank(known) < rank(step) => {}
                // Of patterns and pids, the first one counts; commands that are equal are told apart by nothing.
                Some(known) if rank(known) == rank(step) => {
                    let (no_process, _, is_pattern) = rank(step);
                    is_one &= !no_process || is_pattern || known.name == step.name;
                }
                _ => (best, is_one) = (Some(step), true),
            }
        }
        match best.filter(|_| is_one) {
            Some(step) => Some(named(step.name.clone(), step.group.clone())),
            None => {
                let command = run.call.text?;
                let output = self.ninja_logs.iter().find_map(|log| log.output(command))?;
                // As of an entry of a compilation database.
                Some(named(output.to_owned(), program(command).map(text)))
            }
        }
    }
}

/// Seconds by which the clock of the table may be behind, as its times are written after the start or rounded.
const BEFORE_S: f64 = 1.0;

impl DeclaredStep {
    fn holds(&self, line: &[u8], is_cut: bool, cwd: &[u8], (pid, ns): (i32, u64)) -> bool {
        let command = match &self.command {
            None => true,
            Some(Command::Whole(whole)) => whole == line || is_cut && whole.starts_with(line),
            Some(Command::End(end)) => line.ends_with(end),
            Some(Command::Like(pattern)) => pattern.matches(line),
        };
        command
            && self.directory.as_ref().is_none_or(|pattern| pattern.matches(cwd))
            && self.process.is_none_or(|(of, from_ns)| of == pid && from_ns <= ns)
    }
}

impl Row {
    /// A step whose command is given to a shell after preparations.
    pub(super) fn of_shell(name: String, group: String, command: String) -> Self {
        Self {
            name,
            group: Some(group),
            pid: None,
            begin: None,
            command: Some(command),
            directory: None,
            needs: None,
            comparison: Comparison::End,
        }
    }
}

impl From<Compilation> for Row {
    fn from(of: Compilation) -> Self {
        Self {
            name: of.output,
            // As the rules for ninja have it: outputs have nothing in common.
            group: program(of.command.as_bytes()).map(text),
            pid: None,
            begin: None,
            command: Some(of.command),
            directory: Some(of.directory),
            needs: None,
            comparison: Comparison::Whole,
        }
    }
}

impl From<Test> for Row {
    fn from(test: Test) -> Self {
        let directory =
            test.properties.iter().find(|property| property.name == "WORKING_DIRECTORY");
        Self {
            name: test.name,
            group: None,
            pid: None,
            begin: None,
            command: Some(test.command.join(" ")),
            directory: directory.and_then(|property| Some(property.value.as_str()?.to_owned())),
            needs: None,
            comparison: Comparison::Whole,
        }
    }
}

impl From<NextflowTask> for Row {
    fn from(task: NextflowTask) -> Self {
        // `PROCESS (tag)`; a process within a workflow is `WORKFLOW:PROCESS`.
        let process = task.name.split(" (").next().unwrap_or_default().to_owned();
        Self {
            group: Some(process),
            name: task.name,
            pid: None,
            begin: None,
            command: None,
            directory: Some(format!("*/{}*", task.hash)),
            needs: None,
            comparison: Comparison::Whole,
        }
    }
}

impl From<Stage> for Row {
    fn from(stage: Stage) -> Self {
        Self {
            group: group_of(&stage.name),
            pid: None,
            begin: None,
            directory: stage.cwd,
            needs: Some(stage.needs),
            command: Some(stage.cmd),
            name: stage.name,
            comparison: Comparison::Whole,
        }
    }
}

/// A pattern for a directory: a relative one is the end of a path. `None` if it may be any.
fn directory(path: &str) -> Option<String> {
    let relative = path.trim_end_matches('/');
    let relative = relative.strip_prefix("./").unwrap_or(relative);
    Some(match relative {
        "" if path.starts_with('/') => "/".to_owned(),
        "" | "." => return None,
        absolute if absolute.starts_with(['/', '*']) => absolute.to_owned(),
        relative => format!("*/{relative}"),
    })
}

fn checked(pattern: &str) -> Result<Pattern, &'static str> {
    let pattern = Pattern::new(pattern);
    if pattern.is_too_long() { Err(TOO_LONG) } else { Ok(pattern) }
}

fn error(file: &str, line: usize, message: String) -> RulesError {
    RulesError { name: file.to_owned(), line, column: 1, message }
}
