//! Logs of prmon as records.

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
    let [Record::Attach(_), Record::Sample(sample), Record::Memory(memory)] = records[..] else {
        panic!("{records:?}")
    };
    assert_eq!((sample.run_ns, memory.pss_bytes), (11 * SECOND_NS, 150 << 10));
    assert!(matches!(imported.header.knows(Quantity::Io), Knowledge::Absent { .. }));
    assert!(matches!(imported.header.knows(Quantity::Cpu), Knowledge::Estimate { .. }));
    for wrong in ["{", "{}", r#"{"Max": {"wtime": 1}}"#] {
        assert_eq!(import(wrong).err().unwrap().to_string(), "prmon.txt is not a log of prmon");
    }
    // That of MemoryMonitor before it told the time.
    let error = import(r#"{"Max": {"maxPSS": 5}}"#).err().unwrap().to_string();
    assert!(error.contains("there is no wtime"), "{error}");
}

#[test]
fn wrong_rows_are_named() {
    for (text, wanted) in [
        ("", "prmon.txt is not a log of prmon"),
        ("a\tb\n1\t2\n", "prmon.txt is not a log of prmon"),
        ("Time\tpss\n", "prmon.txt is not a log of prmon"),
        ("Time\tpss\n1\tx\n", "prmon.txt, line 2: there is no number for pss"),
        ("Time\tpss\n1\t-5\n", "prmon.txt, line 2: there is no number for pss"),
        ("Time\tpss\n1\tinf\n", "prmon.txt, line 2: there is no number for pss"),
        ("Time\tpss\n1\n", "prmon.txt, line 2: there is no number for pss"),
        ("Time\tpss\n\n", "prmon.txt, line 2: there is no number for Time"),
    ] {
        assert_eq!(import(text).err().unwrap().to_string(), wanted, "{text:?}");
    }
}

type Triples = Vec<(u64, u64, u64)>;

/// Time, CPU seconds and bytes read of samples; time, PSS and virtual memory of memory readings.
fn samples(records: &[Vec<u8>]) -> (Triples, Triples) {
    let (mut samples, mut memory) = (Vec::new(), Vec::new());
    let since = |time_ns: u64| (time_ns - START_NS) / SECOND_NS;
    for bytes in records {
        match Record::decode(Frames::new(bytes).next().unwrap().unwrap()).unwrap() {
            Record::Sample(it) => {
                samples.push((since(it.head.time_ns), it.run_ns / SECOND_NS, it.read_bytes));
            }
            Record::Memory(it) => {
                memory.push((since(it.head.time_ns), it.pss_bytes >> 10, it.vmem_bytes >> 10));
            }
            _ => {}
        }
    }
    (samples, memory)
}

#[test]
fn counters_that_fall_stay_at_their_largest_and_it_is_said() {
    let rows = "Time\twtime\tstime\tutime\tpss\trss\tswap\tvmem\trchar\tread_bytes\twchar\twrite_bytes\n\
                100\t0\t0\t0\t50\t60\t0\t90\t1\t4096\t0\t0\n\
                160\t60\t10\t100\t500\t600\t0\t900\t1\t8192\t2\t4096\n\
                220\t120\t20\t90\t400\t500\t0\t800\t2\t4096\t4\t8192\n\
                280\t180\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\n";
    let (imported, records) = import(rows).unwrap();
    let (samples, memory) = samples(&records);
    assert_eq!(samples, [(0, 0, 4096), (60, 110, 8192), (120, 120, 8192)]);
    // The row of zeros is no reading, but the time has passed.
    assert_eq!(memory, [(0, 50, 90), (60, 500, 900), (120, 400, 800)]);
    assert_eq!(imported.trailer.ended_ns, START_NS + 180 * SECOND_NS);
    let said = imported.remarks.join("\n");
    assert!(said.contains("in 1 row (the first in line 4) counters are below"), "{said}");
    assert!(said.contains("1 row of zeros"), "{said}");
    let Knowledge::Estimate { method } = imported.header.knows(Quantity::Cpu) else { panic!() };
    assert!(method.contains("at least this much"), "{method}");
    let (imported, _) = import(ROWS).unwrap();
    assert_eq!(imported.remarks, [""; 0]);
}

#[test]
fn compressed_files_are_sorted_and_their_empty_cells_are_not_zero() {
    let rows = "Time\tstime\tutime\tpss\trss\tread_bytes\twtime\n\
                100\t0\t0\t50\t60\t4096\t1\n\
                300\t9.0\t\t70\t80\t\t201\n\
                200\t\t30\t\t90\t8192\t101\n";
    let (imported, records) = import(rows).unwrap();
    let (samples, memory) = samples(&records);
    assert_eq!(samples, [(1, 0, 4096), (101, 30, 8192), (201, 39, 8192)]);
    assert_eq!(memory, [(1, 50, 0), (201, 70, 0)]);
    assert!(imported.remarks[0].contains("2 rows with empty cells"), "{:?}", imported.remarks);
    assert_eq!(imported.header.memory_interval_ns, Some(100 * SECOND_NS));
}

#[test]
fn memory_monitor_has_other_names_for_the_same() {
    let rows = "Time\t\t\t\tVMEM\tPSS\tRSS\tSwap\trchar\twchar\trbytes\twbytes\n\
                1527087849\t125896\t11174\t15492\t0\t796\t1205\t14077952\t603566080\n\
                1527087910\t1913164\t1055367\t1063016\t0\t1272\t1498\t648536064\t753971200\n";
    let (imported, records) = import(rows).unwrap();
    let (samples, memory) = samples(&records);
    assert_eq!(samples, [(0, 0, 14_077_952), (61, 0, 648_536_064)]);
    assert_eq!(memory, [(0, 11174, 125_896), (61, 1_055_367, 1_913_164)]);
    let knows = |quantity| imported.header.knows(quantity);
    assert!(matches!(knows(Quantity::Io), Knowledge::Estimate { .. }));
    assert!(matches!(knows(Quantity::Cpu), Knowledge::Absent { .. }));
    // Later with CPU time, that of children apart, in seconds with a fraction.
    let rows = "Time\tPSS\tRSS\tutime\tstime\tcutime\tcstime\twtime\n\
                200\t5\t6\t1.5\t0.25\t1e+02\t0.25\t100\n";
    let (_, records) = import(rows).unwrap();
    assert_eq!(super::tests::samples(&records).0, [(100, 102, 0)]);
    let json = r#"{"Max": {"maxVMEM": 9, "maxPSS": 5, "maxRSS": 6, "maxSwap": 0, "totRBYTES": 7,
        "totUTIME": 1.5, "totSTIME": 0.5, "totCUTIME": 2, "totCSTIME": 0, "totWTIME": 8.0}}"#;
    let (imported, records) = import(json).unwrap();
    assert_eq!(super::tests::samples(&records), (vec![(8, 4, 7)], vec![(8, 5, 9)]));
    assert_eq!(imported.trailer.ended_ns, START_NS + 8 * SECOND_NS);
}

#[test]
fn a_row_that_the_end_cuts_is_left_out() {
    let (imported, records) = import(&format!("{ROWS}1700000009\t9\t1")).unwrap();
    assert_eq!(samples(&records).0.len(), 2);
    assert!(imported.remarks[0].contains("line 4"), "{:?}", imported.remarks);
}
