//! The startup section: the cost of each program from its exec until its libraries are loaded, and
//! in total.

use std::cmp::Reverse;

use proctrace_findings::{Axis, Bars, Chart, ChartBody, Figure, Series, Table, Unit, counted};
use proctrace_replay::Usage;
use proctrace_wire::Quantity;

use proctrace_classify::labels;
use proctrace_overview::options::{Content, Options};
use proctrace_recording::Recording;
use proctrace_recording::process::ProgramRun;
use proctrace_recording::split::{Split, Ticks};

/// The longest time between scheduler ticks, at CONFIG_HZ=100: look-up times have tick resolution.
const TICK_MAX_NS: u64 = 10_000_000;
/// Maximum bars in the chart.
const BARS_MAX: usize = 20;

/// Totals over the runs of one program.
#[derive(Debug, Clone, Default, PartialEq)]
struct Sums {
    program: usize,
    execs: u64,
    /// Number of these with a failed library look-up.
    loading_execs: u64,
    lookups: u64,
    loading_lookups: u64,
    libraries: u64,
    loading_ns: u64,
    life_ns: u64,
    /// Part of `life_ns` of execs with a failed library look-up.
    loading_life_ns: u64,
    run_ns: u64,
    ticks: Ticks,
    /// Upper bound of the CPU time until loading is complete: the loader is single-threaded.
    loading_cpu_ns: u64,
}

pub(crate) fn section(recording: &Recording, _: &Options) -> Content {
    let sums = sums(recording);
    let names = names(recording, &sums);
    Content {
        tables: vec![means(recording.split(), &names, &sums), totals(&names, &sums)],
        charts: vec![chart(&names, &sums)],
    }
}

fn sums(recording: &Recording) -> Vec<Sums> {
    let number = |program| Sums { program, ..Sums::default() };
    let mut sums: Vec<Sums> = (0..recording.programs().len()).map(number).collect();
    // The next run of each process, while iterating backwards over the runs.
    let mut next: Vec<Option<usize>> = vec![None; recording.processes().len()];
    for at in (0..recording.runs().len()).rev() {
        let run = &recording.runs()[at];
        let Some(next) = next.get_mut(run.process as usize) else { continue };
        let next = next.replace(at).map(|next| &recording.runs()[next]);
        let (Some(sum), Some(start)) =
            (sums.get_mut(run.program as usize), recording.starts().unwrap_or_default().get(at))
        else {
            continue;
        };
        if !run.happened_here {
            continue;
        }
        let process = &recording.processes()[run.process as usize];
        let ended_ns =
            next.map(|next| next.time_ns).or(process.ended_ns()).unwrap_or(recording.last_ns());
        let life_ns = ended_ns.saturating_sub(run.time_ns);
        let (run_ns, ticks) = used(recording, run, next);
        sum.execs += 1;
        sum.lookups += u64::from(start.lookups);
        sum.life_ns = sum.life_ns.saturating_add(life_ns);
        sum.run_ns = sum.run_ns.saturating_add(run_ns);
        sum.ticks = sum.ticks.plus(ticks);
        sum.loading_lookups += u64::from(start.loading);
        if start.libraries > 0 {
            sum.loading_execs += 1;
            sum.libraries += u64::from(start.libraries);
            // The last tick before the end may be the timestamp of the look-up.
            let loaded_ns = start.loaded_ns().min(life_ns);
            sum.loading_ns = sum.loading_ns.saturating_add(loaded_ns);
            sum.loading_life_ns = sum.loading_life_ns.saturating_add(life_ns);
            let most_ns = loaded_ns.saturating_add(TICK_MAX_NS).min(run_ns);
            sum.loading_cpu_ns = sum.loading_cpu_ns.saturating_add(most_ns);
        }
    }
    sums.retain(|sum| sum.execs > 0);
    sums.sort_by_key(|sum| (Reverse(sum.loading_lookups), Reverse(sum.execs), sum.program));
    sums
}

/// CPU time from an exec to the next one, or to the end of the process, and the ticks that hit it.
fn used(recording: &Recording, run: &ProgramRun, next: Option<&ProgramRun>) -> (u64, Ticks) {
    let [mut run_ns, mut user_ns, mut system_ns] = match next {
        Some(next) => next.before.all(),
        // Threads of the previous program are gone.
        None => {
            let used = recording.processes()[run.process as usize]
                .tasks()
                .map(|task| &recording.tasks()[task])
                .filter(|task| task.ended_ns().is_none_or(|ended_ns| ended_ns >= run.time_ns))
                .map(|task| match (task.end(), task.seen()) {
                    (Some(end), _) => end.record.used,
                    (None, Some(seen)) => seen.into(),
                    (None, None) => Usage::default(),
                })
                .fold(Usage::default(), Usage::plus);
            [used.run_ns, used.utime_ns, used.stime_ns]
        }
    };
    let before = run.before.all();
    run_ns = run_ns.saturating_sub(before[0]);
    user_ns = user_ns.saturating_sub(before[1]);
    system_ns = system_ns.saturating_sub(before[2]);
    (run_ns, Ticks { user_ns, system_ns })
}

fn names(recording: &Recording, sums: &[Sums]) -> Vec<String> {
    labels::of_programs(sums.iter().map(|sum| &recording.programs()[sum.program]))
}

fn mean(sum: u64, n: u64) -> Option<f64> {
    (n > 0).then(|| sum as f64 / n as f64)
}

fn means(split: &Split, names: &[String], sums: &[Sums]) -> Table {
    let of = || sums.iter();
    Table::new("startup", "Cost of one start, by program")
        .rows_need(&Quantity::LOOKUPS_OF_PROGRAMS)
        .text("program", "program", names)
        .whole("execs", "execs", Unit::Count, of().map(|sum| sum.execs))
        .real(
            "loading_lookups_mean",
            "loading",
            Unit::Count,
            of().map(|sum| mean(sum.loading_lookups, sum.execs)),
        )
        .real("lookups_mean", "total", Unit::Count, of().map(|sum| mean(sum.lookups, sum.execs)))
        .real(
            "loading_least_mean_ns",
            "loaded ≥",
            Unit::Nanoseconds,
            of().map(|sum| mean(sum.loading_ns, sum.loading_execs)),
        )
        .real(
            "life_mean_ns",
            "ended",
            Unit::Nanoseconds,
            of().map(|sum| mean(sum.life_ns, sum.execs)),
        )
        .real("cpu_mean_ns", "CPU", Unit::Nanoseconds, of().map(|sum| mean(sum.run_ns, sum.execs)))
        .needs(&[Quantity::Cpu])
        .real(
            "system_mean_ns",
            "system",
            Unit::Nanoseconds,
            of().map(|sum| mean(split.pooled(sum.run_ns, sum.ticks)?.system_ns, sum.execs)),
        )
        .needs(&[Quantity::Cpu, Quantity::Split])
        .note(
            "Means per exec: failed look-ups while loading and in total; time from the exec until \
             loaded, and until the next exec or the end (ended); CPU time, at an exec as last \
             updated by the scheduler.",
        )
        .note(
            "loaded is an estimate: the last in the unbroken series of failed library look-ups \
             that starts at the exec, for execs with any; the last library is found, and all are \
             linked, after it. It is a lower bound: a look-up has the time of the last scheduler \
             tick, or of the exec if that is later, up to one tick too early (1 to 10 ms, \
             depending on CONFIG_HZ). It means little for programs that end within a tick. Failed \
             look-ups are exact.",
        )
}

fn totals(names: &[String], sums: &[Sums]) -> Table {
    let of = || sums.iter();
    let share = |sum: &Sums| {
        let (part, whole) = (sum.loading_ns as f64, sum.loading_life_ns as f64);
        (whole > 0.0).then(|| 100.0 * part / whole)
    };
    // For a program without failed library look-ups, the end of loading is unknown.
    let known =
        |of: fn(&Sums) -> u64| sums.iter().map(move |sum| (sum.loading_execs > 0).then(|| of(sum)));
    Table::new("startup_totals", "Cost of all starts, by program")
        .rows_need(&Quantity::LOOKUPS_OF_PROGRAMS)
        .text("program", "program", names)
        .whole("loading_execs", "n", Unit::Count, of().map(|sum| sum.loading_execs))
        .whole("libraries", "libraries", Unit::Count, of().map(|sum| sum.libraries))
        .whole("loading_lookups", "loading", Unit::Count, of().map(|sum| sum.loading_lookups))
        .whole("lookups", "total", Unit::Count, of().map(|sum| sum.lookups))
        .whole("loading_least_ns", "loaded ≥", Unit::Nanoseconds, known(|sum| sum.loading_ns))
        .real("loading_least_percent", "of life", Unit::Percent, of().map(share))
        .needs(&[Quantity::Times])
        .whole("loading_cpu_most_ns", "CPU ≤", Unit::Nanoseconds, known(|sum| sum.loading_cpu_ns))
        .needs(&[Quantity::Cpu])
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, of().map(|sum| sum.run_ns))
        .needs(Figure::CpuNs.needs())
        .note(
            "n: execs with failed library look-ups; libraries: number of these look-ups. loaded ≥: \
             lower bound of the time until loaded, summed over these execs, as above. CPU ≤: upper \
             bound of the CPU time until loaded: one thread for the time until loaded plus a tick \
             of 10 ms, or the CPU time of the run if that is less.",
        )
}

fn chart(names: &[String], sums: &[Sums]) -> Chart {
    let mut shown: Vec<(&String, &Sums)> =
        names.iter().zip(sums).filter(|(_, sum)| sum.lookups > 0).collect();
    let all = shown.len();
    shown.truncate(BARS_MAX);
    let loading = |sum: &Sums| mean(sum.loading_lookups, sum.execs).unwrap_or(0.0);
    shown.sort_by(|(_, a), (_, b)| loading(b).total_cmp(&loading(a)));
    let series = |name: &str, of: fn(&Sums) -> u64| Series {
        name: name.into(),
        values: shown.iter().map(|(_, sum)| mean(of(sum), sum.execs)).collect(),
    };
    let body = Bars {
        rows: shown
            .iter()
            .map(|(name, sum)| format!("{name}, {}", counted(sum.execs, "exec", "execs")))
            .collect(),
        axis: Axis::linear("failed look-ups per exec", Unit::Count),
        series: vec![
            series("while loading", |sum| sum.loading_lookups),
            series("later", |sum| sum.lookups - sum.loading_lookups),
        ],
        stacked: true,
    };
    Chart::new("startup", "Failed look-ups of one start, by program", ChartBody::Bars(body))
        .needs(&Quantity::LOOKUPS_OF_PROGRAMS)
        .note(format!(
            "{} of {all} programs with failed look-ups: those with the most while loading, over \
             all their execs. Ordered by failed look-ups per exec while loading.",
            shown.len()
        ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MS, S, Scene, real};

    #[test]
    fn starts_are_told_apart_by_program() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.exec(0, 1, "/opt/job", (0, 0));
        for at in 0..4u64 {
            let (task, begin) = (2 + u32::try_from(at).unwrap(), 100 * MS * at);
            scene.fork(begin, 1, task);
            // Replacing the shell: what it used before its second exec belongs to the first
            // program.
            scene.exec(begin + MS, task, "/opt/first", (MS, 0));
            scene.exec(begin + 11 * MS, task, "/opt/second", (3 * MS, MS));
            for _ in 0..=at {
                scene.open_failed(begin + 14 * MS, task, "/a/libc.so.6");
            }
            scene.open_failed(begin + 16 * MS, task, "/etc/second.conf");
            scene.exit(begin + 31 * MS, task, (8 * MS, 6 * MS));
        }
        let recording = scene.exit(1_000 * MS, 1, (0, 0)).load(None);
        let content = section(&recording, &Options::default());
        let of = |table: usize, program: &str, column: &str| {
            real(&content.tables[table], "program", program, column)
        };
        let ms = |time: f64| Some(time * 1e6);
        assert_eq!(of(0, "first", "execs"), Some(4.0));
        assert_eq!(of(0, "first", "life_mean_ns"), ms(10.0));
        assert_eq!(of(0, "first", "cpu_mean_ns"), ms(3.0));
        assert_eq!(of(0, "first", "loading_least_mean_ns"), None);
        assert_eq!(of(0, "second", "life_mean_ns"), ms(20.0));
        // 14 ms in total minus 4 before, of which 5 in the kernel
        assert_eq!(of(0, "second", "cpu_mean_ns"), ms(10.0));
        assert_eq!(of(0, "second", "system_mean_ns"), ms(5.0));
        assert_eq!(of(0, "second", "loading_least_mean_ns"), ms(3.0));
        assert_eq!(of(0, "second", "loading_lookups_mean"), Some(2.5));
        assert_eq!(of(0, "second", "lookups_mean"), Some(3.5));
        assert_eq!(of(1, "second", "loading_least_percent"), Some(15.0));
        // 3 ms plus a tick exceeds the CPU time, so the bound is all of it.
        assert_eq!(of(1, "second", "loading_cpu_most_ns"), ms(40.0));
        assert_eq!(of(1, "second", "libraries"), Some(10.0));
        // For a program without failed library look-ups nothing is known, certainly not zero CPU
        // time.
        assert_eq!(of(1, "first", "loading_least_ns"), None);
        assert_eq!(of(1, "first", "loading_cpu_most_ns"), None);
    }

    #[test]
    fn bars_stand_in_the_order_of_their_length() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.exec(0, 1, "/opt/job", (0, 0));
        // Ten starts with one failed library look-up each, and one with five.
        for task in 2..13u32 {
            let (at, name, misses) = (u64::from(task) * 20 * MS, "/opt/often", 1);
            let (name, misses) = if task == 12 { ("/opt/once", 5) } else { (name, misses) };
            scene.fork(at, 1, task).exec(at, task, name, (0, 0));
            for _ in 0..misses {
                scene.open_failed(at + MS, task, "/a/libc.so.6");
            }
            scene.exit(at + 5 * MS, task, (MS, 0));
        }
        let content = section(&scene.exit(S, 1, (0, 0)).load(None), &Options::default());
        let ChartBody::Bars(bars) = &content.charts[0].body else { panic!("no bars") };
        assert_eq!(bars.rows, ["once, 1 exec", "often, 10 execs"]);
    }
}
