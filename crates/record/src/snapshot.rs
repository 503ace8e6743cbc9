//! The program of an existing process, read from /proc and recorded as an exec.

use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use proctrace_wire::layout::{
    Attach, EXEC_ARGV_CAPPED, EXEC_ARGV_FAULT, EXEC_BEFORE, ExecFixed, Head,
};
use proctrace_wire::{IntoBytes, Kind};

use crate::clock::boot_offset_ns;

/// PT_ARGV_FIRST of wire.h: argument bytes that fit in the exec record itself.
const ARGV_HERE_MAX: usize = 16384;
const PATH_MAX: usize = 4095;

/// The record, or None if the process has ended, or may not be read, or executed another program
/// meanwhile, or if its pid has been reused.
///
/// Everybody may read `cmdline`, even of a set-user-ID program. The links and the addresses in
/// `stat` require permission to trace the process: so they are read before and after it.
pub(crate) fn exec_before(attach: &Attach) -> Option<Vec<u8>> {
    let directory = format!("/proc/{}", attach.tgid);
    let link = |name: &str| fs::read_link(format!("{directory}/{name}")).ok();
    let before = Program::of(&directory)?;
    let exe = link("exe")?;
    let cwd = link("cwd").unwrap_or_default();
    let (argv, argv_bits) = arguments(&directory);
    // Last, to verify that all of the above belongs to the same process and program.
    let unchanged = link("exe")? == exe && Program::of(&directory)? == before;
    // /proc has the start time as this process's time namespace does.
    let start_ns = attach.start_ns.saturating_add_signed(boot_offset_ns());
    if !unchanged || before.start_ticks != start_ns / tick_ns() {
        return None;
    }
    let exe = truncated(exe.as_os_str().as_bytes());
    let cwd = truncated(cwd.as_os_str().as_bytes());
    let body = [exe, exe, cwd, &argv].concat();
    let size = (size_of::<ExecFixed>() + body.len()).next_multiple_of(8);
    let fixed = ExecFixed {
        head: Head {
            kind: Kind::Exec as u16,
            size: u16::try_from(size).ok()?,
            task: attach.head.task,
            time_ns: attach.head.time_ns,
        },
        process: attach.process,
        tgid: attach.tgid,
        tid: attach.tid,
        old_tid: attach.tid,
        bits: EXEC_BEFORE | argv_bits,
        argc: u32::try_from(argv.iter().filter(|byte| **byte == 0).count()).ok()?,
        argv_bytes: u32::try_from(argv.len()).ok()?,
        argv_here: u32::try_from(argv.len()).ok()?,
        path_bytes: u16::try_from(exe.len()).ok()?,
        interp_bytes: 0,
        exe_bytes: u16::try_from(exe.len()).ok()?,
        cwd_bytes: u16::try_from(cwd.len()).ok()?,
        env_id: 0,
        run_ns: attach.run_ns,
        utime_ns: attach.utime_ns,
        stime_ns: attach.stime_ns,
        maxrss_before_pages: 0,
        comm: attach.comm,
    };
    let mut record = fixed.as_bytes().to_vec();
    record.extend_from_slice(&body);
    record.resize(size, 0);
    Some(record)
}

fn truncated(path: &[u8]) -> &[u8] {
    &path[..path.len().min(PATH_MAX)]
}

/// The first arguments, and EXEC_* bits.
fn arguments(directory: &str) -> (Vec<u8>, u32) {
    let mut argv = Vec::new();
    let read = fs::File::open(format!("{directory}/cmdline"))
        .and_then(|file| file.take(ARGV_HERE_MAX as u64 + 1).read_to_end(&mut argv));
    let bits = match read {
        Err(_) => EXEC_ARGV_FAULT,
        Ok(_) if argv.len() > ARGV_HERE_MAX => EXEC_ARGV_CAPPED,
        Ok(_) => 0,
    };
    argv.truncate(ARGV_HERE_MAX);
    (argv, bits)
}

/// Identifies a program run of a process.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    /// Start time of the process, in ticks of CLOCK_BOOTTIME: pids are reused.
    start_ticks: u64,
    /// Addresses that each exec randomizes.
    addresses: Vec<u64>,
}

impl Program {
    /// Reads the program of a process; None if there is none, or if the caller may not trace it: then the kernel
    /// reports 0 as the address of its arguments, as for a process without memory.
    fn of(directory: &str) -> Option<Self> {
        Self::parse(&fs::read(format!("{directory}/stat")).ok()?)
    }

    /// See proc_pid_stat(5), which counts fields from 1.
    fn parse(stat: &[u8]) -> Option<Self> {
        // The name in parentheses may contain anything, including parentheses.
        let end = stat.iter().rposition(|byte| *byte == b')')?;
        let text = String::from_utf8_lossy(&stat[end + 1..]);
        let fields: Vec<&str> = text.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        // startcode, startstack, start_brk, arg_start, arg_end, env_start, env_end
        let addresses: Option<Vec<u64>> =
            [26, 28, 47, 48, 49, 50, 51].map(field).into_iter().collect();
        let program = Self { start_ticks: field(22)?, addresses: addresses? };
        (field(48)? > 0).then_some(program)
    }
}

fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

#[cfg(test)]
mod tests {
    use proctrace_wire::{Frames, Record};
    use zerocopy::FromZeros;

    use super::*;

    fn myself() -> Attach {
        let mut attach = Attach::new_zeroed();
        attach.tgid = i32::try_from(std::process::id()).unwrap();
        attach.tid = attach.tgid;
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let ticks: u64 =
            stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap();
        attach.start_ns = ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second());
        attach
    }

    #[test]
    fn a_process_is_told_as_an_exec() {
        let record = exec_before(&myself()).unwrap();
        let frame = Frames::new(&record).next().unwrap().unwrap();
        let Record::Exec(exec) = Record::decode(frame).unwrap() else { panic!("not an exec") };
        let exe = std::env::current_exe().unwrap();
        assert_eq!(exec.exe, exe.as_os_str().as_bytes());
        assert_eq!(exec.cwd, std::env::current_dir().unwrap().as_os_str().as_bytes());
        let first = std::env::args_os().next().unwrap();
        assert!(exec.argv.starts_with(first.as_bytes()));
        assert_eq!(exec.fixed.bits & EXEC_BEFORE, EXEC_BEFORE);
    }

    #[test]
    fn who_may_not_trace_is_told_no_addresses() {
        // For an own process, and as the kernel prints it for others.
        let own = "7 (a) b) c) S 1 7 7 0 -1 4194304 9 0 0 0 0 0 0 0 20 0 1 0 1234 2564096 200 \
                   18446744073709551615 94000 94900 140000 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 95000 95100 \
                   96000 141000 141010 141010 141900 0\n";
        let program = Program::parse(own.as_bytes()).unwrap();
        assert_eq!(program.start_ticks, 1234);
        assert_eq!(program.addresses, [94000, 140_000, 96000, 141_000, 141_010, 141_010, 141_900]);
        let others = own
            .replace("94000 94900 140000", "1 1 0")
            .replace("95000 95100 96000 141000 141010 141010 141900", "0 0 0 0 0 0 0");
        assert_eq!(Program::parse(others.as_bytes()), None);
        assert_eq!(Program::parse(b"7 (a) S 1"), None);
    }

    #[test]
    fn another_process_of_the_same_pid_is_not() {
        let mut attach = myself();
        attach.start_ns += 1_000_000_000;
        assert_eq!(exec_before(&attach), None);
    }
}
