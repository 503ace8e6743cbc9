//! The tables of a report for a terminal.

use std::fmt::Write as _;

use proctrace_findings::{Category, Correlations, Findings, Memory};

use crate::escape::terminal;
use crate::number::{bytes, count, counted, percent, time};
use crate::style::Style;
use crate::table::{Align, Table, shorten};

pub(crate) fn title_of(title: &str, all: usize, shown: usize) -> String {
    if all > shown { format!("{title} (the first {shown} of {all})") } else { title.to_owned() }
}

pub(crate) fn push_table(out: &mut String, style: Style, title: &str, table: &Table) {
    let _ = writeln!(out, "{}", style.bold(title));
    for line in table.lines(style.width) {
        let _ = writeln!(out, "{line}");
    }
}

fn cpu(category: &Category) -> u64 {
    category.user_ns + category.system_ns
}

fn label(category: &Category) -> String {
    terminal(&category.name).into_owned()
}

fn spawner(category: &Category) -> String {
    if category.main_spawner_processes == category.processes {
        terminal(&category.main_spawner).into_owned()
    } else {
        format!(
            "{} ({})",
            terminal(&category.main_spawner),
            percent(category.main_spawner_processes, category.processes)
        )
    }
}

pub(crate) fn by_processes(categories: &[Category], rows: usize) -> Table {
    let mut table = Table::new(&[
        ("", Align::Left),
        ("processes", Align::Right),
        ("threads", Align::Right),
        ("CPU", Align::Right),
        ("system", Align::Right),
        ("started by", Align::Left),
    ]);
    for category in categories.iter().take(rows) {
        table.row([
            label(category),
            count(category.processes),
            count(category.threads),
            time(cpu(category)),
            percent(category.system_ns, cpu(category)),
            spawner(category),
        ]);
    }
    table
}

pub(crate) fn counts(categories: &[Category], rows: usize) -> Table {
    let grouped = categories.iter().any(|category| !category.group.is_empty());
    let mut columns = vec![
        ("name", Align::Left),
        ("processes", Align::Right),
        ("threads", Align::Right),
        ("execs", Align::Right),
        ("CPU", Align::Right),
        ("life", Align::Right),
        ("misses", Align::Right),
    ];
    if grouped {
        columns.insert(0, ("kind", Align::Left));
    }
    let mut table = Table::new(&columns);
    for category in categories.iter().take(rows) {
        let cells = [
            label(category),
            count(category.processes),
            count(category.threads),
            count(category.execs),
            time(cpu(category)),
            category.median_life_ns.map_or_else(|| "-".to_owned(), time),
            count(category.lookups_failed),
        ];
        table.row(grouped.then(|| terminal(&category.group).into_owned()).into_iter().chain(cells));
    }
    table
}

pub(crate) fn spawners(findings: &Findings, rows: usize) -> Table {
    let mut table = Table::new(&[
        ("processes", Align::Right),
        ("per s", Align::Right),
        ("CPU", Align::Right),
        ("started by", Align::Left),
        ("what", Align::Left),
    ]);
    for spawner in findings.spawners.iter().take(rows) {
        table.row([
            count(spawner.processes),
            format!("{:.1}", spawner.per_second),
            time(spawner.cpu_ns),
            terminal(&spawner.parent).into_owned(),
            terminal(&spawner.child).into_owned(),
        ]);
    }
    table
}

pub(crate) fn lookups(findings: &Findings, rows: usize) -> Table {
    let mut table = Table::new(&[
        ("misses", Align::Right),
        ("processes", Align::Right),
        ("call", Align::Left),
        ("errno", Align::Left),
        ("directory", Align::Left),
    ]);
    for misses in findings.lookups.iter().take(rows) {
        table.row([
            count(misses.count),
            count(misses.processes),
            terminal(&misses.family).into_owned(),
            terminal(&misses.errno).into_owned(),
            terminal(&misses.directory).into_owned(),
        ]);
    }
    table
}

pub(crate) fn detached(findings: &Findings, rows: usize) -> Table {
    let mut table = Table::new(&[
        ("CPU", Align::Right),
        ("life", Align::Right),
        ("pid", Align::Right),
        ("what", Align::Left),
        ("started by", Align::Left),
    ]);
    for process in findings.detached.iter().take(rows) {
        table.row([
            time(process.cpu_ns),
            process.life_ns.map_or_else(|| "alive".to_owned(), time),
            process.pid.to_string(),
            terminal(&process.program).into_owned(),
            terminal(&process.parent).into_owned(),
        ]);
    }
    table
}

pub(crate) fn push_memory(out: &mut String, style: Style, memory: &Memory) {
    let title = title_of("Memory, each at its peak", memory.processes.len(), style.rows);
    let mut table = Table::new(&[
        ("PSS", Align::Right),
        ("USS", Align::Right),
        ("shared", Align::Right),
        ("RSS", Align::Right),
        ("pid", Align::Right),
        ("what", Align::Left),
    ]);
    for process in memory.processes.iter().take(style.rows) {
        table.row([
            bytes(process.pss_bytes),
            bytes(process.uss_bytes),
            bytes(process.shared_bytes),
            bytes(process.rss_bytes),
            process.pid.to_string(),
            terminal(&process.program).into_owned(),
        ]);
    }
    push_table(out, style, &title, &table);
    let _ = writeln!(
        out,
        "  together at most {} PSS in {} (RSS {}, USS {}); every {}",
        bytes(memory.peak_pss_bytes),
        counted(memory.processes_then, "process", "processes"),
        bytes(memory.rss_bytes_then),
        bytes(memory.uss_bytes_then),
        time(memory.interval_ns)
    );
}

pub(crate) fn push_correlations(out: &mut String, style: Style, correlations: &Correlations) {
    let title = format!(
        "What goes with what: Pearson r over n = {} bins of {}",
        correlations.n,
        time(correlations.bin_ns)
    );
    let _ = writeln!(out, "{}", style.bold(&title));
    if correlations.n < 3 {
        let _ = writeln!(out, "  too short to tell: a smaller --interval gives more bins");
        return;
    }
    let (first, column) = (12, 9);
    // The first matter most; --section shows all.
    let shown = (style.width.saturating_sub(first) / column).min(correlations.series.len());
    let _ = write!(out, "  {:<10}", "");
    for name in &correlations.series[..shown] {
        let short = name.replace("system CPU", "sys CPU");
        let _ = write!(out, "{:>column$}", shorten(&short, column - 1));
    }
    out.push('\n');
    for (row, name) in correlations.series[..shown].iter().enumerate() {
        let _ = write!(out, "  {name:<10}");
        for r in &correlations.r[row][..=row] {
            let _ = match r {
                // no -0.00
                Some(r) if r.abs() < 0.005 => write!(out, "{:>column$}", "0.00"),
                Some(r) => write!(out, "{:>column$}", format!("{r:+.2}")),
                None => write!(out, "{:>column$}", "-"),
            };
        }
        out.push('\n');
    }
    let _ =
        writeln!(out, "  read and write are storage traffic; - means that a series never changes");
    let _ = writeln!(out, "  intervals, lags and more series: --section correlations");
}
