//! The view of `top`: draws what comes of the recording, and does what the user's keys say.

use std::io::stdout;
use std::time::Duration;

use anyhow::{Context, Result};
use proctrace_live::Status;
use proctrace_recorder::args::TopArgs;
use proctrace_recorder::say;
use proctrace_recorder::top::{BUDGET, Ends, Feed, PAUSE};
use proctrace_screen::Screen;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event};

use super::keys;
use super::terminal::Held;

/// Draws until the user or a signal ends it.
pub(super) fn show(mut feed: Feed, ends: &Ends, args: &TopArgs) -> Result<()> {
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
