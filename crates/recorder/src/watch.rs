//! The process that shows a recording to the user who makes it (`record --live`, `--progress`), and
//! where the command's output goes meanwhile.
//!
//! It is `proctrace top` with the trace that is being written: the recorder only starts it.

use std::fs::{self, File};
use std::io::{self, IsTerminal, stderr, stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use proctrace_outputs::{Access, OutputError, Outputs, Specials};
use proctrace_record::Identity;
use proctrace_report::number::bytes;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use crate::args::RecordArgs;
use crate::{invoker, say, top};

/// The ending of an earlier trace, as chosen by `perf record`.
pub(crate) const KEPT: &str = ".old";

/// Way in which the recording is shown.
#[derive(Debug, Clone, Copy)]
enum How {
    /// In the whole terminal.
    Live,
    /// In a line at this interval, on stderr.
    Lines(Duration),
}

/// View of a recording, before and after it is started.
#[derive(Debug)]
pub(crate) struct Watch {
    how: How,
    owner: Option<Identity>,
    /// The terminal, for the whole view.
    terminal: Option<File>,
    diverted: Option<Diverted>,
    /// The file of the command's output.
    output: Option<PathBuf>,
    child: Option<Child>,
}

/// The command's standard streams, as far as they were the terminal.
#[derive(Debug)]
struct Diverted {
    /// Our own.
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
}

impl Watch {
    /// Makes the view that the arguments ask for.
    ///
    /// # Errors
    /// Without a terminal for --live.
    pub(crate) fn asked(args: &RecordArgs, owner: Option<&Identity>) -> Result<Option<Self>> {
        let how = match (args.live, args.progress) {
            (true, _) => How::Live,
            (false, Some(interval)) => How::Lines(interval),
            (false, None) => return Ok(None),
        };
        let terminal = match how {
            How::Live => {
                Some(top::terminal().context("--live needs a terminal, --progress does not")?)
            }
            How::Lines(_) => None,
        };
        Ok(Some(Self {
            how,
            owner: owner.cloned(),
            terminal,
            diverted: None,
            output: None,
            child: None,
        }))
    }

    /// Returns whether it has the terminal, so that nothing else may be printed there.
    pub(crate) fn has_terminal(&self) -> bool {
        matches!(self.how, How::Live)
    }

    /// Diverts the command's streams before it is started: gives it a file where it would write to the terminal, and no
    /// input where it would read from it. It inherits our own streams.
    pub(crate) fn divert(&mut self, trace: &Path) -> Result<()> {
        let path = with_ending(trace, ".out");
        let to_file = stdout().is_terminal() || stderr().is_terminal();
        if !self.has_terminal() || !(to_file || stdin().is_terminal()) {
            return Ok(());
        }
        let keep = |stream: &dyn AsFd, is_terminal: bool| {
            is_terminal.then(|| stream.as_fd().try_clone_to_owned()).transpose()
        };
        let diverted = Diverted {
            stdin: keep(&stdin(), stdin().is_terminal())?,
            stdout: keep(&stdout(), stdout().is_terminal())?,
            stderr: keep(&stderr(), stderr().is_terminal())?,
        };
        let file = match to_file {
            true => {
                let context = || format!("cannot write {}", path.display());
                let file = create(&path, &invoker::outputs_for(self.owner.as_ref()))
                    .with_context(context)?;
                self.output = Some(path);
                Some(file)
            }
            false => None,
        };
        // From here on, dropping it takes the streams back.
        let diverted = self.diverted.insert(diverted);
        if diverted.stdin.is_some() {
            dup2_stdin(File::open("/dev/null")?)?;
        }
        if let Some(file) = file {
            if diverted.stdout.is_some() {
                dup2_stdout(&file)?;
            }
            if diverted.stderr.is_some() {
                dup2_stderr(&file)?;
            }
        }
        Ok(())
    }

    /// Takes the streams back when the command runs, and starts to show the trace.
    pub(crate) fn start(&mut self, trace: &Path) {
        self.diverted = None;
        match self.command(trace).and_then(|mut command| command.spawn()) {
            Ok(child) => self.child = Some(child),
            // The recording is more important.
            Err(error) => say::note(&format!("cannot show the recording: {error}")),
        }
    }

    fn command(&self, trace: &Path) -> io::Result<Command> {
        let mut command = Command::new("/proc/self/exe");
        command.args(["top", "--of-record"]);
        match (self.how, &self.terminal) {
            (How::Live, Some(terminal)) => {
                command.stdin(terminal.try_clone()?).stdout(terminal.try_clone()?);
            }
            (How::Live, None) => {}
            (How::Lines(interval), _) => {
                let interval = humantime::format_duration(interval).to_string().replace(' ', "");
                command.arg(format!("--progress={interval}"));
                command.stdin(Stdio::null()).stdout(Stdio::null());
            }
        }
        command.arg("--").arg(trace);
        if let Some(owner) = &self.owner {
            command.uid(owner.uid.as_raw()).gid(owner.gid.as_raw());
        }
        Ok(command)
    }

    /// Waits until the user has closed the view, when the trace is complete.
    pub(crate) fn finish(mut self) {
        let Some(mut child) = self.child.take() else { return };
        if self.has_terminal() {
            // Ctrl-C closes the view. It is not for us, who still pass the exit status on.
            let mut keyboard = SigSet::empty();
            keyboard.add(Signal::SIGINT);
            keyboard.add(Signal::SIGQUIT);
            let _ = keyboard.thread_block();
        } else {
            end(&child);
        }
        let _ = child.wait();
        self.tell_output();
    }

    /// Says where the command's output is, or removes the file if there is none.
    fn tell_output(&self) {
        let Some(path) = &self.output else { return };
        match fs::symlink_metadata(path) {
            Ok(file) if file.len() > 0 => {
                let size = bytes(file.len());
                let path = path.display();
                say::note(&format!("the output of the command is in {path} ({size})"));
            }
            Ok(_) => {
                let _ = fs::remove_file(path);
            }
            Err(_) => {}
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // After an error: its message must not be hidden.
        if let Some(mut child) = self.child.take() {
            end(&child);
            let _ = child.wait();
            self.tell_output();
        } else if self.diverted.take().is_some() {
            // The command did not start.
            self.tell_output();
        }
    }
}

impl Drop for Diverted {
    fn drop(&mut self) {
        // These descriptors are our own, so this fails only if they were never diverted.
        let _ = self.stdin.as_ref().map(dup2_stdin);
        let _ = self.stdout.as_ref().map(dup2_stdout);
        let _ = self.stderr.as_ref().map(dup2_stderr);
    }
}

fn end(child: &Child) {
    if let Ok(pid) = i32::try_from(child.id()) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    }
}

/// A new file; an earlier one of this name gets the ending ".old". As the trace, it is readable by
/// its owner only.
fn create(path: &Path, outputs: &Outputs) -> Result<File, OutputError> {
    let mut file = outputs.create(path, Access::Owner, Specials::Refused)?;
    file.keep_earlier(KEPT)?;
    // The command and its descendants may write by descriptors of their own.
    file.append_only()?;
    file.publish()?;
    Ok(file.writer()?)
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
