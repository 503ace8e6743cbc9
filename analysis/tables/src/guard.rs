//! Rejects SQL that the engine would evaluate incorrectly, suggesting an alternative, and makes
//! counts signed.
//!
//! Found by running the same queries in polars-sql 0.55 and SQLite: in an ON, polars mistakes a
//! condition on one table for one on the other if both have that column, and turns an outer join
//! with an inequality into an inner one; a window over an aggregate, and a column beside an
//! aggregate, yield a value for each row; an aggregate in WHERE is computed over the whole table.
//! Counts and lengths are unsigned 32-bit numbers, whose differences wrap.

use std::ops::ControlFlow;

use sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, CastKind, DataType, Expr, GroupByExpr, JoinConstraint,
    JoinOperator, Select, SelectItem, Statement, Visit, VisitMut, Visitor, VisitorMut,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::{Parser, ParserOptions};

use super::names::name_columns;
use super::parts::{Parts, is_one_of};
use super::size;
use super::threads::on_large_stack;

/// Functions for which the engine returns unsigned 32-bit numbers.
const UNSIGNED: [&str; 8] = [
    "count",
    "length",
    "char_length",
    "character_length",
    "octet_length",
    "array_length",
    "strpos",
    "bit_length",
];

/// The SQL with signed counts, or an error message that suggests what to write instead.
pub(crate) fn guarded(sql: &str) -> Result<String, String> {
    size::check(sql)?;
    on_large_stack(|| read(sql))
        .unwrap_or_else(|error| Err(format!("cannot start a thread to read the SQL: {error}")))
}

fn read(sql: &str) -> Result<String, String> {
    // With the same options as the engine.
    let options = ParserOptions { trailing_commas: true, ..ParserOptions::default() };
    let parser = Parser::new(&GenericDialect).with_options(options).try_with_sql(sql);
    let mut statements =
        parser.and_then(|mut parser| parser.parse_statements()).map_err(|error| {
            let text = error.to_string();
            text.strip_prefix("sql parser error: ").unwrap_or(&text).to_owned()
        })?;
    let [Statement::Query(query)] = &mut statements[..] else {
        return Err("one query at a time: SELECT … FROM …".to_owned());
    };
    if let ControlFlow::Break(wrong) = Visit::visit(&**query, &mut Check) {
        return Err(wrong);
    }
    name_columns(query)?;
    let _ = VisitMut::visit(query, &mut Signed);
    Ok(query.to_string())
}

struct Check;

impl Visitor for Check {
    type Break = String;

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<String> {
        match wrong_with(select) {
            Some(wrong) => ControlFlow::Break(wrong),
            None => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
        match expr {
            Expr::Cast { data_type, .. } if is_narrow(data_type) => ControlFlow::Break(format!(
                "{data_type} in CAST: no column has so few bits; write INTEGER UNSIGNED"
            )),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// True of unsigned types of 8 and 16 bits, which the engine is built without: the programs are smaller by a megabyte.
fn is_narrow(kind: &DataType) -> bool {
    match kind {
        DataType::UTinyInt
        | DataType::TinyIntUnsigned(_)
        | DataType::USmallInt
        | DataType::SmallIntUnsigned(_)
        | DataType::Int2Unsigned(_)
        | DataType::UInt16 => true,
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(kind)
            | ArrayElemTypeDef::SquareBracket(kind, _)
            | ArrayElemTypeDef::Parenthesis(kind),
        ) => is_narrow(kind),
        // The engine reads these names, too, in quotes or not.
        DataType::Custom(name, _) => {
            let name = name.0.last().and_then(|part| part.as_ident());
            name.is_some_and(|name| {
                let names = ["uint1", "uint2", "utinyint", "usmallint"];
                names.contains(&name.value.to_lowercase().as_str())
            })
        }
        _ => false,
    }
}

fn wrong_with(select: &Select) -> Option<String> {
    for join in select.from.iter().flat_map(|from| &from.joins) {
        if let Some(wrong) = wrong_join(&join.join_operator) {
            return Some(wrong);
        }
    }
    if let Some(condition) = &select.selection
        && Parts::of(condition).aggregates
    {
        return Some(format!(
            "an aggregate in WHERE: {condition}; put conditions on groups in HAVING"
        ));
    }
    let expressions = select.projection.iter().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    let items: Vec<(&Expr, Parts)> = expressions.map(|expr| (expr, Parts::of(expr))).collect();
    if let Some((expr, _)) = items.iter().find(|(_, parts)| parts.window_over_aggregate) {
        return Some(format!(
            "a window function over an aggregate: {expr}; compute the aggregate in a subquery \
             first: WITH … AS (SELECT … GROUP BY …) SELECT …"
        ));
    }
    if let Some((expr, _)) = items.iter().find(|(_, parts)| parts.aggregates && parts.columns) {
        return Some(format!(
            "an aggregate and a column in one expression: {expr}; aggregate the column too, for \
             example with max(…), or compute the aggregate in a subquery first (WITH)"
        ));
    }
    let grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    let single = items.iter().find(|(_, parts)| parts.columns);
    if !grouped
        && items.iter().any(|(_, parts)| parts.aggregates)
        && let Some((column, _)) = single
    {
        return Some(format!(
            "{column} is neither aggregated nor grouped by; add GROUP BY {column}"
        ));
    }
    None
}

fn wrong_join(join: &JoinOperator) -> Option<String> {
    let (constraint, inner) = match join {
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => (constraint, true),
        JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::Semi(constraint)
        | JoinOperator::LeftSemi(constraint)
        | JoinOperator::RightSemi(constraint)
        | JoinOperator::Anti(constraint)
        | JoinOperator::LeftAnti(constraint)
        | JoinOperator::RightAnti(constraint) => (constraint, false),
        _ => return None,
    };
    match constraint {
        JoinConstraint::Natural => Some(
            "NATURAL JOIN: name the columns that must be equal: USING (recording, process_id)"
                .into(),
        ),
        JoinConstraint::On(condition) => wrong_condition(condition, inner),
        JoinConstraint::Using(_) | JoinConstraint::None => None,
    }
}

/// The first part of an ON that does more than compare two columns.
fn wrong_condition(condition: &Expr, inner: bool) -> Option<String> {
    let is_column = |expr: &Expr| matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    match condition {
        Expr::Nested(condition) => wrong_condition(condition, inner),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            wrong_condition(left, inner).or_else(|| wrong_condition(right, inner))
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right }
            if is_column(left) && is_column(right) =>
        {
            None
        }
        Expr::BinaryOp {
            left,
            op:
                BinaryOperator::Lt | BinaryOperator::LtEq | BinaryOperator::Gt | BinaryOperator::GtEq,
            right,
        } if inner && is_column(left) && is_column(right) => None,
        condition => Some(format!(
            "{condition} in ON: {}; put other conditions in WHERE, or in a subquery on one table: \
             JOIN (SELECT … FROM … WHERE …) AS t ON …",
            if inner {
                "only comparisons of two columns are allowed"
            } else {
                "only equality of two columns is allowed"
            }
        )),
    }
}

/// Makes counts signed.
struct Signed;

impl VisitorMut for Signed {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && is_one_of(function, &UNSIGNED)
        {
            *expr = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(expr.clone()),
                data_type: DataType::BigInt(None),
                array: false,
                format: None,
            };
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused(sql: &str) -> String {
        guarded(sql).expect_err(sql)
    }

    #[test]
    fn types_that_the_engine_lacks_are_refused() {
        for kind in [
            "\"uint1\"",
            "\"UTinyInt\"",
            "UTINYINT[]",
            "ARRAY<SMALLINT UNSIGNED>",
            "TINYINT UNSIGNED",
            "SMALLINT UNSIGNED",
            "UTINYINT",
            "USMALLINT",
            "uint1",
            "uint2",
        ] {
            let said = refused(&format!("SELECT CAST(pid AS {kind}) AS p FROM processes"));
            assert!(said.ends_with("no column has so few bits; write INTEGER UNSIGNED"), "{said}");
        }
        assert!(
            guarded("SELECT CAST(pid AS SMALLINT) AS p, CAST(pid AS UINT4) AS q FROM processes")
                .is_ok()
        );
    }

    #[test]
    fn what_would_be_answered_wrongly_is_refused() {
        let join = "SELECT 1 FROM processes c JOIN processes p ON c.parent_id = p.process_id";
        assert!(refused(&format!("{join} AND p.exit_code = 7")).contains("p.exit_code = 7 in ON"));
        let left = "SELECT 1 FROM bins b LEFT JOIN processes p ON";
        assert!(
            refused(&format!("{left} p.start_ns >= b.start_ns"))
                .contains("only equality of two columns")
        );
        assert!(refused("SELECT 1 FROM a NATURAL JOIN b").contains("USING"));
        let sums = "SELECT sum(a) / sum(sum(a)) OVER () FROM t GROUP BY b";
        assert!(refused(sums).contains("window function over an aggregate"));
        assert!(refused("SELECT a FROM t WHERE count(*) > 3 GROUP BY a").contains("HAVING"));
        assert!(refused("SELECT a + count(*) FROM t GROUP BY a").contains("in one expression"));
        assert!(refused("SELECT a, count(*) FROM t").contains("GROUP BY a"));
        assert!(refused("SELECT a FORM t").contains("Expected"));
        assert!(refused("DROP TABLE t").contains("one query"));
        assert!(refused("SELECT 1; SELECT 2").contains("one query"));
    }

    #[test]
    fn all_else_is_left_as_it_is() {
        for sql in [
            "SELECT a, sum(b) AS s FROM t GROUP BY a HAVING sum(b) > 3 ORDER BY a",
            "SELECT a, sum(b) OVER (PARTITION BY a) AS s FROM t",
            "SELECT t.a FROM t JOIN u ON t.a = u.a AND t.b < u.b",
            "SELECT a FROM t LEFT JOIN u USING(a, b)",
            "SELECT a FROM t WHERE a IN (SELECT max(a) FROM u)",
            "WITH x AS (SELECT a, max(b) AS m FROM t GROUP BY a) SELECT sum(m) AS s FROM x",
        ] {
            assert_eq!(guarded(sql).as_deref(), Ok(sql));
        }
    }

    #[test]
    fn counts_have_a_sign() {
        let plain = guarded("SELECT count(*) - length(a) FROM t").unwrap_err();
        assert!(plain.contains("in one expression"), "{plain}");
        assert_eq!(
            guarded("SELECT count(*) AS n, count(a) - 3 FROM t").unwrap(),
            "SELECT CAST(count(*) AS BIGINT) AS n, CAST(count(a) AS BIGINT) - 3 AS \"count(a) - 3\" FROM t"
        );
        assert_eq!(
            guarded("SELECT length(a) FROM t").unwrap(),
            r#"SELECT CAST(length(a) AS BIGINT) AS "length(a)" FROM t"#
        );
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(sql: String) {
            let _ = guarded(&sql);
        }
    }
}
