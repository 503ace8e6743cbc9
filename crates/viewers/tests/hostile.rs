//! Items with any numbers and with hostile names: every format stays well-formed, and inert where it
//! is displayed as text.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use proctrace_findings::{
    Figures, Outcome, Timeline, TimelineCounter, TimelineForker, TimelineItem, TimelineProcess,
    TimelineRun, TimelineStack, TimelineStep, TimelineThread, TimelineWait,
};
use proctrace_fixtures::hostile;
use proctrace_viewers::{Format, Weight};
use proctrace_wire::escape::to_text;
use proptest::prelude::*;

const FORMATS: [Format; 8] = [
    Format::Perfetto,
    Format::Chrome,
    Format::Folded(Weight::Cpu),
    Format::Folded(Weight::Wall),
    Format::Folded(Weight::Processes),
    Format::Speedscope,
    Format::CompileCommands,
    Format::Otlp,
];

/// The numbers and names of one item of each kind.
#[derive(Debug, Clone)]
struct Seed {
    numbers: [u32; 4],
    times: [u64; 3],
    value: f64,
    pid: i32,
    known: bool,
    name: usize,
}

fn awkward() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), Just(u64::MAX / 2), 0u64..5_000, any::<u64>()]
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(u32::MAX), 0u32..20, any::<u32>()]
}

fn seed() -> impl Strategy<Value = Seed> {
    let numbers = proptest::array::uniform4(number());
    let times = proptest::array::uniform3(awkward());
    (numbers, times, any::<f64>(), any::<i32>(), any::<bool>(), 0..hostile::ATTACKS.len()).prop_map(
        |(numbers, times, value, pid, known, name)| Seed {
            numbers,
            times,
            value,
            pid,
            known,
            name,
        },
    )
}

/// All items of the seeds, passed to a viewer as an analysis does.
fn feed(seeds: &[Seed], take: &mut dyn FnMut(TimelineItem<'_>)) {
    let names: Vec<String> =
        hostile::ATTACKS.iter().map(|name| to_text(name).into_owned()).collect();
    for (at, seed) in (0..).zip(seeds) {
        let [a, b, c, d] = seed.numbers;
        let [begin_ns, end_ns, amount] = seed.times;
        let some = |value: u64| seed.known.then_some(value);
        let forker = TimelineForker { process: a, task: b, is_first: seed.known, run: Some(c) };
        take(TimelineItem::Process(TimelineProcess {
            process: if seed.known { at } else { d },
            id: d,
            pid: seed.pid,
            parent_pid: Some(seed.pid),
            forker: seed.known.then_some(forker),
            step: Some(&names[seed.name]),
            span: seed.known.then(|| (names[seed.name].clone(), names[seed.name].clone())),
            program: Some(&names[seed.name]),
            category: Some(&names[seed.name]),
            begin_ns,
            end_ns: some(end_ns),
            outcome: Some(if seed.known { Outcome::Code(3) } else { Outcome::Signal(seed.pid) }),
            dumped_core: seed.known,
            threads: some(amount),
            used: Box::new(Figures::of(|_| some(amount))),
        }));
        take(TimelineItem::Thread(TimelineThread {
            task: b,
            process: a,
            tid: seed.known.then_some(seed.pid),
            is_first: !seed.known,
            begin_ns,
            end_ns: some(end_ns),
            cpu_ns: some(amount),
        }));
    }
    for seed in seeds {
        let [a, b, c, _] = seed.numbers;
        let [begin_ns, end_ns, amount] = seed.times;
        let name = hostile::ATTACKS[seed.name];
        let arguments = vec![b"gcc".to_vec(), b"-c".to_vec(), name.to_vec(), b"x.c".to_vec()];
        take(TimelineItem::Run(TimelineRun {
            run: c,
            process: a,
            program: seed.known.then_some(names[seed.name].as_str()),
            begin_ns,
            end_ns: Some(end_ns),
            happened_here: seed.known,
            outcome: None,
            exe: name,
            interpreter: Some(name),
            cwd: name,
            arguments: Some(&arguments),
            arguments_cut: !seed.known,
        }));
        take(TimelineItem::Step(TimelineStep {
            process: a,
            pid: seed.pid,
            program: Some(&names[seed.name]),
            doing: "running",
            begin_ns,
            end_ns,
        }));
        take(TimelineItem::Wait(TimelineWait {
            task: b,
            process: a,
            waits_for: "a pipe",
            begin_ns,
            woken_ns: amount,
            end_ns,
            waker_pid: Some(seed.pid),
        }));
        take(TimelineItem::Counter(TimelineCounter {
            name: "PSS",
            unit: "B",
            process: Some(a),
            values: &[(begin_ns, seed.value), (end_ns, 1.0)],
        }));
        take(TimelineItem::Stack(TimelineStack {
            parent: seed.known.then_some(a),
            program: &names[seed.name],
            processes: amount,
            cpu_ns: Some(amount),
            wall_ns: end_ns,
        }));
    }
}

fn written(format: Format, seeds: &[Seed], timeline: &Timeline) -> Vec<u8> {
    let mut out = Vec::new();
    let mut viewer = format.begin(timeline, &mut out).unwrap();
    feed(seeds, &mut |item| viewer.take(&item).unwrap());
    viewer.finish().unwrap();
    out
}

/// Checks that a Trace consists of packets and returns their number.
fn packets(mut bytes: &[u8]) -> usize {
    let mut packets = 0;
    while let Some((key, rest)) = bytes.split_first() {
        assert_eq!(*key, 0x0a, "field 1, a message");
        let end = rest.iter().position(|byte| *byte < 0x80).unwrap();
        let length = rest[..=end]
            .iter()
            .rev()
            .fold(0_usize, |length, byte| length << 7 | usize::from(byte & 0x7f));
        bytes = &rest[end + 1 + length..];
        packets += 1;
    }
    packets
}

fn check(format: Format, bytes: &[u8]) {
    if format == Format::Perfetto {
        assert!(packets(bytes) >= 2);
        return;
    }
    let text = std::str::from_utf8(bytes).unwrap();
    let what = format!("{format:?}");
    match format {
        Format::Otlp => drop(hostile::json_lines(&what, text)),
        Format::Folded(_) => {
            hostile::terminal(&what, text);
            for line in text.lines() {
                let (stack, number) = line.rsplit_once(' ').unwrap();
                assert!(number.parse::<u64>().is_ok(), "{line:?}");
                assert!(stack.split(';').all(|frame| !frame.trim().is_empty()), "{line:?}");
            }
        }
        _ => drop(hostile::json(&what, text)),
    }
}

#[test]
fn a_recording_without_anything_is_a_file() {
    for format in FORMATS {
        check(format, &written(format, &[], &Timeline::default()));
    }
}

#[test]
fn hostile_names_do_nothing() {
    let seed = |name: usize| Seed {
        numbers: [0, 1, u32::try_from(name).unwrap(), 3],
        times: [10, 20_000, 15_000],
        value: 1.0,
        pid: 7,
        known: name.is_multiple_of(2),
        name,
    };
    let seeds: Vec<Seed> = (0..hostile::ATTACKS.len()).map(seed).collect();
    for attack in hostile::ATTACKS {
        let name = to_text(attack).into_owned();
        let timeline = Timeline {
            command: vec![name.clone()],
            cwd: name.clone(),
            host: name.clone(),
            kernel: name.clone(),
            machine: name.clone(),
            recorder: name.clone(),
            span: Some((name.clone(), name.clone())),
            ..Timeline::default()
        };
        for format in FORMATS {
            check(format, &written(format, &seeds, &timeline));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_numbers_make_a_file(
        seeds in proptest::collection::vec(seed(), 0..12),
        times in proptest::array::uniform3(awkward()),
    ) {
        let [begin_boottime_ns, begin_unix_ns, length_ns] = times;
        let timeline =
            Timeline { begin_boottime_ns, begin_unix_ns, length_ns, ..Timeline::default() };
        for format in FORMATS {
            check(format, &written(format, &seeds, &timeline));
        }
    }
}
