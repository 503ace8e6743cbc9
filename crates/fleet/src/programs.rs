//! The processes of a job by program and spawner: a query on its table of processes.

use std::cmp::Reverse;
use std::path::Path;

use proctrace_analysis::{Query, Recording};
use proctrace_findings::{Rows, RowsValues};

use crate::columns::us;
use crate::error::FleetError;
use crate::key::Key;
use crate::redact::Redaction;
use crate::schema::PROGRAMS;

/// Pairs of programs that are kept, those with most CPU time.
pub const PROGRAMS_MAX: usize = 200;

/// Query of the programs. A sum of nothing is 0 for the engine: each has its count beside it.
const SQL: &str = "\
SELECT program, class, spawner, count(*) AS processes,
  count(cpu_ns) AS cpu_n, sum(cpu_ns) AS cpu_ns,
  count(system_ns) AS system_n, sum(system_ns) AS system_ns,
  count(failed_lookups) AS lookups_n, sum(failed_lookups) AS failed_lookups,
  count(life_ns) AS ended,
  sum(CASE WHEN life_ns < 10000000 THEN cpu_ns ELSE 0 END) AS short_ns,
  sum(CASE WHEN exit_code <> 0 OR signal IS NOT NULL THEN 1 ELSE 0 END) AS failed,
  sum(CASE WHEN (exit_code <> 0 OR signal IS NOT NULL) AND life_ns >= 10000000
    THEN cpu_ns ELSE 0 END) AS failed_ns,
  sum(CASE WHEN life_ns < 1000000 THEN 1 ELSE 0 END) AS lives_1ms,
  sum(CASE WHEN life_ns >= 1000000 AND life_ns < 10000000 THEN 1 ELSE 0 END) AS lives_10ms,
  sum(CASE WHEN life_ns >= 10000000 AND life_ns < 100000000 THEN 1 ELSE 0 END) AS lives_100ms,
  sum(CASE WHEN life_ns >= 100000000 AND life_ns < 1000000000 THEN 1 ELSE 0 END) AS lives_1s
FROM processes GROUP BY program, class, spawner";

/// One row of the table, with times in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq)]
struct Row {
    program: Option<String>,
    class: Option<String>,
    spawner: Option<String>,
    sums: [Option<u64>; SUMS.len()],
}

/// Columns that are summed: the name here and in the query, the column that counts the values, and
/// whether it is a time.
const SUMS: [(&str, &str, &str, bool); 11] = [
    ("processes", "processes", "processes", false),
    ("cpu_us", "cpu_ns", "cpu_n", true),
    ("system_us", "system_ns", "system_n", true),
    ("short_cpu_us", "short_ns", "ended", true),
    ("failed", "failed", "ended", false),
    ("failed_cpu_us", "failed_ns", "ended", true),
    ("failed_lookups", "failed_lookups", "lookups_n", false),
    ("lives_1ms", "lives_1ms", "ended", false),
    ("lives_10ms", "lives_10ms", "ended", false),
    ("lives_100ms", "lives_100ms", "ended", false),
    ("lives_1s", "lives_1s", "ended", false),
];

/// Rows of the programs with most CPU time, and all others in one row.
pub(crate) fn rows(
    key: &Key,
    recording: &Recording,
    path: &Path,
    redaction: Redaction<'_>,
) -> Result<Rows, FleetError> {
    let mut query = Query::new(SQL)?;
    query.add("job", recording, path)?;
    let answer = query.answer()?;
    let found = answer.rows(0, answer.height())?;
    // Before they are put in order, which would tell that of the names.
    let mut found = read(&found);
    for row in &mut found {
        row.program = row.program.take().map(|name| redaction.program(&name));
        row.spawner = row.spawner.take().map(|name| redaction.program(&name));
    }
    Ok(table(key, most_costly(found, PROGRAMS_MAX)))
}

fn read(found: &Rows) -> Vec<Row> {
    let column = |name: &str| found.columns.iter().find(|column| column.name == name);
    let text = |name: &str, row: usize| match &column(name)?.values {
        RowsValues::Text(values) => values.get(row)?.clone(),
        _ => None,
    };
    let whole = |name: &str, row: usize| match &column(name)?.values {
        RowsValues::Signed(values) => u64::try_from((*values.get(row)?)?).ok(),
        RowsValues::Whole(values) => *values.get(row)?,
        _ => None,
    };
    let row = |row: usize| Row {
        program: text("program", row),
        class: text("class", row),
        spawner: text("spawner", row),
        sums: SUMS.map(|(_, sum, counted, _)| {
            whole(counted, row).filter(|n| *n > 0).and_then(|_| whole(sum, row))
        }),
    };
    (0..found.height()).map(row).collect()
}

/// The index of the CPU time in the sums.
const CPU: usize = 1;

fn most_costly(mut rows: Vec<Row>, rows_max: usize) -> Vec<Row> {
    rows.sort_by(|a, b| {
        let order = |row: &Row| (Reverse(row.sums[CPU]), Reverse(row.sums[0]));
        order(a).cmp(&order(b)).then_with(|| {
            (&a.program, &a.spawner, &a.class).cmp(&(&b.program, &b.spawner, &b.class))
        })
    });
    if rows.len() > rows_max {
        let others = rows.split_off(rows_max);
        rows.push(others.iter().fold(Row::default(), |sum, row| sum.plus(row)));
    }
    rows
}

impl Row {
    /// Both together, without names.
    fn plus(&self, other: &Self) -> Self {
        let mut sums = self.sums;
        for (sum, more) in sums.iter_mut().zip(other.sums) {
            *sum = sum_of(*sum, more);
        }
        Self { sums, ..Self::default() }
    }
}

/// Sum of two values, if either is known.
fn sum_of(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (one, None) | (None, one) => one,
    }
}

fn table(key: &Key, rows: Vec<Row>) -> Rows {
    let mut columns = key.columns(&PROGRAMS, rows.len());
    for (at, (name, _, _, is_time)) in SUMS.into_iter().enumerate() {
        let value = |row: &Row| if is_time { row.sums[at].map(us) } else { row.sums[at] };
        columns.whole(name, rows.iter().map(value).collect());
    }
    columns.text("program", rows.iter().map(|row| row.program.clone()).collect());
    columns.text("class", rows.iter().map(|row| row.class.clone()).collect());
    columns.text("spawner", rows.into_iter().map(|row| row.spawner).collect());
    columns.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(program: &str, cpu_ns: Option<u64>) -> Row {
        let mut sums = [Some(1); SUMS.len()];
        sums[CPU] = cpu_ns;
        Row { program: Some(program.to_owned()), sums, ..Row::default() }
    }

    #[test]
    fn what_is_left_out_is_in_the_last_row() {
        let rows = vec![row("a", Some(1)), row("b", Some(5)), row("c", None), row("d", Some(3))];
        let kept = most_costly(rows, 2);
        let told: Vec<_> = kept.iter().map(|row| (row.program.as_deref(), row.sums[CPU])).collect();
        assert_eq!(told, [(Some("b"), Some(5)), (Some("d"), Some(3)), (None, Some(1))]);
        assert_eq!(kept[2].sums[0], Some(2));
    }

    #[test]
    fn a_sum_of_what_is_not_known_is_not_known() {
        assert_eq!(sum_of(None, None), None);
        assert_eq!(sum_of(Some(1), None), Some(1));
        assert_eq!(sum_of(Some(u64::MAX), Some(1)), Some(u64::MAX));
    }
}
