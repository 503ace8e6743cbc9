//! Repeats a recording of four tasks and checks the invariants of the result.

use std::collections::HashSet;
use std::io::Cursor;

use proctrace_trace::{Ended, Outcome, PayloadUsage, RecorderUsage};
use proctrace_wire::layout::{Again, Attach, EnvFixed, Fork, Head, MissFixed, Tick};

use super::*;

const ROOT: u32 = 1;
const ROOT_PID: i32 = 500;
/// The recorder's pid, which is not in the recording.
const RECORDER_PID: i32 = 499;

/// A record of this kind whose fields are all zero.
fn blank(kind: Kind, size: usize) -> Vec<u8> {
    let size_bytes = u16::try_from(size).unwrap();
    let head = Head { kind: kind as u16, size: size_bytes, task: 0, time_ns: 0 };
    let mut bytes = head.as_bytes().to_vec();
    bytes.resize(size, 0);
    bytes
}

macro_rules! record {
    ($kind:ident, $type:ty, $task:expr, $time:expr, $($field:ident: $value:expr),* $(,)?) => {{
        let bytes = blank(Kind::$kind, size_of::<$type>());
        let Record::$kind(mut record, ..) = decode(&bytes).unwrap() else { panic!("not one") };
        record.head.task = $task;
        record.head.time_ns = $time;
        $(record.$field = $value;)*
        record.as_bytes().to_vec()
    }};
}

/// A task by serial, process, pid and tid.
#[derive(Clone, Copy)]
struct Who(u32, u32, i32, i32);

const SHELL: Who = Who(ROOT, ROOT, ROOT_PID, ROOT_PID);
const CHILD: Who = Who(2, 2, 32_760, 32_760);
const THREAD: Who = Who(3, 2, 32_760, 32_761);
/// The pids have wrapped around.
const GRANDCHILD: Who = Who(4, 4, 300, 300);

fn fork(time_ns: u64, forker: Who, child: Who) -> Vec<u8> {
    record!(
        Fork, Fork, forker.0, time_ns,
        process: forker.1, tgid: forker.2, tid: forker.3,
        child: child.0, child_process: child.1, child_tgid: child.2, child_tid: child.3,
        child_tgid_ns: child.2, child_tid_ns: child.3, parent_tgid: forker.2,
        start_ns: time_ns - 1,
    )
}

fn exit(time_ns: u64, start_ns: u64, who: Who, parent_tgid: i32, waited_ns: (u64, u64)) -> Vec<u8> {
    record!(
        Exit, Exit, who.0, time_ns,
        process: who.1, tgid: who.2, tid: who.3, parent_tgid: parent_tgid, start_ns: start_ns,
        run_ns: 11, waited_utime_ns: waited_ns.0, waited_stime_ns: waited_ns.1,
    )
}

fn sample(time_ns: u64, who: Who, run_ns: u64) -> Vec<u8> {
    record!(
        Sample, Sample, who.0, time_ns,
        process: who.1, tgid: who.2, tid: who.3, run_ns: run_ns,
    )
}

fn miss(time_ns: u64, who: Who) -> Vec<u8> {
    record!(LookupFailed, MissFixed, who.0, time_ns, error: 2)
}

fn miss_named(time_ns: u64, who: Who, number: u32) -> Vec<u8> {
    record!(LookupNamed, Named, who.0, time_ns, error: 2, number: number, slot: number)
}

fn again(time_ns: u64, who: Who, number: u32) -> Vec<u8> {
    record!(LookupAgain, Again, who.0, time_ns, number: number)
}

/// A shell runs a program that has a thread and a child.
fn recording() -> Vec<(Stream, Vec<u8>)> {
    use Stream::{Lifecycle, Lookups, Samples};
    let attach = record!(
        Attach, Attach, ROOT, 100,
        process: ROOT, tgid: ROOT_PID, tid: ROOT_PID, parent_tgid: RECORDER_PID,
        bits: ATTACH_ROOT, start_ns: 90,
    );
    vec![
        // A block of another stream may come first.
        (Lookups, miss(150, SHELL)),
        (Lookups, miss(215, THREAD)),
        (Lifecycle, attach),
        (Lifecycle, fork(200, SHELL, CHILD)),
        (Lifecycle, record!(Env, EnvFixed, 2, 205, env_id: 77)),
        (Lifecycle, fork(210, CHILD, THREAD)),
        (Lifecycle, fork(220, THREAD, GRANDCHILD)),
        (Samples, sample(160, SHELL, 1)),
        (Samples, record!(Tick, Tick, 0, 161, begin_ns: 160)),
        (Samples, sample(230, SHELL, 2)),
        (Samples, sample(231, CHILD, 3)),
        (Samples, record!(Tick, Tick, 0, 232, begin_ns: 230)),
        (Samples, sample(250, SHELL, 4)),
        (Samples, record!(Tick, Tick, 0, 251, begin_ns: 250)),
        (Lifecycle, exit(245, 209, THREAD, ROOT_PID, (0, 0))),
        (Lifecycle, exit(240, 219, GRANDCHILD, 32_760, (0, 0))),
        (Lifecycle, exit(260, 199, CHILD, ROOT_PID, (11, 0))),
        (Lifecycle, exit(300, 90, SHELL, RECORDER_PID, (20, 4))),
    ]
}

fn template(records: Vec<(Stream, Vec<u8>)>, pid_max: i32) -> Result<Template> {
    let header = serde_json::json!({
        "wire_version": proctrace_wire::WIRE_VERSION, "recorder": "1.2", "backend": "ebpf",
        "command": ["sh"], "scope": "command", "cgroup": null, "cwd": "/", "host": "h",
        "kernel": "6.18", "machine": "x86_64", "cpus": 2, "page_bytes": 4096,
        "memory_bytes": 1, "started_unix_ns": 1, "started_ns": 80, "interval_ns": 20,
        "memory_interval_ns": null, "ring_bytes": 1, "on_full": "drop", "misses": ["open"],
        "env_names": [], "hooks": [],
    });
    let trailer = Trailer {
        ended_ns: 310,
        ended: Ended::TreeExited,
        payload: Some(PayloadUsage {
            outcome: Outcome::Code(0),
            exited_ns: 305,
            user_ns: 31,
            system_ns: 4,
            maxrss_bytes: 1,
        }),
        tasks: 4,
        records: BTreeMap::new(),
        losses: Vec::new(),
        cgroup: None,
        machine: None,
        recorder: RecorderUsage::default(),
        programs: Vec::new(),
        job: std::collections::BTreeMap::new(),
        held_up: None,
        of_node: None,
    };
    Template::new(serde_json::from_value(header)?, trailer, records, pid_max)
}

const COPIES: u64 = 5;

/// The contents of the written file.
fn replicated(copies: u64) -> (Replica, Header, Trailer, Vec<Vec<u8>>) {
    let template = template(recording(), 32_768).unwrap();
    let (replica, bytes) = template.write(copies, Vec::new()).unwrap();
    let mut reader = Reader::new(Cursor::new(bytes), "memory").unwrap();
    let mut records = Vec::new();
    while let Some(block) = reader.next_block() {
        records.extend(Frames::new(&block.bytes).map(|frame| frame.unwrap().bytes.to_vec()));
    }
    assert_eq!(reader.damage(), []);
    (replica, reader.header().clone(), reader.trailer().unwrap().clone(), records)
}

fn decoded(records: &[Vec<u8>]) -> impl Iterator<Item = Record<'_>> {
    records.iter().map(|record| decode(record).unwrap())
}

/// The lifetimes of all tasks except the root: serial, pid, parent's pid, from, to.
fn lives(records: &[Vec<u8>]) -> Vec<(u32, i32, i32, u64, u64)> {
    let exits: HashMap<u32, Exit> = decoded(records)
        .filter_map(|record| match record {
            Record::Exit(exit) => Some((exit.head.task, exit)),
            _ => None,
        })
        .collect();
    let forks = decoded(records).filter_map(|record| match record {
        Record::Fork(fork) => Some(fork),
        _ => None,
    });
    forks
        .map(|fork| {
            let end = exits[&fork.child];
            assert_eq!((end.process, end.tid), (fork.child_process, fork.child_tid));
            assert_eq!(end.start_ns, fork.start_ns);
            (fork.child, fork.child_tid, fork.parent_tgid, fork.start_ns, end.head.time_ns)
        })
        .collect()
}

#[test]
fn serials_are_unique_and_what_they_refer_to_is_there() {
    let (replica, _, _, records) = replicated(COPIES);
    let mut born = HashSet::from([ROOT]);
    for record in decoded(&records) {
        if let Record::Fork(fork) = record {
            assert!(born.insert(fork.child), "{} is born twice", fork.child);
        }
    }
    assert_eq!(born.len() as u64, 1 + 3 * COPIES);
    assert_eq!(replica.tasks, 1 + 3 * COPIES);
    assert_eq!(born.iter().max(), Some(&(1 + 3 * COPIES as u32)), "there is a hole");
    let mut ended = HashSet::new();
    for record in decoded(&records) {
        let (task, process) = match record {
            Record::Fork(fork) => {
                assert!(born.contains(&fork.child_process));
                assert!(fork.head.task < fork.child, "a child is older than its forker");
                (fork.head.task, fork.process)
            }
            Record::Exit(exit) => {
                assert!(ended.insert(exit.head.task), "{} ends twice", exit.head.task);
                (exit.head.task, exit.process)
            }
            Record::Sample(sample) => (sample.head.task, sample.process),
            Record::LookupFailed(miss, _) => (miss.head.task, ROOT),
            _ => continue,
        };
        assert!(born.contains(&task) && born.contains(&process), "{record:?}");
    }
    assert_eq!(ended, born);
}

#[test]
fn no_pid_is_taken_twice_at_a_time() {
    let (_, _, _, records) = replicated(COPIES);
    let lives = lives(&records);
    for (at, (serial, pid, parent, from, to)) in lives.iter().enumerate() {
        assert!(from < to);
        assert!(![ROOT_PID, RECORDER_PID].contains(pid), "{pid} is someone else's");
        let alive = |pid: i32, other: &(u32, i32, i32, u64, u64)| {
            other.1 == pid && other.3 <= *from && *from <= other.4
        };
        let others = lives.iter().enumerate().filter(|(other, _)| *other != at);
        assert!(!others.clone().any(|(_, other)| alive(*pid, other)), "{pid} of {serial}");
        let known = *parent == ROOT_PID || others.clone().any(|(_, other)| alive(*parent, other));
        assert!(known, "the parent of {serial}, {parent}, is not there");
    }
}

#[test]
fn the_root_stands_once_and_has_waited_for_all() {
    let (replica, header, trailer, records) = replicated(COPIES);
    let count = |kind: &str| replica.kinds[kind];
    assert_eq!((count("attach"), count("env")), (1, 1));
    assert_eq!((count("fork"), count("exit")), (3 * COPIES, 3 * COPIES + 1));
    assert_eq!(count("lookup_failed"), COPIES + 1, "the root looked up once");
    assert_eq!((count("tick"), count("sample")), (2 * COPIES + 1, 3 * COPIES + 1));
    assert_eq!(replica.records, records.len() as u64);
    assert_eq!(trailer.records, replica.kinds);

    let later_ns = (COPIES - 1) * (260 - 200 + PAUSE_NS);
    let root_exit = decoded(&records).find_map(|record| match record {
        Record::Exit(exit) if exit.head.task == ROOT => Some(exit),
        _ => None,
    });
    let root_exit = root_exit.unwrap();
    assert_eq!(root_exit.head.time_ns, 300 + later_ns);
    assert_eq!((root_exit.start_ns, root_exit.run_ns), (90, 11));
    assert_eq!((root_exit.waited_utime_ns, root_exit.waited_stime_ns), (100, 20));
    assert_eq!((root_exit.tgid, root_exit.parent_tgid), (ROOT_PID, RECORDER_PID));

    let payload = trailer.payload.unwrap();
    assert_eq!((payload.user_ns, payload.system_ns), (31 + 80, 4 + 16));
    assert_eq!((payload.exited_ns, trailer.ended_ns), (305 + later_ns, 310 + later_ns));
    assert_eq!(trailer.tasks, 1 + 3 * COPIES);
    assert_eq!(header.recorder, "1.2, 5 times over by cargo xtask bench analyze");
}

#[test]
fn what_the_root_has_used_never_falls() {
    let (_, _, _, records) = replicated(3);
    let used: Vec<u64> = decoded(&records)
        .filter_map(|record| match record {
            Record::Sample(sample) if sample.head.task == ROOT => Some(sample.run_ns),
            _ => None,
        })
        .collect();
    assert_eq!(used, [1, 2, 4, 4, 4, 4, 4]);
}

#[test]
fn once_is_the_recording_itself_but_for_pids() {
    let (replica, _, trailer, records) = replicated(1);
    assert_eq!(replica.records, recording().len() as u64);
    let heads = |records: &[Vec<u8>]| -> HashSet<(u64, u32, u16)> {
        let head = |record: &Vec<u8>| Frames::new(record).next().unwrap().unwrap().head;
        records.iter().map(head).map(|head| (head.time_ns, head.task, head.kind)).collect()
    };
    let before: Vec<Vec<u8>> = recording().into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(heads(&records), heads(&before));
    assert_eq!(trailer.payload.unwrap().user_ns, 31);
}

#[test]
fn a_size_is_met_as_nearly_as_whole_repetitions_can() {
    let template = template(recording(), 32_768).unwrap();
    // 6 records occur once and 12 in each repetition
    for (wanted, copies) in [(0, 1), (18, 1), (23, 1), (24, 2), (35, 2), (6 + 1200, 100)] {
        assert_eq!(template.copies_for(wanted), copies, "{wanted}");
        let (replica, _) = template.write(copies, Vec::new()).unwrap();
        assert_eq!(replica.records, 6 + 12 * copies);
    }
}

#[test]
fn what_cannot_be_repeated_is_refused() {
    let refused = |change: fn(&mut Vec<(Stream, Vec<u8>)>)| {
        let mut records = recording();
        change(&mut records);
        template(records, 32_768).unwrap_err().to_string()
    };
    assert_eq!(refused(|records| drop(records.remove(14))), "tasks are still alive");
    assert_eq!(refused(|records| drop(records.pop())), "the command has not ended");
    assert_eq!(
        refused(|records| drop(records.remove(2))),
        "the recording has 0 commands instead of one"
    );
    let with_thread = refused(|records| {
        let thread = Who(9, ROOT, ROOT_PID, 777);
        records.push((Stream::Lifecycle, fork(290, SHELL, thread)));
        records.push((Stream::Lifecycle, exit(295, 289, thread, RECORDER_PID, (0, 0))));
    });
    assert_eq!(with_thread, "the command has threads");
}

#[test]
fn what_is_told_by_number_has_been_told_in_full() {
    let mut records = recording();
    let lookups = [
        // the root's, once; the others in each repetition
        miss_named(155, SHELL, 1),
        miss_named(216, THREAD, 2),
        again(217, CHILD, 1),
        again(218, THREAD, 2),
        again(219, THREAD, 1),
        miss_named(219, THREAD, 3),
    ];
    records.extend(lookups.map(|record| (Stream::Lookups, record)));
    let template = template(records, 32_768).unwrap();
    let (replica, bytes) = template.write(COPIES, Vec::new()).unwrap();
    let mut reader = Reader::new(Cursor::new(bytes), "memory").unwrap();
    let (mut told, mut repeated) = (HashMap::new(), 0);
    while let Some(block) = reader.next_block() {
        for frame in Frames::new(&block.bytes) {
            match Record::decode(frame.unwrap()).unwrap() {
                Record::LookupNamed(miss, _) if miss.number != 0 => {
                    assert!(miss.slot <= 3, "slots are places, which are used again");
                    assert_eq!(told.insert(miss.number, miss.slot), None);
                }
                Record::LookupAgain(again) => {
                    assert!(told.contains_key(&again.number), "{} is not known", again.number);
                    repeated += 1;
                }
                _ => {}
            }
        }
    }
    // The first task to repeat the root's look-up records it in full, except in the first
    // repetition.
    assert_eq!(told.len() as u64, 3 * COPIES);
    assert_eq!(repeated, 3 + 2 * (COPIES - 1));
    assert_eq!(replica.kinds["lookup_again"], repeated);
    assert_eq!(replica.records, replica.kinds.values().sum::<u64>());
}
