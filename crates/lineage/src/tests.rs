//! Lives told record by record.

use proctrace_wire::layout::{ATTACH_ZOMBIE, Attach, EXIT_PROCESS, Exit, Fork};
use zerocopy::FromZeros;

use super::*;

type Tree = Living<&'static str, ()>;

fn pid(serial: u32) -> i32 {
    100 + i32::try_from(serial).unwrap()
}

/// A process that was there before, with the serial as its name.
fn attach(tree: &mut Tree, serial: u32, pid: i32, parent_pid: i32) {
    let mut attach = Attach::new_zeroed();
    (attach.head.task, attach.process) = (serial, serial);
    (attach.tgid, attach.tid, attach.parent_tgid) = (pid, pid, parent_pid);
    tree.attach(&attach, "attached", ());
}

/// The fork of a task with a pid, in the process of `forker`.
fn fork(
    tree: &mut Tree,
    forker: u32,
    (child, process): (u32, u32),
    pids: (i32, i32),
) -> Birth<u32> {
    let mut fork = Fork::new_zeroed();
    (fork.head.task, fork.process) = (forker, forker);
    fork.tgid = tree.get(forker).map_or(pid(forker), |forker| forker.pid);
    (fork.child, fork.child_process) = (child, process);
    (fork.child_tgid, fork.parent_tgid) = pids;
    tree.fork(&fork, |forker| forker.map_or("lost", |_| "forked"), ())
}

fn child(tree: &mut Tree, forker: u32, child: u32) {
    let parent_pid = tree.get(forker).unwrap().pid;
    fork(tree, forker, (child, child), (pid(child), parent_pid));
}

fn exit(
    tree: &mut Tree,
    task: u32,
    time_ns: u64,
    is_process: bool,
) -> Option<Exited<&'static str>> {
    let mut exit = Exit::new_zeroed();
    (exit.head.task, exit.head.time_ns, exit.status) = (task, time_ns, task << 8);
    exit.bits = if is_process { EXIT_PROCESS } else { 0 };
    tree.exit(&exit)
}

fn ends(tree: &mut Tree, task: u32) {
    assert!(exit(tree, task, 1, true).unwrap().ended.is_some());
}

fn parent(tree: &Tree, serial: u32) -> Option<u32> {
    tree.get(serial).unwrap().parent
}

/// A root, 1, with a child, 2, that has a child, 3.
fn three() -> Tree {
    let mut tree = Tree::default();
    attach(&mut tree, 1, pid(1), 1);
    child(&mut tree, 1, 2);
    child(&mut tree, 2, 3);
    tree
}

#[test]
fn a_sibling_is_a_child_of_its_forkers_parent() {
    let mut tree = three();
    let birth = fork(&mut tree, 3, (4, 4), (pid(4), pid(2)));
    assert_eq!(birth, Birth::Process { parent: Some(2), forker: Some(3) });
    assert_eq!((parent(&tree, 4), tree.get(4).unwrap().more), (Some(2), "forked"));
    // Of the root: its parent is not recorded.
    fork(&mut tree, 1, (5, 5), (pid(5), 1));
    assert_eq!((parent(&tree, 5), tree.roots().len()), (None, 2));
}

#[test]
fn a_sibling_of_an_orphan_is_a_child_of_who_adopted_that() {
    let mut tree = three();
    ends(&mut tree, 2);
    assert_eq!(parent(&tree, 3), Some(1));
    assert!(tree.get(3).unwrap().is_orphan());
    // The parent has ended, and another process has got its pid: it has not adopted the orphan.
    fork(&mut tree, 1, (6, 6), (pid(2), pid(1)));
    for (child, adopter, expected) in [(4, pid(1), Some(1)), (5, 1, None)] {
        fork(&mut tree, 3, (child, child), (pid(child), adopter));
        assert_eq!(parent(&tree, child), expected);
        assert!(!tree.get(child).unwrap().is_orphan());
    }
}

#[test]
fn children_of_the_dead_hang_below_the_nearest_that_lives() {
    let mut tree = three();
    ends(&mut tree, 1);
    assert_eq!((parent(&tree, 2), tree.roots().iter().copied().collect()), (None, vec![2]));
    let ended = exit(&mut tree, 2, 7, true).unwrap().ended.unwrap();
    assert_eq!((ended.parent, ended.born_of, ended.end), (None, Some(1), Some((7, 2 << 8))));
    assert_eq!((parent(&tree, 3), tree.roots().len()), (None, 1));
}

#[test]
fn a_process_lives_as_long_as_its_last_thread() {
    let mut tree = three();
    assert_eq!(fork(&mut tree, 3, (4, 3), (pid(3), pid(2))), Birth::Thread(3));
    // A thread that has called exec: the leader is gone, and the thread has its pid.
    assert!(exit(&mut tree, 3, 1, false).unwrap().ended.is_none());
    assert_eq!((tree.alive(pid(3)), tree.get(3).unwrap().tasks), (Some(3), 1));
    assert!(!tree.add_unborn(3, pid(3), 4).is_new);
    let ended = exit(&mut tree, 4, 2, true).unwrap();
    assert_eq!((ended.process, ended.ended.unwrap().end), (3, Some((2, 4 << 8))));
    assert_eq!((tree.processes(), tree.tasks(), tree.alive(pid(3))), (2, 2, None));
}

#[test]
fn of_threads_that_claim_to_be_the_last_the_latest_is_right() {
    let mut tree = three();
    fork(&mut tree, 3, (4, 3), (pid(3), pid(2)));
    exit(&mut tree, 4, 9, true);
    let ended = exit(&mut tree, 3, 8, true).unwrap().ended.unwrap();
    assert_eq!(ended.end, Some((9, 4 << 8)));
    // If none does, that record was lost.
    assert_eq!(exit(&mut tree, 2, 5, false).unwrap().ended.unwrap().end, Some((5, 2 << 8)));
}

#[test]
fn a_pid_is_that_of_the_latest() {
    let mut tree = three();
    // The end of 3 was lost, and its pid is used again.
    fork(&mut tree, 1, (4, 4), (pid(3), pid(1)));
    assert_eq!(tree.alive(pid(3)), Some(4));
    ends(&mut tree, 3);
    assert_eq!(tree.alive(pid(3)), Some(4));
    attach(&mut tree, 5, 500, pid(3));
    assert_eq!(parent(&tree, 5), Some(4));
}

#[test]
fn attached_processes_find_their_parents_in_any_order() {
    let mut tree = Tree::default();
    attach(&mut tree, 1, 300, 200);
    attach(&mut tree, 2, 200, 100);
    attach(&mut tree, 3, 201, 200);
    assert_eq!((parent(&tree, 1), parent(&tree, 3)), (Some(2), Some(2)));
    assert!(!tree.get(1).unwrap().is_orphan());
    // A hostile trace: each is the parent of the other.
    attach(&mut tree, 4, 400, 401);
    attach(&mut tree, 5, 401, 400);
    let above: Vec<_> = [4, 5].iter().filter_map(|serial| parent(&tree, *serial)).collect();
    assert_eq!(above, [4]);
}

#[test]
fn a_leader_that_has_ended_before_is_no_task() {
    let mut tree = Tree::default();
    let mut leader = Attach::new_zeroed();
    (leader.head.task, leader.process, leader.bits) = (1, 1, ATTACH_ZOMBIE);
    tree.attach(&leader, "", ());
    let mut thread = Attach::new_zeroed();
    (thread.head.task, thread.process) = (2, 1);
    assert_eq!(tree.attach(&thread, "", ()), Birth::Thread(1));
    assert!(exit(&mut tree, 2, 3, true).unwrap().ended.is_some());
}

#[test]
fn what_was_lost_is_made_up_for() {
    let mut tree = three();
    // A thread of a process of which nothing is known stands for it.
    let birth = fork(&mut tree, 70, (71, 70), (170, 1));
    assert_eq!((birth, birth.process(71)), (Birth::Process { parent: None, forker: None }, 71));
    assert_eq!(tree.get(71).unwrap().more, "lost");
    assert!(tree.add_unborn(80, 180, 81).is_new);
    assert_eq!((tree.alive(180), tree.get(80).unwrap().tasks), (Some(80), 1));
    assert!(exit(&mut tree, 81, 3, true).unwrap().ended.is_some());
    assert!(exit(&mut tree, 90, 3, true).is_none());
    // Its process becomes known: nothing is left that stands for it.
    let told = tree.add_unborn(70, 170, 71);
    assert!(told.is_new && told.stood_for_it.is_some_and(|it| it.serial == 71));
    assert_eq!((tree.alive(170), tree.get(70).unwrap().tasks), (Some(70), 1));
    // A task whose birth was lost, of a process that is known.
    assert!(!tree.add_unborn(70, 170, 72).is_new);
    assert!(exit(&mut tree, 71, 4, true).unwrap().ended.is_none());
    assert!(exit(&mut tree, 72, 5, true).unwrap().ended.is_some());
    assert_eq!((tree.processes(), tree.tasks()), (3, 3));
}

#[test]
fn a_flat_register_keeps_no_tree() {
    let mut tree = Tree::flat();
    fork(&mut tree, 1, (2, 2), (pid(2), pid(1)));
    fork(&mut tree, 2, (3, 3), (pid(3), pid(2)));
    assert_eq!((tree.roots().len(), tree.get(2).unwrap().children.len()), (0, 0));
    assert_eq!(tree.get(3).unwrap().born_of, Some(2));
    ends(&mut tree, 2);
    ends(&mut tree, 3);
    assert_eq!((tree.processes(), tree.tasks()), (0, 0));
}
