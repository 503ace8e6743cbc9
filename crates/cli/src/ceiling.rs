//! The ceiling of a command that reads recordings: the memory and the time that it may take, whatever a recording or a
//! query asks for.
//!
//! A block of some hundred bytes can hold a hundred thousand records, and a query of one line can ask for the product of
//! all tables: neither sizes of files nor of queries bound what they cost, and the kernel may end other processes first when
//! memory runs out. So a thread looks at the process that it is in, and ends it with a message.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use proctrace_record::{memory_bytes, resident_bytes};
use proctrace_report::number::bytes;

use crate::args::{CeilingArgs, Command, DEFAULT_TRACE, TimeArgs};
use crate::say;

/// Memory that any recording may take.
const BYTES_MIN: u64 = 512 << 20;
/// Memory that a recording may take besides for each of its bytes. The largest recordings that were measured take 11
/// (docs/measured.md), small ones with many look-ups 60.
const BYTES_FOR_EACH: u64 = 64;
/// Maximum part of the machine's memory.
const OF_MACHINE: (u64, u64) = (3, 4);
/// Filling memory at some GB/s, it gets tens of megabytes beyond its ceiling until it is seen.
const LOOKS_EVERY: Duration = Duration::from_millis(10);

/// Memory and time that a command may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ceiling {
    memory_bytes: u64,
    /// Bytes of the recordings, if that decides.
    recordings_bytes: Option<u64>,
    was_asked_for: bool,
    time: Option<Duration>,
}

impl Ceiling {
    /// The ceiling of a command; None: it reads no recording, or by parts.
    pub(crate) fn of(command: &Command) -> Option<Self> {
        let (asked, time, traces) = asked(command)?;
        let recordings_bytes = traces.map(|traces| length(traces.into_iter()));
        Some(Self::new(asked.max_memory, recordings_bytes, memory_bytes(), time))
    }

    /// Refuses at once what cannot be done below the ceiling for these recordings.
    pub(crate) fn check(args: &CeilingArgs, traces: &[PathBuf], least_bytes: u64) -> Result<()> {
        let size = length(traces.iter().map(|path| &**path));
        let ceiling = Self::new(args.max_memory, Some(size), memory_bytes(), None);
        if least_bytes > ceiling.memory_bytes {
            bail!("it would take at least {}; {}", bytes(least_bytes), ceiling.too_large());
        }
        Ok(())
    }

    fn new(
        asked_bytes: Option<u64>,
        recordings_bytes: Option<u64>,
        machine_bytes: u64,
        time: Option<&TimeArgs>,
    ) -> Self {
        let time = time.map(|time| time.max_time);
        if let Some(memory_bytes) = asked_bytes {
            return Self { memory_bytes, recordings_bytes: None, was_asked_for: true, time };
        }
        let most = machine_bytes / OF_MACHINE.1 * OF_MACHINE.0;
        let by_size = recordings_bytes
            .map(|size| BYTES_MIN.saturating_add(size.saturating_mul(BYTES_FOR_EACH)))
            .filter(|by_size| *by_size < most);
        Self {
            memory_bytes: by_size.unwrap_or(most),
            recordings_bytes: recordings_bytes.filter(|_| by_size.is_some()),
            was_asked_for: false,
            time,
        }
    }

    /// Ends the process with this status as soon as it takes more.
    pub(crate) fn hold(self, status: u8) {
        let began = Instant::now();
        let watch = move || {
            loop {
                std::thread::sleep(LOOKS_EVERY);
                let why = if resident_bytes().is_some_and(|taken| taken > self.memory_bytes) {
                    self.too_large()
                } else if self.time.is_some_and(|most| began.elapsed() > most) {
                    self.too_long()
                } else {
                    continue;
                };
                say::error(&anyhow!(why));
                // Everything else is in the middle of its work.
                std::process::exit(status.into());
            }
        };
        // Without it, the kernel is the only one who looks.
        let _ = std::thread::Builder::new().name("proctrace-ceiling".into()).spawn(watch);
    }

    fn too_large(&self) -> String {
        let memory = bytes(self.memory_bytes);
        let why = match self.recordings_bytes {
            Some(size) => format!(
                ", for recordings of {} together ({} and {BYTES_FOR_EACH} times their size)",
                bytes(size),
                bytes(BYTES_MIN)
            ),
            None if self.was_asked_for => String::new(),
            None => format!(" ({} / {} of this machine's)", OF_MACHINE.0, OF_MACHINE.1),
        };
        format!("more than {memory} of memory is not taken{why}: --max-memory SIZE allows more")
    }

    fn too_long(&self) -> String {
        let time = humantime::format_duration(self.time.unwrap_or_default());
        format!("stopped after {time}: --max-time TIME allows more")
    }
}

/// The options and the recordings of a command; without recordings, only the machine's memory is a limit.
type Asked<'a> = (&'a CeilingArgs, Option<&'a TimeArgs>, Option<Vec<&'a Path>>);

fn asked(command: &Command) -> Option<Asked<'_>> {
    fn one(trace: &Path) -> Option<Vec<&Path>> {
        Some(vec![trace])
    }
    fn all(traces: &[PathBuf]) -> Option<Vec<&Path>> {
        Some(traces.iter().map(|path| &**path).collect())
    }
    Some(match command {
        Command::Report(args) => (&args.rules.ceiling, None, one(&args.trace)),
        Command::Show(args) => (&args.rules.ceiling, None, one(&args.trace)),
        Command::Tree(args) => (&args.rules.ceiling, None, one(&args.trace)),
        Command::Ps(args) => (&args.rules.ceiling, None, one(&args.trace)),
        Command::Advise(args) => (&args.rules.ceiling, None, one(&args.trace)),
        Command::Classify(args) => (&args.rules.ceiling, None, one(&args.trace)),
        Command::Metrics(args) => (&args.rules.ceiling, None, one(&args.file)),
        Command::Check(args) => (&args.more, None, one(args.base.trace())),
        Command::Dump(args) => (&args.more, None, one(args.base.trace())),
        Command::Export(args) => (&args.rules.ceiling, None, all(&args.traces)),
        Command::Summarize(args) => (&args.rules.ceiling, None, all(&args.traces)),
        Command::Query(args) => {
            // One of them is the SQL, and no file.
            let named = args.arguments.iter().map(Path::new);
            let traces = named.chain([Path::new(DEFAULT_TRACE)]).collect();
            (&args.rules.ceiling, Some(&args.time), Some(traces))
        }
        Command::Fleet(args) => (&args.ceiling, Some(&args.time), None),
        Command::Diff(args) => (&args.rules.ceiling, None, None),
        Command::Series(args) => (&args.ceiling, None, None),
        Command::Libs(args) if args.action.is_none() => (&args.ceiling, None, one(&args.trace)),
        // Recorders, and what runs commands of others, whose time and memory are not limited here.
        _ => return None,
    })
}

/// Bytes of these files together.
fn length<'a>(paths: impl Iterator<Item = &'a Path>) -> u64 {
    let length = |path: &Path| path.metadata().map_or(0, |it| it.len());
    paths.map(length).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn memory_is_limited_by_size_and_by_the_machine() {
        let of = |size| Ceiling::new(None, size, 16 * GIB, None).memory_bytes;
        assert_eq!(of(Some(0)), GIB / 2);
        assert_eq!(of(Some(16 << 20)), GIB / 2 + GIB);
        assert_eq!([of(Some(GIB)), of(Some(u64::MAX)), of(None)], [12 * GIB; 3]);
        let small = Ceiling::new(None, Some(0), GIB / 4, None);
        assert_eq!((small.memory_bytes, small.recordings_bytes), (GIB / 16 * 3, None));
        let asked = Ceiling::new(Some(7), Some(0), GIB, None);
        assert_eq!((asked.memory_bytes, asked.was_asked_for), (7, true));
    }

    #[test]
    fn this_process_and_machine_have_memory() {
        let resident = resident_bytes().unwrap();
        assert!((1 << 20..memory_bytes()).contains(&resident), "{resident}");
    }
}
