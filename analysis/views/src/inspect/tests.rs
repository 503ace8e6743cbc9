//! Questions about a recording with a known course.

use proctrace_classify::Rules;
use proctrace_findings::{Alive, Figure, MissedName, ProcessDetails, ProgramDetails, Shown};
use proctrace_scenes::{MB, MS, S, Scene, pid_of};

use super::*;

/// job (1) starts sh (2), which starts sed twice (3, 4; the second is killed) and forks (5). That one
/// outlives it.
fn scene() -> Scene {
    let mut scene = Scene::new(4, 100 * MS);
    scene.exec(0, 1, "/opt/job", (0, 0)).fork(S, 1, 2);
    scene.exec_with(1100 * MS, 2, "/bin/sh", &["sh", "-c", "run 7"], (0, 0));
    for (child, at_ns) in [(3, 2 * S), (4, 3 * S)] {
        let script = format!("{child}p");
        scene.fork(at_ns, 2, child);
        scene.exec_with(at_ns, child, "/usr/bin/sed", &["sed", "a b", &script], (0, 0));
        if child == 3 {
            scene.open_failed(2100 * MS, 3, "/a/x").open_failed(2200 * MS, 3, "/b/y");
            scene.open_failed(2300 * MS, 3, "/a/x").sleep(2, (2 * S, 2500 * MS, 2600 * MS), 61, 3);
            scene.memory(1500 * MS, 2, (3 * MB, 2 * MB, MB)).memory(2500 * MS, 2, (MB, MB, MB));
            scene.exit(2500 * MS, 3, (400 * MS, 0));
        }
    }
    scene.signal(3400 * MS, 4, 15, (1, "job"));
    scene.exit_with(3500 * MS, 4, (100 * MS, 0), |exit| exit.status = 15);
    scene.fork(3600 * MS, 2, 5).exit(4 * S, 2, (10 * MS, 0)).exit(5 * S, 5, (20 * MS, 0));
    scene.exit(6 * S, 1, (5 * MS, 0));
    scene
}

fn shown(scene: &Scene, wanted: &Wanted) -> Result<Shown, AnalysisError> {
    let file = scene.file(None);
    let recording = Recording::load(file.path(), &Rules::built_in()).unwrap();
    show(&recording, file.path(), wanted)
}

fn process(task: u32) -> ProcessDetails {
    match shown(&scene(), &Wanted::Pid { pid: pid_of(task), at_ns: None }).unwrap() {
        Shown::Process(process) => *process,
        other => panic!("{other:?}"),
    }
}

fn program(name: &str) -> ProgramDetails {
    match shown(&scene(), &Wanted::Program(name.to_owned())).unwrap() {
        Shown::Program(program) => *program,
        other => panic!("{other:?}"),
    }
}

fn counts(names: &[MissedName]) -> Vec<(&str, u64)> {
    names.iter().map(|name| (&*name.name, name.count)).collect()
}

#[test]
fn a_process_has_its_life_command_costs_and_failures() {
    let sed = process(3);
    assert_eq!((sed.born_ns, sed.ended_ns, sed.life_ns), (2 * S, Some(2500 * MS), Some(500 * MS)));
    assert_eq!((sed.outcome.as_deref(), sed.birth_recorded), (Some("exit 0"), true));
    assert_eq!(sed.parents.iter().map(|one| one.pid).collect::<Vec<_>>(), [pid_of(2), pid_of(1)]);
    let [command] = &sed.commands[..] else { panic!("{:?}", sed.commands) };
    assert_eq!(command.arguments.as_ref().unwrap(), &["sed", "a b", "3p"]);
    assert_eq!((command.time_ns, command.ran_ns), (2 * S, Some(500 * MS)));
    assert_eq!((&*command.exe, command.recorded), ("/usr/bin/sed", true));
    assert_eq!(sed.usage[Figure::CpuNs], Some(400 * MS));
    assert_eq!(sed.usage[Figure::FailedLookups], Some(3));
    assert_eq!(counts(&sed.missed_directories), [("/a", 2), ("/b", 1)]);
    assert_eq!(counts(&sed.missed_paths), [("/a/x", 2), ("/b/y", 1)]);
    assert_eq!(
        (sed.missed_paths[0].family.as_str(), &*sed.missed_paths[0].errno),
        ("open", "ENOENT")
    );
    assert!(sed.children.is_empty() && !sed.outlived_parent);
}

#[test]
fn a_process_has_its_children_waits_and_memory() {
    let sh = process(2);
    let children: Vec<_> =
        sh.children.iter().map(|group| (&*group.command, group.processes, group.failed)).collect();
    assert_eq!(children, [("sed a b #p", 2, 1), ("sh (fork)", 1, 0)]);
    assert_eq!(sh.children[0].cpu_ns, Some(500 * MS));
    assert_eq!((sh.descendants, sh.descendants_cpu_ns), (Some(3), Some(520 * MS)));
    assert_eq!(sh.usage[Figure::ChildrenWaitedCpuNs], Some(500 * MS));
    let [wait] = &sh.waits.as_deref().unwrap() else { panic!("{:?}", sh.waits) };
    assert_eq!((wait.waits_for, wait.count), ("a child", 1));
    assert_eq!((wait.asleep_ns, wait.for_cpu_ns, wait.longest_ns), (500 * MS, 100 * MS, 600 * MS));
    assert_eq!((wait.longest_since_ns, &*wait.ended_by), (2 * S, &[("sed".to_owned(), 1)][..]));
    assert_eq!(wait.longest_ended_by.as_ref().unwrap().pid, pid_of(3));
    let memory: Vec<_> = sh.memory.iter().map(|at| (at.time_ns, at.pss_bytes)).collect();
    assert_eq!(memory, [(1500 * MS, 2 * MB), (2500 * MS, MB)]);
}

#[test]
fn how_a_process_ended_is_told_with_who_ended_it() {
    let killed = process(4);
    assert_eq!(killed.outcome.as_deref(), Some("SIGTERM"));
    let job = format!("job (pid {})", pid_of(1));
    assert_eq!(killed.sent_by.as_deref(), Some(&*job));
    assert_eq!((killed.signals[0].time_ns, &*killed.signals[0].sent_by), (3400 * MS, &*job));
    let fork = process(5);
    assert!(fork.outlived_parent && fork.commands.is_empty());
    assert_eq!(fork.forked_from.as_deref(), Some("sh -c run 7"));
}

#[test]
fn the_parts_of_the_critical_path_add_up() {
    let all: Vec<_> = (1..=5).map(|task| process(task).path.unwrap()).collect();
    assert_eq!(all.iter().map(|path| path.path_ns).sum::<u64>(), 6 * S);
    for path in all {
        let parts = path.running_ns + path.waiting_for_cpu_ns + path.waiting_ns;
        assert_eq!(path.path_ns, parts);
        assert_eq!(path.path_ns, path.stretches.iter().map(|one| one.length_ns).sum::<u64>());
    }
}

#[test]
fn a_program_has_all_its_processes() {
    let sed = program("sed");
    assert_eq!((sed.processes, sed.execs, sed.forked, sed.went_on), (2, Some(2), 0, 0));
    assert_eq!((sed.most_alive, sed.first_ns, sed.last_ns), (1, Some(2 * S), Some(3500 * MS)));
    assert_eq!(sed.started_by, [("sh".to_owned(), 2)]);
    assert_eq!(sed.outcomes, [("SIGTERM".to_owned(), 1), ("exit 0".to_owned(), 1)]);
    assert_eq!(sed.usage[Figure::CpuNs], Some(500 * MS));
    assert_eq!(sed.usage[Figure::FailedLookups], Some(3));
    let cpu = sed.spreads.iter().find(|spread| spread.name == "cpu_ns").unwrap();
    assert_eq!((cpu.least, cpu.median, cpu.most, cpu.n), (100 * MS, 100 * MS, 400 * MS, 2));
    assert_eq!(sed.slowest[0].process.process.pid, pid_of(3));
    // A process that never called exec runs its forker's program.
    assert_eq!((program("sh").processes, program("sh").forked), (2, 1));
}

#[test]
fn whoever_is_not_found_is_said_so() {
    let error = |wanted| shown(&scene(), &wanted).unwrap_err().to_string();
    assert_eq!(
        error(Wanted::Program("sedd".into())),
        "cannot show \"sedd\": no process ran such a program; did you mean \"sed\"?"
    );
    assert!(error(Wanted::Serial(77)).contains("no process has this serial"));
    let of_pid = |pid, at_ns| error(Wanted::Pid { pid, at_ns });
    assert!(of_pid(5, None).contains("no process of the recording had this pid"));
    assert_eq!(
        of_pid(pid_of(3), Some(3 * S)),
        "cannot show pid 1003 at 3.00 s: none was alive then, but one from 2.00 s to 2.50 s"
    );
    assert!(of_pid(pid_of(3), Some(7 * S)).contains("the recording is 6.00 s long"));
}

#[test]
fn a_pid_that_was_used_twice_names_both() {
    let mut scene = Scene::new(1, 100 * MS);
    scene.exec(0, 1, "/opt/job", (0, 0)).fork(S, 1, 2).exit(2 * S, 2, (0, 0));
    scene.reuse_pid(2).fork(3 * S, 1, 3).exit(4 * S, 3, (0, 0)).exit(5 * S, 1, (0, 0));
    let of = |at_ns| shown(&scene, &Wanted::Pid { pid: pid_of(2), at_ns }).unwrap();
    let Shown::Candidates(both) = of(None) else { panic!("not both") };
    let lives: Vec<_> = both.iter().map(|one| (one.process.serial, one.born_ns)).collect();
    assert_eq!(lives, [(2, S), (3, 3 * S)]);
    for (at_ns, serial) in [(1500 * MS, 2), (3500 * MS, 3)] {
        let Shown::Process(one) = of(Some(at_ns)) else { panic!("not one") };
        assert_eq!(one.process.serial, serial);
    }
}

/// Depth, command, siblings, processes and CPU time in milliseconds of each row.
fn rows(view: &TreeView) -> Vec<(u32, String, u64, u64, u64)> {
    let tree = tree(&scene().load(None), view).unwrap();
    let row = |row: &proctrace_findings::TreeRow| {
        let command = row.command.clone().unwrap_or_else(|| format!("… {}", row.left_out));
        (row.depth, command, row.siblings, row.processes, row.cpu_ns.unwrap() / MS)
    };
    tree.rows.iter().map(row).collect()
}

#[test]
fn siblings_with_the_same_command_line_are_one_row() {
    let row = |depth, command: &str, siblings, processes, cpu_ms| {
        (depth, command.to_owned(), siblings, processes, cpu_ms)
    };
    let job = row(0, "job", 1, 5, 535);
    let sh = row(1, "sh -c run 7", 1, 4, 530);
    let (sed, fork) = (row(2, "sed a b #p", 2, 2, 500), row(2, "sh (fork)", 1, 1, 20));
    let all = TreeView::default();
    assert_eq!(rows(&all), [job.clone(), sh.clone(), sed.clone(), fork.clone()]);
    let rest = row(2, "… 1", 1, 1, 20);
    let expected = [job.clone(), sh.clone(), sed.clone(), rest];
    assert_eq!(rows(&TreeView { min_percent: 25.0, ..all.clone() }), expected);
    assert_eq!(rows(&TreeView { rows: Some(3), ..all.clone() }), expected);
    let rest = row(2, "… 2", 3, 3, 520);
    assert_eq!(rows(&TreeView { depth: Some(2), ..all.clone() }), [job, sh.clone(), rest]);
    let below = [(0, sh.1, sh.2, sh.3, sh.4), (1, sed.1, 2, 2, 500), (1, fork.1.clone(), 1, 1, 20)];
    assert_eq!(rows(&TreeView { root: Some(2), ..all.clone() }), below);
    // At that time sh had ended, and its fork has no parent in the recording.
    let alive = rows(&TreeView { at_ns: Some(4500 * MS), sort: TreeSort::Birth, ..all });
    assert_eq!(alive, [row(0, "job", 1, 1, 5), (0, fork.1, 1, 1, 20)]);
}

fn alive_at(from_ns: u64, to_ns: Option<u64>) -> Alive {
    let file = scene().file(None);
    let recording = Recording::load(file.path(), &Rules::built_in()).unwrap();
    let view = AliveView { from_ns, to_ns, sort: AliveSort::Pid };
    alive(&recording, file.path(), &view).unwrap()
}

#[test]
fn who_was_alive_has_parent_state_and_cpu_time() {
    let at = alive_at(2200 * MS, None);
    let all: Vec<_> =
        at.processes.iter().map(|one| (one.pid, one.ppid, one.state, one.waits_for)).collect();
    assert_eq!(
        all,
        [
            (pid_of(1), None, Some('R'), None),
            (pid_of(2), Some(pid_of(1)), Some('S'), Some("a child")),
            (pid_of(3), Some(pid_of(2)), Some('R'), None),
        ]
    );
    let sed = &at.processes[2];
    assert_eq!(sed.age_ns, 200 * MS);
    let cpu = [sed.cpu_low_ns, sed.cpu_ns, sed.cpu_high_ns].map(|ns| ns.unwrap() / MS);
    assert_eq!(cpu, [100, 160, 200]);
    assert_eq!(sed.arguments.as_ref().unwrap(), &["sed", "a b", "3p"]);
    let sh = &at.processes[1];
    assert_eq!((sh.rss_bytes, sh.rss_read_ns), (Some(3 * MB), Some(1500 * MS)));
    // Woken, but not yet on a CPU.
    let sh = &alive_at(2550 * MS, None).processes[1];
    assert_eq!((sh.state, sh.waits_for), (Some('R'), Some("a CPU")));
    // Before its exec it has its forker's arguments.
    let sh = &alive_at(1050 * MS, None).processes[1];
    assert_eq!((sh.is_fork, &*sh.program), (true, "job"));
    // Its parent has ended.
    let orphan = &alive_at(4500 * MS, None).processes[1];
    assert_eq!((orphan.pid, orphan.ppid), (pid_of(5), None));
}

#[test]
fn an_interval_has_all_that_lived_in_it() {
    let during = alive_at(2400 * MS, Some(3250 * MS));
    let all: Vec<_> = during.processes.iter().map(|one| (one.pid, one.age_ns / MS)).collect();
    let of = |task, ms| (pid_of(task), ms);
    assert_eq!(all, [of(1, 850), of(2, 850), of(3, 100), of(4, 250)]);
    let cpu = |at: usize| during.processes[at].cpu_ns.unwrap() / MS;
    assert_eq!((cpu(2), cpu(3)), (80, 50));
    assert!(during.processes.iter().all(|one| one.state.is_none()));
    let whole = alive_at(0, Some(6 * S));
    assert_eq!(whole.processes.len(), 5);
    assert_eq!(whole.processes.iter().map(|one| one.cpu_ns.unwrap()).sum::<u64>(), 535 * MS);
}

/// A runner with two steps of a group, whose first processes run different programs and start others.
fn with_steps() -> Recording {
    let mut scene = Scene::new(1, 100 * MS);
    scene.exec(0, 1, "/bin/runner", (0, 0));
    for (task, child, name, program) in [(2, 3, "digi_1", "/bin/sh"), (4, 5, "digi_2", "/bin/bash")]
    {
        let begin_ns = u64::from(task) * 10 * MS;
        scene.fork(begin_ns, 1, task).in_environment(&[&format!("PROCTRACE_STEP={name}")]);
        scene.exec(begin_ns + MS, task, program, (0, 0)).fork(begin_ns + 2 * MS, task, child);
        scene.exec(begin_ns + 3 * MS, child, "/bin/sim", (0, 0));
        scene.exit(begin_ns + 7 * MS, child, (4 * MS, 0)).exit(begin_ns + 8 * MS, task, (0, 0));
    }
    scene.in_environment(&[]).exit(60 * MS, 1, (0, 0)).load(None)
}

#[test]
fn a_tree_of_steps_has_a_row_for_each_group() {
    let recording = with_steps();
    let rows = |steps| {
        let view = TreeView { steps, ..TreeView::default() };
        let rows = tree(&recording, &view).unwrap().rows;
        rows.into_iter().map(|row| (row.depth, row.step, row.siblings, row.processes)).collect()
    };
    let of: Vec<(u32, Option<String>, u64, u64)> = rows(true);
    assert_eq!(of, [(0, None, 1, 5), (1, Some("digi".to_owned()), 2, 4)]);
    // A tree of commands tells which of them begin steps.
    let of = rows(false);
    let named: Vec<_> = of.iter().filter_map(|row| row.1.as_deref()).collect();
    assert_eq!((of.len(), &named[..]), (5, &["digi_1", "digi_2"][..]));
}

#[test]
fn a_step_is_found_by_its_name_or_its_group() {
    let recording = with_steps();
    let wanted = |name: &str| choose(&recording, &Wanted::Program(name.to_owned()));
    let Ok(Chosen::One(serial)) = wanted("digi_2") else { panic!() };
    assert_eq!(recording.processes().iter().find(|it| it.serial == serial).unwrap().pid, pid_of(4));
    let Ok(Chosen::Of(both)) = wanted("digi") else { panic!() };
    assert_eq!(both.len(), 2);
    let why = wanted("digi_3").unwrap_err().to_string();
    assert!(why.contains("did you mean \"digi_"), "{why}");
}
