//! The tables contain null, and never a number, for what a recording does not know: each quantity
//! in turn is removed from a real recording, and every column must then be either null or
//! unchanged.

use std::collections::BTreeMap;

use crate::common::{pieces, trace_without};
use proctrace_analysis::{ColumnKind, Query, TABLES, TableSchema};
use proctrace_findings::RowsValues;
use proctrace_wire::Quantity;

/// Number of non-null values, and their sum, of each numeric column.
type Columns = BTreeMap<String, (i64, f64)>;

fn figures(table: &TableSchema) -> Vec<&'static str> {
    let is_figure = |kind| matches!(kind, ColumnKind::I64 | ColumnKind::F64 | ColumnKind::I32);
    table.columns.iter().filter(|column| is_figure(column.kind)).map(|c| c.name).collect()
}

fn columns(quantity: Option<Quantity>) -> Columns {
    let (recording, file) = trace_without(&pieces(), quantity);
    let mut found = Columns::new();
    for table in TABLES {
        let names = figures(table);
        let sums: Vec<String> = names
            .iter()
            .map(|name| {
                format!("count({name}) AS {name}_n, CAST(sum({name}) AS DOUBLE) AS {name}_s")
            })
            .collect();
        let sql = format!("SELECT {} FROM {}", sums.join(", "), table.name);
        if names.is_empty() {
            continue;
        }
        let mut query = Query::new(&sql).unwrap();
        query.add("x", &recording, file.path()).unwrap();
        let row = query.answer().unwrap().rows(0, 1).unwrap();
        for (name, pair) in names.iter().zip(row.columns.chunks(2)) {
            let [count, sum] = pair else { panic!("not a pair") };
            let RowsValues::Signed(count) = &count.values else { panic!("{name} is not counted") };
            let RowsValues::Real(sum) = &sum.values else { panic!("{name} is not summed") };
            let figures = (count[0].unwrap(), sum[0].unwrap_or(0.0));
            found.insert(format!("{}.{name}", table.name), figures);
        }
    }
    found
}

/// Columns that legitimately change when another quantity is not known.
fn may_change(column: &str, quantity: Quantity) -> bool {
    let (table, name) = column.split_once('.').unwrap();
    match quantity {
        // Samples show when CPU time was used, and a task's own ticks in an interval how it is
        // split.
        Quantity::Samples => table.ends_with("bins") || matches!(name, "user_ns" | "system_ns"),
        // Without births, processes are those with other recorded activity.
        Quantity::Forks => true,
        // The program of each process decides which ticks are pooled with its own, and so its CPU
        // time.
        Quantity::Execs => {
            matches!(name, "user_ns" | "system_ns" | "processes_born" | "peak_rss_bytes")
        }
        // Its rows are only those of known calls.
        quantity if Quantity::LOOKUPS.contains(&quantity) => table == "lookups",
        Quantity::Argv => matches!(name, "user_ns" | "system_ns" | "processes_born"),
        _ => false,
    }
}

#[test]
fn what_is_not_known_is_null_and_all_else_is_as_it_was() {
    let whole = columns(None);
    assert!(whole.len() > 80, "{}", whole.len());
    let (mut nulls, mut wrong) = (0, Vec::new());
    for quantity in Quantity::ALL {
        for (column, (count, sum)) in columns(Some(quantity)) {
            let (all, expected) = whole[&column];
            if count == 0 {
                nulls += u32::from(all > 0);
                continue;
            }
            // Sums of floating-point numbers depend on their order.
            let same = (sum - expected).abs() <= 1e-9 * expected.abs().max(1.0);
            // There is no row for a category without known activity.
            let rows = count == all || column.starts_with("category_bins.");
            if !(rows && same || may_change(&column, quantity)) {
                wrong.push(format!(
                    "without {quantity:?} {column} is {sum} of {count}, not {expected} of {all}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(nulls > 40, "{nulls}");
}

#[test]
fn tables_have_the_columns_that_they_are_said_to_have() {
    let (recording, file) = trace_without(&pieces(), None);
    for table in TABLES {
        let mut query = Query::new(&format!("SELECT * FROM {}", table.name)).unwrap();
        query.add("x", &recording, file.path()).unwrap();
        let rows = query.answer().unwrap().rows(0, 1).unwrap();
        let found: Vec<&str> = rows.columns.iter().map(|column| &*column.name).collect();
        let said: Vec<&str> =
            ["recording"].into_iter().chain(table.columns.iter().map(|c| c.name)).collect();
        assert_eq!(found, said, "{}", table.name);
    }
}
