//! Threads and processes in the records of births and ends.

use crate::layout::{Attach, EXIT_PROCESS, Exit, Fork};

impl Attach {
    /// Returns true for a thread, false for the first task of a process.
    #[inline]
    pub fn is_thread(&self) -> bool {
        self.head.task != self.process
    }
}

impl Fork {
    /// Returns true for a thread of the forker's process, false for a new process.
    #[inline]
    pub fn is_thread(&self) -> bool {
        self.child != self.child_process
    }
}

impl Exit {
    /// Returns true if the process ended with this task.
    #[inline]
    pub fn is_process(&self) -> bool {
        self.bits & EXIT_PROCESS != 0
    }
}
