//! What a process that was there before is running, as /proc tells it, in the form of an exec.

use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use proctrace_wire::layout::{
    Attach, EXEC_ARGV_CAPPED, EXEC_ARGV_FAULT, EXEC_BEFORE, ExecFixed, Head,
};
use proctrace_wire::{IntoBytes, Kind};

/// PT_ARGV_FIRST of wire.h: arguments that fit an exec record itself.
const ARGV_HERE_MAX: usize = 16384;
const PATH_MAX: usize = 4095;

/// The record, or None if the process is gone, or hidden, or one that has its pid by now.
pub(crate) fn exec_before(attach: &Attach) -> Option<Vec<u8>> {
    let directory = format!("/proc/{}", attach.tgid);
    let link = |name: &str| fs::read_link(format!("{directory}/{name}")).ok();
    let exe = link("exe")?;
    let cwd = link("cwd").unwrap_or_default();
    let (argv, argv_bits) = arguments(&directory);
    // Last, so that all of the above was the same process.
    if !started_at(&directory, attach.start_ns) {
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

/// Whether the process there was made at this time of CLOCK_BOOTTIME: pids are used again.
fn started_at(directory: &str, start_ns: u64) -> bool {
    let Ok(stat) = fs::read(format!("{directory}/stat")) else { return false };
    // The name in parentheses may hold anything, parentheses included; see proc_pid_stat(5).
    let Some(end) = stat.iter().rposition(|byte| *byte == b')') else { return false };
    let field = String::from_utf8_lossy(&stat[end + 1..]);
    let Some(ticks) = field.split_whitespace().nth(19).and_then(|text| text.parse::<u64>().ok())
    else {
        return false;
    };
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    start_ns / tick_ns == ticks
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
    fn another_process_of_the_same_pid_is_not() {
        let mut attach = myself();
        attach.start_ns += 1_000_000_000;
        assert_eq!(exec_before(&attach), None);
    }
}
