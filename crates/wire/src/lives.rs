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

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;
    use crate::layout::EXIT_RELEASED;

    #[test]
    fn a_thread_is_not_the_first_task_of_its_process() {
        let mut attach = Attach::new_zeroed();
        (attach.head.task, attach.process) = (7, 7);
        assert!(!attach.is_thread());
        attach.head.task = 8;
        assert!(attach.is_thread());
        let mut fork = Fork::new_zeroed();
        (fork.child, fork.child_process) = (7, 7);
        assert!(!fork.is_thread());
        fork.child = 8;
        assert!(fork.is_thread());
    }

    #[test]
    fn a_process_ends_with_the_task_that_says_so() {
        let mut exit = Exit::new_zeroed();
        for (bits, ends) in [
            (0, false),
            (EXIT_RELEASED, false),
            (EXIT_PROCESS, true),
            (EXIT_PROCESS | EXIT_RELEASED, true),
        ] {
            exit.bits = bits;
            assert_eq!(exit.is_process(), ends, "{bits:#x}");
        }
    }
}
