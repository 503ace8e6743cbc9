//! Anything excluded from a recording is unknown: in reports, metrics, comparisons and gates.

use std::path::Path;
use std::process::Output;

use crate::common::{Recorded, Recorder, proctrace, report};

/// 40 failed opens and stats of non-existent paths.
fn record(options: &[&str]) -> Recorded {
    let recorded = Recorder::new().option(options).fixture("lookups", &["10"]);
    assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
    recorded
}

fn gate(arguments: &[&str], trace: &Path) -> Output {
    proctrace().arg("gate").args(arguments).arg(trace).output().unwrap()
}

#[test]
fn a_gate_does_not_take_what_was_left_out_for_none() {
    let left_out = record(&["--misses", "none"]);
    let limit = ["--limit", "total_failed_lookups=|48"];
    let output = gate(&limit, &left_out.trace());
    let says = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{says}");
    assert!(says.contains("PT013") && says.contains("total_failed_lookups"), "{says}");
    assert!(says.contains("left out by --misses"), "{says}");
    // The machine-readable reports contain the finding, too.
    let junit = left_out.directory.path().join("junit.xml");
    let json = left_out.directory.path().join("gate.json");
    let arguments =
        [&limit[..], &["--junit", junit.to_str().unwrap(), "--json", json.to_str().unwrap()]]
            .concat();
    assert_eq!(gate(&arguments, &left_out.trace()).status.code(), Some(1));
    assert!(std::fs::read_to_string(junit).unwrap().contains("PT013"));
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(report["verdict"], "refused");
    assert_eq!(report["findings"][0]["metric"], "total_failed_lookups");

    // The same gate judges known metrics.
    assert_eq!(gate(&["--limit", "total_execs=|48"], &left_out.trace()).status.code(), Some(0));
    let asked_for = record(&[]);
    assert_eq!(gate(&limit, &asked_for.trace()).status.code(), Some(3));

    // Only one side knows it: no comparison, whether it is selected by name or by a pattern.
    let baseline = asked_for.trace().display().to_string();
    for limit in ["total_failed_lookups=5%", "failed_lookups=5%", "total_*=5%"] {
        let output = gate(&["--baseline", &baseline, "--limit", limit], &left_out.trace());
        let says = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{limit}: {says}");
    }
    // Neither side knows it, and a pattern does not select it explicitly.
    let baseline = left_out.trace().display().to_string();
    let output = gate(&["--baseline", &baseline, "--limit", "total_f*=5%"], &left_out.trace());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
}

mod root {
    use super::*;

    #[test]
    fn a_report_and_a_diff_say_what_is_not_known() {
        let left_out = record(&["--misses", "none", "--no-env"]);
        let text =
            proctrace().args(["report", "--all"]).arg(left_out.trace()).output().unwrap().stdout;
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("failed look-ups not known"), "{text}");
        assert!(!text.contains("0 failed look-ups"), "{text}");
        assert!(text.contains("consistency checks passed (not"), "{text}");
        let check = proctrace().arg("check").arg(left_out.trace()).output().unwrap();
        assert_eq!(check.status.code(), Some(0));
        let check = String::from_utf8(check.stdout).unwrap();
        assert!(check.contains("not checked, because failed opens"), "{check}");

        let findings = report(&left_out.trace());
        let state = |quantity: &str| {
            let known = findings["known"].as_array().unwrap();
            known.iter().find(|known| known["quantity"] == quantity).unwrap()["state"].clone()
        };
        for quantity in ["lookups_open", "lookups_exec", "memory", "environment"] {
            assert_eq!(state(quantity), "absent", "{quantity}");
        }
        for quantity in ["forks", "execs", "argv", "cpu", "switches", "faults", "io", "samples"] {
            assert_eq!(state(quantity), "exact", "{quantity}");
        }

        let asked_for = record(&[]);
        let diff =
            proctrace().arg("diff").args([asked_for.trace(), left_out.trace()]).output().unwrap();
        let diff = String::from_utf8(diff.stdout).unwrap();
        let row =
            diff.lines().find(|line| line.trim_start().starts_with("failed look-ups")).unwrap();
        assert!(row.contains("unknown"), "{row}");
        let openmetrics = proctrace()
            .args(["metrics", "--format", "openmetrics"])
            .arg(left_out.trace())
            .output()
            .unwrap();
        assert!(!String::from_utf8(openmetrics.stdout).unwrap().contains("failed_lookups"));
    }
}
