//! Distinguishes a trace being written from one whose recorder was killed: the recorder holds a
//! lock while the file is open, and the kernel releases the lock when the recorder ends.
//!
//! It is an open file description lock (F_OFD_SETLK in fcntl(2)) for writing. Any process that can
//! read the file can test for the lock without acquiring it, and only a process that can write the
//! file can hold it. A flock(2) could be held by any reader, and could only be tested by trying to
//! acquire it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// Marks this file as being written, until it is closed. Has no effect on file systems without
/// locks.
pub fn hold(file: &File) {
    let lock = whole_file(libc::F_WRLCK);
    // Recording continues without the lock: it is more important than the status shown to readers.
    let _ = fcntl(file, FcntlArg::F_OFD_SETLK(&lock));
}

/// Releases the mark.
#[cfg(test)]
pub(crate) fn release(file: &File) {
    fcntl(file, FcntlArg::F_OFD_SETLK(&whole_file(libc::F_UNLCK))).unwrap();
}

/// Returns whether a recorder is writing the file at this moment.
pub fn is_held(path: &Path) -> bool {
    // Opening a pipe would block until there is a writer, or steal data from its reader.
    if !path.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return false;
    }
    open(path).is_ok_and(|file| is_written(&file))
}

#[expect(clippy::disallowed_methods, reason = "it is opened for reading")]
fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

/// The same of an open file, whatever its name is by now.
pub fn is_written(file: &File) -> bool {
    let mut lock = whole_file(libc::F_RDLCK);
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut lock)).is_ok()
        && libc::c_int::from(lock.l_type) != libc::F_UNLCK
}

fn whole_file(kind: libc::c_int) -> libc::flock {
    let short = |number: libc::c_int| libc::c_short::try_from(number).unwrap_or_default();
    libc::flock {
        l_type: short(kind),
        l_whence: short(libc::SEEK_SET),
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_lasts_as_long_as_the_file_is_open() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        let file = File::create(&path).unwrap();
        assert!(!is_held(&path));
        hold(&file);
        assert!(is_held(&path));
        // Testing does not affect the lock, even through a second descriptor of the same process.
        assert!(is_held(&path));
        drop(file);
        // Until its exec, a process that another test starts has the file open as well.
        while is_held(&path) {
            std::thread::yield_now();
        }
        assert!(!is_held(&directory.path().join("missing")));
        assert!(!is_held(Path::new("/dev/null")));
        assert!(!is_held(directory.path()));
    }

    #[test]
    fn a_pipe_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(!is_held(&path));
    }

    #[test]
    fn a_reader_cannot_pretend() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        drop(File::create(&path).unwrap());
        let reader = File::open(&path).unwrap();
        hold(&reader);
        let lock = whole_file(libc::F_RDLCK);
        fcntl(&reader, FcntlArg::F_OFD_SETLK(&lock)).unwrap();
        assert!(!is_held(&path));
    }
}
