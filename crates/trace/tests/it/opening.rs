//! Opening a trace: what is none, what its header tells, and several readers of one file.

use proctrace_trace::{Block, Header, Knowledge, MAGIC, Meter, Reader, is_trace};
use proctrace_wire::Quantity;

use crate::common::{assert_genuine, header, read, trace};

#[test]
fn what_is_no_trace_is_refused_with_a_reason() {
    let refuse = |bytes: &[u8]| read(bytes).err().map(|error| error.to_string()).unwrap();
    assert_eq!(refuse(b""), "test.ptrace is not a proctrace trace (it is empty)");
    assert_eq!(
        refuse(b"\x7fELF\x02\x01\x01\0"),
        "test.ptrace is not a proctrace trace (it is an ELF file)"
    );
    for (bytes, found) in [
        (&b"PERFILE2"[..], "it is perf data"),
        (b"\x1f\x8b\x08", "it is compressed with gzip: decompress it first"),
        (b"\x28\xb5\x2f\xfd\x04", "it is compressed with zstd: decompress it first"),
        (b"{\"a\":1}", "it looks like JSON"),
        (b"\x89PTRC\n\x1a\n", "its line endings were converted during a transfer"),
        (b"\x89PTR", "it does not begin with the bytes of a trace"),
        (b"hello", "it does not begin with the bytes of a trace"),
    ] {
        let expected = format!("test.ptrace is not a proctrace trace ({found})");
        assert_eq!(refuse(bytes), expected);
    }
    let mut newer = trace();
    newer[8] = 3;
    assert_eq!(
        refuse(&newer),
        "test.ptrace has trace format 3; this proctrace reads up to 2: use a newer version"
    );
    let mut foreign = trace();
    foreign[12..16].reverse();
    assert!(refuse(&foreign).contains("byte order"));
    let mut long = trace();
    long[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(refuse(&long).contains("damaged"));
    let mut short = trace();
    short[16..20].copy_from_slice(&(15u32 << 20).to_le_bytes());
    assert!(refuse(&short).contains("truncated"));
    assert!(refuse(&MAGIC).contains("truncated"));
}

#[test]
fn a_trace_is_a_file_that_begins_like_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    assert!(is_trace(&file("trace", &trace())));
    assert!(is_trace(&file("begun", &MAGIC)));
    assert!(!is_trace(&file("short", &MAGIC[..7])));
    assert!(!is_trace(&file("other", b"#!/bin/sh\n")));
    assert!(!is_trace(folder.path()));
    assert!(!is_trace(&folder.path().join("missing")));
}

/// Another reader of the same file begins at its first block; one of a file that took its place is none.
#[test]
fn a_file_can_be_read_by_several_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let bytes = trace();
    std::fs::write(&path, &bytes).unwrap();
    let meter = Meter::default();
    let mut reader = Reader::open(&path).unwrap().metered(&meter);
    let blocks = |reader: &mut Reader<std::io::BufReader<std::fs::File>>| -> Vec<Block> {
        std::iter::from_fn(|| reader.next_block()).collect()
    };
    assert_eq!(meter.bytes(), 0);
    let all = blocks(&mut reader);
    assert_genuine(&all);
    assert_eq!(reader.position_bytes(), bytes.len() as u64);
    let once = meter.bytes();
    assert!(once > 2_000 && once <= bytes.len() as u64, "{once}");
    let mut other = reader.again().unwrap();
    assert_eq!(blocks(&mut other), all);
    assert_eq!(meter.bytes(), 2 * once);
    std::fs::write(folder.path().join("new"), &bytes).unwrap();
    std::fs::rename(folder.path().join("new"), &path).unwrap();
    assert!(reader.again().is_none());
    std::fs::remove_file(&path).unwrap();
    assert!(reader.again().is_none());
}

/// Where a header does not say what is known, it follows from the options and the version of the recorder.
#[test]
fn what_is_known_follows_from_the_options() {
    let reason = |header: &Header, quantity| match header.knows(quantity) {
        Knowledge::Exact => "exact".to_owned(),
        Knowledge::Estimate { method } => method,
        Knowledge::Absent { reason } => reason,
    };
    let least = header();
    let most = Header {
        opens: true,
        lookups_timed_one_in: Some(8),
        waits_min_ns: Some(1),
        memory_interval_ns: Some(1),
        ..header()
    };
    for (quantity, without, with) in [
        (Quantity::OpenedFiles, "recorded without --opens", "exact"),
        (Quantity::FileSizes, "recorded without --opens", "exact"),
        (Quantity::Waits, "recorded without --waits", "exact"),
        (Quantity::Memory, "recorded without --memory", "exact"),
        (Quantity::LookupTimes, "look-ups were not timed", "one look-up in 8 is timed"),
        (Quantity::LookupsOpen, "exact", "exact"),
        (Quantity::LookupsStat, "left out by --misses", "left out by --misses"),
        (Quantity::Environment, "exact", "exact"),
        (Quantity::Cpu, "exact", "exact"),
    ] {
        assert_eq!(reason(&least, quantity), without, "{quantity:?}");
        assert_eq!(reason(&most, quantity), with, "{quantity:?}");
    }
    assert!(reason(&least, Quantity::Split).starts_with("exact CPU time, split"));
    let no_env = Header { env_names: Vec::new(), ..header() };
    assert_eq!(reason(&no_env, Quantity::Environment), "left out by --no-env");
    for (quantity, since) in
        [(Quantity::Mounts, 4), (Quantity::Signals, 5), (Quantity::FileSizes, 9)]
    {
        for wire_version in since - 2..since + 3 {
            let reason = reason(&Header { wire_version, ..most.clone() }, quantity);
            let is_known = wire_version >= since;
            assert_eq!(reason == "exact", is_known, "{quantity:?} {wire_version}: {reason}");
            assert!(is_known || reason.starts_with("recorded by a version without"), "{reason}");
        }
    }
}

#[test]
fn what_is_not_known_takes_others_with_it() {
    let mut header = header();
    let absent = |header: &Header| -> Vec<Quantity> { header.absent().into_keys().collect() };
    let options = [
        Quantity::LookupsStat,
        Quantity::LookupsAccess,
        Quantity::LookupsReadlink,
        Quantity::LookupsChdir,
        Quantity::LookupsExec,
        Quantity::Memory,
        Quantity::LookupTimes,
        Quantity::OpenedFiles,
        Quantity::FileSizes,
        Quantity::Waits,
    ];
    assert_eq!(absent(&header), options);
    header.knowledge.insert("times".into(), Knowledge::absent("a log"));
    let found = header.absent();
    for quantity in [Quantity::Cpu, Quantity::Split, Quantity::RunDelay, Quantity::Samples] {
        assert_eq!(found[&quantity], "a log");
    }
    // That which is stated for itself stays.
    assert_eq!(found[&Quantity::Waits], "recorded without --waits");
    assert!(!found.contains_key(&Quantity::Forks));
    header.knows_nothing("nothing at all");
    assert_eq!(absent(&header), Quantity::ALL);
    let whole = self::header().with_knowledge();
    assert_eq!(whole.knowledge.len(), Quantity::ALL.len());
}
