//! Telling a trace that is being written from one whose recorder was killed: the recorder holds a
//! lock on the file for as long as it has it open, and the kernel takes that away with it.
//!
//! It is a lock of the open file description (F_OFD_SETLK in fcntl(2)), for writing. Whether someone
//! holds it can be asked without taking it, by whoever may read the file, and only who may write
//! it can hold it. A flock(2) could be held by any reader, and could only be asked for by trying.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// Says that this file is being written, until it is closed. Where the file system has no locks,
/// nothing can be said.
pub(crate) fn hold(file: &File) {
    let lock = whole_file(libc::F_WRLCK);
    // The recording matters more than what readers are told of it.
    let _ = fcntl(file, FcntlArg::F_OFD_SETLK(&lock));
}

/// Whether a recorder is writing the file at this moment.
pub(crate) fn is_held(path: &Path) -> bool {
    // Opening a pipe would wait for who writes it, or take it away from who reads it.
    if !path.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return false;
    }
    let options = || OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let Ok(file) = options() else { return false };
    let mut lock = whole_file(libc::F_RDLCK);
    fcntl(&file, FcntlArg::F_OFD_GETLK(&mut lock)).is_ok()
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
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
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
        // To ask changes nothing, and a second descriptor of one's own is no exception.
        assert!(is_held(&path));
        drop(file);
        assert!(!is_held(&path));
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
