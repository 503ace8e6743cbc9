//! A table whose columns have names and units: the one shape that every analysis hands out beside
//! its own, and that every renderer knows.

use std::collections::BTreeMap;

use serde::Serialize;

/// A table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// A stable name, as in `report --section NAME`.
    pub name: &'static str,
    /// A heading.
    pub title: String,
    /// What the reader must know to understand it: definitions, n, what is an estimate.
    pub notes: Vec<String>,
    /// All as long as each other.
    pub columns: Vec<Column>,
    /// Its rows belong together and are few: people are always shown all of them.
    #[serde(skip)]
    pub whole: bool,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    /// A stable name that ends in its unit, if it has one: "life_median_ns".
    pub name: &'static str,
    /// A heading for people, without the unit: "half live less than".
    pub title: &'static str,
    /// What its values are.
    pub unit: Unit,
    /// One for each row.
    pub values: Values,
    /// Left out of tables for people, which have no room for it; programs get it.
    #[serde(skip)]
    pub detail: bool,
}

/// What the values of a column are, and so how they are written for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Words, and numbers that are names: of processes.
    Text,
    /// Items, with ", " between them.
    List,
    /// Numbers written out with their units, where those differ from row to row.
    Figure,
    /// A number of things.
    Count,
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// Hundredths.
    Percent,
    /// Things per second.
    PerSecond,
    /// CPUs.
    Cores,
    /// One quantity over another.
    Ratio,
    /// A coefficient between -1 and 1.
    Coefficient,
    /// Yes or no.
    Flag,
}

impl Unit {
    /// Its name, as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::List => "list",
            Self::Figure => "figure",
            Self::Count => "count",
            Self::Nanoseconds => "nanoseconds",
            Self::Bytes => "bytes",
            Self::Percent => "percent",
            Self::PerSecond => "per_second",
            Self::Cores => "cores",
            Self::Ratio => "ratio",
            Self::Coefficient => "coefficient",
            Self::Flag => "flag",
        }
    }
}

/// The values of a column; None where there is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Values {
    /// Words, escaped as `proctrace_wire::escape` does.
    Text(Vec<Option<String>>),
    /// Whole numbers.
    Whole(Vec<Option<u64>>),
    /// Other numbers; all finite.
    Real(Vec<Option<f64>>),
    /// Yes or no.
    Flag(Vec<Option<bool>>),
}

/// One value of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// There is none.
    Missing,
    /// Words.
    Text(&'a str),
    /// A whole number.
    Whole(u64),
    /// Another number.
    Real(f64),
    /// Yes or no.
    Flag(bool),
}

impl Values {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Whole(values) => values.len(),
            Self::Real(values) => values.len(),
            Self::Flag(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes all of them missing.
    pub fn forget(&mut self) {
        match self {
            Self::Text(values) => values.fill(None),
            Self::Whole(values) => values.fill(None),
            Self::Real(values) => values.fill(None),
            Self::Flag(values) => values.fill(None),
        }
    }

    /// Removes all of them.
    pub fn clear(&mut self) {
        match self {
            Self::Text(values) => values.clear(),
            Self::Whole(values) => values.clear(),
            Self::Real(values) => values.clear(),
            Self::Flag(values) => values.clear(),
        }
    }

    /// Keeps the rows for which this says so.
    fn keep(&mut self, rows: &[bool]) {
        fn only<T>(values: &mut Vec<T>, rows: &[bool]) {
            let mut rows = rows.iter();
            values.retain(|_| rows.next().copied().unwrap_or(false));
        }
        match self {
            Self::Text(values) => only(values, rows),
            Self::Whole(values) => only(values, rows),
            Self::Real(values) => only(values, rows),
            Self::Flag(values) => only(values, rows),
        }
    }

    /// The value of a row; missing where there is no such row.
    pub fn get(&self, row: usize) -> Cell<'_> {
        fn at<T>(values: &[Option<T>], row: usize) -> Option<&T> {
            values.get(row).and_then(Option::as_ref)
        }
        match self {
            Self::Text(values) => at(values, row).map_or(Cell::Missing, |text| Cell::Text(text)),
            Self::Whole(values) => at(values, row).map_or(Cell::Missing, |n| Cell::Whole(*n)),
            Self::Real(values) => {
                at(values, row).filter(|x| x.is_finite()).map_or(Cell::Missing, |x| Cell::Real(*x))
            }
            Self::Flag(values) => at(values, row).map_or(Cell::Missing, |yes| Cell::Flag(*yes)),
        }
    }
}

impl Table {
    /// A table without columns yet.
    pub fn new(name: &'static str, title: impl Into<String>) -> Self {
        Self { name, title: title.into(), notes: Vec::new(), columns: Vec::new(), whole: false }
    }

    /// With something the reader must know.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// With a column of words.
    #[must_use]
    pub fn text<T: Into<String>>(
        self,
        name: &'static str,
        title: &'static str,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        let values = values.into_iter().map(|value| Some(value.into())).collect();
        self.column(name, title, Unit::Text, Values::Text(values))
    }

    /// With a column of numbers that are written out.
    #[must_use]
    pub fn figures(
        self,
        name: &'static str,
        title: &'static str,
        values: impl IntoIterator<Item = String>,
    ) -> Self {
        let values = values.into_iter().map(Some).collect();
        self.column(name, title, Unit::Figure, Values::Text(values))
    }

    /// With a column of lists, each written as one text.
    #[must_use]
    pub fn lists(
        self,
        name: &'static str,
        title: &'static str,
        values: impl IntoIterator<Item = String>,
    ) -> Self {
        let values = values.into_iter().map(Some).collect();
        self.column(name, title, Unit::List, Values::Text(values))
    }

    /// With a column of whole numbers.
    #[must_use]
    pub fn whole<T: Into<Option<u64>>>(
        self,
        name: &'static str,
        title: &'static str,
        unit: Unit,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.column(name, title, unit, Values::Whole(values))
    }

    /// With a column of other numbers.
    #[must_use]
    pub fn real<T: Into<Option<f64>>>(
        self,
        name: &'static str,
        title: &'static str,
        unit: Unit,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.column(name, title, unit, Values::Real(values))
    }

    /// With any column.
    #[must_use]
    pub fn column(
        mut self,
        name: &'static str,
        title: &'static str,
        unit: Unit,
        values: Values,
    ) -> Self {
        debug_assert!(
            self.columns.first().is_none_or(|first| first.values.len() == values.len()),
            "column {name} of table {} is not as long as the others",
            self.name
        );
        self.columns.push(Column { name, title, unit, values, detail: false });
        self
    }

    /// The last column is for programs, not for people.
    #[must_use]
    pub fn detail(mut self) -> Self {
        if let Some(column) = self.columns.last_mut() {
            column.detail = true;
        }
        self
    }

    /// A column that is there already is for programs, not for people.
    #[must_use]
    pub fn detail_of(mut self, name: &str) -> Self {
        if let Some(column) = self.columns.iter_mut().find(|column| column.name == name) {
            column.detail = true;
        }
        self
    }

    /// People are always shown all rows.
    #[must_use]
    pub fn in_whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// How many rows.
    pub fn height(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// The column of that name.
    pub fn named(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Only the rows in which a column of words says this.
    #[must_use]
    pub fn rows_where(&self, column: &str, word: &str) -> Self {
        let key = self.named(column).map(|column| &column.values);
        let keep: Vec<bool> = (0..self.height())
            .map(|row| key.is_some_and(|key| key.get(row) == Cell::Text(word)))
            .collect();
        let mut table = self.clone();
        table.columns.iter_mut().for_each(|column| column.values.keep(&keep));
        table
    }

    /// Units of the columns by name, as JSON shows them beside the rows.
    pub fn units(&self) -> BTreeMap<&'static str, Unit> {
        self.columns.iter().map(|column| (column.name, column.unit)).collect()
    }
}
