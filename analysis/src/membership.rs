//! How long a process hangs on the command's tree, where a sampler finds it, and how long what it
//! has used is counted there.

use crate::process::Process;

/// When each process, and what it used, is out of sight.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Membership {
    /// When a process that lives is no more a descendant of the command, because an ancestor has
    /// ended and one from outside has adopted it; `u64::MAX`: it stays until it ends.
    pub(crate) leaves_ns: Vec<u64>,
    /// When its CPU time is in no figure of a member any more, neither its own nor that of one who
    /// waited for it; `u64::MAX`: never. A child that ended is taken to be waited for at once.
    pub(crate) forgotten_ns: Vec<u64>,
}

impl Membership {
    /// Whether `launched`, the first process is the command; without one, whoever has no parent in
    /// the recording is the top of a tree.
    ///
    /// A parent that was seen later than its child, which only happens where they were there before
    /// the recording, counts as one from outside: so there is no circle, whatever a trace says.
    pub(crate) fn of(processes: &[Process], launched: bool) -> Self {
        let mut leaves_ns: Vec<u64> = Vec::with_capacity(processes.len());
        let mut forgotten_ns: Vec<u64> = Vec::with_capacity(processes.len());
        for (at, process) in processes.iter().enumerate() {
            let ended_ns = process.ended_ns.unwrap_or(u64::MAX);
            let reaper = process.reaper.filter(|reaper| *reaper < at);
            let parent = process.parent.filter(|parent| *parent < at);
            let leaves = match parent {
                None if at == 0 || !launched => u64::MAX,
                None => process.born_ns,
                Some(parent) => {
                    let parent_ended_ns = processes[parent].ended_ns.unwrap_or(u64::MAX);
                    if parent_ended_ns > ended_ns || parent_ended_ns > leaves_ns[parent] {
                        leaves_ns[parent]
                    } else if reaper == Some(parent) {
                        // Both at the same moment.
                        leaves_ns[parent]
                    } else {
                        reaper.map_or(parent_ended_ns, |reaper| leaves_ns[reaper])
                    }
                }
            };
            let is_top = leaves == u64::MAX && parent.is_none();
            let forgotten = if leaves <= ended_ns && leaves != u64::MAX {
                leaves
            } else if is_top || process.ended_ns.is_none() {
                u64::MAX
            } else if process.autoreaped {
                ended_ns
            } else {
                reaper.map_or(ended_ns, |reaper| forgotten_ns[reaper])
            };
            leaves_ns.push(leaves);
            forgotten_ns.push(forgotten);
        }
        Self { leaves_ns, forgotten_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{BEGIN_NS, MS, Scene, pid_of};

    fn of(scene: &Scene) -> Membership {
        let recording = scene.load(None);
        Membership::of(&recording.processes, true)
    }

    #[test]
    fn a_child_that_is_waited_for_stays_in_the_books() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.fork(10 * MS, 1, 2).fork(20 * MS, 2, 3);
        scene.exit(30 * MS, 3, (1, 1)).exit(40 * MS, 2, (1, 1)).exit(50 * MS, 1, (1, 1));
        let membership = of(&scene);
        assert_eq!(membership.leaves_ns, [u64::MAX; 3]);
        assert_eq!(membership.forgotten_ns, [u64::MAX; 3]);
    }

    #[test]
    fn an_orphan_leaves_with_its_parent_and_takes_its_children_along() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.fork(10 * MS, 1, 2).fork(20 * MS, 2, 3).fork(25 * MS, 3, 4);
        scene.exit(30 * MS, 2, (1, 1)).exit(60 * MS, 4, (1, 1)).exit(70 * MS, 3, (1, 1));
        scene.exit(80 * MS, 1, (1, 1));
        let left_ns = BEGIN_NS + 30 * MS;
        let membership = of(&scene);
        assert_eq!(membership.leaves_ns, [u64::MAX, u64::MAX, left_ns, left_ns]);
        assert_eq!(membership.forgotten_ns, [u64::MAX, u64::MAX, left_ns, left_ns]);
    }

    #[test]
    fn a_subreaper_of_the_tree_keeps_it() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.fork(10 * MS, 1, 2).fork(20 * MS, 2, 3).exit(30 * MS, 2, (1, 1));
        scene.exit_with(60 * MS, 3, (1, 1), |exit| exit.parent_tgid = pid_of(1));
        scene.exit(80 * MS, 1, (1, 1));
        assert_eq!(of(&scene).leaves_ns, [u64::MAX; 3]);
        assert_eq!(of(&scene).forgotten_ns, [u64::MAX; 3]);
    }

    #[test]
    fn what_no_one_waits_for_is_forgotten_at_its_end() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.fork(10 * MS, 1, 2);
        scene.exit_with(60 * MS, 2, (1, 1), |exit| {
            exit.bits |= proctrace_wire::layout::EXIT_AUTOREAP;
        });
        scene.exit(80 * MS, 1, (1, 1));
        assert_eq!(of(&scene).leaves_ns, [u64::MAX; 2]);
        assert_eq!(of(&scene).forgotten_ns, [u64::MAX, BEGIN_NS + 60 * MS]);
    }
}
