//! The lists: processes, programs, directories, losses.

use proctrace_findings::Figure;
use proctrace_live::{Divided, Program, View, cpu_time};
use proctrace_replay::{CpuTime, Usage};
use proctrace_report::number::{bytes, count, or_dash, percent};
use proctrace_wire::{Kind, Outcome};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::paint::{Line, Theme, cpu_percent, failed, fill};
use crate::rows::{Ended, Row, rows};
use crate::{Pane, Screen, Sort};

/// A row of programs: a category with its sums, or a program.
struct ProgramRow<'a> {
    category: Option<&'a str>,
    /// None for the category itself, with the number of its programs if they are folded.
    program: Option<&'a Program>,
    folded: usize,
    sums: ProgramSums,
}

#[derive(Clone, Copy, Default)]
struct ProgramSums {
    used: Usage,
    /// The CPU time of `used`, as a report splits it.
    split: CpuTime,
    cpu_rate: f64,
    processes: u64,
    alive: u64,
    lookups_failed: u64,
}

impl ProgramSums {
    fn of(program: &Program, split: CpuTime, now_ns: u64) -> Self {
        Self {
            used: program.used,
            split,
            cpu_rate: program.cpu.per_second(now_ns),
            processes: program.processes,
            alive: program.alive,
            lookups_failed: program.lookups_failed,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            used: self.used.plus(other.used),
            split: self.split + other.split,
            cpu_rate: self.cpu_rate + other.cpu_rate,
            processes: self.processes.saturating_add(other.processes),
            alive: self.alive.saturating_add(other.alive),
            lookups_failed: self.lookups_failed.saturating_add(other.lookups_failed),
        }
    }

    /// The largest first.
    fn order(&self, sort: Sort) -> std::cmp::Reverse<u64> {
        std::cmp::Reverse(match sort {
            Sort::Recent => self.cpu_rate as u64,
            Sort::Cpu => self.used.run_ns,
            Sort::Failed => self.lookups_failed,
            Sort::Count => self.processes,
            Sort::Memory | Sort::Name => 0,
        })
    }
}

impl Screen {
    /// Draws a list, with its heading in the first line. Returns how many rows it has.
    pub(super) fn pane(
        &mut self,
        view: &View,
        pane: Pane,
        area: Rect,
        buffer: &mut Buffer,
        theme: &Theme,
    ) -> usize {
        let Some(height) = area.height.checked_sub(1) else { return 0 };
        if pane == self.pane {
            self.page = usize::from(height).max(1);
        }
        fill(buffer, area, 0, theme.heading);
        match pane {
            Pane::Processes => self.processes(view, area, buffer, theme),
            Pane::Programs => self.programs(view, area, buffer, theme),
            Pane::Steps => self.steps(view, area, buffer, theme),
            Pane::Directories => self.directories(view, area, buffer, theme),
            Pane::Losses => self.losses(view, area, buffer, theme),
        }
    }

    /// The rows that are visible: line and index of each; the selected one is highlighted.
    pub(super) fn visible(
        &mut self,
        pane: Pane,
        rows: usize,
        area: Rect,
        buffer: &mut Buffer,
        theme: &Theme,
    ) -> impl Iterator<Item = (u16, usize)> + use<> {
        let height = area.height.saturating_sub(1);
        let cursor = &mut self.cursors[pane as usize];
        cursor.fit(rows, height.into());
        let top = cursor.top;
        if pane == self.pane && rows > 0 {
            let row = u16::try_from(cursor.row - top).unwrap_or(u16::MAX);
            fill(buffer, area, row.saturating_add(1), theme.selected);
        }
        (1..=height).zip(top..rows)
    }

    fn processes(&mut self, view: &View, area: Rect, buffer: &mut Buffer, theme: &Theme) -> usize {
        let rows = rows(view, self);
        self.rows = rows.iter().map(|row| row.serial).collect();
        if !self.folded.is_empty() {
            self.folded.retain(|serial| view.process(*serial).is_some());
        }
        let cursor = &mut self.cursors[Pane::Processes as usize];
        // The cursor stays with its process as long as that lives.
        if let Some(row) = self.rows.iter().position(|serial| Some(*serial) == self.selected) {
            cursor.row = row;
        }
        let mut line = Line::new(buffer, area, 0);
        for (name, width) in
            [("PID", 7), ("TASKS", 5), ("CPU%", 4), ("CPU", 10), ("RSS", 8), ("FAILED", 7)]
        {
            line.number(name, width, theme.heading);
        }
        line.text("COMMAND", theme.heading);
        for (row, at) in self.visible(Pane::Processes, rows.len(), area, buffer, theme) {
            let mut line = Line::new(buffer, area, row);
            let now = self.now(view, rows[at].figures.cpu_rate);
            process_row(view, &rows[at], &now, &mut line, theme);
        }
        let selected = self.cursors[Pane::Processes as usize].row;
        self.selected = self.rows.get(selected).copied();
        if rows.is_empty() {
            let text = if self.filter.is_empty() { "no process is alive" } else { "no match" };
            Line::new(buffer, area, 1).space(1).text(text, theme.dim);
        }
        rows.len()
    }

    fn programs(&mut self, view: &View, area: Rect, buffer: &mut Buffer, theme: &Theme) -> usize {
        let divided = view.divided();
        let rows = self.program_rows(view, &divided);
        self.categories = rows.iter().map(|row| row.category.map(str::to_owned)).collect();
        let mut line = Line::new(buffer, area, 0);
        for (name, width) in
            [("CPU", 10), ("NOW%", 5), ("SYS", 5), ("PROCS", 8), ("ALIVE", 6), ("FAILED", 9)]
        {
            line.number(name, width, theme.heading);
        }
        line.text("CATEGORY AND PROGRAM", theme.heading);
        for (line, at) in self.visible(Pane::Programs, rows.len(), area, buffer, theme) {
            let ProgramRow { category, program, folded, sums } = &rows[at];
            let style = if program.is_none() { theme.value } else { theme.plain };
            let system = divided.system_percent(sums.split, sums.used.ticks());
            let mut line = Line::new(buffer, area, line);
            line.number(&cpu_time(view, sums.used.run_ns), 10, style)
                .number(&self.now(view, sums.cpu_rate), 5, style)
                .number(&or_dash(system, |share| format!("{share:.0} %")), 5, style)
                .number(&count(sums.processes), 8, style)
                .number(&count(sums.alive), 6, style)
                .number(&failed(view, sums.lookups_failed), 9, style);
            match program {
                Some(program) if category.is_some() => {
                    line.space(2).text(&program.name.name, style);
                }
                Some(program) => {
                    line.text(&program.name.name, style);
                }
                None => {
                    line.text(category.unwrap_or("-"), style);
                }
            }
            if *folded > 0 {
                line.text(&format!("  [+{folded}]"), theme.dim);
            }
        }
        rows.len()
    }

    /// CPU time per second; none when the recording is over, or has no CPU time.
    pub(super) fn now(&self, view: &View, ns_per_second: f64) -> String {
        or_dash(view.known(Figure::CpuNs, ns_per_second).filter(|_| !self.is_over), cpu_percent)
    }

    /// Categories in the order of their sums, each followed by its programs.
    fn program_rows<'a>(&self, view: &'a View, divided: &Divided) -> Vec<ProgramRow<'a>> {
        let sort = self.sort(Pane::Programs);
        let mut categories = std::collections::BTreeMap::<Option<&str>, Vec<ProgramRow<'a>>>::new();
        for program in view.programs.iter() {
            let category = program.name.category.as_deref();
            if self.matches(&program.name.name) || category.is_some_and(|c| self.matches(c)) {
                let sums = ProgramSums::of(program, divided.of(program), view.now_ns());
                let row = ProgramRow { category, program: Some(program), folded: 0, sums };
                categories.entry(category).or_default().push(row);
            }
        }
        let sum = |rows: &[ProgramRow<'_>]| {
            rows.iter().fold(ProgramSums::default(), |sum, row| sum.plus(row.sums))
        };
        let mut sorted: Vec<_> = categories
            .into_iter()
            .map(|(category, mut rows)| {
                let name = |row: &ProgramRow<'a>| row.program.map(|p| p.name.name.as_str());
                rows.sort_by(|a, b| {
                    let by = a.sums.order(sort).cmp(&b.sums.order(sort));
                    by.then_with(|| name(a).cmp(&name(b)))
                });
                (category, sum(&rows), rows)
            })
            .collect();
        sorted.sort_by(|(a, a_sum, _), (b, b_sum, _)| {
            a_sum.order(sort).cmp(&b_sum.order(sort)).then_with(|| a.cmp(b))
        });
        let mut all = Vec::new();
        for (category, sums, rows) in sorted {
            let is_folded = category.is_some_and(|name| self.folded_categories.contains(name));
            if category.is_some() {
                let folded = if is_folded { rows.len() } else { 0 };
                all.push(ProgramRow { category, program: None, folded, sums });
            }
            if !is_folded {
                all.extend(rows);
            }
        }
        all
    }

    fn directories(
        &mut self,
        view: &View,
        area: Rect,
        buffer: &mut Buffer,
        theme: &Theme,
    ) -> usize {
        let mut shown = view.directories.most();
        shown.retain(|(path, _)| self.matches(path));
        if self.sort(Pane::Directories) == Sort::Name {
            shown.sort();
        }
        let mut line = Line::new(buffer, area, 0);
        line.number("FAILED", 12, theme.heading).number("SHARE", 6, theme.heading);
        line.text("DIRECTORY", theme.heading);
        let dropped = view.directories.dropped;
        if dropped > 0 {
            let text = format!("and {} in directories not kept ", count(dropped));
            line.at_right(&text, theme.heading);
        }
        let all = view.totals.lookups_failed;
        for (line, at) in self.visible(Pane::Directories, shown.len(), area, buffer, theme) {
            let (path, failed) = &shown[at];
            Line::new(buffer, area, line)
                .number(&count(*failed), 12, theme.plain)
                .number(&percent(*failed, all), 6, theme.plain)
                .text(path, theme.plain);
        }
        if shown.is_empty() {
            let text = match view.knows_lookups() {
                false => "failed look-ups are not recorded (--misses)",
                true => "none",
            };
            Line::new(buffer, area, 1).space(1).text(text, theme.dim);
        }
        shown.len()
    }

    fn losses(&mut self, view: &View, area: Rect, buffer: &mut Buffer, theme: &Theme) -> usize {
        let mut shown: Vec<(String, u64)> = view
            .losses
            .by_kind()
            .into_iter()
            .map(|(kind, reason, lost)| {
                let with = Kind::missing_with(&kind);
                (format!("{kind}{with}: not recorded ({reason})"), lost)
            })
            .collect();
        let skipped = view.skipped;
        for (what, number) in [
            ("blocks of the file are damaged or missing", skipped.blocks),
            ("bytes of the file were skipped", skipped.bytes),
            ("records in damaged blocks", skipped.records),
            ("records could not be decoded", view.undecodable),
            ("tasks are more than a kernel can have", view.untracked()),
        ] {
            if number > 0 {
                shown.push((what.to_owned(), number));
            }
        }
        let mut line = Line::new(buffer, area, 0);
        line.number("NUMBER", 14, theme.heading).text("WHAT IS MISSING", theme.heading);
        for (line, at) in self.visible(Pane::Losses, shown.len(), area, buffer, theme) {
            let (what, number) = &shown[at];
            Line::new(buffer, area, line)
                .number(&count(*number), 14, theme.alarm)
                .text(what, theme.plain);
        }
        if shown.is_empty() {
            Line::new(buffer, area, 1).space(1).text("nothing was lost", theme.dim);
        }
        shown.len()
    }
}

fn process_row(view: &View, row: &Row, now: &str, line: &mut Line<'_>, theme: &Theme) {
    let Some(process) = view.process(row.serial) else { return };
    let figures = &row.figures;
    let style = if row.is_match && row.ended.is_none() { theme.plain } else { theme.dim };
    let busy = if figures.cpu_rate >= 5e8 && row.ended.is_none() { theme.busy } else { style };
    let (pid, tasks) = match row.ended {
        Some(Ended { processes: 2.., .. }) => (String::new(), "-".to_owned()),
        Some(_) => (process.pid.to_string(), "-".to_owned()),
        None => (process.pid.to_string(), count(figures.tasks)),
    };
    line.number(&pid, 7, style)
        .number(&tasks, 5, style)
        .number(now, 4, busy)
        .number(&cpu_time(view, figures.cpu_ns), 10, style)
        .number(&or_dash(figures.rss_bytes, bytes), 8, style)
        .number(&failed(view, figures.lookups_failed), 7, style);
    let indent = u16::try_from(row.depth.saturating_mul(2)).unwrap_or(u16::MAX);
    // Of a deep tree, the names stay visible.
    line.space(indent.min(line.left() / 3));
    if row.folded > 0 {
        line.text(&format!("[+{}] ", row.folded), theme.label);
    }
    if let Some(ended) = row.ended {
        let how = match (ended.failed, process.end) {
            (0, _) => String::new(),
            (_, Some((_, status))) if ended.processes == 1 => {
                format!(", {}", Outcome::of_status(status).name())
            }
            (failed, _) => format!(", {} failed", count(failed)),
        };
        let ended = match ended.processes {
            1 => "ended".to_owned(),
            many if view.ended_is_cut() => format!("{}+ ended", count(many)),
            many => format!("{} ended", count(many)),
        };
        line.text(&format!("{ended}{how}"), theme.label).space(2);
    }
    line.text(&process.title(), style);
}
