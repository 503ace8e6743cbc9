//! Names of the columns of an answer: those without AS are called what they say, and can be ordered by that.
//!
//! polars-sql 0.55 names a computed column after the column that it is computed from, so that `sum(cpu_ns)` and
//! `max(cpu_ns)` have one name, which it refuses; and it does not recognize an aggregate in ORDER BY.

use std::collections::HashSet;

use sqlparser::ast::{Expr, Ident, OrderByKind, Query, SelectItem, SetExpr};

use super::parts::aggregates;

/// Functions that make several columns or rows.
const UNNAMED: [&str; 2] = ["unnest", "columns"];

/// Names the columns of the outermost SELECT.
///
/// # Errors
/// If the rows are ordered by an aggregate that is not selected.
pub(super) fn name_columns(query: &mut Query) -> Result<(), String> {
    let SetExpr::Select(select) = &mut *query.body else { return Ok(()) };
    let mut names: HashSet<String> = select
        .projection
        .iter()
        .filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
            _ => None,
        })
        .collect();
    let mut computed: Vec<(Expr, Ident)> = Vec::new();
    for item in &mut select.projection {
        if let SelectItem::ExprWithAlias { expr, alias } = item {
            computed.push((expr.clone(), alias.clone()));
        }
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        let column = match expr {
            Expr::Identifier(column) => Some(column.value.clone()),
            Expr::CompoundIdentifier(parts) => parts.last().map(|column| column.value.clone()),
            Expr::Function(function) if is_unnamed(&function.name.to_string()) => continue,
            _ => None,
        };
        if let Some(column) = &column
            && names.insert(column.clone())
        {
            continue;
        }
        let says = match expr.to_string() {
            // As PostgreSQL does: it is by far the most frequent, and `count` needs no quotes.
            says if says.eq_ignore_ascii_case("count(*)") => "count".to_owned(),
            says => says,
        };
        let name = (1..)
            .map(|nth| if nth == 1 { says.clone() } else { format!("{says} ({nth})") })
            .find(|name| !names.contains(name))
            .unwrap_or_default();
        names.insert(name.clone());
        let alias = Ident::with_quote('"', name.replace('"', "'"));
        // The other of two columns of one name is no other expression.
        if column.is_none() {
            computed.push((expr.clone(), alias.clone()));
        }
        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
    }
    let Some(order) = &mut query.order_by else { return Ok(()) };
    let OrderByKind::Expressions(keys) = &mut order.kind else { return Ok(()) };
    for key in keys {
        if let Some((_, alias)) = computed.iter().find(|(expr, _)| *expr == key.expr) {
            key.expr = Expr::Identifier(alias.clone());
        } else if aggregates(&key.expr) {
            return Err(format!(
                "ORDER BY {0}: select it, too: SELECT {0} … ORDER BY {0}",
                key.expr
            ));
        }
    }
    Ok(())
}

fn is_unnamed(function: &str) -> bool {
    UNNAMED.contains(&&*function.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use crate::guard::guarded;

    #[test]
    fn columns_are_called_what_they_say() {
        for (sql, expected) in [
            (
                "SELECT program, sum(cpu_ns), max(cpu_ns) FROM processes GROUP BY program",
                r#"SELECT program, sum(cpu_ns) AS "sum(cpu_ns)", max(cpu_ns) AS "max(cpu_ns)" FROM processes GROUP BY program"#,
            ),
            (
                "SELECT max(pid) FROM processes ORDER BY max(pid) DESC",
                r#"SELECT max(pid) AS "max(pid)" FROM processes ORDER BY "max(pid)" DESC"#,
            ),
            (
                "SELECT a.pid, b.pid, pid, pid FROM processes",
                r#"SELECT a.pid, b.pid AS "b.pid", pid AS "pid (2)", pid AS "pid (3)" FROM processes"#,
            ),
            (
                "SELECT pid AS x, tid AS pid, pid + 1, * FROM processes ORDER BY 2, x",
                r#"SELECT pid AS x, tid AS pid, pid + 1 AS "pid + 1", * FROM processes ORDER BY 2, x"#,
            ),
            (
                "SELECT max(pid) AS n FROM processes ORDER BY max(pid)",
                "SELECT max(pid) AS n FROM processes ORDER BY n",
            ),
            (
                "SELECT pid, count(*), COUNT(*) FROM execs GROUP BY pid ORDER BY count(*)",
                r#"SELECT pid, CAST(count(*) AS BIGINT) AS "count", CAST(COUNT(*) AS BIGINT) AS "count (2)" FROM execs GROUP BY pid ORDER BY "count""#,
            ),
            ("SELECT unnest(argv) FROM execs", "SELECT unnest(argv) FROM execs"),
        ] {
            assert_eq!(guarded(sql).unwrap_or_else(|wrong| wrong), expected);
        }
        let wrong = guarded("SELECT program FROM processes GROUP BY program ORDER BY max(pid)");
        assert!(wrong.unwrap_err().starts_with("ORDER BY max(pid): select it, too"));
    }
}
