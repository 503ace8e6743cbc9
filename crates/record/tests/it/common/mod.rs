//! Shared by the tests: a sink that stores everything, traces to replay, and commands to run.

// The test of signals, which is a program of its own, does not use all of this.
#![allow(dead_code, clippy::allow_attributes, reason = "see above")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proctrace_record::replaying::Replaying;
use proctrace_record::{Command, Finished, Options, RecordError, Signals, Sink, Source, record};
use proctrace_trace::Reader;
use proctrace_wire::{Frame, Frames, Kind, Stream, WIRE_VERSION};

pub(crate) type BeforePush<'a> = dyn FnMut(Frame<'_>) -> io::Result<()> + 'a;

/// Stores records, and runs a test's actions at certain moments.
#[derive(Default)]
pub(crate) struct Kept<'a> {
    pub(crate) streams: [Vec<u8>; 4],
    pub(crate) pushes: usize,
    pub(crate) flushes: usize,
    pub(crate) ready: Vec<u64>,
    pub(crate) waiting: Vec<(u64, Duration)>,
    /// Called before a record is stored.
    pub(crate) before_push: Option<Box<BeforePush<'a>>>,
    pub(crate) on_flush: Option<Box<dyn FnMut() + 'a>>,
    pub(crate) on_waiting: Option<Box<dyn FnMut() + 'a>>,
}

impl Kept<'_> {
    pub(crate) fn stream(&self, stream: Stream) -> &[u8] {
        &self.streams[stream as usize - 1]
    }

    pub(crate) fn of_kind(&self, stream: Stream, kind: Kind) -> Vec<Frame<'_>> {
        let frames = Frames::new(self.stream(stream)).map(Result::unwrap);
        frames.filter(|frame| frame.head.kind == kind as u16).collect()
    }
}

impl Sink for Kept<'_> {
    fn push(&mut self, stream: Stream, time_ns: u64, record: &[u8]) -> io::Result<()> {
        self.pushes += 1;
        let frame = Frames::new(record).next().unwrap().unwrap();
        assert_eq!((frame.head.time_ns, frame.bytes), (time_ns, record));
        if let Some(ask) = &mut self.before_push {
            ask(frame)?;
        }
        self.streams[stream as usize - 1].extend_from_slice(record);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flushes += 1;
        self.on_flush.iter_mut().for_each(|act| act());
        Ok(())
    }

    fn ready(&mut self, processes: u64) {
        self.ready.push(processes);
    }

    fn waiting(&mut self, alive: u64, grace: Duration) {
        self.waiting.push((alive, grace));
        self.on_waiting.iter_mut().for_each(|act| act());
    }
}

/// The committed traces, each with the version of its records.
pub(crate) fn traces() -> impl Iterator<Item = (u32, String)> {
    let tours = (1..=WIRE_VERSION).map(|version| (version, format!("tour-{version}")));
    tours.chain(["alice-o2-before", "alice-o2-after"].map(|name| (0, name.to_owned())))
}

pub(crate) fn replaying(name: &str) -> Replaying {
    let traces =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../fixtures/traces");
    Replaying::of(Reader::open(traces.join(name).with_extension("ptrace")).unwrap())
}

/// A shell that this source can find, with all its descendants.
pub(crate) fn shell(script: &str, source: &Replaying) -> Command {
    let path = ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
    Command::new("/bin/sh", ["sh", "-c", script], [path, source.mark()])
}

/// Maximum time of a recording of a test, unless an expected event never happens.
pub(crate) const TOO_LONG: Duration = Duration::from_secs(60);

pub(crate) fn options() -> Options {
    Options { duration: Some(TOO_LONG), grace: TOO_LONG, ..Options::default() }
}

pub(crate) fn run(
    source: &mut dyn Source,
    command: Option<&Command>,
    options: &Options,
    sink: &mut Kept<'_>,
) -> Result<Finished, RecordError> {
    let signals = Signals::block().unwrap();
    record(source, &signals, command, options, sink)
}

/// A directory of files with which a command and its recorder synchronize.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Creates the file that a command waits for.
    pub(crate) fn signal(&self, name: &str) {
        fs::write(self.file(name), "").unwrap();
    }

    /// Shell code that waits for it.
    pub(crate) fn wait_for(&self, name: &str) -> String {
        format!("while [ ! -e {} ]; do sleep 0.01; done", self.file(name).display())
    }

    /// Reads a number that a command has written.
    pub(crate) fn number(&self, name: &str) -> i32 {
        fs::read_to_string(self.file(name)).unwrap().trim().parse().unwrap()
    }
}

/// Shell code that starts a daemon with this command; its pid is written to the file.
pub(crate) fn daemon(script: &str, pid_file: &Path) -> String {
    // Written by the daemon's parent, for which the shell waits.
    format!("(setsid sh -c '{script}' >/dev/null 2>&1 & echo $! > {})", pid_file.display())
}

/// True if this process exists and is not a zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.starts_with(" Z"))
}

/// Kills a process that a test has left running and knows to be alive.
pub(crate) fn end(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}
