//! Every metric of a recording under the stable name of its family.

use std::collections::BTreeMap;

use proctrace_classify::labels::class_name;
use proctrace_findings::{
    Class, DirectoryMisses, FAMILIES, Figure, Health, MarkedPhase, Metric, Metrics, Summary,
    Unknown,
};
use proctrace_overview::figures::OfProcesses;
use proctrace_overview::outcomes::failed;
use proctrace_overview::steps::{self, StepGroup};
use proctrace_overview::summary;
use proctrace_overview::sums::{Edge, Label, Sum};
use proctrace_recording::Recording;
use proctrace_recording::knowledge::Knows;
use proctrace_wire::{Kind, Quantity};

use crate::analysis::Analysis;

impl Analysis<'_> {
    /// Every metric of the recording under its stable name, in the order of
    /// [`FAMILIES`], the largest of each family first.
    ///
    /// A family without labels is present if the recording knows what it needs: `peak_pss_bytes`
    /// needs `--memory`. One with labels has as many members as there are things to count, possibly
    /// none. [`Metrics::unknown`] distinguishes the two.
    pub fn metrics(&self) -> Metrics {
        metrics(self)
    }
}

/// All metrics of a recording, in the order of [`FAMILIES`].
fn metrics(analysis: &Analysis<'_>) -> Metrics {
    let recording = analysis.recording;
    let sums = analysis.sums();
    let (categories, names) = (sums.by([Label::Category]), sums.by([Label::Name]));
    let pairs = sums.pairs();
    let health = analysis.health();
    let run = summary::run(recording);
    let step_groups = steps::groups(recording, &steps::sums(recording));
    let mut figures = Figures::default();
    totals(&mut figures, analysis, &sums.by([Label::Class]));
    by_category(&mut figures, &categories);
    by_command(&mut figures, &names);
    of_processes(&mut figures, recording);
    for process in analysis.detached() {
        let program = recording.program_of(&recording.processes()[*process]);
        figures.add("detached_processes", &[&program.name], 1.0);
    }
    figures.add("total_failed", &[], 0.0);
    for process in recording.processes() {
        if failed(process) {
            figures.add("total_failed", &[], 1.0);
            figures.add("failed_processes", &[&recording.program_of(process).name], 1.0);
        }
    }
    lookups(&mut figures, analysis.summary(), analysis.lookups());
    phases(&mut figures, analysis.phases().unwrap_or(&[]));
    by_step_group(&mut figures, &step_groups);
    spawns(&mut figures, recording, &pairs);
    Metrics {
        command: run.command,
        host: run.host,
        started_unix_ns: run.started_unix_ns,
        cores: run.cores,
        others_percent: recording.others_percent(),
        doubts: doubts(&health),
        metrics: figures.in_order(recording.knows()),
        unknown: unknown(analysis),
    }
}

/// The families, or members of them, that need something that is not known.
fn unknown(analysis: &Analysis<'_>) -> Vec<Unknown> {
    let knows = analysis.recording.knows();
    let mut unknown = Vec::new();
    for family in FAMILIES {
        let name = family.name;
        if family.labels.contains(&"kind") {
            for quantity in Quantity::LOOKUPS {
                if let Some(why) = knows.why_not(&[quantity]) {
                    let kind = quantity.family().map(str::to_owned);
                    unknown.push(Unknown { kind, ..Unknown::family(name, why) });
                }
            }
        } else if !knows.knows_metric(family)
            && let Some(why) = knows.why_not(family.needs)
        {
            unknown.push(Unknown::family(name, why));
        } else if name == "total_opens" && analysis.summary().opens.is_none() {
            let why = "live tasks have not reported their successful opens".to_owned();
            unknown.push(Unknown::family(name, why));
        } else if name == "phase_peak_pss_bytes" {
            let unread = analysis.phases().unwrap_or(&[]).iter();
            unknown.extend(unread.filter(|phase| phase.peak_pss_bytes.is_none()).map(|phase| {
                let why = "memory was not read in this phase".to_owned();
                Unknown { phase: Some(phase.name.clone()), ..Unknown::family(name, why) }
            }));
        }
    }
    unknown
}

/// Figures by family name and label values; repeated entries add up.
#[derive(Debug, Default)]
struct Figures<'a>(BTreeMap<&'static str, BTreeMap<Vec<&'a str>, f64>>);

impl<'a> Figures<'a> {
    fn add(&mut self, family: &'static str, labels: &[&'a str], value: f64) {
        *self.0.entry(family).or_default().entry(labels.to_vec()).or_default() += value;
    }

    /// The known ones, in order.
    fn in_order(self, knows: &Knows) -> Vec<Metric> {
        let mut metrics = Vec::new();
        for family in FAMILIES {
            if !knows.knows_metric(family) {
                continue;
            }
            let Some(members) = self.0.get(family.name) else { continue };
            let mut members: Vec<(&Vec<&str>, f64)> =
                members.iter().map(|(labels, value)| (labels, *value)).collect();
            // The map is sorted by label, and a stable sort keeps that order.
            members.sort_by(|a, b| b.1.total_cmp(&a.1));
            metrics.extend(members.into_iter().map(|(labels, value)| {
                Metric {
                    name: family.name.to_owned(),
                    labels: family
                        .labels
                        .iter()
                        .zip(labels)
                        .map(|(label, value)| ((*label).to_owned(), (*value).to_owned()))
                        .collect(),
                    value,
                }
            }));
        }
        metrics
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn totals(figures: &mut Figures<'_>, analysis: &Analysis<'_>, classes: &[Sum]) {
    let summary = analysis.summary();
    let of_class = |class| {
        let found = classes.iter().find(|sum| sum.labels == [class_name(class)]);
        found.map_or(0, |sum| sum.processes)
    };
    let lookups = summary.lookups_in_vain;
    for (family, value) in [
        ("total_processes", summary.processes),
        ("total_threads", summary.threads),
        ("total_tasks", summary.processes.zip(summary.threads).map(|(a, b)| a.saturating_add(b))),
        ("total_execs", summary.execs),
        ("total_execs_failed", summary.execs_failed),
        ("total_commands", Some(of_class(Class::Command))),
        ("total_framework_processes", Some(of_class(Class::Framework))),
        ("total_failed_lookups", lookups),
        ("total_detached", summary.detached_processes),
        ("total_opens", summary.opens),
        ("peak_tasks", summary.peak_tasks),
        ("peak_processes", summary.peak_processes),
        ("peak_rss_bytes", summary.maxrss_bytes),
        ("switches_voluntary", summary.switches_voluntary),
        ("switches_involuntary", summary.switches_involuntary),
        ("faults_minor", summary.faults_minor),
        ("faults_major", summary.faults_major),
        ("read_bytes", summary.read_bytes),
        ("write_bytes", summary.write_bytes),
    ] {
        if let Some(value) = value {
            figures.add(family, &[], value as f64);
        }
    }
    for (family, ns) in [
        ("total_cpu_user_seconds", summary.user_ns),
        ("total_cpu_system_seconds", summary.system_ns),
        ("total_cpu_seconds", summary.cpu_ns),
        ("detached_cpu_seconds", summary.detached_cpu_ns),
        ("unwaited_cpu_seconds", summary.unwaited_cpu_ns),
        ("wall_seconds", Some(analysis.recording.wall_ns())),
        ("run_delay_seconds", summary.run_delay_ns),
    ] {
        if let Some(ns) = ns {
            figures.add(family, &[], seconds(ns));
        }
    }
    if let Some(memory) = analysis.memory() {
        figures.add("peak_pss_bytes", &[], memory.peak_pss_bytes as f64);
    }
}

fn by_category<'a>(figures: &mut Figures<'a>, categories: &'a [Sum]) {
    for sum in categories {
        let label = [&*sum.labels[0]];
        // A program that no process ran last can only have execs.
        if sum.processes > 0 {
            figures.add("processes", &label, sum.processes as f64);
            figures.add("threads", &label, sum.threads as f64);
            figures.add("cpu_user_seconds", &label, seconds(sum.used.cpu.user_ns));
            figures.add("cpu_system_seconds", &label, seconds(sum.used.cpu.system_ns));
        }
    }
}

fn by_command<'a>(figures: &mut Figures<'a>, names: &'a [Sum]) {
    for sum in names {
        let label = [&*sum.labels[0]];
        if sum.execs > 0 {
            figures.add("execs", &label, sum.execs as f64);
        }
        if sum.processes > 0 {
            figures.add("command_processes", &label, sum.processes as f64);
            figures.add("command_cpu_seconds", &label, seconds(sum.cpu_ns()));
        }
        if sum.threads > 0 {
            figures.add("command_threads", &label, sum.threads as f64);
        }
        if sum.failed_lookups > 0 {
            figures.add("command_failed_lookups", &label, sum.failed_lookups as f64);
        }
    }
}

/// Figures of processes by the program that they ran last; without those of which nothing is known.
fn of_processes<'a>(figures: &mut Figures<'a>, recording: &'a Recording) {
    let processes = recording.processes();
    let all = OfProcesses::new(recording, 0..processes.len());
    for family in FAMILIES {
        let Some((figure, values)) =
            family.figure.and_then(|figure| Some((figure, all.column(figure)?)))
        else {
            continue;
        };
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for (process, value) in processes.iter().zip(values) {
            let Some(value) = value else { continue };
            let sum = by_name.entry(&recording.program_of(process).name).or_default();
            *sum = if figure.is_largest() { value.max(*sum) } else { sum.saturating_add(value) };
        }
        for (name, value) in by_name {
            let value = if family.unit == "seconds" { seconds(value) } else { value as f64 };
            figures.add(family.name, &[name], value);
        }
    }
}

fn lookups<'a>(
    figures: &mut Figures<'a>,
    summary: &'a Summary,
    directories: &'a [DirectoryMisses],
) {
    for (kind, count) in &summary.lookups_failed_by_family {
        figures.add("failed_lookups", &[kind], *count as f64);
    }
    for misses in directories {
        let labels = [&*misses.directory, &*misses.family];
        figures.add("directory_failed_lookups", &labels, misses.count as f64);
    }
}

fn phases<'a>(figures: &mut Figures<'a>, phases: &'a [MarkedPhase]) {
    for phase in phases {
        let label = [&*phase.name];
        let count = |count: Option<u64>| count.map(|count| count as f64);
        for (family, value) in [
            ("phase_begin_seconds", Some(seconds(phase.begin_ns))),
            ("phase_wall_seconds", Some(seconds(phase.wall_ns()))),
            ("phase_cpu_seconds", phase.cpu_ns.map(seconds)),
            ("phase_processes", count(phase.processes)),
            ("phase_failed_lookups", count(phase.failed_lookups)),
            ("phase_peak_pss_bytes", count(phase.peak_pss_bytes)),
        ] {
            if let Some(value) = value {
                figures.add(family, &label, value);
            }
        }
    }
}

fn by_step_group<'a>(figures: &mut Figures<'a>, groups: &'a [StepGroup]) {
    for group in groups {
        let count = |count: u64| Some(count as f64);
        for (family, value) in [
            ("step_runs", count(group.steps)),
            ("step_failures", count(group.failed)),
            ("step_wall_seconds", Some(seconds(group.wall_ns))),
            ("step_longest_wall_seconds", Some(seconds(group.longest_wall_ns))),
            ("step_cpu_seconds", group.figures[Figure::CpuNs].map(seconds)),
            ("step_processes", count(group.processes)),
            ("step_peak_pss_bytes", group.peak_pss_bytes.map(|bytes| bytes as f64)),
        ] {
            if let Some(value) = value {
                figures.add(family, &[&*group.name], value);
            }
        }
    }
}

fn spawns<'a>(figures: &mut Figures<'a>, recording: &'a Recording, pairs: &[Edge]) {
    let name = |program: usize| recording.programs().get(program).map(|program| &*program.name);
    for pair in pairs {
        if let (Some(parent), Some(child)) = (name(pair.spawner), name(pair.program)) {
            figures.add("spawns", &[parent, child], pair.processes as f64);
        }
    }
}

/// Reasons why the metrics cannot be trusted, in words.
fn doubts(health: &Health) -> Vec<String> {
    let mut doubts = Vec::new();
    if health.recording_now {
        doubts.push("it is being recorded right now".to_owned());
    } else if !health.complete {
        doubts.push("the recording was cut short".to_owned());
    }
    if health.lost > 0 {
        let losses: Vec<String> = health
            .losses
            .iter()
            .map(|loss| {
                let with = Kind::missing_with(&loss.kind);
                format!("{} of {}{with} ({})", loss.count, loss.kind, loss.reason)
            })
            .collect();
        doubts.push(format!("{} records were lost: {}", health.lost, losses.join(", ")));
    }
    doubts.extend(health.damage.iter().cloned());
    for law in health.laws.iter().filter(|law| law.is_broken()) {
        doubts.push(format!(
            "consistency check failed: {}: found {} {unit}, expected {} {unit}",
            law.says,
            law.found.unwrap_or_default(),
            law.expected.unwrap_or_default(),
            unit = law.unit
        ));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MS, S, Scene};
    use proctrace_trace::{Damage, DamageKind};
    use proctrace_wire::Call;

    /// The families that need more than a recording has by default.
    const ABSENT: [&str; 3] = ["peak_pss_bytes", "step_peak_pss_bytes", "phase_peak_pss_bytes"];

    fn scene() -> Metrics {
        let mut scene = Scene::new(4, S);
        scene.exec(0, 1, "/o2/o2-sim", (0, 0));
        scene.open_failed(MS, 1, "/lib/a.so").open_failed(MS, 1, "/lib/b.so");
        scene.look_up_failed(MS, 1, Call::Newfstatat, "/lib/a.so");
        scene.fork(S, 1, 2).exec(S, 2, "/bin/env", (0, 0)).exec(S, 2, "/bin/sed", (0, 0));
        scene.exit_with(2 * S, 2, (S / 4, S / 4), |exit| exit.file_rss_pages = 500);
        scene.fork(S, 1, 3).thread(S, 3, 4).exit(2 * S, 4, (0, 0));
        // Its parent ends first.
        scene.fork(2 * S + MS, 3, 6).exit(3 * S, 3, (2 * S, 0)).exit(7 * S / 2, 6, (0, 0));
        // The same name as a system command and as a separate program.
        scene.fork(S, 1, 5).in_environment(&["PROCTRACE_STEP=filter_1"]);
        scene.exec(S, 5, "/own/sed", (0, 0));
        scene.exit_with(2 * S, 5, (0, S), |exit| exit.status = 1 << 8);
        scene.look_up_failed(2 * S, 1, Call::Access, "/proc/proctrace-mark/second half");
        scene.exit_with(4 * S, 1, (0, 0), |exit| exit.lookups_failed = 4);
        let recording = scene.load(Some((4 * S, 5 * S / 4 + S, 5 * S / 4)));
        metrics(&Analysis::of(&recording))
    }

    fn value(metrics: &Metrics, metric: &str) -> Option<f64> {
        let found: Vec<&Metric> =
            metrics.metrics.iter().filter(|found| found.to_string() == metric).collect();
        assert!(found.len() <= 1, "{metric} is there {} times", found.len());
        found.first().map(|found| found.value)
    }

    #[test]
    fn every_family_is_there_with_its_labels_and_in_order() {
        let metrics = scene();
        for family in FAMILIES {
            let members: Vec<&Metric> =
                metrics.metrics.iter().filter(|metric| metric.name == family.name).collect();
            assert_eq!(members.is_empty(), ABSENT.contains(&family.name), "{}", family.name);
            for member in &members {
                let labels: Vec<&str> = member.labels.iter().map(|(label, _)| &**label).collect();
                assert_eq!(labels, family.labels, "{member}");
                assert!(member.value.is_finite() && member.value >= 0.0, "{member}");
            }
            assert!(members.is_sorted_by(|a, b| a.value >= b.value), "{members:?}");
            if family.labels.is_empty() {
                assert!(members.len() <= 1, "{members:?}");
            }
        }
        let place = |name: &str| FAMILIES.iter().position(|family| family.name == name).unwrap();
        assert!(metrics.metrics.is_sorted_by_key(|metric| place(&metric.name)));
    }

    #[test]
    fn figures_are_what_happened() {
        let metrics = scene();
        for (metric, expected) in [
            ("total_processes", 5.0),
            ("total_tasks", 6.0),
            ("total_detached", 1.0),
            ("total_failed", 1.0),
            ("total_threads", 1.0),
            ("total_execs", 4.0),
            ("total_commands", 1.0),
            ("total_framework_processes", 3.0),
            ("total_failed_lookups", 3.0),
            ("total_cpu_seconds", 3.5),
            ("wall_seconds", 4.0),
            ("processes{category=\"o2 driver\"}", 3.0),
            ("processes{category=\"other\"}", 1.0),
            ("threads{category=\"o2 driver\"}", 1.0),
            ("cpu_user_seconds{category=\"o2 driver\"}", 2.0),
            ("cpu_system_seconds{category=\"text\"}", 0.25),
            ("execs{command=\"env\"}", 1.0),
            ("command_file_rss_bytes{command=\"sed\"}", 500.0 * 4096.0),
            ("execs{command=\"sed\"}", 2.0),
            ("command_processes{command=\"sed\"}", 2.0),
            ("command_cpu_seconds{command=\"sed\"}", 1.5),
            ("command_threads{command=\"o2-sim\"}", 1.0),
            ("failed_lookups{kind=\"open\"}", 2.0),
            ("command_failed_lookups{command=\"o2-sim\"}", 3.0),
            ("directory_failed_lookups{directory=\"/lib\",kind=\"stat\"}", 1.0),
            ("spawns{parent=\"o2-sim\",child=\"sed\"}", 2.0),
            ("spawns{parent=\"o2-sim\",child=\"o2-sim\"}", 2.0),
            ("detached_processes{command=\"o2-sim\"}", 1.0),
            ("failed_processes{command=\"sed\"}", 1.0),
            ("step_runs{group=\"filter\"}", 1.0),
            ("step_failures{group=\"filter\"}", 1.0),
            ("step_wall_seconds{group=\"filter\"}", 1.0),
            ("step_longest_wall_seconds{group=\"filter\"}", 1.0),
            ("step_cpu_seconds{group=\"filter\"}", 1.0),
            ("step_processes{group=\"filter\"}", 1.0),
            ("phase_begin_seconds{phase=\"second half\"}", 2.0),
            ("phase_wall_seconds{phase=\"(before)\"}", 2.0),
            ("phase_processes{phase=\"second half\"}", 1.0),
            ("phase_failed_lookups{phase=\"(before)\"}", 3.0),
            ("phase_failed_lookups{phase=\"second half\"}", 0.0),
        ] {
            assert_eq!(value(&metrics, metric), Some(expected), "{metric}");
        }
        assert_eq!(value(&metrics, "command_processes{command=\"env\"}"), None);
        assert_eq!(metrics.cores, 4);
        assert_eq!(metrics.doubts, Vec::<String>::new());
    }

    #[test]
    fn parts_add_up_to_totals() {
        let metrics = scene();
        let sum = |family: &str| -> f64 {
            metrics.metrics.iter().filter(|m| m.name == family).map(|m| m.value).sum()
        };
        for (parts, total) in [
            ("processes", "total_processes"),
            ("threads", "total_threads"),
            ("command_threads", "total_threads"),
            ("cpu_user_seconds", "total_cpu_user_seconds"),
            ("cpu_system_seconds", "total_cpu_system_seconds"),
            ("execs", "total_execs"),
            ("command_processes", "total_processes"),
            ("detached_processes", "total_detached"),
            ("failed_processes", "total_failed"),
            ("command_cpu_seconds", "total_cpu_seconds"),
            ("failed_lookups", "total_failed_lookups"),
            ("command_failed_lookups", "total_failed_lookups"),
            ("directory_failed_lookups", "total_failed_lookups"),
            ("phase_processes", "total_processes"),
            ("phase_cpu_seconds", "total_cpu_seconds"),
            ("phase_wall_seconds", "wall_seconds"),
            ("phase_failed_lookups", "total_failed_lookups"),
        ] {
            assert!((sum(parts) - sum(total)).abs() < 1e-9, "{parts} {total}");
        }
    }

    #[test]
    fn a_recording_that_goes_on_is_doubted_for_that_alone() {
        let mut scene = Scene::new(1, S);
        // A look-up of a task whose birth is in a block that has not been written yet.
        scene.fork(0, 1, 2).open_failed(S, 7, "/x");
        let mut recording = scene.load(Some((S, 0, 0)));
        recording.cut_short(Damage { offset: 9, what: DamageKind::Truncated, records: None });
        let doubts = |recording: &Recording| metrics(&Analysis::of(recording)).doubts;
        assert_eq!(doubts(&recording)[0], "the recording was cut short");
        assert!(doubts(&recording).len() > 2, "{:?}", doubts(&recording));
        recording.set_recording_now(true);
        assert_eq!(doubts(&recording), ["it is being recorded right now"]);
    }

    #[test]
    fn doubts_are_said() {
        let mut scene = Scene::new(1, S);
        // Its child never ends.
        scene.fork(0, 1, 2).sample(S, 2, (0, 0)).tick(S, [1, 1, 0]);
        scene.exit_with(S, 1, (0, 0), |exit| exit.waited_utime_ns = 100 * S);
        let recording = scene.load(Some((S, 0, 0)));
        let doubts = metrics(&Analysis::of(&recording)).doubts;
        assert!(
            !doubts.is_empty() && doubts[0].starts_with("consistency check failed"),
            "{doubts:?}"
        );
    }
    #[test]
    fn what_live_tasks_have_not_told_is_unknown() {
        let mut scene = Scene::new(1, S);
        scene.fork(0, 1, 2).sample(S, 2, (0, 0)).tick(S, [1, 1, 0]);
        scene.exit_with(S, 1, (0, 0), |exit| exit.opens = 5);
        let all = |scene: &Scene| metrics(&Analysis::of(&scene.load(Some((S, 0, 0)))));
        let opens = |metrics: &Metrics| {
            let value = metrics.metrics.iter().find(|m| m.name == "total_opens").map(|m| m.value);
            (value, metrics.unknown.iter().any(|unknown| unknown.name == "total_opens"))
        };
        assert_eq!(opens(&all(&scene)), (None, true));
        scene.exit_with(2 * S, 2, (0, 0), |exit| exit.opens = 2);
        assert_eq!(opens(&all(&scene)), (Some(7.0), false));
    }
}
