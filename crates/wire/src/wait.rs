//! Object of a task's wait, and what ended it.

use strum::{IntoStaticStr, VariantArray};

use crate::layout::{WAIT_BY_END, WAIT_BY_INTERRUPT, WAIT_BY_TASK, Wait};

/// Object of a task's wait, derived from its system call, the file concerned and its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum WaitFor {
    /// It was ready to run: preempted, or just created.
    Cpu,
    /// The end of a child: wait4(2), waitid(2).
    Child,
    /// The exec or end of a child that shares its memory: vfork(2), posix_spawn(3).
    Vfork,
    /// The other end of a pipe.
    Pipe,
    /// The other end of a connection.
    Socket,
    /// Another thread: locks, condition variables, pthread_join(3).
    Futex,
    /// Storage, a network file system or a lock in the kernel: an uninterruptible sleep.
    Disk,
    /// A point in time: nanosleep(2).
    Timer,
    /// One of several files, with or without a time-out: poll(2), select(2), epoll_wait(2).
    Poll,
    /// A file lock: flock(2), fcntl(2).
    FileLock,
    /// A signal: pause(2), sigsuspend(2), sigtimedwait(2).
    Signal,
    /// A terminal or another character device.
    Device,
    /// A message queue or semaphore of System V or POSIX.
    Queue,
    /// SIGCONT, or a debugger.
    Stopped,
    /// Anything else.
    Other,
}

impl WaitFor {
    /// Every reason.
    pub const ALL: [Self; Self::VARIANTS.len()] =
        *Self::VARIANTS.first_chunk().expect("all of them");

    /// The name used in `dump` and in reports.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Object of a recorded wait.
    pub fn of(wait: &Wait, on: Architecture) -> Self {
        let sleeps = match u8::try_from(wait.state).unwrap_or(0) {
            b'R' => return Self::Cpu,
            b'T' | b't' => return Self::Stopped,
            state => state,
        };
        let call = on.group(wait.syscall);
        match (call, wait.file_type) {
            (Group::Child, _) => Self::Child,
            (Group::Clone, _) => Self::Vfork,
            (Group::Futex, _) => Self::Futex,
            (Group::Transfer, FIFO) => Self::Pipe,
            (Group::Transfer, SOCKET) | (Group::Send | Group::Receive, _) => Self::Socket,
            (Group::Transfer, CHARACTER_DEVICE) if sleeps != b'D' => Self::Device,
            _ if sleeps == b'D' => Self::Disk,
            (Group::Sleep, _) => Self::Timer,
            (Group::Poll, _) => Self::Poll,
            (Group::FileLock, _) => Self::FileLock,
            (Group::Signal, _) => Self::Signal,
            (Group::Queue, _) => Self::Queue,
            (Group::Transfer | Group::Other, _) => Self::Other,
        }
    }
}

/// Values of [`Wait::file_type`], from inode(7).
const FIFO: u16 = 1;
const CHARACTER_DEVICE: u16 = 2;
const SOCKET: u16 = 12;

/// The task or event that ended a sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Woken {
    /// A task of the recording, by its serial.
    ByTask(u32),
    /// A task outside the recording, by its thread-group id.
    ByOutsider(i32),
    /// A timer, a device or the network.
    ByInterrupt,
    /// It did not sleep.
    NotAsleep,
    /// Not known: it was woken in the moment it fell asleep.
    Unknown,
}

impl Woken {
    /// The task or event that ended a recorded wait.
    ///
    /// Data sent to a local address is delivered in a software interrupt while the sender is still in
    /// its system call (__local_bh_enable_ip), so this counts as woken by the sender.
    pub fn of(wait: &Wait, on: Architecture) -> Self {
        if wait.state == u16::from(b'R') {
            return Self::NotAsleep;
        }
        if wait.bits & (WAIT_BY_TASK | WAIT_BY_END) != 0 {
            return match wait.waker {
                0 => Self::ByOutsider(wait.waker_tgid),
                serial => Self::ByTask(serial),
            };
        }
        if wait.bits & WAIT_BY_INTERRUPT == 0 {
            return Self::Unknown;
        }
        let receives = matches!(WaitFor::of(wait, on), WaitFor::Socket | WaitFor::Poll);
        let sends = matches!(on.group(wait.waker_syscall), Group::Send | Group::Transfer);
        if wait.waker != 0 && receives && sends {
            return Self::ByTask(wait.waker);
        }
        Self::ByInterrupt
    }
}

/// The architecture of the recorded machine, which numbers the system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// x86-64.
    X86,
    /// 64-bit ARM.
    Arm,
    /// One without recorder.
    Unknown,
}

/// Groups of system calls that sleep alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    /// Reads or writes a descriptor of any type.
    Transfer,
    Send,
    Receive,
    Poll,
    Sleep,
    Child,
    Clone,
    Futex,
    FileLock,
    Signal,
    Queue,
    Other,
}

impl Architecture {
    /// Architecture of a machine as uname(2) names it.
    pub fn of_machine(machine: &str) -> Self {
        match machine {
            "x86_64" => Self::X86,
            "aarch64" => Self::Arm,
            _ => Self::Unknown,
        }
    }

    fn group(self, syscall: i16) -> Group {
        match self {
            Self::X86 => group_on_x86(syscall),
            Self::Arm => group_on_arm(syscall),
            Self::Unknown => Group::Other,
        }
    }
}

/// arch/x86/entry/syscalls/syscall_64.tbl.
fn group_on_x86(syscall: i16) -> Group {
    match syscall {
        // read write pread64 pwrite64 readv writev sendfile splice tee vmsplice preadv pwritev
        // preadv2 pwritev2
        0 | 1 | 17..=20 | 40 | 275 | 276 | 278 | 295 | 296 | 327 | 328 => Group::Transfer,
        // connect sendto sendmsg sendmmsg
        42 | 44 | 46 | 307 => Group::Send,
        // accept recvfrom recvmsg accept4 recvmmsg
        43 | 45 | 47 | 288 | 299 => Group::Receive,
        // poll select epoll_wait_old epoll_wait pselect6 ppoll epoll_pwait epoll_pwait2
        7 | 23 | 215 | 232 | 270 | 271 | 281 | 441 => Group::Poll,
        // nanosleep clock_nanosleep
        35 | 230 => Group::Sleep,
        // wait4 waitid
        61 | 247 => Group::Child,
        // clone fork vfork clone3
        56..=58 | 435 => Group::Clone,
        // futex futex_waitv futex_wait
        202 | 449 | 455 => Group::Futex,
        // fcntl flock
        72 | 73 => Group::FileLock,
        // pause rt_sigtimedwait rt_sigsuspend
        34 | 128 | 130 => Group::Signal,
        // semop msgsnd msgrcv semtimedop mq_timedsend mq_timedreceive
        65 | 69 | 70 | 220 | 242 | 243 => Group::Queue,
        _ => Group::Other,
    }
}

/// include/uapi/asm-generic/unistd.h.
fn group_on_arm(syscall: i16) -> Group {
    match syscall {
        // read write readv writev pread64 pwrite64 preadv pwritev sendfile vmsplice splice tee
        // preadv2 pwritev2
        63..=71 | 75..=77 | 286 | 287 => Group::Transfer,
        // connect sendto sendmsg sendmmsg
        203 | 206 | 211 | 269 => Group::Send,
        // accept recvfrom recvmsg accept4 recvmmsg
        202 | 207 | 212 | 242 | 243 => Group::Receive,
        // epoll_pwait pselect6 ppoll epoll_pwait2
        22 | 72 | 73 | 441 => Group::Poll,
        // nanosleep clock_nanosleep
        101 | 115 => Group::Sleep,
        // waitid wait4
        95 | 260 => Group::Child,
        // clone clone3
        220 | 435 => Group::Clone,
        // futex futex_waitv futex_wait
        98 | 449 | 455 => Group::Futex,
        // fcntl flock
        25 | 32 => Group::FileLock,
        // rt_sigsuspend rt_sigtimedwait
        133 | 137 => Group::Signal,
        // mq_timedsend mq_timedreceive msgrcv msgsnd semtimedop semop
        182 | 183 | 188 | 189 | 192 | 193 => Group::Queue,
        _ => Group::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    fn wait(syscall: i16, file_type: u16, state: u8) -> Wait {
        let mut wait = Wait::new_zeroed();
        (wait.syscall, wait.file_type, wait.state) = (syscall, file_type, u16::from(state));
        wait.waker_syscall = -1;
        wait
    }

    #[test]
    fn the_call_the_file_and_the_state_say_what_a_task_waits_for() {
        let of = |syscall, file_type, state| {
            WaitFor::of(&wait(syscall, file_type, state), Architecture::X86)
        };
        assert_eq!(of(61, 0, b'S'), WaitFor::Child);
        assert_eq!(of(58, 0, b'D'), WaitFor::Vfork);
        assert_eq!(of(0, FIFO, b'S'), WaitFor::Pipe);
        assert_eq!(of(0, SOCKET, b'S'), WaitFor::Socket);
        assert_eq!(of(0, CHARACTER_DEVICE, b'S'), WaitFor::Device);
        assert_eq!(of(0, 8, b'D'), WaitFor::Disk);
        assert_eq!(of(-1, 0, b'D'), WaitFor::Disk);
        assert_eq!(of(35, 0, b'S'), WaitFor::Timer);
        assert_eq!(of(35, 0, b'R'), WaitFor::Cpu);
        assert_eq!(of(35, 0, b'T'), WaitFor::Stopped);
        let on_arm = WaitFor::of(&wait(260, 0, b'S'), Architecture::Arm);
        assert_eq!(on_arm, WaitFor::Child);
        let unknown = WaitFor::of(&wait(61, 0, b'S'), Architecture::Unknown);
        assert_eq!(unknown, WaitFor::Other);
    }

    /// Every number of both architectures, with the names that others give it.
    #[test]
    fn system_calls_are_grouped_by_their_names() {
        let groups = [
            (
                Group::Transfer,
                "read write pread64 pwrite64 readv writev sendfile splice tee vmsplice preadv pwritev \
                 preadv2 pwritev2",
            ),
            (Group::Send, "connect sendto sendmsg sendmmsg"),
            (Group::Receive, "accept recvfrom recvmsg accept4 recvmmsg"),
            (
                Group::Poll,
                "poll select epoll_wait_old epoll_wait pselect6 ppoll epoll_pwait epoll_pwait2",
            ),
            (Group::Sleep, "nanosleep clock_nanosleep"),
            (Group::Child, "wait4 waitid"),
            (Group::Clone, "clone fork vfork clone3"),
            (Group::Futex, "futex futex_waitv futex_wait"),
            (Group::FileLock, "fcntl flock"),
            (Group::Signal, "pause rt_sigtimedwait rt_sigsuspend"),
            (Group::Queue, "semop msgsnd msgrcv semtimedop mq_timedsend mq_timedreceive"),
        ];
        let group_of = |name: Option<&str>| {
            let in_it = |(_, names): &&(Group, &str)| names.split(' ').any(|it| Some(it) == name);
            groups.iter().find(in_it).map_or(Group::Other, |(group, _)| *group)
        };
        let mut seen = [0; 2];
        for number in -1..=i16::MAX {
            let at = usize::try_from(number).unwrap_or(usize::MAX);
            let on_x86 = syscalls::x86_64::Sysno::new(at).map(|call| call.name());
            let on_arm = syscalls::aarch64::Sysno::new(at).map(|call| call.name());
            let names = [on_x86, on_arm];
            for (seen, name) in seen.iter_mut().zip(names) {
                *seen += u32::from(name.is_some());
            }
            assert_eq!(Architecture::X86.group(number), group_of(on_x86), "{number}: {on_x86:?}");
            assert_eq!(Architecture::Arm.group(number), group_of(on_arm), "{number}: {on_arm:?}");
            assert_eq!(Architecture::Unknown.group(number), Group::Other);
        }
        assert!(seen.iter().all(|seen| *seen > 300), "{seen:?}");
    }

    #[test]
    fn machines_and_reasons_have_names() {
        let of = Architecture::of_machine;
        assert_eq!([of("x86_64"), of("aarch64")], [Architecture::X86, Architecture::Arm]);
        assert_eq!([of("riscv64"), of("")], [Architecture::Unknown; 2]);
        let names: Vec<&str> = WaitFor::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!((names[0], names[9], names[14]), ("cpu", "file_lock", "other"));
    }

    /// What a terminal does not answer is not a wait for storage, unless it cannot be interrupted.
    #[test]
    fn a_device_is_not_storage() {
        let of = |state| WaitFor::of(&wait(0, CHARACTER_DEVICE, state), Architecture::X86);
        assert_eq!((of(b'S'), of(b'D')), (WaitFor::Device, WaitFor::Disk));
    }

    #[test]
    fn an_interrupt_is_not_the_task_it_interrupted_unless_that_sends() {
        let mut read = wait(0, SOCKET, b'S');
        (read.waker, read.waker_tgid, read.bits) = (7, 70, WAIT_BY_INTERRUPT);
        let woken = |wait: &Wait| Woken::of(wait, Architecture::X86);
        assert_eq!(woken(&read), Woken::ByInterrupt);
        read.waker_syscall = 44;
        assert_eq!(woken(&read), Woken::ByTask(7));
        read.syscall = 35;
        assert_eq!(woken(&read), Woken::ByInterrupt);
        for bits in [WAIT_BY_TASK, WAIT_BY_END, WAIT_BY_TASK | WAIT_BY_END] {
            read.bits = bits;
            assert_eq!(woken(&read), Woken::ByTask(7));
        }
        read.waker = 0;
        assert_eq!(woken(&read), Woken::ByOutsider(70));
        read.bits = 0;
        assert_eq!(woken(&read), Woken::Unknown);
        read.state = u16::from(b'R');
        assert_eq!(woken(&read), Woken::NotAsleep);
    }
}
