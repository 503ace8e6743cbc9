//! Children that are to be untraced.
//!
//! CLONE_UNTRACED (LeakSanitizer, debuggers) makes a child that no tracer is attached to. It would keep the seccomp
//! filter, and each call that the filter stops at would fail with ENOSYS (seccomp(2), SECCOMP_RET_TRACE). So the flag is
//! taken out of the call: the child is traced, as all others.

use super::Tracer;
use crate::arch::Registers;
use crate::sys::{self, Go, Tid};

const UNTRACED: u64 = libc::CLONE_UNTRACED as u64;

impl Tracer<'_> {
    /// A task enters clone(2) or clone3(2).
    pub(super) fn creates(&mut self, tid: Tid, registers: &mut Registers) -> Go {
        let argument = registers.argument(0);
        if registers.number() == libc::SYS_clone {
            if argument & UNTRACED != 0 {
                registers.replace_argument(tid, 0, argument & !UNTRACED);
            }
            return Go::On;
        }
        // struct clone_args begins with the flags.
        let mut flags = [0; 8];
        if sys::read_memory(tid, argument, &mut flags) != flags.len() {
            return Go::On;
        }
        let flags = u64::from_le_bytes(flags);
        if flags & UNTRACED == 0 || !sys::write_memory(tid, argument, &without(flags)) {
            return Go::On;
        }
        if let Some(task) = self.tasks.get_mut(&tid) {
            task.flags_taken = Some((argument, flags));
        }
        // Its memory becomes what it was.
        Go::ToReturn
    }

    /// A task returns from clone3(2) whose flags were changed; returns whether it does.
    pub(super) fn gives_back_flags(&mut self, tid: Tid) -> bool {
        let taken = self.tasks.get_mut(&tid).and_then(|task| task.flags_taken.take());
        let Some((address, flags)) = taken else { return false };
        sys::write_memory(tid, address, &flags.to_le_bytes());
        true
    }
}

fn without(flags: u64) -> [u8; 8] {
    (flags & !UNTRACED).to_le_bytes()
}
