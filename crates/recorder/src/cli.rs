//! The command line of the recorder, which is called by its own name in all help.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use proctrace_recorder::args::{
    BrokerArgs, CheckArgs, DoctorArgs, DumpArgs, MarkArgs, RecordArgs, TopArgs,
};
use proctrace_recorder::program::RECORDER;

/// What did this job really run, and what did it cost?
///
/// proctrace-recorder records every fork, exec, exit and failed file look-up of a command and all its
/// descendants, with exact CPU accounting. proctrace reads what it has recorded.
#[derive(Debug, Parser)]
#[command(
    name = RECORDER,
    version,
    max_term_width = 100,
    after_help = "Start with: sudo proctrace record -- COMMAND"
)]
struct Cli {
    /// What to do.
    #[command(subcommand)]
    command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    // Variants with arguments are documented on their structs.
    Record(Box<RecordArgs>),
    Top(TopArgs),
    Check(CheckArgs),
    Dump(DumpArgs),
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

/// Returns the definition of the command line.
pub(crate) fn definition() -> clap::Command {
    let definition = Cli::command();
    let own: Vec<String> =
        definition.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    renamed(definition, &own)
        .mut_subcommand("record", |record| record.mut_arg("live", |live| live.hide(true)))
        .mut_subcommand("top", |top| {
            let lines = "Interval of the lines; 10s if it, or TIME, is omitted";
            top.long_about(TOP).mut_arg("progress", |progress| progress.help(lines))
        })
}

/// The view in a whole terminal is not here: it is a fifth of a megabyte that no batch job needs.
const TOP: &str = "Watch a recording while it is made, in lines: processes so far and alive, forks per second, CPU \
    time, losses. It reads the growing trace file, so the recorder does no more than without it. In proctrace it shows more, in \
    the whole terminal.";

/// The error of what needs that view.
pub(crate) fn has_no_view() -> clap::Error {
    let text = "--live shows a view that only proctrace has; --progress prints lines\n";
    clap::Error::raw(clap::error::ErrorKind::InvalidValue, text)
}

/// Parses the arguments of this process.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, clap::Error> {
    let mut definition = definition();
    let matches = definition.try_get_matches_from_mut(arguments)?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut definition))?;
    Ok(cli.command)
}

/// Calls a command by this program's name where its texts name one that this program has, too: `proctrace report` stays.
fn renamed(mut command: clap::Command, own: &[String]) -> clap::Command {
    let rename = |text: String| {
        own.iter().fold(text, |text, name| {
            text.replace(&format!("proctrace {name}"), &format!("{RECORDER} {name}"))
        })
    };
    // An override of the usage can be read only where it is rendered.
    let usage = command.clone().render_usage().to_string();
    if let Some(usage) = usage.strip_prefix("Usage: ")
        && usage.starts_with("proctrace ")
    {
        command = command.override_usage(rename(usage.to_owned()));
    }
    if let Some(text) = command.get_long_about().map(ToString::to_string) {
        command = command.long_about(rename(text));
    }
    if let Some(text) = command.get_after_help().map(ToString::to_string) {
        command = command.after_help(rename(text));
    }
    if let Some(text) = command.get_after_long_help().map(ToString::to_string) {
        command = command.after_long_help(rename(text));
    }
    command
        .mut_args(|argument| {
            let (help, long) = (argument.get_help(), argument.get_long_help());
            let (help, long) = (help.map(ToString::to_string), long.map(ToString::to_string));
            let argument = match help {
                Some(text) => argument.help(rename(text)),
                None => argument,
            };
            match long {
                Some(text) => argument.long_help(rename(text)),
                None => argument,
            }
        })
        .mut_subcommands(|command| renamed(command, own))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proctrace_recorder::args::screen;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }

    #[test]
    fn help_calls_it_by_its_name() {
        let mut definition = definition();
        definition.build();
        for command in definition.get_subcommands_mut() {
            let help = command.render_long_help().to_string();
            for name in ["record", "top", "check", "dump", "mark", "broker"] {
                assert!(!help.contains(&format!("proctrace {name}")), "{help}");
            }
        }
        let record = definition.find_subcommand_mut("record").unwrap().render_long_help();
        assert!(record.to_string().contains("Usage: proctrace-recorder record [OPTIONS] [--]"));
    }

    #[test]
    fn every_command_is_shown_once_in_80_columns() {
        let mut definition = definition();
        definition.build();
        let known: BTreeSet<&str> =
            definition.get_subcommands().map(clap::Command::get_name).collect();
        let text = screen(&definition, true);
        let shown: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
            .filter(|word| known.contains(word))
            .collect();
        assert_eq!(shown.len(), known.len(), "{text}");
        assert_eq!(shown.into_iter().collect::<BTreeSet<_>>(), known);
        for line in [screen(&definition, false), text.clone()].iter().flat_map(|text| text.lines())
        {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn every_example_is_understood() {
        let mut definition = definition();
        definition.build();
        let mut examples = 0;
        for command in definition.get_subcommands_mut() {
            let help = command.render_long_help().to_string();
            let lines = help.lines().filter_map(|line| {
                let words = line.trim().trim_start_matches("sudo ").strip_prefix(RECORDER)?;
                line.starts_with("  ").then_some(words)
            });
            for words in lines {
                // What a shell makes of the rest is not ours.
                let words = words.split(['|', ';']).next().unwrap_or_default();
                let words = words.replace("$(pgrep -o httpd)", "1").replace('\'', "");
                let all = [RECORDER].into_iter().chain(words.split_whitespace());
                assert!(parse(all.map(OsString::from)).is_ok(), "{words}");
                examples += 1;
            }
        }
        assert!(examples > 10, "{examples}");
    }

    fn record(arguments: &[&str]) -> Result<Box<RecordArgs>, clap::Error> {
        let all = [RECORDER, "record"].iter().chain(arguments).map(OsString::from);
        parse(all).map(|command| match command {
            Command::Record(args) => args,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn whom_to_record_is_said_once() {
        for good in [
            &["true"][..],
            &["-p", "1", "-p", "2"],
            &["-a", "--duration", "1s"],
            &["--own-cgroup", "true"],
        ] {
            assert!(record(good).is_ok(), "{good:?}");
        }
        for bad in [
            &[][..],
            &["-p", "1", "true"],
            &["-a", "-p", "1"],
            &["--duration", "1s", "true"],
            &["--own-cgroup"],
        ] {
            assert!(record(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_command_keeps_its_own_options() {
        let args = record(&["-q", "make", "-j4", "--", "-o"]).unwrap();
        assert_eq!(args.command(), ["make", "-j4", "--", "-o"]);
    }
}
