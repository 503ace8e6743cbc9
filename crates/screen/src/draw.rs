//! The whole view: figures at the top, lists below, keys at the bottom.

use proctrace_findings::Figure;
use proctrace_live::{Second, Status, View, cpu_time, cpus};
use proctrace_report::fit::columns;
use proctrace_report::number::{count, counted, or_dash, percent, time};
use proctrace_trace::{Ended, Trailer};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::paint::{Line, Theme, bars, failed, fill};
use crate::{Over, Pane, Screen};

/// Lines above the lists.
const HEAD: u16 = 4;

/// Name, heading and two rows: a list with less room is left out.
const STACKED_MIN: u16 = 4;

/// Rows by which a list grows.
const STEP: usize = 3;

/// A terminal of this size shows all lists at once.
const WIDE: (u16, u16) = (140, 32);

impl Screen {
    /// Draws the state of a recording into the whole buffer. `note` is what the user should know
    /// about the file that is read.
    pub fn draw(&mut self, view: &View, status: Status, note: Option<&str>, buffer: &mut Buffer) {
        let area = buffer.area;
        self.is_over = status != Status::Recording;
        let theme = Theme::new(self.has_colour);
        self.head(view, status, note, area, buffer, &theme);
        let foot = area.height.saturating_sub(1);
        if let Some(height) = foot.checked_sub(HEAD).filter(|height| *height > 0) {
            let body = Rect { y: area.y + HEAD, height, ..area };
            match self.over {
                Over::Nothing => self.lists(view, body, buffer, &theme),
                Over::Help => super::help::draw(body, buffer, &theme),
                Over::Process(serial) => self.process(view, serial, body, buffer, &theme),
            }
        }
        if foot >= HEAD {
            self.foot(area, foot, buffer, &theme);
        }
    }

    fn head(
        &self,
        view: &View,
        status: Status,
        note: Option<&str>,
        area: Rect,
        buffer: &mut Buffer,
        theme: &Theme,
    ) {
        fill(buffer, area, 0, theme.title);
        let state = state(view, status, self.is_paused);
        let width = u16::try_from(columns(&state)).unwrap_or(u16::MAX);
        let left = Rect { width: area.width.saturating_sub(width.saturating_add(1)), ..area };
        let command = view.header().command.join(" ");
        let subject = if command.is_empty() { &view.header().scope } else { &command };
        Line::new(buffer, left, 0)
            .space(1)
            .text("proctrace top", theme.title)
            .space(2)
            .text(subject, theme.title);
        Line::new(buffer, area, 0).at_right(&state, theme.title);
        let is_over = status != Status::Recording;
        rates(view, is_over, &mut Line::new(buffer, area, 1), theme);
        sums(view, is_over, &mut Line::new(buffer, area, 2), theme);
        failures(view, is_over, &mut Line::new(buffer, area, 3), theme);
        if let Some(note) = note {
            Line::new(buffer, area, 3).at_right(&format!("{note} "), theme.alarm);
        }
    }

    fn lists(&mut self, view: &View, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        let has_steps = view.steps.iter().next().is_some();
        if area.width < WIDE.0 || area.height < WIDE.1 - HEAD - 1 {
            self.tabs(Rect { height: 1, ..area }, buffer, theme);
            let list = Rect { y: area.y + 1, height: area.height - 1, ..area };
            let rows = self.pane(view, self.pane, list, buffer, theme);
            let others: &[Pane] = match self.pane {
                Pane::Processes => &[Pane::Programs, Pane::Directories],
                Pane::Programs if self.is_over => &[Pane::Directories],
                Pane::Programs => &[Pane::Processes, Pane::Directories],
                Pane::Steps | Pane::Directories | Pane::Losses => &[Pane::Programs],
            };
            let steps = (has_steps && self.pane != Pane::Steps).then_some(Pane::Steps);
            let others: Vec<Pane> = steps.into_iter().chain(others.iter().copied()).collect();
            return self.stack(view, &others, self.below(list, rows), buffer, theme);
        }
        let left = area.width * 11 / 20;
        let right = Rect { x: area.x + left + 1, width: area.width - left - 1, ..area };
        let left = Rect { width: left, ..area };
        let third = match self.pane {
            chosen @ (Pane::Steps | Pane::Directories | Pane::Losses) => chosen,
            Pane::Processes | Pane::Programs if has_steps => Pane::Steps,
            Pane::Processes | Pane::Programs => Pane::Directories,
        };
        if self.is_over && view.alive() == 0 {
            self.stack(view, &[Pane::Processes, Pane::Programs], left, buffer, theme);
            return self.stack(view, &[third], right, buffer, theme);
        }
        let upper = Rect { height: area.height / 2, ..right };
        let lower = Rect { y: area.y + upper.height, height: area.height - upper.height, ..right };
        for (pane, place) in [(Pane::Processes, left), (Pane::Programs, upper), (third, lower)] {
            self.stack(view, &[pane], place, buffer, theme);
        }
    }

    /// Draws lists below each other, each under its name, as far as there is room.
    fn stack(
        &mut self,
        view: &View,
        panes: &[Pane],
        mut area: Rect,
        buffer: &mut Buffer,
        theme: &Theme,
    ) {
        for pane in panes {
            if area.height < STACKED_MIN {
                return;
            }
            let style = if *pane == self.pane { theme.title } else { theme.value };
            fill(buffer, area, 0, style);
            let mut line = Line::new(buffer, area, 0);
            line.space(1).text(pane.title(), style).space(2);
            if *pane == self.pane {
                line.text(&self.order(), style);
            }
            let list = Rect { y: area.y + 1, height: area.height - 1, ..area };
            let rows = self.pane(view, *pane, list, buffer, theme);
            area = self.below(list, rows);
        }
    }

    /// The rest of an area below a list of so many rows and its heading. In steps, so that what stands there does not
    /// move whenever a process begins or ends.
    fn below(&self, area: Rect, rows: usize) -> Rect {
        let rows = rows.max(1).next_multiple_of(if self.is_over { 1 } else { STEP });
        let used = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(1).min(area.height);
        Rect { y: area.y + used, height: area.height - used, ..area }
    }

    fn tabs(&self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        let mut line = Line::new(buffer, area, 0);
        for pane in Pane::ALL {
            let style = if pane == self.pane { theme.title } else { theme.plain };
            line.text(&format!(" {} ", pane.title()), style).space(1);
        }
        let order = format!("{} ", self.order());
        if columns(&order) < usize::from(line.left()) {
            line.at_right(&order, theme.dim);
        } else {
            line.text(&order, theme.dim);
        }
    }

    /// The order of the list that has the cursor, and the filter.
    fn order(&self) -> String {
        let by = format!("by {}", self.sort(self.pane).name(self.pane));
        match self.filter.is_empty() {
            true => by,
            false => format!("/{}/ {by}", self.filter),
        }
    }

    fn foot(&self, area: Rect, row: u16, buffer: &mut Buffer, theme: &Theme) {
        let mut line = Line::new(buffer, area, row);
        if self.is_typing {
            let text = format!(" filter: {}_", self.filter);
            line.text(&text, theme.value).space(3).text("Enter keep  Esc clear", theme.dim);
            return;
        }
        line.space(1);
        for (key, does) in self.keys_now() {
            // Whole, or not at all.
            if columns(key) + 1 + columns(does) > line.left().into() {
                break;
            }
            line.text(key, theme.value).space(1).text(does, theme.dim).space(2);
        }
    }
}

/// State of the recording: whether it goes on, for how long, and how it ended.
fn state(view: &View, status: Status, is_paused: bool) -> String {
    let elapsed = time(view.elapsed_ns());
    let state = match (status, &view.trailer) {
        (Status::Recording, _) => format!("RECORDING  {elapsed}"),
        (_, Some(trailer)) => format!("ENDED  {}, {elapsed}", how(trailer)),
        (Status::Ended | Status::Abandoned, None) => format!("INCOMPLETE: no recorder  {elapsed}"),
    };
    format!("{}{state} ", if is_paused { "PAUSED  " } else { "" })
}

fn how(trailer: &Trailer) -> String {
    match (&trailer.payload, trailer.ended) {
        (Some(payload), _) => payload.outcome.name().into_owned(),
        (None, Ended::TreeExited) => "all exited".to_owned(),
        (None, Ended::RootExited) => "the command exited".to_owned(),
        (None, Ended::Interrupted) => "stopped".to_owned(),
        (None, Ended::TimeOver) => "time over".to_owned(),
    }
}

/// Births and deaths: of the last second, or on average if the recording is over.
fn rates(view: &View, is_over: bool, line: &mut Line<'_>, theme: &Theme) {
    let last = view.history.last(view.now_ns());
    let rate = |of: fn(&Second) -> u64, total: u64| match is_over {
        true => mean(total, view.elapsed_ns()),
        false => last.as_ref().map_or("-".to_owned(), |second| format!("{}/s", count(of(second)))),
    };
    line.space(1);
    line.pair("births", &rate(|second| second.births, view.totals.processes), theme);
    line.pair("deaths", &rate(|second| second.deaths, view.totals.ended), theme);
    line.pair("alive", &counted(view.alive() as u64, "process", "processes"), theme);
    let threads = view.threads_alive() as u64;
    if threads > 0 {
        line.pair("+", &counted(threads, "thread", "threads"), theme);
    }
    if let Some(running) = view.running.filter(|_| !is_over) {
        line.pair("running", &count(running.into()), theme);
    }
    let births = view.history.latest(view.now_ns(), 60).map(|second| second.births);
    let births: Vec<u64> = births.collect();
    line.text(&bars(births.iter().copied()), theme.label);
}

/// A number per second of the whole recording.
fn mean(total: u64, elapsed_ns: u64) -> String {
    if elapsed_ns == 0 {
        return "-".to_owned();
    }
    format!("{:.1}/s", total as f64 * 1e9 / elapsed_ns as f64)
}

/// Sums, and the CPUs in use: lately, or on average if the recording is over.
fn sums(view: &View, is_over: bool, line: &mut Line<'_>, theme: &Theme) {
    let totals = &view.totals;
    let (label, per_second) = match is_over {
        true => ("mean CPUs", totals.cpu_ns as f64 * 1e9 / view.elapsed_ns().max(1) as f64),
        false => ("CPUs", view.cpu.per_second(view.now_ns())),
    };
    let per_second = or_dash(view.known(Figure::CpuNs, per_second), cpus);
    let used = format!("{per_second} of {}", view.header().cpus);
    line.space(1)
        .pair(label, &used, theme)
        .pair("CPU time", &cpu_time(view, totals.cpu_ns), theme)
        .pair("processes", &count(totals.processes), theme)
        .pair("threads", &count(totals.threads), theme)
        .pair("execs", &count(totals.execs), theme);
    if totals.execs_failed > 0 {
        line.pair("failed", &count(totals.execs_failed), theme);
    }
}

fn failures(view: &View, is_over: bool, line: &mut Line<'_>, theme: &Theme) {
    let lookups = view.totals.lookups_failed;
    line.space(1).pair("failed look-ups", &failed(view, lookups), theme);
    let has_rate = !is_over && view.knows_lookups();
    if let Some(second) = view.history.last(view.now_ns()).filter(|_| has_rate) {
        line.text(&format!("{}/s", count(second.lookups_failed)), theme.value).space(2);
    }
    let lost = view.losses.total();
    if lost > 0 {
        let known = view.totals.processes.saturating_add(view.totals.execs).saturating_add(lookups);
        let share = percent(lost, lost.saturating_add(known));
        line.text(&format!(" LOST {} records, {share} ", count(lost)), theme.alarm).space(1);
    } else {
        line.pair("lost", "0", theme);
    }
    let unread = view.skipped.blocks;
    if unread > 0 {
        let blocks = counted(unread, "block", "blocks");
        line.text(&format!(" {blocks} of the file unreadable "), theme.alarm).space(1);
    }
}
