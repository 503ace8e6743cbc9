//! The lifetime of every process, with the activity of the tree over time.

pub(crate) mod lanes;
mod path;
mod steps;
pub(crate) mod strips;
mod view;

use proctrace_findings::{Bar, Gantt, GanttOrder, GanttView, Mark};
use proctrace_overview::options::Options;
use proctrace_recording::Recording;
use proctrace_recording::error::AnalysisError;

use self::lanes::Lanes;
use self::strips::Strips;
use self::view::Chosen;

/// Maximum number of bins of the strips: one per pixel or two.
const BINS_MAX: usize = 600;

/// Every process as a bar, and the strips above them.
///
/// # Errors
/// If the view requests a category, a process, a step or a time that the recording does not contain.
pub fn gantt(
    recording: &Recording,
    view: &GanttView,
    options: &Options,
) -> Result<Gantt, AnalysisError> {
    if view.steps {
        return steps::gantt(recording, view, options);
    }
    let chosen = Chosen::of(recording, view)?;
    let lanes = Lanes::of(recording, &chosen.processes);
    let Rows { bars, tasks } = rows(recording, view, &chosen, &lanes);
    let strips = Strips::of(recording, chosen.from_ns, chosen.until_ns, BINS_MAX);
    let threads = bars.iter().filter(|bar| bar.is_thread).count();
    let all_threads = recording.tasks().iter().filter(|task| task.is_thread).count();
    Ok(Gantt {
        title: recording.header().command.join(" "),
        view: view.clone(),
        left_out_processes: (recording.processes().len() - (bars.len() - threads)) as u64,
        left_out_threads: if view.threads { (all_threads - threads) as u64 } else { 0 },
        from_ns: chosen.from_ns,
        until_ns: chosen.until_ns,
        strips: strips.all(recording, &lanes, options.cores(recording)),
        lanes: lanes.counted(&bars),
        names: recording.programs().iter().map(|program| program.name.clone()).collect(),
        marks: marks(recording, &chosen),
        path: path::pieces(recording, &bars, path::of_tasks(recording, &tasks)),
        bars,
        edges_ns: strips.edges_ns,
    })
}

/// The marks within the displayed time.
fn marks(recording: &Recording, chosen: &Chosen) -> Vec<Mark> {
    let since = |time_ns: u64| time_ns.saturating_sub(recording.first_ns());
    let shown = |at_ns: &u64| (chosen.from_ns..=chosen.until_ns).contains(at_ns);
    let all = recording.marks().all.iter().map(|mark| (since(mark.time_ns), &mark.name));
    let shown = all.filter(|(at_ns, _)| shown(at_ns));
    shown.map(|(at_ns, name)| Mark { at: at_ns as f64, name: name.clone() }).collect()
}

/// The bars of the chosen processes, from the first row to the last, and the index of the task of each.
#[derive(Debug, Default)]
struct Rows {
    bars: Vec<Bar>,
    tasks: Vec<usize>,
}

fn rows(recording: &Recording, view: &GanttView, chosen: &Chosen, lanes: &Lanes) -> Rows {
    let parents = nearest_chosen(recording, &chosen.processes);
    let rows = match view.order {
        GanttOrder::Tree => depth_first(&chosen.processes, &parents),
        _ => (0..parents.len()).filter(|at| chosen.processes[*at]).collect(),
    };
    let (mut bars, mut tasks): (Vec<Bar>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut bar_of: Vec<Option<u32>> = vec![None; parents.len()];
    for at in rows {
        let process = &recording.processes()[at];
        // A parent's row precedes its children's in either order.
        let parent = parents[at].and_then(|parent| bar_of[parent]);
        let depth = parent.map_or(0, |parent| bars[parent as usize].depth + 1);
        let (begin_ns, end_ns) = life(recording, process.born_ns, process.ended_ns());
        let bar = Bar {
            lane: lanes.of_process(recording, process),
            name: number(process.program()),
            pid: process.pid,
            begin_ns,
            end_ns,
            depth,
            parent,
            is_thread: false,
        };
        let row = number(bars.len());
        bar_of[at] = Some(row);
        bars.push(bar);
        tasks.push(process.tasks().next().unwrap_or(usize::MAX));
        if !view.threads {
            continue;
        }
        for at in process.tasks().filter(|task| recording.tasks()[*task].is_thread) {
            let task = &recording.tasks()[at];
            let ended_ns = task.ended_ns();
            let (begin_ns, end_ns) = life(recording, task.born_ns, ended_ns);
            if chosen.is_in_time(begin_ns, end_ns) {
                let parent = Some(row);
                bars.push(Bar {
                    begin_ns,
                    end_ns,
                    depth: depth + 1,
                    parent,
                    is_thread: true,
                    ..bar
                });
                tasks.push(at);
            }
        }
    }
    let rows = Rows { bars, tasks };
    if view.threads && view.order != GanttOrder::Tree { by_birth(&rows) } else { rows }
}

/// The lifetime of a task or process, relative to the start of the recording.
fn life(recording: &Recording, born_ns: u64, ended_ns: Option<u64>) -> (u64, u64) {
    // The birth time of a task that no record announced may be arbitrary.
    let begin_ns = born_ns.saturating_sub(recording.first_ns()).min(recording.recorded_ns());
    let end_ns = ended_ns.unwrap_or(recording.last_ns()).saturating_sub(recording.first_ns());
    (begin_ns, end_ns.max(begin_ns))
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The nearest chosen ancestor of each process; parents precede their children.
fn nearest_chosen(recording: &Recording, chosen: &[bool]) -> Vec<Option<usize>> {
    let mut nearest: Vec<Option<usize>> = Vec::with_capacity(chosen.len());
    for (at, process) in recording.processes().iter().enumerate() {
        let parent = process.parent().filter(|parent| *parent < at);
        nearest.push(parent.and_then(
            |parent| {
                if chosen[parent] { Some(parent) } else { nearest[parent] }
            },
        ));
    }
    nearest
}

/// Every chosen process, each before its children, which follow in birth order.
fn depth_first(chosen: &[bool], parents: &[Option<usize>]) -> Vec<usize> {
    let mut first_child = vec![None; parents.len()];
    let mut next_sibling = vec![None; parents.len()];
    let mut first_root = None;
    for at in (0..parents.len()).rev().filter(|at| chosen[*at]) {
        let first = match parents[at] {
            Some(parent) => &mut first_child[parent],
            None => &mut first_root,
        };
        next_sibling[at] = first.replace(at);
    }
    let mut rows = Vec::with_capacity(parents.len());
    let mut to_do: Vec<usize> = first_root.into_iter().collect();
    while let Some(at) = to_do.pop() {
        rows.push(at);
        to_do.extend(next_sibling[at]);
        to_do.extend(first_child[at]);
    }
    rows
}

/// The same bars, in birth order.
fn by_birth(Rows { bars, tasks }: &Rows) -> Rows {
    let mut rows: Vec<usize> = (0..bars.len()).collect();
    rows.sort_by_key(|row| bars[*row].begin_ns);
    let mut new_row = vec![0; bars.len()];
    for (new, old) in rows.iter().enumerate() {
        new_row[*old] = number(new);
    }
    let bar = |row: &usize| {
        let bar = bars[*row];
        Bar { parent: bar.parent.map(|parent| new_row[parent as usize]), ..bar }
    };
    Rows {
        bars: rows.iter().map(bar).collect(),
        tasks: rows.iter().map(|row| tasks[*row]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_stand_below_their_parent() {
        // 0 -> 1 -> 3, 0 -> 2 -> 4, 5 has no known parent
        let parents = [None, Some(0), Some(0), Some(1), Some(2), None];
        assert_eq!(depth_first(&[true; 6], &parents), [0, 1, 3, 2, 4, 5]);
        let without_2 = [true, true, false, true, true, true];
        let parents = [None, Some(0), Some(0), Some(1), Some(0), None];
        assert_eq!(depth_first(&without_2, &parents), [0, 1, 3, 4, 5]);
    }

    #[test]
    fn rows_by_birth_keep_their_parents() {
        let bar = |begin_ns, parent| Bar {
            lane: 0,
            name: 0,
            pid: 1,
            begin_ns,
            end_ns: 9,
            depth: 0,
            parent,
            is_thread: false,
        };
        let bars = vec![bar(0, None), bar(7, Some(0)), bar(3, Some(0)), bar(5, Some(2))];
        let sorted = by_birth(&Rows { bars, tasks: vec![10, 11, 12, 13] });
        let found: Vec<_> = sorted.bars.iter().map(|bar| (bar.begin_ns, bar.parent)).collect();
        assert_eq!(found, [(0, None), (3, Some(0)), (5, Some(1)), (7, Some(0))]);
        assert_eq!(sorted.tasks, [10, 12, 13, 11]);
    }
}
