//! A command is followed to its end with any source: here a replayed trace, without privileges.

use std::cell::Cell;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use crate::common::{Kept, Place, daemon, end, is_alive, options, replaying, run, shell, traces};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use proctrace_record::replaying::Replaying;
use proctrace_record::{
    Hold, Intake, Interval, Options, Pass, RecordError, Scope, Source, SourceError, TaskCounts,
    Wait,
};
use proctrace_trace::{Ended, Header, LossCount, Outcome, Program};
use proctrace_wire::layout::{Attach, EXEC_BEFORE};
use proctrace_wire::{Frames, IntoBytes, Kind, LossReason, Record, Stream};
use zerocopy::FromZeros;

#[test]
fn what_a_source_plays_arrives_unchanged() {
    for (version, name) in traces() {
        let mut source = replaying(&name);
        let command = shell("exit 0", &source);
        let mut kept = Kept::default();
        let finished = run(&mut source, Some(&command), &options(), &mut kept).unwrap();

        assert_eq!(finished.ended, Ended::TreeExited, "{name}");
        assert_eq!(finished.payload.as_ref().unwrap().outcome, Outcome::Code(0), "{name}");
        let mut records = 0;
        for stream in Stream::ALL {
            // Older traces have no waits.
            let expected = stream != Stream::Waits || version >= 5;
            let found = !source.records(stream).is_empty();
            assert_eq!(found, expected, "{name}: nothing of {stream:?} to play");
            assert!(kept.stream(stream) == source.records(stream), "{name}: {stream:?} differs");
            records += Frames::new(source.records(stream)).map(Result::unwrap).count() as u64;
        }
        let counted = finished.counts.by_name().values().sum::<u64>();
        assert_eq!(counted, records, "{name}");
        assert_eq!(kept.pushes as u64, records, "{name}");
        let forks = finished.counts.records(Kind::Fork) + finished.counts.records(Kind::Attach);
        assert_eq!(finished.counts.tasks(), forks, "{name}");
        assert!(finished.losses.is_empty() && finished.alive.is_empty(), "{name}");
        assert!(finished.sink_error.is_none(), "{name}");
    }
}

#[test]
fn the_end_of_the_command_is_told_as_it_was() {
    for (script, outcome) in [
        ("exit 0", Outcome::Code(0)),
        ("exit 3", Outcome::Code(3)),
        ("exit 255", Outcome::Code(255)),
        ("kill -9 $$", Outcome::Signal(9)),
        ("kill -TERM $$", Outcome::Signal(15)),
    ] {
        let mut source = Replaying::default();
        let command = shell(script, &source);
        let finished = run(&mut source, Some(&command), &options(), &mut Kept::default()).unwrap();
        let payload = finished.payload.unwrap();
        assert_eq!(payload.outcome, outcome, "{script}");
        assert_eq!(finished.ended, Ended::TreeExited, "{script}");
        assert!(payload.exited_ns <= finished.ended_ns && payload.maxrss_bytes > 0);
    }
}

#[test]
fn what_is_left_behind_is_waited_for_and_that_is_told_once() {
    let place = Place::new();
    let mut source = replaying("tour-3");
    // The daemon runs until the recorder reports that it waits for it.
    let script = daemon(&place.wait_for("waiting"), &place.file("pid"));
    let command = shell(&format!("{script}; exit 4"), &source);
    let mut kept =
        Kept { on_waiting: Some(Box::new(|| place.signal("waiting"))), ..Kept::default() };
    // Longer than any clock can represent.
    let options = Options { grace: Duration::MAX, ..options() };
    let finished = run(&mut source, Some(&command), &options, &mut kept).unwrap();
    assert_eq!(finished.ended, Ended::TreeExited);
    assert_eq!(finished.payload.unwrap().outcome, Outcome::Code(4));
    let [(alive, grace)] = kept.waiting[..] else { panic!("told {:?}", kept.waiting) };
    assert!(alive >= 1, "{alive}");
    assert_eq!(grace, Duration::MAX);
    assert!(!is_alive(place.number("pid")));
}

#[test]
fn a_daemon_outlives_the_grace() {
    let place = Place::new();
    let mut source = replaying("tour-3");
    let command = shell(&daemon("exec sleep 600", &place.file("pid")), &source);
    let options = Options { grace: Duration::from_secs(2), ..options() };
    let mut kept = Kept::default();
    let finished = run(&mut source, Some(&command), &options, &mut kept).unwrap();
    let pid = place.number("pid");
    assert_eq!(finished.ended, Ended::RootExited);
    assert_eq!(kept.waiting.len(), 1);
    let alive: Vec<_> = finished.alive.iter().map(|alive| alive.pid).collect();
    assert_eq!(alive, [pid]);
    // It is in the trace, marked as alive, and is not killed.
    let last = kept.of_kind(Stream::Samples, Kind::Sample).into_iter().find(
        |frame| matches!(Record::decode(*frame), Ok(Record::Sample(sample)) if sample.tgid == pid),
    );
    assert!(last.is_some());
    end(pid);
}

#[test]
fn nobody_is_waited_for_where_only_the_command_counts() {
    let place = Place::new();
    let mut source = replaying("tour-3");
    let command = shell(&daemon("exec sleep 600", &place.file("pid")), &source);
    let options = Options { wait: Wait::Root, ..options() };
    let mut kept = Kept::default();
    let finished = run(&mut source, Some(&command), &options, &mut kept).unwrap();
    assert_eq!(finished.ended, Ended::RootExited);
    assert_eq!(finished.payload.unwrap().outcome, Outcome::Code(0));
    assert_eq!((kept.waiting.len(), finished.alive.len()), (0, 1));
    end(place.number("pid"));
}

#[test]
fn a_recording_ends_when_its_time_is_over_and_the_command_does_not() {
    let place = Place::new();
    let mut source = replaying("tour-3");
    let script = format!("echo $$ > {}; exec sleep 600", place.file("pid").display());
    let command = shell(&script, &source);
    let options = Options { duration: Some(Duration::from_millis(300)), ..options() };
    let mut kept = Kept::default();
    let finished = run(&mut source, Some(&command), &options, &mut kept).unwrap();
    assert_eq!(finished.ended, Ended::TimeOver);
    assert_eq!(finished.payload, None);
    let pid = place.number("pid");
    assert_eq!(finished.alive.iter().map(|alive| alive.pid).collect::<Vec<_>>(), [pid]);
    assert!(kept.waiting.is_empty());
    end(pid);
    // It was a child of this process.
    waitpid(Pid::from_raw(pid), None).unwrap();
}

#[test]
fn samples_and_flushes_come_while_the_command_runs() {
    let place = Place::new();
    let mut source = replaying("alice-o2-before");
    // It ends after three sampling passes and one flush.
    let script = format!("{}; {}", place.wait_for("sampled"), place.wait_for("flushed"));
    let command = shell(&script, &source);
    let interval = Interval::Fixed(Duration::from_millis(5));
    let ticks = Cell::new(0);
    let mut kept = Kept {
        before_push: Some(Box::new(|frame| {
            ticks.set(ticks.get() + u32::from(frame.head.kind == Kind::Tick as u16));
            if ticks.get() == 3 {
                place.signal("sampled");
            }
            Ok(())
        })),
        on_flush: Some(Box::new(|| place.signal("flushed"))),
        ..Kept::default()
    };
    let finished =
        run(&mut source, Some(&command), &Options { interval, ..options() }, &mut kept).unwrap();
    assert_eq!(finished.ended, Ended::TreeExited);
    assert!(kept.stream(Stream::Samples) == source.records(Stream::Samples));
}

#[test]
fn the_memory_of_the_tree_is_looked_at() {
    let place = Place::new();
    let mut source = Replaying::default();
    let command = shell(&place.wait_for("looked"), &source);
    let memory_interval = Some(Duration::from_millis(5));
    let mut kept = Kept {
        before_push: Some(Box::new(|frame| {
            if let Ok(Record::Memory(memory)) = Record::decode(frame) {
                assert!(memory.pss_bytes > 0 && memory.pss_bytes <= memory.rss_bytes);
                place.signal("looked");
            }
            Ok(())
        })),
        ..Kept::default()
    };
    let options = Options { memory_interval, ..options() };
    let finished = run(&mut source, Some(&command), &options, &mut kept).unwrap();
    assert_eq!(finished.ended, Ended::TreeExited);
}

#[test]
fn a_full_disk_ends_the_keeping_and_not_the_command() {
    let place = Place::new();
    let mut source = replaying("alice-o2-before");
    let command = shell(&format!("{}; exit 7", place.wait_for("full")), &source);
    let mut left = 100;
    let mut kept = Kept {
        before_push: Some(Box::new(|_| {
            if left == 0 {
                place.signal("full");
                return Err(io::ErrorKind::StorageFull.into());
            }
            left -= 1;
            Ok(())
        })),
        ..Kept::default()
    };
    let finished = run(&mut source, Some(&command), &options(), &mut kept).unwrap();
    assert_eq!(finished.payload.unwrap().outcome, Outcome::Code(7));
    assert_eq!(finished.ended, Ended::TreeExited);
    assert_eq!(finished.sink_error.unwrap().kind(), io::ErrorKind::StorageFull);
    // Nothing was pushed or flushed after the failure, but everything was counted.
    assert_eq!((kept.pushes, kept.flushes), (101, 0));
    let all = Stream::ALL.map(|stream| Frames::new(source.records(stream)).count() as u64);
    assert_eq!(finished.counts.by_name().values().sum::<u64>(), all.iter().sum::<u64>());
}

#[test]
fn what_the_source_has_lost_is_told_and_kept() {
    let losses = [
        LossCount { kind: Kind::Fork, reason: LossReason::RingFull, cpu: Some(1), count: 17 },
        LossCount { kind: Kind::Exit, reason: LossReason::Recursion, cpu: None, count: 2 },
    ];
    let mut source = replaying("tour-3").losing(losses);
    let command = shell("exit 0", &source);
    let mut kept = Kept::default();
    let finished = run(&mut source, Some(&command), &options(), &mut kept).unwrap();
    assert_eq!(finished.losses, losses);
    assert_eq!(finished.trailer(Default::default()).losses, losses);
    let records: Vec<_> = kept
        .of_kind(Stream::Lifecycle, Kind::Loss)
        .into_iter()
        .map(|frame| match Record::decode(frame).unwrap() {
            Record::Loss(loss) => (loss.kind, loss.reason, loss.cpu, loss.count),
            other => panic!("{other:?}"),
        })
        .collect();
    let want = |loss: LossCount| {
        (loss.kind as u16, loss.reason as u16, loss.cpu.unwrap_or(u32::MAX), loss.count)
    };
    assert_eq!(records, losses.map(want));
}

/// A source that fails at its second search, or that finds an existing process.
#[derive(Default)]
struct Odd {
    inner: Replaying,
    fails: bool,
    refuses: bool,
    looks: u32,
    found: Vec<Attach>,
    adopted: usize,
    told: usize,
}

impl Source for Odd {
    fn name(&self) -> &'static str {
        "odd"
    }

    fn describe(&self, _: &mut Header) {}

    fn arm(&mut self) -> Result<Hold, SourceError> {
        self.inner.arm()
    }

    fn adopt(&mut self) -> Result<(), SourceError> {
        // One at a time, as if each were found only once its parent is known.
        self.adopted = (self.adopted + 1).min(self.found.len());
        Ok(())
    }

    fn why_nobody(&self, pids: &[u32]) -> Option<SourceError> {
        self.refuses.then(|| format!("{pids:?} belong to someone else").into())
    }

    fn drain(&mut self, intake: &mut Intake<'_>) -> Result<usize, SourceError> {
        self.looks += 1;
        if self.fails && self.looks == 2 {
            return Err("the kernel said no".into());
        }
        let news = &self.found[self.told..self.adopted];
        for attach in news {
            let frame = Frames::new(attach.as_bytes()).next().unwrap().unwrap();
            intake.take(Stream::Lifecycle, frame);
        }
        self.told = self.adopted;
        Ok(news.len())
    }

    fn sample(&mut self, pass: Pass, samples: &mut Vec<u8>) -> Result<(), SourceError> {
        self.inner.sample(pass, samples)
    }

    fn task_counts(&mut self) -> TaskCounts {
        // The process found ends immediately, so that the recording does.
        TaskCounts { born: self.adopted as u64, ended: self.adopted as u64 }
    }

    fn losses(&mut self) -> Result<Vec<LossCount>, SourceError> {
        self.inner.losses()
    }

    fn detach(&mut self) -> Result<Vec<Program>, SourceError> {
        let figures = Program { name: "odd".into(), verified_instructions: 1, runs: 2, run_ns: 3 };
        Ok(vec![figures])
    }
}

#[test]
fn a_source_that_fails_takes_the_recording_with_it_and_not_the_command() {
    let place = Place::new();
    let mut source = Odd { fails: true, ..Odd::default() };
    let script = format!("echo $$ > {}; {}", place.file("pid").display(), place.wait_for("end"));
    let command = shell(&script, &source.inner);
    let error = run(&mut source, Some(&command), &options(), &mut Kept::default()).unwrap_err();
    assert!(matches!(error, RecordError::Source(_)), "{error:?}");
    assert_eq!(error.to_string(), "the kernel said no");
    // The command, a child of this process, runs to its end.
    place.signal("end");
    let pid = loop {
        match std::fs::read_to_string(place.file("pid")).map(|text| text.trim().parse()) {
            Ok(Ok(pid)) => break Pid::from_raw(pid),
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let status = waitpid(pid, None).unwrap();
    assert_eq!(status, WaitStatus::Exited(pid, 0));
}

/// An attach record for this process.
fn myself() -> Attach {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let ticks: u64 =
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
    let mut attach = Attach::new_zeroed();
    attach.head.kind = Kind::Attach as u16;
    attach.head.size = u16::try_from(size_of::<Attach>()).unwrap();
    attach.head.task = 1;
    attach.process = 1;
    attach.tgid = i32::try_from(std::process::id()).unwrap();
    attach.tid = attach.tgid;
    attach.start_ns = ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second());
    attach
}

#[test]
fn who_was_there_before_is_found_to_the_last_and_told_with_its_program() {
    // The second process no longer exists: its pid belongs to a younger one.
    let mut gone = myself();
    gone.start_ns += 3_600_000_000_000;
    (gone.head.task, gone.process) = (2, 2);
    let mut source = Odd { found: vec![myself(), gone], ..Odd::default() };
    let mut kept = Kept::default();
    let options = Options { scope: Scope::Pids(vec![std::process::id()]), ..options() };
    let finished = run(&mut source, None, &options, &mut kept).unwrap();
    assert_eq!(finished.ended, Ended::TreeExited);
    assert_eq!((finished.payload, &kept.ready[..]), (None, &[2][..]));
    assert_eq!(finished.programs[0].name, "odd");
    assert_eq!(kept.of_kind(Stream::Lifecycle, Kind::Attach).len(), 2);
    let execs = kept.of_kind(Stream::Lifecycle, Kind::Exec);
    let [exec] = execs[..] else { panic!("{} execs", execs.len()) };
    let Ok(Record::Exec(exec)) = Record::decode(exec) else { panic!("no exec") };
    let exe = std::env::current_exe().unwrap();
    assert_eq!((exec.fixed.head.task, exec.exe), (1, exe.as_os_str().as_bytes()));
    assert_ne!(exec.fixed.bits & EXEC_BEFORE, 0);
}

#[test]
fn nobody_to_record_is_an_error() {
    let mut source = Odd::default();
    let options = Options { scope: Scope::Pids(vec![17, 4711]), ..options() };
    let mut kept = Kept::default();
    let error = run(&mut source, None, &options, &mut kept).unwrap_err();
    assert!(matches!(error, RecordError::Gone(_)), "{error:?}");
    assert!(error.to_string().contains("process 17, 4711 ended before"), "{error}");

    let mut source = Odd { refuses: true, ..Odd::default() };
    let error = run(&mut source, None, &options, &mut kept).unwrap_err();
    assert!(matches!(error, RecordError::Refused(_)), "{error:?}");
    assert_eq!(error.to_string(), "[17, 4711] belong to someone else");
    assert!(kept.ready.is_empty());
}
