//! Sources of each figure of a process and of a thread.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Range;

use proctrace_findings::{Figure, Figures};
use proctrace_wire::Quantity;

use proctrace_recording::Recording;
use proctrace_recording::exit::Exit;
use proctrace_recording::process::Process;
use proctrace_recording::task::Task;
use proctrace_replay::Usage;

/// Quantities that the figures need and those given, each once.
pub fn needs_of_all(others: &[Quantity]) -> Vec<Quantity> {
    let figures = Figure::ALL.into_iter().flat_map(|figure| figure.needs().iter().copied());
    let all: BTreeSet<Quantity> = others.iter().copied().chain(figures).collect();
    all.into_iter().collect()
}

/// True if a recording knows it, of any process.
pub fn is_known(recording: &Recording, figure: Figure) -> bool {
    match figure {
        Figure::UserTicksNs | Figure::SystemTicksNs => recording.knows_ticks(),
        _ => recording.knows().all(figure.needs()),
    }
}

/// Source of the figure of a thread, or that of a process as the sum over its threads.
enum Source {
    /// A counter, as far as the thread was followed.
    Used(fn(&Usage) -> u64),
    /// A count that is told at the end of a thread, and not known before.
    Told(fn(&Exit) -> u32),
    /// Threads do not have it.
    Process,
}

fn source(figure: Figure) -> Source {
    if let Some(counter) = Usage::counter(figure) {
        return Source::Used(counter);
    }
    match figure {
        Figure::Migrations => Source::Told(|end| end.migrations),
        Figure::Opens => Source::Told(|end| end.opens),
        _ => Source::Process,
    }
}

/// The figures of some processes.
pub struct OfProcesses<'a> {
    recording: &'a Recording,
    range: Range<usize>,
    used: OnceCell<Vec<Usage>>,
    failed_lookups: OnceCell<Vec<Option<u64>>>,
}

impl<'a> OfProcesses<'a> {
    /// Figures of a range of processes, which must exist.
    pub fn new(recording: &'a Recording, range: Range<usize>) -> Self {
        Self { recording, range, used: OnceCell::new(), failed_lookups: OnceCell::new() }
    }

    /// A figure of each of them; `None` if it is not known of any process.
    pub fn column(&self, figure: Figure) -> Option<Vec<Option<u64>>> {
        is_known(self.recording, figure).then(|| {
            (0..self.range.len()).map(|at| self.value(figure, at, || &self.used()[at])).collect()
        })
    }

    /// All figures of one of them, by its index among all processes.
    pub fn of(&self, process: usize) -> Figures {
        self.some_of(process, |_| true)
    }

    /// Figures that timelines have.
    pub fn in_timelines(&self, process: usize) -> Figures {
        self.some_of(process, Figure::is_in_timelines)
    }

    /// A figure of one of them.
    pub fn one(&self, figure: Figure, process: usize) -> Option<u64> {
        self.some_of(process, |it| it == figure)[figure]
    }

    fn some_of(&self, process: usize, wanted: impl Fn(Figure) -> bool) -> Figures {
        let at = process.saturating_sub(self.range.start);
        // Not those of all: there may be ten million.
        let used = OnceCell::new();
        let used =
            || used.get_or_init(|| self.recording.used_by(&self.recording.processes()[process]));
        Figures::of(|figure| {
            let is_told = wanted(figure) && is_known(self.recording, figure);
            is_told.then(|| self.value(figure, at, used)).flatten()
        })
    }

    fn value<'u>(
        &self,
        figure: Figure,
        at: usize,
        used: impl FnOnce() -> &'u Usage,
    ) -> Option<u64> {
        let process = &self.recording.processes()[self.range.start + at];
        match (figure, source(figure)) {
            // Corrected for what its threads used before they were followed, and after they were released.
            (Figure::CpuNs, _) => Some(process.cpu.total_ns()),
            (_, Source::Used(of)) => Some(of(used())),
            (_, Source::Told(of)) => self.recording.counted_by(process, of),
            (Figure::UserNs, _) => Some(process.cpu.user_ns),
            (Figure::SystemNs, _) => Some(process.cpu.system_ns),
            (Figure::ChildrenWaitedCpuNs, _) => process.waited_ns(),
            (Figure::PeakRssBytes, _) => self.recording.known_peak_rss_bytes(process),
            (Figure::FileRssBytes, _) => {
                let pages = self.recording.counted_by(process, |end| end.file_rss_pages);
                let page_bytes = u64::from(self.recording.header().page_bytes);
                pages.filter(|pages| *pages > 0).map(|pages| pages.saturating_mul(page_bytes))
            }
            (Figure::FailedLookups, _) => self.failed_lookups()[at],
            (_, Source::Process) => None,
        }
    }

    fn used(&self) -> &[Usage] {
        let used = |process: &Process| self.recording.used_by(process);
        let rows = &self.recording.processes()[self.range.clone()];
        self.used.get_or_init(|| rows.iter().map(used).collect())
    }

    fn failed_lookups(&self) -> &[Option<u64>] {
        self.failed_lookups.get_or_init(|| self.recording.failed_lookups_of(self.range.clone()))
    }
}

/// The figures of one process.
pub fn of_process(recording: &Recording, process: usize) -> Figures {
    OfProcesses::new(recording, process..process + 1).of(process)
}

/// The figures of several processes together.
pub fn of_all(recording: &Recording, processes: &[usize]) -> Figures {
    let all = OfProcesses::new(recording, 0..recording.processes().len());
    let zero = |figure: Figure| {
        (is_known(recording, figure) && figure.adds_up() && !figure.is_largest()).then_some(0)
    };
    processes.iter().fold(Figures::of(zero), |sum, at| sum.plus(&all.of(*at)))
}

/// A figure of each of some threads; `None` if it is not known of any, or threads do not have it.
pub fn of_threads(
    recording: &Recording,
    figure: Figure,
    threads: &[Task],
    used: &[Usage],
) -> Option<Vec<Option<u64>>> {
    let is_known = is_known(recording, figure);
    match source(figure) {
        Source::Used(of) => is_known.then(|| used.iter().map(|used| Some(of(used))).collect()),
        Source::Told(of) => is_known.then(|| {
            let told = |thread: &Task| Some(u64::from(of(&thread.end()?.record)));
            threads.iter().map(told).collect()
        }),
        Source::Process => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MS, Scene};

    #[test]
    fn threads_have_what_is_said_of_them() {
        for figure in Figure::ALL {
            let has = !matches!(source(figure), Source::Process);
            assert_eq!(has, figure.says_of_thread().is_some(), "{}", figure.name());
        }
    }

    /// A value that no other arm of `value` has would be lost in silence.
    #[test]
    fn every_figure_is_known_of_a_process_that_ended() {
        let mut scene = Scene::new(1, 100 * MS);
        let with_memory = |exit: &mut proctrace_wire::layout::Exit| exit.file_rss_pages = 300;
        scene.fork(0, 1, 2).exit_with(10 * MS, 2, (3 * MS, 0), with_memory);
        scene.exit_with(20 * MS, 1, (MS, 0), with_memory);
        let recording = scene.load(None);
        let (both, child) = (of_all(&recording, &[0, 1]), of_process(&recording, 1));
        for figure in Figure::ALL {
            let known = is_known(&recording, figure);
            assert_eq!(child[figure].is_some(), known, "{}", figure.name());
            assert_eq!(both[figure].is_some(), known && figure.adds_up(), "{}", figure.name());
        }
        assert_eq!((child[Figure::CpuNs], both[Figure::CpuNs]), (Some(3 * MS), Some(4 * MS)));
        // Two processes may share their pages.
        assert_eq!(both[Figure::FileRssBytes], Some(300 * 4096));
    }
}
