//! The report as one screen: head, cost, what to change, the programs, and how to go on.

use std::fmt::Write as _;

use proctrace_findings::{Category, Findings};

use crate::advice;
use crate::costs::{self, Row};
use crate::escape::terminal;
use crate::fit::{at_left, columns};
use crate::head::{head, parts_in_lines};
use crate::style::Style;
use crate::tables::{by_cpu, in_order_of_cpu, others};
use crate::words::command_line;

/// Column at which the values begin.
const INDENT: usize = 11;
/// Rows of programs that have their place before anything that can be spared.
const PROGRAMS_MIN: usize = 5;
/// Lines of advice at most.
const ADVICE_LINES: usize = 3;
/// Number of those lines where there are many.
const ADVICE_LINES_MANY: usize = 8;
/// Number of lines with which the commands are explained, and advice is longer.
const MANY_LINES: usize = 36;
/// Commands that are named.
const COMMANDS_MAX: usize = 5;
/// Lines of commands, where there are few lines.
const COMMAND_LINES: usize = 2;
/// Failed look-ups of each exec from which on their causes are worth a look: an exec of a small program with a
/// short PATH has about ten.
const LOOKUPS_MANY: u64 = 20;
/// The name of a recording if none is chosen.
const DEFAULT_TRACE: &str = "proctrace.ptrace";

/// The screen about the recording of this name: one line less than the terminal has, if there is nothing to
/// warn about.
pub fn screen(findings: &Findings, trace: &str, style: Style) -> String {
    composed(findings, Some(trace), style)
}

/// The same without a limit to its lines, and without the commands.
pub(crate) fn whole(findings: &Findings, style: Style) -> String {
    composed(findings, None, Style { lines: usize::MAX, ..style })
}

/// Everything, before it is known what there is room for.
struct Parts<'a> {
    head: Vec<String>,
    rows: Vec<Row>,
    /// The lines of each piece.
    advice: Vec<Vec<String>>,
    categories: Vec<&'a Category>,
    more: Vec<String>,
    width: usize,
}

fn composed(findings: &Findings, trace: Option<&str>, style: Style) -> String {
    let width = style.width.saturating_sub(INDENT);
    let is_long = style.lines >= MANY_LINES;
    let limit = if is_long { ADVICE_LINES_MANY } else { ADVICE_LINES };
    // Who has a job that failed does not ask how to make it faster, unless there is room.
    let has_failed = findings.ends.as_ref().is_some_and(|ends| !ends.cause.is_empty());
    let advised = findings.advice.as_ref().filter(|_| is_long || !has_failed);
    let mut parts = Parts {
        head: head(findings, style),
        rows: costs::rows(findings, width),
        advice: advised.map(|it| advice::pieces(it, width)).unwrap_or_default(),
        categories: in_order_of_cpu(&findings.categories),
        more: trace.map(|trace| commands(findings, trace, style, is_long)).unwrap_or_default(),
        width,
    };
    // The first piece is shown whole.
    while parts.advice.len() > 1 && parts.advice.iter().map(Vec::len).sum::<usize>() > limit {
        parts.advice.pop();
    }
    // A line of the screen is for what is typed next.
    let room = style.lines.saturating_sub(1);
    parts.spare(room);
    let table = room.saturating_sub(parts.fixed_lines());
    parts.text(table, style)
}

impl Parts<'_> {
    fn lines_of(&self, row: &Row) -> usize {
        parts_in_lines(&row.text, self.width).len()
    }

    /// Lines of all but the table.
    fn fixed_lines(&self) -> usize {
        let rows: usize = self.rows.iter().map(|row| self.lines_of(row)).sum();
        let advice: usize = self.advice.iter().map(Vec::len).sum();
        // Each part has an empty line above it.
        let with_gap = |lines: usize| if lines == 0 { 0 } else { lines + 1 };
        let all = [self.head.len() + rows, with_gap(advice), with_gap(self.more.len()), 1];
        all.into_iter().fold(0, usize::saturating_add)
    }

    /// Leaves out what can be spared until the programs have their place.
    fn spare(&mut self, room: usize) {
        let programs = self.categories.len().min(PROGRAMS_MIN);
        // With the heading, and the line that names the others.
        let others = usize::from(self.categories.len() > programs);
        let wanted = if programs == 0 { 0 } else { programs + 1 + others };
        while self.fixed_lines().saturating_add(wanted) > room {
            let most = self.rows.iter().enumerate().filter(|(_, row)| row.spare > 0);
            if let Some((at, _)) = most.max_by_key(|(at, row)| (row.spare, *at)) {
                self.rows.remove(at);
            } else if self.advice.len() > 1 {
                self.advice.pop();
            } else {
                break;
            }
        }
    }

    /// The screen, with at most this number of lines for the table of programs.
    fn text(&self, table_lines: usize, style: Style) -> String {
        let mut out = String::new();
        for line in &self.head {
            out.push_str(line);
            out.push('\n');
        }
        for row in &self.rows {
            for (at, line) in parts_in_lines(&row.text, self.width).iter().enumerate() {
                let label = if at == 0 { row.label } else { "" };
                // Writing to a String cannot fail.
                let _ = writeln!(out, "  {label:<9}{line}");
            }
        }
        for (at, line) in self.advice.iter().flatten().enumerate() {
            let (gap, label) = if at == 0 { ("\n", "Advice") } else { ("", "") };
            let _ = writeln!(out, "{gap}  {label:<9}{line}");
        }
        // The heading takes a line.
        let rows = self.categories.len().min(style.rows);
        let most = table_lines.saturating_sub(1);
        let shown = if rows > most { most.saturating_sub(1).max(1) } else { rows };
        if rows > 0 {
            out.push('\n');
            for (at, line) in by_cpu(&self.categories, shown).lines(style.width).iter().enumerate()
            {
                let line = if at == 0 { style.bold(line) } else { line.clone() };
                let _ = writeln!(out, "{line}");
            }
            if shown < most {
                out.extend(others(&self.categories, shown, style.width));
            }
        }
        if !self.more.is_empty() {
            out.push('\n');
        }
        for line in &self.more {
            let _ = writeln!(out, "{line}");
        }
        out
    }
}

/// A command that goes on from here.
struct Onward {
    /// Words behind the program's name, without the recording.
    words: String,
    /// Description of what it shows.
    says: &'static str,
}

/// Commands that answer what this recording makes one ask.
fn onward(findings: &Findings) -> Vec<Onward> {
    let mut more = Vec::new();
    let mut push = |words: String, says| more.push(Onward { words, says });
    let summary = &findings.summary;
    if let Some(first) = findings.ends.as_ref().and_then(|ends| ends.cause.first()) {
        push(format!("show {}", first.pid), "the process that failed first");
    }
    if findings.advice.as_ref().is_some_and(|advised| !advised.advice.is_empty()) {
        push("advise".to_owned(), "what to change, and what it gains");
    }
    let lookups = summary.lookups_in_vain.zip(summary.execs);
    if lookups.is_some_and(|(lookups, execs)| lookups / execs.max(1) >= LOOKUPS_MANY) {
        push("libs".to_owned(), "which search paths waste look-ups");
    }
    if findings.run.wall_ns.is_some() {
        push("tree".to_owned(), "who started what, at which cost");
        push("report --html page.html".to_owned(), "the timeline, in a browser");
    }
    push("report --all".to_owned(), "every table");
    more.truncate(COMMANDS_MAX);
    more
}

/// The name of a recording behind a command, in so many letters: the one that can be typed if there is room for it.
fn named(trace: &str, letters: usize) -> String {
    // It is read if none is given.
    if trace == DEFAULT_TRACE {
        return String::new();
    }
    let quoted = |name: &str| format!(" {}", terminal(&command_line(&[name.to_owned()])));
    let short =
        || trace.rsplit_once('/').map(|(_, name)| format!(" …/{}", quoted(name).trim_start()));
    let names = [Some(quoted(trace)), short()].into_iter().flatten();
    let mut fits = names.filter(|name| columns(name) <= letters);
    fits.next().unwrap_or_else(|| " FILE".to_owned())
}

/// These commands in lines: each with its explanation, or as many as fit on a line.
fn commands(findings: &Findings, trace: &str, style: Style, is_long: bool) -> Vec<String> {
    let more = onward(findings);
    let width = style.width.saturating_sub(INDENT);
    let words_max = more.iter().map(|it| columns(&it.words)).max().unwrap_or(0);
    let trace = named(trace, width.saturating_sub("proctrace ".len() + words_max));
    let length = |command: &Onward| columns(&command.words) + columns(&trace);
    let longest = more.iter().map(length).max().unwrap_or(0);
    let label = |at: usize| if at == 0 { "More" } else { "" };
    let start = |at: usize| format!("  {:<9}", label(at));
    if is_long && longest + INDENT + 44 <= style.width {
        let line = |(at, it): (usize, &Onward)| {
            let command = format!("{}{trace}", it.words);
            format!("{}proctrace {}  {}", start(at), at_left(&command, longest), it.says)
        };
        return more.iter().enumerate().map(line).collect();
    }
    let whole = |command: &Onward| format!("{}{trace}", command.words);
    let all: Vec<String> = more.iter().map(whole).collect();
    let mut lines = parts_in_lines(&format!("proctrace {}", all.join(" · ")), width);
    if lines.len() > COMMAND_LINES {
        // The name of the recording once.
        let short = more.iter().enumerate();
        let short = short.map(|(at, it)| if at == 0 { whole(it) } else { it.words.clone() });
        let short: Vec<String> = short.collect();
        lines = parts_in_lines(&format!("proctrace {}", short.join(" · ")), width);
        lines.truncate(COMMAND_LINES);
    }
    lines.iter().enumerate().map(|(at, line)| format!("{}{line}", start(at))).collect()
}
