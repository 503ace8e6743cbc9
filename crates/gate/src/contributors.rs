//! Metrics that changed along with another, so that a finding points to the likely cause.

use proctrace_findings::Worse;

use crate::numbers::Sample;
use crate::side::{Key, Side, family_keys};
use crate::verdict::Contributor;
use crate::words;

/// Maximum number of contributors per family.
const MOST: usize = 4;

/// Families in which to look for the cause of a change, each with an optional label filter.
fn sources<'k>(key: Key<'k>) -> Vec<(&'static str, Option<(&'static str, &'k str)>)> {
    let same = |label: &'static str, of: &'static str| key.label(of).map(|value| (label, value));
    match key.family().name {
        "total_processes"
        | "total_commands"
        | "total_framework_processes"
        | "processes"
        | "peak_processes"
        | "peak_tasks" => {
            vec![("command_processes", None), ("spawns", None), ("step_processes", None)]
        }
        "total_detached" | "detached_cpu_seconds" => vec![("detached_processes", None)],
        "total_failed" => vec![("failed_processes", None)],
        "total_threads" | "total_tasks" => vec![("command_threads", None)],
        "command_threads" => vec![("command_processes", same("command", "command"))],
        "total_execs" | "total_execs_failed" | "total_opens" => {
            vec![("execs", None), ("spawns", None)]
        }
        "execs" | "command_processes" => vec![("spawns", same("child", "command"))],
        "spawns" => vec![("spawns", same("child", "parent"))],
        "total_failed_lookups" => {
            vec![("directory_failed_lookups", None), ("command_failed_lookups", None)]
        }
        "failed_lookups" => vec![
            // Commands are not counted by kind: listing those of all kinds would blame the wrong
            // ones.
            ("directory_failed_lookups", same("kind", "kind")),
        ],
        "command_failed_lookups" => vec![
            ("directory_failed_lookups", None),
            ("command_processes", same("command", "command")),
        ],
        "directory_failed_lookups" => vec![("command_failed_lookups", None)],
        "command_cpu_seconds" => vec![
            ("command_processes", same("command", "command")),
            ("command_failed_lookups", same("command", "command")),
            ("spawns", same("child", "command")),
        ],
        "peak_rss_bytes" | "peak_pss_bytes" | "phase_peak_pss_bytes" => {
            vec![("command_peak_rss_bytes", None)]
        }
        "step_runs" => vec![("spawns", None), ("command_processes", None)],
        "step_failures" => vec![("step_runs", same("group", "group"))],
        "step_processes" => {
            vec![
                ("step_runs", same("group", "group")),
                ("spawns", None),
                ("command_processes", None),
            ]
        }
        "step_wall_seconds" | "step_longest_wall_seconds" => vec![
            ("step_runs", same("group", "group")),
            ("step_cpu_seconds", same("group", "group")),
            ("command_cpu_seconds", None),
        ],
        "step_cpu_seconds" => vec![
            ("step_runs", same("group", "group")),
            ("step_processes", same("group", "group")),
            ("command_cpu_seconds", None),
        ],
        "step_peak_pss_bytes" => {
            vec![("step_runs", same("group", "group")), ("command_peak_rss_bytes", None)]
        }
        "wall_seconds" => vec![
            ("step_longest_wall_seconds", None),
            ("command_cpu_seconds", None),
            ("command_processes", None),
        ],
        "total_cpu_seconds" => vec![
            ("command_cpu_seconds", None),
            ("command_processes", None),
            ("step_cpu_seconds", None),
        ],
        // By command only the sum of both is recorded.
        "total_cpu_system_seconds" => vec![("cpu_system_seconds", None)],
        "total_cpu_user_seconds" => vec![("cpu_user_seconds", None)],
        "cpu_system_seconds" | "cpu_user_seconds" => Vec::new(),
        name if name.ends_with("_seconds") => {
            vec![("command_cpu_seconds", None), ("command_processes", None)]
        }
        name if name.starts_with("switches_") || name.starts_with("faults_") => {
            vec![("command_processes", None)]
        }
        _ => Vec::new(),
    }
}

/// Metrics that changed in the same direction as `key`, the largest change first; without a
/// baseline, the largest values.
pub(crate) fn contributors(
    key: Key<'_>,
    worse: Worse,
    before: Option<&Side<'_>>,
    after: &Side<'_>,
) -> Vec<Contributor> {
    let sides: Vec<&Side<'_>> = before.into_iter().chain([after]).collect();
    let mut all = Vec::new();
    for (family, wanted) in sources(key) {
        let mut found: Vec<Contributor> = family_keys(&sides, family)
            .into_iter()
            .filter(|other| *other != key)
            .filter(|other| wanted.is_none_or(|(label, value)| other.label(label) == Some(value)))
            .filter_map(|other| contributor(other, before, after))
            .filter(|found| match worse {
                Worse::Higher => found.change > 0.0,
                Worse::Lower => found.change < 0.0 || found.before.is_none(),
            })
            .collect();
        found.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()));
        found.truncate(MOST);
        all.append(&mut found);
    }
    all
}

fn contributor(key: Key<'_>, before: Option<&Side<'_>>, after: &Side<'_>) -> Option<Contributor> {
    let family = key.family();
    let centre =
        |side: &Side<'_>| Sample::of(family.kind, &side.values(key)?).map(|sample| sample.centre);
    let after = centre(after)?;
    let before = before.and_then(centre);
    let change = after - before.unwrap_or(0.0);
    let now = words::value(family, after);
    let message = match before {
        None => now,
        Some(before) => format!(
            "{} ({} before, {now} after)",
            words::change(family, change),
            words::value(family, before)
        ),
    };
    Some(Contributor { metric: key.to_string(), before, after, change, message })
}
