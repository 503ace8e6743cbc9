//! Parts of expressions of SQL: aggregates, columns beside them, windows over them.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Function, Query, Visit, Visitor};

/// Aggregate functions.
const AGGREGATES: [&str; 24] = [
    "array_agg",
    "avg",
    "corr",
    "count",
    "covar",
    "covar_pop",
    "covar_samp",
    "first",
    "last",
    "max",
    "mean",
    "median",
    "min",
    "quantile_cont",
    "quantile_disc",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "var",
    "var_samp",
    "variance",
];

/// True if the value of an expression is that of a group.
pub(super) fn aggregates(expr: &Expr) -> bool {
    Parts::of(expr).aggregates
}

/// Parts of an expression, excluding subqueries.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Parts {
    pub(super) aggregates: bool,
    /// Columns outside of aggregates.
    pub(super) columns: bool,
    pub(super) window_over_aggregate: bool,
    queries: usize,
    in_aggregates: usize,
    in_windows: usize,
}

impl Parts {
    pub(super) fn of(expr: &Expr) -> Self {
        let mut parts = Self::default();
        let _ = expr.visit(&mut parts);
        parts
    }
}

/// True if a function has one of these names.
pub(super) fn is_one_of(function: &Function, names: &[&str]) -> bool {
    names.contains(&&*function.name.to_string().to_ascii_lowercase())
}

impl Visitor for Parts {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if self.queries > 0 {
            return ControlFlow::Continue(());
        }
        match expr {
            Expr::Function(function) if function.over.is_some() => self.in_windows += 1,
            Expr::Function(function) if is_one_of(function, &AGGREGATES) => {
                self.in_aggregates += 1;
                if self.in_windows > 0 {
                    self.window_over_aggregate = true;
                } else {
                    self.aggregates = true;
                }
            }
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) if self.in_aggregates == 0 => {
                self.columns = true;
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if self.queries == 0
            && let Expr::Function(function) = expr
        {
            if function.over.is_some() {
                self.in_windows -= 1;
            } else if is_one_of(function, &AGGREGATES) {
                self.in_aggregates -= 1;
            }
        }
        ControlFlow::Continue(())
    }
}
