//! The terminal while the view has it: no echo, no lines, another screen; restored whatever happens.

use std::fs::File;
use std::io::{self, IsTerminal, stdin, stdout};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, raise};
use proctrace_recorder::top::terminal;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

/// Value of _POSIX_VDISABLE on Linux: the terminal has no such key.
const NO_KEY: u8 = 0;

/// The terminal, until this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    before: Arc<Before>,
}

/// The terminal as it was.
#[derive(Debug)]
struct Before {
    input: File,
    modes: Termios,
    /// To restore it twice would move the cursor back to where it was at first, over the message of a
    /// panic.
    is_taken: AtomicBool,
}

impl Held {
    /// Takes the terminal. Unlike crossterm's raw mode, this one has Ctrl-C and Ctrl-\ send their
    /// signals: under `record --live` these are for the recorded command.
    pub(super) fn enter() -> io::Result<Self> {
        let input = match stdin().is_terminal() {
            true => File::from(stdin().as_fd().try_clone_to_owned()?),
            false => terminal()?,
        };
        let modes = tcgetattr(&input)?;
        let held =
            Self { before: Arc::new(Before { input, modes, is_taken: AtomicBool::new(false) }) };
        held.before.take()?;
        let before = Arc::clone(&held.before);
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            before.restore();
            tell(panic);
        }));
        Ok(held)
    }

    /// Returns whether the terminal hung up. Signals do not always tell: nohup(1) has SIGHUP ignored. Reading from such
    /// a terminal returns at once, with nothing.
    pub(super) fn is_gone(&self) -> bool {
        let mut input = [PollFd::new(&self.before.input, PollFlags::IN)];
        poll(&mut input, Some(&Timespec::default())).is_ok() && has_hung_up(&input[0])
    }

    /// Waits until there is something to read, until the terminal hangs up, or for this time. Returns whether
    /// there is something: not if the terminal hung up, although it can be read then.
    pub(super) fn wait(&self, at_most: Duration) -> bool {
        let at_most = Timespec::try_from(at_most).unwrap_or_default();
        let mut input = [PollFd::new(&self.before.input, PollFlags::IN)];
        // A signal ends the wait as well, and what failed here fails again where it is read.
        poll(&mut input, Some(&at_most)).is_ok_and(|found| found > 0) && !has_hung_up(&input[0])
    }

    /// Stops this process as Ctrl-Z does, with the terminal as it was.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        self.before.restore();
        raise(Signal::SIGTSTP)?;
        self.before.take()
    }
}

/// A terminal that has hung up is readable, too: POLLIN is set with POLLHUP (hung_up_tty_poll in the kernel's
/// drivers/tty/tty_io.c).
fn has_hung_up(input: &PollFd<'_>) -> bool {
    input.revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

impl Before {
    fn take(&self) -> io::Result<()> {
        let mut modes = self.modes.clone();
        modes.local_modes -=
            LocalModes::ICANON | LocalModes::ECHO | LocalModes::ECHONL | LocalModes::IEXTEN;
        modes.input_modes -= InputModes::IXON | InputModes::ICRNL | InputModes::INLCR;
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        modes.special_codes[SpecialCodeIndex::VSUSP] = NO_KEY;
        self.is_taken.store(true, Ordering::Relaxed);
        tcsetattr(&self.input, OptionalActions::Flush, &modes)?;
        execute!(stdout(), EnterAlternateScreen, Hide)
    }

    fn restore(&self) {
        if !self.is_taken.swap(false, Ordering::Relaxed) {
            return;
        }
        // If the terminal is gone, there is nothing to restore.
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
        let _ = tcsetattr(&self.input, OptionalActions::Flush, &self.modes);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.before.restore();
        if !std::thread::panicking() {
            drop(std::panic::take_hook());
        }
    }
}

#[cfg(test)]
#[path = "../../tests/it/pty/mod.rs"]
mod pty;

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Set for the process that panics.
    const PANICS: &str = "PROCTRACE_TEST_PANICS";

    #[test]
    fn a_panic_restores_the_terminal_and_its_message_is_read() {
        if std::env::var_os(PANICS).is_some() {
            let _held = Held::enter().unwrap();
            // Until a key is pressed.
            let _ = std::io::Read::read(&mut stdin(), &mut [0]);
            panic!("as planned");
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        let name = std::thread::current().name().unwrap().to_owned();
        command.args([&*name, "--exact", "--nocapture"]).env(PANICS, "1");
        // A backtrace would scroll the message off the screen.
        command.env("RUST_BACKTRACE", "0");
        let terminal = super::pty::Terminal::run(&command, (80, 24));
        terminal.wait_until("the other screen", |_| terminal.is_taken() && !terminal.is_in_lines());
        terminal.press("x");
        assert_eq!(terminal.wait_restored(), 101);
        terminal.wait_for("as planned");
    }
}
