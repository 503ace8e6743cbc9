//! The list of commands, each with the question that it answers: what a program prints without arguments, and for `--help`.

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
    ("help", "the help of a command, as COMMAND --help"),
];

/// What stands before the name of the program, what after it, and what that does.
const EXAMPLES: [(&str, &str, &str); 3] = [
    ("sudo ", "record -- make -j4", "record a build"),
    ("", "report", "what it did"),
    ("", "advise", "what to change"),
];

/// True for a command of one of the programs.
pub(crate) fn is_command(word: &str) -> bool {
    GROUPS.iter().flat_map(|(_, answers)| *answers).any(|(command, _)| *command == word)
}

/// Returns the screen of a program: those of the commands that it has. `all` adds what is seldom needed.
pub fn screen(definition: &clap::Command, all: bool) -> String {
    let name = definition.get_name();
    let has = |command: &str| command == "help" || definition.find_subcommand(command).is_some();
    let mut text = String::from("What did this job really run, and what did it cost?\n");
    if all {
        text.push_str(
            "\nproctrace records every fork, exec, exit and failed look-up of a path by a\n\
             command and all its descendants, with exact CPU accounting, and shows what ran,\n\
             what it cost and what was wasted.\n",
        );
    }
    let _ = writeln!(text, "\nUsage: {name} COMMAND [OPTIONS]");
    let set_up = all.then_some(("Set up", SET_UP));
    for (group, answers) in GROUPS.iter().copied().chain(set_up) {
        let mut answers = answers.iter().filter(|(command, _)| has(command)).peekable();
        if answers.peek().is_some() {
            let _ = writeln!(text, "\n{group}");
        }
        for (command, question) in answers {
            let _ = writeln!(text, "  {command:<13}{question}");
        }
    }
    text.push_str("\nExamples\n");
    let width = "sudo  record -- make -j4    ".len() + name.len();
    for (before, command, does) in EXAMPLES {
        if command.split(' ').next().is_some_and(has) {
            let example = format!("{before}{name} {command}");
            let _ = writeln!(text, "  {example:<width$}{does}");
        }
    }
    if all {
        text.push_str("\nOptions\n  -h, --help     the short list of commands, or this one\n");
        text.push_str("  -V, --version  this version\n");
    }
    let _ = match all {
        true => writeln!(text, "\n{name} COMMAND --help: the options of a command."),
        false => {
            writeln!(text, "\n{name} COMMAND --help: its options; --help alone: all commands.")
        }
    };
    text
}
