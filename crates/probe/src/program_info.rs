//! The kernel's statistics of the BPF programs.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use aya_obj::generated::{bpf_attr, bpf_cmd, bpf_map_info, bpf_prog_info};
use proctrace_trace::Program;

/// The kernel's statistics of a loaded program. Enabling the sysctl kernel.bpf_stats_enabled, which
/// counts runs, adds 20 to 40 ns to each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramStatistics {
    /// The part of the statistics that a trailer keeps. The kernel reports verified instructions
    /// since Linux 5.16.
    pub program: Program,
    /// Number of runs skipped by the kernel because it was already running on that CPU. Each is an
    /// event without a record. Always 0 before Linux 5.12.
    pub recursion_misses: u64,
}

/// The statistics of a program, which its descriptor is enough for. (aya provides some of them, but not the last.)
///
/// # Errors
/// When it is not a descriptor of a program.
pub fn program_statistics(name: &str, program: BorrowedFd<'_>) -> io::Result<ProgramStatistics> {
    let mut info = zeroed::<bpf_prog_info>();
    ask(program, &mut info)?;
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

/// The number by which the kernel knows a map.
pub(crate) fn map_id(map: BorrowedFd<'_>) -> io::Result<u32> {
    let mut info = zeroed::<bpf_map_info>();
    ask(map, &mut info)?;
    Ok(info.id)
}

/// A struct that the kernel fills with what it knows of a BPF object.
///
/// # Safety
/// Any bytes must be a valid value.
unsafe trait Info {}

// SAFETY: it consists of integers, bit fields and unions of them.
unsafe impl Info for bpf_prog_info {}
// SAFETY: as above.
unsafe impl Info for bpf_map_info {}

fn zeroed<T: Info>() -> T {
    // SAFETY: any bytes are a valid value.
    unsafe { std::mem::zeroed() }
}

fn ask<T: Info>(object: BorrowedFd<'_>, info: &mut T) -> io::Result<()> {
    // SAFETY: a union of structs of integers; zero is valid.
    let mut attr: bpf_attr = unsafe { std::mem::zeroed() };
    attr.info.bpf_fd = u32::try_from(object.as_raw_fd()).unwrap_or(u32::MAX);
    attr.info.info_len = u32::try_from(size_of::<T>()).unwrap_or(0);
    attr.info.info = std::ptr::from_mut(info) as u64;
    // SAFETY: the kernel writes at most info_len bytes to info, which outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            bpf_cmd::BPF_OBJ_GET_INFO_BY_FD,
            &raw mut attr,
            size_of::<bpf_attr>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
