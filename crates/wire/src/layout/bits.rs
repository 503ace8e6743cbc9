//! The bits and special values in fields of records, and the limits of their sizes.

/// [`super::Attach::bits`]: the launched command.
pub const ATTACH_ROOT: u32 = 1;
/// [`super::Attach::bits`]: a leader that exited before its threads; it has no exit record.
pub const ATTACH_ZOMBIE: u32 = 2;
/// [`super::ExecFixed::bits`]: argv exceeds [`ARGV_MAX`]; the rest is missing.
pub const EXEC_ARGV_CAPPED: u32 = 1;
/// [`super::ExecFixed::bits`]: argv could not be read.
pub const EXEC_ARGV_FAULT: u32 = 2;
/// [`super::ExecFixed::bits`]: exe or cwd has too many components; the first are missing.
pub const EXEC_PATH_CUT: u32 = 4;
/// [`super::ExecFixed::bits`], [`super::EnvFixed::bits`]: the environment is larger than the part scanned.
pub const EXEC_ENV_CUT: u32 = 8;
/// [`super::ExecFixed::bits`]: a 32-bit program, whose system calls are not traced.
pub const EXEC_COMPAT: u32 = 16;
/// [`super::ExecFixed::bits`]: happened before the task was attached; read from /proc then.
pub const EXEC_BEFORE: u32 = 32;
/// [`super::ExecFixed::bits`]: the recorder's user may not trace the program; path, arguments and similar
/// data are withheld.
pub const EXEC_WITHHELD: u32 = 64;
/// [`super::ExecFixed::bits`]: AT_SECURE of getauxval(3): the dynamic linker ignores `LD_LIBRARY_PATH`.
pub const EXEC_SECURE: u32 = 128;
/// [`super::MissFixed::bits`]: the path could not be read.
pub const MISS_PATH_FAULT: u16 = 1;
/// [`super::MissFixed::bits`]: the path is longer than PATH_MAX.
pub const MISS_PATH_CUT: u16 = 2;
/// [`super::MissFixed::bits`]: the record in full is missing. Set by readers only.
pub const MISS_LOST: u16 = 4;
/// [`super::MovedFixed::bits`]: the paths are not known; both are empty, and of the other bits only
/// [`MOVED_REMOVED`] may be set.
pub const MOVED_UNKNOWN: u32 = 1;
/// [`super::MovedFixed::bits`]: what had the new path has the old one now.
pub const MOVED_EXCHANGED: u32 = 2;
/// [`super::MovedFixed::bits`]: the path before begins with that of the directory to which the one that was given to the
/// call is relative, and [`MOVED_FROM_HERE`].
pub const MOVED_FROM_IS_RELATIVE: u32 = 4;
/// [`super::MovedFixed::bits`]: the same of the path since.
pub const MOVED_PATH_IS_RELATIVE: u32 = 8;
/// [`super::MovedFixed::bits`]: the file was removed; the path since is empty.
pub const MOVED_REMOVED: u32 = 16;
/// [`super::WrittenFixed::bits`]: the path has too many components; the first are missing.
pub const WRITTEN_PATH_CUT: u32 = 1;
/// What separates a directory from the path that was given to a call relative to it.
pub const MOVED_FROM_HERE: &[u8] = b"/./";
/// [`super::Named::slot`] is below this: bounds the number of look-ups that can be referenced at a time.
pub const NAMED_SLOTS: u32 = 32768;
/// [`super::Exit::bits`]: the last task of its process; status and waited times are the process's.
pub const EXIT_PROCESS: u32 = 1;
/// [`super::Exit::bits`]: the parent ignores SIGCHLD, so no wait(2) includes it.
pub const EXIT_AUTOREAP: u32 = 2;
/// [`super::Exit::bits`]: `maxrss_pages` is an upper bound.
pub const EXIT_RSS_BOUND: u32 = 4;
/// [`super::Exit::bits`]: released before its last switch, so that the CPU time seen by wait(2) lacks up
/// to `run_ns - run_at_exit_ns`.
pub const EXIT_RELEASED: u32 = 8;
/// [`super::Exit::bits`]: the recorder's user could not trace it at its end; no name, I/O as last seen,
/// and counts of only those look-ups and opens that were recorded.
pub const EXIT_WITHHELD: u32 = 16;
/// [`super::Exit::bits`]: chosen by the out-of-memory killer.
pub const EXIT_OOM: u32 = 32;
/// [`super::Wait::bits`]: woken by a system call or the end of the waker.
pub const WAIT_BY_TASK: u16 = 1;
/// [`super::Wait::bits`]: woken while an interrupt was served; the waker is the task it interrupted.
pub const WAIT_BY_INTERRUPT: u16 = 2;
/// [`super::Wait::bits`]: the waker was ending.
pub const WAIT_BY_END: u16 = 4;
/// [`super::Wait::bits`]: the recorder's user may not trace the waker; no name.
pub const WAIT_WITHHELD: u16 = 8;
/// [`super::Signal::bits`]: sent while an interrupt was served; the sender is the task it interrupted.
pub const SIGNAL_BY_INTERRUPT: u16 = 1;
/// [`super::Signal::bits`]: the recorder's user may not trace the sender; no name.
pub const SIGNAL_WITHHELD: u16 = 2;
/// [`super::WorkdirFixed::bits`]: too many components; the first are missing.
pub const WORKDIR_CUT: u16 = 1;
/// [`super::WorkdirFixed::bits`]: the path is the name of the cgroup that is the task's job.
pub const WORKDIR_JOB: u16 = 2;
/// [`super::PlaceFixed::bits`]: too many components; the first are missing.
pub const PLACE_CUT: u16 = 1;
/// Maximum number of bytes of a mount table in one record.
pub const MOUNTS_CHUNK: usize = 32768;
/// [`super::Sample::bits`]: sampled at the end of the recording.
pub const SAMPLE_FINAL: u16 = 1;
/// [`super::Sample::bits`]: the recorder's user may not trace it; I/O as last seen.
pub const SAMPLE_WITHHELD: u16 = 2;
/// [`super::Loss::cpu`]: not known per CPU.
pub const LOSS_ANY_CPU: u32 = u32::MAX;
/// Maximum argv bytes recorded per exec; the rest is dropped and flagged.
pub const ARGV_MAX: u32 = 16384 + 63 * 32768;
/// Size of [`super::Exit`] in version 1. What a record has got later is at its end, and zero in older traces.
pub const EXIT_AT_FIRST: usize = 216;
/// Size of [`super::Memory`] in version 1.
pub const MEMORY_AT_FIRST: usize = 64;
/// Maximum size of a record.
pub const RECORD_MAX: usize = 65528;
