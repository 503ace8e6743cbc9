//! Places where advice is taken: the lines of scripts that start the processes it is about.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proctrace_classify::is_shell;
use proctrace_findings::{Advised, ScriptLine};
use proctrace_overview::details::calls::each_call;
use proctrace_recording::Recording;
use proctrace_recording::error::AnalysisError;
use proctrace_replay::{Body, Exec};
use proctrace_wire::escape::to_text;

use super::counter::{base, is_of_tool};

/// Characters of a line that are shown; longer ones are not changed.
const LINE_MAX: usize = 200;
/// Arguments that are looked for in a script.
const ARGUMENTS_MAX: usize = 64;
/// Separators of words of a shell, as far as names of commands and plain arguments are concerned.
const BETWEEN: &str = " \t;|&()<>\"'$`{}=";
/// Characters that end a command.
const ENDS: [char; 6] = [';', '|', '&', ')', '>', '<'];
/// Words after which the next one is the name of a command.
const LEADS: [&str; 16] = [
    "!", "do", "elif", "else", "env", "exec", "if", "nice", "nohup", "sudo", "then", "time",
    "timeout", "until", "while", "xargs",
];
/// Options of shells that have a word of their own.
const WITH_WORD: [&str; 4] = ["-o", "+o", "--rcfile", "--init-file"];

/// An exec: what ran, where, and with which arguments.
struct Ran {
    time_ns: u64,
    directory: String,
    argv: Vec<String>,
    /// True if these are all of the arguments.
    is_whole: bool,
    /// Number of words that the kernel has put before those of a script, to run it by its interpreter.
    before: usize,
}

impl Ran {
    fn of(exec: &Exec) -> Self {
        let argv: Vec<String> =
            exec.argv.iter().take(ARGUMENTS_MAX).map(|word| to_text(word).into_owned()).collect();
        let script = to_text(&exec.path).into_owned();
        let is_script = |word: &String| base(word) == base(&script);
        let before = exec.interpreter.as_ref().and_then(|_| argv.iter().position(is_script));
        Self {
            time_ns: exec.record.head.time_ns,
            directory: to_text(&exec.cwd).into_owned(),
            before: before.unwrap_or(0),
            is_whole: !exec.argv_truncated && exec.argv.len() <= ARGUMENTS_MAX,
            argv,
        }
    }

    /// The words with which it was started.
    fn own(&self) -> &[String] {
        &self.argv[self.before..]
    }
}

/// A process whose start is looked for, and the run of the program that started it.
type Wanted = (usize, Option<(usize, u64)>);

/// Adds to each piece of advice the line of the script that starts what it is about, and what that line becomes if the change
/// can be written down. Changes of command lines that need quotes are left out: how they were written is not known. `read`
/// returns the text of a script, if it is there and as it was when it was recorded.
///
/// A line is known if the process was started by a shell with a script, and if one line of the script has the name of the
/// program and more of its arguments than any other line.
///
/// # Errors
/// The trace cannot be read.
pub fn places(
    recording: &Recording,
    trace: &Path,
    advised: &mut Advised,
    mut read: impl FnMut(&Path) -> Option<String>,
) -> Result<(), AnalysisError> {
    // The process that is started, and the run of the program that starts it.
    let wanted: Vec<Option<Wanted>> = advised
        .advice
        .iter()
        .map(|advice| {
            let at = advice.started? as usize;
            let run = recording.processes().get(at)?.spawned_in();
            let run = run.and_then(|run| recording.runs().get(run as usize));
            Some((at, run.map(|run| (run.process as usize, run.time_ns))))
        })
        .collect();
    let mut first: BTreeMap<usize, Ran> = BTreeMap::new();
    let mut starters: BTreeMap<(usize, u64), Ran> = BTreeMap::new();
    let known: BTreeSet<usize> = wanted
        .iter()
        .flatten()
        .flat_map(|(child, by)| [Some(*child), by.map(|(process, _)| process)])
        .flatten()
        .collect();
    if known.is_empty() {
        return Ok(());
    }
    let children: BTreeSet<usize> = wanted.iter().flatten().map(|(child, _)| *child).collect();
    let by: BTreeSet<(usize, u64)> = wanted.iter().flatten().filter_map(|(_, by)| *by).collect();
    each_call(
        recording,
        trace,
        |process| known.contains(&process),
        |_, _| (),
        |process, event| {
            let Body::Exec(exec) = event.body else { return };
            let run = (process, exec.record.head.time_ns);
            if by.contains(&run) {
                starters.insert(run, Ran::of(&exec));
            }
            let is_earlier = |known: &Ran| run.1 < known.time_ns;
            if children.contains(&process) && first.get(&process).is_none_or(is_earlier) {
                first.insert(process, Ran::of(&exec));
            }
        },
    )?;
    for (advice, wanted) in advised.advice.iter_mut().zip(&wanted) {
        let Some((child, by)) = wanted else { continue };
        let Some(first) = first.get(child).filter(|ran| !ran.own().is_empty()) else { continue };
        advice.change = advice.proposed.as_deref().and_then(|line| as_written(line, first));
        let script = by.and_then(|by| starters.get(&by)).and_then(script_of);
        let Some((path, file)) = script else { continue };
        let found = read(&path).and_then(|text| line_that_starts(&text, first.own()));
        advice.place = found.map(|(line, text)| ScriptLine {
            becomes: advice
                .change
                .as_deref()
                .filter(|_| text.chars().count() <= LINE_MAX)
                .and_then(|change| edited(&text, first.own(), change)),
            text: text.chars().take(LINE_MAX).collect(),
            file,
            line,
        });
    }
    Ok(())
}

/// A changed command line as it is written in a script: without what the kernel has put before its words, and with the program as
/// it was named. None if a word needs quotes. One of another program is as it was.
fn as_written(change: &str, ran: &Ran) -> Option<String> {
    let own = change.splitn(ran.before + 1, ' ').nth(ran.before).unwrap_or(change);
    let (name, rest) = own.split_once(' ').unwrap_or((own, ""));
    let (program, arguments) = ran.own().split_first()?;
    if base(name) != base(program) {
        return Some(change.to_owned());
    }
    let is_plain = |word: &String| {
        let plain = |letter: char| letter.is_alphanumeric() || "-_./:=,+@%^".contains(letter);
        !word.is_empty() && word.chars().all(plain)
    };
    let is_known = ran.is_whole && arguments.iter().all(is_plain);
    is_known.then(|| format!("{program} {rest}").trim_end().to_owned())
}

/// The script of a user that a shell ran: its path, and how the shell was given it.
fn script_of(ran: &Ran) -> Option<(PathBuf, String)> {
    let mut words = ran.argv.iter();
    if !is_shell(base(words.next()?)) || is_of_tool(&ran.argv.join(" ")) {
        return None;
    }
    while let Some(word) = words.next() {
        if WITH_WORD.contains(&&**word) {
            words.next();
        } else if !word.starts_with(['-', '+']) {
            return Some((Path::new(&ran.directory).join(word), word.clone()));
        } else if !word.starts_with("--") && word.contains(['c', 's']) {
            // -c and -s run no script.
            return None;
        } else if !word.starts_with("--") && word.ends_with('o') {
            words.next();
        }
    }
    None
}

/// The only line, with its number, that has the name of a program and most of its arguments; the name alone counts where a command is
/// expected.
fn line_that_starts(script: &str, argv: &[String]) -> Option<(u64, String)> {
    let (name, arguments) = argv.split_first()?;
    let mut best: Option<(usize, u64, &str)> = None;
    let mut is_only = false;
    for (number, line) in (1..).zip(script.lines()) {
        let line = line.trim();
        if line.starts_with('#') || !named(line, name).any(|_| true) {
            continue;
        }
        let words: BTreeSet<&str> = words(line).map(|(_, word)| word).collect();
        let has = arguments.iter().filter(|argument| words.contains(argument.as_str())).count();
        let is_command = named(line, name).any(|(begins, _)| is_command(&line[..begins]));
        if has == 0 && !is_command {
            continue;
        }
        let score = 2 * has + usize::from(after_command(line, argv).is_some());
        match best {
            Some((most, _, _)) if most > score => {}
            Some((most, _, _)) if most == score => is_only = false,
            _ => {
                best = Some((score, number, line));
                is_only = true;
            }
        }
    }
    best.filter(|_| is_only).map(|(_, number, line)| (number, line.to_owned()))
}

/// Beginning and end of each occurrence of a program's name in a line.
fn named<'a>(line: &'a str, name: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    let is_named = move |(_, word): &(usize, &str)| base(word) == base(name);
    words(line).filter(is_named).map(|(begins, word)| (begins, begins + word.len()))
}

/// Returns whether a command is expected behind this part of a line.
fn is_command(before: &str) -> bool {
    let before = before.trim_end();
    let last = before.rsplit([' ', '\t']).next().unwrap_or("");
    before.is_empty() || before.ends_with([';', '|', '&', '(', '{', '`']) || LEADS.contains(&last)
}

/// Ends, in a line, of the program's name and of the command, for a command with these arguments and no others.
fn after_command(line: &str, argv: &[String]) -> Option<(usize, usize)> {
    let (name, arguments) = argv.split_first()?;
    let arguments: String = arguments.iter().map(|word| format!(" {word}")).collect();
    named(line, name).find_map(|(_, ends)| {
        let rest = line[ends..].strip_prefix(&*arguments)?;
        let next = rest.trim_start();
        // "2> log" is no argument.
        let next = next.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let is_end = next.is_empty() && rest.trim_start().is_empty() || next.starts_with(ENDS);
        let has_space =
            rest.is_empty() || !rest.starts_with(|letter: char| letter.is_alphanumeric());
        (is_end && has_space).then_some((ends, line.len() - rest.len()))
    })
}

/// The words of a line of a script, with where they begin.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    line.split(|letter| BETWEEN.contains(letter)).filter_map(move |word| {
        let begins = at;
        // All separators are one byte long.
        at += word.len() + 1;
        (!word.is_empty()).then_some((begins, word))
    })
}

/// The line with the changed command, if it is one of the same program, and the line has the command as it was.
fn edited(line: &str, argv: &[String], change: &str) -> Option<String> {
    let (name, after) = change.split_once(' ')?;
    if base(name) != base(argv.first()?) {
        return None;
    }
    let (program, ends) = after_command(line, argv)?;
    Some(format!("{} {after}{}", &line[..program], &line[ends..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    const SCRIPT: &str = "#!/bin/sh\n# make all\nset -e\n\tif ! make -C lib all; then exit 1; fi\n\
                      make -C tests all\nfor f in *; do gzip \"$f\"; done\nx=$(date +%F)\n";

    #[test]
    fn a_line_is_found_by_its_words() {
        let at = |line: &str| line_that_starts(SCRIPT, &argv(line)).map(|(number, _)| number);
        assert_eq!(at("make -C lib all"), Some(4));
        assert_eq!(at("/usr/bin/make -C tests all"), Some(5));
        assert_eq!(at("gzip a.txt"), Some(6));
        assert_eq!(at("date +%F"), Some(7));
        let script = "./configure\nmake\nmake test\nmake install > log\n";
        let at = |line: &str| line_that_starts(script, &argv(line)).map(|(number, _)| number);
        assert_eq!((at("make"), at("make test"), at("make install")), (Some(2), Some(3), Some(4)));
        let at = |line: &str| line_that_starts(SCRIPT, &argv(line)).map(|(number, _)| number);
        let script = "make clean && make\nMAKE=make\necho 'make failed'\n";
        assert_eq!(line_that_starts(script, &argv("make")).map(|(number, _)| number), Some(1));
        let made = edited("make clean && make", &argv("make"), "make -j2");
        assert_eq!(made.as_deref(), Some("make clean && make -j2"));
        let chain = edited("nice make all", &argv("nice make all"), "make -j2 all");
        assert_eq!(chain, None);
        // Two lines say as much of it, none does.
        assert_eq!(at("make -C other all"), None);
        assert_eq!(at("cc -c x.c"), None);
        assert_eq!(line_that_starts(SCRIPT, &[]), None);
    }

    #[test]
    fn a_line_is_changed_where_it_has_the_command_as_it_was() {
        let edit = |line: &str| edited(line, &argv("make all"), "make -j2 all");
        assert_eq!(
            edit("cd x && make all || exit").as_deref(),
            Some("cd x && make -j2 all || exit")
        );
        assert_eq!(edit("make all").as_deref(), Some("make -j2 all"));
        assert_eq!(edit("make x; make all;").as_deref(), Some("make x; make -j2 all;"));
        assert_eq!(edit("make all 2> log").as_deref(), Some("make -j2 all 2> log"));
        assert_eq!(edit("make all clean"), None);
        assert_eq!(edit("make allx"), None);
        assert_eq!(edit("make $what"), None);
        assert_eq!(edit("cmake all"), None);
        let found = argv("/opt/x/bin/snakemake -c1");
        let changed = edited("snakemake -c1 || exit", &found, "/opt/x/bin/snakemake -c2");
        assert_eq!(changed.as_deref(), Some("snakemake -c2 || exit"));
        assert_eq!(edit("ä=ü make all").as_deref(), Some("ä=ü make -j2 all"));
    }

    fn ran(line: &str, before: usize) -> Ran {
        Ran { time_ns: 0, directory: "/w".to_owned(), argv: argv(line), is_whole: true, before }
    }

    #[test]
    fn a_command_is_written_as_it_was() {
        let written = |change: &str, line: &str, before| as_written(change, &ran(line, before));
        let configure = written("bash ./configure -C", "/bin/sh ./configure", 1);
        assert_eq!(configure.as_deref(), Some("./configure -C"));
        // By /usr/bin/env.
        let by_env = written("python3 x a -c2", "/usr/bin/env python3 /b/x a", 2);
        assert_eq!(by_env.as_deref(), Some("python3 x a -c2"));
        let cmake = written("cmake --build . -j2", "/opt/bin/cmake --build .", 0);
        assert_eq!(cmake.as_deref(), Some("/opt/bin/cmake --build . -j2"));
        // Of another program, as it is.
        let path = written("export PATH=\"$(pyenv prefix)/bin:$PATH\"", "python3 x", 0);
        assert_eq!(path.as_deref(), Some("export PATH=\"$(pyenv prefix)/bin:$PATH\""));
        let mut quoted = ran("make x", 0);
        quoted.argv[1] = "CFLAGS=-O2 -g".to_owned();
        assert_eq!(as_written("make -j2 CFLAGS=-O2 -g", &quoted), None);
        let cut = Ran { is_whole: false, ..ran("make x", 0) };
        assert_eq!(as_written("make -j2 x", &cut), None);
    }

    #[test]
    fn scripts_of_shells_are_found() {
        let of = |line: &str| script_of(&ran(line, 0));
        assert_eq!(of("sh ./job.sh x"), Some((PathBuf::from("/w/./job.sh"), "./job.sh".into())));
        assert_eq!(of("/bin/bash -e -x /a/b y"), Some((PathBuf::from("/a/b"), "/a/b".into())));
        for line in ["bash -euo pipefail a", "bash --norc --posix a", "bash -o pipefail a"] {
            assert_eq!(of(line).unwrap().1, "a", "{line}");
        }
        for line in [
            "sh -c make",
            "sh -ec make",
            "bash",
            "python3 job.py",
            "sh -s x",
            "",
            "sh ./libtool x",
            "bash /usr/bin/ldd x",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
