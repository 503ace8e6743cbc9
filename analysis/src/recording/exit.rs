//! The end of a task, and what is kept of its record.

use proctrace_replay::CpuTime;

/// The end of a task.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// When.
    pub time_ns: u64,
    /// CPU time, exact; split as the kernel does for a single task.
    pub cpu: CpuTime,
    /// What else its record says.
    pub record: Exit,
}

macro_rules! kept_of_exit {
    ($($(#[$doc:meta])+ $field:ident: $type:ty,)+) => {
        /// What is kept of an exit record: there is one for each of a million tasks.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Exit {
            $($(#[$doc])+ pub $field: $type,)+
        }

        impl From<&proctrace_wire::layout::Exit> for Exit {
            fn from(record: &proctrace_wire::layout::Exit) -> Self {
                Self { $($field: record.$field,)+ }
            }
        }
    };
}

kept_of_exit! {
    /// Status as wait(2) gives it.
    status: u32,
    /// EXIT_* bits.
    bits: u32,
    /// Real parent when it exited.
    parent_tgid: i32,
    /// Successful opens.
    opens: u32,
    /// Failed look-ups, counted independently of their records.
    lookups_failed: u32,
    /// Failed execs, counted independently of their records.
    execs_failed: u32,
    /// Times it was moved to another CPU; 0 in traces before wire version 3.
    migrations: u32,
    /// CPU time, exact.
    run_ns: u64,
    /// CPU time when it began to exit, short of the last slice.
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
    /// User time of children waited for.
    waited_utime_ns: u64,
    /// System time of children waited for.
    waited_stime_ns: u64,
}
