//! Constants and registers of the architecture: numbers of system calls, and where registers are.

use proctrace_wire::Call;

use crate::sys;

/// The calls that look a path up, by their numbers.
#[cfg(target_arch = "x86_64")]
pub(crate) const LOOKUPS: &[(libc::c_long, Call)] = &[
    (libc::SYS_open, Call::Open),
    (libc::SYS_openat, Call::Openat),
    (libc::SYS_openat2, Call::Openat2),
    (libc::SYS_creat, Call::Creat),
    (libc::SYS_execve, Call::Execve),
    (libc::SYS_execveat, Call::Execveat),
    (libc::SYS_stat, Call::Stat),
    (libc::SYS_lstat, Call::Lstat),
    (libc::SYS_newfstatat, Call::Newfstatat),
    (libc::SYS_statx, Call::Statx),
    (libc::SYS_access, Call::Access),
    (libc::SYS_faccessat, Call::Faccessat),
    (libc::SYS_faccessat2, Call::Faccessat2),
    (libc::SYS_readlink, Call::Readlink),
    (libc::SYS_readlinkat, Call::Readlinkat),
    (libc::SYS_chdir, Call::Chdir),
];

/// The calls that look a path up, by their numbers.
#[cfg(target_arch = "aarch64")]
pub(crate) const LOOKUPS: &[(libc::c_long, Call)] = &[
    (libc::SYS_openat, Call::Openat),
    (libc::SYS_openat2, Call::Openat2),
    (libc::SYS_execve, Call::Execve),
    (libc::SYS_execveat, Call::Execveat),
    (libc::SYS_newfstatat, Call::Newfstatat),
    (libc::SYS_statx, Call::Statx),
    (libc::SYS_faccessat, Call::Faccessat),
    (libc::SYS_faccessat2, Call::Faccessat2),
    (libc::SYS_readlinkat, Call::Readlinkat),
    (libc::SYS_chdir, Call::Chdir),
];

/// The calls that rename files.
#[cfg(target_arch = "x86_64")]
pub(crate) const RENAMES: &[libc::c_long] =
    &[libc::SYS_rename, libc::SYS_renameat, libc::SYS_renameat2];

/// The calls that rename files.
#[cfg(target_arch = "aarch64")]
pub(crate) const RENAMES: &[libc::c_long] = &[libc::SYS_renameat, libc::SYS_renameat2];

/// The calls that create tasks.
#[cfg(target_arch = "x86_64")]
const BIRTHS: &[(libc::c_long, Call)] = &[
    (libc::SYS_fork, Call::Fork),
    (libc::SYS_vfork, Call::Vfork),
    (libc::SYS_clone, Call::Clone),
    (libc::SYS_clone3, Call::Clone3),
];

/// The calls that create tasks.
#[cfg(target_arch = "aarch64")]
const BIRTHS: &[(libc::c_long, Call)] =
    &[(libc::SYS_clone, Call::Clone), (libc::SYS_clone3, Call::Clone3)];

/// The same in 32-bit programs, which have the same numbers on both architectures.
const BIRTHS_32: &[(libc::c_long, Call)] =
    &[(2, Call::Fork), (190, Call::Vfork), (120, Call::Clone), (435, Call::Clone3)];

/// AUDIT_ARCH of linux/audit.h, as a seccomp filter sees it.
#[cfg(target_arch = "x86_64")]
pub(crate) const AUDIT_ARCH: u32 = 0xc000_003e;
/// AUDIT_ARCH of linux/audit.h, as a seccomp filter sees it.
#[cfg(target_arch = "aarch64")]
pub(crate) const AUDIT_ARCH: u32 = 0xc000_00b7;

/// True if the first argument of a system call is overwritten by its result.
pub(crate) const FIRST_ARGUMENT_IS_LOST: bool = cfg!(target_arch = "aarch64");

/// Indices in `struct user_regs_struct` of sys/user.h.
#[cfg(target_arch = "x86_64")]
mod at {
    pub(super) const ARGUMENTS: [usize; 6] = [14, 13, 12, 7, 9, 8];
    pub(super) const NUMBER: usize = 15;
    pub(super) const RESULT: usize = 10;
    pub(super) const STACK: usize = 19;
    pub(super) const INSTRUCTION: usize = 16;
    /// Index of the number of a call to be made: rax.
    pub(super) const CALL: usize = 10;
    /// Index of the number, in 32-bit words.
    pub(super) const NUMBER_32: usize = 11;
    pub(super) const STACK_32: usize = 15;
}

/// Indices in `struct user_pt_regs` of asm/ptrace.h.
#[cfg(target_arch = "aarch64")]
mod at {
    pub(super) const ARGUMENTS: [usize; 6] = [0, 1, 2, 3, 4, 5];
    pub(super) const NUMBER: usize = 8;
    pub(super) const RESULT: usize = 0;
    pub(super) const STACK: usize = 31;
    pub(super) const INSTRUCTION: usize = 32;
    /// Index of the number of a call to be made: x8.
    pub(super) const CALL: usize = 8;
    /// Index of the number, in 32-bit words.
    pub(super) const NUMBER_32: usize = 7;
    pub(super) const STACK_32: usize = 13;
}

/// The instruction that makes a system call: `syscall`.
#[cfg(target_arch = "x86_64")]
pub(crate) const CALL_INSTRUCTION: &[u8] = &[0x0f, 0x05];
/// The instruction that makes a system call: `svc #0`.
#[cfg(target_arch = "aarch64")]
pub(crate) const CALL_INSTRUCTION: &[u8] = &[0x01, 0x00, 0x00, 0xd4];

/// Bytes below the stack pointer that a function may use.
pub(crate) const RED_ZONE: u64 = if cfg!(target_arch = "x86_64") { 128 } else { 0 };

/// The registers of 32-bit tasks take fewer bytes than this, those of others more.
const LEAST_64_BIT: usize = 200;

/// The registers of a stopped task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registers {
    words: [u64; 64],
    len: usize,
    /// True if they are those of a 32-bit task.
    pub(crate) compat: bool,
}

impl Registers {
    /// Reads the registers of a task; None if it has been killed meanwhile.
    pub(crate) fn of(tid: sys::Tid) -> Option<Self> {
        let (words, len) = sys::registers(tid).ok()?;
        Some(Self { words, len, compat: len < LEAST_64_BIT })
    }

    /// Gives a task that is stopped before a system call another nth argument.
    pub(crate) fn replace_argument(&mut self, tid: sys::Tid, n: usize, value: u64) {
        self.words[at::ARGUMENTS[n]] = value;
        // One that has been killed meanwhile makes no call.
        let _ = sys::set_registers(tid, &self.words, self.len);
    }

    /// Gives a stopped task these registers; returns whether it was still there.
    pub(crate) fn set(&self, tid: sys::Tid) -> bool {
        sys::set_registers(tid, &self.words, self.len).is_ok()
    }

    /// Address of the next instruction.
    pub(crate) fn instruction(&self) -> u64 {
        self.words[at::INSTRUCTION]
    }

    /// Registers of a task that makes this call, by the instruction at this address.
    pub(crate) fn calling(mut self, address: u64, call: libc::c_long, arguments: [u64; 3]) -> Self {
        self.words[at::INSTRUCTION] = address;
        self.forget_call();
        for (at, argument) in at::ARGUMENTS.into_iter().zip(arguments) {
            self.words[at] = argument;
        }
        self.words[at::CALL] = call.cast_unsigned();
        self
    }

    /// Registers of a task that has returned from a system call and makes it again. `first` is its first
    /// argument.
    pub(crate) fn again(self, first: u64) -> Self {
        let before = self.instruction().wrapping_sub(CALL_INSTRUCTION.len() as u64);
        self.calling(before, self.number(), [first, self.argument(1), self.argument(2)])
    }

    /// Registers of a task that was interrupted in a system call, so that it makes it again, as the kernel would have it
    /// do without the interruption. On aarch64, the kernel has prepared that before it lets a tracer look.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn uninterrupted(mut self) -> Self {
        /// ERESTARTSYS, ERESTARTNOINTR and ERESTARTNOHAND of include/linux/errno.h; no program sees them.
        const AGAIN: [i64; 3] = [-512, -513, -514];
        /// ERESTART_RESTARTBLOCK: by restart_syscall(2).
        const BY_RESTART: i64 = -516;
        let number = match self.result() {
            _ if self.number() < 0 => return self,
            result if AGAIN.contains(&result) => self.number(),
            BY_RESTART => libc::SYS_restart_syscall,
            _ => return self,
        };
        self.words[at::INSTRUCTION] -= CALL_INSTRUCTION.len() as u64;
        self.forget_call();
        self.words[at::CALL] = number.cast_unsigned();
        self
    }

    /// The same, which the kernel has done.
    #[cfg(target_arch = "aarch64")]
    pub(crate) fn uninterrupted(self) -> Self {
        self
    }

    /// Prevents the kernel from taking what is made of these registers for the end of a call that it may repeat.
    fn forget_call(&mut self) {
        if at::NUMBER != at::CALL {
            self.words[at::NUMBER] = u64::MAX;
        }
    }

    fn word_32(&self, index: usize) -> u64 {
        let word = self.words[index / 2];
        if index.is_multiple_of(2) { word & 0xffff_ffff } else { word >> 32 }
    }

    /// The nth argument of the system call.
    pub(crate) fn argument(&self, n: usize) -> u64 {
        // 32-bit tasks have only the first one where both architectures agree.
        if self.compat { self.word_32(0) } else { self.words[at::ARGUMENTS[n]] }
    }

    /// The result of the system call: negative for an error.
    pub(crate) fn result(&self) -> i64 {
        self.words[at::RESULT].cast_signed()
    }

    pub(crate) fn stack(&self) -> u64 {
        if self.compat { self.word_32(at::STACK_32) } else { self.words[at::STACK] }
    }

    /// The number of the system call.
    pub(crate) fn number(&self) -> libc::c_long {
        let number = if self.compat { self.word_32(at::NUMBER_32) } else { self.words[at::NUMBER] };
        number.cast_signed()
    }

    /// Call that looks a path up.
    pub(crate) fn lookup(&self) -> Option<Call> {
        let number = self.number();
        (!self.compat).then(|| find(LOOKUPS, number))?
    }

    /// True if the call has renamed a file.
    pub(crate) fn renames(&self) -> bool {
        !self.compat && self.result() == 0 && RENAMES.contains(&self.number())
    }

    /// Call that creates a task.
    pub(crate) fn birth(&self) -> Call {
        let known = if self.compat { BIRTHS_32 } else { BIRTHS };
        find(known, self.number()).unwrap_or(Call::Unknown)
    }
}

fn find(calls: &[(libc::c_long, Call)], number: libc::c_long) -> Option<Call> {
    calls.iter().find(|(known, _)| *known == number).map(|(_, call)| *call)
}
