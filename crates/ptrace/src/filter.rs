//! The seccomp filter that stops the payload at the calls to be recorded.

use libc::sock_filter;
use proctrace_record::Misses;

use crate::arch::{AUDIT_ARCH, LOOKUPS, RENAMES};

/// Instructions of classic BPF: linux/bpf_common.h.
const LOAD_WORD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_SET: u16 = 0x45;
const RETURN: u16 = 0x06;

/// Offsets in `struct seccomp_data`: seccomp(2).
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// The lower half of the first argument.
const FIRST_ARGUMENT: u32 = 16;

/// A filter that stops a task at these calls:
///
/// * those in `calls`;
/// * if `renames` is true, those that rename a file;
/// * those that change its name, create an io_uring, through which files are opened unseen, or begin to trace.
///
/// Everything else is allowed, as are the calls of 32-bit programs, whose numbers have other meanings.
///
/// It also stops where a task may be created with CLONE_UNTRACED: such a child would have the filter but no
/// tracer, and the kernel fails the calls that the filter stops at with ENOSYS then. The flags of clone3(2)
/// are in memory, where a filter does not see them.
pub(crate) fn filter(calls: Misses, renames: bool) -> Vec<sock_filter> {
    acting(calls, renames, libc::SECCOMP_RET_TRACE)
}

/// The same with another verdict on these calls: whoever listens to this filter is asked, and the tracer, if there is
/// one, is not (seccomp(2), "precedence").
pub(crate) fn asking(calls: Misses, renames: bool) -> Vec<sock_filter> {
    acting(calls, renames, libc::SECCOMP_RET_USER_NOTIF)
}

fn acting(calls: Misses, renames: bool, verdict: u32) -> Vec<sock_filter> {
    let instruction = |code, k, jt, jf| sock_filter { code, jt, jf, k };
    let stop = instruction(RETURN, verdict, 0, 0);
    let allow = instruction(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0);
    let mut filter = vec![
        instruction(LOAD_WORD, ARCHITECTURE, 0, 0),
        instruction(JUMP_IF_EQUAL, AUDIT_ARCH, 1, 0),
        allow,
        instruction(LOAD_WORD, NUMBER, 0, 0),
    ];
    let wanted = LOOKUPS.iter().filter(|(_, call)| calls.contains(*call)).map(|(nr, _)| *nr);
    let wanted = wanted.chain(RENAMES.iter().copied().filter(|_| renames));
    for number in wanted.chain([libc::SYS_io_uring_setup, libc::SYS_ptrace, libc::SYS_clone3]) {
        // A return for each, because a jump to a common one would have to be computed.
        filter.push(instruction(JUMP_IF_EQUAL, number as u32, 0, 1));
        filter.push(stop);
    }
    filter.extend([
        instruction(JUMP_IF_EQUAL, libc::SYS_clone as u32, 0, 4),
        instruction(LOAD_WORD, FIRST_ARGUMENT, 0, 0),
        instruction(JUMP_IF_SET, libc::CLONE_UNTRACED as u32, 0, 1),
        stop,
        allow,
        instruction(JUMP_IF_EQUAL, libc::SYS_prctl as u32, 1, 0),
        allow,
        instruction(LOAD_WORD, FIRST_ARGUMENT, 0, 0),
        instruction(JUMP_IF_EQUAL, libc::PR_SET_NAME as u32, 0, 1),
        stop,
        allow,
    ]);
    filter
}

#[cfg(test)]
mod tests {
    use proctrace_wire::Family;

    use super::*;

    /// Verdict of the kernel: the instructions used above, on the words of a seccomp_data.
    fn verdict(filter: &[sock_filter], data: [u32; 5]) -> u32 {
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = filter[at];
            match code {
                LOAD_WORD => accumulator = data[k as usize / 4],
                JUMP_IF_EQUAL => at += usize::from(if accumulator == k { jt } else { jf }),
                JUMP_IF_SET => at += usize::from(if accumulator & k != 0 { jt } else { jf }),
                _ => return k,
            }
            at += 1;
        }
    }

    #[test]
    fn only_wanted_calls_stop_a_task() {
        let opens = filter(Misses::NONE.with(Family::Open), true);
        let call =
            |number: libc::c_long, first| verdict(&opens, [number as u32, AUDIT_ARCH, 0, 0, first]);
        let (stop, allow) = (libc::SECCOMP_RET_TRACE, libc::SECCOMP_RET_ALLOW);
        assert_eq!(call(libc::SYS_openat, 0), stop);
        assert_eq!(call(libc::SYS_openat2, 0), stop);
        assert_eq!(call(libc::SYS_statx, 0), allow);
        assert_eq!(call(libc::SYS_renameat2, 0), stop);
        assert_eq!(call(libc::SYS_getpid, 0), allow);
        assert_eq!(call(libc::SYS_io_uring_setup, 0), stop);
        assert_eq!(call(libc::SYS_ptrace, 0), stop);
        assert_eq!(call(libc::SYS_prctl, libc::PR_SET_NAME as u32), stop);
        assert_eq!(call(libc::SYS_prctl, libc::PR_GET_NAME as u32), allow);
        assert_eq!(call(libc::SYS_clone, libc::SIGCHLD as u32), allow);
        assert_eq!(call(libc::SYS_clone, (libc::CLONE_UNTRACED | libc::SIGCHLD) as u32), stop);
        assert_eq!(call(libc::SYS_clone3, 0), stop);
        let other = verdict(&opens, [libc::SYS_openat as u32, 0x4000_0003, 0, 0, 0]);
        assert_eq!(other, allow, "of a 32-bit program");
        let all = filter(Misses::all(), false);
        assert_eq!(verdict(&all, [libc::SYS_statx as u32, AUDIT_ARCH, 0, 0, 0]), stop);
        assert_eq!(verdict(&all, [libc::SYS_renameat2 as u32, AUDIT_ARCH, 0, 0, 0]), allow);
    }
}
