//! The way along a path: for root, only through links that it trusts.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat, readlinkat};
use rustix::io::Errno;

use crate::error::OutputError;
use crate::found::{Found, Kind};
use crate::policy::{Access, Outputs};

/// Maximum number of links that are followed, as in the kernel.
pub(crate) const LINKS_MAX: u32 = 40;

pub(crate) const PATH: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Goes along a path from an open directory.
pub(crate) fn walk(
    outputs: &Outputs,
    from: OwnedFd,
    path: &Path,
    creates: Option<Access>,
) -> Result<OwnedFd, OutputError> {
    let follows = !outputs.is_root();
    let mode = Mode::from_raw_mode(if creates == Some(Access::Umask) { 0o777 } else { 0o700 });
    let mut rest = parts(path);
    let mut at = from;
    // For messages.
    let mut shown = PathBuf::new();
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        shown.push(&part);
        let flags = PATH | OFlags::DIRECTORY;
        let flags = if follows { flags } else { flags | OFlags::NOFOLLOW };
        let opened = match openat(&at, &part, flags, Mode::empty()) {
            Err(Errno::NOENT) if creates.is_some() => {
                match mkdirat(&at, &part, mode) {
                    Ok(()) => {
                        give(outputs, &at, &part)?;
                        if let Some(Access::Mode(mode)) = creates {
                            let made = openat(&at, &part, flags | OFlags::NOFOLLOW, Mode::empty())?;
                            // By what was made: fchmod(2) takes no descriptor that was opened by O_PATH.
                            let by_descriptor = format!("/proc/self/fd/{}", made.as_raw_fd());
                            rustix::fs::chmod(by_descriptor, Mode::from_raw_mode(mode))?;
                        }
                    }
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                // A link that leads nowhere exists, too: then this fails.
                openat(&at, &part, flags, Mode::empty())
            }
            opened => opened,
        };
        match opened {
            Ok(fd) => at = fd,
            // A link with O_DIRECTORY and O_NOFOLLOW.
            Err(Errno::NOTDIR | Errno::LOOP) if !follows => {
                let link = openat(&at, &part, PATH | OFlags::NOFOLLOW, Mode::empty())?;
                let found = Found::of(&link)?;
                if found.kind != Kind::Link {
                    return Err(Errno::NOTDIR.into());
                }
                if !outputs.trusts(found.uid) {
                    return Err(OutputError::Component { path: shown, uid: found.uid });
                }
                links += 1;
                if links > LINKS_MAX {
                    return Err(Errno::LOOP.into());
                }
                let target = readlinkat(&link, "", Vec::new())?.into_bytes();
                let target = PathBuf::from(OsString::from_vec(target));
                for part in parts(&target).into_iter().rev() {
                    rest.push_front(part);
                }
                if target.is_absolute() {
                    at = start(&target)?;
                }
                shown.pop();
                shown.push(target);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(at)
}

/// Refuses all but single names: what a journal or a table names must not lead elsewhere.
pub(crate) fn one(name: &OsStr) -> Result<&OsStr, OutputError> {
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(only)), None) if only == name => Ok(name),
        _ => Err(Errno::INVAL.into()),
    }
}

pub(crate) fn start(path: &Path) -> Result<OwnedFd, Errno> {
    let start = if path.is_absolute() { "/" } else { "." };
    openat(CWD, start, PATH | OFlags::DIRECTORY, Mode::empty())
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let parts = path.components().filter_map(|component| match component {
        Component::Normal(part) => Some(part.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    parts.collect()
}

/// Gives a new directory to the owner of files.
fn give(outputs: &Outputs, directory: &OwnedFd, name: &OsStr) -> Result<(), OutputError> {
    let Some(owner) = outputs.owner else { return Ok(()) };
    let made = openat(
        directory,
        name,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    // Made by us and not by somebody who was faster.
    if Found::of(&made)?.uid == outputs.uid {
        std::os::unix::fs::fchown(made, Some(owner.uid), Some(owner.gid))?;
    }
    Ok(())
}
