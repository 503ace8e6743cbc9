//! A real recording, and what a source without knowledge of some quantity would have recorded.

pub(crate) mod waits;

use std::collections::HashMap;
use std::path::Path;

use proctrace_analysis::{Recording, Rules};
use proctrace_trace::{Block, Header, Knowledge, Reader, Trailer, Writer};
use proctrace_wire::layout::Head;
use proctrace_wire::{Call, Family, Frame, Frames, IntoBytes, Kind, Quantity, Record, Stream};
use tempfile::NamedTempFile;

/// A real recording, in parts.
pub(crate) struct Pieces {
    pub(crate) header: Header,
    pub(crate) trailer: Trailer,
    pub(crate) blocks: Vec<Block>,
}

pub(crate) fn pieces() -> Pieces {
    let path = "../fixtures/traces/alice-o2-before.ptrace";
    let mut reader =
        Reader::open(Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join(path))
            .unwrap();
    let mut blocks = Vec::new();
    while let Some(mut block) = reader.next_block() {
        block.bytes = Frames::new(&block.bytes).flatten().flat_map(of_today).collect();
        blocks.push(block);
    }
    let (header, trailer) = (reader.header().clone(), reader.trailer().unwrap().clone());
    Pieces { header, trailer, blocks }
}

/// A record with what later versions have added to its kind.
fn of_today(frame: Frame<'_>) -> Vec<u8> {
    match Record::decode(frame).unwrap() {
        Record::Exit(mut exit) => {
            exit.file_rss_pages = u32::try_from(exit.maxrss_pages / 2).unwrap() + 1;
            exit.as_bytes().to_vec()
        }
        _ => frame.bytes.to_vec(),
    }
}

/// The same, with waits.
pub(crate) fn pieces_with_waits() -> Pieces {
    let mut pieces = pieces();
    pieces.header.waits_min_ns = Some(waits::WAITS_MIN_NS);
    pieces.blocks.push(waits::waits_of(&pieces.blocks));
    pieces
}

/// Zeroes these fields of a record, if present.
fn zeroed(frame: Frame<'_>, names: &[&str]) -> Vec<u8> {
    let mut bytes = frame.bytes.to_vec();
    let kind = Kind::from_number(frame.head.kind).unwrap();
    for field in kind.layout().fields.iter().filter(|field| names.contains(&field.name)) {
        bytes[field.offset..field.offset + field.size].fill(0);
    }
    bytes
}

/// The record in a recording three times as long, in which everything happens in the same order: what follows
/// from times is another value then.
fn stretched(frame: Frame<'_>, start_ns: u64) -> Vec<u8> {
    let mut bytes = frame.bytes.to_vec();
    let stretch = |time_ns: u64| start_ns + 3 * time_ns.saturating_sub(start_ns);
    let kind = Kind::from_number(frame.head.kind).unwrap();
    let times = ["start_ns", "since_ns", "woken_ns"];
    let fields = kind.layout().fields.iter().filter(|field| times.contains(&field.name));
    let of_head = std::mem::offset_of!(Head, time_ns);
    for at in fields.map(|field| field.offset).chain([of_head]) {
        let at = at..at + size_of::<u64>();
        let time_ns = u64::from_ne_bytes(bytes[at.clone()].try_into().unwrap());
        bytes[at].copy_from_slice(&stretch(time_ns).to_ne_bytes());
    }
    bytes
}

/// An exec without its arguments.
fn without_argv(frame: Frame<'_>) -> Vec<u8> {
    let Record::Exec(exec) = Record::decode(frame).unwrap() else { unreachable!() };
    let mut fixed = exec.fixed;
    (fixed.argc, fixed.argv_bytes, fixed.argv_here) = (0, 0, 0);
    let rest = [exec.path, exec.interp, exec.exe, exec.cwd].concat();
    let size = (size_of_val(&fixed) + rest.len()).next_multiple_of(8);
    fixed.head.size = u16::try_from(size).unwrap();
    let mut bytes = [fixed.as_bytes(), &rest].concat();
    bytes.resize(size, 0);
    bytes
}

fn quantity_of(call: u16) -> Option<Quantity> {
    let call = Call::from_number(call);
    let family = Family::ALL.into_iter().find(|family| family.calls().contains(&call))?;
    Quantity::ALL.into_iter().find(|quantity| quantity.family() == Some(family.name()))
}

/// Failed look-ups of a family: which ones belong to it, and how many of them each task had.
#[derive(Default)]
struct Lookups {
    numbers: HashMap<u32, bool>,
    dropped: HashMap<u32, u32>,
}

impl Lookups {
    /// Returns whether this look-up is to be dropped.
    fn drops(&mut self, frame: Frame<'_>, quantity: Quantity) -> bool {
        let drops = match Record::decode(frame).unwrap() {
            Record::LookupFailed(miss, _) => quantity_of(miss.call) == Some(quantity),
            Record::LookupNamed(named, _) => {
                let drops = quantity_of(named.call) == Some(quantity);
                self.numbers.insert(named.number, drops);
                drops
            }
            Record::LookupAgain(again) => self.numbers[&again.number],
            _ => false,
        };
        if drops {
            *self.dropped.entry(frame.head.task).or_default() += 1;
        }
        drops
    }
}

/// The record as from a source that does not know a quantity; `None` if there would be none.
fn without(
    frame: Frame<'_>,
    quantity: Quantity,
    lookups: &mut Lookups,
    dropped: &HashMap<u32, u32>,
) -> Option<Vec<u8>> {
    use Quantity as Q;
    let kind = Kind::from_number(frame.head.kind).unwrap();
    let fields: &[&str] = match (quantity, kind) {
        (Q::Forks, Kind::Fork)
        | (Q::Execs, Kind::Exec | Kind::ExecArgs)
        | (Q::Argv, Kind::ExecArgs)
        | (Q::LookupsExec, Kind::ExecFailed)
        | (Q::Samples, Kind::Sample | Kind::Tick)
        | (Q::Memory, Kind::Memory)
        | (Q::LookupTimes, Kind::LookupTime)
        | (Q::Waits, Kind::Wait)
        | (Q::Signals, Kind::Signal)
        | (Q::OpenedFiles, Kind::OpenedNamed | Kind::OpenedAgain | Kind::Moved)
        | (Q::FileSizes, Kind::Written)
        | (Q::Mounts, Kind::Mounts | Kind::Place)
        | (Q::Environment, Kind::Env) => return None,
        (Q::Argv, Kind::Exec) => return Some(without_argv(frame)),
        (_, Kind::LookupFailed | Kind::LookupNamed | Kind::LookupAgain) => {
            return (!lookups.drops(frame, quantity)).then(|| frame.bytes.to_vec());
        }
        (Q::Cpu, _) => &[
            "run_ns",
            "run_at_exit_ns",
            "utime_ns",
            "stime_ns",
            "waited_utime_ns",
            "waited_stime_ns",
        ],
        (Q::Split, _) => &["utime_ns", "stime_ns"],
        (Q::Switches, _) => &["nvcsw", "nivcsw", "migrations"],
        (Q::RunDelay, _) => &["run_delay_ns"],
        (Q::Faults, _) => &["minflt", "majflt"],
        (Q::PeakRss, _) => {
            &["maxrss_pages", "maxrss_ever_pages", "maxrss_before_pages", "file_rss_pages"]
        }
        (Q::Io, _) => &["rchar", "wchar", "read_bytes", "write_bytes"],
        (Q::LookupsOpen, _) => &["opens"],
        (Q::LookupsExec, _) => &["execs_failed"],
        (Q::Environment, _) => &["env_id"],
        _ => &[],
    };
    let mut bytes = zeroed(frame, fields);
    if kind == Kind::Exit && Quantity::LOOKUPS.contains(&quantity) {
        let Record::Exit(mut exit) = Record::decode(Frames::new(&bytes).next()?.ok()?).ok()? else {
            unreachable!()
        };
        exit.lookups_failed -= dropped.get(&frame.head.task).copied().unwrap_or(0);
        bytes = exit.as_bytes().to_vec();
    }
    Some(bytes)
}

/// The recording as from a source that does not know a quantity.
pub(crate) fn recording_without(pieces: &Pieces, quantity: Option<Quantity>) -> Recording {
    trace_without(pieces, quantity).0
}

/// The same, with the trace it was read from.
pub(crate) fn trace_without(
    pieces: &Pieces,
    quantity: Option<Quantity>,
) -> (Recording, NamedTempFile) {
    let mut header = pieces.header.clone();
    let mut lookups = Lookups::default();
    if let Some(quantity) = quantity {
        let reason = "taken out".to_owned();
        header.knowledge.insert(quantity.name().into(), Knowledge::Absent { reason });
        // Look-ups first: exit records contain the counts of their tasks.
        for block in pieces.blocks.iter().filter(|block| block.info.stream == Stream::Lookups) {
            for frame in Frames::new(&block.bytes).map(Result::unwrap) {
                lookups.drops(frame, quantity);
            }
        }
        lookups.numbers.clear();
    }
    let dropped = std::mem::take(&mut lookups.dropped);
    let is_timeless = quantity == Some(Quantity::Times);
    let start_ns = pieces.header.started_ns;
    let stretch = |ns: u64| if is_timeless { 3 * ns.max(start_ns) - 2 * start_ns } else { ns };
    let mut trailer = pieces.trailer.clone();
    trailer.ended_ns = stretch(trailer.ended_ns);
    if let Some(payload) = &mut trailer.payload {
        payload.exited_ns = stretch(payload.exited_ns);
    }
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    for block in &pieces.blocks {
        let (mut bytes, mut records) = (Vec::new(), 0);
        for frame in Frames::new(&block.bytes).map(Result::unwrap) {
            let record = match quantity {
                Some(Quantity::Times) => Some(stretched(frame, start_ns)),
                Some(quantity) => without(frame, quantity, &mut lookups, &dropped),
                None => Some(frame.bytes.to_vec()),
            };
            if let Some(record) = record {
                bytes.extend(record);
                records += 1;
            }
        }
        let info = &block.info;
        let (first_ns, last_ns) = (stretch(info.first_ns), stretch(info.last_ns));
        writer.append(info.stream, records, first_ns, last_ns, &bytes).unwrap();
    }
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), writer.finish(&trailer).unwrap().0).unwrap();
    let recording = Recording::load(file.path(), &Rules::built_in()).unwrap();
    assert_eq!(recording.damage(), []);
    (recording, file)
}
