//! A Gantt chart of steps: a bar for each, and a colour for each group.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use proctrace_findings::{Bar, Gantt, GanttOrder, GanttView, Lane};
use proctrace_overview::nearest::nearest;
use proctrace_overview::options::Options;
use proctrace_overview::steps::{StepSum, group_of, sums};
use proctrace_recording::Recording;
use proctrace_recording::error::AnalysisError;

use super::lanes::{LANES_MAX, Lanes};
use super::strips::Strips;
use super::view::Chosen;
use super::{BINS_MAX, depth_first, marks, number, path};

/// Every step as a bar, and the strips of all processes above them.
///
/// # Errors
/// If there are no steps, or none of this name, or nothing at this time.
pub(super) fn gantt(
    recording: &Recording,
    view: &GanttView,
    options: &Options,
) -> Result<Gantt, AnalysisError> {
    let error = |what: String, why: &str| AnalysisError::View { what, why: why.to_owned() };
    if recording.steps().all.is_empty() {
        return Err(error("a chart of steps".to_owned(), "the recording has none (docs/steps.md)"));
    }
    if view.threads || view.subtree.is_some() {
        let why = "it has neither threads nor subtrees: choose steps by name or group";
        return Err(error("a chart of steps".to_owned(), why));
    }
    let times = GanttView { only: Vec::new(), ..view.clone() };
    let window = Chosen::of(recording, &times)?;
    let sums = sums(recording);
    let groups: Vec<String> = recording.steps().all.iter().map(group_of).collect();
    let names: Vec<String> =
        recording.steps().all.iter().map(|step| step.named.name.clone()).collect();
    if let Some(none) = view.only.iter().find(|it| !groups.contains(it) && !names.contains(it)) {
        let why = match nearest(none, groups.iter().chain(&names).map(String::as_str)) {
            Some(meant) => format!("no step or group of this name; did you mean {meant:?}?"),
            None => "no step or group of this name".to_owned(),
        };
        return Err(error(format!("{none:?}"), &why));
    }
    let times: Vec<(u64, u64)> = sums.iter().map(|sum| times_of(recording, sum)).collect();
    let is_chosen = |at: usize| {
        let (begin_ns, end_ns) = times[at];
        let is_named = |only: &String| *only == groups[at] || *only == names[at];
        window.is_in_time(begin_ns, end_ns)
            && (view.only.is_empty() || view.only.iter().any(is_named))
    };
    let chosen: Vec<bool> = (0..names.len()).map(is_chosen).collect();
    let (lanes, lane_of) = lanes(&groups, &sums, &chosen);
    // A whole comes before its parts.
    let mut above: Vec<Option<usize>> = Vec::with_capacity(names.len());
    for step in &recording.steps().all {
        let parent = step.parent.map(|parent| parent as usize);
        above.push(parent.and_then(|at| if chosen[at] { Some(at) } else { above[at] }));
    }
    let rows = match view.order {
        GanttOrder::Tree => depth_first(&chosen, &above),
        _ => {
            let mut rows: Vec<usize> = (0..names.len()).filter(|at| chosen[*at]).collect();
            rows.sort_by_key(|at| times[*at].0);
            rows
        }
    };
    let depth = |at: usize| std::iter::successors(above[at], |at| above[*at]).count();
    let mut bar_of: Vec<Option<usize>> = vec![None; names.len()];
    for (bar, at) in rows.iter().enumerate() {
        bar_of[*at] = Some(bar);
    }
    let bars: Vec<Bar> = rows
        .iter()
        .map(|at| {
            let run = &recording.runs()[recording.steps().all[*at].run as usize];
            Bar {
                lane: lane_of(&groups[*at]),
                name: number(*at),
                pid: recording.processes()[run.process as usize].pid,
                begin_ns: times[*at].0,
                end_ns: times[*at].1,
                depth: number(depth(*at)),
                parent: above[*at].and_then(|at| bar_of[at]).map(number),
                is_thread: false,
            }
        })
        .collect();
    let strips = Strips::of(recording, window.from_ns, window.until_ns, BINS_MAX);
    // Those that divide by category would have other colours than the bars.
    let by_category = Lanes::of(recording, &window.processes);
    let all = strips.all(recording, &by_category, options.cores(recording));
    let bar_of_task = |task: usize| {
        let process = number(recording.tasks().get(task)?.process());
        let step = recording.steps().of_process(process)?;
        recording.steps().up(step).find_map(|step| bar_of[step as usize])
    };
    let left_out = chosen.iter().filter(|chosen| !**chosen).count() as u64;
    Ok(Gantt {
        title: recording.header().command.join(" "),
        view: view.clone(),
        left_out_processes: left_out,
        left_out_threads: 0,
        from_ns: window.from_ns,
        until_ns: window.until_ns,
        strips: all.into_iter().filter(|strip| !strip.by_lane).collect(),
        lanes,
        names,
        marks: marks(recording, &window),
        path: path::pieces(recording, &bars, bar_of_task),
        bars,
        edges_ns: strips.edges_ns,
    })
}

/// Begin and end of a step, since the start of the recording.
fn times_of(recording: &Recording, sum: &StepSum) -> (u64, u64) {
    let since =
        |time_ns: u64| time_ns.saturating_sub(recording.first_ns()).min(recording.recorded_ns());
    let begin_ns = since(sum.begin_ns);
    (begin_ns, since(sum.end_ns).max(begin_ns))
}

/// A lane for each of the groups with most wall time, and the lane of a group.
fn lanes(
    groups: &[String],
    sums: &[StepSum],
    chosen: &[bool],
) -> (Vec<Lane>, impl Fn(&str) -> u32) {
    let mut by_group: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for ((group, sum), _) in groups.iter().zip(sums).zip(chosen).filter(|(_, chosen)| **chosen) {
        let (wall_ns, steps) = by_group.entry(group).or_default();
        *wall_ns = wall_ns.saturating_add(sum.wall_ns());
        *steps += 1;
    }
    let mut ranked: Vec<(&str, (u64, u64))> = by_group.into_iter().collect();
    ranked.sort_by_key(|(_, (wall_ns, _))| Reverse(*wall_ns));
    let rest = ranked.split_off(ranked.len().min(LANES_MAX));
    let lane = |name: &str, steps: u64, is_rest: bool| Lane {
        name: name.to_owned(),
        processes: steps,
        threads: 0,
        is_rest,
    };
    let mut lanes: Vec<Lane> =
        ranked.iter().map(|(name, (_, steps))| lane(name, *steps, false)).collect();
    if !rest.is_empty() {
        let steps = rest.iter().map(|(_, (_, steps))| steps).sum();
        lanes.push(lane("other groups", steps, true));
    }
    let numbers: BTreeMap<String, u32> =
        ranked.iter().zip(0..).map(|((name, _), at)| ((*name).to_owned(), at)).collect();
    let last = number(lanes.len().saturating_sub(1));
    (lanes, move |group| numbers.get(group).copied().unwrap_or(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MS, Scene};

    fn recording() -> Recording {
        let mut scene = Scene::new(1, 100 * MS);
        scene.exec(0, 1, "/bin/runner", (0, 0));
        for (task, name, begin, end) in
            [(2, "digi_1", 10, 30), (3, "digi_2", 31, 50), (4, "merge", 51, 80)]
        {
            scene.fork(begin * MS, 1, task).in_environment(&[&format!("PROCTRACE_STEP={name}")]);
            scene.exec(begin * MS, task, "/bin/sh", (0, 0));
            if name == "merge" {
                scene.fork(60 * MS, 4, 5).in_environment(&["PROCTRACE_STEP=part"]);
                scene.exec(60 * MS, 5, "/bin/part", (0, 0)).exit(70 * MS, 5, (0, 0));
            }
            scene.exit(end * MS, task, (0, 0));
        }
        scene.in_environment(&[]).exit(90 * MS, 1, (0, 0)).load(None)
    }

    fn bars(view: GanttView) -> Vec<(String, String, u64, u64, u32)> {
        let gantt = gantt(&recording(), &view, &Options::default()).unwrap();
        let of = |bar: &Bar| {
            let (name, lane) = (&gantt.names[bar.name as usize], &gantt.lanes[bar.lane as usize]);
            (name.clone(), lane.name.clone(), bar.begin_ns / MS, bar.end_ns / MS, bar.depth)
        };
        gantt.bars.iter().map(of).collect()
    }

    fn bar(
        name: &str,
        lane: &str,
        begin: u64,
        end: u64,
        depth: u32,
    ) -> (String, String, u64, u64, u32) {
        (name.to_owned(), lane.to_owned(), begin, end, depth)
    }

    #[test]
    fn each_step_is_a_bar_in_the_colour_of_its_group() {
        let all = [
            bar("digi_1", "digi", 10, 30, 0),
            bar("digi_2", "digi", 31, 50, 0),
            bar("merge", "merge", 51, 80, 0),
            bar("part", "part", 60, 70, 1),
        ];
        for order in [GanttOrder::Time, GanttOrder::Tree] {
            assert_eq!(bars(GanttView { order, ..GanttView::default() }), all);
        }
        let only = GanttView { only: vec!["digi".to_owned()], ..GanttView::default() };
        assert_eq!(bars(only), all[..2]);
        let long = GanttView { min_life_ns: Some(15 * MS), ..GanttView::default() };
        assert_eq!(bars(long), all[..3]);
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let view = GanttView { only: vec!["dig".to_owned()], ..GanttView::default() };
        let why = gantt(&recording(), &view, &Options::default()).unwrap_err().to_string();
        assert!(why.contains("did you mean \"digi\""), "{why}");
        let mut scene = Scene::new(1, 100 * MS);
        scene.exec(0, 1, "/bin/true", (0, 0));
        let none = scene.exit(MS, 1, (0, 0)).load(None);
        assert!(gantt(&none, &GanttView::default(), &Options::default()).is_err());
    }
}
