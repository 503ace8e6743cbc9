//! The command line: a single definition, from which help, man pages and completions are generated.

mod advise;
mod compare;
mod csv;
mod fleet;
mod gantt;
mod import;
mod inspect;
mod libs;
mod parse;
mod report;
mod tables;
mod with;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use proctrace_recorder::args::{
    BrokerArgs, CheckArgs, DoctorArgs, DumpArgs, MarkArgs, RecordArgs, TopArgs,
};
pub(crate) use proctrace_recorder::args::{DEFAULT_TRACE, amount, parse_duration};

pub(crate) use self::advise::AdviseArgs;
pub(crate) use self::compare::{
    Annotations, DiffArgs, DiffFormat, GateAction, GateArgs, GateOptions, GateRunArgs, MetricsArgs,
    MetricsFormat,
};
pub(crate) use self::csv::CsvArgs;
pub(crate) use self::fleet::{
    AboutArgs, CompactArgs, Engine, FleetArgs, RecordSummaryArgs, SummarizeArgs,
};
pub(crate) use self::import::{ImportArgs, ImportLog, ImportOutput};
pub(crate) use self::inspect::{
    InspectFormat, PsArgs, PsOrder, ShowArgs, TreeArgs, TreeBy, TreeOrder,
};
pub(crate) use self::libs::{LibsAction, LibsArgs, Tried, TryArgs};
pub(crate) use self::report::{
    CeilingArgs, ClassifyArgs, ReportArgs, RulesArgs, SectionFormat, SeriesArgs, StartupArgs,
    TimeArgs,
};
pub(crate) use self::tables::{ExportArgs, QueryArgs, RowsFormat, StackValue, TablesFormat};
pub(crate) use self::with::With;

/// What did this job really run, and what did it cost?
///
/// proctrace records every fork, exec, exit and failed file look-up of a command and all its
/// descendants, with exact CPU accounting, and shows what ran, what it cost and what was wasted.
#[derive(Debug, Parser)]
#[command(
    name = "proctrace",
    version,
    max_term_width = 100,
    after_help = "Start with: sudo proctrace record -- COMMAND, then: proctrace report"
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    // Variants with arguments are documented on their structs.
    Record(Box<With<RecordArgs, RecordSummaryArgs>>),
    Top(With<TopArgs, RulesArgs>),
    Report(ReportArgs),
    Show(ShowArgs),
    Tree(TreeArgs),
    Ps(PsArgs),
    Query(QueryArgs),
    Export(ExportArgs),
    Summarize(SummarizeArgs),
    Compact(CompactArgs),
    Fleet(FleetArgs),
    Diff(DiffArgs),
    Gate(GateArgs),
    Metrics(MetricsArgs),
    Series(SeriesArgs),
    Startup(StartupArgs),
    Libs(LibsArgs),
    Advise(AdviseArgs),
    Check(With<CheckArgs, CeilingArgs>),
    Classify(ClassifyArgs),
    Import(ImportArgs),
    Dump(With<DumpArgs, CeilingArgs>),
    Mark(MarkArgs),
    Broker(BrokerArgs),
    Doctor(DoctorArgs),
    /// Print shell completions.
    #[command(hide = true)]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the man pages.
    #[command(hide = true)]
    Man {
        /// Output directory.
        directory: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;
    use proctrace_recorder::args::screen;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_is_shown_once_in_80_columns() {
        let mut definition = Cli::command();
        definition.build();
        let known: BTreeSet<&str> =
            definition.get_subcommands().map(clap::Command::get_name).collect();
        let (short, long) = (screen(&definition, false), screen(&definition, true));
        let shown: Vec<&str> = long
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
            .filter(|word| known.contains(word))
            .collect();
        assert_eq!(shown.len(), known.len(), "{long}");
        assert_eq!(shown.into_iter().collect::<BTreeSet<_>>(), known);
        for line in short.lines().chain(long.lines()) {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(short.lines().count() <= 48);
    }
}
