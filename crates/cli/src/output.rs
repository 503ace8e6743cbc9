//! The file a recording goes to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::libc;
use proctrace_record::{Identity, Sink};
use proctrace_report::number::counted;
use proctrace_trace::{Header, Spool, Trailer, Writer};
use proctrace_wire::Stream;

use crate::args::DEFAULT_TRACE;
use crate::say;

/// A trace that is being written.
pub(crate) struct Output {
    path: PathBuf,
    spool: Spool<File>,
    announce: bool,
}

impl Output {
    /// Creates the file: for its owner's eyes only, because arguments and environments hold
    /// secrets, and owned by `owner` where the recorder is root on someone's behalf.
    pub(crate) fn create(path: &Path, owner: Option<&Identity>, header: &Header) -> Result<Self> {
        let context = || format!("cannot write {}", path.display());
        if path == Path::new(DEFAULT_TRACE) && path.is_file() {
            // As a recording cannot be made again, one that nobody named is kept.
            fs::rename(path, path.with_extension("ptrace.old")).with_context(context)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        if rustix::process::geteuid().is_root() {
            // root must not be led astray by a link in a directory that others can write to
            options.custom_flags(libc::O_NOFOLLOW);
        }
        let file = options.open(path).with_context(context)?;
        if file.metadata().with_context(context)?.is_file() {
            file.set_permissions(fs::Permissions::from_mode(0o600)).with_context(context)?;
            if let Some(owner) = owner {
                fchown(&file, Some(owner.uid.as_raw()), Some(owner.gid.as_raw()))
                    .with_context(context)?;
            }
        }
        let spool = Writer::new(file, header).and_then(Spool::new);
        let spool = spool.inspect_err(|_| remove(path)).with_context(context)?;
        Ok(Self { path: path.to_owned(), spool, announce: false })
    }

    /// Says on stderr when the recording is under way.
    pub(crate) fn announced(mut self, announce: bool) -> Self {
        self.announce = announce;
        self
    }

    /// Writes the rest; returns the bytes written in all.
    pub(crate) fn finish(self, trailer: &Trailer) -> Result<u64> {
        let path = self.path;
        let (mut file, bytes) = self
            .spool
            .finish(trailer)
            .with_context(|| format!("cannot write {}", path.display()))?;
        file.flush()?;
        Ok(bytes)
    }

    /// Removes what was begun in vain.
    pub(crate) fn discard(self) {
        remove(&self.path);
    }
}

fn remove(path: &Path) {
    if path.is_file() {
        // It is empty but for a header, and the error that led here is told.
        let _ = fs::remove_file(path);
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
        if self.announce {
            let processes = counted(processes, "process", "processes");
            say::note(&format!("recording {processes} and what they start; Ctrl-C ends it"));
        }
    }
}
