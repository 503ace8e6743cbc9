//! Hostile names of commands, files and reasons are rendered as inert text in every output format
//! of gates, diffs and metrics.

use crate::common::{metric, run};
use proctrace_findings::Metrics;
use proctrace_fixtures::hostile;
use proctrace_gate::{
    Budget, Diff, Options, Report, RunMetrics, Verdict, gate, init, metrics_file, openmetrics,
    render,
};
use proctrace_report::{
    CsvDialect, Style, chart_svg, escape, table_csv, table_markdown, table_text,
};

/// A run of this name with one command, also of this name.
fn named(name: &str, count: f64) -> RunMetrics {
    let mut run = run(
        name,
        vec![
            metric("total_execs", &[], 4600.0 + count),
            metric("total_processes", &[], 4600.0 + count),
            metric("total_cpu_seconds", &[], 8.0),
            metric("execs", &[("command", name)], count),
            metric("command_processes", &[("command", name)], count),
            metric("command_cpu_seconds", &[("command", name)], count / 100.0),
            metric("spawns", &[("parent", name), ("child", name)], count),
            metric("directory_failed_lookups", &[("directory", name), ("kind", "open")], count),
        ],
    );
    run.metrics.command = vec![name.to_owned(); 2];
    run.metrics.host = name.to_owned();
    run
}

/// A report with findings of all kinds about it, including warnings and doubts.
fn report(name: &str) -> Report {
    let budget = r#"[limits]
total_execs = "5%|100"
'execs{command="*"}' = { relative_percent = 0, severity = "warn" }
'spawns{parent="*"}' = "0%"
total_cpu_seconds = "10%"
"#;
    let mut budget = Budget::parse(name, budget).expect("it is a budget");
    for rule in &mut budget.rules {
        rule.because = Some(name.to_owned());
    }
    let mut after = named(name, 1804.0);
    after.metrics.doubts = vec![name.to_owned(), format!("{name} was lost")];
    let options = Options { allow_doubts: true };
    gate(&budget, &[named(name, 1204.0)], &[after], options).expect("both can be compared")
}

#[test]
fn a_report_is_only_a_report() {
    for name in hostile::texts() {
        let report = report(&name);
        let what = format!("{name:?}");
        assert_eq!(report.verdict, Verdict::Regression);
        for most in [1, usize::MAX] {
            hostile::terminal(&what, &render::text(&report, most));
        }
        hostile::markdown(&what, &render::markdown(&report), &[]);
        let xml = render::junit(&report).expect("it is XML");
        let shown = escape::xml(&name);
        let texts = hostile::junit(&what, &xml);
        // A long name is wrapped.
        let short = name.len() < 60;
        assert!(!short || texts.iter().any(|t| t.contains(&*shown)), "{shown} is not in {xml}");
        let messages = hostile::annotations(&what, &render::annotations(&report));
        assert_eq!(messages.len(), report.groups.len());
        let json = hostile::json(&what, &report.to_json().expect("it is JSON"));
        assert_eq!(json["verdict"], "regression");
    }
}

#[test]
fn a_difference_is_only_a_difference() {
    for name in hostile::texts() {
        let what = format!("{name:?}");
        let others = named("other", 3.0);
        let diff = Diff::of(&[others], &[named(&name, 5.0)]).expect("both can be compared");
        hostile::json(&what, &diff.to_json().expect("it is JSON"));
        for table in diff.tables() {
            hostile::terminal(&what, &table_text(&table, Style::default()));
            hostile::markdown(&what, &table_markdown(&table, usize::MAX), &[]);
        }
        for table in diff.tables_of_numbers() {
            let mut out = Vec::new();
            table_csv(&table, CsvDialect::Unix, &mut out).expect("memory takes it");
            hostile::csv(&what, &String::from_utf8(out).expect("it is text"));
        }
    }
}

#[test]
fn figures_are_only_figures() {
    for name in hostile::texts() {
        let what = format!("{name:?}");
        let metrics: Metrics = named(&name, 3.0).metrics;
        let values = hostile::openmetrics(&what, &openmetrics(&metrics));
        // Line feeds have a separate escape there.
        let shown: Vec<_> = name.split('\n').map(escape::terminal).collect();
        assert!(values.contains(&shown.join("\n")), "{what}: {values:?}");
        let json = metrics_file::to_json(&metrics).expect("it is JSON");
        hostile::json(&what, &json);
        assert_eq!(metrics_file::from_json("x", &json).expect("ours"), metrics);
        hostile::terminal(&what, &table_text(&metrics_file::table(&metrics), Style::default()));
    }
}

#[test]
fn a_first_budget_names_them_and_means_them() {
    for name in hostile::texts() {
        let what = format!("{name:?}");
        let runs = [named(&name, 100.0)];
        let (text, _) = init(&runs);
        hostile::terminal(&what, &text);
        let budget = Budget::parse("gate.toml", &text)
            .unwrap_or_else(|error| panic!("{what}: {error}\n{text}"));
        let report = gate(&budget, &[], &runs, Options::default()).expect("they can be judged");
        assert!(report.findings.is_empty(), "{what}: {report:#?}\n{text}");
        let more = [named(&name, 200.0)];
        let report = gate(&budget, &[], &more, Options::default()).expect("they can be judged");
        let selected = report.findings.iter().filter(|finding| {
            finding.metric.as_ref().is_some_and(|metric| metric.starts_with("execs{"))
        });
        assert_eq!(selected.count(), 1, "{what}: no rule is about it\n{text}");
    }
}

#[test]
fn errors_about_a_budget_are_one_sentence() {
    for name in hostile::texts() {
        let quoted = name.replace(['\\', '\'', '\n', '\r'], " ");
        for text in [
            format!("[limits]\n'{quoted}' = 1\n"),
            format!("'{quoted}' = 1\n"),
            format!("[limits]\ntotal_execs = '{quoted}'\n"),
            name.clone(),
        ] {
            if let Err(error) = Budget::parse(&name, &text) {
                // As `proctrace` prints its errors.
                let printed: Vec<_> = error
                    .to_string()
                    .split('\n')
                    .map(|line| escape::terminal(line).into_owned())
                    .collect();
                hostile::terminal(&name, &printed.join("\n"));
            }
        }
    }
}

#[test]
fn a_waterfall_is_only_a_picture() {
    for name in hostile::texts() {
        let diff = Diff::of(&[named("other", 3.0)], &[named(&name, 5.0)]).expect("comparable");
        let chart = diff.waterfall(20).expect("processes are known on both sides");
        hostile::svg(&format!("{name:?}"), &chart_svg(&chart));
    }
}
