//! How processes ended, for a terminal.

use std::fmt::Write as _;

use proctrace_findings::{Ends, Outcome, ProgramEnd};

use crate::escape::terminal;
use crate::number::count;
use crate::table::{Align, Table, shorten};

/// As many kinds of ends the summary names of those by signals, and of the others: a line of each
/// where names are not long.
const SIGNALS_NAMED: usize = 3;
const CODES_NAMED: usize = 2;
/// Characters of a program's name there.
const NAME_WIDTH: usize = 16;

/// A line of the summary; None where all exited with 0, or nothing is known.
pub(crate) fn summary(ends: &Ends) -> Option<String> {
    let mut parts = Vec::new();
    if ends.signalled > 0 {
        let named = named(ends, SIGNALS_NAMED, |end| matches!(end.outcome, Outcome::Signal(_)));
        parts.push(format!("{} killed by a signal ({named})", count(ends.signalled)));
    }
    if ends.failed > 0 {
        let named = named(ends, CODES_NAMED, |end| matches!(end.outcome, Outcome::Code(_)));
        parts.push(format!("{} exited with a status other than 0 ({named})", count(ends.failed)));
    }
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// The first of these by name: "cc1 SIGSEGV ×2 (core), python3 SIGKILL, …".
fn named(ends: &Ends, most: usize, wanted: impl Fn(&ProgramEnd) -> bool) -> String {
    let mut all = ends.by_program.iter().filter(|end| wanted(end));
    let mut text = String::new();
    for end in all.by_ref().take(most) {
        let how = match end.outcome {
            Outcome::Code(code) => code.to_string(),
            Outcome::Signal(_) => end.how.clone(),
        };
        let comma = if text.is_empty() { "" } else { ", " };
        // Writing to a String cannot fail.
        let _ = write!(text, "{comma}{} {how}", shorten(&terminal(&end.program), NAME_WIDTH));
        if end.processes > 1 {
            let _ = write!(text, " ×{}", count(end.processes));
        }
        if end.core_dumps > 0 {
            text.push_str(" with core dump");
        }
    }
    if all.next().is_some() {
        text.push_str(", …");
    }
    text
}

pub(crate) fn table(ends: &Ends, rows: usize) -> Table {
    let dumped = ends.core_dumps > 0;
    let mut columns = vec![
        ("processes", Align::Right),
        ("how", Align::Left),
        ("core dumps", Align::Right),
        ("what", Align::Left),
        ("pid of one", Align::Right),
        ("started by", Align::Left),
    ];
    columns.retain(|(title, _)| dumped || *title != "core dumps");
    let mut table = Table::new(&columns);
    for end in ends.by_program.iter().take(rows) {
        let mut cells = vec![count(end.processes), end.how.clone()];
        cells.extend(dumped.then(|| count(end.core_dumps)));
        cells.extend([
            terminal(&end.program).into_owned(),
            end.example_pid.to_string(),
            match &*end.example_parent {
                "" => "-".to_owned(),
                parent => terminal(parent).into_owned(),
            },
        ]);
        table.row(cells);
    }
    table
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::style::Style;
    use crate::tables::push_table;

    fn end(program: &str, outcome: Outcome, processes: u64) -> ProgramEnd {
        ProgramEnd {
            program: program.into(),
            outcome,
            how: outcome.word(),
            processes,
            core_dumps: 0,
            example_pid: 4711,
            example_parent: "make".into(),
        }
    }

    /// Ends in which every number is about this one.
    pub(crate) fn extreme(name: &str, n: u64) -> Ends {
        let of = |outcome| {
            let mut end = end(name, outcome, n);
            end.core_dumps = n;
            end
        };
        let by_program = (1..9).flat_map(|n| [of(Outcome::Signal(n)), of(Outcome::Code(n))]);
        Ends {
            succeeded: n,
            failed: n,
            signalled: n,
            core_dumps: n,
            unknown: n,
            by_program: by_program.collect(),
        }
    }

    #[test]
    fn the_worst_are_named() {
        let mut ends = Ends {
            succeeded: 9,
            failed: 14,
            signalled: 3,
            core_dumps: 1,
            unknown: 0,
            by_program: vec![
                end("cc1", Outcome::Signal(11), 2),
                end("python3", Outcome::Signal(9), 1),
                end("sh", Outcome::Code(7), 1),
                end("cc", Outcome::Code(1), 1),
                end("grep", Outcome::Code(1), 11),
                end("test", Outcome::Code(1), 1),
            ],
        };
        ends.by_program[0].core_dumps = 1;
        assert_eq!(
            summary(&ends).unwrap(),
            "3 killed by a signal (cc1 SIGSEGV ×2 with core dump, python3 SIGKILL) · \
             14 exited with a status other than 0 (sh 7, cc 1, …)"
        );
        let mut text = String::new();
        push_table(&mut text, Style::default(), "Ends", &table(&ends, 2));
        assert_eq!(
            text,
            "Ends\n  processes  how      core dumps  what     pid of one  started by\n\
             \x20         2  SIGSEGV           1  cc1            4711  make\n\
             \x20         1  SIGKILL           0  python3        4711  make\n"
        );
        assert_eq!(summary(&Ends { succeeded: 3, unknown: 2, ..Ends::default() }), None);
    }
}
