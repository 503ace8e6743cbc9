//! The table of groups of steps that changed.

use proctrace_findings::{MetricFamily, Table, Unit};
use proctrace_stats::FEWEST_FOR_INTERVAL;

use super::{DOUBTFUL, For, none, relative};
use crate::diff::{Diff, Fate, StepChange};
use crate::numbers::Numbers;
use crate::words;

type Figure = fn(&StepChange) -> Option<&Numbers>;

const STEPS: Figure = |it| Some(&it.steps);
const FAILURES: Figure = |it| it.failures.as_ref();
const LONGEST: Figure = |it| it.longest_wall_seconds.as_ref();
const WALL: Figure = |it| it.wall_seconds.as_ref();
const CPU: Figure = |it| it.cpu_seconds.as_ref();
const PEAK: Figure = |it| it.peak_pss_bytes.as_ref();

impl Diff {
    /// Tables of groups of steps. For readers a figure before and after is one cell, and what the steps took has tables of
    /// its own: a line has no room for all.
    pub(super) fn step_tables(&self, whom: For) -> Vec<Table> {
        if self.steps.is_empty() {
            return Vec::new();
        }
        let named = |name: &'static str, title: &str| {
            let groups = self.steps.iter().map(|it| it.group.clone());
            Table::new(name, title).text("group", "group", groups)
        };
        let table = named("diff_steps", "Groups of steps that changed");
        if whom == For::Programs {
            return vec![self.steps_as_numbers(table)];
        }
        let took = named("diff_step_times", "Longest step and CPU time of these groups")
            .figures("longest_wall", "longest", self.arrows("step_longest_wall_seconds", LONGEST))
            .figures("cpu", "CPU time", self.arrows("step_cpu_seconds", CPU));
        let mut tables = vec![self.steps_to_read(table), took];
        if self.is_there(PEAK) {
            let memory = named("diff_step_memory", "Peak PSS of a step of these groups")
                .figures("peak_pss", "peak PSS", self.arrows("step_peak_pss_bytes", PEAK))
                .figures("peak_pss_change_percent", "relative", self.relative(PEAK));
            tables.push(memory);
        }
        tables
    }

    fn steps_to_read(&self, mut table: Table) -> Table {
        table = table.figures("steps", "steps", self.arrows("step_runs", STEPS));
        if self.is_there(FAILURES) {
            table = table.figures("failures", "failed", self.arrows("step_failures", FAILURES));
        }
        table = table.figures("wall", "wall time", self.arrows("step_wall_seconds", WALL)).figures(
            "wall_change_percent",
            "relative",
            self.relative(WALL),
        );
        table = match (self.before.len(), self.after.len()) {
            (1, 1) => {
                table.note("One run of each side: compare several to see what differs by chance.")
            }
            (FEWEST_FOR_INTERVAL.., FEWEST_FOR_INTERVAL..) => table.note(
                "Times and memory are means. A change counts if its 95 % interval excludes 0.",
            ),
            _ => table,
        };
        table.note("Wall time is the sum over the steps, which may overlap.")
    }

    fn arrows(&self, family: &'static str, of: Figure) -> impl Iterator<Item = String> + '_ {
        let family = MetricFamily::named(family);
        let cell = move |it| family.zip(of(it)).map_or_else(none, |(family, n)| arrow(family, n));
        self.steps.iter().map(cell)
    }

    fn relative(&self, of: Figure) -> impl Iterator<Item = String> + '_ {
        self.steps.iter().map(move |it| of(it).map_or_else(none, relative))
    }

    fn is_there(&self, of: Figure) -> bool {
        self.steps.iter().any(|it| of(it).is_some_and(is_not_nothing))
    }

    fn steps_as_numbers(&self, table: Table) -> Table {
        let all = &self.steps;
        let before = |of: Figure| all.iter().map(move |it| of(it)?.before.map(|it| it.centre));
        let after = |of: Figure| all.iter().map(move |it| Some(of(it)?.after.centre));
        let ns = |seconds: Option<f64>| seconds.map(|seconds| (seconds * 1e9).round() as u64);
        let whole = |number: Option<f64>| number.map(|number| number.round() as u64);
        let certainty = |it: &StepChange| match &it.wall_seconds {
            Some(_) if !self.trusted => DOUBTFUL.into(),
            Some(numbers) => words::certainty(numbers, false),
            None => String::new(),
        };
        let (time, bytes) = (Unit::Nanoseconds, Unit::Bytes);
        table
            .text("fate", "", all.iter().map(|it| it.fate.map_or("", Fate::word)))
            .real("steps_before", "steps before", Unit::Count, before(STEPS))
            .real("steps_after", "after", Unit::Count, after(STEPS))
            .real("failures_before", "failed before", Unit::Count, before(FAILURES))
            .real("failures_after", "after", Unit::Count, after(FAILURES))
            .whole("longest_wall_before_ns", "longest before", time, before(LONGEST).map(ns))
            .whole("longest_wall_after_ns", "after", time, after(LONGEST).map(ns))
            .whole("wall_before_ns", "wall before", time, before(WALL).map(ns))
            .whole("wall_after_ns", "after", time, after(WALL).map(ns))
            .whole("cpu_before_ns", "CPU before", time, before(CPU).map(ns))
            .whole("cpu_after_ns", "after", time, after(CPU).map(ns))
            .whole("peak_pss_before_bytes", "peak PSS before", bytes, before(PEAK).map(whole))
            .whole("peak_pss_after_bytes", "after", bytes, after(PEAK).map(whole))
            .text("certainty", "certainty of wall", all.iter().map(certainty))
    }
}

/// "4 -> 16"; "4" if it is the same.
fn arrow(family: &MetricFamily, numbers: &Numbers) -> String {
    let after = words::value(family, numbers.after.centre);
    let before = numbers.before.map(|before| words::value(family, before.centre));
    match before {
        Some(before) if before != after => format!("{before} -> {after}"),
        _ => after,
    }
}

fn is_not_nothing(numbers: &Numbers) -> bool {
    numbers.after.greatest > 0.0 || numbers.before.is_some_and(|before| before.greatest > 0.0)
}
