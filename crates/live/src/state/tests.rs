//! The state of recordings of which everything is known.

use proctrace_wire::Kind;

use super::testing::{SECOND, Told, view};
use super::{Process, View};

fn program(view: &View, name: &str) -> (u64, u64, u64, u64) {
    let found = view.programs.iter().find(|program| program.name.name == name).unwrap();
    (found.processes, found.alive, found.execs, found.used.run_ns)
}

#[test]
fn a_process_counts_for_its_last_program_with_all_that_it_used_and_looked_up() {
    let mut view = view(&["sh"]).with_root("sh");
    view.forks(1, 2, SECOND);
    view.samples(2, SECOND + 1, 30);
    view.misses(2, SECOND + 1, "/opt/x");
    let failed = |view: &View, name: &str| {
        view.programs.iter().find(|program| program.name.name == name).unwrap().lookups_failed
    };
    assert_eq!(program(&view, "sh"), (2, 2, 1, 30));
    assert_eq!(failed(&view, "sh"), 1);
    view.execs_after(2, SECOND + 2, "/usr/bin/sed", &["sed", "-n"], 40);
    assert_eq!(program(&view, "sh"), (1, 1, 1, 0));
    assert_eq!(program(&view, "sed"), (1, 1, 1, 40));
    assert_eq!((failed(&view, "sh"), failed(&view, "sed")), (0, 1));
    view.exits(2, 2 * SECOND, 100);
    assert_eq!(program(&view, "sed"), (1, 0, 1, 100));
    assert_eq!(view.totals.cpu_ns, 100);
    assert_eq!((view.totals.processes, view.totals.ended, view.totals.execs), (2, 1, 2));
    assert_eq!(view.alive(), 1);
}

#[test]
fn look_ups_that_come_before_the_birth_or_after_the_end_are_counted() {
    let mut view = view(&["sh"]).with_root("sh");
    view.misses(2, SECOND + 1, "/early/a");
    assert_eq!(view.lookups_of_unborn(), 1);
    view.forks(1, 2, SECOND);
    view.execs(2, SECOND, "/usr/bin/sed", &["sed"]);
    assert_eq!(view.lookups_of_unborn(), 0);
    view.exits(2, SECOND + 9, 0);
    view.misses(2, SECOND + 8, "/late/a");
    let sed = view.programs.iter().find(|program| program.name.name == "sed").unwrap();
    assert_eq!((sed.lookups_failed, sed.alive), (2, 0));
    assert_eq!(view.process(2).unwrap().lookups_failed, 2);
    assert_eq!(view.totals.lookups_failed, 2);
}

#[test]
fn late_look_ups_of_a_thread_count_for_its_process_as_it_is() {
    let failed = |view: &View, name: &str| {
        let mut programs = view.programs.iter();
        programs.find(|program| program.name.name == name).unwrap().lookups_failed
    };
    let mut view = view(&["sh"]).with_root("sh");
    view.clones(1, 2, 1, SECOND);
    view.exits(2, SECOND + 1, 0);
    view.execs(1, SECOND + 2, "/usr/bin/sed", &["sed"]);
    view.misses(2, SECOND, "/late/a");
    assert_eq!(view.process(1).unwrap().lookups_failed, 1);
    assert_eq!(view.searched(view.process(1).unwrap()), [("/late".to_owned(), 1)]);
    assert_eq!(failed(&view, "sed"), 1);
    // And when the process has ended as well.
    view.exits(1, 2 * SECOND, 0);
    view.misses(2, SECOND, "/late/b");
    assert_eq!(view.process(1).unwrap().lookups_failed, 2);
    assert_eq!(failed(&view, "sed"), 2);
}

#[test]
fn what_has_ended_lately_is_kept_for_a_while() {
    let mut view = view(&["sh"]).with_root("sh");
    view.forks(1, 2, SECOND);
    view.forks(2, 3, SECOND);
    view.exits(3, 2 * SECOND, 7);
    view.exits(2, 2 * SECOND, 0);
    let lately =
        |view: &View| view.ended_lately().map(|process| process.serial).collect::<Vec<_>>();
    assert_eq!(lately(&view), [2, 3]);
    // Below the nearest ancestor that lives.
    assert_eq!(view.living_ancestor(view.process(3).unwrap()), Some(1));
    view.keep(Some(3));
    view.samples(1, 4 * SECOND, 1);
    assert_eq!(lately(&view), Vec::<u32>::new());
    for number in 0..20_000 {
        view.forks(1, 10 + number, 30 * SECOND);
        view.exits(10 + number, 30 * SECOND, 1);
    }
    assert!(view.ended_is_cut());
    assert!(view.process(2).is_none());
    assert_eq!(view.process(3).unwrap().used.run_ns, 7);
}

#[test]
fn system_time_is_split_by_pooled_ticks() {
    // Ticks of 4 ms; samples have a quarter of their ticks in the kernel.
    const TICK: u64 = 4_000_000;
    let mut view = view(&["sh"]).with_root("sh");
    for child in [2, 3] {
        view.forks(1, child, SECOND);
        view.execs(child, SECOND, "/usr/bin/sed", &["sed"]);
        view.samples(child, SECOND + 1, 16 * TICK);
    }
    let sed = view.programs.iter().find(|program| program.name.name == "sed").unwrap();
    let divided = view.divided();
    let (cpu, ticks) = (divided.of(sed), sed.used.ticks());
    assert_eq!((cpu.user_ns, cpu.system_ns), (24 * TICK, 8 * TICK));
    assert_eq!(divided.system_percent(cpu, ticks), Some(25.0));
    let of_child = |serial| divided.of_process(view.process(serial).unwrap()).system_ns;
    assert_eq!(of_child(2) + of_child(3), cpu.system_ns);
    let sh = view.programs.iter().find(|program| program.name.name == "sh").unwrap();
    assert_eq!(divided.system_percent(divided.of(sh), sh.used.ticks()), None);
}

#[test]
fn threads_belong_to_their_process() {
    let mut view = view(&["sh"]).with_root("sh");
    view.clones(1, 2, 1, SECOND);
    view.clones(1, 3, 1, SECOND);
    assert_eq!((view.totals.threads, view.threads_alive(), view.alive()), (2, 2, 1));
    view.samples(3, SECOND, 5);
    // The leader ends first: the process lives as long as any thread.
    for (task, alive) in [(1, 1), (2, 1), (3, 0)] {
        view.exits(task, 2 * SECOND, 10);
        assert_eq!(view.alive(), alive);
    }
    assert_eq!(view.totals.cpu_ns, 30);
    assert_eq!(view.totals.ended, 1);
}

#[test]
fn a_sample_that_comes_before_the_birth_is_kept() {
    let mut view = view(&["sh"]).with_root("sh");
    view.samples(2, SECOND, 70);
    assert_eq!(view.totals.cpu_ns, 0);
    view.forks(1, 2, SECOND);
    assert_eq!(view.totals.cpu_ns, 70);
    assert_eq!(view.process(2).unwrap().rss_bytes, Some(250 * 4096));
}

#[test]
fn what_was_used_before_the_recording_is_not_counted() {
    let mut view = view(&[]);
    view.attaches(1, 10, 0);
    view.samples(1, SECOND, 50);
    view.exits(1, SECOND, 80);
    assert_eq!(view.totals.cpu_ns, 80);
    assert_eq!((view.totals.processes, view.totals.execs), (1, 0));
}

#[test]
fn an_end_without_a_birth_is_cpu_time_of_nobody_known() {
    let mut view = view(&["sh"]).with_root("sh");
    view.exits(77, SECOND, 123);
    assert_eq!(view.totals.cpu_ns, 123);
    assert_eq!(program(&view, "(unknown)").3, 123);
    assert_eq!(view.alive(), 1);
}

#[test]
fn look_ups_count_for_directory_process_and_program() {
    let mut view = view(&["sh"]).with_root("sh");
    view.misses(1, SECOND, "/a/x");
    view.misses_named(1, 7, "/b/y");
    view.misses_again(1, 7);
    // Its full record is lost.
    view.misses_again(1, 8);
    let expected = [("/b", 2), ("/a", 1), ("?", 1)];
    assert_eq!(view.directories.most(), expected.map(|(path, count)| (path.into(), count)));
    assert_eq!(view.totals.lookups_failed, 4);
    let process = view.process(1).unwrap();
    assert_eq!(process.lookups_failed, 4);
    assert_eq!(view.searched(process)[0], ("/b".to_owned(), 2));
    assert_eq!(view.programs.iter().map(|program| program.lookups_failed).sum::<u64>(), 4);
}

#[test]
fn an_opened_process_is_kept_when_it_ends() {
    let mut view = view(&["sh"]).with_root("sh");
    view.forks(1, 2, SECOND);
    view.keep(Some(2));
    view.exits(2, 2 * SECOND, 9);
    let ended: &Process = view.process(2).unwrap();
    assert_eq!((ended.used.run_ns, ended.end), (9, Some((2 * SECOND, 0))));
    // As long as it is open, however many end meanwhile.
    for child in 10..20_010 {
        view.forks(1, child, 3 * SECOND);
        view.exits(child, 3 * SECOND, 0);
    }
    assert!(view.process(2).is_some());
    view.keep(None);
    assert!(view.process(2).is_none());
}

#[test]
fn rates_are_those_of_the_last_second() {
    let mut view = view(&["sh"]).with_root("sh");
    for child in 2..12 {
        view.forks(1, child, SECOND + u64::from(child));
        view.exits(child, SECOND + 100 + u64::from(child), 1);
    }
    view.forks(1, 20, 2 * SECOND);
    let last = view.history.last(view.now_ns()).unwrap();
    assert_eq!((last.births, last.deaths), (10, 10));
}

#[test]
fn what_the_command_used_before_its_first_exec_belongs_to_its_program() {
    let mut view = view(&["sh"]);
    view.attaches(1, 1, 0);
    view.execs_after(1, SECOND, "/bin/sh", &["sh"], 40);
    assert_eq!(program(&view, "sh"), (1, 1, 1, 40));
    assert_eq!(view.programs.iter().count(), 1);
}

/// A storm leaves nothing behind.
#[test]
fn memory_depends_on_what_lives() {
    let mut view = view(&["sh"]).with_root("sh");
    for child in 2..50_000 {
        view.forks(1, child, SECOND);
        view.exits(child, SECOND, 1);
    }
    assert_eq!(view.alive(), 1);
    assert_eq!(view.process(1).unwrap().children.len(), 0);
    assert_eq!(view.totals.processes, 49_999);
}

#[test]
fn losses_are_those_of_the_last_count() {
    let mut view = view(&["sh"]);
    view.loses(Kind::Fork, 3);
    view.loses(Kind::Fork, 8);
    assert_eq!(view.losses.total(), 8);
}
