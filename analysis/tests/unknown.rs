//! What a recording does not know never becomes a number: each quantity in turn is taken out of a
//! real recording, and every figure that is left is the one that the whole recording has.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use proctrace_analysis::{Analysis, Options, Recording, Rules, Section, analyse};
use proctrace_findings::{Cell, Knowledge as State, Table};
use proctrace_trace::{Block, Header, Knowledge, Quantity, Reader, Trailer, Writer};
use proctrace_wire::{Call, Family, Frame, Frames, IntoBytes, Kind, Record, Stream};
use serde_json::Value;

/// A real recording, in pieces.
struct Pieces {
    header: Header,
    trailer: Trailer,
    blocks: Vec<Block>,
}

fn pieces() -> Pieces {
    let path = "../fixtures/traces/alice-o2-before.ptrace";
    let mut reader = Reader::open(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let mut blocks = Vec::new();
    while let Some(block) = reader.next_block() {
        blocks.push(block);
    }
    let (header, trailer) = (reader.header().clone(), reader.trailer().unwrap().clone());
    Pieces { header, trailer, blocks }
}

/// Zeroes these fields of a record, where it has them.
fn zeroed(frame: Frame<'_>, names: &[&str]) -> Vec<u8> {
    let mut bytes = frame.bytes.to_vec();
    let kind = Kind::from_number(frame.head.kind).unwrap();
    for field in kind.layout().fields.iter().filter(|field| names.contains(&field.name)) {
        bytes[field.offset..field.offset + field.size].fill(0);
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

/// Which failed look-ups are of a family, and how many of them each task had.
#[derive(Default)]
struct Lookups {
    numbers: HashMap<u32, bool>,
    dropped: HashMap<u32, u32>,
}

impl Lookups {
    /// Whether this one is to be dropped.
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

/// The record as a source would have it that does not know a quantity; None if it had none.
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
        (Q::PeakRss, _) => &["maxrss_pages", "maxrss_ever_pages", "maxrss_before_pages"],
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

/// The recording as a source would have made it that does not know a quantity.
fn recording_without(pieces: &Pieces, quantity: Option<Quantity>) -> Recording {
    let mut header = pieces.header.clone();
    let mut lookups = Lookups::default();
    if let Some(quantity) = quantity {
        let reason = "taken out".to_owned();
        header.knowledge.insert(quantity.name().into(), Knowledge::Absent { reason });
        // Look-ups first: exits count what their tasks did.
        for block in pieces.blocks.iter().filter(|block| block.info.stream == Stream::Lookups) {
            for frame in Frames::new(&block.bytes).map(Result::unwrap) {
                lookups.drops(frame, quantity);
            }
        }
        lookups.numbers.clear();
    }
    let dropped = std::mem::take(&mut lookups.dropped);
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    for block in &pieces.blocks {
        let (mut bytes, mut records) = (Vec::new(), 0);
        for frame in Frames::new(&block.bytes).map(Result::unwrap) {
            let record = match quantity {
                Some(quantity) => without(frame, quantity, &mut lookups, &dropped),
                None => Some(frame.bytes.to_vec()),
            };
            if let Some(record) = record {
                bytes.extend(record);
                records += 1;
            }
        }
        let info = &block.info;
        writer.append(info.stream, records, info.first_ns, info.last_ns, &bytes).unwrap();
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), writer.finish(&pieces.trailer).unwrap().0).unwrap();
    let recording = Recording::load(file.path(), &Rules::built_in()).unwrap();
    assert_eq!(recording.damage, []);
    recording
}

/// Every number by where it stands; elements of lists by their words, not by their place.
fn numbers(value: &Value, path: &str, out: &mut BTreeMap<String, f64>) {
    match value {
        Value::Number(number) => {
            assert!(out.insert(path.to_owned(), number.as_f64().unwrap()).is_none(), "{path}");
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                numbers(value, &format!("{path}.{name}"), out);
            }
        }
        Value::Array(items) => {
            let mut seen: HashMap<String, usize> = HashMap::new();
            for (at, item) in items.iter().enumerate() {
                let name = match item.as_object() {
                    Some(fields) => {
                        let words = fields.iter().filter(|(name, value)| {
                            value.is_string() && *name != "main_spawner" || *name == "pid"
                        });
                        let words: Vec<String> =
                            words.map(|(_, value)| value.to_string()).collect();
                        let nth = seen.entry(words.join(" ")).or_default();
                        *nth += 1;
                        format!("{}#{nth}", words.join(" "))
                    }
                    None => at.to_string(),
                };
                numbers(item, &format!("{path}[{name}]"), out);
            }
        }
        _ => {}
    }
}

/// The same of a table; rows by their words. Numbers that are written out are there as numbers, too;
/// where each row has a unit of its own, the figure says it.
fn numbers_of_table(table: &Table, out: &mut BTreeMap<String, f64>) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for row in 0..table.height() {
        let cells = || table.columns.iter().map(|column| (column.name, column.values.get(row)));
        let text = |name: &str| match table.named(name)?.values.get(row) {
            Cell::Text(text) => Some(text),
            _ => None,
        };
        let words: Vec<String> = cells()
            .filter(|(name, cell)| matches!(cell, Cell::Text(_)) || *name == "pid")
            .filter(|(name, _)| *name != "value")
            .map(|(_, cell)| format!("{cell:?}"))
            .collect();
        let words = words.join(" ");
        let nth = seen.entry(words.clone()).or_default();
        *nth += 1;
        for (name, cell) in cells() {
            let number = match cell {
                Cell::Whole(number) => number as f64,
                Cell::Real(number) => number,
                _ => continue,
            };
            let name = if name == "number" { text("figure").unwrap_or(name) } else { name };
            out.insert(format!("{}[{words}#{nth}].{name}", table.name), number);
        }
    }
}

/// Everything that is said of a recording, and how many tables and charts.
fn figures(recording: &Recording) -> BTreeMap<String, f64> {
    let mut out = BTreeMap::new();
    let findings = analyse(recording).unwrap();
    let mut json = serde_json::to_value(&findings).unwrap();
    // Not figures of the recording: how many processes a gap concerns, and where series begin.
    json["blind_spots"] = Value::Null;
    // Laws compare what was recorded with what was counted, however little that was.
    json["health"]["laws"] = Value::Null;
    json["correlations"]["known_from_bin"] = Value::Null;
    numbers(&json, "findings", &mut out);
    for metric in Analysis::of(recording).metrics().unwrap().metrics {
        out.insert(format!("metric {metric}"), metric.value);
    }
    for section in Section::ALL {
        for table in section.of(recording, &Options::default()).unwrap().tables {
            // What findings have as blind spots and laws; see above.
            if !["unseen", "laws"].contains(&table.name) {
                numbers_of_table(&table, &mut out);
            }
        }
    }
    out
}

/// Times of processes are rounded to nanoseconds before they are added up.
fn close(figure: &str, value: f64, expected: f64) -> bool {
    let rounding = if figure.ends_with("_ns") { 1_000.0 } else { 1e-6 };
    (value - expected).abs() <= (1e-9 * expected.abs()).max(rounding)
}

/// Without arguments a script has the name of its interpreter, so groups are others.
fn depends_on_names(figure: &str) -> bool {
    let totals = ["findings.summary.", "findings.run.", "findings.health.", "metric total_"];
    !totals.iter().any(|total| figure.starts_with(total))
        || ["system", "user", "ticks", "maxrss_program", "commands", "framework"]
            .iter()
            .any(|part| figure.contains(part))
}

#[test]
fn what_is_taken_out_is_missed_and_nothing_else_changes() {
    let pieces = pieces();
    let whole = figures(&recording_without(&pieces, None));
    assert!(whole.len() > 1_000, "{}", whole.len());
    let mut invented: Vec<String> = Vec::new();
    for quantity in Quantity::ALL {
        let recording = recording_without(&pieces, Some(quantity));
        let known = analyse(&recording).unwrap().known;
        let state = known.iter().find(|known| known.quantity == quantity.name()).unwrap();
        assert_eq!(state.state, State::Absent, "{state:?}");
        let found = figures(&recording);
        for (figure, value) in &found {
            if quantity == Quantity::Argv && depends_on_names(figure) {
                continue;
            }
            let expected = whole.get(figure);
            let same = expected.is_some_and(|expected| close(figure, *value, *expected));
            if !same {
                let name = quantity.name();
                invented.push(format!("without {name}: {figure} is {value}, not {expected:?}"));
            }
        }
        // What this recording has none of cannot be missed.
        let nothing_to_miss =
            [Quantity::Memory, Quantity::Environment, Quantity::Argv, Quantity::LookupsChdir];
        if !nothing_to_miss.contains(&quantity) {
            assert!(found.len() < whole.len(), "nothing needs {}", quantity.name());
        }
    }
    let shown = invented.len().min(80);
    assert!(invented.is_empty(), "{} of them: {:#?}", invented.len(), &invented[..shown]);
}

#[test]
fn old_traces_say_what_they_were_asked_for() {
    let pieces = pieces();
    let mut header = pieces.header.clone();
    assert!(header.knowledge.is_empty());
    assert_eq!(header.knows(Quantity::Cpu), Knowledge::Exact);
    assert_eq!(header.knows(Quantity::LookupsStat), Knowledge::Exact);
    assert!(matches!(header.knows(Quantity::Memory), Knowledge::Absent { .. }));
    assert!(matches!(header.knows(Quantity::Split), Knowledge::Estimate { .. }));
    header.misses.retain(|family| family != "stat");
    let reason = "left out by --misses".to_owned();
    assert_eq!(header.knows(Quantity::LookupsStat), Knowledge::Absent { reason });
    // A quantity of a later version is left alone.
    let reason = "?".to_owned();
    header.knowledge.insert("tachyons".into(), Knowledge::Absent { reason });
    let text = serde_json::to_string(&header).unwrap();
    assert_eq!(serde_json::from_str::<Header>(&text).unwrap(), header);
}

#[test]
fn every_table_and_chart_says_what_it_needs() {
    let recording = recording_without(&pieces(), None);
    for section in Section::ALL {
        let content = section.of(&recording, &Options::default()).unwrap();
        let names = content.tables.iter().map(|table| table.name);
        for name in names.chain(content.charts.iter().map(|chart| chart.name)) {
            assert!(proctrace_analysis::says_what_it_needs(name), "{name}");
        }
    }
}
