//! Hands questions over to other engines: what their script reads and prints.

use std::path::{Path, PathBuf};

use proctrace_findings::{Rows, RowsColumn, RowsValues};
use serde_json::{Value, json};

use crate::engine::files;
use crate::error::FleetError;
use crate::lake::Layout;
use crate::schema::FLEET_TABLES;

/// The script for Python that runs a question on another engine.
pub const ENGINES_SCRIPT: &str = include_str!("../../../analysis/fleet/engines.py");

/// Text that the script reads: the question, the files of each table and their columns.
///
/// # Errors
/// If a directory cannot be read, or a path is not UTF-8.
pub fn handed_over(
    root: &Path,
    layout: &Layout,
    sql: &str,
    engine: &str,
) -> Result<String, FleetError> {
    let text = |path: PathBuf| {
        let text = path.into_os_string().into_string();
        text.map_err(|path| FleetError::Unusable {
            path: path.into(),
            why: "other engines need paths in UTF-8".to_owned(),
        })
    };
    let mut tables = serde_json::Map::new();
    for schema in FLEET_TABLES {
        let files = files(root, layout, schema.name)?;
        let files = files.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
        let columns: Vec<[&str; 2]> =
            schema.columns.iter().map(|column| [column.name, column.kind.sql()]).collect();
        tables.insert(schema.name.to_owned(), json!({"files": files, "columns": columns}));
    }
    let sql = sql.trim().trim_end_matches(';');
    Ok(json!({"engine": engine, "sql": sql, "tables": tables}).to_string())
}

/// The rows that the script printed; `None` if it printed something else.
pub fn handed_back(printed: &str) -> Option<Rows> {
    let printed: Value = serde_json::from_str(printed).ok()?;
    let names = printed["columns"].as_array()?;
    let rows: Vec<&Vec<Value>> =
        printed["rows"].as_array()?.iter().map(Value::as_array).collect::<Option<_>>()?;
    let column = |(at, name): (usize, &Value)| {
        let cells: Vec<&Value> =
            rows.iter().map(|row| row.get(at).unwrap_or(&Value::Null)).collect();
        Some(RowsColumn { name: name.as_str()?.to_owned(), values: values(&cells) })
    };
    Some(Rows { columns: names.iter().enumerate().map(column).collect::<Option<_>>()? })
}

/// Values in the narrowest type that holds all of them.
fn values(cells: &[&Value]) -> RowsValues {
    let known = || cells.iter().filter(|cell| !cell.is_null());
    if known().all(|cell| cell.is_i64()) {
        RowsValues::Signed(cells.iter().map(|cell| cell.as_i64()).collect())
    } else if known().all(|cell| cell.is_number()) {
        RowsValues::Real(cells.iter().map(|cell| cell.as_f64()).collect())
    } else if known().all(|cell| cell.is_boolean()) {
        RowsValues::Flag(cells.iter().map(|cell| cell.as_bool()).collect())
    } else {
        let text = |cell: &&Value| match cell {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        RowsValues::Text(cells.iter().map(text).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_handed_back_has_types() {
        let printed = r#"{"columns": ["a", "b", "c", "d", "e"],
            "rows": [[1, 1, "x", true, null], [null, 0.5, null, false, null]]}"#;
        let rows = handed_back(printed).expect("rows");
        let values: Vec<&RowsValues> = rows.columns.iter().map(|column| &column.values).collect();
        assert_eq!(*values[0], RowsValues::Signed(vec![Some(1), None]));
        assert_eq!(*values[1], RowsValues::Real(vec![Some(1.0), Some(0.5)]));
        assert_eq!(*values[2], RowsValues::Text(vec![Some("x".into()), None]));
        assert_eq!(*values[3], RowsValues::Flag(vec![Some(true), Some(false)]));
        assert_eq!(values[4].len(), 2);
        for wrong in
            ["", "[]", "{}", r#"{"columns": [1], "rows": []}"#, r#"{"columns": [], "rows": [1]}"#]
        {
            assert!(handed_back(wrong).is_none(), "{wrong}");
        }
    }
}
