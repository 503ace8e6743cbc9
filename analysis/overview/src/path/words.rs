//! Activity of a task on the path, in words.

use proctrace_wire::WaitFor;

use super::Doing;

impl Doing {
    /// Text for a row of a table.
    pub fn says(self) -> String {
        match self {
            Self::Running => "running".to_owned(),
            Self::WaitingForCpu => "waiting for a CPU".to_owned(),
            Self::Waiting(reason) => format!("waiting for {}", object(reason)),
        }
    }
}

/// Object of a wait that nothing of the recording ended.
pub fn object(reason: WaitFor) -> &'static str {
    match reason {
        WaitFor::Cpu => "a CPU",
        WaitFor::Child | WaitFor::Vfork => "a child",
        WaitFor::Pipe => "a pipe",
        WaitFor::Socket => "a connection",
        WaitFor::Futex => "a lock",
        WaitFor::Disk => "storage",
        WaitFor::Timer => "a timer",
        WaitFor::Poll => "files or a time-out",
        WaitFor::FileLock => "a file lock",
        WaitFor::Signal => "a signal",
        WaitFor::Device => "a device",
        WaitFor::Queue => "a queue",
        WaitFor::Stopped => "SIGCONT",
        WaitFor::Other => "something else",
    }
}
