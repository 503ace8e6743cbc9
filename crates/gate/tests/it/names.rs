//! The names of metrics never change silently, and metrics survive a round trip through a file.

use crate::common::{job, metric, run};
use proctrace_findings::Cell;
use proctrace_gate::metrics_file::{from_json, names, table, to_json};
use proptest::prelude::*;

#[test]
fn names_are_those_that_were_published() {
    insta::assert_snapshot!(names());
}

#[test]
fn a_table_has_every_figure_with_its_unit() {
    let mut recording = job("a", 100.0, 1.0, 3, 4.0).metrics;
    recording.doubts = vec!["3 records were lost".into()];
    let table = table(&recording);
    assert_eq!(table.height(), recording.metrics.len());
    let values = &table.named("value").unwrap().values;
    assert_eq!(values.get(4), Cell::Text("4.00 s"));
    assert_eq!(values.get(6), Cell::Text("12.0 MB"));
    assert_eq!(table.notes, ["Cannot be trusted: 3 records were lost"]);
}

#[test]
fn files_that_cannot_be_are_refused() {
    let error = |metrics| {
        let text = to_json(&run("a", metrics).metrics).unwrap();
        from_json("base.json", &text).unwrap_err().to_string()
    };
    let sed = || metric("execs", &[("command", "sed")], 1.0);
    assert_eq!(
        error(vec![metric("total_execs", &[], -1.0)]),
        "base.json: total_execs: negative value"
    );
    assert_eq!(error(vec![sed(), sed()]), r#"base.json: execs{command="sed"}: duplicate metric"#);
    assert_eq!(
        error(vec![metric("execs", &[("cmd", "sed")], 1.0)]),
        r#"base.json: execs{cmd="sed"}: unexpected labels"#
    );
    let error = from_json("base.json", "{\n\"x\": 1").unwrap_err().to_string();
    let says = "base.json is not output of `proctrace metrics --format json`: ";
    assert!(error.starts_with(says), "{error}");
    assert!(error.contains("line 2"), "{error}");
    // from a later version
    let later = run("a", vec![metric("total_wishes", &[], 3.0)]).metrics;
    assert_eq!(from_json("f", &to_json(&later).unwrap()).unwrap(), later);
}

proptest! {
    #[test]
    fn figures_come_back(name in any::<String>(), value in 0.0..1e300_f64) {
        let recording = run("a", vec![metric("execs", &[("command", &name)], value)]).metrics;
        prop_assert_eq!(from_json("f", &to_json(&recording).unwrap()).unwrap(), recording);
    }

    #[test]
    fn any_text_gives_figures_or_an_error(text in ".{0,100}") {
        let _ = from_json("f", &text);
    }
}
