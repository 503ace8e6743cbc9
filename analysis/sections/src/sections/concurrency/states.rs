//! States of tasks over time: running, waiting for a CPU, sleeping.

use proctrace_findings::{Axis, Bars, Chart, ChartBody, Series, Table, Unit, count, counted};
use proctrace_recording::Recording;
use proctrace_replay::Usage;
use proctrace_wire::Quantity;

use crate::shares::percent;

/// Total time of all tasks in one state.
pub(crate) struct State {
    name: &'static str,
    time_ns: f64,
    exact: bool,
}

pub(crate) fn states(recording: &Recording) -> Vec<State> {
    let (mut used, mut life_ns) = (Usage::default(), 0.0);
    for task in recording.tasks() {
        used = used.plus(task.used());
        let ended_ns = task.ended_ns().unwrap_or(recording.last_ns());
        life_ns += ended_ns.saturating_sub(task.born_ns) as f64;
    }
    let (running_ns, runnable_ns) = (used.run_ns as f64, used.run_delay_ns as f64);
    let rest_ns = (life_ns - running_ns - runnable_ns).max(0.0);
    let count = |of: fn(&proctrace_wire::layout::Tick) -> u32| {
        recording.ticks().unwrap_or_default().iter().map(|tick| f64::from(of(tick))).sum::<f64>()
    };
    let (sleeping, uninterruptible, stopped) =
        (count(|tick| tick.sleeping), count(|tick| tick.uninterruptible), count(|t| t.stopped));
    let off = sleeping + uninterruptible + stopped;
    // Without a single sample, all of it is assumed to be sleep.
    let share = |found: f64| if off > 0.0 { found / off } else { 0.0 };
    let other = share(uninterruptible) + share(stopped);
    vec![
        State { name: "running", time_ns: running_ns, exact: true },
        State { name: "runnable", time_ns: runnable_ns, exact: true },
        State { name: "sleeping", time_ns: rest_ns * (1.0 - other), exact: false },
        State { name: "uninterruptible", time_ns: rest_ns * share(uninterruptible), exact: false },
        State { name: "stopped", time_ns: rest_ns * share(stopped), exact: false },
    ]
}

/// The part of the time in which tasks could have run that they spent waiting for a CPU.
pub(crate) fn waiting_percent(recording: &Recording) -> Option<f64> {
    let used = recording.tasks().iter().fold(Usage::default(), |sum, task| sum.plus(task.used()));
    let waited_ns = used.run_delay_ns as f64;
    percent(waited_ns, waited_ns + used.run_ns as f64)
}

pub(crate) fn table(states: &[State], recording: &Recording) -> Table {
    let all_ns: f64 = states.iter().map(|state| state.time_ns).sum();
    let recorded_ns = recording.recorded_ns().max(1) as f64;
    Table::new("task_states", "Time of tasks by state")
        .rows_need(&[Quantity::Forks, Quantity::Cpu, Quantity::RunDelay, Quantity::Samples])
        .text("state", "state", states.iter().map(|state| state.name))
        .real("time_ns", "time", Unit::Nanoseconds, states.iter().map(|state| state.time_ns))
        .real(
            "share_percent",
            "of all",
            Unit::Percent,
            states.iter().map(|state| percent(state.time_ns, all_ns)),
        )
        .real(
            "tasks_mean",
            "tasks",
            Unit::Count,
            states.iter().map(|state| state.time_ns / recorded_ns),
        )
        .text(
            "known",
            "source",
            states
                .iter()
                .map(|state| if state.exact { "kernel counters" } else { "estimate from samples" }),
        )
        .note(format!(
            "{}, threads included, with a total lifetime of {:.1} s; tasks: mean number. running: \
             CPU time; runnable: time waiting for a CPU (run_delay of /proc/PID/schedstat). The \
             remaining time is split by the states found in {} samples of all tasks.",
            counted(recording.tasks().len() as u64, "task", "tasks"),
            all_ns / 1e9,
            count(recording.ticks().unwrap_or_default().len() as u64)
        ))
}

pub(crate) fn chart(states: &[State]) -> Chart {
    let body = Bars {
        rows: states.iter().map(|state| state.name.to_owned()).collect(),
        axis: Axis::linear("time of all tasks", Unit::Nanoseconds),
        series: vec![
            Series {
                name: "exact".into(),
                values: states.iter().map(|s| s.exact.then_some(s.time_ns)).collect(),
            },
            Series {
                name: "estimate from samples".into(),
                values: states.iter().map(|s| (!s.exact).then_some(s.time_ns)).collect(),
            },
        ],
        stacked: true,
    };
    Chart::new("task_states", "Time of tasks by state", ChartBody::Bars(body)).needs(&[
        Quantity::Forks,
        Quantity::Cpu,
        Quantity::RunDelay,
        Quantity::Samples,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MS, S, Scene, real};

    #[test]
    fn time_is_divided_among_states() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.fork(0, 1, 2);
        for at in 1..=10 {
            scene.tick(at * 100 * MS, [0, 3, 1]);
        }
        // Lifetimes of 2 s: 0.5 s on a CPU, 0.3 s waiting for one, three quarters of the rest
        // asleep.
        scene.exit_with(S, 2, (200 * MS, 0), |exit| exit.run_delay_ns = 300 * MS);
        let recording = scene.exit(S, 1, (300 * MS, 0)).load(None);
        let table = table(&states(&recording), &recording);
        let of = |state: &str| real(&table, "state", state, "time_ns").unwrap() / 1e9;
        assert_eq!((of("running"), of("runnable")), (0.5, 0.3));
        assert!((of("sleeping") - 0.9).abs() < 1e-9);
        assert!((of("uninterruptible") - 0.3).abs() < 1e-9);
        assert_eq!(of("stopped"), 0.0);
        assert_eq!(waiting_percent(&recording), Some(37.5));
    }
}
