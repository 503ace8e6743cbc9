//! What prmon writes: one process that stands for the whole tree. The time series (`prmon.txt`) has a sample and
//! a memory reading for each row, the summary (`prmon.json`) has one of each, with the maxima.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};

use proctrace_trace::{Knowledge, Quantity};
use proctrace_wire::layout::{Attach, Memory, Sample};
use proctrace_wire::{Kind, Stream};
use serde::Deserialize;
use zerocopy::FromZeros;

use crate::doubts::Doubts;
use crate::emit::{Emitter, Push, head};
use crate::error::ImportError;
use crate::header::{self, START_NS, Written};
use crate::line::decimal;
use crate::strace::Imported;

const SECOND_NS: u64 = 1_000_000_000;
const PAGE_BYTES: u64 = 4096;
/// A row has at most some twenty numbers.
const LINE_MAX: u64 = 1 << 16;
/// The name of the process that stands for the tree.
const COMM: [u8; 16] = *b"prmon's tree\0\0\0\0";

/// Positions of the columns that are used; the others are left out.
struct Columns {
    time: usize,
    wall: Option<usize>,
    rest: [Option<usize>; NAMES.len()],
}

/// kB for memory, bytes for input and output, seconds for CPU time.
const NAMES: [&str; 9] =
    ["utime", "stime", "rss", "pss", "swap", "rchar", "wchar", "read_bytes", "write_bytes"];

/// The numbers of one row, in the order of `NAMES`.
type Row = [Option<u64>; NAMES.len()];

/// A summary has a few dozen numbers.
const SUMMARY_MAX: u64 = 1 << 20;

/// What is used of a `prmon.json`.
#[derive(Deserialize)]
struct Summary {
    /// The largest value of each quantity: of those that only grow, the last.
    #[serde(rename = "Max")]
    max: BTreeMap<String, u64>,
}

/// Imports a `prmon.txt` or a `prmon.json`.
///
/// # Errors
/// If it cannot be read, has neither a header line of prmon nor its maxima, or a row that is not one; and the
/// first error of `push`.
pub fn prmon(
    name: &str,
    text: &mut dyn BufRead,
    push: &mut Push<'_>,
) -> Result<Imported, ImportError> {
    let fail = |source| ImportError::Read { name: name.to_owned(), source };
    match text.fill_buf().map_err(fail)?.first() {
        Some(b'{') => summary(name, text, push),
        _ => series(name, text, push),
    }
}

fn summary(
    name: &str,
    text: &mut dyn BufRead,
    push: &mut Push<'_>,
) -> Result<Imported, ImportError> {
    let not_a_log = || ImportError::NotALog { name: name.to_owned(), tool: "prmon" };
    let mut bytes = Vec::new();
    Read::take(text, SUMMARY_MAX)
        .read_to_end(&mut bytes)
        .map_err(|source| ImportError::Read { name: name.to_owned(), source })?;
    let Summary { max } = serde_json::from_slice(&bytes).map_err(|_| not_a_log())?;
    let wall_s = max.get("wtime").copied().ok_or_else(not_a_log)?;
    let row: Row = NAMES.map(|name| max.get(name).copied());
    if row.iter().all(Option::is_none) {
        return Err(not_a_log());
    }
    let mut emit = Emitter::new(push);
    attach(&mut emit);
    let ended_ns = START_NS.saturating_add(wall_s.saturating_mul(SECOND_NS)).max(START_NS + 1);
    add(&mut emit, ended_ns, &row);
    if let Some(error) = emit.take_error() {
        return Err(ImportError::Write(error));
    }
    let method = "the largest values of the whole process tree that prmon read, not when";
    Ok(imported(&emit, &row.map(|value| value.is_some()), method, (0, ended_ns), 1))
}

fn series(
    name: &str,
    text: &mut dyn BufRead,
    push: &mut Push<'_>,
) -> Result<Imported, ImportError> {
    let mut emit = Emitter::new(push);
    let mut line = Vec::new();
    let not_a_log = || ImportError::NotALog { name: name.to_owned(), tool: "prmon" };
    if !next(name, text, &mut line)? {
        return Err(not_a_log());
    }
    let columns = columns(&line).ok_or_else(not_a_log)?;
    let (mut rows, mut number, mut begin_s, mut last_ns) = (0_u64, 1, 0, START_NS);
    let mut last = 0;
    while next(name, text, &mut line)? {
        number += 1;
        let wrong =
            |why: &str| ImportError::Row { name: name.to_owned(), line: number, why: why.into() };
        let cells: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
        let value = |at: usize| cells.get(at).and_then(|cell| whole_number(cell));
        let time_s = value(columns.time).ok_or_else(|| wrong("there is no number for Time"))?;
        if rows == 0 {
            begin_s = time_s.saturating_sub(columns.wall.and_then(value).unwrap_or(0));
            attach(&mut emit);
        }
        if rows > 0 && time_s < last {
            return Err(wrong("its time is before that of the row above"));
        }
        last = time_s;
        let since_ns = time_s.saturating_sub(begin_s).saturating_mul(SECOND_NS);
        last_ns = (last_ns + 1).max(START_NS.saturating_add(since_ns));
        let mut row = Row::default();
        for (at, column) in columns.rest.iter().enumerate() {
            if let Some(column) = column {
                let cell = value(*column)
                    .ok_or_else(|| wrong(&format!("there is no number for {}", NAMES[at])))?;
                row[at] = Some(cell);
            }
        }
        add(&mut emit, last_ns, &row);
        rows += 1;
    }
    if let Some(error) = emit.take_error() {
        return Err(ImportError::Write(error));
    }
    if rows == 0 {
        return Err(not_a_log());
    }
    let method = "of the whole process tree, as prmon read it from time to time";
    let known = columns.rest.map(|column| column.is_some());
    Ok(imported(&emit, &known, method, (begin_s, last_ns), rows))
}

fn next(name: &str, text: &mut dyn BufRead, line: &mut Vec<u8>) -> Result<bool, ImportError> {
    line.clear();
    let fail = |source| ImportError::Read { name: name.to_owned(), source };
    let read = Read::take(text, LINE_MAX).read_until(b'\n', line).map_err(fail)?;
    while line.last().is_some_and(|byte| *byte == b'\n' || *byte == b'\r') {
        line.pop();
    }
    Ok(read > 0)
}

fn columns(line: &[u8]) -> Option<Columns> {
    let names: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
    let find = |name: &str| names.iter().position(|known| *known == name.as_bytes());
    let columns = Columns { time: find("Time")?, wall: find("wtime"), rest: NAMES.map(find) };
    columns.rest.iter().any(Option::is_some).then_some(columns)
}

fn whole_number(cell: &[u8]) -> Option<u64> {
    decimal(cell).filter(|(rest, _)| rest.is_empty()).map(|(_, number)| number)
}

fn attach(emit: &mut Emitter<'_>) {
    let mut attach = Attach::new_zeroed();
    attach.head = head(Kind::Attach, 1, START_NS);
    (attach.process, attach.comm, attach.start_ns) = (1, COMM, START_NS);
    emit.put(Stream::Lifecycle, attach.head, &attach, &[]);
}

fn add(emit: &mut Emitter<'_>, time_ns: u64, row: &Row) {
    let [utime, stime, rss, pss, swap, rchar, wchar, read_bytes, write_bytes] = *row;
    let ns = |seconds: Option<u64>| seconds.unwrap_or(0).saturating_mul(SECOND_NS);
    let bytes = |kib: Option<u64>| kib.unwrap_or(0).saturating_mul(1024);
    let mut sample = Sample::new_zeroed();
    sample.head = head(Kind::Sample, 1, time_ns);
    (sample.process, sample.state) = (1, u16::from(b'?'));
    (sample.utime_ns, sample.stime_ns) = (ns(utime), ns(stime));
    sample.run_ns = sample.utime_ns.saturating_add(sample.stime_ns);
    (sample.rchar, sample.wchar) = (rchar.unwrap_or(0), wchar.unwrap_or(0));
    sample.read_bytes = read_bytes.unwrap_or(0);
    sample.write_bytes = write_bytes.unwrap_or(0);
    sample.rss_pages = bytes(rss) / PAGE_BYTES;
    emit.put(Stream::Samples, sample.head, &sample, &[]);
    if pss.is_none() || rss.is_none() {
        return;
    }
    let mut memory = Memory::new_zeroed();
    memory.head = head(Kind::Memory, 1, time_ns);
    memory.process = 1;
    (memory.rss_bytes, memory.pss_bytes, memory.swap_bytes) = (bytes(rss), bytes(pss), bytes(swap));
    emit.put(Stream::Samples, memory.head, &memory, &[]);
}

fn imported(
    emit: &Emitter<'_>,
    known: &[bool; NAMES.len()],
    method: &str,
    (begin_s, ended_ns): (u64, u64),
    rows: u64,
) -> Imported {
    let mut header = header::blank("prmon", "pids", begin_s.saturating_mul(SECOND_NS));
    let has = |name: &str| {
        let at = NAMES.iter().position(|known| *known == name);
        at.is_some_and(|at| known[at])
    };
    let known = [
        (Quantity::Cpu, has("utime") && has("stime")),
        (Quantity::Io, ["rchar", "wchar", "read_bytes", "write_bytes"].into_iter().all(has)),
        (Quantity::Memory, has("pss") && has("rss")),
    ];
    for (quantity, _) in known.into_iter().filter(|(_, known)| *known) {
        let knowledge = Knowledge::Estimate { method: method.to_owned() };
        header.knowledge.insert(quantity.name().to_owned(), knowledge);
    }
    let written = Written {
        ended_ns,
        all_ended: false,
        tasks: 1,
        records: header::by_name(|kind| emit.records(kind)),
        losses: Vec::new(),
    };
    Imported {
        header,
        trailer: header::trailer(written, None),
        processes: 1,
        threads: 0,
        lines: rows,
        doubts: Doubts::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_wire::{Frames, Record};

    fn import(text: &str) -> Result<(Imported, Vec<Vec<u8>>), ImportError> {
        let mut records = Vec::new();
        let mut push = |_: Stream, _: u64, record: &[u8]| {
            records.push(record.to_vec());
            Ok(())
        };
        let imported = prmon("prmon.txt", &mut text.as_bytes(), &mut push)?;
        Ok((imported, records))
    }

    const ROWS: &str = "Time\twtime\tpss\trss\tswap\tutime\tstime\tnew\n\
                        1700000003\t3\t100\t200\t0\t2\t1\t9\n\
                        1700000005\t5\t150\t300\t0\t4\t1\t9\n";

    #[test]
    fn rows_become_samples_and_memory_readings_of_one_process() {
        let (imported, records) = import(ROWS).unwrap();
        assert_eq!(imported.header.started_unix_ns, 1_700_000_000 * SECOND_NS);
        assert_eq!(imported.trailer.ended_ns, START_NS + 5 * SECOND_NS);
        let records: Vec<_> = records
            .iter()
            .map(|bytes| Record::decode(Frames::new(bytes).next().unwrap().unwrap()).unwrap())
            .collect();
        let [
            Record::Attach(_),
            Record::Sample(first),
            Record::Memory(_),
            Record::Sample(_),
            Record::Memory(last),
        ] = records[..]
        else {
            panic!("{records:?}")
        };
        assert_eq!((first.run_ns, first.head.time_ns), (3 * SECOND_NS, START_NS + 3 * SECOND_NS));
        assert_eq!((last.pss_bytes, last.rss_bytes), (150 << 10, 300 << 10));
        let knows = |quantity| imported.header.knows(quantity);
        assert!(matches!(knows(Quantity::Forks), Knowledge::Absent { .. }));
        assert!(matches!(knows(Quantity::Io), Knowledge::Absent { .. }));
        assert!(matches!(knows(Quantity::Memory), Knowledge::Estimate { .. }));
    }

    #[test]
    fn a_summary_becomes_one_sample_and_one_reading() {
        let json = r#"{"Avg": {"rchar": 1.5}, "HW": {"cpu": {"CPUs": 8}},
            "Max": {"wtime": 7, "utime": 9, "stime": 2, "rss": 300, "pss": 150, "swap": 0, "x": 1}}"#;
        let (imported, records) = import(json).unwrap();
        assert_eq!(imported.trailer.ended_ns, START_NS + 7 * SECOND_NS);
        let records: Vec<_> = records
            .iter()
            .map(|bytes| Record::decode(Frames::new(bytes).next().unwrap().unwrap()).unwrap())
            .collect();
        let [Record::Attach(_), Record::Sample(sample), Record::Memory(memory)] = records[..]
        else {
            panic!("{records:?}")
        };
        assert_eq!((sample.run_ns, memory.pss_bytes), (11 * SECOND_NS, 150 << 10));
        assert!(matches!(imported.header.knows(Quantity::Io), Knowledge::Absent { .. }));
        assert!(matches!(imported.header.knows(Quantity::Cpu), Knowledge::Estimate { .. }));
        for wrong in ["{", "{}", r#"{"Max": {"wtime": 1}}"#, r#"{"Max": {"utime": 1}}"#] {
            assert_eq!(import(wrong).err().unwrap().to_string(), "prmon.txt is not a log of prmon");
        }
    }

    #[test]
    fn wrong_rows_are_named() {
        for (text, wanted) in [
            ("", "prmon.txt is not a log of prmon"),
            ("a\tb\n1\t2\n", "prmon.txt is not a log of prmon"),
            ("Time\tpss\n", "prmon.txt is not a log of prmon"),
            ("Time\tpss\n1\tx\n", "prmon.txt, line 2: there is no number for pss"),
            (
                "Time\tpss\n5\t1\n4\t1\n",
                "prmon.txt, line 3: its time is before that of the row above",
            ),
            ("Time\tpss\n\n", "prmon.txt, line 2: there is no number for Time"),
        ] {
            assert_eq!(import(text).err().unwrap().to_string(), wanted, "{text:?}");
        }
    }
}
