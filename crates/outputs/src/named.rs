//! The object that has the name of a file to be written.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, readlinkat};
use rustix::io::Errno;

use crate::directory::Directory;
use crate::error::OutputError;
use crate::found::{Found, Kind};
use crate::policy::{Outputs, Specials};
use crate::walk::LINKS_MAX;

/// Destination of a file that is to be written.
pub(crate) enum Destination {
    /// Something that is no file and is open already.
    Open(File),
    /// A name in a directory, which nothing has, or a file that may be replaced.
    Name(Directory, OsString),
}

/// Finds the place of a file.
pub(crate) fn find(
    outputs: &Outputs,
    path: &Path,
    specials: Specials,
) -> Result<Destination, OutputError> {
    find_any(outputs, path, specials, false)
}

/// The same, where `others` tells that files of others are accepted.
pub(crate) fn find_any(
    outputs: &Outputs,
    path: &Path,
    specials: Specials,
    others: bool,
) -> Result<Destination, OutputError> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        if specials == Specials::Asked && is_descriptor(&path) {
            return Ok(Destination::Open(descriptor(&path)?));
        }
        let (directory, name) = apart(outputs, &path)?;
        let Some(found) = directory.look(&name)? else {
            return Ok(Destination::Name(directory, name));
        };
        match found.kind {
            Kind::Link if outputs.is_root() || !outputs.trusts(found.uid) => {
                return Err(OutputError::Link { uid: found.uid });
            }
            Kind::Link => {
                let target = readlinkat(&directory.fd, &name, Vec::new())?.into_bytes();
                path = directory.path().join(OsString::from_vec(target));
            }
            Kind::File if outputs.is_root() && !others && !outputs.trusts(found.uid) => {
                return Err(OutputError::Foreign { what: "file", uid: found.uid });
            }
            Kind::File => return Ok(Destination::Name(directory, name)),
            Kind::Directory => return Err(Errno::ISDIR.into()),
            Kind::Fifo if specials == Specials::Asked && !outputs.trusts(found.uid) => {
                return Err(OutputError::Foreign { what: "FIFO", uid: found.uid });
            }
            // No user can make a device: whoever owns it, an administrator has put it there.
            Kind::Fifo | Kind::CharacterDevice if specials == Specials::Asked => {
                return Ok(Destination::Open(open_as_found(&directory, &name, &found)?));
            }
            other => return Err(OutputError::NoFile(other.name())),
        }
    }
    Err(Errno::LOOP.into())
}

/// The directory of a path, and the name in it.
fn apart(outputs: &Outputs, path: &Path) -> Result<(Directory, OsString), OutputError> {
    let ends_in_slash = path.as_os_str().as_bytes().ends_with(b"/");
    let Some(name) = path.file_name().filter(|_| !ends_in_slash) else {
        return Err(if path.as_os_str().is_empty() { Errno::NOENT } else { Errno::ISDIR }.into());
    };
    let parent = path.parent().unwrap_or(Path::new(""));
    Ok((outputs.directory(parent)?, name.to_owned()))
}

/// Time for which the reader of a FIFO is waited for, which may be about to start.
const READER_MAX: Duration = Duration::from_secs(10);

/// Opens what was looked at. It may have been replaced since. To open a FIFO without a reader blocks (fifo(7)), and a
/// recorder has blocked the signals that would end it.
fn open_as_found(directory: &Directory, name: &OsStr, found: &Found) -> Result<File, OutputError> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::NONBLOCK;
    let begun = Instant::now();
    let file = loop {
        match directory.open(name, flags) {
            Err(Errno::NXIO) if found.kind == Kind::Fifo && begun.elapsed() < READER_MAX => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(Errno::NXIO) if found.kind == Kind::Fifo => return Err(OutputError::Unread),
            opened => break opened?,
        }
    };
    if Found::of(&file)? != *found {
        return Err(OutputError::Replaced);
    }
    // Writing waits for the reader.
    rustix::fs::fcntl_setfl(&file, rustix::fs::fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// True if a path names a descriptor that this process has: there is nothing to look up.
fn is_descriptor(path: &Path) -> bool {
    let own = PathBuf::from(format!("/proc/{}/fd", std::process::id()));
    let directories = [Path::new("/dev/fd"), Path::new("/proc/self/fd"), &own];
    path == Path::new("/dev/stdout")
        || path == Path::new("/dev/stderr")
        || path.parent().is_some_and(|parent| directories.contains(&parent))
}

/// Descriptor that whoever started this process has opened under a number. The standard streams are used as they
/// are, so that what is there is not cut; others are opened anew, as by any program that is given such a path.
#[expect(
    clippy::disallowed_methods,
    reason = "whoever started this process has opened the file, and passes it by its number"
)]
fn descriptor(path: &Path) -> io::Result<File> {
    match path.file_name().and_then(OsStr::to_str) {
        Some("stdout" | "1") => Ok(io::stdout().as_fd().try_clone_to_owned()?.into()),
        Some("stderr" | "2") => Ok(io::stderr().as_fd().try_clone_to_owned()?.into()),
        _ => File::options().write(true).truncate(true).open(path),
    }
}
