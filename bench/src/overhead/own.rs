//! Counts proctrace's own events, from its trailer and its report.

use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;
use xtask::run::{as_root, output};

use super::counts::{Counts, Seen};
use super::site::Site;

/// The recording command, to be followed by that of the payload.
pub(super) fn command(site: &Site, options: &[&str]) -> Command {
    let mut command = as_root(site.release.join("proctrace"));
    command.args(["record", "--quiet"]).args(options);
    command.arg("--output").arg(site.out("")).arg("--");
    command
}

/// The same through a broker that serves this run only. The payload takes its time itself.
pub(super) fn by_broker(site: &Site) -> Result<Command> {
    const SCRIPT: &str = r#"
        "$1" broker --socket "$2.socket" 2> "$2.log" & broker=$!
        until grep -q ready "$2.log"; do sleep 0.01; done
        program=$1; base=$2; shift 2
        "$program" record --quiet --backend broker --broker "$base.socket" --output "$base" -- "$@"
        status=$?; kill $broker; wait $broker; exit $status"#;
    let mut command = as_root("sh");
    command.args(["-c", SCRIPT, "sh"]).arg(site.release.join("proctrace")).arg(site.out(""));
    Ok(command)
}

pub(super) fn count(site: &Site) -> Result<Seen> {
    let header = ask(site, &["dump", "--header"])?;
    let report = ask(site, &["report", "--json"])?;
    seen(&header["trailer"], &report)
}

/// CPU time of loading the programs.
pub(super) fn loading_ns(site: &Site) -> Result<u64> {
    let header = ask(site, &["dump", "--header"])?;
    header["trailer"]["recorder"]["loading_ns"].as_u64().context("the trailer has no loading time")
}

pub(super) fn ask(site: &Site, arguments: &[&str]) -> Result<Value> {
    let mut command = Command::new(site.release.join("proctrace"));
    Ok(serde_json::from_slice(&output(command.args(arguments).arg(site.out("")))?)?)
}

fn seen(trailer: &Value, report: &Value) -> Result<Seen> {
    let records = trailer["records"].as_object().context("the trailer has no record counts")?;
    let kind = |name: &str| records.get(name).and_then(Value::as_u64).unwrap_or(0);
    let opens = &report["summary"]["lookups_failed_by_family"];
    let opens = opens.as_object().context("the report has no failed look-ups")?;
    // Losses counted in the trailer, and those that only the report detects.
    let lost = report["health"]["lost"].as_u64().context("the report has no losses")?;
    let losses = trailer["losses"].as_array().context("the trailer has no losses")?;
    let told: u64 = losses.iter().filter_map(|loss| loss["count"].as_u64()).sum();
    Ok(Seen {
        counts: Counts::all(
            kind("fork"),
            kind("exec"),
            kind("exit"),
            opens.get("open").and_then(Value::as_u64).unwrap_or(0),
        ),
        records: Some(records.values().filter_map(Value::as_u64).sum()),
        lost: Some(lost.max(told)),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn records_and_losses_are_read() {
        let trailer = json!({
            "records": {"attach": 1, "fork": 3, "exec": 4, "exit": 4, "lookup_failed": 9},
            "losses": [{"count": 2}, {"count": 5}],
        });
        let report = json!({
            "summary": {"lookups_failed_by_family": {"access": 4, "open": 5}},
            "health": {"lost": 7},
        });
        let expected = Seen { counts: Counts::all(3, 4, 4, 5), records: Some(21), lost: Some(7) };
        assert_eq!(seen(&trailer, &report).unwrap(), expected);
        assert!(seen(&json!({}), &report).is_err());
    }
}
