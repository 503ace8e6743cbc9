//! `proctrace top`: shows a recording while it is made, line by line, or as the program shows it in a terminal.

mod choose;
mod feed;
mod signals;

use std::fs::File;
use std::io::{self, IsTerminal, Write, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use proctrace_live::{Classify, Progress, Status, progress_line};

pub use self::feed::Feed;
pub use self::signals::Ends;
use crate::args::TopArgs;
use crate::say;

/// Pause between looks at the file, to which records come once a second.
pub const PAUSE: Duration = Duration::from_millis(250);

/// Interval of lines if none was given.
const PROGRESS: Duration = Duration::from_secs(10);

/// Time to read in before the view is drawn again.
pub const BUDGET: Duration = Duration::from_millis(100);

/// A view in a whole terminal, which draws until its user or a signal ends it.
pub type Show = fn(Feed, &Ends, &TopArgs) -> Result<()>;

/// Shows the recording until it has ended, or until the user or a signal ends the view: in a terminal by `show`, if this
/// program has a view, otherwise in lines. Programs are named by `classify`; `program` is the name of this one.
///
/// # Errors
/// If there is no such trace, or it cannot be read or shown.
pub fn run(
    args: &TopArgs,
    program: &str,
    classify: impl FnOnce() -> Result<Box<dyn Classify>>,
    show: Option<Show>,
) -> Result<ExitCode> {
    if args.of_record {
        // What is recorded comes first.
        let _ = rustix::process::setpriority_process(None, 10);
    }
    let path = match &args.trace {
        Some(path) => path.clone(),
        None => choose::newest(program, show.is_some())?,
    };
    let feed = Feed::open(&path, classify()?)?;
    let ends = Ends::new(args.of_record).context("cannot handle signals")?;
    let in_terminal = args.progress.is_none() && stdout().is_terminal();
    match show.filter(|_| in_terminal) {
        Some(show) => show(feed, &ends, args)?,
        None => lines(feed, &ends, args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The terminal of this session. Nothing is created.
///
/// # Errors
/// If there is none.
#[expect(clippy::disallowed_methods, reason = "a terminal is no file")]
pub fn terminal() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/tty")
}

/// Prints lines until the recording or a signal ends it.
fn lines(mut feed: Feed, ends: &Ends, args: &TopArgs) -> Result<()> {
    let interval = args.progress.unwrap_or(PROGRESS);
    let mut due = Instant::now() + interval;
    let mut before = Progress::default();
    loop {
        let is_behind = feed.catch_up(BUDGET)?;
        let is_over = feed.status != Status::Recording && !is_behind;
        // The last line of a recording is printed by `record` itself.
        if ends.is_over(is_over)? || (is_over && args.of_record) {
            return Ok(());
        }
        if is_over || (!is_behind && Instant::now() >= due) {
            let line = progress_line(&feed.view, before);
            if args.of_record {
                say::note(&line);
            } else {
                writeln!(stdout(), "{}", proctrace_report::escape::terminal(&line))?;
            }
            before = Progress::of(&feed.view);
            due = Instant::now() + interval;
        }
        if is_over {
            return Ok(());
        }
        if !is_behind {
            std::thread::sleep(PAUSE.min(due.saturating_duration_since(Instant::now())));
        }
    }
}
