//! Output for a fixed trace: keys and texts that users and scripts rely on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::common::{Events, header, proctrace, report, text};
use serde_json::Value;

fn repository() -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../..")
}

fn tour() -> PathBuf {
    repository().join("fixtures/traces/tour-1.ptrace")
}

fn printed(arguments: &[&str]) -> String {
    let output =
        proctrace().args(arguments).env("COLUMNS", "80").env("NO_COLOR", "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn events_keep_their_keys() {
    let events = Events::of(&tour());
    // The first event of each kind, and of each kind of exit.
    let mut shown: BTreeMap<String, &Value> = BTreeMap::new();
    for event in &events.0 {
        let kind = text(&event["kind"]).to_owned();
        let name = match event.get("signal") {
            Some(_) => format!("{kind} by signal"),
            None => kind,
        };
        shown.entry(name).or_insert(event);
    }
    let lines: Vec<String> = shown.values().map(|event| event.to_string()).collect();
    insta::assert_snapshot!("dump", lines.join("\n"));
}

#[test]
fn every_key_that_is_printed_is_documented() {
    let documented = std::fs::read_to_string(repository().join("docs/dump.md")).unwrap();
    let tours = (1..=proctrace_wire::WIRE_VERSION)
        .map(|version| format!("fixtures/traces/tour-{version}.ptrace"));
    let tours: Vec<Events> = tours.map(|tour| Events::of(&repository().join(tour))).collect();
    let mut keys: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for event in tours.iter().flat_map(|events| &events.0) {
        let of_kind = keys.entry(text(&event["kind"])).or_default();
        of_kind.extend(event.as_object().unwrap().keys().map(String::as_str));
    }
    for (kind, keys) in keys {
        let section = documented
            .split("\n## ")
            .find(|section| section.starts_with(&format!("`{kind}`")))
            .unwrap_or_else(|| panic!("docs/dump.md has no section on {kind}"));
        for key in keys.difference(&BTreeSet::from(["kind", "time_ns", "pid", "tid"])) {
            assert!(section.contains(&format!("| `{key}` |")), "docs/dump.md: {kind} lacks {key}");
        }
    }
}

#[test]
fn kinds_can_be_chosen() {
    let all = Events::of(&tour());
    let output =
        printed(&["dump", tour().to_str().unwrap(), "--kind", "exec_failed", "--kind", "rename"]);
    assert_eq!(output.lines().count(), all.count("exec_failed") + all.count("rename"));
    assert!(all.count("rename") > 0);
}

/// The names of all sections.
fn sections() -> Vec<String> {
    let list = printed(&["report", "--section", "list"]);
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

#[test]
fn what_people_read_has_room_on_any_terminal() {
    let mut texts = Vec::new();
    for trace in ["tour-1", "tour-6", "alice-o2-before", "alice-o2-after"] {
        let trace = repository().join(format!("fixtures/traces/{trace}.ptrace"));
        texts.push(printed(&["report", trace.to_str().unwrap()]));
        texts.push(printed(&["report", "--all", trace.to_str().unwrap()]));
        for section in sections() {
            texts.push(printed(&["report", trace.to_str().unwrap(), "--section", &section]));
        }
        let program = text(&report(&trace)["categories"][0]["name"]).to_owned();
        let trace = trace.to_str().unwrap();
        texts.push(printed(&["tree", trace, "--all", "--min", "0"]));
        texts.push(printed(&["ps", trace, "--at", "100ms"]));
        texts.push(printed(&["show", trace, "--serial", "1", "--all"]));
        texts.push(printed(&["show", &program, trace]));
    }
    for text in texts {
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

/// The part of a report after the summary screen, by the headings of its tables.
#[test]
fn a_report_goes_from_programs_to_what_goes_with_what() {
    let trace = repository().join("fixtures/traces/alice-o2-before.ptrace");
    let report = printed(&["report", "--top", "10", trace.to_str().unwrap()]);
    let headings: Vec<&str> = report
        .split("\n\n")
        .filter_map(|part| part.lines().next())
        .filter(|line| !line.starts_with(' '))
        .collect();
    assert_eq!(
        headings[1..headings.len() - 1],
        [
            "No records lost; all consistency checks passed.",
            "The experiment's software",
            "System commands",
            "Other programs",
            "Processes that did not exit with 0, worst first",
            "Processes started, by parent and child program",
            "Groups of steps, most wall time first",
            "Failed look-ups by directory",
            "Processes that outlived their parent",
            "Correlations over time: Pearson's r",
        ]
    );
    // Programs get the data from which the tables below are made.
    let json =
        printed(&["report", trace.to_str().unwrap(), "--section", "lookups", "--format", "json"]);
    let tables: Value = serde_json::from_str(&json).unwrap();
    let most = tables[0]["rows"][0]["count"].as_u64().unwrap();
    assert!(report.contains(&format!("{},{:03} ", most / 1_000, most % 1_000)), "{report}");
}

#[test]
fn the_summary_fits_a_screen() {
    for trace in ["tour-5", "alice-o2-before", "alice-o2-after"] {
        let trace = repository().join(format!("fixtures/traces/{trace}.ptrace"));
        let screen = printed(&["report", trace.to_str().unwrap()]);
        // A line of the terminal is for what is typed next.
        assert!(screen.lines().count() <= 23, "{screen}");
        assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
        let (_, programs) = screen.split_once("\n  Programs ").unwrap();
        let (programs, more) = programs.split_once("\n\n").unwrap();
        assert!(programs.lines().count() >= 6, "{screen}");
        assert!(more.starts_with("  More     proctrace "), "{screen}");
        assert_eq!(screen, printed(&["report", "--summary", trace.to_str().unwrap()]));
    }
}

#[test]
fn findings_keep_their_keys() {
    let mut findings = report(&tour());
    for table in ["categories", "spawners", "lookups"] {
        findings[table].as_array_mut().unwrap().truncate(2);
    }
    // Only a corner of each matrix; the report shows more.
    for matrix in findings["correlations"].as_object_mut().unwrap().values_mut() {
        for row in matrix.as_array_mut().into_iter().flatten().filter_map(|row| row.as_array_mut())
        {
            row.truncate(2);
        }
        if let Some(rows) = matrix.as_array_mut().filter(|rows| rows[0].is_array()) {
            rows.truncate(2);
        }
    }
    without_prose(&mut findings);
    insta::assert_json_snapshot!("findings", findings);
}

/// Answers of `show`, `tree` and `ps` about a process, a program, the tree and a time.
#[test]
fn answers_about_processes_keep_their_keys() {
    let tour = repository().join("fixtures/traces/tour-5.ptrace");
    for (name, arguments) in [
        ("show_process", &["show", "--serial", "1"][..]),
        ("show_program", &["show", "true"]),
        ("tree", &["tree", "--depth", "2"]),
        ("ps", &["ps", "--at", "1ms"]),
    ] {
        let arguments = [arguments, &["--format", "json", tour.to_str().unwrap()]].concat();
        let mut answer: Value = serde_json::from_str(&printed(&arguments)).unwrap();
        without_prose(&mut answer);
        insta::assert_json_snapshot!(name, answer);
    }
}

#[test]
fn the_header_keeps_its_keys() {
    insta::assert_json_snapshot!("header", header(&tour()));
}

#[test]
fn commands_keep_their_options() {
    let mut options: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for arguments in [
        &["--help"][..],
        &["record", "--help"],
        &["report", "--help"],
        &["dump", "--help"],
        &["classify", "--help"],
        &["mark", "--help"],
        &["doctor", "--help"],
        &["show", "--help"],
        &["tree", "--help"],
        &["ps", "--help"],
    ] {
        let help = printed(arguments);
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
        // Each option, with its values if these are a choice, without what is said of them.
        let own = help.lines().filter_map(|line| match line.trim_start() {
            values if values.starts_with("[possible values: ") => Some(values),
            value if value.starts_with("- ") => value.split(':').next(),
            // Text that begins with an option is further to the right.
            option if option.starts_with('-') && line.len() - option.len() <= 6 => {
                option.split("  ").next()
            }
            _ => None,
        });
        let own = own.map(str::to_owned);
        options.insert(arguments.join(" "), own.collect());
    }
    insta::assert_json_snapshot!("options", options);
}

#[test]
fn man_pages_and_completions_are_made_from_the_same() {
    let directory = tempfile::tempdir().unwrap();
    printed(&["man", directory.path().to_str().unwrap()]);
    for page in ["proctrace.1", "proctrace-record.1", "proctrace-report.1", "proctrace-dump.1"] {
        let roff = std::fs::read_to_string(directory.path().join(page)).unwrap();
        assert!(roff.contains(".SH"), "{page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = printed(&["completions", shell]);
        assert!(script.contains("ring-size"), "{shell}");
    }
}

/// Number of table rows kept, except for the summary; the total number is kept as well.
const ROWS: usize = 12;

/// Rounds numbers whose last digits are insignificant and differ between machines.
fn rounded(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().unwrap();
            *value = format!("{number:.6e}").parse::<f64>().unwrap().into();
        }
        Value::Array(values) => values.iter_mut().for_each(rounded),
        Value::Object(values) => values.values_mut().for_each(rounded),
        _ => {}
    }
}

/// Removes what only people read: notes, explanations, and numbers as texts, of which the number is there, too. A snapshot holds
/// values, so that a change of words changes none.
fn without_prose(value: &mut Value) {
    const PROSE: [&str; 4] = ["notes", "says", "title", "why"];
    match value {
        Value::Array(values) => values.iter_mut().for_each(without_prose),
        Value::Object(values) => {
            let numbers: BTreeSet<String> = values
                .keys()
                .filter_map(|key| key.strip_suffix("_number"))
                .map(str::to_owned)
                .collect();
            values.retain(|key, _| !PROSE.contains(&key.as_str()) && !numbers.contains(key));
            values.values_mut().for_each(without_prose);
        }
        _ => {}
    }
}

#[test]
fn phases_are_the_same() {
    let trace = repository().join("fixtures/traces/tour-6.ptrace");
    let trace = trace.to_str().unwrap();
    for (name, arguments) in
        [("phases", ["--section", "phases"]), ("phase", ["--phase", "second moment"])]
    {
        let all = [&["report", "--format", "json"][..], &arguments, &[trace]].concat();
        let mut found: Value = serde_json::from_str(&printed(&all)).unwrap();
        without_prose(&mut found);
        rounded(&mut found);
        insta::assert_json_snapshot!(name, found);
    }
}

#[test]
fn sections_of_the_payloads_find_the_same() {
    let sections = sections();
    assert!(sections.len() >= 16, "{sections:?}");
    let mut names = BTreeSet::new();
    for payload in ["alice-o2-before", "alice-o2-after"] {
        let trace = repository().join(format!("fixtures/traces/{payload}.ptrace"));
        for section in &sections {
            let arguments =
                ["report", trace.to_str().unwrap(), "--section", section, "--format", "json"];
            let mut tables: Value = serde_json::from_str(&printed(&arguments)).unwrap();
            for table in tables.as_array_mut().unwrap() {
                // Files are named after tables, whatever their section.
                let name = text(&table["name"]).to_owned();
                assert!(names.insert((payload, name)), "{section}: {}", table["name"]);
                let rows = table["rows"].as_array_mut().unwrap();
                let all = rows.len();
                if section != "summary" {
                    rows.truncate(ROWS);
                }
                table["rows_in_all"] = all.into();
            }
            without_prose(&mut tables);
            rounded(&mut tables);
            insta::assert_json_snapshot!(format!("{payload}_{section}"), tables);
        }
    }
}
