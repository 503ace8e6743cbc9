//! The output file of a recording.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::libc;
use proctrace_record::{Identity, Sink};
use proctrace_report::number::counted;
use proctrace_trace::{Header, Spool, Trailer, Writer};
use proctrace_wire::Stream;

use crate::watch::Watch;
use crate::{live, say};

/// A trace being written.
pub(crate) struct Output {
    /// Its current path.
    path: PathBuf,
    /// The existing file with the requested name.
    earlier: Option<Earlier>,
    /// Where the existing file was moved.
    kept: Option<PathBuf>,
    spool: Spool<File>,
    announce: bool,
    quiet: bool,
    /// What shows it to the user.
    watch: Option<Watch>,
}

/// A completed trace.
pub(crate) struct Written {
    pub(crate) bytes: u64,
    pub(crate) path: PathBuf,
    /// Where the existing file of this name was moved.
    pub(crate) kept: Option<PathBuf>,
}

/// An existing output file. It is renamed only when the command runs: a failed start must not cost
/// an earlier recording.
struct Earlier {
    path: PathBuf,
    /// Its new name, as chosen by `perf record`.
    old: PathBuf,
}

impl Output {
    /// Creates the file: readable only by its owner, because arguments and environments contain
    /// secrets, and owned by `owner` where the recorder is root on another user's behalf.
    pub(crate) fn create(path: &Path, owner: Option<&Identity>, header: &Header) -> Result<Self> {
        let context = || format!("cannot write {}", path.display());
        let follows_links = !rustix::process::geteuid().is_root();
        let earlier = earlier(path, follows_links).with_context(context)?;
        let (file, at) = match &earlier {
            Some(earlier) => create_beside(&earlier.path).with_context(context)?,
            None => (open(path).with_context(context)?, path.to_owned()),
        };
        live::hold(&file);
        if file.metadata().with_context(context)?.is_file() {
            file.set_permissions(fs::Permissions::from_mode(0o600)).with_context(context)?;
            if let Some(owner) = owner {
                fchown(&file, Some(owner.uid.as_raw()), Some(owner.gid.as_raw()))
                    .with_context(context)?;
            }
        }
        let spool = Writer::new(file, header).and_then(Spool::new);
        let spool = spool.inspect_err(|_| remove(&at)).with_context(context)?;
        Ok(Self {
            path: at,
            earlier,
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

    /// Whether messages do not garble a view.
    fn may_print(&self) -> bool {
        !self.watch.as_ref().is_some_and(Watch::has_terminal)
    }

    /// Writes the rest of the trace.
    pub(crate) fn finish(mut self, trailer: &Trailer) -> Result<Written> {
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
    pub(crate) fn discard(self) {
        remove(&self.path);
    }

    /// Moves the trace to the requested name, once it is certain that there is a recording.
    pub(crate) fn take_name(&mut self) {
        let Some(Earlier { path, old }) = self.earlier.take() else { return };
        let moved = match fs::rename(&path, &old) {
            // It was removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            moved => moved.map(|()| true),
        };
        match moved.and_then(|moved| fs::rename(&self.path, &path).map(|()| moved)) {
            Ok(moved) => {
                self.path = path;
                self.kept = moved.then_some(old);
            }
            Err(error) => say::note(&format!(
                "cannot write {}: {error}; the recording is in {}",
                path.display(),
                self.path.display()
            )),
        }
    }
}

/// The file that a new trace at `path` would overwrite: a regular file that is not empty. A link is
/// resolved, since its target would be overwritten; but root follows no links (see `open`).
fn earlier(path: &Path, follows_links: bool) -> io::Result<Option<Earlier>> {
    let path = match fs::symlink_metadata(path) {
        Ok(link) if link.is_symlink() && follows_links => match path.canonicalize() {
            Ok(path) => path,
            Err(_) => return Ok(None),
        },
        _ => path.to_owned(),
    };
    if !fs::symlink_metadata(&path).is_ok_and(|file| file.is_file() && file.len() > 0) {
        return Ok(None);
    }
    let old = with_ending(&path, "old");
    if old.is_dir() {
        let why = format!("the existing file cannot be kept: {} is a directory", old.display());
        return Err(io::Error::new(io::ErrorKind::IsADirectory, why));
    }
    Ok(Some(Earlier { path, old }))
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    if rustix::process::geteuid().is_root() {
        // root must not follow a link planted in a directory that others can write to
        options.custom_flags(libc::O_NOFOLLOW);
    }
    options.open(path)
}

/// Creates a new file in the same directory, and returns its name.
pub(crate) fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    const TRIES: u32 = 100;
    let pid = std::process::id();
    let mut number = 0;
    loop {
        let name = with_ending(path, &format!("new-{pid}-{number}"));
        match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&name) {
            Ok(file) => return Ok((file, name)),
            // Left by a recorder with the same pid that was killed at its start.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < TRIES => {
                number += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

fn remove(path: &Path) {
    if path.is_file() {
        // It is empty except for a header, and the original error is reported.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_that_holds_something_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().canonicalize().unwrap().join(name);
        let full = place("full.ptrace");
        fs::write(&full, "precious").unwrap();
        fs::write(place("empty"), "").unwrap();
        std::os::unix::fs::symlink("full.ptrace", place("link")).unwrap();
        std::os::unix::fs::symlink("/dev/null", place("nowhere")).unwrap();
        std::os::unix::fs::symlink("missing", place("dangling")).unwrap();
        let of = |path: &Path, follows_links| {
            earlier(path, follows_links).unwrap().map(|earlier| (earlier.path, earlier.old))
        };
        let kept = Some((full.clone(), place("full.ptrace.old")));
        for follows_links in [false, true] {
            assert_eq!(of(&full, follows_links), kept);
            for name in ["empty", "missing", "nowhere", "dangling", "."] {
                assert_eq!(of(&place(name), follows_links), None, "{name}");
            }
            assert_eq!(of(Path::new("/dev/full"), follows_links), None);
        }
        assert_eq!(of(&place("link"), true), kept);
        assert_eq!(of(&place("link"), false), None);
        fs::create_dir(place("full.ptrace.old")).unwrap();
        assert!(earlier(&full, false).is_err());
    }

    #[test]
    fn a_name_that_is_taken_is_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        let (_, first) = create_beside(&path).unwrap();
        let (_, second) = create_beside(&path).unwrap();
        assert_ne!(first, second);
        assert!(create_beside(&directory.path().join("none/x")).is_err());
    }
}
