//! The list of steps of the workflow.

use proctrace_live::{Step, View, cpu_time};
use proctrace_report::number::{count, time};
use proctrace_wire::Outcome;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::paint::{Line, Theme};
use crate::{Pane, Screen, Sort};

impl Screen {
    pub(super) fn steps(
        &mut self,
        view: &View,
        area: Rect,
        buffer: &mut Buffer,
        theme: &Theme,
    ) -> usize {
        let shown = self.step_rows(view);
        let mut line = Line::new(buffer, area, 0);
        for (name, width) in [("WALL", 9), ("CPU", 10), ("NOW%", 5), ("PROCS", 7), ("ALIVE", 6)] {
            line.number(name, width, theme.heading);
        }
        line.text("STEP", theme.heading);
        if view.steps.is_full() {
            line.at_right("and others that are not kept ", theme.heading);
        }
        for (line, at) in self.visible(Pane::Steps, shown.len(), area, buffer, theme) {
            let step = shown[at];
            let style = if step.alive > 0 { theme.plain } else { theme.dim };
            let mut line = Line::new(buffer, area, line);
            line.number(&time(step.wall_ns(view.now_ns())), 9, style)
                .number(&cpu_time(view, step.cpu_ns), 10, style)
                .number(&self.now(view, step.cpu.per_second(view.now_ns())), 5, style)
                .number(&count(step.processes), 7, style)
                .number(&count(step.alive), 6, style);
            if let Some(failed) = failure(step) {
                line.text(&failed, theme.alarm).space(2);
            }
            line.text(&step.name, style);
            if let Some(whole) = step.parent.and_then(|parent| view.steps.get(parent)) {
                line.space(2).text(&format!("in {}", whole.name), theme.label);
            }
        }
        if shown.is_empty() {
            let text = match (view.knows_steps(), self.filter.is_empty()) {
                (false, _) => "proctrace top shows them, not this program",
                (true, true) => "none: nothing that coordinates the job is known",
                (true, false) => "none",
            };
            Line::new(buffer, area, 1).space(1).text(text, theme.dim);
        }
        shown.len()
    }

    /// Those that run first.
    fn step_rows<'a>(&self, view: &'a View) -> Vec<&'a Step> {
        let mut shown: Vec<&Step> =
            view.steps.iter().filter(|step| self.matches(&step.name)).collect();
        let sort = self.sort(Pane::Steps);
        let now_ns = view.now_ns();
        shown.sort_by_key(|step| {
            let of = match sort {
                Sort::Recent if self.is_over => 0,
                Sort::Recent => step.cpu.per_second(now_ns) as u64,
                Sort::Cpu => step.cpu_ns,
                Sort::Count => step.processes,
                Sort::Memory | Sort::Failed | Sort::Name => 0,
            };
            let is_idle = sort == Sort::Recent && step.alive == 0;
            // Of those that have ended, the last first.
            let ended_ns = if is_idle { step.ended_ns } else { 0 };
            (is_idle, std::cmp::Reverse((of, ended_ns)), &*step.name)
        });
        shown
    }
}

/// How it failed, if its first process did.
fn failure(step: &Step) -> Option<String> {
    let outcome = Outcome::of_status(step.status.filter(|status| *status != 0)?);
    Some(outcome.name().into_owned())
}
