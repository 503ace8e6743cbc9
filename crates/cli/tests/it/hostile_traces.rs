//! Traces and queries that are made to harm who reads them: no command panics, and none takes more memory or time than it
//! may.

use std::fs;
use std::io::{Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};

use crate::common::proctrace;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use proctrace_record::reap;
use proctrace_trace::{Block, Header, Outcome, Reader, Trailer, Writer};
use proctrace_wire::layout::{Again, EnvFixed, Head, Named};
use proctrace_wire::{Frames, IntoBytes, Kind, Stream};

const TRACES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/traces");

/// Maximum memory of commands of these tests: the default for small recordings is 512 MiB, and a process grows between
/// two looks at it.
const PEAK_BYTES_MAX: u64 = 1 << 30;

/// A real trace, in parts.
fn parts(name: &str) -> (Header, Trailer, Vec<Block>) {
    let mut reader = Reader::open(Path::new(TRACES).join(name)).unwrap();
    let mut blocks = Vec::new();
    while let Some(block) = reader.next_block() {
        blocks.push(block);
    }
    (reader.header().clone(), reader.trailer().unwrap().clone(), blocks)
}

fn write(path: &Path, header: &Header, trailer: Option<&Trailer>, blocks: &[Block]) {
    let mut writer = Writer::new(Vec::new(), header).unwrap();
    for block in blocks {
        let info = &block.info;
        writer
            .append(info.stream, info.records, info.first_ns, info.last_ns, &block.bytes)
            .unwrap();
    }
    let bytes = match trailer {
        Some(trailer) => writer.finish(trailer).unwrap().0,
        None => writer.into_inner(),
    };
    fs::write(path, bytes).unwrap();
}

fn run(arguments: &[&str], path: &Path) -> Output {
    let directory = path.parent().unwrap();
    let (output, peak_bytes) =
        measured(proctrace().current_dir(directory).args(arguments).arg(path));
    let said = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    assert!(!said.contains("panicked"), "{arguments:?} on {}: {said}", path.display());
    assert!(matches!(code, Some(0..=3)), "{arguments:?} on {}: {code:?} {said}", path.display());
    assert!(
        peak_bytes <= PEAK_BYTES_MAX,
        "{arguments:?} on {}: {peak_bytes} bytes",
        path.display()
    );
    output
}

/// What a command prints, and its peak RSS: of it alone, as other tests have children at the same time.
fn measured(command: &mut Command) -> (Output, u64) {
    let mut printed = [tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap()];
    let [stdout, stderr] = printed.each_ref().map(|file| file.try_clone().unwrap());
    #[expect(clippy::zombie_processes, reason = "reap() waits for it, and tells its usage")]
    let child = command.stdout(stdout).stderr(stderr).spawn().unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
    let usage = reap(pid).unwrap().unwrap();
    let [stdout, stderr] = printed.each_mut().map(|file| {
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let status = match usage.outcome {
        Outcome::Code(code) => code << 8,
        Outcome::Signal(signal) => signal,
    };
    (Output { status: ExitStatus::from_raw(status), stdout, stderr }, usage.maxrss_bytes)
}

/// Every command that reads a recording.
fn read(path: &Path) {
    for arguments in [
        &["check"][..],
        &["report", "--all"],
        &["report", "--json"],
        &["report", "--gantt", "gantt.svg"],
        &["report", "--gantt", "gantt.png", "--gantt-order", "tree"],
        &["report", "--out", "out"],
        &["show", "1"],
        &["tree"],
        &["ps", "1s"],
        &["advise"],
        &["classify"],
        &["metrics"],
        &["dump"],
        &["libs"],
        &["series"],
        &["summarize", "--output", "lake"],
        &["gate", "init"],
        &["query", "SELECT * FROM processes"],
        &["query", "SELECT * FROM threads"],
        &["query", "SELECT * FROM bins"],
        &["query", "SELECT * FROM waits"],
        &["query", "SELECT * FROM samples"],
        &["query", "SELECT * FROM recording"],
        &["export", "--format", "parquet", "tables"],
        &["export", "--format", "perfetto", "perfetto"],
        &["export", "--format", "chrome", "chrome"],
        &["export", "--format", "folded", "folded"],
        &["export", "--format", "speedscope", "speedscope"],
        &["export", "--format", "otlp", "otlp"],
        &["export", "--format", "compile-commands", "compile_commands.json"],
        &["export", "--format", "prmon", "prmon.txt"],
    ] {
        run(arguments, path);
    }
    let twice = path.to_str().unwrap();
    run(&["diff", twice], path);
}

/// Replaces a word of each record of a kind, counted from the beginning of the record in units of eight bytes.
fn overwrite(blocks: &mut [Block], wanted: impl Fn(Kind) -> bool, word: usize, value: u64) {
    for block in blocks {
        let mut begin = 0;
        let places: Vec<(usize, usize, u16)> = Frames::new(&block.bytes)
            .flatten()
            .map(|frame| {
                let at = begin;
                begin += frame.bytes.len();
                (at, frame.bytes.len(), frame.head.kind)
            })
            .collect();
        for (at, length, kind) in places {
            let place = at + 8 * word;
            if Kind::from_number(kind).is_some_and(&wanted) && place + 8 <= at + length {
                block.bytes[place..place + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
    }
}

#[test]
fn no_command_panics_on_times_and_figures_at_the_end_of_their_range() {
    let directory = tempfile::tempdir().unwrap();
    let (header, trailer, blocks) = parts("tour-6.ptrace");
    let is_end = |kind| kind == Kind::Exit;
    // Word 1 is the time; those of an exit from word 7 on are figures.
    for value in [u64::MAX, 1 << 63] {
        let mut late = blocks.clone();
        overwrite(&mut late, is_end, 1, value);
        let mut used = blocks.clone();
        for word in 7..24 {
            overwrite(&mut used, is_end, word, value);
        }
        for (name, blocks) in [("late", late), ("used", used)] {
            let path = directory.path().join(format!("{name}-{value}.ptrace"));
            write(&path, &header, Some(&trailer), &blocks);
            read(&path);
        }
    }
    let mut all = blocks.clone();
    overwrite(&mut all, |_| true, 1, u64::MAX);
    let path = directory.path().join("all.ptrace");
    write(&path, &header, None, &all);
    read(&path);
    let strange = Header {
        started_ns: 0,
        started_unix_ns: u64::MAX,
        cpus: u32::MAX,
        page_bytes: u32::MAX,
        memory_bytes: u64::MAX,
        tick_ns: Some(u64::MAX),
        ..header
    };
    let path = directory.path().join("header.ptrace");
    write(&path, &strange, Some(&trailer), &blocks);
    read(&path);
}

/// A trace with many blocks of the same records, which take some hundred bytes each.
fn bomb(
    name: &str,
    directory: &Path,
    stream: Stream,
    records: &[u8],
    blocks: usize,
) -> (PathBuf, u64) {
    let (header, trailer, first) = parts("tour-6.ptrace");
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    for block in first {
        let info = block.info;
        writer
            .append(info.stream, info.records, info.first_ns, info.last_ns, &block.bytes)
            .unwrap();
    }
    let number = u32::try_from(Frames::new(records).count()).unwrap();
    for _ in 0..blocks {
        writer.append(stream, number, trailer.ended_ns, trailer.ended_ns, records).unwrap();
    }
    let path = directory.join(name);
    fs::write(&path, writer.finish(&trailer).unwrap().0).unwrap();
    (path, u64::from(number) * blocks as u64)
}

fn head(kind: Kind, size: usize) -> Head {
    let (kind, size) = (kind as u16, u16::try_from(size).unwrap());
    Head { kind, size, task: 1, time_ns: parts("tour-6.ptrace").1.ended_ns }
}

#[test]
fn many_look_ups_in_a_small_file_are_refused_or_counted() {
    let directory = tempfile::tempdir().unwrap();
    let named = Named {
        head: head(Kind::LookupNamed, size_of::<Named>()),
        call: 2,
        error: 2,
        dirfd: 0,
        flags: 0,
        path_bytes: 0,
        bits: 0,
        number: 7,
        slot: 7,
    };
    let again = Again { head: head(Kind::LookupAgain, size_of::<Again>()), number: 7, pad: 0 };
    let mut records = named.as_bytes().to_vec();
    while records.len() + size_of::<Again>() <= proctrace_trace::RAW_BYTES_MAX {
        records.extend_from_slice(again.as_bytes());
    }
    let (path, number) = bomb("lookups.ptrace", directory.path(), Stream::Lookups, &records, 30);
    assert!(path.metadata().unwrap().len() < 1 << 20);
    let refused = run(&["query", "SELECT * FROM lookups"], &path);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(1) && said.contains("--max-memory"), "{said}");
    // A count needs a bit for each.
    let counted = run(&["query", "--format", "csv", "SELECT count(*) AS n FROM lookups"], &path);
    let text = String::from_utf8(counted.stdout).unwrap();
    let counted: u64 = text.lines().nth(1).unwrap().trim().parse().unwrap();
    assert!((number..number + 10_000).contains(&counted), "{counted} of {number}");
    run(&["report", "--html", "page.html"], &path);
}

#[test]
fn many_environments_in_a_small_file_are_left_out_of_a_page_with_a_word() {
    let directory = tempfile::tempdir().unwrap();
    let body = b"A=1\0".repeat(16_000);
    let mut records = Vec::new();
    for env_id in 1_000.. {
        if records.len() + size_of::<EnvFixed>() + body.len() > proctrace_trace::RAW_BYTES_MAX {
            break;
        }
        let fixed = EnvFixed {
            head: head(Kind::Env, size_of::<EnvFixed>() + body.len()),
            env_id,
            bytes: u32::try_from(body.len()).unwrap(),
            bits: 0,
        };
        records.extend_from_slice(fixed.as_bytes());
        records.extend_from_slice(&body);
    }
    let (path, _) = bomb("environments.ptrace", directory.path(), Stream::Lifecycle, &records, 30);
    assert!(path.metadata().unwrap().len() < 1 << 20);
    assert_eq!(run(&["report", "--html", "page.html"], &path).status.code(), Some(0));
    assert_eq!(run(&["dump", "--kind", "exit"], &path).status.code(), Some(0));
    run(&["libs"], &path);
}

fn ask(sql: &str, more: &[&str]) -> (Option<i32>, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("question.sql");
    fs::write(&file, sql).unwrap();
    let trace = Path::new(TRACES).canonicalize().unwrap().join("tour-6.ptrace");
    let arguments = [&["query", "-f", file.to_str().unwrap()], more].concat();
    let output = run(&arguments, &trace);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_query_that_is_too_large_is_refused_before_it_is_read() {
    let union = |of: usize| vec!["SELECT pid FROM processes"; of].join(" UNION ALL ");
    for sql in [
        format!("SELECT {}1 FROM processes", "1+".repeat(50_000)),
        union(20_000),
        format!("SELECT {}1{} FROM processes", "(".repeat(50_000), ")".repeat(50_000)),
        format!("SELECT {}true FROM processes", "NOT ".repeat(50_000)),
        format!("SELECT 1{} FROM processes", " IS NULL".repeat(50_000)),
        format!("SELECT {}processes{}", "a FROM (SELECT ".repeat(5_000), ")".repeat(5_000)),
        format!("SELECT '{}' FROM processes", "x".repeat(2 << 20)),
    ] {
        let (code, said) = ask(&sql, &[]);
        assert_eq!(code, Some(2), "{}: {said}", &sql[..60]);
        assert!(said.len() < 400, "{said}");
    }
    // What people and programs write is answered.
    let or: Vec<String> = (0..150).map(|pid| format!("pid = {pid}")).collect();
    let list: Vec<String> = (0..20_000).map(|pid| pid.to_string()).collect();
    for sql in [
        format!("SELECT count(*) AS n FROM processes WHERE {}", or.join(" OR ")),
        format!("SELECT count(*) AS n FROM processes WHERE pid IN ({})", list.join(", ")),
        union(20),
    ] {
        let (code, said) = ask(&sql, &[]);
        assert_eq!(code, Some(0), "{}: {said}", &sql[..60]);
    }
}

#[test]
fn a_product_of_tables_ends_at_the_limit_and_says_which_option_allows_more() {
    let tables = ["a", "b", "c", "d", "e"].map(|name| format!("processes {name}"));
    let (first, others) = tables.split_first().unwrap();
    let others = others.iter().map(|table| format!(" JOIN {table} USING (recording)"));
    let using = first.clone() + &others.collect::<String>();
    for from in [tables.join(" CROSS JOIN "), tables.join(", "), using] {
        let (code, said) = ask(&format!("SELECT count(*) AS n FROM {from}"), &[]);
        assert_eq!(code, Some(1), "{from}: {said}");
        assert!(said.contains("--max-memory"), "{from}: {said}");
    }
    let product = format!("SELECT count(*) AS n FROM {}", tables[..4].join(" CROSS JOIN "));
    let (code, said) = ask(&product, &["--max-time", "1ms"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("--max-time"), "{said}");
    let small = format!("SELECT count(*) AS n FROM {}", tables[..2].join(" CROSS JOIN "));
    assert_eq!(ask(&small, &[]).0, Some(0));
}
