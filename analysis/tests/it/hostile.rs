//! Traces with valid checksums and invalid records: anyone who can write a trace can write anything
//! into it. No reader may panic, whatever the numbers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::waits::{WAITS_MIN_NS, waits_of};
use proctrace_analysis::{
    AliveSort, AliveView, Analysis, AnalysisError, Machine, Options, Recording, Rules, Section,
    TreeView, Wanted, alive, analyse, classification, gantt, job_root, libs, page, show, timeline,
    timeline_items, tree,
};
use proctrace_findings::{Cell, GanttOrder, GanttView, Shown, TimelineParts};
use proctrace_libsearch::{Cache, Files, Found, Linker};
use proctrace_replay::{MountTable, Replay};
use proctrace_report::{Style, full};
use proctrace_trace::{Block, Header, Reader, Trailer, Writer};
use proctrace_viewers::{Format, Weight};
use proctrace_wire::{Frames, Stream};
use proptest::prelude::*;

/// A real trace, in parts, with waits.
fn tour() -> (Header, Trailer, Vec<Block>) {
    let path = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../fixtures/traces/tour-1.ptrace");
    let mut reader = Reader::open(path).unwrap();
    let mut blocks = Vec::new();
    while let Some(block) = reader.next_block() {
        blocks.push(block);
    }
    let mut header = reader.header().clone();
    header.waits_min_ns = Some(WAITS_MIN_NS);
    blocks.push(waits_of(&blocks));
    (header, reader.trailer().unwrap().clone(), blocks)
}

fn write(header: &Header, trailer: Option<&Trailer>, blocks: &[Block], path: &Path) {
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
    std::fs::write(path, bytes).unwrap();
}

/// A machine on which nothing of the recording is left.
struct NoFiles;

impl Files for NoFiles {
    fn at(&self, _: &[u8]) -> Found {
        Found::Nothing
    }
}

/// Runs everything that reads a trace.
fn read_all(path: &Path) {
    let recording = Recording::load(path, &Rules::built_in()).unwrap();
    let findings = analyse(&recording);
    for order in [GanttOrder::Time, GanttOrder::Tree] {
        let view = GanttView { order, ..GanttView::default() };
        let chart = gantt(&recording, &view, &Options::default()).unwrap();
        assert_eq!(Some(chart.bars.len() as u64), findings.summary.processes);
        let view = GanttView { threads: true, ..view };
        let chart = gantt(&recording, &view, &Options::default()).unwrap();
        assert_eq!(chart.bars.len(), recording.tasks().len());
    }
    for format in [
        Format::Perfetto,
        Format::Chrome,
        Format::Folded(Weight::Wall),
        Format::Speedscope,
        Format::CompileCommands,
        Format::Otlp,
    ] {
        let mut viewer = format.begin(&timeline(&recording), std::io::sink()).unwrap();
        let parts = TimelineParts { waits: true, ..format.parts() };
        timeline_items(&recording, path, parts, |item| -> Result<(), AnalysisError> {
            viewer.take(&item).unwrap();
            Ok(())
        })
        .unwrap();
        viewer.finish().unwrap();
    }
    let style = Style::default();
    let analysis = Analysis::of(&recording);
    let tables = analysis.report_tables(&Options::default());
    assert!(!full(&findings, &tables, style).is_empty());
    let page = page(&analysis, path, &Options::default()).unwrap();
    assert!(page.tables.iter().all(|table| table.columns.len() < 100));
    for section in Section::ALL {
        let content = section.of(&recording, &Options::default());
        for table in &content.tables {
            let height = table.height();
            assert!(table.columns.iter().all(|column| column.values.len() == height));
        }
    }
    // Every process is counted exactly once.
    let caught = classification(&recording);
    let processes = &caught.named("processes").unwrap().values;
    let caught: u64 = (0..caught.height())
        .map(|row| if let Cell::Whole(number) = processes.get(row) { number } else { 0 })
        .sum();
    assert_eq!(Some(caught), findings.summary.processes);
    assert!(
        Analysis::of(&recording).metrics().metrics.iter().all(|metric| metric.value.is_finite())
    );
    inspect(&recording, path);
    job_root(&recording, path).unwrap();
    let mut replay = Replay::open(path).unwrap();
    for event in replay.by_ref() {
        let json = event.to_json();
        assert!(json.starts_with("{\"kind\":\""), "{json}");
    }
    let _ = replay.summary();
    let (linker, cache) = (Linker::default(), Cache::default());
    let view = |_| -> Arc<dyn Files> { Arc::new(NoFiles) };
    let mounts = MountTable::parse(0, b"1 0 254:0 / / - ext4 /dev/vda\n");
    let (files, mounts, view) = (&NoFiles, &mounts, &view);
    let machine = Machine { linker: &linker, cache: &cache, files, mounts, view };
    libs(recording, path, machine).unwrap();
}

/// Asks about some processes, programs and times. Not all exist.
fn inspect(recording: &Recording, path: &Path) {
    let processes = recording.processes();
    for process in processes.iter().step_by(7).chain(processes.last()) {
        let shown = show(recording, path, &Wanted::Serial(process.serial)).unwrap();
        assert!(matches!(shown, Shown::Process(_)));
        let _ = show(recording, path, &Wanted::Pid { pid: process.pid, at_ns: Some(1) });
        let root = Some(process.serial);
        let below = tree(recording, &TreeView { root, ..TreeView::default() }).unwrap();
        assert!((1..=processes.len() as u64).contains(&below.processes));
    }
    for program in recording.programs().iter().take(5) {
        let _ = show(recording, path, &Wanted::Program(program.name.clone()));
    }
    let whole = tree(recording, &TreeView::default()).unwrap();
    assert_eq!(whole.processes, processes.len() as u64);
    assert_eq!(whole.rows.iter().map(|row| row.siblings).sum::<u64>(), whole.processes);
    let end_ns = recording.recorded_ns();
    for (from_ns, to_ns) in [(0, None), (end_ns / 2, None), (0, Some(end_ns)), (end_ns, None)] {
        let at_ns = Some(from_ns);
        tree(recording, &TreeView { at_ns, min_percent: 5.0, ..TreeView::default() }).unwrap();
        let sort = AliveSort::Rss;
        let found = alive(recording, path, &AliveView { from_ns, to_ns, sort }).unwrap();
        assert!(found.processes.len() <= processes.len());
    }
}

fn scratch() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.ptrace");
    (directory, path)
}

/// Edge-case numbers.
fn awkward() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(u64::from(u32::MAX)),
        Just(u64::MAX),
        Just(u64::MAX / 2),
        Just(i64::MAX as u64 + 1),
        any::<u64>(),
    ]
}

#[test]
fn a_trace_without_records_is_a_trace() {
    let (header, trailer, _) = tour();
    let (_directory, path) = scratch();
    write(&header, Some(&trailer), &[], &path);
    read_all(&path);
    write(&header, None, &[], &path);
    read_all(&path);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Individual records with individual fields overwritten.
    #[test]
    fn wrong_numbers_in_records_break_nothing(
        changes in proptest::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0usize..28, awkward()),
            1..40,
        ),
        complete: bool,
    ) {
        let (header, trailer, mut blocks) = tour();
        for (block, record, word, value) in changes {
            let at = block.index(blocks.len());
            let block = &mut blocks[at];
            let offsets: Vec<(usize, usize)> = Frames::new(&block.bytes)
                .flatten()
                .scan(0, |at, frame| {
                    let begin = *at;
                    *at += frame.bytes.len();
                    Some((begin, frame.bytes.len()))
                })
                .collect();
            let (begin, length) = offsets[record.index(offsets.len())];
            // The head's first word contains the size; the rest of the record may be changed.
            let at = begin + 4 + word * 8;
            if at + 8 <= begin + length {
                block.bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
        let (_directory, path) = scratch();
        write(&header, complete.then_some(&trailer), &blocks, &path);
        read_all(&path);
    }

    /// Records omitted, duplicated and reordered.
    #[test]
    fn missing_and_displaced_records_break_nothing(
        picks in proptest::collection::vec(any::<prop::sample::Index>(), 0..400),
    ) {
        let (header, trailer, blocks) = tour();
        let records: Vec<(Stream, Vec<u8>)> = blocks
            .iter()
            .flat_map(|block| {
                Frames::new(&block.bytes).flatten().map(|frame| (block.info.stream, frame.bytes.to_vec()))
            })
            .collect();
        let mut shuffled = blocks.clone();
        let mut streams = Vec::new();
        shuffled.retain(|block| {
            let is_first = !streams.contains(&block.info.stream);
            streams.push(block.info.stream);
            is_first
        });
        for block in &mut shuffled {
            block.bytes.clear();
            block.info.records = 0;
        }
        for pick in picks {
            let (stream, bytes) = &records[pick.index(records.len())];
            if let Some(block) = shuffled.iter_mut().find(|block| block.info.stream == *stream) {
                block.bytes.extend_from_slice(bytes);
                block.info.records += 1;
            }
        }
        let (_directory, path) = scratch();
        write(&header, Some(&trailer), &shuffled, &path);
        read_all(&path);
    }

    /// A header with impossible numbers.
    #[test]
    fn wrong_numbers_in_the_header_break_nothing(
        numbers in proptest::array::uniform6(awkward()),
    ) {
        let (mut header, mut trailer, blocks) = tour();
        header.cpus = numbers[0] as u32;
        header.page_bytes = numbers[1] as u32;
        header.started_ns = numbers[2];
        header.interval_ns = numbers[3];
        if let Some(payload) = &mut trailer.payload {
            payload.exited_ns = numbers[4];
            payload.user_ns = numbers[5];
            payload.system_ns = numbers[0];
        }
        let (_directory, path) = scratch();
        write(&header, Some(&trailer), &blocks, &path);
        read_all(&path);
    }
}
