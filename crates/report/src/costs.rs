//! The key figures of a report: a label, what is known of it, and what gives way where there is no room.

use std::collections::HashMap;
use std::fmt::Write as _;

use proctrace_findings::{Correlations, DirectoryMisses, Findings, Summary};

use crate::ends;
use crate::escape::terminal;
use crate::fit::columns;
use crate::number::{bytes, count, counted, percent, time};
use crate::path;
use crate::table::{shorten, shorten_apart, shorten_list};

/// Maximum phases between marks that are named.
const PHASES_MAX: usize = 6;
/// Maximum length of a phase's name in the summary.
const PHASE_WIDTH: usize = 24;
/// Maximum length of a directory's name.
const DIRECTORY_WIDTH: usize = 40;
/// Directories, or groups of them, that are named.
const PLACES: usize = 3;
/// Directories of one directory that are one place.
const TOGETHER_MIN: u64 = 3;

/// Other jobs that used less of the machine are not named.
const OTHERS_MIN_PERCENT: f64 = 10.0;

const NOT_KNOWN: &str = "not known";

/// A row.
#[derive(Debug)]
pub(crate) struct Row {
    /// Its label, or none if it belongs to the row above.
    pub(crate) label: &'static str,
    pub(crate) text: String,
    /// Rows with the greatest number are left out first; those with 0 never.
    pub(crate) spare: u8,
}

/// All rows, in their order.
pub(crate) fn rows(findings: &Findings, width: usize) -> Vec<Row> {
    let s = &findings.summary;
    let mut rows = Vec::new();
    let mut push = |label, text: Option<String>, spare| {
        rows.extend(text.map(|text| Row { label, text, spare }));
    };
    push("Ends", findings.ends.as_ref().and_then(|ends| ends::summary(ends, width)), 0);
    push("Cause", findings.ends.as_deref().and_then(ends::cause), 0);
    push("CPU", Some(cpu(findings)), 0);
    push("", unseen(s), 2);
    push("", others(s), 1);
    let path = findings.critical_path.iter().flat_map(|path| path::summary(path, width));
    for (label, text) in path {
        push(label, Some(text), if label == "Wall" { 1 } else { 5 });
    }
    push("Tasks", Some(tasks(s)), 0);
    push("", Some(concurrency(s)), 6);
    push("Phases", phases(findings, width), 2);
    push("Memory", Some(memory(findings)), 0);
    push("Storage", Some(storage(s)), 5);
    push("System", system(&findings.correlations), 1);
    push("Wasted", Some(wasted(s)), 0);
    push("", opens(s), 5);
    push("", most_wasted(&findings.lookups, width), 3);
    rows
}

fn tasks(s: &Summary) -> String {
    let mut execs = known(s.execs, |n| counted(n, "exec", "execs"), "execs");
    if let Some(failed) = s.execs_failed.filter(|failed| *failed > 0) {
        let searched = s.execs_searched.unwrap_or(0).min(failed);
        let _ = match failed - searched {
            0 => write!(execs, " ({} tried in vain along PATH)", count(failed)),
            others if searched == 0 => write!(execs, " ({} failed)", count(others)),
            others => write!(
                execs,
                " ({} failed, {} tried in vain along PATH)",
                count(others),
                count(searched)
            ),
        };
    }
    format!(
        "{} · {} · {execs}",
        known(s.processes, |n| counted(n, "process", "processes"), "processes"),
        known(s.threads, |n| counted(n, "thread", "threads"), "threads"),
    )
}

/// The longest phases between marks in order of time, as many as fit on a line.
fn phases(findings: &Findings, width: usize) -> Option<String> {
    let all = findings.phases.as_deref().filter(|all| !all.is_empty())?;
    let mut longest: Vec<usize> = (0..all.len()).collect();
    longest.sort_by_key(|at| std::cmp::Reverse(all[*at].wall_ns()));
    let mut names: Vec<String> =
        all.iter().map(|phase| terminal(&phase.name).into_owned()).collect();
    shorten_apart(&mut names.iter_mut().collect::<Vec<_>>(), PHASE_WIDTH);
    let line = |chosen: &[usize]| {
        let mut chosen = chosen.to_vec();
        chosen.sort_unstable();
        let part = |at: &usize| {
            let name = shorten(&names[*at], PHASE_WIDTH);
            format!("{name} {}", time(all[*at].wall_ns()))
        };
        let mut parts: Vec<String> = chosen.iter().map(part).collect();
        if chosen.len() < all.len() {
            parts.push(format!("{} more", count((all.len() - chosen.len()) as u64)));
        }
        parts.join(" · ")
    };
    let fits = |n: &usize| columns(&line(&longest[..*n])) <= width;
    let most = (1..=all.len().min(PHASES_MAX)).rev().find(fits).unwrap_or(1);
    Some(line(&longest[..most]))
}

fn known(figure: Option<u64>, text: impl FnOnce(u64) -> String, name: &str) -> String {
    figure.map_or_else(|| format!("{name} {NOT_KNOWN}"), text)
}

/// CPU time and how it is divided.
fn cpu(findings: &Findings) -> String {
    let s = &findings.summary;
    let Some(cpu_ns) = s.cpu_ns else { return NOT_KNOWN.to_owned() };
    let mut text = time(cpu_ns);
    match s.user_ns.zip(s.system_ns) {
        Some((user_ns, system_ns)) => {
            let _ = write!(text, "   user {} · system {}", time(user_ns), time(system_ns));
            let middle = percent(system_ns, cpu_ns);
            let _ = match s.system_low_percent.zip(s.system_high_percent) {
                Some((low, high)) => write!(text, " ({middle}, {low:.0}-{high:.0})"),
                None => write!(text, " ({middle})"),
            };
        }
        None => {
            let why = findings.known.iter().find(|known| known.quantity == "split");
            let few = why.and_then(|known| known.why.as_deref()).unwrap_or_default();
            let few = few.split(',').next().unwrap_or_default();
            let _ = write!(text, " · user and system {NOT_KNOWN} ({few})");
        }
    }
    if let Some(efficiency) = s.efficiency_percent {
        let cores = counted(u64::from(findings.run.cores), "core", "cores");
        let _ = write!(text, " · {efficiency:.0} % of {cores}");
    }
    text
}

/// Part of the machine that others took, if it was enough to make this one slower.
fn others(s: &Summary) -> Option<String> {
    let percent = s.others_percent.filter(|percent| *percent >= OTHERS_MIN_PERCENT)?;
    Some(format!(
        "others used {percent:.0} % of the machine: times may be longer than they need be"
    ))
}

fn memory(findings: &Findings) -> String {
    let s = &findings.summary;
    let mut parts = Vec::new();
    // Of the sums over a tree, no process's own is known.
    if let (None, Some(all)) = (s.maxrss_bytes, &findings.memory) {
        let (pss, rss) = (bytes(all.peak_pss_bytes), bytes(all.rss_bytes_then));
        return format!(
            "largest PSS of all together {pss} (RSS {rss}) at {}",
            time(all.peak_pss_at_ns)
        );
    }
    parts.push(match (s.maxrss_bytes, &s.maxrss_program) {
        (Some(peak), Some(program)) => {
            format!("largest peak RSS {} ({})", bytes(peak), shorten(&terminal(program), 24))
        }
        (Some(peak), None) => format!("largest peak RSS {}", bytes(peak)),
        (None, _) => format!("largest peak RSS {NOT_KNOWN}"),
    });
    // A minor fault is a page's first use; a major one waits for the disk.
    if let Some(major) = s.faults_major.filter(|major| *major > 0) {
        parts.push(counted(major, "major fault", "major faults"));
    }
    parts.join(" · ")
}

fn storage(s: &Summary) -> String {
    match s.read_bytes.zip(s.write_bytes) {
        Some((read, written)) => format!("{} read, {} written", bytes(read), bytes(written)),
        None => NOT_KNOWN.to_owned(),
    }
}

/// CPU time that `time` does not report.
fn unseen(s: &Summary) -> Option<String> {
    let (waited, all_ns) = (s.waited_cpu_ns?, s.cpu_ns?);
    let (unwaited_ns, detached_ns) = (s.unwaited_cpu_ns?, s.detached_cpu_ns?);
    // Negligible amounts, as from a shell that does not wait for the last process of a pipeline,
    // are not reported.
    if unwaited_ns < all_ns / 1000 && detached_ns < all_ns / 1000 {
        return None;
    }
    let mut text = format!("`time` reports {} of it", time(waited));
    if let Some(detached) = s.detached_processes.filter(|detached| *detached > 0) {
        let _ = write!(
            text,
            " · {} ({})",
            counted(detached, "process outlived its parent", "processes outlived their parents"),
            time(detached_ns),
        );
    } else {
        let _ = write!(text, " · {} in processes never waited for", time(unwaited_ns));
    }
    Some(text)
}

fn concurrency(s: &Summary) -> String {
    let Some(peak) = s.peak_tasks else { return format!("peak number of tasks {NOT_KNOWN}") };
    let mut text = format!("up to {} alive", counted(peak, "task", "tasks"));
    if let Some(running) = s.peak_running {
        let _ = write!(text, ", {} running", count(running));
    }
    if let Some(life) = s.median_life_ns
        && s.processes > Some(2)
    {
        let _ = write!(text, " · median lifetime {}", time(life));
    }
    if let Some(alive) = s.alive_processes.filter(|alive| *alive > 0) {
        let _ = write!(text, " · {} alive at the end", count(alive));
    }
    text
}

/// Look-ups include opens, stats, accesses and more, but successes are counted only for opens. So a
/// percentage exists only for opens, and must not be mistaken for one of all look-ups.
fn wasted(s: &Summary) -> String {
    let mut text = match s.lookups_in_vain {
        Some(lookups) => counted(lookups, "failed look-up", "failed look-ups"),
        None => {
            let known: Vec<String> = s
                .lookups_failed_by_family
                .iter()
                .map(|(family, n)| format!("{} by {family}", count(*n)))
                .collect();
            match known.is_empty() {
                true => format!("failed look-ups {NOT_KNOWN}"),
                false => format!("failed look-ups {}, others {NOT_KNOWN}", known.join(", ")),
            }
        }
    };
    if let Some((lookups, execs)) = s.lookups_in_vain.zip(s.execs)
        && execs > 0
    {
        let _ = write!(text, ", {:.1} per exec", lookups as f64 / execs as f64);
    }
    if let Some(cost_ns) = s.lookups_in_vain_ns {
        let _ = write!(text, ", about {}", time(cost_ns));
    }
    text
}

/// The share of opens that failed. Look-ups are opens, stats, accesses and more, but successes are counted only for
/// opens: a percentage exists only for these, and must not be mistaken for one of all look-ups.
fn opens(s: &Summary) -> Option<String> {
    let failed = s.lookups_failed_by_family.get("open").copied().unwrap_or(0);
    let all = failed.saturating_add(s.opens?);
    (all > 0).then(|| format!("{} of opens failed", percent(failed, all)))
}

/// Directories in which most look-ups failed: "most in 12 directories of /opt/lib (2,529),
/// /usr/lib/locale (54), …".
fn most_wasted(lookups: &[DirectoryMisses], width: usize) -> Option<String> {
    // One directory may have several rows, one for each call and error.
    let mut directories: HashMap<&str, u64> = HashMap::new();
    for misses in lookups {
        let all = directories.entry(&misses.directory).or_default();
        *all = all.saturating_add(misses.count);
    }
    // A search path has many directories beside each other.
    let mut parents: HashMap<&str, (u64, u64)> = HashMap::new();
    for (directory, all) in &directories {
        if let Some((parent, _)) = directory.rsplit_once('/').filter(|(it, _)| !it.is_empty()) {
            let (count, sum) = parents.entry(parent).or_default();
            (*count, *sum) = (*count + 1, sum.saturating_add(*all));
        }
    }
    parents.retain(|_, (count, _)| *count >= TOGETHER_MIN);
    let is_alone = |directory: &str| {
        !directory.rsplit_once('/').is_some_and(|(parent, _)| parents.contains_key(parent))
    };
    let name = |directory: &str| shorten(&terminal(directory), DIRECTORY_WIDTH);
    let together = parents.iter().map(|(parent, (n, all))| {
        (*all, format!("{} directories of {} ({})", count(*n), name(parent), count(*all)))
    });
    let alone = directories.iter().filter(|(directory, _)| is_alone(directory));
    let alone =
        alone.map(|(directory, all)| (*all, format!("{} ({})", name(directory), count(*all))));
    let mut places: Vec<(u64, String)> = together.chain(alone).collect();
    places.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    let is_all = places.len() <= PLACES;
    let mut names: Vec<String> = places.into_iter().take(PLACES).map(|(_, name)| name).collect();
    if !is_all {
        names.push("…".to_owned());
    }
    let list = shorten_list(&names.join(", "), width.saturating_sub("most in ".len()));
    (!names.is_empty()).then(|| format!("most in {list}"))
}

/// Series that can go with system CPU: events, of which each costs some.
const CAUSES: [(&str, &str); 5] = [
    ("forks", "forks"),
    ("execs", "execs"),
    ("switches", "switches"),
    ("look-ups", "look-ups"),
    ("write", "bytes written"),
];

/// The two series with which system CPU goes most over time: "goes with forks (r = +0.91, 0.84 to 0.95)".
fn system(correlations: &Correlations) -> Option<String> {
    if correlations.n < Correlations::BINS_MIN {
        return None;
    }
    let at = |name: &str| correlations.series.iter().position(|series| series == name);
    let system = at("system CPU")?;
    let of = |matrix: &[Vec<Option<f64>>], other: usize| *matrix.get(system)?.get(other)?;
    let mut found: Vec<(f64, f64, f64, &str)> = CAUSES
        .iter()
        .filter_map(|(series, says)| {
            let other = at(series)?;
            let low = of(&correlations.r_low, other)?;
            Some((of(&correlations.r, other)?, low, of(&correlations.r_high, other)?, *says))
        })
        // An interval that contains 0 says nothing.
        .filter(|(_, low, ..)| *low > 0.0)
        .collect();
    found.sort_by(|one, other| other.0.total_cmp(&one.0));
    let (first, rest) = found.split_first()?;
    let mut text = format!(
        "CPU goes with {} (r = {:+.2}, {:.2} to {:.2})",
        first.3, first.0, first.1, first.2
    );
    if let Some((r, _, _, says)) = rest.first() {
        let _ = write!(text, ", {says} ({r:+.2})");
    }
    Some(text)
}
