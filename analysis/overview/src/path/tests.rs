//! Paths that are known by construction, and properties of all paths.

use proctrace_recording::Recording;
use proctrace_recording::waits::{Wait, Waker};
use proctrace_scenes::{MS, Scene};
use proctrace_wire::WaitFor;
use proctrace_wire::layout;
use proptest::prelude::*;

use super::{CriticalPath, Doing, Part};

/// System calls of x86-64.
const READ: i16 = 0;
const POLL: i16 = 7;
const NANOSLEEP: i16 = 35;
const RECVFROM: i16 = 45;
const VFORK: i16 = 58;
const WAIT4: i16 = 61;
const FUTEX: i16 = 202;

fn scene() -> Scene {
    Scene::new(2, 100 * MS)
}

/// A task sleeps between two times in milliseconds, and gets a CPU at once.
fn sleep(scene: &mut Scene, task: u32, (since, woken): (u64, u64), call: i16, waker: u32) {
    scene.sleep(task, (since * MS, woken * MS, woken * MS), call, waker);
}

/// The path in words, with serials and milliseconds. Adjacent parts of the same kind are merged.
fn path(recording: &Recording) -> Vec<String> {
    let path = CriticalPath::of(recording).unwrap();
    adds_up(recording, &path);
    let mut merged: Vec<Part> = Vec::new();
    for part in path.parts {
        match merged.last_mut() {
            Some(last) if (last.task, last.doing) == (part.task, part.doing) => {
                last.end_ns = part.end_ns;
            }
            _ => merged.push(part),
        }
    }
    merged
        .iter()
        .map(|part| {
            let serial = recording.tasks()[part.task as usize].serial;
            let doing = match part.doing {
                Doing::Running => "runs".to_owned(),
                Doing::WaitingForCpu => "waits for a CPU".to_owned(),
                Doing::Waiting(reason) => format!("waits: {}", reason.name()),
            };
            let ms = |at_ns: u64| (at_ns - recording.first_ns()) / MS;
            format!("{serial} {doing} {}-{}", ms(part.begin_ns), ms(part.end_ns))
        })
        .collect()
}

/// The parts follow each other without gap from the beginning to the end, each for some time.
fn adds_up(recording: &Recording, path: &CriticalPath) {
    let mut now_ns = recording.first_ns();
    for part in &path.parts {
        assert_eq!(part.begin_ns, now_ns, "{part:?}");
        assert!(part.end_ns > part.begin_ns, "{part:?}");
        now_ns = part.end_ns;
    }
    assert_eq!(now_ns, recording.first_ns() + recording.wall_ns());
}

#[test]
fn commands_one_after_the_other_are_all_on_the_path() {
    let mut scene = scene();
    scene.fork(10 * MS, 1, 2).exit(40 * MS, 2, (0, 0));
    sleep(&mut scene, 1, (11, 40), WAIT4, 2);
    scene.fork(50 * MS, 1, 3).exit(90 * MS, 3, (0, 0));
    sleep(&mut scene, 1, (51, 90), WAIT4, 3);
    let recording = scene.exit(100 * MS, 1, (0, 0)).load(Some((100 * MS, 0, 0)));
    let expected = ["1 runs 0-10", "2 runs 10-40", "1 runs 40-50", "3 runs 50-90", "1 runs 90-100"];
    assert_eq!(path(&recording), expected);
}

#[test]
fn in_a_pipeline_the_slow_end_is_on_the_path() {
    // `producer | filter`: the filter reads three times, the shell waits for it.
    let mut scene = scene();
    scene.fork(MS, 1, 2).fork(2 * MS, 1, 3);
    let mut read = |since: u64, woken: u64, file_type: u16| {
        scene.wait_with(3, (since * MS, woken * MS, woken * MS), |wait| {
            (wait.syscall, wait.state, wait.file_type) = (READ, b'S'.into(), file_type);
            (wait.waker, wait.bits) = (2, layout::WAIT_BY_TASK);
        });
    };
    read(3, 30, 1);
    read(32, 60, 1);
    read(61, 70, 1);
    scene.exit(70 * MS, 2, (0, 0)).exit(80 * MS, 3, (0, 0));
    sleep(&mut scene, 1, (3, 80), WAIT4, 3);
    let recording = scene.exit(81 * MS, 1, (0, 0)).load(Some((81 * MS, 0, 0)));
    assert_eq!(path(&recording), ["1 runs 0-1", "2 runs 1-70", "3 runs 70-80", "1 runs 80-81"]);
}

#[test]
fn in_a_pool_with_two_slots_the_path_goes_from_child_to_child() {
    // Like `make -j2`: 2 and 3 at once, 4 as soon as 3 has ended, 5 as soon as 2 has.
    let mut scene = scene();
    scene.fork(MS, 1, 2).fork(2 * MS, 1, 3);
    sleep(&mut scene, 1, (3, 20), WAIT4, 3);
    scene.exit(20 * MS, 3, (0, 0)).fork(21 * MS, 1, 4);
    sleep(&mut scene, 1, (22, 50), WAIT4, 2);
    scene.exit(50 * MS, 2, (0, 0)).fork(51 * MS, 1, 5);
    sleep(&mut scene, 1, (52, 60), WAIT4, 5);
    scene.exit(60 * MS, 5, (0, 0));
    sleep(&mut scene, 1, (61, 90), WAIT4, 4);
    let recording =
        scene.exit(90 * MS, 4, (0, 0)).exit(91 * MS, 1, (0, 0)).load(Some((91 * MS, 0, 0)));
    let expected = ["1 runs 0-2", "3 runs 2-20", "1 runs 20-21", "4 runs 21-90", "1 runs 90-91"];
    assert_eq!(path(&recording), expected);
}

#[test]
fn of_workers_only_the_straggler_is_on_the_path() {
    let mut scene = scene();
    for worker in 2..6 {
        scene.fork(u64::from(worker) * MS, 1, worker);
    }
    for (worker, ends) in [(2, 20), (3, 95), (4, 30), (5, 25)] {
        scene.exit(ends * MS, worker, (0, 0));
    }
    // It waits for its children in the order in which they end.
    for (since, woken, worker) in [(6, 20, 2), (21, 25, 5), (26, 30, 4), (31, 95, 3)] {
        sleep(&mut scene, 1, (since, woken), WAIT4, worker);
    }
    let recording = scene.exit(96 * MS, 1, (0, 0)).load(Some((96 * MS, 0, 0)));
    assert_eq!(path(&recording), ["1 runs 0-3", "3 runs 3-95", "1 runs 95-96"]);
}

#[test]
fn a_sleep_in_a_loop_of_a_shell_is_time_of_a_timer() {
    let mut scene = scene();
    for round in 0..3_u64 {
        let (at, child) = (round * 100, 2 + u32::try_from(round).unwrap());
        scene.fork((at + 10) * MS, 1, child);
        sleep(&mut scene, child, (at + 12, at + 92), NANOSLEEP, 0);
        scene.exit((at + 95) * MS, child, (0, 0));
        sleep(&mut scene, 1, (at + 11, at + 95), WAIT4, child);
    }
    let recording = scene.exit(300 * MS, 1, (0, 0)).load(Some((300 * MS, 0, 0)));
    let path = path(&recording);
    assert_eq!(
        path[..5],
        ["1 runs 0-10", "2 runs 10-12", "2 waits: timer 12-92", "2 runs 92-95", "1 runs 95-110"]
    );
    assert_eq!(path.iter().filter(|part| part.contains("waits: timer")).count(), 3);
}

#[test]
fn who_looks_again_and_again_whether_a_child_has_ended_waits_for_the_child() {
    let mut scene = scene();
    scene.fork(10 * MS, 1, 2).exit(75 * MS, 2, (0, 0));
    for times in [(12, 20), (21, 50), (51, 85)] {
        sleep(&mut scene, 1, times, NANOSLEEP, 0);
    }
    let recording = scene.exit(90 * MS, 1, (0, 0)).load(Some((90 * MS, 0, 0)));
    let expected = ["1 runs 0-10", "2 runs 10-75", "1 waits: timer 75-85", "1 runs 85-90"];
    assert_eq!(path(&recording), expected);
}

#[test]
fn what_a_daemon_does_for_a_client_is_on_the_path_and_its_idling_is_not() {
    // The daemon is asleep until the client has connected, and the client until it answers.
    let mut scene = scene();
    scene.fork(5 * MS, 1, 2).fork(8 * MS, 2, 3).exit(9 * MS, 2, (0, 0));
    sleep(&mut scene, 1, (6, 9), WAIT4, 2);
    scene.fork(20 * MS, 1, 4);
    sleep(&mut scene, 3, (12, 30), POLL, 4);
    sleep(&mut scene, 4, (31, 70), RECVFROM, 3);
    scene.exit(80 * MS, 4, (0, 0));
    sleep(&mut scene, 1, (21, 80), WAIT4, 4);
    scene.exit(81 * MS, 1, (0, 0));
    // It outlives the command.
    sleep(&mut scene, 3, (71, 200), POLL, 0);
    let recording = scene.exit(201 * MS, 3, (0, 0)).load(Some((81 * MS, 0, 0)));
    let expected = [
        "1 runs 0-5",
        "2 runs 5-9",
        "1 runs 9-20",
        "4 runs 20-30",
        "3 runs 30-70",
        "4 runs 70-80",
        "1 runs 80-81",
    ];
    assert_eq!(path(&recording), expected);
}

#[test]
fn a_double_fork_leads_back_through_the_process_in_between() {
    // 3 is started by 2, which ends at once; the command waits for 3 to close a pipe.
    let mut scene = scene();
    scene.fork(10 * MS, 1, 2).fork(12 * MS, 2, 3).exit(13 * MS, 2, (0, 0));
    sleep(&mut scene, 1, (11, 13), WAIT4, 2);
    scene.exit(60 * MS, 3, (0, 0));
    sleep(&mut scene, 1, (14, 60), READ, 3);
    let recording = scene.exit(61 * MS, 1, (0, 0)).load(Some((61 * MS, 0, 0)));
    assert_eq!(path(&recording), ["1 runs 0-10", "2 runs 10-12", "3 runs 12-60", "1 runs 60-61"]);
}

#[test]
fn waiting_for_a_cpu_is_not_running() {
    let mut scene = scene();
    // A new task waits for its first CPU; later it is preempted; the shell is woken, but waits.
    scene.fork(10 * MS, 1, 2).wait_for_cpu(2, 10 * MS, 15 * MS).wait_for_cpu(2, 20 * MS, 28 * MS);
    scene.exit(40 * MS, 2, (0, 0)).sleep(1, (11 * MS, 40 * MS, 44 * MS), WAIT4, 2);
    let recording = scene.exit(50 * MS, 1, (0, 0)).load(Some((50 * MS, 0, 0)));
    let expected = [
        "1 runs 0-10",
        "2 waits for a CPU 10-15",
        "2 runs 15-20",
        "2 waits for a CPU 20-28",
        "2 runs 28-40",
        "1 waits for a CPU 40-44",
        "1 runs 44-50",
    ];
    assert_eq!(path(&recording), expected);
}

#[test]
fn a_thread_that_wakes_its_main_thread_is_on_the_path() {
    // The second thread is created by the first one, not by the main thread.
    let mut scene = scene();
    scene.thread(10 * MS, 1, 2).thread(20 * MS, 2, 3);
    sleep(&mut scene, 1, (11, 70), FUTEX, 3);
    scene.exit(22 * MS, 2, (0, 0)).exit(71 * MS, 3, (0, 0));
    let recording = scene.exit(80 * MS, 1, (0, 0)).load(Some((80 * MS, 0, 0)));
    assert_eq!(path(&recording), ["1 runs 0-10", "2 runs 10-20", "3 runs 20-70", "1 runs 70-80"]);
}

#[test]
fn the_last_thread_of_the_command_ends_it() {
    let mut scene = scene();
    scene.header().waits_min_ns = Some(MS);
    scene.thread(10 * MS, 1, 2).exit(20 * MS, 1, (0, 0)).exit(90 * MS, 2, (0, 0));
    let recording = scene.load(Some((90 * MS, 0, 0)));
    assert_eq!(path(&recording), ["1 runs 0-10", "2 runs 10-90"]);
}

#[test]
fn a_sibling_was_forked_by_its_forker_and_not_by_its_parent() {
    let mut scene = scene();
    scene.fork(10 * MS, 1, 2).sibling(30 * MS, 2, 3).exit(31 * MS, 2, (0, 0));
    scene.exit(60 * MS, 3, (0, 0));
    sleep(&mut scene, 1, (11, 60), WAIT4, 3);
    let recording = scene.exit(61 * MS, 1, (0, 0)).load(Some((61 * MS, 0, 0)));
    assert_eq!(path(&recording), ["1 runs 0-10", "2 runs 10-30", "3 runs 30-60", "1 runs 60-61"]);
}

#[test]
fn a_vfork_is_explained_by_the_child() {
    let mut scene = scene();
    scene.fork(10 * MS, 1, 2);
    sleep(&mut scene, 1, (10, 25), VFORK, 2);
    scene.exit(50 * MS, 2, (0, 0));
    let recording = scene.exit(60 * MS, 1, (0, 0)).load(Some((60 * MS, 0, 0)));
    assert_eq!(path(&recording), ["1 runs 0-10", "2 runs 10-25", "1 runs 25-60"]);
}

#[test]
fn whoever_is_outside_or_unknown_is_waited_for() {
    let mut scene = scene();
    scene.wait_with(1, (10 * MS, 30 * MS, 30 * MS), |wait| {
        (wait.syscall, wait.state, wait.bits) = (RECVFROM, b'S'.into(), layout::WAIT_BY_TASK);
        (wait.waker, wait.waker_tgid) = (0, 7);
    });
    scene.wait_with(1, (40 * MS, 0, 50 * MS), |wait| {
        (wait.syscall, wait.state) = (FUTEX, b'S'.into());
        wait.woken_ns = 0;
    });
    let recording = scene.exit(60 * MS, 1, (0, 0)).load(Some((60 * MS, 0, 0)));
    let expected = [
        "1 runs 0-10",
        "1 waits: socket 10-30",
        "1 runs 30-40",
        "1 waits: futex 40-50",
        "1 runs 50-60",
    ];
    assert_eq!(path(&recording), expected);
}

#[test]
fn who_woke_someone_while_asleep_is_explained_by_its_own_sleep() {
    // 2 is still asleep by its own clock when it wakes 1; 3 woke it.
    let mut scene = scene();
    scene.fork(MS, 1, 2).fork(2 * MS, 1, 3);
    sleep(&mut scene, 2, (10, 51), FUTEX, 3);
    sleep(&mut scene, 1, (10, 50), FUTEX, 2);
    scene.exit(55 * MS, 3, (0, 0)).exit(56 * MS, 2, (0, 0));
    let recording = scene.exit(60 * MS, 1, (0, 0)).load(Some((60 * MS, 0, 0)));
    assert_eq!(path(&recording), ["1 runs 0-2", "3 runs 2-50", "1 runs 50-60"]);
}

#[test]
fn tasks_that_wake_each_other_in_the_same_instant_do_not_wait_for_ever() {
    let mut scene = scene();
    scene.fork(MS, 1, 2);
    sleep(&mut scene, 1, (10, 50), FUTEX, 2);
    sleep(&mut scene, 2, (20, 50), FUTEX, 1);
    scene.exit(55 * MS, 2, (0, 0));
    let recording = scene.exit(60 * MS, 1, (0, 0)).load(Some((60 * MS, 0, 0)));
    // One of the sleeps remains unexplained, and the other one with it.
    let expected = ["1 runs 0-10", "1 waits: futex 10-50", "1 runs 50-60"];
    assert_eq!(path(&recording), expected);
}

#[test]
fn a_recording_without_command_or_waits_has_no_path() {
    let recording = scene().exit(10 * MS, 1, (0, 0)).load(None);
    assert_eq!(CriticalPath::of(&recording), None);
    let mut scene = scene();
    sleep(&mut scene, 1, (2, 5), NANOSLEEP, 0);
    scene.header().command.clear();
    assert_eq!(CriticalPath::of(&scene.exit(10 * MS, 1, (0, 0)).load(None)), None);
}

/// Eight tasks in all relations: children, threads, a sibling, grandchildren.
fn family() -> Recording {
    let mut scene = scene();
    scene.fork(10 * MS, 1, 2).fork(10 * MS, 2, 3).thread(20 * MS, 1, 4).fork(20 * MS, 4, 5);
    scene.sibling(30 * MS, 3, 6).fork(40 * MS, 6, 7).thread(40 * MS, 7, 8);
    sleep(&mut scene, 1, (1, 2), NANOSLEEP, 0);
    for task in [8, 7, 6, 5, 4, 3, 2] {
        scene.exit((90 - u64::from(task)) * MS, task, (0, 0));
    }
    scene.exit(100 * MS, 1, (0, 0)).load(Some((100 * MS, 0, 0)))
}

/// Times are few, so that many are equal; some are before or after everything else.
fn any_wait(begin_ns: u64) -> impl Strategy<Value = Wait> {
    let waker = prop_oneof![
        6 => (0..8_u32).prop_map(Waker::Task),
        1 => Just(Waker::Interrupt),
        1 => Just(Waker::Outside(1)),
        1 => Just(Waker::None),
        1 => Just(Waker::Unknown),
    ];
    let time = move || {
        prop_oneof![
            20 => (0..11_u64).prop_map(move |at| begin_ns + at * 10 * MS),
            1 => any::<u64>(),
        ]
    };
    (0..8_u32, waker, 0..3_usize, proptest::array::uniform3(time()), any::<bool>()).prop_map(
        |(task, waker, reason, mut times, waker_ended)| {
            times.sort_unstable();
            let waits_for = [WaitFor::Child, WaitFor::Cpu, WaitFor::Timer][reason];
            Wait::new(task, waits_for, (waker, waker_ended), times)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn parts_add_up_to_the_wall_time_whatever_the_waits(
        sets in proptest::collection::vec(
            proptest::collection::vec(any_wait(proctrace_scenes::BEGIN_NS), 0..60), 64)
    ) {
        let mut recording = family();
        for mut waits in sets {
            waits.sort_unstable_by_key(|wait| (wait.task, wait.until_ns(), wait.since_ns()));
            recording.replace_waits(waits);
            let path = CriticalPath::of(&recording).unwrap();
            adds_up(&recording, &path);
            prop_assert!(path.parts.iter().all(|part| (part.task as usize) < recording.tasks().len()));
        }
    }
}
