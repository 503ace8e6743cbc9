//! Sandbox that limits what the processes of the service may do once they serve: little more than load
//! programs and answer.

use std::collections::BTreeMap;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads,
};

use crate::error::BrokerError;

/// A process of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It accepts connections and loads programs.
    Broker,
    /// It keeps programs attached, which takes descriptors only.
    Keeper,
}

/// Returns an error if this process cannot load programs for others.
pub(crate) fn check() -> Result<(), BrokerError> {
    let own = capabilities(None).map_err(BrokerError::system("read the capabilities"))?;
    if own.permitted.contains(NEEDED) {
        return Ok(());
    }
    let why = "a broker needs root, or CAP_BPF and CAP_PERFMON: it loads programs for others";
    Err(BrokerError::Unfit(why.to_owned()))
}

/// Files of root, in tracefs for example, are read as their owner.
const NEEDED: CapabilitySet = CapabilitySet::BPF.union(CapabilitySet::PERFMON);

/// Drops all capabilities but those that the role takes, and all system calls but those of this service, for this
/// process and for good.
pub(crate) fn enter(role: Role) -> Result<(), BrokerError> {
    drop_capabilities(role)?;
    // PR_SET_NO_NEW_PRIVS is set along with it.
    for filter in [no_clone3(), allowed(role)] {
        let filter =
            filter.map_err(|error| BrokerError::Unfit(format!("the filter of calls: {error}")))?;
        apply_filter_all_threads(&filter).map_err(|error| {
            BrokerError::Unfit(format!("cannot install the filter of calls: {error}"))
        })?;
    }
    Ok(())
}

fn drop_capabilities(role: Role) -> Result<(), BrokerError> {
    let needed = match role {
        Role::Broker => NEEDED,
        Role::Keeper => CapabilitySet::empty(),
    };
    clear_ambient_capability_set().map_err(BrokerError::system("drop capabilities"))?;
    let left = CapabilitySets {
        effective: needed,
        permitted: needed,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, left).map_err(BrokerError::system("drop capabilities"))
}

fn architecture() -> Result<seccompiler::TargetArch, seccompiler::BackendError> {
    std::env::consts::ARCH.try_into()
}

/// The flags of clone3(2) are in memory, where a filter cannot see them. Without it the C library uses clone(2).
fn no_clone3() -> Result<BpfProgram, seccompiler::BackendError> {
    let rules = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let missing = SeccompAction::Errno(libc::ENOSYS as u32);
    SeccompFilter::new(rules, SeccompAction::Allow, missing, architecture()?)?.try_into()
}

/// Calls that are not listed fail with EPERM: no program is executed, no process created or signalled, no
/// socket made, no file written but those that are open.
fn allowed(role: Role) -> Result<BpfProgram, seccompiler::BackendError> {
    #[rustfmt::skip]
    let calls = [
        // what the service is for
        libc::SYS_bpf, libc::SYS_recvmsg, libc::SYS_sendmsg, libc::SYS_ppoll,
        // descriptors
        libc::SYS_read, libc::SYS_pread64, libc::SYS_lseek, libc::SYS_close, libc::SYS_fcntl, libc::SYS_dup,
        libc::SYS_fstat, libc::SYS_newfstatat, libc::SYS_statx, libc::SYS_statfs, libc::SYS_fstatfs,
        libc::SYS_readlinkat, libc::SYS_getdents64,
        // the log
        libc::SYS_write, libc::SYS_writev,
        // memory
        libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_mprotect, libc::SYS_madvise, libc::SYS_brk,
        // threads; one of them installs a filter of its own, see the loader
        libc::SYS_futex, libc::SYS_set_robust_list, libc::SYS_rseq, libc::SYS_gettid, libc::SYS_getpid,
        libc::SYS_sched_getaffinity, libc::SYS_sched_yield, libc::SYS_sigaltstack, libc::SYS_prctl,
        libc::SYS_seccomp, libc::SYS_membarrier, libc::SYS_set_tid_address,
        libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn, libc::SYS_restart_syscall,
        libc::SYS_exit, libc::SYS_exit_group, libc::SYS_tgkill, libc::SYS_tkill,
        // clocks, limits, randomness
        libc::SYS_clock_gettime, libc::SYS_clock_nanosleep, libc::SYS_nanosleep, libc::SYS_getrandom,
        libc::SYS_prlimit64, libc::SYS_uname, libc::SYS_sysinfo, libc::SYS_capget, libc::SYS_getuid,
        libc::SYS_geteuid, libc::SYS_getgid, libc::SYS_getegid,
    ];
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        calls.into_iter().map(|call| (call, Vec::new())).collect();
    #[cfg(target_arch = "x86_64")]
    for call in [
        libc::SYS_poll,
        libc::SYS_stat,
        libc::SYS_readlink,
        libc::SYS_getrlimit,
        libc::SYS_setrlimit,
    ] {
        rules.insert(call, Vec::new());
    }
    if role == Role::Broker {
        // connections, clients, programs; files of the kernel: its types, its tracepoints, the ids of a client
        for call in [
            libc::SYS_perf_event_open,
            libc::SYS_ioctl,
            libc::SYS_accept4,
            libc::SYS_shutdown,
            libc::SYS_getsockopt,
            libc::SYS_setsockopt,
            libc::SYS_pidfd_open,
        ] {
            rules.insert(call, Vec::new());
        }
        rules.insert(libc::SYS_openat, vec![only_for_reading(2)?]);
        #[cfg(target_arch = "x86_64")]
        rules.insert(libc::SYS_open, vec![only_for_reading(1)?]);
    }
    // Allowed here: of two errors the kernel returns that of the filter installed last (seccomp(2)).
    rules.insert(libc::SYS_clone3, Vec::new());
    rules.insert(libc::SYS_clone, vec![with_flag(0, libc::CLONE_THREAD as u64)?]);
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    SeccompFilter::new(rules, refused, SeccompAction::Allow, architecture()?)?.try_into()
}

/// Rule that the flags of an open, its argument of this number, have no access mode but O_RDONLY.
fn only_for_reading(argument: u8) -> Result<SeccompRule, seccompiler::BackendError> {
    let mask = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u64;
    let operator = SeccompCmpOp::MaskedEq(mask);
    SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, 0)?])
}

fn with_flag(argument: u8, flag: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    let operator = SeccompCmpOp::MaskedEq(flag);
    SeccompRule::new(vec![SeccompCondition::new(
        argument,
        SeccompCmpArgLen::Qword,
        operator,
        flag,
    )?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::ErrorKind;
    use std::os::unix::net::UnixStream;
    use std::process::Command;

    #[test]
    fn only_what_the_service_needs_is_left() {
        // In a thread of its own: the filter stays.
        let test = std::thread::spawn(|| {
            for filter in [no_clone3().unwrap(), allowed(Role::Broker).unwrap()] {
                seccompiler::apply_filter(&filter).unwrap();
            }
            let refused = |error: std::io::Error| error.kind() == ErrorKind::PermissionDenied;
            let writing = File::options().write(true).open("/dev/null");
            let started = Command::new("/bin/true").spawn();
            let connected = UnixStream::connect("/run/x").map(drop);
            let reading = File::open("/proc/self/status").is_ok();
            let threads = std::thread::spawn(|| 7).join().is_ok();
            let refused = [
                writing.map(drop).is_err_and(refused),
                started.map(drop).is_err_and(refused),
                connected.is_err_and(refused),
            ];
            (refused, reading, threads)
        });
        assert_eq!(test.join().unwrap(), ([true; 3], true, true));
    }

    #[test]
    fn who_only_keeps_opens_nothing() {
        let test = std::thread::spawn(|| {
            for filter in [no_clone3().unwrap(), allowed(Role::Keeper).unwrap()] {
                seccompiler::apply_filter(&filter).unwrap();
            }
            let opened = File::open("/proc/self/status").map(drop).map_err(|error| error.kind());
            (opened, std::thread::spawn(|| 7).join().is_ok())
        });
        assert_eq!(test.join().unwrap(), (Err(ErrorKind::PermissionDenied), true));
    }
}
