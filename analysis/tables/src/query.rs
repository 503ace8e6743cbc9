//! SQL over the tables of one or several recordings.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use polars::prelude::{Column, DataFrame, DataType, Expr, IntoLazy, PolarsError, col};
use polars::sql::SQLContext;
use proctrace_overview::nearest::nearest;
use proctrace_recording::Recording;
use proctrace_trace::{BlockInfo, Reader};
use proctrace_wire::Stream;

use crate::answer::Answer;
use crate::definitions::TABLES;
use crate::error::TableError;
use crate::frame::{RECORDING, Wanted, named};
use crate::guard::guarded;
use crate::schema::TableSchema;
use crate::size::check;
use crate::stream;
use crate::threads::on_large_stack;
use crate::words::{Mentioned, with_plain_numbers};

/// Errors of a query.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// A table that does not exist.
    #[error("there is no table {name}{}; the tables are {}", meant(nearest), TABLES.iter().map(|t| t.name).collect::<Vec<_>>().join(", "))]
    Table {
        /// The name.
        name: String,
        /// The name that was probably meant.
        nearest: Option<&'static str>,
    },
    /// A column that does not exist.
    #[error("there is no column {name}{}; the columns are {}; text is in single quotes: '{name}'", meant(nearest), columns.join(", "))]
    Column {
        /// The name.
        name: String,
        /// The name that was probably meant.
        nearest: Option<&'static str>,
        /// The columns of the queried tables.
        columns: Vec<&'static str>,
    },
    /// Invalid SQL.
    #[error("{0}")]
    Sql(String),
    /// A recording that cannot be read.
    #[error(transparent)]
    Recording(#[from] TableError),
}

fn meant(nearest: &Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!(" (did you mean {nearest}?)"))
}

/// A query, and the tables it needs.
#[derive(Debug)]
pub struct Query {
    sql: String,
    wanted: Wanted,
    tables: BTreeMap<String, &'static TableSchema>,
    frames: BTreeMap<&'static str, DataFrame>,
}

impl Query {
    /// Parses an SQL text.
    ///
    /// # Errors
    /// If it does not query any table of a recording.
    pub fn new(sql: &str) -> Result<Self, QueryError> {
        check(sql).map_err(QueryError::Sql)?;
        let sql = with_plain_numbers(sql.trim().trim_end_matches(';'));
        if sql.is_empty() {
            return Err(QueryError::Sql("the SQL is empty".to_owned()));
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if sql.chars().all(is_word) {
            return Err(no_table(&sql));
        }
        let first = sql.split(|c| !is_word(c)).next().unwrap_or_default();
        if !first.is_empty() && !["select", "with"].contains(&&*first.to_ascii_lowercase()) {
            return Err(QueryError::Sql(format!(
                "a query begins with SELECT or WITH, not with {first}"
            )));
        }
        let sql = guarded(&sql).map_err(QueryError::Sql)?;
        let mentioned = Mentioned::of(&sql);
        // By their names in the query: SQL is case-insensitive.
        let mut tables: BTreeMap<String, &'static TableSchema> = BTreeMap::new();
        for name in &mentioned.tables {
            if let Some(table) = TableSchema::named(&name.to_ascii_lowercase()) {
                tables.insert(name.clone(), table);
            }
        }
        if tables.is_empty() {
            return Err(match mentioned.tables.first() {
                Some(name) => no_table(name),
                None => QueryError::Sql(
                    "the query names no table; write, for example, SELECT … FROM processes, or run \
                     query without SQL to list the tables"
                        .to_owned(),
                ),
            });
        }
        let wanted = match mentioned.all_columns {
            true => Wanted::all(),
            false => Wanted::words(mentioned.words),
        };
        Ok(Self { sql, wanted, tables, frames: BTreeMap::new() })
    }

    /// Least memory for those rows of a trace that are not bounded by its processes: its failed look-ups,
    /// by what its blocks say of themselves.
    ///
    /// # Errors
    /// If it is not a trace.
    pub fn least_bytes(&self, path: &Path) -> Result<u64, QueryError> {
        let Some(table) = self.tables.values().find(|table| table.name == "lookups") else {
            return Ok(0);
        };
        let rows = Cell::new(0u64);
        let mut reader = Reader::open(path).map_err(TableError::from)?;
        let skip = |info: &BlockInfo| {
            if info.stream == Stream::Lookups {
                rows.set(rows.get().saturating_add(info.records.into()));
            }
            false
        };
        while reader.next_block_where(skip).is_some() {}
        let bits = table.columns.iter().filter(|column| self.wanted.has(column.name));
        let bits: u64 = bits.map(|column| column.kind.least_bits()).sum();
        Ok(rows.get().saturating_mul(bits) / 8)
    }

    /// Adds the rows of a recording, whose trace is at `path`, under a name.
    ///
    /// # Errors
    /// If the trace cannot be read again, or a table cannot be computed.
    pub fn add(
        &mut self,
        name: &str,
        recording: &Recording,
        path: &Path,
    ) -> Result<(), QueryError> {
        let Self { frames, tables, wanted, .. } = self;
        let mut take = |schema: &'static TableSchema, batch: DataFrame| {
            let batch = match (wanted.has(RECORDING), batch.width()) {
                (true, _) => named(batch, name)?,
                // A query that counts rows may need no columns at all: a bit for each row will do.
                (false, 0) => {
                    let rows = batch.height();
                    let bits = Column::full_null(RECORDING.into(), rows, &DataType::Boolean);
                    DataFrame::new(rows, vec![bits])?
                }
                (false, _) => batch,
            };
            match frames.get_mut(schema.name) {
                Some(frame) => {
                    frame.vstack_mut_owned(batch)?;
                }
                None => {
                    frames.insert(schema.name, batch);
                }
            }
            Ok(())
        };
        let mut needed: Vec<&'static TableSchema> = tables.values().copied().collect();
        needed.dedup_by_key(|table| table.name);
        Ok(stream(recording, path, &needed, wanted, &mut take)?)
    }

    /// Runs the query on the recordings that were added.
    ///
    /// # Errors
    /// If the SQL is invalid, or refers to something that does not exist.
    pub fn answer(self) -> Result<Answer, QueryError> {
        on_large_stack(|| self.evaluate()).map_err(TableError::Threads)?
    }

    fn evaluate(self) -> Result<Answer, QueryError> {
        let Self { sql, tables, frames, .. } = self;
        let mut context = SQLContext::new();
        for (name, table) in &tables {
            let Some(frame) = frames.get(table.name) else { continue };
            let mut frame = frame.clone();
            frame.align_chunks_par();
            // Serial numbers and other identifiers are not quantities, but users may still subtract
            // them.
            let narrow = frame
                .columns()
                .iter()
                .filter(|column| matches!(column.dtype(), DataType::UInt32 | DataType::Int32));
            let wide: Vec<Expr> =
                narrow.map(|column| col(column.name().clone()).cast(DataType::Int64)).collect();
            context.register(name, frame.lazy().with_columns(wide));
        }
        drop(frames);
        let tables: Vec<&'static TableSchema> = tables.into_values().collect();
        let answer = context.execute(&sql).and_then(|lazy| lazy.collect());
        answer.map(Answer::new).map_err(|error| explained(&error, &tables))
    }
}

fn no_table(name: &str) -> QueryError {
    let names = TABLES.iter().map(|table| table.name);
    QueryError::Table { name: name.to_owned(), nearest: nearest(name, names) }
}

/// Rewrites an error of the engine in terms of the tables.
fn explained(error: &PolarsError, tables: &[&'static TableSchema]) -> QueryError {
    let text = error.to_string();
    let quoted = || {
        let name = text.split(['"', '\'', '`']).nth(1)?;
        (!name.is_empty()).then(|| name.to_owned())
    };
    let of_columns = match error {
        PolarsError::ColumnNotFound(_) => true,
        PolarsError::SQLInterface(_) => text.contains("column"),
        _ => text.contains("unable to find column"),
    };
    match quoted() {
        Some(name) if of_columns && !is_column(&name, tables) => return no_column(&name, tables),
        Some(name) if text.contains("relation") && TableSchema::named(&name).is_none() => {
            return no_table(&name);
        }
        _ => {}
    }
    // The rest of the message describes the engine's query plan.
    let first = text.split("\n\n").next().unwrap_or(&text).trim();
    QueryError::Sql(first.to_owned())
}

fn is_column(name: &str, tables: &[&'static TableSchema]) -> bool {
    name == RECORDING || tables.iter().any(|table| table.column(name).is_some())
}

fn no_column(name: &str, tables: &[&'static TableSchema]) -> QueryError {
    let name = name.rsplit('.').next().unwrap_or(name);
    let mut columns: Vec<&'static str> = vec![RECORDING];
    for column in tables.iter().flat_map(|table| table.columns) {
        if !columns.contains(&column.name) {
            columns.push(column.name);
        }
    }
    QueryError::Column {
        name: name.to_owned(),
        nearest: nearest(name, columns.iter().copied()),
        columns,
    }
}
