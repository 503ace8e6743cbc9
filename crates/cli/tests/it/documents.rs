//! README.md and the pages in docs/ are as they say: README is short, narrow and begins with a picture; links lead to
//! files and headings that exist; messages of docs/troubleshooting.md are in the sources; commands that are shown have the
//! subcommands and options that they name; README's walk-through runs, and prints lines with the labels that are shown.
//!
//! Commands are looked for in blocks of sh and console, in indented blocks, and in phrases of code that begin with
//! `proctrace`. A block with output only is to be marked as text. Left out: docs/decisions, and docs/measured.md, which
//! has commands of their day.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::proctrace;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

const README_LINES: usize = 170;
const README_COLUMNS: usize = 100;
/// Number of first lines of README in one of which an image begins.
const FIRST_LINES: usize = 15;

/// Words before the name of a program that are not part of its command.
const BEFORE_A_PROGRAM: &[&str] = &["sudo", "exec", "do", "if", "then", "else", "while", "!"];

fn repository() -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../..")
}

/// Pages that are checked, README first.
fn pages() -> Vec<Page> {
    let root = repository();
    let own = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"];
    let mut paths: Vec<PathBuf> = own.iter().map(|name| root.join(name)).collect();
    let docs = std::fs::read_dir(root.join("docs")).unwrap();
    let mut docs: Vec<PathBuf> = docs.map(|entry| entry.unwrap().path()).collect();
    docs.retain(|path| path.extension().is_some_and(|it| it == "md"));
    docs.retain(|path| path.file_name().is_some_and(|it| it != "measured.md"));
    docs.sort();
    assert!(docs.len() > 10, "docs/ has only {docs:?}");
    paths.extend(docs);
    paths.iter().map(|path| Page::read(path)).collect()
}

/// Notation by which commands are told from what they print.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Lines of commands.
    Script,
    /// Commands after a prompt, each followed by its output.
    Session,
    /// Code within a sentence or a cell.
    Phrase,
}

struct Code {
    /// The number of the line in which it begins.
    line: usize,
    shown: Shown,
    text: String,
}

/// A page of Markdown, as far as it can be wrong.
struct Page {
    path: PathBuf,
    text: String,
    /// Targets of links and images, with their line.
    links: Vec<(usize, String)>,
    /// The lines of images.
    images: Vec<usize>,
    /// The parts of addresses that GitHub makes of headings.
    anchors: BTreeSet<String>,
    code: Vec<Code>,
}

impl Page {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::of(path, text)
    }

    fn of(path: &Path, text: String) -> Self {
        let mut page = Self {
            path: path.to_owned(),
            text: String::new(),
            links: Vec::new(),
            images: Vec::new(),
            anchors: BTreeSet::new(),
            code: Vec::new(),
        };
        // Headings and blocks that have begun.
        let mut heading: Option<String> = None;
        let mut block: Option<Code> = None;
        for (event, range) in Parser::new_ext(&text, Options::ENABLE_TABLES).into_offset_iter() {
            let line = 1 + text[..range.start].matches('\n').count();
            match event {
                Event::Start(Tag::Link { dest_url, .. }) => {
                    page.links.push((line, dest_url.to_string()));
                }
                Event::Start(Tag::Image { dest_url, .. }) => {
                    page.images.push(line);
                    page.links.push((line, dest_url.to_string()));
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    page.add_anchor(&heading.take().unwrap_or_default());
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    block = shown(&kind).map(|shown| Code { line, shown, text: String::new() });
                }
                Event::End(TagEnd::CodeBlock) => page.code.extend(block.take()),
                Event::Text(part) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&part);
                    }
                    if let Some(block) = &mut block {
                        block.text.push_str(&part);
                    }
                }
                Event::Code(part) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&part);
                    }
                    let text = part.to_string();
                    page.code.push(Code { line, shown: Shown::Phrase, text });
                }
                _ => {}
            }
        }
        page.text = text;
        page
    }

    /// Lower case, without signs, blanks as hyphens; what has occurred before gets a number.
    fn add_anchor(&mut self, heading: &str) {
        let kept = heading.chars().filter(|it| it.is_alphanumeric() || " -_".contains(*it));
        let anchor = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let mut names = std::iter::once(anchor.clone()).chain(numbered);
        let free = names.find(|name| !self.anchors.contains(name)).unwrap();
        self.anchors.insert(free);
    }

    /// Arguments of every call of proctrace that is shown, with the line in which its block begins.
    fn calls(&self) -> Vec<(usize, Vec<String>)> {
        let mut calls = Vec::new();
        for code in &self.code {
            let text = code.text.replace("\\\n", " ");
            for line in text.lines() {
                let command = match code.shown {
                    Shown::Script => Some(line),
                    Shown::Session => line.strip_prefix("$ "),
                    Shown::Phrase => {
                        let words = line.strip_prefix("sudo ").unwrap_or(line);
                        words.starts_with("proctrace ").then_some(words)
                    }
                };
                let found = command.map(calls_in).unwrap_or_default();
                calls.extend(found.into_iter().map(|arguments| (code.line, arguments)));
            }
        }
        calls
    }

    /// Commands after a prompt, each with the output that is shown.
    fn sessions(&self) -> Vec<(&str, &str)> {
        let sessions = self.code.iter().filter(|code| code.shown == Shown::Session);
        let parts = sessions.filter_map(|code| code.text.strip_prefix("$ "));
        parts.flat_map(|text| text.split("\n$ ")).filter_map(|it| it.split_once('\n')).collect()
    }

    /// Reason why a link leads nowhere; None if it does not, or leads to another site.
    fn fault_of_link(&self, link: &str) -> Option<String> {
        if link.contains("://") || link.starts_with("mailto:") {
            return None;
        }
        let (file, anchor) = match link.split_once('#') {
            Some((file, anchor)) => (file, Some(anchor)),
            None => (link, None),
        };
        let target = match file {
            "" => self.path.clone(),
            file => self.path.parent().unwrap().join(file),
        };
        if !file.is_empty() && !target.exists() {
            return Some(format!("{link}: there is no such file"));
        }
        let anchor = anchor?;
        let known =
            if file.is_empty() { self.anchors.clone() } else { Self::read(&target).anchors };
        (!known.contains(anchor)).then(|| format!("{link}: no such heading, but {known:?}"))
    }

    /// The path from the root, and a line.
    fn at(&self, line: usize) -> String {
        let path = self.path.strip_prefix(repository()).unwrap_or(&self.path);
        format!("{}:{line}", path.display())
    }
}

fn shown(kind: &CodeBlockKind<'_>) -> Option<Shown> {
    match kind {
        CodeBlockKind::Indented => Some(Shown::Script),
        CodeBlockKind::Fenced(language) => match &**language {
            "sh" | "bash" => Some(Shown::Script),
            "console" => Some(Shown::Session),
            _ => None,
        },
    }
}

/// The commands of a line of shell as words, without quotes and comments. A quote that does not end ends with the line.
fn commands_in(line: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                // It may be an empty word.
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ' | '\t') => words.extend(word.take()),
            (None, ';' | '|' | '&' | '(' | ')') => {
                words.extend(word.take());
                commands.push(std::mem::take(&mut words));
            }
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    commands.push(words);
    commands
}

/// Arguments of the calls of proctrace in a line of shell.
fn calls_in(line: &str) -> Vec<Vec<String>> {
    let mut calls = Vec::new();
    for words in commands_in(line) {
        let mut words = words
            .into_iter()
            .skip_while(|word| BEFORE_A_PROGRAM.contains(&word.as_str()) || is_assignment(word));
        if words.next().as_deref() == Some("proctrace") {
            calls.push(words.collect());
        }
    }
    calls
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The help of each command, asked for once.
#[derive(Default)]
struct Helps(BTreeMap<String, Option<String>>);

impl Helps {
    /// Help of a command such as `gate init`; None if there is no such command.
    fn of(&mut self, command: &[&str]) -> Option<&str> {
        let help = self.0.entry(command.join(" ")).or_insert_with(|| {
            let output = proctrace().args(command).arg("--help").output().unwrap();
            let help = String::from_utf8(output.stdout).unwrap();
            output.status.success().then_some(help)
        });
        help.as_deref()
    }

    /// Reason why a call is refused; None if its command and its options exist. What comes after `--` is another
    /// program's.
    fn fault_of_call(&mut self, arguments: &[String]) -> Option<String> {
        let mut command: Vec<&str> = Vec::new();
        let mut arguments = arguments.iter().map(String::as_str).peekable();
        while let Some(word) = arguments.next_if(|word| is_name(word)) {
            command.push(word);
            match self.of(&command) {
                None => return Some(format!("there is no command {command:?}")),
                // Further words are its arguments.
                Some(help) if !help.lines().any(|line| line == "Commands:") => break,
                Some(_) => {}
            }
        }
        let known = options_of(self.of(&command).unwrap());
        let own = arguments.take_while(|word| *word != "--");
        let unknown = own.filter_map(option_in).find(|option| !known.contains(option))?;
        Some(format!("{command:?} has no option {unknown}"))
    }
}

/// Words that may be the name of a command; not files, options and placeholders.
fn is_name(word: &str) -> bool {
    word.starts_with(|it: char| it.is_ascii_lowercase())
        && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

/// The option in a word such as `--format=json` or `-o`.
fn option_in(word: &str) -> Option<&str> {
    let begins = |dashes: &str| {
        let name = word.strip_prefix(dashes);
        name.is_some_and(|name| name.starts_with(|it: char| it.is_ascii_alphabetic()))
    };
    if begins("--") {
        word.split(['=', '[']).next()
    } else if begins("-") {
        word.get(..2)
    } else {
        None
    }
}

/// The options in lines such as `-o, --output <FILE>`.
fn options_of(help: &str) -> BTreeSet<&str> {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let words = lines.flat_map(|line| {
        let words = line.split([' ', ',', '=', '[', '<']).filter(|word| !word.is_empty());
        words.take_while(|word| word.starts_with('-'))
    });
    words.collect()
}

/// The labels with which lines of a report begin: `CPU`, `Wasted`, `wall`.
fn labels(text: &str) -> BTreeSet<&str> {
    let labels = text.lines().filter_map(|line| {
        let line = line.strip_prefix("   ").or_else(|| line.strip_prefix("  "))?;
        let (word, rest) = line.split_once(' ')?;
        let is_word = !word.is_empty() && word.bytes().all(|it| it.is_ascii_alphabetic());
        // Other words begin the second line of a text.
        let is_label =
            rest.starts_with(' ') || word.starts_with(|it: char| it.is_ascii_uppercase());
        (is_word && is_label).then_some(word)
    });
    labels.collect()
}

#[test]
fn the_readme_is_short_and_begins_with_a_picture() {
    let readme = Page::read(&repository().join("README.md"));
    let lines = readme.text.lines().count();
    assert!(lines <= README_LINES, "README.md has {lines} lines");
    for (number, line) in readme.text.lines().enumerate() {
        let columns = line.chars().count();
        assert!(columns <= README_COLUMNS, "{} has {columns} columns", readme.at(number + 1));
    }
    assert!(readme.images.iter().any(|line| *line <= FIRST_LINES), "{:?}", readme.images);
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut faults = Vec::new();
    let mut checked = 0;
    for page in pages() {
        for (line, link) in &page.links {
            checked += 1;
            faults.extend(page.fault_of_link(link).map(|why| format!("{}: {why}", page.at(*line))));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(checked > 50, "only {checked} links were found");
}

#[test]
fn every_page_is_in_the_index_and_in_the_book() {
    let index = Page::read(&repository().join("docs/README.md"));
    let named: BTreeSet<&str> = index.links.iter().map(|(_, link)| link.as_str()).collect();
    let summary = Page::read(&repository().join("docs/SUMMARY.md"));
    let in_book: BTreeSet<&str> = summary.links.iter().map(|(_, link)| link.as_str()).collect();
    for entry in std::fs::read_dir(repository().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_page = name.ends_with(".md") && !["README.md", "SUMMARY.md"].contains(&&*name);
        assert!(!is_page || named.contains(name.as_str()), "docs/README.md lacks {name}");
        assert!(!is_page || in_book.contains(name.as_str()), "docs/SUMMARY.md lacks {name}");
    }
}

/// The text of Rust sources below a directory, without tests and comments. A string that continues in the next line is joined,
/// and any white space is one blank.
fn sources(directory: &Path, texts: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            sources(&path, texts);
        } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let lines = text.lines().map(str::trim).filter(|line| !line.starts_with("//"));
            let text = lines.collect::<Vec<_>>().join("\n").replace("\\\n", "");
            texts.push(text.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
}

#[test]
fn messages_that_are_explained_are_printed() {
    let page = std::fs::read_to_string(repository().join("docs/troubleshooting.md")).unwrap();
    let mut texts = Vec::new();
    for directory in ["crates", "analysis"] {
        sources(&repository().join(directory), &mut texts);
    }
    let headings = page.lines().filter_map(|line| line.strip_prefix("### "));
    let mut checked = 0;
    for heading in headings {
        checked += 1;
        let message = heading.strip_prefix('`').and_then(|it| it.strip_suffix('`'));
        let message = message.unwrap_or_else(|| panic!("{heading} is no message"));
        // In place of what differs.
        let parts: Vec<&str> = message.split('…').map(str::trim).collect();
        let is_there = texts.iter().any(|text| parts.iter().all(|part| text.contains(part)));
        assert!(is_there, "no source has all parts of {message}");
    }
    assert!(checked > 30, "docs/troubleshooting.md has only {checked} messages");
}

/// Once: a list that grows at its end is read from its beginning.
#[test]
fn every_decision_is_in_their_index_once() {
    let directory = repository().join("docs/decisions");
    let index = Page::read(&directory.join("README.md"));
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let times = index.links.iter().filter(|(_, link)| *link == name).count();
        assert!(
            name == "README.md" || times == 1,
            "docs/decisions/README.md has {name} {times} times"
        );
    }
}

#[test]
fn commands_that_are_shown_exist() {
    let mut helps = Helps::default();
    let mut faults = Vec::new();
    let mut checked = 0;
    for page in pages() {
        for (line, arguments) in page.calls() {
            checked += 1;
            if let Some(why) = helps.fault_of_call(&arguments) {
                faults.push(format!("{}: {why}: {}", page.at(line), arguments.join(" ")));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(checked > 100, "only {checked} commands were found");
}

#[test]
fn what_is_wrong_is_found() {
    let text = "# A page: `x`\n\n![picture](none.png) [here](#a-page-x) [there](#b)\n\n```console\n\
                $ sudo proctrace record --outptu x -- ls --color\nproctrace nothing\n```\n\n    \
                for n in 1 2; do A=1 proctrace recrod; done | proctrace gate init -x\n\n`proctrace --vresion`\n";
    let page = Page::of(&repository().join("page.md"), text.to_owned());
    let links: Vec<bool> =
        page.links.iter().map(|(_, link)| page.fault_of_link(link).is_some()).collect();
    assert_eq!(links, [true, false, true]);
    assert_eq!(page.images, [3]);
    let mut helps = Helps::default();
    let calls = page.calls();
    let why: Vec<String> =
        calls.iter().map(|(_, arguments)| helps.fault_of_call(arguments).unwrap()).collect();
    assert_eq!(
        why,
        [
            "[\"record\"] has no option --outptu",
            "there is no command [\"recrod\"]",
            "[\"gate\", \"init\"] has no option -x",
            "[] has no option --vresion",
        ]
    );
}

mod root {
    use super::*;

    #[test]
    fn the_walk_through_runs_as_it_stands() {
        let readme = Page::read(&repository().join("README.md"));
        let sessions = readme.sessions();
        let directory = tempfile::tempdir().unwrap();
        // By another process: a script that is open for writing in a fork of another test cannot be executed.
        let job = repository().join("fixtures/workflow/.");
        assert!(
            Command::new("cp").arg("-r").arg(job).arg(directory.path()).status().unwrap().success()
        );
        let mut ran = Vec::new();
        let mut compared = 0;
        for (command, shown) in sessions {
            let calls = calls_in(command);
            let [arguments] = calls.as_slice() else { panic!("not one call: {command}") };
            let output = proctrace()
                .args(arguments)
                .current_dir(directory.path())
                // The job is root's, whoever runs the tests.
                .env_remove("SUDO_UID")
                .env_remove("SUDO_GID")
                .output()
                .unwrap();
            // How many lines the screen has room for depends on what there is to say about this machine.
            let all =
                || proctrace().args(["report", "--all"]).current_dir(directory.path()).output();
            let all = if arguments == &["report"] { all().unwrap().stdout } else { Vec::new() };
            let says = [output.stdout, output.stderr, all].concat();
            let says = String::from_utf8(says).unwrap();
            assert!(output.status.success(), "{command}: {says}");
            let printed = labels(&says);
            for label in labels(shown) {
                compared += 1;
                assert!(printed.contains(label), "{command} has no line {label}: {says}");
            }
            ran.push(arguments[0].clone());
        }
        assert_eq!(ran, ["record", "report", "advise"]);
        assert!(compared >= 8, "README shows only {compared} labels");
    }
}
