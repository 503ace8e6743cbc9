//! Progress of a command on the terminal of whoever waits for it, once it has taken half a second.

use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use proctrace_report::escape::terminal;
use proctrace_report::fit;
use proctrace_report::number::bytes;
use proctrace_trace::Meter;
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};

use crate::say;

/// Minimum time that is worth a line. A command has two or three steps, and none should pass in silence if they take
/// more than a second together.
const SILENT: Duration = Duration::from_millis(500);
/// Time between two lines.
const PAUSE: Duration = Duration::from_millis(250);
/// Columns of a line at most.
const COLUMNS: usize = 79;

/// Work that is done, and how far it is.
enum Work {
    /// Work of which it is not known how far it is.
    Unknown(String),
    /// The reading of a file of so many bytes.
    Reading(String, Meter, u64),
}

/// Says what is done, until it is dropped.
struct Waiting {
    over: Arc<(Mutex<bool>, Condvar)>,
    teller: Option<JoinHandle<()>>,
}

/// Does something, and says so meanwhile.
pub fn during<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let _waiting = Waiting::begin(|| Work::Unknown(what.to_owned()));
    work()
}

/// Reads a trace, and says how far it is meanwhile.
pub fn reading<T>(trace: &Path, work: impl FnOnce(&Meter) -> T) -> T {
    let meter = Meter::default();
    let _waiting = Waiting::begin(|| {
        let size = trace.metadata().map_or(0, |metadata| metadata.len());
        Work::Reading(format!("reading {}", trace.display()), meter.clone(), size)
    });
    work(&meter)
}

impl Waiting {
    fn begin(work: impl FnOnce() -> Work) -> Self {
        let over = Arc::new((Mutex::new(false), Condvar::new()));
        let teller = is_watched().then(|| {
            let (work, over) = (work(), Arc::clone(&over));
            // Without a thread, nothing is said.
            std::thread::Builder::new().spawn(move || tell(&work, &over)).ok()
        });
        Self { over, teller: teller.flatten() }
    }
}

/// Returns whether standard error is a terminal that this process may write to now: in the background, it would write
/// into what somebody types.
fn is_watched() -> bool {
    let stderr = stderr();
    stderr.is_terminal() && tcgetpgrp(&stderr).is_ok_and(|foreground| foreground == getpgrp())
}

/// Columns that a line may have. The last one stays free: terminals that wrap there would begin a new line.
fn columns() -> usize {
    let size = tcgetwinsize(stderr()).ok().map(|size| usize::from(size.ws_col));
    size.filter(|columns| *columns > 0).map_or(COLUMNS, |columns| COLUMNS.min(columns - 1))
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(teller) = self.teller.take() else { return };
        *self.over.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.over.1.notify_all();
        // It clears its line before it ends.
        let _ = teller.join();
    }
}

fn tell(work: &Work, (over, ended): &(Mutex<bool>, Condvar)) {
    let began = Instant::now();
    let mut pause = SILENT;
    let mut told = false;
    let mut is_over = over.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let waited = ended.wait_timeout_while(is_over, pause, |is_over| !*is_over);
        is_over = waited.unwrap_or_else(PoisonError::into_inner).0;
        if *is_over {
            break;
        }
        say::over(&line(work, began.elapsed(), columns()));
        (told, pause) = (true, PAUSE);
    }
    if told {
        say::over("");
    }
}

/// "reading job.ptrace (1.20 GB), 43 %, 3 s": the end is kept where the line is too long.
fn line(work: &Work, elapsed: Duration, columns: usize) -> String {
    let (what, how_far) = match work {
        Work::Unknown(what) => (what, String::new()),
        Work::Reading(what, meter, size) => {
            // Some parts are read twice.
            let percent = (100 * u128::from(meter.bytes()) / u128::from((*size).max(1))).min(99);
            (what, format!(" ({}), {percent} %", bytes(*size)))
        }
    };
    let seconds = match elapsed.as_secs() {
        0 => String::new(),
        seconds => format!(", {seconds} s"),
    };
    let end = format!("{how_far}{seconds}");
    let room = columns.saturating_sub("proctrace: ".len() + fit::columns(&end));
    // Before it is cut: escaped, a name is longer.
    let what = terminal(what);
    format!("proctrace: {}{end}", fit::cut(&what, room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_end_and_fits() {
        let of = |what: &str| {
            line(
                &Work::Reading(what.to_owned(), Meter::default(), 2_000_000),
                Duration::from_secs(3),
                COLUMNS,
            )
        };
        assert_eq!(of("reading a"), "proctrace: reading a (2.0 MB), 0 %, 3 s");
        let long = of(&"x".repeat(200));
        assert!(long.ends_with("x… (2.0 MB), 0 %, 3 s"), "{long}");
        assert_eq!(long.chars().count(), COLUMNS);
        let escaped = of(&"\x1b".repeat(60));
        assert_eq!(escaped.chars().count(), COLUMNS, "{escaped}");
        let unknown =
            line(&Work::Unknown("answering".to_owned()), Duration::from_millis(1500), COLUMNS);
        assert_eq!(unknown, "proctrace: answering, 1 s");
        let soon =
            line(&Work::Unknown("answering".to_owned()), Duration::from_millis(600), COLUMNS);
        assert_eq!(soon, "proctrace: answering");
    }
}
