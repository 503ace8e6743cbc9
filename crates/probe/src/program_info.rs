//! The kernel's statistics of the BPF programs.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use aya_obj::generated::{bpf_attr, bpf_cmd, bpf_prog_info};
use proctrace_trace::Program;

/// The kernel's statistics of a loaded program. Enabling the sysctl kernel.bpf_stats_enabled, which
/// counts runs, adds 20 to 40 ns to each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramStatistics {
    /// What a trailer keeps of them. The kernel reports verified instructions since Linux 5.16.
    pub program: Program,
    /// Number of runs skipped by the kernel because it was already running on that CPU. Each is an
    /// event without a record. Always 0 before Linux 5.12.
    pub recursion_misses: u64,
}

/// Queries a program's statistics. (aya provides some of them, but not the last.)
pub(crate) fn ask(name: &str, program: BorrowedFd<'_>) -> io::Result<ProgramStatistics> {
    // SAFETY: both consist of integers, bit fields and unions of them; zero is valid.
    let (mut info, mut attr): (bpf_prog_info, bpf_attr) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    attr.info.bpf_fd = u32::try_from(program.as_raw_fd()).unwrap_or(u32::MAX);
    attr.info.info_len = u32::try_from(size_of::<bpf_prog_info>()).expect("it is 232 bytes");
    attr.info.info = (&raw mut info) as u64;
    // SAFETY: the kernel writes at most info_len bytes to info, which outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            bpf_cmd::BPF_OBJ_GET_INFO_BY_FD,
            &raw mut attr,
            size_of::<bpf_attr>(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(ProgramStatistics {
        program: Program {
            name: name.to_owned(),
            verified_instructions: info.verified_insns,
            runs: info.run_cnt,
            run_ns: info.run_time_ns,
        },
        recursion_misses: info.recursion_misses,
    })
}
