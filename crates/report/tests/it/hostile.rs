//! Hostile names in every table format are rendered as inert text.

use proctrace_findings::{Rows, RowsColumn, RowsValues, Table, Unit};
use proctrace_fixtures::hostile;
use proctrace_report::{
    CsvDialect, Style, escape, rows_ndjson, table_csv, table_json, table_markdown, table_text,
};
use proctrace_wire::escape::to_bytes;

/// Every attack string in a cell, a list, a title and a note.
fn table(title: &str) -> Table {
    let texts = hostile::texts();
    Table::new("hostile", title)
        .text("name", "name", texts.clone())
        .lists("names", "names", texts.iter().map(|text| format!("{text} 3, {text}, x")))
        .whole("n", "n", Unit::Count, (0..texts.len() as u64).map(Some))
        .note(title)
        .note(format!("{title} is most of it; {title}"))
}

#[test]
fn text_acts_on_no_terminal() {
    for title in hostile::texts() {
        for width in [40, 80, 200] {
            let style = Style { width, lines: 24, rows: usize::MAX, colour: false };
            hostile::terminal(&title, &table_text(&table(&title), style));
        }
    }
}

#[test]
fn markdown_has_no_markup_of_others() {
    for title in hostile::texts() {
        let text = table_markdown(&table(&title), usize::MAX);
        let blocks = hostile::markdown(&title, &text, &[]);
        // Each name stays in a single cell, without loss.
        for name in hostile::texts() {
            let shown = escape::terminal(&name).trim().to_owned();
            assert!(blocks.contains(&shown), "{shown:?} is not in {text}");
        }
    }
}

#[test]
fn csv_has_no_formulas_and_loses_nothing() {
    let mut out = Vec::new();
    table_csv(&table("x"), CsvDialect::Unix, &mut out).expect("memory takes it");
    let text = String::from_utf8(out).expect("it is text");
    let rows = hostile::csv("a table", &text);
    let texts = hostile::texts();
    assert_eq!(rows.len(), texts.len() + 1);
    for (row, text) in rows[1..].iter().zip(&texts) {
        let cell = &row[0];
        let bare = cell.strip_prefix('\'').filter(|rest| {
            rest.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\u{ff1d}'])
        });
        assert_eq!(to_bytes(bare.unwrap_or(cell)), to_bytes(text), "{cell:?}");
    }
}

#[test]
fn numbers_in_csv_stay_as_they_are() {
    let table = Table::new("t", "t").text("text", "text", ["-5", "+1e3", "-5 ms"]).real(
        "real",
        "real",
        Unit::Percent,
        [Some(-0.5), Some(-1e300), None],
    );
    let mut out = Vec::new();
    table_csv(&table, CsvDialect::Unix, &mut out).expect("memory takes it");
    let text = String::from_utf8(out).expect("it is text");
    let rows = hostile::csv("numbers", &text);
    assert_eq!(rows[1], ["-5", "-0.5"]);
    assert_eq!(rows[2][0], "+1e3");
    assert_eq!(rows[2][1].parse::<f64>(), Ok(-1e300));
    assert_eq!(rows[3], ["'-5 ms", ""]);
}

#[test]
fn json_is_inert_and_means_the_same() {
    let text = serde_json::to_string_pretty(&table_json(&table("x"))).expect("it is JSON");
    let value = hostile::json("a table", &escape::json(&text));
    for (row, text) in hostile::texts().iter().enumerate() {
        assert_eq!(value["rows"][row]["name"], **text);
    }
}

#[test]
fn lines_of_json_are_inert_and_mean_the_same() {
    let texts = hostile::texts();
    let column = |name: &str, values| RowsColumn { name: name.to_owned(), values };
    let rows = Rows {
        columns: vec![
            column("name", RowsValues::Text(texts.iter().cloned().map(Some).collect())),
            column("names", RowsValues::Texts(vec![Some(texts.clone()); texts.len()])),
        ],
    };
    let mut out = Vec::new();
    rows_ndjson(&rows, &mut out).expect("memory takes it");
    let lines = hostile::json_lines("rows", &String::from_utf8(out).expect("it is text"));
    assert_eq!(lines.len(), texts.len());
    for (line, text) in lines.iter().zip(&texts) {
        assert_eq!(line["name"], **text);
        assert_eq!(line["names"], serde_json::json!(texts));
    }
}

/// Every hostile text as a name in the answers about processes.
#[test]
fn answers_about_processes_act_on_no_terminal() {
    use proctrace_findings::{
        Alive, AliveProcess, Candidate, ProcessTree, ProgramDetails, Relative, Slow, TreeRow,
    };
    use proctrace_report::{alive_text, candidates_text, program_text, tree_text};

    for name in hostile::texts() {
        let style = Style { width: 80, lines: 24, rows: usize::MAX, colour: false };
        let process = Relative { serial: 1, pid: 2, program: name.clone() };
        let candidate = Candidate { process, born_ns: 1, ended_ns: None, command: name.clone() };
        hostile::terminal(&name, &candidates_text(std::slice::from_ref(&candidate), style));
        let row = TreeRow { command: Some(name.clone()), siblings: 1, ..TreeRow::default() };
        let tree = ProcessTree { rows: vec![row], ..ProcessTree::default() };
        hostile::terminal(&name, &tree_text(&tree, style));
        let arguments = Some(vec![name.clone(); 2]);
        let one = AliveProcess { program: name.clone(), arguments, ..AliveProcess::default() };
        let alive = Alive { processes: vec![one], ..Alive::default() };
        hostile::terminal(&name, &alive_text(&alive, style));
        let program = ProgramDetails {
            program: name.clone(),
            categories: vec![name.clone()],
            started_by: vec![(name.clone(), 1)],
            outcomes: vec![(name.clone(), 1)],
            slowest: vec![Slow { process: candidate, life_ns: 1, cpu_ns: None, outcome: None }],
            ..ProgramDetails::default()
        };
        hostile::terminal(&name, &program_text(&program, style));
    }
}
