//! The comparison of two sides as tables, and as the steps of a waterfall.

use proctrace_findings::{Kind, MetricFamily, Table, Unit};
use serde::Serialize;

use crate::diff::{Diff, Fate, Row};
use crate::numbers::{Numbers, Sample};
use crate::words;

/// A chart that leads from one total to another in steps. `before` and all changes add up to
/// `after`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Waterfall {
    /// A heading.
    pub title: String,
    /// The total before.
    pub before: f64,
    /// The total after.
    pub after: f64,
    /// What lies between, the greatest change first and the rest of them last.
    pub steps: Vec<Step>,
}

/// A step of a waterfall.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Whose change it is.
    pub name: String,
    /// The change, with its sign.
    pub change: f64,
}

impl Fate {
    /// A word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Vanished => "vanished",
            Self::Appeared => "appeared",
            Self::Grew => "grew",
            Self::Shrank => "shrank",
        }
    }
}

impl Diff {
    /// The tables: "diff" of the whole, whose figures are written out because they have different
    /// units; and "diff_commands", "diff_spawns" and "diff_lookups" of what changed. Tables of
    /// which nothing changed are left out.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.whole()];
        if !self.commands.is_empty() {
            tables.push(self.command_table());
        }
        if !self.spawns.is_empty() {
            tables.push(self.spawn_table());
        }
        if !self.directories.is_empty() {
            tables.push(self.directory_table());
        }
        tables
    }

    fn whole(&self) -> Table {
        let of = |row: &Row| MetricFamily::named(row.metric);
        let write = |row: &Row, sample: Option<Sample>| match (of(row), sample) {
            (Some(family), Some(sample)) => words::value(family, sample.centre),
            _ => "not measured".into(),
        };
        let numbers = |row: &Row, words: &dyn Fn(&'static MetricFamily, &Numbers) -> String| {
            of(row)
                .zip(row.numbers.as_ref())
                .map(|(family, n)| words(family, n))
                .unwrap_or_default()
        };
        let mut table = Table::new("diff", "Before and after")
            .text("figure", "", self.rows.iter().map(|row| row.label))
            .text("before", "before", self.rows.iter().map(|row| write(row, row.before)))
            .text("after", "after", self.rows.iter().map(|row| write(row, row.after)))
            .text(
                "change",
                "change",
                self.rows.iter().map(|row| {
                    numbers(row, &|family, n| words::change(family, n.change.unwrap_or(0.0)))
                }),
            )
            .text(
                "change_percent",
                "relative",
                self.rows.iter().map(|row| {
                    numbers(row, &|_, n| n.change_percent.map(words::percent).unwrap_or_default())
                }),
            )
            .text(
                "certainty",
                "how sure",
                self.rows.iter().map(|row| {
                    numbers(row, &|family, n| words::certainty(n, family.kind == Kind::Count))
                }),
            )
            .note(format!(
                "{} before, {} after; in brackets what holds the change in 95 of 100 cases",
                runs(self.before.len()),
                runs(self.after.len())
            ));
        for doubt in &self.doubts {
            table = table.note(doubt.clone());
        }
        table
    }

    fn command_table(&self) -> Table {
        let all = &self.commands;
        let table = Table::new("diff_commands", "Commands whose number changed")
            .text("command", "command", all.iter().map(|change| change.command.clone()))
            .text("fate", "", all.iter().map(|change| change.fate.word()));
        let ns = |seconds: f64| (seconds * 1e9).round();
        let cpu = |value: fn(&Numbers) -> Option<f64>| {
            all.iter().map(move |change| change.cpu_seconds.as_ref().and_then(value).map(ns))
        };
        counts(table, all.iter().map(|change| &change.processes))
            .whole(
                "cpu_before_ns",
                "CPU before",
                Unit::Nanoseconds,
                cpu(|n| Some(n.before?.centre)).map(|ns| ns.map(|ns| ns as u64)),
            )
            .whole(
                "cpu_after_ns",
                "CPU after",
                Unit::Nanoseconds,
                cpu(|n| Some(n.after.centre)).map(|ns| ns.map(|ns| ns as u64)),
            )
            .note("By what each process ran last.")
    }

    fn spawn_table(&self) -> Table {
        let all = &self.spawns;
        let table = Table::new("diff_spawns", "Who starts what, where the number changed")
            .text("parent", "started by", all.iter().map(|change| change.parent.clone()))
            .text("child", "what", all.iter().map(|change| change.child.clone()))
            .text("fate", "", all.iter().map(|change| change.fate.word()));
        counts(table, all.iter().map(|change| &change.processes))
    }

    fn directory_table(&self) -> Table {
        let all = &self.directories;
        let table = Table::new("diff_lookups", "Failed look-ups whose number changed")
            .text("directory", "directory", all.iter().map(|change| change.directory.clone()))
            .text("kind", "call", all.iter().map(|change| change.kind.clone()))
            .text("fate", "", all.iter().map(|change| change.fate.word()));
        counts(table, all.iter().map(|change| &change.lookups))
    }

    /// From the processes before to those after, by command, with at most so many commands; None
    /// if processes were not counted.
    pub fn waterfall(&self, most: usize) -> Option<Waterfall> {
        let numbers = self.row("total_processes")?.numbers?;
        let before = numbers.before?.centre;
        let change = |at: usize| self.commands[at].processes.change.unwrap_or(0.0);
        let shown = self.commands.len().min(most);
        let mut steps: Vec<Step> = (0..shown)
            .map(|at| Step { name: self.commands[at].command.clone(), change: change(at) })
            .collect();
        // Also what medians of several runs leave over.
        let rest =
            numbers.after.centre - before - steps.iter().map(|step| step.change).sum::<f64>();
        if rest != 0.0 {
            steps.push(Step { name: "all others".into(), change: rest });
        }
        let title = "Processes by command".into();
        Some(Waterfall { title, before, after: numbers.after.centre, steps })
    }
}

fn runs(n: usize) -> String {
    if n == 1 { "1 run".into() } else { format!("{n} runs") }
}

/// With the columns that tables of counts have: before, after, change, relative, how sure.
fn counts<'n>(table: Table, all: impl Iterator<Item = &'n Numbers> + Clone) -> Table {
    table
        .real(
            "before",
            "before",
            Unit::Count,
            all.clone().map(|n| n.before.map(|before| before.centre)),
        )
        .real("after", "after", Unit::Count, all.clone().map(|n| Some(n.after.centre)))
        .real("change", "change", Unit::Count, all.clone().map(|n| n.change))
        .real("change_percent", "relative", Unit::Percent, all.clone().map(|n| n.change_percent))
        .text("certainty", "how sure", all.map(|n| words::certainty(n, true)))
}
