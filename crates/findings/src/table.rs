//! A table whose columns have names and units: the common output format of all analyses, which
//! every renderer supports.

use std::collections::BTreeMap;

use proctrace_wire::Quantity;
use serde::Serialize;
use strum::IntoStaticStr;

/// A table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// A stable name, as in `report --section NAME`.
    pub name: &'static str,
    /// A heading.
    pub title: String,
    /// Notes needed to interpret the table: definitions, n, which values are estimates.
    pub notes: Vec<String>,
    /// The columns, all of equal length.
    pub columns: Vec<Column>,
    /// True if text output always shows all rows, because they are few and belong together.
    #[serde(skip)]
    pub whole: bool,
    /// The column whose largest values decide which rows are shown where there is no room for all, in a
    /// table whose rows are in another order, such as that of time. Without it the first are.
    #[serde(skip)]
    pub shown_by: Option<&'static str>,
    /// Quantities without which its rows are not known; `None` if that is not declared.
    #[serde(skip)]
    pub rows_need: Option<&'static [Quantity]>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    /// A stable name that ends in its unit, if there is one: "life_median_ns".
    pub name: &'static str,
    /// A heading for readers, without the unit: "median life".
    pub title: &'static str,
    /// The unit of the values.
    pub unit: Unit,
    /// One value per row.
    pub values: Values,
    /// True if it is omitted from text tables, which have no room for it, but kept in
    /// machine-readable output.
    #[serde(skip)]
    pub detail: bool,
    /// Quantities without which its values are not known, beside those that the rows and the unit need.
    #[serde(skip)]
    pub needs: &'static [Quantity],
}

impl Column {
    /// Quantities without which its values are not known, beside those that the rows need.
    pub fn all_needs(&self) -> Vec<Quantity> {
        [self.unit.needs(), self.needs].concat()
    }
}

/// The unit of a column, which determines how its values are formatted for readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, Serialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Unit {
    /// Strings, and numbers that are identifiers, such as pids.
    Text,
    /// Lists, with ", " between the items.
    List,
    /// Numbers already formatted with units, where units differ between rows.
    Figure,
    /// A count.
    Count,
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// Percent.
    Percent,
    /// Events per second.
    PerSecond,
    /// A number of CPUs.
    Cores,
    /// A ratio of two quantities.
    Ratio,
    /// A coefficient between -1 and 1.
    Coefficient,
    /// A boolean.
    Flag,
}

impl Unit {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Quantities that all values of it need.
    pub const fn needs(self) -> &'static [Quantity] {
        match self {
            Self::Nanoseconds | Self::PerSecond => &[Quantity::Times],
            _ => &[],
        }
    }
}

/// The values of a column; None is a missing value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Values {
    /// Strings, escaped by `proctrace_wire::escape`.
    Text(Vec<Option<String>>),
    /// Unsigned integers.
    Whole(Vec<Option<u64>>),
    /// Floating-point numbers; all finite.
    Real(Vec<Option<f64>>),
    /// Booleans.
    Flag(Vec<Option<bool>>),
}

/// One value of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// No value.
    Missing,
    /// A string.
    Text(&'a str),
    /// An unsigned integer.
    Whole(u64),
    /// A floating-point number.
    Real(f64),
    /// A boolean.
    Flag(bool),
}

impl Values {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Whole(values) => values.len(),
            Self::Real(values) => values.len(),
            Self::Flag(values) => values.len(),
        }
    }

    /// True if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets all values to missing.
    pub fn forget(&mut self) {
        match self {
            Self::Text(values) => values.fill(None),
            Self::Whole(values) => values.fill(None),
            Self::Real(values) => values.fill(None),
            Self::Flag(values) => values.fill(None),
        }
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        match self {
            Self::Text(values) => values.clear(),
            Self::Whole(values) => values.clear(),
            Self::Real(values) => values.clear(),
            Self::Flag(values) => values.clear(),
        }
    }

    /// Keeps only the rows marked true.
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

    /// The value of a row; missing if the row does not exist.
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
    /// A table without columns.
    pub fn new(name: &'static str, title: impl Into<String>) -> Self {
        Self {
            name,
            title: title.into(),
            notes: Vec::new(),
            columns: Vec::new(),
            whole: false,
            shown_by: None,
            rows_need: None,
        }
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Adds a column of strings.
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

    /// Adds a column of preformatted numbers.
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

    /// Adds a column of lists, each formatted as one string.
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

    /// Adds a column of unsigned integers.
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

    /// Adds a column of floating-point numbers.
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

    /// Adds a column of any kind.
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
            "column {name} of table {} has a different length from the others",
            self.name
        );
        self.columns.push(Column { name, title, unit, values, detail: false, needs: &[] });
        self
    }

    /// Declares quantities without which its rows are not known.
    #[must_use]
    pub fn rows_need(mut self, needs: &'static [Quantity]) -> Self {
        self.rows_need = Some(needs);
        self
    }

    /// Declares quantities without which the last column is not known, beside those of the rows and of its unit.
    #[must_use]
    pub fn needs(mut self, needs: &'static [Quantity]) -> Self {
        if let Some(column) = self.columns.last_mut() {
            column.needs = needs;
        }
        self
    }

    /// Marks the last column as machine-readable output only.
    #[must_use]
    pub fn detail(mut self) -> Self {
        if let Some(column) = self.columns.last_mut() {
            column.detail = true;
        }
        self
    }

    /// Marks an existing column as machine-readable output only.
    #[must_use]
    pub fn detail_of(mut self, name: &str) -> Self {
        if let Some(column) = self.columns.iter_mut().find(|column| column.name == name) {
            column.detail = true;
        }
        self
    }

    /// Makes text output show all rows.
    #[must_use]
    pub fn in_whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// Makes text output show the rows with the largest values of a column, in their order.
    #[must_use]
    pub fn longest_by(mut self, column: &'static str) -> Self {
        self.shown_by = Some(column);
        self
    }

    /// The rows to show where there is room for this number of them.
    pub fn shown(&self, room: usize) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.height()).collect();
        if let Some(column) = self.shown_by.and_then(|name| self.named(name)) {
            let value = |row: &usize| match column.values.get(*row) {
                Cell::Whole(number) => number as f64,
                Cell::Real(number) => number,
                _ => f64::NEG_INFINITY,
            };
            rows.sort_by(|a, b| value(b).total_cmp(&value(a)));
            rows.truncate(room);
            rows.sort_unstable();
        }
        rows.truncate(room);
        rows
    }

    /// Number of rows.
    pub fn height(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// Finds a column by name.
    pub fn named(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Keeps only the rows in which a string column equals `word`.
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

    /// Units by column name, which JSON output shows next to the rows.
    pub fn units(&self) -> BTreeMap<&'static str, Unit> {
        self.columns.iter().map(|column| (column.name, column.unit)).collect()
    }
}
