//! What each command reads, writes and starts, by its arguments.

#[cfg(feature = "analyse")]
use std::path::Path;
use std::path::PathBuf;

use crate::args::{Command, ImportArgs, ImportLog, TopArgs};
#[cfg(feature = "analyse")]
use crate::args::{
    DEFAULT_TRACE, DiffArgs, Engine, ExportArgs, FleetArgs, GateAction, GateArgs, LibsArgs,
    QueryArgs, ReportArgs, RulesArgs, SeriesArgs, ShowArgs, SummarizeArgs,
};

/// What a command needs beyond what all do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Files and directories.
    pub(crate) reads: Vec<PathBuf>,
    /// What it reads cannot be told from the arguments.
    pub(crate) reads_all: bool,
    /// Files that are written.
    pub(crate) files: Vec<PathBuf>,
    /// Directories that are created or filled.
    pub(crate) trees: Vec<PathBuf>,
    /// Programs that are run.
    pub(crate) executes: Vec<PathBuf>,
    /// Where it shows something.
    pub(crate) terminals: Vec<PathBuf>,
}

/// None for commands that run others, which may do anything.
pub(super) fn of(command: &Command) -> Option<Needs> {
    Some(match command {
        Command::Record(_) | Command::Broker(_) | Command::Doctor(_) => return None,
        #[cfg(feature = "analyse")]
        Command::Startup(_) => return None,
        #[cfg(feature = "analyse")]
        Command::Report(args) => report(args),
        #[cfg(feature = "analyse")]
        Command::Show(args) => show(args),
        #[cfg(feature = "analyse")]
        Command::Tree(args) => trace(&args.trace, &args.rules),
        #[cfg(feature = "analyse")]
        Command::Ps(args) => trace(&args.trace, &args.rules),
        #[cfg(feature = "analyse")]
        Command::Query(args) => query(args),
        #[cfg(feature = "analyse")]
        Command::Export(args) => export(args),
        #[cfg(feature = "analyse")]
        Command::Summarize(args) => summarize(args),
        #[cfg(feature = "analyse")]
        Command::Compact(args) => {
            let directory = args.directory.clone();
            Needs { reads: vec![directory.clone()], trees: vec![directory], ..Needs::default() }
        }
        #[cfg(feature = "analyse")]
        Command::Fleet(args) => return fleet(args),
        #[cfg(feature = "analyse")]
        Command::Diff(args) => diff(args),
        #[cfg(feature = "analyse")]
        Command::Gate(args) => return gate(args),
        #[cfg(feature = "analyse")]
        Command::Metrics(args) => trace(&args.file, &args.rules),
        #[cfg(feature = "analyse")]
        Command::Series(args) => series(args),
        #[cfg(feature = "analyse")]
        Command::Libs(args) => return libs(args),
        #[cfg(feature = "analyse")]
        Command::Advise(args) => {
            let more = args.cures.iter().chain(&args.against).cloned();
            Needs {
                // The scripts of the job are where the trace says.
                reads_all: args.against.is_none(),
                ..reading(more.chain([args.trace.clone()]), &args.rules)
            }
        }
        #[cfg(feature = "analyse")]
        Command::Check(args) => Needs { reads: vec![args.trace.clone()], ..Needs::default() },
        #[cfg(feature = "analyse")]
        Command::Classify(args) => trace(&args.trace, &args.rules),
        Command::Import(args) => import(args),
        Command::Top(args) => top(args),
        Command::Dump(args) => Needs { reads: vec![args.trace.clone()], ..Needs::default() },
        Command::Mark(_) | Command::Completions { .. } => Needs::default(),
        Command::Man { directory } => Needs { trees: vec![directory.clone()], ..Needs::default() },
    })
}

/// A trace and files of rules.
#[cfg(feature = "analyse")]
fn trace(path: &Path, rules: &RulesArgs) -> Needs {
    reading([path.to_owned()], rules)
}

#[cfg(feature = "analyse")]
fn reading(paths: impl IntoIterator<Item = PathBuf>, rules: &RulesArgs) -> Needs {
    let rules = rules.rules.iter().map(PathBuf::from);
    Needs { reads: paths.into_iter().chain(rules).collect(), ..Needs::default() }
}

/// `libs` looks at files as the dynamic linker did, wherever that was, and asks this machine's.
/// None for a trial, which runs a command.
#[cfg(feature = "analyse")]
fn libs(args: &LibsArgs) -> Option<Needs> {
    if args.action.is_some() {
        return None;
    }
    Some(Needs {
        reads: vec![args.trace.clone()],
        reads_all: true,
        trees: args.farm.iter().cloned().collect(),
        executes: crate::libs::path_of_linker().map(PathBuf::from).into_iter().collect(),
        ..Needs::default()
    })
}

#[cfg(feature = "analyse")]
fn report(args: &ReportArgs) -> Needs {
    Needs {
        // The directory of these logs is in the trace.
        reads_all: args.events_log.is_some(),
        files: args.gantt.iter().chain(&args.html).cloned().collect(),
        trees: args.out.iter().cloned().collect(),
        ..trace(&args.trace, &args.rules)
    }
}

#[cfg(feature = "analyse")]
fn show(args: &ShowArgs) -> Needs {
    // A trace may be the only argument.
    let paths = args.who.iter().map(PathBuf::from);
    reading(paths.chain([args.trace.clone(), DEFAULT_TRACE.into()]), &args.rules)
}

#[cfg(feature = "analyse")]
fn query(args: &QueryArgs) -> Needs {
    let paths = args.arguments.iter().map(PathBuf::from).chain(args.sql_file.clone());
    Needs {
        files: args.output.iter().cloned().collect(),
        ..reading(paths.chain([DEFAULT_TRACE.into()]), &args.rules)
    }
}

#[cfg(feature = "analyse")]
fn export(args: &ExportArgs) -> Needs {
    let mut needs = reading(args.traces.iter().cloned(), &args.rules);
    if args.output != Path::new("-") {
        // A directory, a file in one, or two.
        needs.files.extend([args.output.clone(), args.output.with_extension("json")]);
        if !args.output.exists() || args.output.is_dir() {
            needs.trees.push(args.output.clone());
        }
    }
    needs
}

#[cfg(feature = "analyse")]
fn summarize(args: &SummarizeArgs) -> Needs {
    let paths = args.traces.iter().chain(&args.about.site_key).cloned();
    Needs { trees: vec![args.output.clone()], ..reading(paths, &args.rules) }
}

/// Other engines are programs of their own.
#[cfg(feature = "analyse")]
fn fleet(args: &FleetArgs) -> Option<Needs> {
    if args.engine != Engine::Polars {
        return None;
    }
    Some(Needs { reads: args.directory.iter().cloned().collect(), ..Needs::default() })
}

#[cfg(feature = "analyse")]
fn diff(args: &DiffArgs) -> Needs {
    let alone = args.before_file.iter().chain(&args.after_file);
    let paths = alone.chain(&args.before).chain(&args.after).cloned();
    Needs { files: args.waterfall.iter().cloned().collect(), ..reading(paths, &args.rules) }
}

#[cfg(feature = "analyse")]
fn gate(args: &GateArgs) -> Option<Needs> {
    Some(match &args.action {
        Some(GateAction::Run(_)) => return None,
        Some(GateAction::Explain { .. }) => Needs::default(),
        Some(GateAction::Init { files, rules }) => reading(files.iter().cloned(), rules),
        None => {
            let options = &args.gate;
            let budget = options.budget.clone().unwrap_or(crate::gate::DEFAULT_BUDGET.into());
            let paths = args.candidates.iter().chain(&options.baseline).cloned().chain([budget]);
            let outputs = options.junit.iter().chain(&options.json).chain(&options.markdown);
            Needs { files: outputs.cloned().collect(), ..reading(paths, &options.rules) }
        }
    })
}

#[cfg(feature = "analyse")]
fn series(args: &SeriesArgs) -> Needs {
    Needs {
        reads: crate::series::paths(args),
        reads_all: !args.events_log.is_empty(),
        trees: args.out.iter().cloned().collect(),
        ..Needs::default()
    }
}

fn import(args: &ImportArgs) -> Needs {
    let (reads, output) = match &args.log {
        ImportLog::Strace(args) => (args.logs.clone(), &args.output.output),
        ImportLog::Prmon(args) => (vec![args.text.clone()], &args.output.output),
    };
    // If the output is a device, the records are kept elsewhere until all are known.
    let elsewhere = output.exists() && !output.is_file();
    let trees = elsewhere.then(std::env::temp_dir).into_iter().collect();
    Needs { reads, trees, files: vec![output.clone()], ..Needs::default() }
}

fn top(args: &TopArgs) -> Needs {
    let mut needs = Needs::default();
    // Without a name, all in the current directory are looked at.
    needs.reads.push(args.trace.clone().unwrap_or(".".into()));
    #[cfg(feature = "analyse")]
    needs.reads.extend(args.rules.rules.iter().map(PathBuf::from));
    needs.terminals.extend(["/dev/tty", "/dev/pts", "/dev/console"].map(PathBuf::from));
    needs
}
