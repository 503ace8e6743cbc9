//! Any text as a budget, as a `--limit` argument, as a selector, and as metrics.

use proctrace_gate::{
    Budget, Limit, Options, RunMetrics, Selector, gate, init, metrics_file, openmetrics,
};

pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let parsed = Budget::parse("fuzz.toml", &text);
    if let Err(error) = &parsed {
        assert!(error.to_string().starts_with("fuzz.toml:"), "{error}");
    }
    let mut budget = parsed.unwrap_or_default();
    for line in text.lines() {
        let _ = budget.push_argument(line);
        let _ = line.parse::<Limit>();
        if let Ok(selector) = Selector::parse(line) {
            let written = selector.to_string();
            assert_eq!(Selector::parse(&written), Ok(selector), "{written:?}");
        }
    }
    for rule in &budget.rules {
        let written = rule.selector.to_string();
        assert_eq!(Selector::parse(&written).as_ref(), Ok(&rule.selector), "{written:?}");
    }
    let _ = budget.needs_baseline();
    figures(&text, &budget);
}

/// Parsed metrics can be written, judged, and turned into a budget that they satisfy.
fn figures(text: &str, budget: &Budget) {
    let Ok(metrics) = metrics_file::from_json("fuzz.json", text) else { return };
    let json = metrics_file::to_json(&metrics).expect("it was JSON before");
    assert_eq!(metrics_file::from_json("again", &json).expect("it is ours"), metrics);
    assert!(openmetrics(&metrics).ends_with("# EOF\n"));
    let runs = [RunMetrics { name: "fuzz.json".into(), metrics }];
    let _ = gate(budget, &runs, &runs, Options { allow_doubts: true });
    let (first, _) = init(&runs);
    let first = Budget::parse("init", &first).unwrap_or_else(|error| panic!("{error}\n{first}"));
    if let Ok(report) = gate(&first, &[], &runs, Options { allow_doubts: true }) {
        let failed = report.findings.iter().find(|finding| finding.rule.is_some());
        assert!(failed.is_none(), "{failed:?}");
    }
}
