//! The table of the summary: programs by CPU time, in the remaining lines of the screen.

use std::cmp::Reverse;

use proctrace_findings::Category;

use crate::escape::terminal;
use crate::fit::columns;
use crate::number::{count, or_dash, percent, share, time};
use crate::table::{Align, Table, shorten, shorten_list};

/// Maximum length of a name in a list.
const NAME_MAX: usize = 20;

/// Share of system time, as text.
fn system(category: &Category) -> String {
    share(category.system_percent, category.system_low_percent.zip(category.system_high_percent))
}

fn label(category: &Category) -> String {
    terminal(&category.name).into_owned()
}

/// The program that started most processes, with the share of these unless it started all; none where the program was
/// run by processes that ran another one at their end.
fn spawner(category: &Category) -> String {
    let name = terminal(&category.main_spawner).into_owned();
    let processes = category.processes.unwrap_or(0);
    match category.main_spawner_processes.unwrap_or(0) {
        0 => name,
        started if started == processes => name,
        started => format!("{name} ({})", percent(started, processes)),
    }
}

/// Sorted by CPU time, ties by number of processes.
pub(crate) fn in_order_of_cpu(categories: &[Category]) -> Vec<&Category> {
    let mut ordered: Vec<&Category> = categories.iter().collect();
    ordered.sort_by_key(|category| Reverse((category.cpu_ns, category.processes)));
    ordered
}

pub(crate) fn by_cpu(categories: &[&Category], rows: usize) -> Table {
    let mut table = Table::new(&[
        ("Programs", Align::Left),
        ("CPU", Align::Right),
        ("of all", Align::Right),
        ("system", Align::Right),
        ("processes", Align::Right),
        ("threads", Align::Right),
        ("started by", Align::Left),
    ]);
    let all = categories.iter().filter_map(|category| category.cpu_ns).fold(0, u64::saturating_add);
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

/// A line that names the programs after the first `shown`, the most numerous first: many cheap
/// processes matter, too.
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
    let list = shorten_list(&names.join(", "), width.saturating_sub(columns(&start)));
    (!rest.is_empty()).then(|| format!("{start}{list}\n"))
}
