//! A pager for what is longer than the terminal, as git has one: the command runs once more below it, told how large
//! the terminal is.

use std::io::{IsTerminal, stdout};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command as Program, ExitCode, Stdio};

use nix::sys::signal::{SigSet, Signal};
use rustix::termios::tcgetwinsize;

use crate::args::{Command, SectionFormat};

/// Variable by which a command below the pager learns the size of the terminal: "80x24".
const PAGED: &str = "PROCTRACE_PAGED";
/// Variables that name the pager, in the order of preference; an empty value, or `cat`, is none.
const CHOSEN: [&str; 2] = ["PROCTRACE_PAGER", "PAGER"];
/// Quit if it fits one screen, pass colours, leave the text on the terminal: git's choice.
const LESS: &str = "FRX";
/// Statuses of a shell that could not run its command (POSIX, 2.8.2).
const NOT_RUN: [i32; 2] = [126, 127];

/// Columns and lines of the terminal that the output of this process ends on, through a pager or not.
pub(crate) fn terminal() -> Option<(usize, usize)> {
    if let Some(size) = std::env::var_os(PAGED) {
        let (columns, lines) = size.to_str()?.split_once('x')?;
        return Some((columns.parse().ok()?, lines.parse().ok()?));
    }
    Some(stdout()).filter(IsTerminal::is_terminal).and_then(|stdout| {
        let size = tcgetwinsize(stdout).ok()?;
        Some((usize::from(size.ws_col), usize::from(size.ws_row)))
    })
}

/// Runs this command once more with a pager, if it may be long and ends on a terminal; `None` if it is to run here.
pub(crate) fn run(command: &Command) -> Option<ExitCode> {
    if !may_be_long(command) || std::env::var_os(PAGED).is_some() {
        return None;
    }
    let (columns, lines) = terminal()?;
    let mut reader = Program::new("/bin/sh");
    reader.arg("-c").arg(chosen()?).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        reader.env("LESS", LESS);
    }
    let own = std::env::current_exe().ok()?;
    let mut reader = reader.spawn().ok()?;
    let text = reader.stdin.take()?;
    // Ctrl-C is for the reader, which decides what it ends.
    let mut interrupt = SigSet::empty();
    interrupt.add(Signal::SIGINT);
    let is_blocked = interrupt.thread_block().is_ok();
    let written = Program::new(own)
        .args(std::env::args_os().skip(1))
        .env(PAGED, format!("{columns}x{lines}"))
        .stdout(Stdio::from(text))
        .status();
    // It stays until the last line was read.
    let read = reader.wait();
    if is_blocked {
        let _ = interrupt.thread_unblock();
    }
    // One that cannot be run is no reason to print nothing: the shell has said so.
    if read.is_ok_and(|read| read.code().is_some_and(|code| NOT_RUN.contains(&code))) {
        return None;
    }
    let status = written.ok()?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Some(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// Returns whether the text of a command can be longer than a screen.
fn may_be_long(command: &Command) -> bool {
    match command {
        Command::Report(args) => args.is_long() && args.format() == SectionFormat::Text,
        Command::Tree(_) | Command::Show(_) | Command::Advise(_) | Command::Ps(_) => true,
        Command::Libs(args) => args.action.is_none(),
        _ => false,
    }
}

/// The user's pager, or `less` if there is one.
fn chosen() -> Option<std::ffi::OsString> {
    if let Some(asked) = CHOSEN.into_iter().find_map(std::env::var_os) {
        return (!asked.is_empty() && asked != "cat").then_some(asked);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).any(|place| place.join("less").is_file()).then(|| "less".into())
}
