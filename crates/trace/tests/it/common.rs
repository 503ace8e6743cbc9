//! A small trace, and what is in it.

use std::collections::BTreeMap;
use std::io::Cursor;

use proctrace_trace::{
    Block, Ended, Header, Outcome, PayloadUsage, ReadError, Reader, RecorderUsage, Trailer, Writer,
};
use proctrace_wire::layout::{Again, Head};
use proctrace_wire::{IntoBytes, Kind, Stream, WIRE_VERSION};

pub(crate) fn header() -> Header {
    Header {
        wire_version: WIRE_VERSION,
        recorder: "0.0.0".into(),
        backend: "ebpf".into(),
        command: vec!["sh".into(), "-c".into(), "true".into()],
        scope: "command".into(),
        restricted: false,
        cgroup: None,
        memory_interval_ns: None,
        on_full: "drop".into(),
        misses: vec!["open".into()],

        opens: false,
        lookups_timed_one_in: None,
        waits_min_ns: None,
        cwd: "/".into(),
        host: "somewhere".into(),
        kernel: "6.1.0".into(),
        machine: "x86_64".into(),
        cpus: 2,
        page_bytes: 4096,
        memory_bytes: 1 << 30,
        processor: Default::default(),
        started_unix_ns: 1,
        started_ns: 2,
        interval_ns: 100_000_000,
        ring_bytes: 1 << 20,
        env_names: vec!["PATH".into()],
        job: std::collections::BTreeMap::new(),
        hooks: Vec::new(),
        tick_ns: Some(4_000_000),
        knowledge: Default::default(),
    }
}

pub(crate) fn trailer() -> Trailer {
    Trailer {
        ended_ns: 99,
        ended: Ended::TreeExited,
        payload: Some(PayloadUsage {
            outcome: Outcome::Code(0),
            exited_ns: 98,
            user_ns: 1,
            system_ns: 2,
            maxrss_bytes: 3,
        }),
        tasks: 5,
        records: BTreeMap::new(),
        losses: Vec::new(),
        cgroup: None,
        machine: None,
        recorder: RecorderUsage::default(),
        programs: Vec::new(),
        job: std::collections::BTreeMap::new(),
        held_up: None,
        of_node: None,
    }
}

/// A repeated failed look-up, by number.
pub(crate) fn look_up(n: u32) -> Vec<u8> {
    let head = Head { kind: Kind::LookupAgain as u16, size: 24, task: n / 20, time_ns: 1 << 40 };
    Again { head, number: n * 7 % 90, pad: 0 }.as_bytes().to_vec()
}

/// Three distinguishable blocks: no records, records, and incompressible data.
pub(crate) fn contents() -> Vec<(Stream, Vec<u8>)> {
    let mut noise = 1u64;
    let incompressible = (0..2000)
        .map(|_| {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (noise >> 56) as u8
        })
        .collect();
    vec![
        (Stream::Lifecycle, vec![b'a'; 4096]),
        (Stream::Lookups, (0..300).flat_map(look_up).collect()),
        (Stream::Lifecycle, incompressible),
    ]
}

pub(crate) fn trace() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &header()).unwrap();
    for (at, (stream, bytes)) in (1u32..).zip(contents()) {
        writer.append(stream, at, u64::from(at), u64::from(at) + 10, &bytes).unwrap();
    }
    let (bytes, written) = writer.finish(&trailer()).unwrap();
    assert_eq!(bytes.len() as u64, written);
    bytes
}

pub(crate) fn read(bytes: &[u8]) -> Result<(Vec<Block>, MemoryReader), ReadError> {
    let mut reader = Reader::new(Cursor::new(bytes.to_vec()), "test.ptrace")?;
    let mut blocks = Vec::new();
    while let Some(block) = reader.next_block() {
        blocks.push(block);
    }
    Ok((blocks, reader))
}

/// Every block read must be one that was written.
pub(crate) fn assert_genuine(blocks: &[Block]) {
    let contents = contents();
    for block in blocks {
        let at = block.info.records as usize - 1;
        assert_eq!((block.info.stream, &block.bytes), (contents[at].0, &contents[at].1));
    }
}

/// Offsets at which truncation loses nothing: before the first block, and after each.
pub(crate) fn block_ends(whole: &[u8]) -> Vec<usize> {
    let mut ends: Vec<usize> =
        (0..whole.len() - 4).filter(|at| &whole[*at..at + 4] == b"PTBK").collect();
    ends.push(whole.len());
    assert_eq!(ends.len(), 5);
    ends
}

pub(crate) type MemoryReader = Reader<Cursor<Vec<u8>>>;
