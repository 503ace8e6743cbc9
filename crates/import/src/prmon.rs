//! Import of the files of prmon and of its predecessor, MemoryMonitor of ATLAS: one process that stands for the whole
//! tree. The time series (`prmon.txt`) has a sample and a memory reading for each row, the summary (`prmon.json`) has
//! one of each, with the maxima.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};

use proctrace_trace::{Knowledge, SCOPE_TREE};
use proctrace_wire::layout::{Attach, Memory, Sample};
use proctrace_wire::{Kind, Quantity, Stream};
use serde::Deserialize;
use zerocopy::FromZeros;

use crate::doubts::Doubts;
use crate::emit::{Emitter, Push, head};
use crate::error::ImportError;
use crate::header::{self, START_NS, Written};
use crate::strace::Imported;

const SECOND_NS: u64 = 1_000_000_000;
const PAGE_BYTES: u64 = 4096;
/// Maximum length of a row, which has at most some twenty numbers.
const LINE_MAX: u64 = 1 << 16;
/// Rows of one file, which are kept until all are read, because compressed files are not in order: with prmon's
/// shortest interval of a second, twelve days.
const ROWS_MAX: usize = 1 << 20;
/// The name of the process that stands for the tree.
const COMM: [u8; 16] = *b"prmon's tree\0\0\0\0";
/// Length of a clock tick in which seconds of CPU time are counted, so that their division is exact.
const TICK_NS: u64 = 10_000_000;

/// Column of a row that is used: the name in prmon, that of MemoryMonitor in its rows and its summary, and the unit
/// in ns or bytes.
struct Column {
    name: &'static str,
    old: &'static str,
    old_summary: &'static str,
    unit: f64,
    /// True if it only grows.
    grows: bool,
}

const COLUMNS: [Column; 10] = [
    Column::growing("utime", "utime", "totUTIME", 1e9),
    Column::growing("stime", "stime", "totSTIME", 1e9),
    Column::growing("rchar", "rchar", "totRCHAR", 1.0),
    Column::growing("wchar", "wchar", "totWCHAR", 1.0),
    Column::growing("read_bytes", "rbytes", "totRBYTES", 1.0),
    Column::growing("write_bytes", "wbytes", "totWBYTES", 1.0),
    Column::level("rss", "RSS", "maxRSS"),
    Column::level("pss", "PSS", "maxPSS"),
    Column::level("swap", "Swap", "maxSwap"),
    Column::level("vmem", "VMEM", "maxVMEM"),
];
const UTIME: usize = 0;
const STIME: usize = 1;
const RCHAR: usize = 2;
const WCHAR: usize = 3;
const READ: usize = 4;
const WRITE: usize = 5;
const RSS: usize = 6;
const PSS: usize = 7;
const SWAP: usize = 8;
const VMEM: usize = 9;
/// CPU time of children that have been waited for, which MemoryMonitor has in columns of its own.
const OF_CHILDREN: [(&str, &str, usize); 2] =
    [("cutime", "totCUTIME", UTIME), ("cstime", "totCSTIME", STIME)];

impl Column {
    const fn growing(
        name: &'static str,
        old: &'static str,
        old_summary: &'static str,
        unit: f64,
    ) -> Self {
        Self { name, old, old_summary, unit, grows: true }
    }

    /// Memory, in KiB.
    const fn level(name: &'static str, old: &'static str, old_summary: &'static str) -> Self {
        Self { name, old, old_summary, unit: 1024.0, grows: false }
    }
}

/// The values of one row, in ns and bytes; `None` for cells that are empty or missing.
type Row = [Option<u64>; COLUMNS.len()];

/// Maximum size of a summary, which has a few dozen numbers.
const SUMMARY_MAX: u64 = 1 << 20;

/// Values of a `prmon.json` that are used.
#[derive(Deserialize)]
struct Summary {
    /// The largest value of each quantity: of those that only grow, the last.
    #[serde(rename = "Max")]
    max: BTreeMap<String, f64>,
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
    let of = |name: &str| max.get(name).copied();
    let mut row: Row = std::array::from_fn(|at| {
        let Column { name, old_summary, unit, .. } = &COLUMNS[at];
        scaled(of(name).or_else(|| of(old_summary))?, *unit)
    });
    for (_, name, at) in OF_CHILDREN {
        add_children(&mut row, at, of(name).and_then(|value| scaled(value, COLUMNS[at].unit)));
    }
    if row.iter().all(Option::is_none) {
        return Err(not_a_log());
    }
    let wall_s = of("wtime").or_else(|| of("totWTIME"));
    let wall_ns = wall_s.and_then(|wall_s| scaled(wall_s, 1e9)).ok_or_else(|| {
        let why = "there is no wtime, without which nothing is known of the time".to_owned();
        ImportError::Row { name: name.to_owned(), line: 1, why }
    })?;
    let mut emit = Emitter::new(push);
    attach(&mut emit);
    let ended_ns = START_NS.saturating_add(wall_ns).max(START_NS + 1);
    add(&mut emit, ended_ns, &row);
    if let Some(error) = emit.take_error() {
        return Err(ImportError::Write(error));
    }
    let method = "the largest values of the whole process tree that prmon read, not when";
    let found = Found {
        known: row.map(|value| value.is_some()),
        method: method.to_owned(),
        begin_s: 0,
        ended_ns,
        rows: 1,
        interval_ns: wall_ns.max(SECOND_NS),
        remarks: Vec::new(),
    };
    Ok(imported(&emit, found))
}

/// The positions of the columns that are used; the others are left out.
struct Columns {
    time: usize,
    wall: Option<usize>,
    values: [Option<usize>; COLUMNS.len()],
    of_children: [Option<usize>; OF_CHILDREN.len()],
}

impl Columns {
    fn of(line: &[u8]) -> Option<Self> {
        // MemoryMonitor writes several tabs after the first name.
        let names = line.split(|byte| *byte == b'\t').map(<[u8]>::trim_ascii);
        let names: Vec<&[u8]> = names.filter(|name| !name.is_empty()).collect();
        let find = |name: &str| names.iter().position(|known| *known == name.as_bytes());
        let columns = Self {
            time: find("Time")?,
            wall: find("wtime"),
            values: std::array::from_fn(|at| {
                find(COLUMNS[at].name).or_else(|| find(COLUMNS[at].old))
            }),
            of_children: OF_CHILDREN.map(|(name, ..)| find(name)),
        };
        columns.values.iter().any(Option::is_some).then_some(columns)
    }
}

/// A row that was read.
struct Reading {
    time_s: u64,
    wall_s: Option<u64>,
    line: u64,
    row: Row,
}

fn series(
    name: &str,
    text: &mut dyn BufRead,
    push: &mut Push<'_>,
) -> Result<Imported, ImportError> {
    let not_a_log = || ImportError::NotALog { name: name.to_owned(), tool: "prmon" };
    let mut line = Vec::new();
    if next(name, text, &mut line)?.is_none() {
        return Err(not_a_log());
    }
    let columns = Columns::of(&line).ok_or_else(not_a_log)?;
    let mut readings: Vec<Reading> = Vec::new();
    let mut remarks = Vec::new();
    let mut number = 1;
    while let Some(has_end) = next(name, text, &mut line)? {
        number += 1;
        match reading(&columns, &line, number) {
            Ok(reading) => readings.push(reading),
            // prmon was killed while it wrote.
            Err(_) if !has_end && !readings.is_empty() => {
                remarks.push(format!("the end of the file cuts its last row (line {number})"));
            }
            Err(why) => return Err(ImportError::Row { name: name.to_owned(), line: number, why }),
        }
        if readings.len() > ROWS_MAX {
            let why = format!("there are more than {ROWS_MAX} rows");
            return Err(ImportError::Row { name: name.to_owned(), line: number, why });
        }
    }
    // prmon_compress_output.py writes the rows by column of which it kept them.
    readings.sort_by_key(|reading| reading.time_s);
    let Some(first) = readings.first() else { return Err(not_a_log()) };
    let begin_s = first.time_s.saturating_sub(first.wall_s.unwrap_or(0));
    let interval_ns = interval_s(&readings).saturating_mul(SECOND_NS);
    let mut emit = Emitter::new(push);
    attach(&mut emit);
    let mut last_ns = START_NS;
    let mut so_far = SoFar::default();
    for reading in &readings {
        let since_ns = reading.time_s.saturating_sub(begin_s).saturating_mul(SECOND_NS);
        last_ns = last_ns.saturating_add(1).max(START_NS.saturating_add(since_ns));
        if let Some(row) = so_far.take(reading) {
            add(&mut emit, last_ns, &row);
        }
    }
    if let Some(error) = emit.take_error() {
        return Err(ImportError::Write(error));
    }
    let mut method = "of the whole process tree, as prmon read it from time to time".to_owned();
    for says in so_far.says() {
        method.push_str("; ");
        method.push_str(&says.replace("\n  ", " "));
        remarks.push(says);
    }
    let found = Found {
        known: so_far.known,
        method,
        begin_s,
        ended_ns: last_ns,
        rows: readings.len() as u64,
        interval_ns,
        remarks,
    };
    Ok(imported(&emit, found))
}

/// Reads a row.
fn reading(columns: &Columns, line: &[u8], number: u64) -> Result<Reading, String> {
    let cells: Vec<&[u8]> = line.split(|byte| *byte == b'\t').map(<[u8]>::trim_ascii).collect();
    let value = |at: usize, name: &str, unit: f64| -> Result<Option<u64>, String> {
        let wrong = || format!("there is no number for {name}");
        let cell = cells.get(at).ok_or_else(wrong)?;
        // `prmon_compress_output.py --skip-interpolate` leaves out what it has not kept.
        if cell.is_empty() {
            return Ok(None);
        }
        let value = std::str::from_utf8(cell).ok().and_then(|cell| cell.parse().ok());
        value.and_then(|value| scaled(value, unit)).map(Some).ok_or_else(wrong)
    };
    let time_s = value(columns.time, "Time", 1.0)?.ok_or("there is no number for Time")?;
    let wall_s = columns.wall.map(|at| value(at, "wtime", 1.0)).transpose()?.flatten();
    let mut row = Row::default();
    for (at, column) in columns.values.iter().enumerate() {
        if let Some(place) = column {
            row[at] = value(*place, COLUMNS[at].name, COLUMNS[at].unit)?;
        }
    }
    for ((name, _, at), place) in OF_CHILDREN.into_iter().zip(columns.of_children) {
        if let Some(place) = place {
            add_children(&mut row, at, value(place, name, COLUMNS[at].unit)?);
        }
    }
    Ok(Reading { time_s, wall_s, line: number, row })
}

fn add_children(row: &mut Row, at: usize, of_children: Option<u64>) {
    if let (Some(own), Some(of_children)) = (row[at], of_children) {
        row[at] = Some(own.saturating_add(of_children));
    }
}

/// A number that is not negative, in another unit.
fn scaled(value: f64, unit: f64) -> Option<u64> {
    let scaled = (value * unit).round();
    // The conversion saturates.
    (value >= 0.0 && scaled.is_finite()).then_some(scaled as u64)
}

/// The median of the seconds between rows, at least one.
fn interval_s(readings: &[Reading]) -> u64 {
    let mut between: Vec<u64> =
        readings.windows(2).map(|pair| pair[1].time_s.saturating_sub(pair[0].time_s)).collect();
    between.sort_unstable();
    between.get(between.len() / 2).copied().unwrap_or(1).max(1)
}

/// State after the rows so far.
#[derive(Default)]
struct SoFar {
    /// The last value of each column, of those that grow the largest.
    last: Row,
    known: [bool; COLUMNS.len()],
    /// Rows in which a column that grows was below that, and the line of the first.
    fallen: u64,
    first_fallen: u64,
    /// Rows in which a cell was empty.
    empty: u64,
    /// Rows of zeros.
    blank: u64,
}

impl SoFar {
    /// The values at a row; `None` if prmon found no process any more.
    ///
    /// The counters of a process are lost with it, unless its parent waits for it, and in the last row there is often no
    /// process left: a counter that falls says nothing of what was used. It was at least the largest.
    fn take(&mut self, reading: &Reading) -> Option<Row> {
        let row = &reading.row;
        for (known, value) in self.known.iter_mut().zip(row) {
            *known |= value.is_some();
        }
        let is_blank = row.iter().flatten().all(|value| *value == 0);
        if is_blank && self.last.iter().flatten().any(|value| *value > 0) {
            self.blank += 1;
            return None;
        }
        let fell = |at: usize| COLUMNS[at].grows && row[at].is_some() && row[at] < self.last[at];
        if (0..COLUMNS.len()).any(fell) {
            self.fallen += 1;
            if self.fallen == 1 {
                self.first_fallen = reading.line;
            }
        }
        let mut is_empty = false;
        for (at, last) in self.last.iter_mut().enumerate() {
            is_empty |= self.known[at] && row[at].is_none();
            *last = match (row[at], COLUMNS[at].grows) {
                (Some(value), true) => Some(last.unwrap_or(0).max(value)),
                (Some(value), false) => Some(value),
                (None, _) => *last,
            };
        }
        self.empty += u64::from(is_empty);
        let mut made = self.last;
        // Memory is read as a whole or not at all.
        if row[RSS].is_none() || row[PSS].is_none() {
            made[PSS] = None;
        }
        Some(made)
    }

    fn says(&self) -> Vec<String> {
        let rows = |count: u64| match count {
            1 => "1 row".to_owned(),
            count => format!("{count} rows"),
        };
        let mut says = Vec::new();
        if self.fallen > 0 {
            says.push(format!(
                "in {} (the first in line {}) counters are below an earlier row:\n  the largest values count, so at least \
                 this much was used",
                rows(self.fallen),
                self.first_fallen
            ));
        }
        if self.blank > 0 {
            says.push(format!("{} of zeros left out: no process was found", rows(self.blank)));
        }
        if self.empty > 0 {
            says.push(format!(
                "{} with empty cells, for which the values before stand",
                rows(self.empty)
            ));
        }
        says
    }
}

/// Reads a line; whether it has an end, `None` at the end of the file.
fn next(
    name: &str,
    text: &mut dyn BufRead,
    line: &mut Vec<u8>,
) -> Result<Option<bool>, ImportError> {
    line.clear();
    let fail = |source| ImportError::Read { name: name.to_owned(), source };
    let read = Read::take(text, LINE_MAX).read_until(b'\n', line).map_err(fail)?;
    let has_end = line.last() == Some(&b'\n');
    while line.last().is_some_and(|byte| *byte == b'\n' || *byte == b'\r') {
        line.pop();
    }
    Ok((read > 0).then_some(has_end))
}

fn attach(emit: &mut Emitter<'_>) {
    let mut attach = Attach::new_zeroed();
    attach.head = head(Kind::Attach, 1, START_NS);
    (attach.process, attach.comm, attach.start_ns) = (1, COMM, START_NS);
    emit.put(Stream::Lifecycle, attach.head, &attach, &[]);
}

fn add(emit: &mut Emitter<'_>, time_ns: u64, row: &Row) {
    let of = |at: usize| row[at].unwrap_or(0);
    let mut sample = Sample::new_zeroed();
    sample.head = head(Kind::Sample, 1, time_ns);
    (sample.process, sample.state) = (1, u16::from(b'?'));
    (sample.utime_ns, sample.stime_ns) = (of(UTIME), of(STIME));
    sample.run_ns = sample.utime_ns.saturating_add(sample.stime_ns);
    (sample.rchar, sample.wchar) = (of(RCHAR), of(WCHAR));
    (sample.read_bytes, sample.write_bytes) = (of(READ), of(WRITE));
    sample.rss_pages = of(RSS) / PAGE_BYTES;
    emit.put(Stream::Samples, sample.head, &sample, &[]);
    if row[PSS].is_none() || row[RSS].is_none() {
        return;
    }
    let mut memory = Memory::new_zeroed();
    memory.head = head(Kind::Memory, 1, time_ns);
    memory.process = 1;
    (memory.rss_bytes, memory.pss_bytes) = (of(RSS), of(PSS));
    (memory.swap_bytes, memory.vmem_bytes) = (of(SWAP), of(VMEM));
    emit.put(Stream::Samples, memory.head, &memory, &[]);
}

/// Facts found in a file.
struct Found {
    known: [bool; COLUMNS.len()],
    method: String,
    begin_s: u64,
    ended_ns: u64,
    rows: u64,
    interval_ns: u64,
    remarks: Vec<String>,
}

fn imported(emit: &Emitter<'_>, found: Found) -> Imported {
    let begin_ns = found.begin_s.saturating_mul(SECOND_NS);
    let mut header = header::blank("prmon", SCOPE_TREE, begin_ns);
    // Rows are at whole seconds.
    header.interval_ns = SECOND_NS;
    header.tick_ns = Some(TICK_NS);
    let has = |columns: &[usize]| columns.iter().all(|at| found.known[*at]);
    let has_memory = has(&[RSS, PSS]);
    let has_cpu = has(&[UTIME, STIME]);
    header.memory_interval_ns = has_memory.then_some(found.interval_ns);
    let known = [
        (Quantity::Cpu, has_cpu),
        (Quantity::Split, has_cpu),
        (Quantity::Io, has(&[RCHAR, WCHAR, READ, WRITE])),
        (Quantity::Memory, has_memory),
        (Quantity::Samples, true),
        (Quantity::Times, true),
    ];
    for (quantity, _) in known.into_iter().filter(|(_, known)| *known) {
        let knowledge = Knowledge::Estimate { method: found.method.clone() };
        header.knowledge.insert(quantity.name().to_owned(), knowledge);
    }
    let written = Written {
        ended_ns: found.ended_ns,
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
        lines: found.rows,
        doubts: Doubts::default(),
        remarks: found.remarks,
    }
}

#[cfg(test)]
mod tests;
