//! SQL over tables that do not come from a recording, such as the summaries of a fleet.

use polars::prelude::{DataFrame, IntoLazy, PolarsError};
use polars::sql::SQLContext;

use crate::answer::Answer;
use crate::error::TableError;
use crate::frame::Wanted;
use crate::guard::guarded;
use crate::query::QueryError;
use crate::size::check;
use crate::threads::on_large_stack;
use crate::words::{Mentioned, with_plain_numbers};

/// A query on given tables, under the same rules as queries on recordings.
#[derive(Debug)]
pub struct TablesQuery {
    sql: String,
    tables: Vec<String>,
    wanted: Wanted,
}

impl TablesQuery {
    /// Parses an SQL text.
    ///
    /// # Errors
    /// If it is not one query, or one that the engine would answer incorrectly.
    pub fn new(sql: &str) -> Result<Self, QueryError> {
        check(sql).map_err(QueryError::Sql)?;
        let sql = with_plain_numbers(sql.trim().trim_end_matches(';'));
        let sql = guarded(&sql).map_err(QueryError::Sql)?;
        let mentioned = Mentioned::of(&sql);
        let wanted = match mentioned.all_columns {
            true => Wanted::all(),
            false => Wanted::words(mentioned.words),
        };
        Ok(Self { sql, tables: mentioned.tables, wanted })
    }

    /// True if the text names this table, in any case of letters.
    pub fn reads(&self, table: &str) -> bool {
        self.tables.iter().any(|name| name.eq_ignore_ascii_case(table))
    }

    /// True if the text may need this column of any table.
    pub fn wants(&self, column: &str) -> bool {
        self.wanted.has(column)
    }

    /// Runs it on these tables.
    ///
    /// # Errors
    /// If the SQL is invalid, or refers to something that does not exist.
    pub fn answer(self, frames: Vec<(&str, DataFrame)>) -> Result<Answer, QueryError> {
        on_large_stack(|| self.evaluate(frames)).map_err(TableError::Threads)?
    }

    fn evaluate(self, frames: Vec<(&str, DataFrame)>) -> Result<Answer, QueryError> {
        let mut context = SQLContext::new();
        for (name, frame) in frames {
            // By its names in the query: SQL is case-insensitive.
            for written in self.tables.iter().filter(|it| it.eq_ignore_ascii_case(name)) {
                context.register(written, frame.clone().lazy());
            }
        }
        let answer = context.execute(&self.sql).and_then(|lazy| lazy.collect());
        answer.map(Answer::new).map_err(|error: PolarsError| {
            let text = error.to_string();
            // The rest of the message describes the engine's query plan.
            QueryError::Sql(text.split("\n\n").next().unwrap_or(&text).trim().to_owned())
        })
    }
}
