//! Which command answers which question: what `proctrace` alone prints, and `proctrace --help`.

use std::fmt::Write;

/// A command, and the question that it answers.
type Answer = (&'static str, &'static str);

/// The commands in groups, in the order in which they are used.
const GROUPS: [(&str, &[Answer]); 6] = [
    (
        "Record",
        &[
            ("record", "run a command, and record it and all that it starts"),
            ("top", "watch a recording while it is made"),
            ("mark", "name this moment of the job that is recorded"),
            ("import", "turn a log of strace or prmon into a recording"),
        ],
    ),
    (
        "Look",
        &[
            ("report", "what ran, how it ended, what it cost, what was wasted"),
            ("show", "everything about one process, or about a program"),
            ("tree", "who started whom"),
            ("ps", "what was alive at some time"),
            ("query", "any other question, in SQL"),
            ("check", "is the recording complete and consistent"),
            ("classify", "which rule named which program"),
        ],
    ),
    (
        "Improve",
        &[
            ("advise", "what to change, and what that gains"),
            ("libs", "which directories are searched in vain, and how to avoid it"),
            ("startup", "what it costs to start a command"),
        ],
    ),
    (
        "Compare",
        &[
            ("diff", "what differs between two runs"),
            ("gate", "fail a CI job whose payload became worse"),
            ("series", "1, 2, 4… workers or threads: where does scaling stop"),
            ("metrics", "the figures of a run, by stable names"),
        ],
    ),
    (
        "Hand on",
        &[
            ("export", "files for other tools: Perfetto, flame graphs, Parquet, …"),
            ("dump", "all events as JSON, one per line"),
            ("summarize", "small files of each job, for thousands of jobs"),
            ("compact", "put such files together"),
            ("fleet", "questions about many jobs"),
        ],
    ),
    (
        "Serve",
        &[
            ("doctor", "can this kernel and user record, and if not, what to do"),
            ("broker", "let users record who may not load BPF programs"),
        ],
    ),
];

/// Those that set up a shell.
const SET_UP: &[Answer] = &[
    ("completions", "completions of the command line for bash, zsh, fish, …"),
    ("man", "write the man pages into a directory"),
    ("help", "the help of a command, as `proctrace COMMAND --help`"),
];

const EXAMPLES: [(&str, &str); 3] = [
    ("sudo proctrace record -- make -j4", "record a build"),
    ("proctrace report", "what it did"),
    ("proctrace advise", "what to change"),
];

/// The screen: `all` has also what is seldom needed.
pub(crate) fn screen(all: bool) -> String {
    let mut text = String::from("What did this job really run, and what did it cost?\n");
    if all {
        text.push_str(
            "\nproctrace records every fork, exec, exit and failed look-up of a path by a\n\
             command and all its descendants, with exact CPU accounting, and shows what ran,\n\
             what it cost and what was wasted.\n",
        );
    }
    text.push_str("\nUsage: proctrace COMMAND [OPTIONS]\n");
    let set_up = all.then_some(("Set up", SET_UP));
    for (group, answers) in GROUPS.iter().copied().chain(set_up) {
        let _ = writeln!(text, "\n{group}");
        for (command, question) in answers.iter().filter(|(command, _)| is_built(command)) {
            let _ = writeln!(text, "  {command:<13}{question}");
        }
    }
    text.push_str("\nExamples\n");
    for (command, does) in
        EXAMPLES.iter().filter(|(command, _)| command.split(' ').all(is_built_word))
    {
        let _ = writeln!(text, "  {command:<37}{does}");
    }
    if all {
        text.push_str("\nOptions\n  -h, --help     the short list of commands, or this one\n");
        text.push_str("  -V, --version  this version\n");
    }
    text.push_str(match all {
        true => "\nproctrace COMMAND --help: the options of a command.\n",
        false => "\nproctrace COMMAND --help: its options. proctrace --help: all commands.\n",
    });
    text
}

/// Builds that can only record lack the commands that analyse.
fn is_built(command: &str) -> bool {
    cfg!(feature = "analyse")
        || [
            "record",
            "top",
            "mark",
            "import",
            "dump",
            "doctor",
            "broker",
            "completions",
            "man",
            "help",
        ]
        .contains(&command)
}

fn is_built_word(word: &str) -> bool {
    !["report", "advise"].contains(&word) || is_built(word)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn every_command_is_shown_once_in_80_columns() {
        let mut cli = Cli::command();
        cli.build();
        let known: BTreeSet<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
        let shown: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, answers)| *answers)
            .chain(SET_UP)
            .map(|(command, _)| *command)
            .filter(|command| is_built(command))
            .collect();
        assert_eq!(shown.len(), known.len());
        assert_eq!(shown.into_iter().collect::<BTreeSet<_>>(), known);
        for line in [screen(false), screen(true)].iter().flat_map(|text| text.lines()) {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(screen(false).lines().count() <= 48);
    }
}
