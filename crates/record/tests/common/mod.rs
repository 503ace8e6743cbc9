//! What the tests share: a sink that keeps everything, traces to play, and commands to run.

// Each test file is a program of its own, and none uses all of this.
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
use proctrace_wire::{Frame, Frames, Kind, Stream};

/// Keeps what comes, and does what a test wants done at certain moments.
#[derive(Default)]
pub(crate) struct Kept<'a> {
    pub(crate) streams: [Vec<u8>; 3],
    pub(crate) pushes: usize,
    pub(crate) flushes: usize,
    pub(crate) ready: Vec<u64>,
    pub(crate) waiting: Vec<(u64, Duration)>,
    /// Asked before a record is kept.
    pub(crate) before_push: Option<Box<dyn FnMut(Frame<'_>) -> io::Result<()> + 'a>>,
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

/// The committed traces.
pub(crate) const TRACES: [&str; 5] =
    ["tour-1", "tour-2", "tour-3", "alice-o2-before", "alice-o2-after"];

pub(crate) fn replaying(name: &str) -> Replaying {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces");
    Replaying::of(Reader::open(traces.join(name).with_extension("ptrace")).unwrap())
}

/// A shell that is to be found by this source, with all that it leaves behind.
pub(crate) fn shell(script: &str, source: &Replaying) -> Command {
    let path = ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
    Command::new("/bin/sh", ["sh", "-c", script], [path, source.mark()])
}

/// No recording of a test takes so long, unless something never happens that should.
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

/// A directory, for files by which a command and its recorder tell each other how far they are.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Makes what a command waits for.
    pub(crate) fn signal(&self, name: &str) {
        fs::write(self.file(name), "").unwrap();
    }

    /// Shell words that wait for it.
    pub(crate) fn wait_for(&self, name: &str) -> String {
        format!("while [ ! -e {} ]; do sleep 0.01; done", self.file(name).display())
    }

    /// A number that a command has written.
    pub(crate) fn number(&self, name: &str) -> i32 {
        fs::read_to_string(self.file(name)).unwrap().trim().parse().unwrap()
    }
}

/// Shell words that leave a daemon behind, which does this; its pid goes to the file.
pub(crate) fn daemon(script: &str, pid_file: &Path) -> String {
    // Written by the daemon's parent, which the shell waits for.
    format!("(setsid sh -c '{script}' >/dev/null 2>&1 & echo $! > {})", pid_file.display())
}

pub(crate) fn is_alive(pid: i32) -> bool {
    kill(Pid::from_raw(pid), None).is_ok()
}

/// Ends what a test has left running, which it knows to be alive.
pub(crate) fn end(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}
