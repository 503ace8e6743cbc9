//! Tasks that another tracer is to have, such as a debugger of the payload.
//!
//! A task has one tracer, ptrace(2), so the debugger's request fails with EPERM at first. Then the task concerned is let
//! go, and the request is made again. What is let go is not recorded from then on, nor is what it starts.
//!
//! It must not keep a filter that fails its calls without a tracer of ours. So it is made to install a second one that
//! asks a listener (see listener.rs), whose descriptor is taken from it:
//!
//! 1. Of a request to be traced, the task is at the return of ptrace(2). Of a request to trace another task, that one is
//!    interrupted first, and whoever made the request waits.
//! 2. The task calls seccomp(2) with a program below its stack; all signals are blocked meanwhile.
//! 3. The descriptor is taken, and the task closes it.
//! 4. It gets its registers and its mask back, is detached, and the request is made again.

use std::sync::atomic::Ordering;

use libc::sock_filter;
use proctrace_wire::BlindSpot;

use super::Tracer;
use crate::arch::{CALL_INSTRUCTION, RED_ZONE, Registers};
use crate::filter::asking;
use crate::listener::listen;
use crate::procfs;
use crate::sys::{self, Go, SYSCALL_STOP, Tid};

/// Filter flag since Linux 5.19: a call that the listener has been told of is interrupted by a deadly signal only.
const UNINTERRUPTED: u64 = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

/// A task that is being let go.
#[derive(Debug)]
pub(super) struct LettingGo {
    step: Step,
    /// The task that has asked for it and waits at the return of ptrace(2), with the registers to
    /// ask again.
    asked_by: Option<(Tid, Registers)>,
}

#[derive(Debug)]
enum Step {
    /// It has been told to stop.
    Interrupted,
    /// It makes a call on our behalf.
    Calls(Box<Made>),
}

#[derive(Debug)]
struct Made {
    call: InjectedCall,
    /// True if it has entered the call.
    is_in: bool,
    /// The address of an instruction that makes a call.
    instruction: u64,
    /// Signal mask that it gets back.
    mask: u64,
    /// Registers at first, to be set again if it cannot be let go.
    before: Registers,
    /// Registers to set if it is let go.
    then: Registers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InjectedCall {
    Seccomp,
    Close,
}

impl Tracer<'_> {
    /// A task is to be traced by its parent, and is at the return of its refused request. Returns whether it is being
    /// let go.
    pub(super) fn lets_itself_go(&mut self, tid: Tid, registers: &Registers, first: u64) -> bool {
        if !self.can_let_go(tid) {
            return false;
        }
        let before = registers.instruction().wrapping_sub(CALL_INSTRUCTION.len() as u64);
        self.calls_seccomp(tid, *registers, registers.again(first), before, None)
    }

    /// A task has asked in vain to trace another one. Returns whether it waits until that has been let go.
    pub(super) fn lets_other_go(
        &mut self,
        (asks, registers, first): (Tid, &Registers, u64),
        other: Tid,
    ) -> bool {
        if other == asks || self.letting_go.contains_key(&other) || !self.can_let_go(other) {
            return false;
        }
        if sys::interrupt(other).is_err() {
            return false;
        }
        let asked_by = Some((asks, registers.again(first)));
        self.letting_go.insert(other, LettingGo { step: Step::Interrupted, asked_by });
        // It is reported again otherwise.
        sys::take_stop(asks);
        true
    }

    /// A task that is being let go has stopped. Returns whether that has been taken care of.
    pub(super) fn goes(&mut self, tid: Tid, signal: i32, event: i32) -> bool {
        let Some(LettingGo { step, .. }) = self.letting_go.get_mut(&tid) else { return false };
        match (step, event) {
            (_, libc::PTRACE_EVENT_EXIT) => {
                self.is_not_let_go(tid);
                false
            }
            (Step::Interrupted, libc::PTRACE_EVENT_STOP) => self.was_interrupted(tid, signal),
            (Step::Interrupted, _) => false,
            (Step::Calls(made), 0) if signal == SYSCALL_STOP => {
                made.is_in = !made.is_in;
                if made.is_in {
                    sys::resume(tid, Go::ToReturn, 0);
                } else {
                    self.has_called(tid);
                }
                true
            }
            // SIGSTOP cannot be blocked; the task stops when it is detached.
            (Step::Calls(_), libc::PTRACE_EVENT_STOP) => {
                sys::resume(tid, Go::ToReturn, 0);
                true
            }
            (Step::Calls(_), _) => {
                sys::resume(tid, Go::ToReturn, if event == 0 { signal } else { 0 });
                true
            }
        }
    }

    /// A task that was being let go is ending, or has ended, or cannot be let go: who has asked for it is refused.
    pub(super) fn is_not_let_go(&mut self, tid: Tid) {
        let Some(LettingGo { asked_by, .. }) = self.letting_go.remove(&tid) else { return };
        let Some((asks, _)) = asked_by else { return };
        self.tell_refused(asks);
        sys::resume(asks, Go::On, 0);
    }

    /// True if a task has only our filter, and gives us its descriptors. A filter of its own may forbid seccomp(2), or
    /// have a listener, of which there is one.
    fn can_let_go(&self, tid: Tid) -> bool {
        let Some(task) = self.tasks.get(&tid) else { return false };
        let own = i32::try_from(std::process::id()).ok().and_then(procfs::filters);
        // Once it has the filter, there is no way back: no call may fail for want of a descriptor then.
        let may_take = || match sys::take_descriptor(task.tgid, i32::MAX) {
            Ok(_) => true,
            Err(error) => error.raw_os_error() == Some(libc::EBADF) && sys::has_room_for(2),
        };
        let has_ours_only = own.is_some_and(|own| procfs::filters(tid) == Some(own + 1));
        has_ours_only && task.leaving.is_none() && may_take()
    }

    fn was_interrupted(&mut self, tid: Tid, signal: i32) -> bool {
        let going = self.letting_go.get_mut(&tid);
        let asked_by = going.and_then(|going| going.asked_by.take());
        self.letting_go.remove(&tid);
        let registers = Registers::of(tid).filter(|registers| !registers.compat);
        let found = registers.and_then(|registers| Some((registers, call_of(tid, &registers)?)));
        if let Some((before, instruction)) = found
            && self.calls_seccomp(tid, before, before.uninterrupted(), instruction, asked_by)
        {
            return true;
        }
        if let Some((asks, _)) = asked_by {
            self.tell_refused(asks);
            sys::resume(asks, Go::On, 0);
        }
        super::pass_on(tid, signal, libc::PTRACE_EVENT_STOP);
        true
    }

    /// Makes a stopped task call seccomp(2); returns whether it does, or else is as it was.
    fn calls_seccomp(
        &mut self,
        tid: Tid,
        before: Registers,
        then: Registers,
        instruction: u64,
        asked_by: Option<(Tid, Registers)>,
    ) -> bool {
        let program = asking(self.settings.wanted.hooked_calls(), self.settings.wanted.opens);
        let Some(address) = write_program(tid, &before, &program) else { return false };
        let Ok(mask) = sys::signal_mask(tid) else { return false };
        if sys::set_signal_mask(tid, u64::MAX).is_err() {
            return false;
        }
        let flags =
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | if knows_flag() { UNINTERRUPTED } else { 0 };
        let arguments = [libc::SECCOMP_SET_MODE_FILTER.into(), flags, address];
        let registers = before.calling(instruction, libc::SYS_seccomp, arguments);
        if !registers.set(tid) {
            let _ = sys::set_signal_mask(tid, mask);
            return false;
        }
        let made =
            Made { call: InjectedCall::Seccomp, is_in: false, instruction, mask, before, then };
        self.letting_go.insert(tid, LettingGo { step: Step::Calls(Box::new(made)), asked_by });
        sys::resume(tid, Go::ToReturn, 0);
        true
    }

    /// A task returns from a call on our behalf.
    fn has_called(&mut self, tid: Tid) {
        let Some(LettingGo { step: Step::Calls(made), .. }) = self.letting_go.get_mut(&tid) else {
            return;
        };
        if made.call == InjectedCall::Close {
            return self.is_free(tid);
        }
        let result = Registers::of(tid).map_or(-1, |registers| registers.result());
        let Some(descriptor) = i32::try_from(result).ok().filter(|descriptor| *descriptor >= 0)
        else {
            // It has no new filter: a filter from before the recording has a listener already, or the kernel is too old.
            let (before, mask) = (made.before, made.mask);
            before.set(tid);
            let _ = sys::set_signal_mask(tid, mask);
            let is_own = self.letting_go.get(&tid).is_some_and(|going| going.asked_by.is_none());
            self.is_not_let_go(tid);
            if is_own {
                self.tell_refused(tid);
            }
            // A stop by SIGSTOP that was passed over comes again.
            let _ = sys::interrupt(tid);
            return sys::resume(tid, Go::On, 0);
        };
        let closes =
            made.before.calling(made.instruction, libc::SYS_close, [result.cast_unsigned(), 0, 0]);
        made.call = InjectedCall::Close;
        let tgid = self.tasks.get(&tid).map_or(tid, |task| task.tgid);
        if let Ok(listener) = sys::take_descriptor(tgid, descriptor)
            && let Ok(thread) = listen(listener)
        {
            // A thread that has ended keeps its stack until it is joined, or given up.
            self.listeners.retain(|thread| !thread.is_finished());
            self.listeners.push(thread);
        }
        closes.set(tid);
        sys::resume(tid, Go::ToReturn, 0);
    }

    /// A task has a filter that does without us.
    fn is_free(&mut self, tid: Tid) {
        let Some(going) = self.letting_go.remove(&tid) else { return };
        let Step::Calls(made) = going.step else { return };
        made.then.set(tid);
        let _ = sys::set_signal_mask(tid, made.mask);
        sys::detach(tid);
        self.has_gone(tid);
        if let Some((asks, again)) = going.asked_by {
            again.set(asks);
            sys::resume(asks, Go::On, 0);
        }
    }

    /// A task has been detached.
    pub(super) fn has_gone(&mut self, tid: Tid) {
        self.tell_blind(tid, BlindSpot::LetGo);
        if let Some(task) = self.tasks.remove(&tid)
            && let Some(process) = self.processes.get_mut(&task.process)
        {
            process.staying = process.staying.saturating_sub(1);
            process.tasks = process.tasks.saturating_sub(1);
            if process.tasks == 0
                && let Some(process) = self.processes.remove(&task.process)
            {
                self.with_files -= u64::from(process.files.are_open());
            }
        }
        let board = self.shared.board();
        board.let_go.fetch_add(1, Ordering::Relaxed);
        // Nobody waits for its end.
        board.tasks.end();
    }
}

/// True if a program is known to trace others. Without a filter, as with `--misses none`, it is not seen that it is
/// refused, so it is let go at its exec, with all that it starts.
pub(super) fn is_known_to_trace(exe: &[u8]) -> bool {
    const NAMES: [&[u8]; 8] =
        [b"gdb", b"gdbserver", b"lldb", b"lldb-server", b"strace", b"ltrace", b"rr", b"dlv"];
    NAMES.contains(&exe.rsplit(|byte| *byte == b'/').next().unwrap_or_default())
}

/// True if the kernel knows the flag: it looks at flags before it looks at the program.
fn knows_flag() -> bool {
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | UNINTERRUPTED;
    let none = std::ptr::null::<libc::sock_fprog>();
    // SAFETY: without a program, this installs nothing.
    unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, none) };
    std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT)
}

/// Writes a `struct sock_fprog` and its program below the stack of a stopped task; returns its address.
fn write_program(tid: Tid, registers: &Registers, program: &[sock_filter]) -> Option<u64> {
    const HEAD: usize = 16;
    let size = HEAD + size_of_val(program);
    let address = registers.stack().checked_sub(RED_ZONE)?.checked_sub(size as u64)? & !15;
    let mut bytes = Vec::with_capacity(size);
    bytes.extend(u64::try_from(program.len()).ok()?.to_ne_bytes());
    bytes.extend((address + HEAD as u64).to_ne_bytes());
    for sock_filter { code, jt, jf, k } in program {
        bytes.extend(code.to_ne_bytes());
        bytes.extend([*jt, *jf]);
        bytes.extend(k.to_ne_bytes());
    }
    sys::write_memory(tid, address, &bytes).then_some(address)
}

/// The address of an instruction that makes a system call: of the last call, or one of the vDSO.
fn call_of(tid: Tid, registers: &Registers) -> Option<u64> {
    let before = registers.instruction().wrapping_sub(CALL_INSTRUCTION.len() as u64);
    let mut bytes = [0; CALL_INSTRUCTION.len()];
    if sys::read_memory(tid, before, &mut bytes) == bytes.len() && bytes == CALL_INSTRUCTION {
        return Some(before);
    }
    let (begin, end) = procfs::vdso(tid)?;
    let mut code = vec![0; usize::try_from(end.checked_sub(begin)?).ok()?.min(1 << 16)];
    let read = sys::read_memory(tid, begin, &mut code);
    let step = if cfg!(target_arch = "aarch64") { 4 } else { 1 };
    let starts = (0..read.saturating_sub(CALL_INSTRUCTION.len())).step_by(step);
    starts
        .into_iter()
        .find(|at| code[*at..].starts_with(CALL_INSTRUCTION))
        .map(|at| begin + at as u64)
}
