//! Answers about single processes agree with the summary, and lack what the recording does not know.

use std::path::Path;

use crate::common::{Pieces, pieces, pieces_with_waits, trace_without};
use proctrace_analysis::{
    AliveSort, AliveView, Recording, TreeView, Wanted, alive, analyse, show, tree,
};
use proctrace_findings::{Figure, ProcessDetails, ProgramDetails, Shown};
use proctrace_wire::Quantity;
use proctrace_wire::escape::to_text;

fn process(recording: &Recording, path: &Path, serial: u32) -> ProcessDetails {
    match show(recording, path, &Wanted::Serial(serial)).unwrap() {
        Shown::Process(process) => *process,
        other => panic!("{other:?}"),
    }
}

fn program(recording: &Recording, path: &Path, name: &str) -> ProgramDetails {
    match show(recording, path, &Wanted::Program(name.to_owned())).unwrap() {
        Shown::Program(program) => *program,
        other => panic!("{other:?}"),
    }
}

#[test]
fn processes_add_up_to_the_summary() {
    let (recording, trace) = trace_without(&pieces(), None);
    let summary = analyse(&recording).summary;
    let some: Vec<ProcessDetails> = recording
        .processes()
        .iter()
        .step_by(20)
        .map(|one| process(&recording, trace.path(), one.serial))
        .collect();
    let paths_and_directories =
        some.iter().filter(|one| !one.missed_paths.is_empty()).inspect(|one| {
            let count = |names: &[proctrace_findings::MissedName], exec: bool| {
                let of = names.iter().filter(|name| (name.family == "exec") == exec);
                of.map(|name| name.count).sum::<u64>()
            };
            // Directories are counted while the recording is loaded, paths from the trace.
            assert_eq!(count(&one.missed_paths, false), count(&one.missed_directories, false));
            assert_eq!(
                Some(count(&one.missed_directories, false)),
                one.usage[Figure::FailedLookups]
            );
        });
    assert!(paths_and_directories.count() > 5);
    for one in &some {
        assert!(one.parents.len() <= 64 && one.not_known.is_some());
        let children = one.children.iter().map(|group| group.processes + group.descendants);
        assert_eq!(Some(children.sum::<u64>()), one.descendants);
    }
    let root = process(&recording, trace.path(), recording.processes()[0].serial);
    assert_eq!(root.descendants.map(|below| below + 1), summary.processes);
    let cpu_ns = root.descendants_cpu_ns.unwrap() + root.usage[Figure::CpuNs].unwrap();
    assert_eq!(Some(cpu_ns), summary.cpu_ns);

    let tree = tree(&recording, &TreeView::default()).unwrap();
    assert_eq!((Some(tree.processes), tree.cpu_ns), (summary.processes, summary.cpu_ns));
    let own = tree.rows.iter().map(|row| (row.siblings, row.own_cpu_ns.unwrap()));
    let (siblings, own_ns): (Vec<u64>, Vec<u64>) = own.unzip();
    assert_eq!(Some(siblings.iter().sum()), summary.processes);
    assert_eq!(Some(own_ns.iter().sum()), summary.cpu_ns);

    let to_ns = Some(recording.recorded_ns());
    let view = AliveView { from_ns: 0, to_ns, sort: AliveSort::Cpu };
    let all = alive(&recording, trace.path(), &view).unwrap().processes;
    assert_eq!(Some(all.len() as u64), summary.processes);
    assert_eq!(Some(all.iter().map(|one| one.cpu_ns.unwrap()).sum()), summary.cpu_ns);
}

#[test]
fn programs_are_those_of_the_table() {
    let (recording, trace) = trace_without(&pieces(), None);
    let findings = analyse(&recording);
    let mut compared = 0;
    for category in findings.categories.iter().filter(|one| one.processes > Some(1)).take(8) {
        let found = program(&recording, trace.path(), &category.name);
        let same = findings.categories.iter().filter(|one| one.name == category.name);
        if same.count() > 1 {
            continue;
        }
        compared += 1;
        assert_eq!(Some(found.processes), category.processes, "{}", category.name);
        assert_eq!(Some(found.forked), category.forked);
        assert_eq!(found.execs, category.execs);
        assert_eq!(found.usage[Figure::CpuNs], category.cpu_ns);
        assert_eq!(found.usage[Figure::FailedLookups], category.lookups_failed);
        assert_eq!(Some(found.threads), category.threads);
        let most = found.started_by.first().map(|(name, count)| (&**name, Some(*count)));
        assert_eq!(most.unwrap().1, category.main_spawner_processes);
        let commands = found.commands.iter().map(|group| group.processes);
        assert_eq!(Some(commands.sum::<u64>()), category.processes);
    }
    assert!(compared > 3);
}

/// Details of a process, and what `ps` says, in a recording that lacks a quantity.
fn without(pieces: &Pieces, quantity: Quantity) -> ProcessDetails {
    let (recording, trace) = trace_without(pieces, Some(quantity));
    let serial = recording.processes()[recording.processes().len() / 2].serial;
    let one = process(&recording, trace.path(), serial);
    assert!(one.not_known.is_some(), "{quantity:?}");
    one
}

#[test]
fn what_is_not_known_is_absent() {
    let pieces = pieces_with_waits();
    let cpu = without(&pieces, Quantity::Cpu);
    assert_eq!(
        (cpu.usage[Figure::CpuNs], cpu.usage[Figure::UserNs], cpu.descendants_cpu_ns),
        (None, None, None)
    );
    assert!(cpu.children.iter().all(|group| group.cpu_ns.is_none()));
    let split = without(&pieces, Quantity::Split);
    assert!(split.usage[Figure::CpuNs].is_some() && split.usage[Figure::SystemNs].is_none());
    assert_eq!(without(&pieces, Quantity::Switches).usage[Figure::VoluntarySwitches], None);
    assert_eq!(without(&pieces, Quantity::Io).usage[Figure::ReadBytes], None);
    assert_eq!(without(&pieces, Quantity::PeakRss).usage[Figure::PeakRssBytes], None);
    assert_eq!(without(&pieces, Quantity::LookupsStat).usage[Figure::FailedLookups], None);
    let waits = without(&pieces, Quantity::Waits);
    assert_eq!((waits.waits, waits.path), (None, None));
    let argv = without(&pieces, Quantity::Argv);
    assert!(argv.commands.iter().all(|command| command.arguments.is_none()));

    let (recording, trace) = trace_without(&pieces, Some(Quantity::Cpu));
    assert!(tree(&recording, &TreeView::default()).unwrap().rows[0].cpu_ns.is_none());
    let view = AliveView { from_ns: recording.recorded_ns() / 2, ..AliveView::default() };
    let then = alive(&recording, trace.path(), &view).unwrap();
    assert!(then.processes.iter().all(|one| one.cpu_ns.is_none()) && then.not_known.is_some());
    let (recording, trace) = trace_without(&pieces, Some(Quantity::Execs));
    let name = Wanted::Program("sed".to_owned());
    let why = show(&recording, trace.path(), &name).unwrap_err().to_string();
    assert!(why.contains("programs are not known"), "{why}");
}

#[test]
fn arguments_are_those_of_the_trace() {
    let (recording, trace) = trace_without(&pieces(), None);
    let mut compared = 0;
    let serials: Vec<u32> = recording.processes().iter().step_by(8).map(|p| p.serial).collect();
    let mut execs: Vec<(u32, u64, Vec<String>)> = Vec::new();
    for event in proctrace_replay::Replay::open(trace.path()).unwrap() {
        if let proctrace_replay::Body::Exec(exec) = event.body {
            let argv = exec.argv.iter().map(|argument| to_text(argument).into_owned()).collect();
            execs.push((exec.record.process, event.time_ns, argv));
        }
    }
    for serial in serials {
        let one = process(&recording, trace.path(), serial);
        let mine: Vec<_> = execs.iter().filter(|(process, ..)| *process == serial).collect();
        assert_eq!(one.commands.len(), mine.len());
        for (command, (_, _, argv)) in one.commands.iter().zip(mine) {
            assert_eq!(command.arguments.as_ref(), Some(argv));
            compared += 1;
        }
    }
    assert!(compared > 10);
}
