//! The comparison of two sides as tables, and as the steps of a waterfall chart.

mod steps;

use proctrace_findings::{
    Axis, Chart, ChartBody, Kind, Mark, MetricFamily, Step, Table, Unit, Waterfall,
};

use crate::diff::{Diff, Fate, PhaseChange, Rename, Row};
use crate::numbers::{Numbers, Sample};
use crate::words::{self, EXACT, SINGLE};
use proctrace_stats::FEWEST_FOR_INTERVAL;

impl Fate {
    /// Its name.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// The certainty of a change if a recording cannot be trusted.
const DOUBTFUL: &str = "in doubt";

/// The audience of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    /// Values are formatted: with thousands separators, signs and units.
    People,
    /// Values are plain numbers.
    Programs,
}

impl Diff {
    /// The tables for readers: "diff" of the totals; "diff_steps" with "diff_step_times" and "diff_step_memory",
    /// "diff_commands", "diff_spawns" and "diff_lookups" of what changed. Tables without changes are left out.
    pub fn tables(&self) -> Vec<Table> {
        self.tables_for(For::People)
    }

    /// The tables for programs: with plain numbers, and more columns. Each row of "diff" has its
    /// own unit, in a separate column; a number without one is a count.
    pub fn tables_of_numbers(&self) -> Vec<Table> {
        self.tables_for(For::Programs)
    }

    fn tables_for(&self, whom: For) -> Vec<Table> {
        let mut tables = vec![match whom {
            For::People => self.whole(),
            For::Programs => self.whole_numbers(),
        }];
        if !self.phases.is_empty() {
            tables.push(self.phase_table());
        }
        tables.extend(self.step_tables(whom));
        if !self.renames.is_empty() {
            tables.push(self.rename_table());
        }
        if !self.commands.is_empty() {
            tables.push(self.command_table(whom));
        }
        if !self.spawns.is_empty() {
            tables.push(self.spawn_table(whom));
        }
        if !self.directories.is_empty() {
            tables.push(self.directory_table(whom));
        }
        tables
    }

    fn whole(&self) -> Table {
        let of = |row: &Row| MetricFamily::named(row.metric);
        let write = |row: &Row, sample: Option<Sample>, unknown| match (of(row), sample) {
            (Some(family), Some(sample)) => words::value(family, sample.centre),
            _ if unknown => "unknown".into(),
            _ => "not measured".into(),
        };
        let change = |row: &Row| {
            let change = row.numbers.as_ref().and_then(|numbers| numbers.change);
            of(row).zip(change).map_or_else(none, |(family, change)| words::change(family, change))
        };
        self.noted(
            Table::new("diff", "Before and after")
                .text("figure", "", self.rows.iter().map(|row| row.label))
                .figures(
                    "before",
                    "before",
                    self.rows.iter().map(|row| write(row, row.before, row.unknown_before)),
                )
                .figures(
                    "after",
                    "after",
                    self.rows.iter().map(|row| write(row, row.after, row.unknown_after)),
                )
                .figures("change", "change", self.rows.iter().map(change))
                .figures(
                    "change_percent",
                    "relative",
                    self.rows.iter().map(|row| row.numbers.as_ref().map_or_else(none, relative)),
                )
                .text(
                    "certainty",
                    "certainty",
                    self.rows.iter().map(|row| self.certainty_in_brief(row)),
                ),
        )
    }

    /// Certainty without the part that the note below explains, so that the row labels fit in 80
    /// columns.
    fn certainty_in_brief(&self, row: &Row) -> String {
        let certainty = self.certainty(row);
        certainty.strip_suffix(", no interval").map_or(certainty.clone(), str::to_owned)
    }

    fn whole_numbers(&self) -> Table {
        let unit = |row: &Row| MetricFamily::named(row.metric).map_or("", |family| family.unit);
        let centre = |sample: Option<Sample>| sample.map(|sample| sample.centre);
        let rows = &self.rows;
        self.noted(
            Table::new("diff", "Before and after")
                .text("figure", "", rows.iter().map(|row| row.label))
                .text("metric", "metric", rows.iter().map(|row| row.metric))
                .text("unit", "unit", rows.iter().map(unit))
                .real("before", "before", Unit::Count, rows.iter().map(|row| centre(row.before)))
                .real("after", "after", Unit::Count, rows.iter().map(|row| centre(row.after)))
                .real("change", "change", Unit::Count, rows.iter().map(|row| row.numbers?.change))
                .real(
                    "change_percent",
                    "relative",
                    Unit::Percent,
                    rows.iter().map(|row| row.numbers?.change_percent),
                )
                .text("certainty", "certainty", rows.iter().map(|row| self.certainty(row))),
        )
    }

    fn noted(&self, table: Table) -> Table {
        let table = table.note(format!(
            "{} before, {} after; 95 % interval of the change in brackets (needs at least \
             {FEWEST_FOR_INTERVAL} runs on each side)",
            runs(self.before.len()),
            runs(self.after.len())
        ));
        self.doubts.iter().fold(table, |table, doubt| table.note(doubt.clone()))
    }

    fn certainty(&self, row: &Row) -> String {
        match MetricFamily::named(row.metric).zip(row.numbers.as_ref()) {
            Some(_) if !self.trusted => DOUBTFUL.into(),
            Some((family, n)) => words::certainty(n, family.kind == Kind::Count),
            None => String::new(),
        }
    }

    fn rename_table(&self) -> Table {
        let all = &self.renames;
        let count = |of: fn(&Numbers) -> Option<f64>| {
            let count = move |it: &Rename| Some(of(it.processes.as_ref()?)?.round() as u64);
            all.iter().map(count)
        };
        let cpu = |of: fn(&Numbers) -> Option<f64>| {
            let ns = move |it: &Rename| Some((of(it.cpu_seconds.as_ref()?)? * 1e9).round() as u64);
            all.iter().map(ns)
        };
        let before: fn(&Numbers) -> Option<f64> = |n| Some(n.before?.centre);
        let after: fn(&Numbers) -> Option<f64> = |n| Some(n.after.centre);
        Table::new("diff_renames", "Programs that seem to have another name")
            .text("before", "before", all.iter().map(|it| it.before.clone()))
            .text("after", "after", all.iter().map(|it| it.after.clone()))
            .whole("processes_before", "proc. before", Unit::Count, count(before))
            .whole("processes_after", "after", Unit::Count, count(after))
            .whole("cpu_before_ns", "CPU before", Unit::Nanoseconds, cpu(before))
            .whole("cpu_after_ns", "after", Unit::Nanoseconds, cpu(after))
            .note(
                "The same programs start it, and it starts mostly the same ones. Other tables have it \
                 under its name after.",
            )
    }

    fn command_table(&self, whom: For) -> Table {
        let all = &self.commands;
        let mut table = Table::new("diff_commands", "Programs whose number of processes changed")
            .text("command", "program", all.iter().map(|change| change.command.clone()));
        // For readers the numbers show that already, and the line has no room for it.
        if whom == For::Programs {
            table = table.text("fate", "", all.iter().map(|change| change.fate.word()));
        }
        let ns = |seconds: f64| (seconds * 1e9).round() as u64;
        let cpu = |value: fn(&Numbers) -> Option<f64>| {
            all.iter().map(move |change| change.cpu_seconds.as_ref().and_then(value).map(ns))
        };
        self.counts(table, whom, all.iter().map(|change| &change.processes))
            .whole(
                "cpu_before_ns",
                "CPU before",
                Unit::Nanoseconds,
                cpu(|n| Some(n.before?.centre)),
            )
            .whole("cpu_after_ns", "CPU after", Unit::Nanoseconds, cpu(|n| Some(n.after.centre)))
            .note("Grouped by the last program of each process.")
    }

    /// Table of the phases in pairs of columns, because a phase has several figures.
    fn phase_table(&self) -> Table {
        type Figure = fn(&PhaseChange) -> Option<&Numbers>;
        let all = &self.phases;
        let before = |of: Figure| all.iter().map(move |it| of(it)?.before.map(|it| it.centre));
        let after = |of: Figure| all.iter().map(move |it| Some(of(it)?.after.centre));
        let ns = |seconds: Option<f64>| seconds.map(|seconds| (seconds * 1e9).round() as u64);
        let count = |number: Option<f64>| number.map(|number| number.round() as u64);
        let wall: Figure = |it| it.wall_seconds.as_ref();
        let cpu: Figure = |it| it.cpu_seconds.as_ref();
        let processes: Figure = |it| it.processes.as_ref();
        let lookups: Figure = |it| it.failed_lookups.as_ref();
        let peak: Figure = |it| it.peak_pss_bytes.as_ref();
        let time = Unit::Nanoseconds;
        Table::new("diff_phases", "Phases between marks, before and after")
            .text("phase", "phase", all.iter().map(|it| it.phase.clone()))
            .whole("wall_before_ns", "wall before", time, before(wall).map(ns))
            .whole("wall_after_ns", "after", time, after(wall).map(ns))
            .whole("cpu_before_ns", "CPU before", time, before(cpu).map(ns))
            .whole("cpu_after_ns", "after", time, after(cpu).map(ns))
            .whole("processes_before", "proc. before", Unit::Count, before(processes).map(count))
            .whole("processes_after", "after", Unit::Count, after(processes).map(count))
            .whole("lookups_before", "look-ups before", Unit::Count, before(lookups).map(count))
            .detail()
            .whole("lookups_after", "after", Unit::Count, after(lookups).map(count))
            .detail()
            .whole("peak_pss_before_bytes", "peak PSS before", Unit::Bytes, before(peak).map(count))
            .detail()
            .whole("peak_pss_after_bytes", "after", Unit::Bytes, after(peak).map(count))
            .detail()
            .note("Matched by name; 0 on a side without the phase. Means over the runs of a side.")
    }

    fn spawn_table(&self, whom: For) -> Table {
        let all = &self.spawns;
        let table = Table::new("diff_spawns", "Parent-child program pairs whose number changed")
            .text("parent", "started by", all.iter().map(|change| change.parent.clone()))
            .text("child", "program", all.iter().map(|change| change.child.clone()))
            .text("fate", "", all.iter().map(|change| change.fate.word()));
        self.counts(table, whom, all.iter().map(|change| &change.processes))
    }

    fn directory_table(&self, whom: For) -> Table {
        let all = &self.directories;
        let table = Table::new("diff_lookups", "Directories whose failed look-ups changed")
            .text("directory", "directory", all.iter().map(|change| change.directory.clone()))
            .text("kind", "call", all.iter().map(|change| change.kind.clone()))
            .text("fate", "", all.iter().map(|change| change.fate.word()));
        self.counts(table, whom, all.iter().map(|change| &change.lookups))
    }

    /// Adds the columns common to tables of counts: before, after, change, relative change,
    /// certainty. For readers the certainty becomes a note if it is the same for all rows.
    fn counts<'n>(
        &self,
        table: Table,
        whom: For,
        all: impl Iterator<Item = &'n Numbers> + Clone,
    ) -> Table {
        let table = table
            .real(
                "before",
                "before",
                Unit::Count,
                all.clone().map(|n| n.before.map(|before| before.centre)),
            )
            .real("after", "after", Unit::Count, all.clone().map(|n| Some(n.after.centre)));
        let certainty = |n: &Numbers| {
            if self.trusted { words::certainty(n, true) } else { DOUBTFUL.into() }
        };
        if whom == For::Programs {
            return table
                .real("change", "change", Unit::Count, all.clone().map(|n| n.change))
                .real(
                    "change_percent",
                    "relative",
                    Unit::Percent,
                    all.clone().map(|n| n.change_percent),
                )
                .text("certainty", "certainty", all.map(certainty));
        }
        let table = table
            .figures(
                "change",
                "change",
                all.clone().map(|n| n.change.map_or_else(none, words::signed_count)),
            )
            .figures("change_percent", "relative", all.clone().map(relative));
        if all.clone().all(|n| certainty(n) == EXACT) {
            table.note("Exact: all runs of each side agree.")
        } else if all.clone().all(|n| certainty(n) == SINGLE) {
            table.note("One run of each side: compare several to see what differs by chance.")
        } else {
            table.text("certainty", "certainty", all.map(certainty))
        }
    }

    /// Steps from the processes before to those after, by command, limited to `most` commands; None
    /// if processes were not counted. The start plus all steps equals the end.
    pub fn waterfall(&self, most: usize) -> Option<Chart> {
        let numbers = self.row("total_processes")?.numbers?;
        let (before, after) = (numbers.before?.centre, numbers.after.centre);
        let mut steps: Vec<Step> = self
            .commands
            .iter()
            .take(most)
            .map(|row| Step {
                name: row.command.clone(),
                change: row.processes.change.unwrap_or(0.0),
            })
            .collect();
        // Includes the remainder that arises from medians over several runs.
        let rest = after - before - steps.iter().map(|step| step.change).sum::<f64>();
        if rest != 0.0 {
            steps.push(Step { name: "all others".into(), change: rest });
        }
        let body = ChartBody::Waterfall(Waterfall {
            axis: Axis::linear("processes", Unit::Count),
            start: Mark { at: before, name: "before".to_owned() },
            steps,
            end: Mark { at: after, name: "after".to_owned() },
        });
        Some(Chart::new("waterfall", "Processes by command", body))
    }
}

fn runs(n: usize) -> String {
    if n == 1 { "1 run".into() } else { format!("{n} runs") }
}

/// The placeholder of an empty cell.
fn none() -> String {
    "-".into()
}

fn relative(numbers: &Numbers) -> String {
    numbers.change_percent.map_or_else(none, words::percent)
}
