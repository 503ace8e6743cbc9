//! Pieces of the critical path on the bars of a Gantt chart.

use proctrace_classify::fast::FastMap;
use proctrace_findings::{Bar, PathPiece};
use proctrace_overview::path::CriticalPath;
use proctrace_recording::Recording;

use super::number;

/// The bar of each task, given the tasks of the bars. A thread without a bar counts as its process.
pub(super) fn of_tasks<'a>(
    recording: &'a Recording,
    tasks: &[usize],
) -> impl Fn(usize) -> Option<usize> + use<'a> {
    let bar_of: FastMap<usize, usize> =
        tasks.iter().enumerate().map(|(bar, task)| (*task, bar)).collect();
    move |task| {
        let process = &recording.processes()[recording.tasks()[task].process()];
        bar_of.get(&task).or_else(|| bar_of.get(&process.tasks().next()?)).copied()
    }
}

/// The parts of the path on these bars, by the bar of each task.
pub(super) fn pieces(
    recording: &Recording,
    bars: &[Bar],
    bar_of: impl Fn(usize) -> Option<usize>,
) -> Vec<PathPiece> {
    let Some(path) = CriticalPath::of(recording) else { return Vec::new() };
    let mut pieces: Vec<PathPiece> = Vec::new();
    for part in path.parts {
        let bar = bar_of(part.task as usize);
        let Some((bar, of)) = bar.and_then(|bar| Some((number(bar), bars.get(bar)?))) else {
            continue;
        };
        let since = |time_ns: u64| {
            (time_ns - recording.first_ns()).clamp(of.begin_ns, of.end_ns.max(of.begin_ns))
        };
        let (begin_ns, end_ns) = (since(part.begin_ns), since(part.end_ns));
        match pieces.last_mut() {
            Some(last) if (last.bar, last.end_ns) == (bar, begin_ns) => last.end_ns = end_ns,
            _ => pieces.push(PathPiece { bar, begin_ns, end_ns }),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use proctrace_findings::{GanttOrder, GanttView};

    use crate::gantt::gantt;
    use proctrace_overview::options::Options;
    use proctrace_scenes::{MS, Scene};

    const WAIT4: i16 = 61;
    const FUTEX: i16 = 202;

    #[test]
    fn pieces_are_on_the_bar_of_their_task_in_every_view() {
        // The command waits for 2, whose main thread waits for its thread 3.
        let mut scene = Scene::new(1, 100 * MS);
        scene.fork(10 * MS, 1, 2).thread(20 * MS, 2, 3);
        scene.sleep(2, (30 * MS, 60 * MS, 60 * MS), FUTEX, 3).exit(65 * MS, 3, (0, 0));
        scene.exit(70 * MS, 2, (0, 0)).sleep(1, (11 * MS, 70 * MS, 70 * MS), WAIT4, 2);
        let recording = scene.exit(80 * MS, 1, (0, 0)).load(Some((80 * MS, 0, 0)));
        let found = |view: &GanttView| -> Vec<(i32, bool, u64, u64)> {
            let gantt = gantt(&recording, view, &Options::default()).unwrap();
            let pieces = gantt.path.iter().map(|piece| {
                let bar = &gantt.bars[piece.bar as usize];
                (bar.pid - 1000, bar.is_thread, piece.begin_ns / MS, piece.end_ns / MS)
            });
            pieces.collect()
        };
        for order in [GanttOrder::Time, GanttOrder::Tree, GanttOrder::Category] {
            let view = GanttView { order, ..GanttView::default() };
            let processes = [(1, false, 0, 10), (2, false, 10, 70), (1, false, 70, 80)];
            assert_eq!(found(&view), processes);
            let threads = GanttView { threads: true, ..view };
            let with_threads = [
                (1, false, 0, 10),
                (2, false, 10, 20),
                (2, true, 20, 60),
                (2, false, 60, 70),
                (1, false, 70, 80),
            ];
            assert_eq!(found(&threads), with_threads);
        }
        // A process without a bar leaves a gap.
        let view = GanttView { min_life_ns: Some(70 * MS), ..GanttView::default() };
        assert_eq!(found(&view), [(1, false, 0, 10), (1, false, 70, 80)]);
    }
}
