//! The tables of a report for a terminal.

use std::cmp::Reverse;
use std::fmt::Write as _;

use proctrace_findings::{Category, Correlations, Findings, Memory, ProcessMemory};

use crate::data::wrap;
use crate::escape::terminal;
use crate::number::{bytes, count, counted, or_dash, percent, share, time};
use crate::style::Style;
use crate::table::{Align, Table, shorten, shorten_list};

/// A matrix of correlations over fewer bins is not printed.
const BINS_MIN: usize = 30;
/// Longer names are shortened in a list.
const NAME_MAX: usize = 20;

pub(crate) fn title_of(title: &str, all: usize, shown: usize) -> String {
    if all > shown { format!("{title} (the first {shown} of {all})") } else { title.to_owned() }
}

pub(crate) fn push_table(out: &mut String, style: Style, title: &str, table: &Table) {
    let _ = writeln!(out, "{}", style.bold(title));
    for line in table.lines(style.width) {
        let _ = writeln!(out, "{line}");
    }
}

/// Share of system time.
fn system(category: &Category) -> String {
    share(category.system_percent, category.system_low_percent.zip(category.system_high_percent))
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
            percent(category.main_spawner_processes.unwrap_or(0), category.processes.unwrap_or(0))
        )
    }
}

/// By CPU time, and where that is the same by number of processes.
pub(crate) fn in_order_of_cpu(categories: &[Category]) -> Vec<&Category> {
    let mut ordered: Vec<&Category> = categories.iter().collect();
    ordered.sort_by_key(|category| Reverse((category.cpu_ns, category.processes)));
    ordered
}

pub(crate) fn by_cpu(categories: &[&Category], rows: usize) -> Table {
    let mut table = Table::new(&[
        ("", Align::Left),
        ("CPU", Align::Right),
        ("of all", Align::Right),
        ("system", Align::Right),
        ("processes", Align::Right),
        ("threads", Align::Right),
        ("started by", Align::Left),
    ]);
    let all = categories
        .iter()
        .filter_map(|category| category.cpu_ns)
        .fold(0, u64::saturating_add);
    for category in categories.iter().take(rows) {
        table.row([
            label(category),
            or_dash(category.cpu_ns, time),
            or_dash(category.cpu_ns, |ns| percent(ns, all)),
            system(category),
            or_dash(category.processes, count),
            or_dash(category.threads, count),
            spawner(category),
        ]);
    }
    table
}

/// A line that names those that are not among the first so many, the most numerous first: many
/// cheap processes are worth knowing of, too.
pub(crate) fn others(categories: &[&Category], shown: usize, width: usize) -> Option<String> {
    let mut rest: Vec<&Category> = categories.get(shown..)?.to_vec();
    rest.retain(|category| category.processes > Some(0));
    rest.sort_by_key(|category| Reverse(category.processes));
    let names: Vec<String> = rest
        .iter()
        .map(|category| {
            let processes = category.processes.unwrap_or(0);
            format!("{} {}", count(processes), shorten(&label(category), NAME_MAX))
        })
        .collect();
    let start = format!("  and {} more, most processes first: ", rest.len());
    let list = shorten_list(&names.join(", "), width.saturating_sub(start.chars().count()));
    (!rest.is_empty()).then(|| format!("{start}{list}\n"))
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
            or_dash(category.processes, count),
            or_dash(category.threads, count),
            or_dash(category.execs, count),
            or_dash(category.cpu_ns, time),
            or_dash(category.median_life_ns, time),
            or_dash(category.lookups_failed, count),
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
            or_dash(spawner.cpu_ns, time),
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
            or_dash(process.cpu_ns, time),
            process.life_ns.map_or_else(|| "alive".to_owned(), time),
            process.pid.to_string(),
            terminal(&process.program).into_owned(),
            terminal(&process.parent).into_owned(),
        ]);
    }
    table
}

pub(crate) fn push_memory(out: &mut String, style: Style, memory: &Memory) {
    let title = title_of("Memory of processes", memory.processes.len(), style.rows);
    let mut table = Table::new(&[
        ("peak RSS", Align::Right),
        ("PSS", Align::Right),
        ("USS", Align::Right),
        ("shared", Align::Right),
        ("RSS", Align::Right),
        ("pid", Align::Right),
        ("what", Align::Left),
    ]);
    let mut processes: Vec<&ProcessMemory> = memory.processes.iter().collect();
    // What is alive has no exit record, and has been at least as large as a look found it.
    let peak = |process: &ProcessMemory| process.peak_rss_bytes.unwrap_or(process.rss_bytes);
    processes.sort_by_key(|process| Reverse((peak(process), process.pss_bytes)));
    for process in processes.iter().take(style.rows) {
        table.row([
            process.peak_rss_bytes.map_or_else(|| "-".to_owned(), bytes),
            bytes(process.pss_bytes),
            bytes(process.uss_bytes),
            bytes(process.shared_bytes),
            bytes(process.rss_bytes),
            process.pid.to_string(),
            terminal(&process.program).into_owned(),
        ]);
    }
    push_table(out, style, &title, &table);
    let looks = time(memory.interval_ns);
    let mut notes = vec![
        format!(
            "peak RSS: of the last program, from its exit record; the others: at the look with the \
             largest PSS, of one every {looks}"
        ),
        format!(
            "at one look together at most {} PSS in {} (RSS {}, USS {})",
            bytes(memory.peak_pss_bytes),
            counted(memory.processes_then, "process", "processes"),
            bytes(memory.rss_bytes_then),
            bytes(memory.uss_bytes_then),
        ),
    ];
    if let Some(peak) = memory.peak_rss_bytes_not_looked_at {
        notes.push(format!(
            "no look found {}: peak RSS up to {}",
            counted(memory.processes_not_looked_at, "other process", "other processes"),
            bytes(peak)
        ));
    }
    for note in notes {
        for line in wrap(&note, style.width.saturating_sub(2)) {
            let _ = writeln!(out, "  {line}");
        }
    }
}

pub(crate) fn push_correlations(out: &mut String, style: Style, correlations: &Correlations) {
    let sample = format!("n = {} bins of {}", correlations.n, time(correlations.bin_ns));
    if !tells(correlations) {
        let _ = writeln!(out, "{}", style.bold("What goes with what: too little to tell"));
        let text = format!(
            "{sample}; at least {BINS_MIN} are needed, more where a series changes slowly: record \
             with a smaller --interval, or for longer. What there is: --section correlations"
        );
        for line in wrap(&text, style.width.saturating_sub(2)) {
            let _ = writeln!(out, "  {line}");
        }
        return;
    }
    let title = format!("What goes with what: Pearson r over {sample}");
    let _ = writeln!(out, "{}", style.bold(&title));
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
    let _ = writeln!(
        out,
        "  read and write: storage; -: a series never changes, or too few independent bins"
    );
    let _ = writeln!(out, "  intervals, lags and more series: --section correlations");
}

/// Whether a matrix says anything: with fewer bins the 95 % interval of r = 0 reaches beyond 0.36
/// at best, and without any interval nothing says how far a coefficient can be believed.
fn tells(correlations: &Correlations) -> bool {
    let mut pairs = (0..correlations.series.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
    let has_interval = |(a, b): (usize, usize)| {
        correlations.r_low.get(a).and_then(|row| row.get(b)).is_some_and(Option::is_some)
    };
    correlations.n >= BINS_MIN && pairs.any(has_interval)
}
