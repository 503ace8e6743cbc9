//! Whole compilation databases.

use proctrace_findings::{
    Timeline, TimelineForker, TimelineItem, TimelineProcess, TimelineRun, TimelineThread,
};
use serde_json::{Value, json};

use crate::{Format, Written};

fn process(number: u32, forker: Option<u32>, begin_ns: u64) -> TimelineItem<'static> {
    let forker =
        forker.map(|process| TimelineForker { process, task: process, is_first: true, run: None });
    TimelineItem::Process(TimelineProcess {
        process: number,
        id: number,
        pid: 1,
        parent_pid: None,
        forker,
        step: None,
        span: None,
        program: None,
        category: None,
        begin_ns,
        end_ns: None,
        outcome: None,
        dumped_core: false,
        threads: None,
        used: Box::default(),
    })
}

fn words(text: &str) -> Vec<Vec<u8>> {
    text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

fn run(process: u32, begin_ns: u64, arguments: &[Vec<u8>]) -> TimelineRun<'_> {
    TimelineRun {
        run: 0,
        process,
        program: None,
        begin_ns,
        end_ns: None,
        happened_here: true,
        outcome: None,
        exe: b"/usr/bin/x",
        interpreter: None,
        cwd: b"/src",
        arguments: Some(arguments),
        arguments_cut: false,
    }
}

fn database(items: &[TimelineItem<'_>]) -> (Value, Written) {
    let mut out = Vec::new();
    let mut viewer = Format::CompileCommands.begin(&Timeline::default(), &mut out).unwrap();
    for item in items {
        viewer.take(item).unwrap();
    }
    let written = viewer.finish().unwrap();
    (serde_json::from_slice(&out).unwrap(), written)
}

#[test]
fn a_build_becomes_entries() {
    let (compile, link) = (words("gcc -O2 -c a.c -o a.o"), words("gcc a.o -o a"));
    let cc1 = words("/usr/lib/gcc/cc1 a.c");
    let thread = TimelineThread {
        task: 0,
        process: 0,
        tid: None,
        is_first: true,
        begin_ns: 0,
        end_ns: None,
        cpu_ns: None,
    };
    let (database, written) = database(&[
        process(0, None, 0),
        TimelineItem::Thread(thread),
        process(1, Some(0), 10),
        process(2, Some(1), 20),
        process(3, Some(0), 30),
        TimelineItem::Run(run(1, 11, &compile)),
        TimelineItem::Run(run(2, 21, &cc1)),
        TimelineItem::Run(run(3, 31, &link)),
    ]);
    assert_eq!(
        database,
        json!([{
            "directory": "/src",
            "file": "/src/a.c",
            "arguments": ["gcc", "-O2", "-c", "a.c", "-o", "a.o"],
            "output": "a.o",
        }])
    );
    assert_eq!((written.items, written.notes.len()), (1, 0));
}

#[test]
fn compilers_below_compilers_are_part_of_them() {
    let (ccache, inner) = (words("ccache gcc -c a.c"), words("/usr/bin/gcc -c a.c"));
    let other = words("gcc -c b.c");
    let (database, _) = database(&[
        process(0, None, 0),
        // Forked before the compiler ran in its parent.
        process(1, Some(0), 5),
        process(2, Some(0), 20),
        process(3, Some(2), 21),
        TimelineItem::Run(run(0, 10, &ccache)),
        TimelineItem::Run(run(0, 15, &inner)),
        TimelineItem::Run(run(1, 16, &other)),
        TimelineItem::Run(run(3, 22, &inner)),
    ]);
    let files: Vec<&str> =
        database.as_array().unwrap().iter().map(|entry| entry["file"].as_str().unwrap()).collect();
    assert_eq!(files, ["/src/a.c", "/src/b.c"]);
    assert_eq!(database[0]["arguments"], json!(["gcc", "-c", "a.c"]));
}

#[test]
fn what_a_tool_could_not_use_is_counted() {
    let (compile, not_utf8) = (words("gcc -c a.c"), vec![b"gcc".to_vec(), b"\xff.c".to_vec()]);
    let processes = (0..7).map(|number| process(number, None, 0));
    let runs = [
        run(0, 0, &compile),
        run(1, 0, &compile),
        TimelineRun { cwd: b"", ..run(2, 0, &compile) },
        TimelineRun { arguments_cut: true, ..run(3, 0, &compile) },
        TimelineRun { exe: b"/usr/bin/gcc", arguments: None, ..run(4, 0, &compile) },
        run(5, 0, &not_utf8),
    ];
    let items: Vec<_> = processes.chain(runs.map(TimelineItem::Run)).collect();
    let (database, written) = database(&items);
    assert_eq!(database.as_array().unwrap().len(), 1);
    assert_eq!(written.notes.len(), 5, "{:?}", written.notes);
}

#[test]
fn an_entry_has_only_its_own_source() {
    let (several, linked) = (words("gcc -c -O2 one.c two.c -Dx"), words("gcc a.c b.o c.c -o prog"));
    let (assembler, fortran) = (words("gcc -c x.S y.c"), words("gfortran -c z.f90"));
    let items = [
        process(0, None, 0),
        process(1, None, 0),
        process(2, None, 0),
        process(3, None, 0),
        TimelineItem::Run(run(0, 0, &several)),
        TimelineItem::Run(run(1, 0, &linked)),
        TimelineItem::Run(run(2, 0, &assembler)),
        TimelineItem::Run(run(3, 0, &fortran)),
    ];
    let (database, written) = database(&items);
    let entries: Vec<(&str, String)> = database
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            let words = entry["arguments"].as_array().unwrap().iter();
            let words: Vec<&str> = words.map(|word| word.as_str().unwrap()).collect();
            (entry["file"].as_str().unwrap(), words.join(" "))
        })
        .collect();
    let expected = [
        ("/src/one.c", "gcc -c -O2 one.c -Dx"),
        ("/src/two.c", "gcc -c -O2 two.c -Dx"),
        ("/src/a.c", "gcc a.c b.o -o prog"),
        ("/src/c.c", "gcc b.o c.c -o prog"),
        ("/src/y.c", "gcc -c y.c"),
    ];
    assert_eq!(entries, expected.map(|(file, words)| (file, words.to_owned())));
    let notes =
        ["1 left out because they are in assembler", "1 left out because they are in Fortran"];
    assert_eq!(written.notes, notes);
}

#[test]
fn what_is_in_response_files_is_said_to_be_left_out() {
    let (with, all) = (words("gcc @flags -c a.c"), words("gcc @everything"));
    let link = words("g++ -o prog a.o @objects");
    let items = [
        process(0, None, 0),
        process(1, None, 0),
        process(2, None, 0),
        TimelineItem::Run(run(0, 0, &with)),
        TimelineItem::Run(run(1, 0, &all)),
        TimelineItem::Run(run(2, 0, &link)),
    ];
    let (database, written) = database(&items);
    assert_eq!(database.as_array().unwrap().len(), 1);
    assert_eq!(database[0]["arguments"], json!(["gcc", "@flags", "-c", "a.c"]));
    assert_eq!(written.notes, ["2 left out because their arguments are in response files (@FILE)"]);
}

#[test]
fn arguments_stay_as_they_are() {
    let all = [
        "clang -Xclang -load -Xclang plugin.c -fplugin=x.so -c a.c",
        "gcc -Wl,-rpath,/x -L/y -lz -DQ=\"a\" -I. -c -MMD -MF a.d a.c",
        "gcc -std=c11 -O0 -O2 -O0 -include b.c -c a.c -o a.o",
    ];
    let calls = all.map(words);
    let items = calls.iter().enumerate().flat_map(|(at, call)| {
        let number = u32::try_from(at).unwrap();
        [process(number, None, 0), TimelineItem::Run(run(number, 0, call))]
    });
    let (mut processes, mut runs) = (Vec::new(), Vec::new());
    for item in items {
        match item {
            TimelineItem::Run(_) => runs.push(item),
            _ => processes.push(item),
        }
    }
    processes.extend(runs);
    let (database, written) = database(&processes);
    assert!(written.notes.is_empty(), "{:?}", written.notes);
    for (entry, line) in database.as_array().unwrap().iter().zip(all) {
        assert_eq!(entry["file"], "/src/a.c");
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(entry["arguments"], json!(words));
    }
    assert_eq!(database.as_array().unwrap().len(), all.len());
}
