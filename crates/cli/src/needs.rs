//! Needs of each command: what it reads, writes and starts, by its arguments.

use std::path::{Path, PathBuf};

use proctrace_recorder::confine::Needs;

use crate::args::{
    Command, DEFAULT_TRACE, DiffArgs, Engine, ExportArgs, FleetArgs, GateAction, GateArgs,
    ImportArgs, ImportLog, LibsArgs, QueryArgs, ReportArgs, RulesArgs, SeriesArgs, ShowArgs,
    SummarizeArgs,
};

/// Needs of a command; None for commands that run others, which may do anything.
pub(crate) fn of(command: &Command) -> Option<Needs> {
    Some(match command {
        Command::Record(_) | Command::Broker(_) | Command::Doctor(_) => return None,
        Command::Startup(_) => return None,
        Command::Report(args) => report(args),
        Command::Show(args) => show(args),
        Command::Tree(args) => trace(&args.trace, &args.rules),
        Command::Ps(args) => trace(&args.trace, &args.rules),
        Command::Query(args) => query(args),
        Command::Export(args) => export(args),
        Command::Summarize(args) => summarize(args),
        Command::Compact(args) => {
            let directory = args.directory.clone();
            Needs { reads: vec![directory.clone()], trees: vec![directory], ..Needs::default() }
        }
        Command::Fleet(args) => return fleet(args),
        Command::Diff(args) => diff(args),
        Command::Gate(args) => return gate(args),
        Command::Metrics(args) => trace(&args.file, &args.rules),
        Command::Series(args) => series(args),
        Command::Libs(args) => return libs(args),
        Command::Advise(args) => {
            let more = args.cures.iter().chain(&args.against).cloned();
            Needs {
                // The scripts of the job are where the trace says.
                reads_all: args.against.is_none(),
                ..reading(more.chain([args.trace.clone()]), &args.rules)
            }
        }
        Command::Check(args) => Needs::of_check(&args.base),
        Command::Classify(args) => trace(&args.trace, &args.rules),
        Command::Import(args) => import(args),
        Command::Top(args) => {
            let mut needs = Needs::of_top(&args.base);
            needs.reads.extend(args.more.files());
            needs
        }
        Command::Dump(args) => Needs::of_dump(&args.base),
        Command::Mark(_) | Command::Completions { .. } => Needs::default(),
        Command::Man { directory } => Needs::filling(directory),
    })
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

/// A trace and files of rules.
fn trace(path: &Path, rules: &RulesArgs) -> Needs {
    reading([path.to_owned()], rules)
}

fn reading(paths: impl IntoIterator<Item = PathBuf>, rules: &RulesArgs) -> Needs {
    Needs { reads: paths.into_iter().chain(rules.files()).collect(), ..Needs::default() }
}

/// `libs` looks at files as the dynamic linker did, wherever that was, and asks this machine's.
/// None for a trial, which runs a command.
fn libs(args: &LibsArgs) -> Option<Needs> {
    if args.action.is_some() {
        return None;
    }
    Some(Needs {
        reads: vec![args.trace.clone()],
        reads_all: true,
        trees: args.farm.iter().cloned().collect(),
        executes: proctrace_remedies::path_of_linker().into_iter().collect(),
        ..Needs::default()
    })
}

fn report(args: &ReportArgs) -> Needs {
    Needs {
        // The directory of these logs is in the trace.
        reads_all: args.events_log.is_some(),
        files: args.gantt.iter().chain(&args.html).cloned().collect(),
        trees: args.out.iter().cloned().collect(),
        ..trace(&args.trace, &args.rules)
    }
}

fn show(args: &ShowArgs) -> Needs {
    // A trace may be the only argument.
    let paths = args.who.iter().map(PathBuf::from);
    reading(paths.chain([args.trace.clone(), DEFAULT_TRACE.into()]), &args.rules)
}

fn query(args: &QueryArgs) -> Needs {
    let paths = args.arguments.iter().map(PathBuf::from).chain(args.sql_file.clone());
    Needs {
        files: args.output.iter().cloned().collect(),
        ..reading(paths.chain([DEFAULT_TRACE.into()]), &args.rules)
    }
}

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

fn summarize(args: &SummarizeArgs) -> Needs {
    let paths = args.traces.iter().chain(&args.about.site_key).cloned();
    Needs { trees: vec![args.output.clone()], ..reading(paths, &args.rules) }
}

/// Other engines are programs of their own.
fn fleet(args: &FleetArgs) -> Option<Needs> {
    if args.engine != Engine::Polars {
        return None;
    }
    Some(Needs { reads: args.directory.iter().cloned().collect(), ..Needs::default() })
}

fn diff(args: &DiffArgs) -> Needs {
    let alone = args.before_file.iter().chain(&args.after_file);
    let paths = alone.chain(&args.before).chain(&args.after).cloned();
    Needs { files: args.waterfall.iter().cloned().collect(), ..reading(paths, &args.rules) }
}

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

fn series(args: &SeriesArgs) -> Needs {
    Needs {
        reads: crate::series::paths(args),
        reads_all: !args.events_log.is_empty(),
        trees: args.out.iter().cloned().collect(),
        ..Needs::default()
    }
}
