//! Time of processes on the critical path: few of many have any.

use std::collections::BTreeMap;

use proctrace_classify::fast::{Bits, FastMap};
use proctrace_overview::path::{CriticalPath, Doing};
use proctrace_recording::Recording;

/// Time of a process on the path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) own_ns: u64,
    /// The parts of it in which the process ran, and in which it was ready and had no CPU.
    pub(crate) running_ns: u64,
    pub(crate) ready_ns: u64,
    /// `own_ns` with that of its descendants.
    pub(crate) below_ns: u64,
}

/// Time of all processes on the path.
#[derive(Debug, Default)]
pub(crate) struct OnPath {
    spent: FastMap<u32, Spent>,
    /// Those in the map: most of those that are asked about are not.
    known: Bits,
}

impl OnPath {
    pub(crate) fn of(recording: &Recording, path: &CriticalPath) -> Self {
        let mut spent: FastMap<u32, Spent> = FastMap::default();
        for part in &path.parts {
            let process = recording.tasks()[part.task as usize].process() as u32;
            let part_ns = part.end_ns - part.begin_ns;
            let spent = spent.entry(process).or_default();
            spent.own_ns = spent.own_ns.saturating_add(part_ns);
            match part.doing {
                Doing::Running => spent.running_ns += part_ns,
                Doing::WaitingForCpu => spent.ready_ns += part_ns,
                Doing::Waiting(_) => {}
            }
        }
        // Parents precede their children, except for processes that predate the recording; such children are left out.
        let mut left: BTreeMap<u32, u64> =
            spent.iter().map(|(process, spent)| (*process, spent.own_ns)).collect();
        while let Some((process, below_ns)) = left.pop_last() {
            spent.entry(process).or_default().below_ns = below_ns;
            let parent = recording.processes()[process as usize].parent();
            if let Some(parent) = parent.filter(|parent| *parent < process as usize)
                && below_ns > 0
            {
                let above_ns = left.entry(parent as u32).or_default();
                *above_ns = above_ns.saturating_add(below_ns);
            }
        }
        let mut known = Bits::default();
        spent.keys().for_each(|process| known.insert(*process as usize));
        Self { spent, known }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, Spent)> {
        self.spent.iter().map(|(process, spent)| (*process, *spent))
    }

    #[inline]
    pub(crate) fn get(&self, process: u32) -> Spent {
        if !self.known.contains(process as usize) {
            return Spent::default();
        }
        self.spent.get(&process).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proctrace_scenes::{MS, Scene};

    use super::*;

    const WAIT4: i16 = 61;

    /// A shell waits for a shell that waits for a program; a fourth process is on no path.
    #[test]
    fn ancestors_have_the_time_of_what_is_below_them() {
        let mut scene = Scene::new(2, 10 * MS);
        scene.exec(0, 1, "/bin/sh", (0, 0)).fork(10 * MS, 1, 2).fork(20 * MS, 2, 3);
        scene.fork(25 * MS, 1, 4).exit(30 * MS, 4, (0, 0)).exit(70 * MS, 3, (0, 0));
        scene.sleep(2, (20 * MS, 70 * MS, 75 * MS), WAIT4, 3).exit(80 * MS, 2, (0, 0));
        scene.sleep(1, (10 * MS, 80 * MS, 80 * MS), WAIT4, 2);
        let recording = scene.exit(100 * MS, 1, (0, 0)).load(Some((100 * MS, 0, 0)));
        let on_path = OnPath::of(&recording, &CriticalPath::of(&recording).unwrap());
        let spent = |own: u64, running: u64, ready: u64, below: u64| {
            let [own_ns, running_ns, ready_ns, below_ns] =
                [own, running, ready, below].map(|ms| ms * MS);
            Spent { own_ns, running_ns, ready_ns, below_ns }
        };
        let expected =
            [spent(30, 30, 0, 100), spent(20, 15, 5, 70), spent(50, 50, 0, 50), spent(0, 0, 0, 0)];
        assert_eq!([0, 1, 2, 3].map(|process| on_path.get(process)), expected);
        let mut on_it: Vec<u32> = on_path.iter().map(|(process, _)| process).collect();
        on_it.sort_unstable();
        assert_eq!(on_it, [0, 1, 2]);
    }
}
