//! Generates a first budget from recordings: counts tight, CPU time loose, with the reasons.

use std::borrow::Cow;
use std::fmt::Write as _;

use proctrace_findings::{Kind, MetricFamily};
use proctrace_report::escape::{is_unseen, terminal};

use crate::numbers::Sample;
use crate::side::{Key, Run, Side};
use crate::words;

/// Maximum number of commands with a rule of their own.
const COMMANDS: usize = 20;

/// Any other command may run this often before it counts as new.
const UNLISTED: f64 = 10.0;

/// Allowed CPU time relative to the recorded maximum: shared machines vary this much.
const CPU_FACTOR: f64 = 1.5;
/// Additional allowed seconds, for jobs that use hardly any CPU time.
const CPU_SECONDS: f64 = 0.5;
const MEMORY_FACTOR: f64 = 1.25;

const COUNTS: &[&str] =
    &["total_processes", "total_execs", "total_execs_failed", "total_threads", "total_detached"];

/// Tolerance for failed look-ups, relative and absolute: commands such as ps read /proc, whose
/// entries change with other load on the machine.
const LOOKUPS_FACTOR: f64 = 1.05;
const LOOKUPS: f64 = 10.0;

/// Writes a commented budget that these recordings satisfy. It works without baselines; the
/// comments explain how to compare with a baseline.
pub fn init(runs: &[Run]) -> String {
    let side = Side::of(runs.iter().map(|run| &run.metrics));
    let mut out = head(runs);
    out.push_str(COUNTS_COMMENT);
    if runs.len() == 1 {
        out.push_str("# One recording does not show by how much they vary, if they do.\n");
    }
    for name in COUNTS {
        if let Some(key) = Key::new(name, &[]) {
            push_count(&mut out, &side, key, Slack::None);
        }
    }
    let kinds: Vec<Key<'_>> = side.family("failed_lookups").collect();
    out.push_str(LOOKUPS_COMMENT);
    for key in Key::new("total_failed_lookups", &[]).into_iter().chain(kinds) {
        push_count(&mut out, &side, key, Slack::Lookups);
    }
    push_commands(&mut out, &side);
    push_times(&mut out, &side);
    out
}

fn head(runs: &[Run]) -> String {
    let mut out = String::from("# What this payload may cost, for `proctrace gate --budget`.\n");
    let names: Vec<String> = runs.iter().map(|run| terminal(&run.name).into_owned()).collect();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "# Made by `proctrace gate init` from: {}", names.join(", "));
    out.push_str(HEAD);
    out
}

const HEAD: &str = r#"#
# Of the rules about a figure the last one decides: patterns first, exceptions after them.
#   "5%"      at most 5 % more than the baseline (--baseline)
#   "|500"    at most 500
#   "5%|500"  both
#   { relative_percent = 5, absolute = 500, min_change = 10, severity = "warn",
#     worse = "lower", inconclusive = "warn", unmatched = "allow", because = "…" }

[defaults]
severity = "deny"       # or "warn": say it and pass
inconclusive = "fail"   # or "warn", where noise hides the answer
unmatched = "warn"      # or "allow", "deny", where a rule is about nothing

[limits]
"#;

const COUNTS_COMMENT: &str = "\
# Counts are tight: the same payload does the same things, however busy the machine is.
# With a baseline, write \"0%\" instead and they follow it.
";

const LOOKUPS_COMMENT: &str = "
# Failed look-ups, in all and by call; most of them search for libraries. 5 % and 10 more are
# allowed, because commands such as ps look into /proc, which changes with whatever else runs.
";

/// How far a count may exceed the recorded maximum, in addition to its variation.
#[derive(Clone, Copy, PartialEq)]
enum Slack {
    None,
    Lookups,
}

/// Writes the ceiling of a count: the largest value, plus the range over which it varied.
fn push_count(out: &mut String, side: &Side<'_>, key: Key<'_>, slack: Slack) {
    let Some(sample) = sample(side, key) else { return };
    let spread = sample.greatest - sample.least;
    let ceiling = match slack {
        Slack::None => sample.greatest + spread,
        Slack::Lookups => {
            (sample.greatest + spread).max((sample.greatest * LOOKUPS_FACTOR).ceil() + LOOKUPS)
        }
    };
    let ceiling = written(ceiling);
    let comment = if sample.is_constant() {
        String::new()
    } else {
        format!("  # {} to {} in {} runs", sample.least, sample.greatest, sample.n)
    };
    let _ = writeln!(out, "{} = \"|{ceiling}\"{comment}", toml_key(&key.to_string()));
}

fn push_commands(out: &mut String, side: &Side<'_>) {
    let mut commands: Vec<(f64, Key<'_>)> =
        side.family("execs").filter_map(|key| Some((sample(side, key)?.greatest, key))).collect();
    commands.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    if commands.is_empty() {
        return;
    }
    let unlisted =
        commands.get(COMMANDS).map_or(UNLISTED, |(most, _)| written(most.max(UNLISTED) * 2.0));
    let _ = write!(
        out,
        "\n# Any command, so that a new one that is run often is noticed. Those below are exceptions.\n\
         'execs{{command=\"*\"}}' = {{ absolute = {unlisted}, unmatched = \"allow\" }}\n"
    );
    for (_, key) in commands.iter().take(COMMANDS) {
        push_count(out, side, *key, Slack::None);
    }
}

fn push_times(out: &mut String, side: &Side<'_>) {
    out.push_str(TIMES_COMMENT);
    for name in ["total_cpu_seconds", "total_cpu_system_seconds"] {
        push_ceiling(out, side, name, CPU_FACTOR, CPU_SECONDS, "");
    }
    out.push_str("\n# The largest program. Allocators and kernels differ, so it only warns.\n");
    push_ceiling(out, side, "peak_rss_bytes", MEMORY_FACTOR, 0.0, ", severity = \"warn\"");
    out.push_str(
        "\n# Elapsed time depends on whatever else runs, and is limited only where it is named.\n",
    );
    if let Some(sample) = Key::new("wall_seconds", &[]).and_then(|key| sample(side, key)) {
        let ceiling = round_up(sample.greatest * 2.0);
        let _ = writeln!(out, "# wall_seconds = {{ absolute = {ceiling}, severity = \"warn\" }}");
    }
}

const TIMES_COMMENT: &str = "
# CPU time is loose: 1.5 times what was recorded and 0.5 s more, because machines differ and are
# shared, and jobs that hardly take any vary most.
# It is also split between user and system by sampling, so that short jobs have little of either.
# With 5 baselines and 5 candidates from the same machine it can be compared as tightly as noise
# allows; replace the line by:
# total_cpu_seconds = { relative_percent = 10, min_change = 0.1, inconclusive = \"warn\" }
";

fn push_ceiling(
    out: &mut String,
    side: &Side<'_>,
    name: &str,
    factor: f64,
    more: f64,
    options: &str,
) {
    let Some((key, family)) = Key::new(name, &[]).zip(MetricFamily::named(name)) else { return };
    let Some(sample) = sample(side, key) else { return };
    let ceiling = round_up(sample.greatest * factor + more);
    let seen = words::value(family, sample.greatest);
    let _ =
        writeln!(out, "{name} = {{ absolute = {ceiling}{options} }}  # at most {seen} was seen");
}

/// The sample of a metric that was measured in every run. Counts are summarised by their median,
/// which no ceiling uses.
fn sample(side: &Side<'_>, key: Key<'_>) -> Option<Sample> {
    Sample::of(Kind::Count, &side.values(key)?)
}

/// Rounds up to two significant digits: 1.43 becomes 1.5.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let digits = value.log10().floor() as i32 - 1;
    let rounded = if digits >= 0 {
        let step = 10_f64.powi(digits);
        (value / step).ceil() * step
    } else {
        let steps = 10_f64.powi(-digits);
        (value * steps).ceil() / steps
    };
    // Very large and very small numbers overflow when rounded.
    if rounded.is_finite() { rounded } else { written(value) }
}

/// A ceiling limited to finite values, as a budget requires.
fn written(ceiling: f64) -> f64 {
    ceiling.min(f64::MAX)
}

/// A TOML key: bare, in quotes without escapes, or in quotes with escapes.
fn toml_key(key: &str) -> String {
    if key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return key.to_owned();
    }
    if !key.contains('\'') && matches!(terminal(key), Cow::Borrowed(_)) {
        return format!("'{key}'");
    }
    let mut out = String::from("\"");
    for c in key.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            // A colon or hash may begin a command in a CI log.
            c if is_unseen(c) || c == ':' || c == '#' => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
