//! One process: its command line, its relatives, its accounting, its failed look-ups.

use proctrace_findings::{Figure, Topic};
use proctrace_live::{Process, View, cpu_time};
use proctrace_report::escape::terminal;
use proctrace_report::fit::{pieces, wrap};
use proctrace_report::number::{bytes, count, counted, time};
use proctrace_report::usage;
use proctrace_wire::Outcome;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::Screen;
use crate::paint::{Line, Theme, cpu_percent, fill};

/// Lines of a long command line that are shown.
const COMMAND_LINES: usize = 4;

/// Directories that are shown.
const SEARCHED_SHOWN: usize = 5;

impl Screen {
    pub(super) fn process(
        &mut self,
        view: &View,
        serial: u32,
        area: Rect,
        buffer: &mut Buffer,
        theme: &Theme,
    ) {
        let Some(process) = view.process(serial) else {
            let text = "this process has ended, and nothing is kept of it";
            Line::new(buffer, area, 0).space(1).text(text, theme.dim);
            self.relatives.clear();
            return;
        };
        let facts = facts(view, process, usize::from(area.width).saturating_sub(14));
        let mut row = 0;
        for (label, text) in &facts {
            let style = if row == 0 { theme.value } else { theme.plain };
            Line::new(buffer, area, row).space(1).column(label, 11, theme.label).text(text, style);
            row = row.saturating_add(1);
        }
        let y = area.y.saturating_add(row).min(area.bottom());
        let rest = Rect { y, height: area.bottom() - y, ..area };
        self.relatives(view, process, rest, buffer, theme);
    }

    /// The parent and the children that are alive, one of which can be opened.
    fn relatives(
        &mut self,
        view: &View,
        process: &Process,
        area: Rect,
        buffer: &mut Buffer,
        theme: &Theme,
    ) {
        self.relatives = process.parent.into_iter().chain(process.children.clone()).collect();
        let height = usize::from(area.height.saturating_sub(1));
        self.page = height.max(1);
        self.relative.fit(self.relatives.len(), height);
        let mut heading = Line::new(buffer, area, 0);
        for (name, width) in [("", 7), ("PID", 8), ("CPU%", 5), ("CPU", 10)] {
            heading.number(name, width, theme.heading);
        }
        heading.text("PARENT AND CHILDREN", theme.heading);
        let top = self.relative.top;
        for (row, (at, serial)) in (1..).zip(self.relatives.iter().enumerate().skip(top)) {
            let Some(relative) = view.process(*serial) else { continue };
            if row >= area.height {
                break;
            }
            let is_selected = at == self.relative.row;
            if is_selected {
                fill(buffer, area, row, theme.selected);
            }
            let is_parent = process.parent == Some(*serial);
            Line::new(buffer, area, row)
                .number(if is_parent { "parent" } else { "" }, 7, theme.plain)
                .number(&relative.pid.to_string(), 8, theme.plain)
                .number(&self.now(view, relative.cpu.per_second(view.now_ns())), 5, theme.plain)
                .number(&cpu_time(view, relative.used.run_ns), 10, theme.plain)
                .text(&relative.title(), theme.plain);
        }
        if self.relatives.is_empty() {
            let text = "no parent or child of it is alive and recorded";
            Line::new(buffer, area, 1).space(1).text(text, theme.dim);
        }
    }
}

/// Facts about a process: labels and texts of at most `width` columns, where these are wrapped.
fn facts(view: &View, process: &Process, width: usize) -> Vec<(&'static str, String)> {
    let program = view.programs.get(process.program);
    let category = program.and_then(|program| program.name.category.as_deref());
    let name = super::rows::program(view, process);
    let of = category.map_or(String::new(), |category| format!("  ({category})"));
    let mut facts = vec![("Process", format!("{}  {name}{of}", process.pid))];
    for (at, line) in wrapped(&process.title(), width).into_iter().enumerate() {
        facts.push((if at == 0 { "Command" } else { "" }, line));
    }
    if let Some(command) = process.command.as_deref().filter(|command| !command.is_withheld) {
        let text = |bytes: &[u8]| proctrace_wire::escape::to_text(bytes).into_owned();
        facts.push((
            "File",
            text(if command.exe.is_empty() { &command.path } else { &command.exe }),
        ));
        if !command.cwd.is_empty() {
            facts.push(("Directory", text(&command.cwd)));
        }
    }
    facts.push(("Life", life(view, process)));
    facts.extend(accounting(view, process, width));
    facts.extend(searched(view, process));
    facts
}

fn life(view: &View, process: &Process) -> String {
    let until_ns = process.end.map_or(view.now_ns(), |(end_ns, _)| end_ns);
    let lived = time(until_ns.saturating_sub(process.started_ns));
    let state = match (process.end, process.state) {
        (Some((_, status)), _) => {
            format!("ENDED ({}) after {lived}", Outcome::of_status(status).name())
        }
        (None, Some(state)) => format!("{lived}, state {state}"),
        (None, None) => lived,
    };
    let parent = match (process.is_orphan(), process.parent_pid) {
        (true, pid) => format!("; its parent (pid {pid}) has ended"),
        (false, _) => String::new(),
    };
    format!(
        "{state}; started {}, {}, {}{parent}",
        counted(process.children_started, "process", "processes"),
        counted(process.threads_started, "thread", "threads"),
        counted(process.execs, "exec", "execs"),
    )
}

/// What it used so far, named as everywhere, and what only its present has.
fn accounting(view: &View, process: &Process, width: usize) -> Vec<(&'static str, String)> {
    let used = usage(&view.figures(process, &view.divided()), None);
    let mut rows = Vec::new();
    for topic in Topic::ALL {
        let words = used.iter().find(|(of, _)| *of == topic).map(|(_, words)| words.clone());
        let words = [words, now(view, process, topic)].into_iter().flatten().collect::<Vec<_>>();
        if !words.is_empty() {
            for (at, line) in wrap(&words.join(" · "), width).into_iter().enumerate() {
                rows.push((if at == 0 { topic.label() } else { "" }, line));
            }
        }
    }
    rows
}

/// What only a process that is alive has.
fn now(view: &View, process: &Process, topic: Topic) -> Option<String> {
    match topic {
        _ if process.end.is_some() => None,
        Topic::Cpu => view
            .known(Figure::CpuNs, process.cpu.per_second(view.now_ns()))
            .map(|rate| format!("now {} % of a CPU", cpu_percent(rate))),
        Topic::Memory => process.rss_bytes.map(|rss| format!("now RSS {}", bytes(rss))),
        _ => None,
    }
}

/// The directories in which its look-ups failed most, below their number.
fn searched(view: &View, process: &Process) -> Vec<(&'static str, String)> {
    let most = view.searched(process).into_iter().take(SEARCHED_SHOWN);
    most.map(|(directory, failed)| ("", format!("{:>9}  {directory}", count(failed)))).collect()
}

/// A text in lines of at most `width` columns; the last ends with an ellipsis if there is more.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let visible = terminal(text);
    let mut pieces = pieces(&visible, width.max(2));
    let mut lines: Vec<String> = pieces.by_ref().take(COMMAND_LINES).map(str::to_owned).collect();
    if let (Some(last), Some(_)) = (lines.last_mut(), pieces.next()) {
        last.pop();
        last.push('…');
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_command_lines_take_a_few_lines() {
        assert_eq!(wrapped("abcdef", 3), ["abc", "def"]);
        assert_eq!(wrapped("", 3), [""]);
        assert_eq!(wrapped("漢字漢", 4), ["漢字", "漢"]);
        let long = wrapped(&"x".repeat(100), 10);
        assert_eq!(long.len(), COMMAND_LINES);
        assert_eq!(long[3], "xxxxxxxxx…");
    }
}
