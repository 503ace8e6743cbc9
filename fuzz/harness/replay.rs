//! Records with any contents in an otherwise well-formed trace, reassembled and printed.
//!
//! The input is a sequence of records: a byte for the kind, one for the length of the variable
//! part, then the record without kind and size. So each one is accepted as a complete record, and
//! only its contents are fuzzed.

use std::io::{Cursor, Write as _};
use std::sync::OnceLock;

use proctrace_replay::{Body, Replay, records};
use proctrace_trace::{Header, Reader, Trailer, Writer};
use proctrace_wire::{Kind, Stream};

/// Header and trailer of a real recording.
fn frame() -> &'static (Header, Trailer) {
    static FRAME: OnceLock<(Header, Trailer)> = OnceLock::new();
    FRAME.get_or_init(|| {
        let trace = include_bytes!("../../fixtures/traces/tour-9.ptrace");
        let mut reader = Reader::new(Cursor::new(&trace[..]), "tour").expect("it is a trace");
        while reader.next_block_where(|_| false).is_some() {}
        (reader.header().clone(), reader.trailer().expect("it is complete").clone())
    })
}

pub(crate) fn run(data: &[u8]) {
    let trace = trace(data);
    let mut reader = Reader::new(Cursor::new(&trace[..]), "fuzz").expect("it is a trace");
    let mut counted = 0;
    for stream in Stream::ALL {
        reader.rewind();
        counted += records(&mut reader, stream, |_| {}).records;
    }
    let mut file = tempfile::NamedTempFile::new().expect("a place for a trace");
    file.write_all(&trace).expect("room for a trace");
    let mut replay = Replay::open(file.path()).expect("it is a trace");
    for event in replay.by_ref() {
        let json = event.to_json();
        let value: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
        assert_eq!(value["kind"], event.kind(), "{json}");
        if let Body::Exec(exec) = &event.body {
            assert_eq!(value["argv"].as_array().map(Vec::len), Some(exec.argv.len()));
        }
    }
    let summary = replay.summary();
    assert!(summary.damage.is_empty(), "{:?}", summary.damage);
    assert_eq!(summary.decoded.records, counted);
}

/// A trace of these records, each in its stream.
fn trace(data: &[u8]) -> Vec<u8> {
    let mut streams = Stream::ALL.map(|stream| (stream, Vec::new(), 0));
    let (complete, mut rest) = data.split_first().unwrap_or((&0, &[]));
    while let [kind, tail, after @ ..] = rest {
        let number = u16::from(*kind) % (Kind::ALL.len() as u16 + 2);
        let kind = Kind::from_number(number);
        let fixed = kind.map_or(16, |kind| kind.layout().size);
        let size = (fixed + usize::from(*tail)).next_multiple_of(8);
        let (body, after) = after.split_at(after.len().min(size - 4));
        rest = after;
        let at = match kind {
            Some(
                Kind::LookupFailed
                | Kind::LookupNamed
                | Kind::LookupAgain
                | Kind::LookupTime
                | Kind::OpenedNamed
                | Kind::OpenedAgain
                | Kind::Moved
                | Kind::Written,
            ) => 1,
            Some(Kind::Sample | Kind::Tick | Kind::Memory) => 2,
            Some(Kind::Wait) => 3,
            _ => 0,
        };
        let (_, bytes, count) = &mut streams[at];
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(&(size as u16).to_le_bytes());
        bytes.extend_from_slice(body);
        bytes.resize(bytes.len() + (size - 4 - body.len()), 0);
        *count += 1;
        if bytes.len() > 1 << 20 {
            break;
        }
    }
    let (header, trailer) = frame();
    let mut writer = Writer::new(Vec::new(), header).expect("memory takes it");
    for (stream, bytes, count) in &streams {
        writer.append(*stream, *count, 0, u64::MAX, bytes).expect("memory takes it");
    }
    if complete & 1 == 1 {
        writer.finish(trailer).expect("memory takes it").0
    } else {
        writer.into_inner()
    }
}
