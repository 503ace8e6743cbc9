//! `proctrace top`: shows a recording while it is made, in a terminal or line by line.

mod choose;
mod feed;
mod keys;
mod signals;
mod terminal;

use std::io::{IsTerminal, Write, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use proctrace_live::{Classify, Screen, Status, progress_line};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event};

use self::feed::Feed;
use self::signals::Ends;
use self::terminal::Held;
pub(crate) use self::terminal::terminal;
use crate::args::TopArgs;
use crate::say;

/// Pause between looks at the file, to which records come once a second.
const PAUSE: Duration = Duration::from_millis(250);

/// Interval of lines if none was given.
const PROGRESS: Duration = Duration::from_secs(10);

/// Time to read in before the view is drawn again.
const BUDGET: Duration = Duration::from_millis(100);

/// Shows the recording until it has ended, or until the user or a signal ends the view. Programs are named by `classify`;
/// `program` is the name of this one.
///
/// # Errors
/// If there is no such trace, or it cannot be read or shown.
pub fn run(
    args: &TopArgs,
    program: &str,
    classify: impl FnOnce() -> Result<Box<dyn Classify>>,
) -> Result<ExitCode> {
    if args.of_record {
        // What is recorded comes first.
        let _ = rustix::process::setpriority_process(None, 10);
    }
    let path = match &args.trace {
        Some(path) => path.clone(),
        None => choose::newest(program)?,
    };
    let feed = Feed::open(&path, classify()?)?;
    let ends = Ends::new(args.of_record).context("cannot handle signals")?;
    let in_lines = args.progress.is_some() || !stdout().is_terminal();
    if in_lines {
        lines(feed, &ends, args)?;
    } else {
        show(feed, &ends, args)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Draws until the user or a signal ends it.
fn show(mut feed: Feed, ends: &Ends, args: &TopArgs) -> Result<()> {
    let has_colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut screen = Screen::new(has_colour);
    let mut held = Held::enter().context("cannot use the terminal")?;
    let backend = CrosstermBackend::new(stdout());
    let mut terminal = ratatui::Terminal::new(backend).context("cannot use the terminal")?;
    let mut is_stale = true;
    loop {
        // As it was shown: what a signal was sent for depends on that.
        let was_over = feed.status != Status::Recording;
        let mut is_behind = false;
        if !screen.is_paused() {
            let seen = feed.position();
            is_behind = feed.catch_up(BUDGET)?;
            is_stale |= seen != feed.position();
        }
        // Before the end is shown: a signal that comes after that is for the view.
        if ends.is_over(was_over)? {
            return Ok(());
        }
        if is_stale {
            let note = feed.note(is_behind);
            let (view, status) = (&feed.view, feed.status);
            terminal
                .draw(|frame| screen.draw(view, status, note.as_deref(), frame.buffer_mut()))?;
            is_stale = false;
        }
        let is_over = feed.status != Status::Recording && !is_behind;
        if (args.exit && is_over) || held.is_gone() {
            return Ok(());
        }
        // crossterm reads from a terminal that has hung up again and again, without end. It is asked only when the
        // terminal was there a moment ago, and never waits, so that this is unlikely; it is not impossible.
        if !event::poll(Duration::ZERO)? {
            let at_most = if is_behind { Duration::ZERO } else { PAUSE };
            // It reads 1,024 bytes at a time and is woken by new ones only (edge-triggered, epoll(7)): of a paste, some
            // may be left, for which this wait returns at once.
            if held.wait(at_most) && !event::poll(Duration::ZERO)? {
                std::thread::sleep(at_most);
            }
            continue;
        }
        is_stale = true;
        match event::read()? {
            Event::Key(event) if keys::is_suspend(&event) && !args.of_record => {
                held.suspend()?;
                terminal.clear()?;
            }
            Event::Key(event) => {
                let goes_on = keys::key(&event).is_none_or(|key| screen.press(key));
                feed.view.keep(screen.opened());
                if !goes_on {
                    drop(held);
                    if args.of_record && !is_over {
                        say::note("the recording continues; press Ctrl-C to stop it");
                    }
                    return Ok(());
                }
            }
            _ => {}
        }
    }
}

/// Prints lines until the recording or a signal ends it.
fn lines(mut feed: Feed, ends: &Ends, args: &TopArgs) -> Result<()> {
    let interval = args.progress.unwrap_or(PROGRESS);
    let mut due = Instant::now() + interval;
    let mut before = None;
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
            before = Some((feed.view.totals.processes, feed.view.elapsed_ns()));
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
