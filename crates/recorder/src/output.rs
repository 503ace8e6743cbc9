//! The output file of a recording.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use proctrace_outputs::{Access, NewFile, Outputs, Specials};
use proctrace_record::Sink;
use proctrace_report::number::counted;
use proctrace_trace::{Header, Spool, Trailer, Writer};
use proctrace_wire::Stream;

use crate::watch::{KEPT, Watch};
use crate::{live, say};

/// A trace being written.
pub struct Output {
    /// Its current path.
    path: PathBuf,
    /// Until it has the requested name.
    new: Option<NewFile>,
    /// Path to which the existing file was moved.
    kept: Option<PathBuf>,
    spool: Spool<File>,
    announce: bool,
    quiet: bool,
    /// View that shows it to the user.
    watch: Option<Watch>,
}

/// A completed trace.
pub struct Written {
    /// Size of the file.
    pub bytes: u64,
    /// Path of the file.
    pub path: PathBuf,
    /// Path to which the existing file of this name was moved.
    pub(crate) kept: Option<PathBuf>,
}

impl Output {
    /// Creates the file: readable only by its owner, because arguments and environments contain secrets. It gets its
    /// name only when the command runs: a failed start must not cost an earlier recording.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: &Path, outputs: &Outputs, header: &Header) -> Result<Self> {
        let context = || format!("cannot write {}", path.display());
        let mut new = outputs.create(path, Access::Owner, Specials::Asked).with_context(context)?;
        new.keep_earlier(KEPT).with_context(context)?;
        let file = new.writer().with_context(context)?;
        live::hold(&file);
        let spool = Writer::new(file, header).and_then(Spool::new).with_context(context)?;
        Ok(Self {
            path: new.path(),
            new: Some(new),
            kept: None,
            spool,
            announce: false,
            quiet: false,
            watch: None,
        })
    }

    /// Announces on stderr that the recording has started.
    pub(crate) fn announced(mut self, announce: bool) -> Self {
        self.announce = announce;
        self
    }

    /// Suppresses all messages on stderr except warnings.
    pub(crate) fn quiet(mut self, quiet: bool) -> Self {
        self.quiet = quiet;
        self
    }

    /// Shows the trace once the recording has started. What the command writes to the terminal goes
    /// to a file beside it if the terminal is needed for that.
    pub(crate) fn watched(mut self, watch: Option<Watch>, trace: &Path) -> Result<Self> {
        self.watch = watch;
        match self.watch.as_mut().map_or(Ok(()), |watch| watch.divert(trace)) {
            Ok(()) => Ok(self),
            Err(error) => {
                self.discard();
                Err(error)
            }
        }
    }

    /// Returns whether messages do not garble a view.
    fn may_print(&self) -> bool {
        !self.watch.as_ref().is_some_and(Watch::has_terminal)
    }

    /// Writes the rest of the trace.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self, trailer: &Trailer) -> Result<Written> {
        self.take_name();
        let (path, kept) = (self.path, self.kept);
        let (mut file, bytes) = self
            .spool
            .finish(trailer)
            .with_context(|| format!("cannot write {}", path.display()))?;
        file.flush()?;
        // It is not locked any more while its user still looks at it.
        drop(file);
        if let Some(watch) = self.watch {
            watch.finish();
        }
        Ok(Written { bytes, path, kept })
    }

    /// Removes the unfinished file.
    pub fn discard(self) {
        // What has no name is removed.
        drop(self.new);
    }

    /// Moves the trace to the requested name, once it is certain that there is a recording; returns where it is.
    pub(crate) fn take_name(&mut self) -> &Path {
        let Some(mut new) = self.new.take() else { return &self.path };
        match new.publish() {
            Ok(kept) => {
                self.path = new.final_path().to_owned();
                self.kept = kept;
            }
            Err(error) => {
                let path = new.final_path().to_owned();
                self.path = new.leave();
                say::note(&format!(
                    "cannot write {}: {error}; the recording is in {}",
                    path.display(),
                    self.path.display()
                ));
            }
        }
        &self.path
    }
}

impl Sink for Output {
    fn push(&mut self, stream: Stream, time_ns: u64, record: &[u8]) -> io::Result<()> {
        self.spool.push(stream, time_ns, record).map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.spool.flush().map_err(io::Error::other)
    }

    fn ready(&mut self, processes: u64) {
        self.take_name();
        if let Some(watch) = &mut self.watch {
            watch.start(&self.path);
        }
        if self.announce && self.may_print() {
            let processes = counted(processes, "process", "processes");
            say::note(&format!("recording {processes} and descendants; press Ctrl-C to stop"));
        }
    }

    fn waiting(&mut self, alive: u64, grace: Duration) {
        if !self.quiet && self.may_print() {
            say::note(&format!(
                "the command has exited; waiting up to {} for {} (see --grace, --wait)",
                humantime::format_duration(grace),
                counted(alive, "task that is still running", "tasks that are still running"),
            ));
        }
    }
}
