//! The memory layout of the records: the mirror of `bpf/wire.h`, which documents each field.
//!
//! A record is its fixed part as below, then the announced number of bytes, then padding to a
//! multiple of 8. Every integer is little-endian; this crate refuses to build for a big-endian
//! machine.

mod bits;
mod fields;
#[macro_use]
mod records;
mod version;

pub use bits::*;
pub use fields::{Field, Layout};
pub use version::WIRE_VERSION;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

#[cfg(not(target_endian = "little"))]
compile_error!("the record layout is little-endian and read in place");

records! {
    /// The start of every record.
    Head as "pt_head" {
        /// A [`crate::Kind`].
        kind: u16,
        /// Size of the whole record.
        size: u16,
        /// Serial of the task concerned, 0 for none.
        task: u32,
        /// CLOCK_BOOTTIME.
        time_ns: u64,
    }

    /// A task that has no fork record.
    Attach as "pt_attach" {
        /// Kind 1.
        head: Head,
        /// Serial of the process.
        process: u32,
        /// Thread-group id.
        tgid: i32,
        /// Thread id.
        tid: i32,
        /// Thread-group id of the real parent.
        parent_tgid: i32,
        /// ATTACH_* bits.
        bits: u32,
        /// Thread-group id in the task's own pid namespace.
        tgid_ns: i32,
        /// Thread id there.
        tid_ns: i32,
        /// The job that the task belongs to, in a recording of many jobs; otherwise 0.
        group: u32,
        /// start_boottime.
        start_ns: u64,
        /// CPU time consumed before it was attached.
        run_ns: u64,
        /// User ticks before.
        utime_ns: u64,
        /// System ticks before.
        stime_ns: u64,
        /// Voluntary context switches before.
        nvcsw: u64,
        /// Involuntary context switches before.
        nivcsw: u64,
        /// Minor faults before.
        minflt: u64,
        /// Major faults before.
        majflt: u64,
        /// Bytes read by system calls before.
        rchar: u64,
        /// Bytes written by system calls before.
        wchar: u64,
        /// Bytes read from storage before.
        read_bytes: u64,
        /// Bytes written to storage before.
        write_bytes: u64,
        /// Time spent runnable without a CPU before.
        run_delay_ns: u64,
        /// User time of children the process had waited for.
        waited_utime_ns: u64,
        /// System time of children the process had waited for.
        waited_stime_ns: u64,
        /// Name.
        comm: [u8; 16],
    }

    /// A new task. `head.task` is the forker.
    Fork as "pt_fork" {
        /// Kind 2.
        head: Head,
        /// Serial of the forker's process.
        process: u32,
        /// Thread-group id of the forker.
        tgid: i32,
        /// Thread id of the forker.
        tid: i32,
        /// Serial of the child.
        child: u32,
        /// Serial of the child's process: its own, or the forker's for a thread.
        child_process: u32,
        /// Thread-group id of the child.
        child_tgid: i32,
        /// Thread id of the child.
        child_tid: i32,
        /// Thread-group id of the child's real parent.
        parent_tgid: i32,
        /// Thread-group id of the child in its own pid namespace.
        child_tgid_ns: i32,
        /// Thread id of the child in its own pid namespace.
        child_tid_ns: i32,
        /// A [`crate::Call`].
        call: u16,
        /// Signal sent to the parent at the child's exit.
        exit_signal: i16,
        /// The job that the child belongs to, in a recording of many jobs; otherwise 0.
        group: u32,
        /// CLONE_* flags.
        flags: u64,
        /// start_boottime of the child.
        start_ns: u64,
        /// Name of the child, inherited from the forker.
        comm: [u8; 16],
    }

    /// A successful exec; path, interp, exe, cwd and argv follow.
    ExecFixed as "pt_exec" {
        /// Kind 3.
        head: Head,
        /// Serial of the process.
        process: u32,
        /// Thread-group id.
        tgid: i32,
        /// Thread id, which is the thread-group id after an exec.
        tid: i32,
        /// Thread id before.
        old_tid: i32,
        /// EXEC_* bits.
        bits: u32,
        /// Number of arguments.
        argc: u32,
        /// Bytes of the whole argv block.
        argv_bytes: u32,
        /// Bytes of it in this record.
        argv_here: u32,
        /// Bytes of the path as given.
        path_bytes: u16,
        /// Bytes of the interpreter's path, 0 if none.
        interp_bytes: u16,
        /// Bytes of the resolved path of the executable.
        exe_bytes: u16,
        /// Bytes of the working directory.
        cwd_bytes: u16,
        /// Refers to an [`EnvFixed`] record, 0 for none.
        env_id: u64,
        /// CPU time the task consumed before this program.
        run_ns: u64,
        /// User ticks before.
        utime_ns: u64,
        /// System ticks before.
        stime_ns: u64,
        /// Peak RSS of the process before this exec.
        maxrss_before_pages: u64,
        /// Name.
        comm: [u8; 16],
    }

    /// The continuation of an argv; `bytes` follow.
    ExecArgsFixed as "pt_exec_args" {
        /// Kind 4.
        head: Head,
        /// Offset in the argv block.
        offset: u32,
        /// Bytes that follow.
        bytes: u32,
    }

    /// Search variables; NAME=value strings with their NULs follow.
    EnvFixed as "pt_env" {
        /// Kind 11.
        head: Head,
        /// The target of [`ExecFixed::env_id`].
        env_id: u64,
        /// Bytes that follow.
        bytes: u32,
        /// [`EXEC_ENV_CUT`].
        bits: u32,
    }

    /// A failed exec, or in older traces a failed look-up; the path follows.
    MissFixed as "pt_miss" {
        /// Kind 5 or 7.
        head: Head,
        /// A [`crate::Call`].
        call: u16,
        /// errno.
        error: u16,
        /// Directory descriptor, AT_FDCWD if the call has none.
        dirfd: i32,
        /// Flags of the call.
        flags: u32,
        /// Bytes of the path.
        path_bytes: u16,
        /// MISS_* bits.
        bits: u16,
    }

    /// A failed look-up; the path follows.
    Named as "pt_named" {
        /// Kind 15.
        head: Head,
        /// Number of the call as in [`MissFixed`], like the next five.
        call: u16,
        /// errno.
        error: u16,
        /// Directory descriptor.
        dirfd: i32,
        /// Flags of the call.
        flags: u32,
        /// Bytes of the path.
        path_bytes: u16,
        /// MISS_* bits.
        bits: u16,
        /// Number for references by [`Again`]; 0: none.
        number: u32,
        /// Slot of the look-up that it replaces: see [`NAMED_SLOTS`].
        slot: u32,
    }

    /// A repetition of a recorded failed look-up: same call, arguments and errno.
    Again as "pt_again" {
        /// Kind 16.
        head: Head,
        /// Number of the [`Named`] record.
        number: u32,
        /// Zero.
        pad: u32,
    }

    /// A task's end.
    Exit as "pt_exit" {
        /// Kind 6.
        head: Head,
        /// Serial of the process.
        process: u32,
        /// Thread-group id.
        tgid: i32,
        /// Thread id.
        tid: i32,
        /// Status as in wait(2).
        status: u32,
        /// EXIT_* bits.
        bits: u32,
        /// Thread-group id of the real parent at its exit.
        parent_tgid: i32,
        /// Successful opens.
        opens: u32,
        /// Failed look-ups, counted independently of their records.
        lookups_failed: u32,
        /// Failed execs, counted independently of their records.
        execs_failed: u32,
        /// Moves to another CPU; 0 in traces before version 3.
        migrations: u32,
        /// start_boottime.
        start_ns: u64,
        /// Exact CPU time.
        run_ns: u64,
        /// CPU time at the start of its exit, without the last slice.
        run_at_exit_ns: u64,
        /// User time by ticks.
        utime_ns: u64,
        /// System time by ticks.
        stime_ns: u64,
        /// Voluntary context switches.
        nvcsw: u64,
        /// Involuntary context switches.
        nivcsw: u64,
        /// Minor faults.
        minflt: u64,
        /// Major faults.
        majflt: u64,
        /// Bytes read by system calls.
        rchar: u64,
        /// Bytes written by system calls.
        wchar: u64,
        /// Bytes read from storage.
        read_bytes: u64,
        /// Bytes written to storage.
        write_bytes: u64,
        /// Time spent runnable without a CPU.
        run_delay_ns: u64,
        /// Peak RSS of the task's own address space.
        maxrss_pages: u64,
        /// Peak RSS as reported by wait4.
        maxrss_ever_pages: u64,
        /// User time of children waited for.
        waited_utime_ns: u64,
        /// System time of children waited for.
        waited_stime_ns: u64,
        /// Name.
        comm: [u8; 16],
        /// Resident pages of files when the process began to end; 0 if not known, and in traces before version 7.
        file_rss_pages: u32,
        /// Zero.
        pad: u32,
    }

    /// A time that a task spent off the CPU: asleep until `woken_ns`, then waiting for a CPU until the
    /// time of the record. Those longer than a threshold are recorded, and shorter ones that the end
    /// of another task ended.
    Wait as "pt_wait" {
        /// Kind 23; its time is when the task got a CPU.
        head: Head,
        /// Serial of the process.
        process: u32,
        /// Serial of the task that woke it, 0 for one outside the recording.
        waker: u32,
        /// Time at which it left its CPU; for a new task its birth.
        since_ns: u64,
        /// Time at which it was woken; `since_ns` if it was not asleep; 0 if not known.
        woken_ns: u64,
        /// Thread-group id of the waker; 0 for none.
        waker_tgid: i32,
        /// System call of the task, as numbered on the recorded machine; -1 for none.
        syscall: i16,
        /// System call of the waker; -1 for none, or if it is outside the recording.
        waker_syscall: i16,
        /// File type (`S_IFMT >> 12`) of the descriptor in the first argument, if it is one.
        file_type: u16,
        /// Letter of /proc/PID/stat: R if it was not asleep.
        state: u16,
        /// WAIT_* bits.
        bits: u16,
        /// Zero.
        pad: u16,
        /// Name of a waker outside the recording.
        waker_comm: [u8; 16],
    }

    /// A signal that usually ends a process was sent to a task.
    Signal as "pt_signal" {
        /// Kind 24; its task is the one that receives the signal: of a process, one of its threads.
        head: Head,
        /// Serial of the process.
        process: u32,
        /// Its thread-group id.
        tgid: i32,
        /// Serial of the sender, 0 for one outside the recording.
        sender: u32,
        /// Its thread-group id.
        sender_tgid: i32,
        /// signal(7).
        signal: u16,
        /// SIGNAL_* bits.
        bits: u16,
        /// `si_code` of sigaction(2).
        code: i32,
        /// Name of the sender.
        sender_comm: [u8; 16],
    }

    /// Duration of a failed look-up.
    LookupTime as "pt_lookup_time" {
        /// Kind 20, and otherwise that of the look-up.
        head: Head,
        /// [`Named::number`] of the look-up.
        number: u32,
        /// Time from entry to return of the system call; the largest value stands for more.
        duration_ns: u32,
    }

    /// The mount namespace and root of a process from its next exec on; the path of the root in the
    /// namespace follows.
    PlaceFixed as "pt_place" {
        /// Kind 18.
        head: Head,
        /// Serial of the process.
        process: u32,
        /// Thread-group id.
        tgid: i32,
        /// Inode number of /proc/PID/ns/mnt.
        mount_namespace: u32,
        /// Bytes of the path.
        path_bytes: u16,
        /// [`PLACE_CUT`].
        bits: u16,
    }

    /// A part of a mount table: lines of /proc/PID/mountinfo without mount options.
    MountsFixed as "pt_mounts" {
        /// Kind 19; the task is that of the process that was read, or 0 for the recorder.
        head: Head,
        /// Inode number of /proc/PID/ns/mnt.
        mount_namespace: u32,
        /// Offset of this part in the table.
        offset: u32,
        /// Bytes of this part.
        bytes: u32,
        /// Bytes of the whole table.
        total_bytes: u32,
    }

    /// A descriptor was closed through which a file could be written; its path follows.
    WrittenFixed as "pt_written" {
        /// Kind 26.
        head: Head,
        /// Size of the file.
        size_bytes: u64,
        /// Bytes of its path.
        path_bytes: u32,
        /// WRITTEN_* bits.
        bits: u32,
    }

    /// A file or directory was renamed, or a file removed; its path before follows, then its path since.
    MovedFixed as "pt_moved" {
        /// Kind 25.
        head: Head,
        /// Bytes of the path before.
        from_bytes: u16,
        /// Bytes of the path since.
        path_bytes: u16,
        /// MOVED_* bits.
        bits: u32,
    }

    /// The final working directory of a process that never called exec; the path follows.
    WorkdirFixed as "pt_workdir" {
        /// Kind 17.
        head: Head,
        /// Serial of the process.
        process: u32,
        /// Thread-group id.
        tgid: i32,
        /// Thread id.
        tid: i32,
        /// Bytes of the path.
        path_bytes: u16,
        /// [`WORKDIR_CUT`].
        bits: u16,
    }

    /// A new name.
    Rename as "pt_rename" {
        /// Kind 8.
        head: Head,
        /// Serial of the process.
        process: u32,
        /// Thread-group id.
        tgid: i32,
        /// Thread id.
        tid: i32,
        /// Zero.
        pad: u32,
        /// The name.
        comm: [u8; 16],
    }

    /// A live task at a tick.
    Sample as "pt_sample" {
        /// Kind 9.
        head: Head,
        /// Serial of the process.
        process: u32,
        /// Thread-group id.
        tgid: i32,
        /// Thread id.
        tid: i32,
        /// State letter of /proc/PID/stat.
        state: u16,
        /// SAMPLE_* bits.
        bits: u16,
        /// CPU time so far.
        run_ns: u64,
        /// User ticks so far.
        utime_ns: u64,
        /// System ticks so far.
        stime_ns: u64,
        /// Voluntary context switches so far.
        nvcsw: u64,
        /// Involuntary context switches so far.
        nivcsw: u64,
        /// Minor faults so far.
        minflt: u64,
        /// Major faults so far.
        majflt: u64,
        /// Bytes read by system calls so far.
        rchar: u64,
        /// Bytes written by system calls so far.
        wchar: u64,
        /// Bytes read from storage so far.
        read_bytes: u64,
        /// Bytes written to storage so far.
        write_bytes: u64,
        /// Time spent runnable without a CPU so far.
        run_delay_ns: u64,
        /// Resident pages of the address space now.
        rss_pages: u64,
    }

    /// The end of a pass of samples.
    Tick as "pt_tick" {
        /// Kind 10.
        head: Head,
        /// Begin of the pass.
        begin_ns: u64,
        /// Live tasks of the tree.
        tasks: u32,
        /// Running or runnable.
        running: u32,
        /// Sleeping.
        sleeping: u32,
        /// Tasks in uninterruptible sleep.
        uninterruptible: u32,
        /// Stopped or traced.
        stopped: u32,
        /// Zombies.
        dead: u32,
        /// Samples written.
        sampled: u32,
        /// Zero.
        lost: u32,
    }

    /// A task uses an interface that is not traced.
    Blind as "pt_blind" {
        /// Kind 13.
        head: Head,
        /// Serial of the process.
        process: u32,
        /// Thread-group id.
        tgid: i32,
        /// Thread id.
        tid: i32,
        /// A [`crate::BlindSpot`].
        what: u32,
    }

    /// Memory of a process, from /proc/PID/smaps_rollup.
    Memory as "pt_memory" {
        /// Kind 14; the task is the process's founder.
        head: Head,
        /// Serial of the process.
        process: u32,
        /// Thread-group id.
        tgid: i32,
        /// Resident.
        rss_bytes: u64,
        /// Proportional: a page shared by n processes counts for 1/n.
        pss_bytes: u64,
        /// Unique to this process.
        uss_bytes: u64,
        /// Resident and shared with others.
        shared_bytes: u64,
        /// Swapped out.
        swap_bytes: u64,
        /// Address space in use; 0 before version 6, whose records end with the field above.
        vmem_bytes: u64,
    }

    /// Lost records, counted since the start.
    Loss as "pt_loss" {
        /// Kind 12.
        head: Head,
        /// A [`crate::Kind`].
        kind: u16,
        /// A [`crate::LossReason`].
        reason: u16,
        /// CPU, or [`LOSS_ANY_CPU`].
        cpu: u32,
        /// Lost records so far.
        count: u64,
    }
}
