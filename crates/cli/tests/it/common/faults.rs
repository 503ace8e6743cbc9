//! Faults of system calls, which strace makes one at a time. Needs strace.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A system call of a command.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// The how many-th of its name it is.
    pub(crate) number: u64,
    /// The call as strace shows it.
    pub(crate) line: String,
}

impl Call {
    /// True if it changes files, or puts them on disk.
    pub(crate) fn writes(&self) -> bool {
        self.name != "flock" && (self.name != "openat" || self.line.contains("O_CREAT"))
    }
}

/// Faults of a file system, and how a message says them.
pub(crate) const FAULTS: [(&str, &str); 2] =
    [("error=ENOSPC", "No space left on device"), ("error=EIO", "Input/output error")];

/// A command under strace, which traces its main thread only, unless it is told to follow others.
///
/// With one arena of malloc, as calls are counted: glibc looks at /proc/sys/vm/overcommit_memory before it gives back memory of an
/// arena of another thread (check_may_shrink_heap() in sysdeps/unix/sysv/linux/malloc-sysdep.h), which depends on who frees what
/// first. On a busy machine, 5 of 240 runs opened one file more than the others; with one arena none did.
pub(crate) fn under_strace<S: AsRef<OsStr>>(
    options: impl IntoIterator<Item = S>,
    command: &Command,
) -> Command {
    let mut strace = Command::new("strace");
    strace.args(options).arg(command.get_program()).args(command.get_args());
    if let Some(directory) = command.get_current_dir() {
        strace.current_dir(directory);
    }
    strace.env_remove("LD_LIBRARY_PATH").env("GLIBC_TUNABLES", "glibc.malloc.arena_max=1");
    strace
}

/// The calls of these names that a command makes on files of a directory.
pub(crate) fn calls_on(place: &Path, names: &str, command: &Command) -> Vec<Call> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let traced = format!("trace={names}");
    let options = ["-y", "-o", log.path().to_str().unwrap(), "-e", &traced];
    let output =
        under_strace(options, command).output().expect("strace is here: cargo xtask setup");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut numbers: BTreeMap<String, u64> = BTreeMap::new();
    let mut found = Vec::new();
    for line in fs::read_to_string(&log).unwrap().lines() {
        let Some((name, _)) = line.split_once('(') else { continue };
        let number = numbers.entry(name.to_owned()).or_default();
        *number += 1;
        if line.contains(place.to_str().unwrap()) {
            found.push(Call { name: name.to_owned(), number: *number, line: line.to_owned() });
        }
    }
    found
}

/// A command of which one call goes wrong: `error=EIO` or `signal=KILL`.
pub(crate) fn injected(call: &Call, fault: &str, command: &Command) -> Command {
    let Call { name, number, .. } = call;
    let inject = format!("inject={name}:{fault}:when={number}");
    under_strace(["-o", "/dev/null", "-e", &format!("trace={name}"), "-e", &inject], command)
}
