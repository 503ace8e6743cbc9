//! Shortens tables that have a row for all that is left out.

use proctrace_analysis::TableSchema;
use proctrace_findings::{Rows, RowsColumn, RowsValues};

use crate::schema::{MISSES, PROGRAMS};

/// Minimum rows to which tables are cut.
pub(crate) const ROWS_MIN: usize = 10;

/// Columns that describe a job and not a row.
const KEY: [&str; 2] = ["job", "site"];

/// True if rows of this table may be put together.
pub(crate) fn has_remainder(schema: &TableSchema) -> bool {
    [MISSES.name, PROGRAMS.name].contains(&schema.name)
}

/// The first rows, and one row with the sums of all others, which has no names.
pub(crate) fn shorter(schema: &TableSchema, rows: &Rows, height: usize) -> Rows {
    let kept = height.saturating_sub(1);
    if rows.height() <= height {
        return rows.clone();
    }
    let columns = rows.columns.iter().map(|column| {
        let of_key = KEY.contains(&&*column.name);
        debug_assert!(schema.column(&column.name).is_some());
        let values = match &column.values {
            RowsValues::Text(values) => {
                let last = if of_key { values[kept].clone() } else { None };
                RowsValues::Text(values[..kept].iter().cloned().chain([last]).collect())
            }
            RowsValues::Signed(values) => {
                let known = values[kept..].iter().flatten().copied();
                let last = known.reduce(i64::saturating_add);
                RowsValues::Signed(values[..kept].iter().copied().chain([last]).collect())
            }
            // No table of a job with a remainder has columns of other types.
            other => other.clone(),
        };
        RowsColumn { name: column.name.clone(), values }
    });
    Rows { columns: columns.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stay_the_same() {
        let text = |name: &str, values: &[&str]| RowsColumn {
            name: name.into(),
            values: RowsValues::Text(values.iter().map(|text| Some((*text).to_owned())).collect()),
        };
        let rows = Rows {
            columns: vec![
                text("job", &["j", "j", "j"]),
                text("directory", &["/a", "/b", "/c"]),
                RowsColumn {
                    name: "misses".into(),
                    values: RowsValues::Signed(vec![Some(5), Some(3), None]),
                },
            ],
        };
        let short = shorter(&MISSES, &rows, 2);
        assert_eq!(short.height(), 2);
        assert_eq!(
            short.columns[1].values,
            RowsValues::Text(vec![Some("/a".into()), None]),
            "the remainder has no directory"
        );
        assert_eq!(short.columns[0], text("job", &["j", "j"]));
        assert_eq!(short.columns[2].values, RowsValues::Signed(vec![Some(5), Some(3)]));
        assert_eq!(shorter(&MISSES, &rows, 3), rows);
    }
}
