//! The options of every command as pages, made from what `--help` prints.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use xtask::run::output;

/// A chapter of the book.
#[derive(Clone)]
pub(super) struct Chapter {
    pub(super) title: String,
    /// Its page, from the root of the repository.
    pub(super) path: String,
}

/// Columns before the description of an option.
const DESCRIPTION: &str = "          ";

/// Writes a page for each command into a directory; returns the chapters, those of subcommands after their command.
/// Which commands there are, the man pages say, which are written beside it.
pub(super) fn write(proctrace: &Path, manual: &Path, directory: &Path) -> Result<Vec<Chapter>> {
    fs::create_dir_all(directory).context("cannot create a directory")?;
    output(Command::new(proctrace).arg("man").arg(manual))?;
    let mut names = Vec::new();
    for entry in fs::read_dir(manual).context("cannot list the man pages")? {
        let name = entry.context("cannot list the man pages")?.file_name();
        let name = name.to_string_lossy().into_owned();
        // Names of commands have no hyphens.
        let command = name.strip_prefix("proctrace-").and_then(|it| it.strip_suffix(".1"));
        names.extend(command.map(|it| it.replace('-', " ")));
    }
    names.sort();
    let mut chapters = Vec::new();
    for command in names {
        let words = command.split(' ');
        let help = output(Command::new(proctrace).args(words).arg("--help"))?;
        let text = page(&command, &String::from_utf8_lossy(&help));
        let file = format!("{}.md", command.replace(' ', "-"));
        fs::write(directory.join(&file), text).context("cannot write a page")?;
        chapters.push(Chapter { title: command, path: format!("docs/options/{file}") });
    }
    Ok(chapters)
}

/// The page of a command.
fn page(command: &str, help: &str) -> String {
    let mut page = format!("# proctrace {command}\n\n");
    let mut block = Vec::new();
    for line in help.lines() {
        if line.starts_with("Usage: ") || is_heading(line) {
            put(&mut page, &std::mem::take(&mut block));
        }
        block.push(line);
    }
    put(&mut page, &block);
    page
}

fn is_heading(line: &str) -> bool {
    line.ends_with(':') && line.starts_with(|it: char| it.is_ascii_uppercase())
}

/// Appends a part of the help: text, or a heading with what belongs to it.
fn put(page: &mut String, block: &[&str]) {
    let Some((first, rest)) = block.split_first() else { return };
    if let Some(usage) = first.strip_prefix("Usage: ") {
        page.push_str(&format!("## Usage\n\n```text\n{usage}\n"));
        put_code(page, rest, "       ");
    } else if !is_heading(first) {
        block.iter().for_each(|line| page.push_str(&format!("{}\n", escaped(line))));
    } else {
        page.push_str(&format!("## {}\n\n", first.trim_end_matches(':')));
        if rest.iter().any(|line| line.starts_with(DESCRIPTION) && !line.trim().is_empty()) {
            put_list(page, rest);
        } else {
            page.push_str("```text\n");
            put_code(page, rest, "  ");
        }
    }
}

/// Appends the rest of a block of code; a paragraph after it is text.
fn put_code(page: &mut String, lines: &[&str], indent: &str) {
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with(' ');
    let end = lines.iter().position(is_text).unwrap_or(lines.len());
    let (code, text) = lines.split_at(end);
    let code: Vec<&str> =
        code.iter().map(|line| line.strip_prefix(indent).unwrap_or(line)).collect();
    let code = code.join("\n");
    let code = code.trim_end();
    page.push_str(code);
    page.push_str(if code.is_empty() { "```\n\n" } else { "\n```\n\n" });
    text.iter().for_each(|line| page.push_str(&format!("{}\n", escaped(line))));
}

/// Appends options or arguments, each with its description; a paragraph after them is text.
fn put_list(page: &mut String, lines: &[&str]) {
    for line in lines {
        let text = line.trim();
        if let Some(description) = line.strip_prefix(DESCRIPTION) {
            let indent = &description[..description.len() - description.trim_start().len()];
            page.push_str(format!("  {indent}{}", escaped(text)).trim_end());
            page.push('\n');
        } else if line.starts_with(' ') && !text.is_empty() {
            page.push_str(&format!("* `{text}`\n\n"));
        } else {
            page.push_str(&format!("{}\n", escaped(text)));
        }
    }
}

/// A line as text, but for phrases of code and the mark of a list.
fn escaped(line: &str) -> String {
    let mut is_code = false;
    let mut escaped = String::new();
    for letter in line.chars() {
        is_code ^= letter == '`';
        if !is_code && "\\*_[]<>#|".contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_becomes_a_page() {
        let help = "Do it at once,\nor <later>.\n\nUsage: proctrace do [OPTIONS]\n       proctrace do -a\n\n\
                    Options:\n  -o, --out <FILE>\n          Write to *FILE*, see `a_b`\n          \n          \
                    [default: x]\n\nExamples:\n  proctrace do\n\nExit status: 0.\n";
        let expected = "# proctrace do\n\nDo it at once,\nor \\<later\\>.\n\n## Usage\n\n```text\n\
                        proctrace do [OPTIONS]\nproctrace do -a\n```\n\n## Options\n\n* `-o, --out <FILE>`\n\n  \
                        Write to \\*FILE\\*, see `a_b`\n\n  \\[default: x\\]\n\n## Examples\n\n```text\n\
                        proctrace do\n```\n\nExit status: 0.\n";
        assert_eq!(page("do", help), expected);
    }
}
