//! Times of tasks off the CPU, the objects of their waits and who ended them; signals and their
//! senders.

use proctrace_wire::WaitFor;

/// A time that a task spent off the CPU: asleep from `since_ns` to `woken_ns`, then waiting for a CPU
/// until `until_ns`. These are in order: `since_ns <= woken_ns <= until_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Index of the task.
    pub task: u32,
    pub waits_for: WaitFor,
    pub waker: Waker,
    /// The waker was ending; such waits are recorded whatever their duration.
    pub waker_ended: bool,
    pub since_ns: u64,
    /// `since_ns` if it was not asleep (preempted, or just created), or if this is not known.
    pub woken_ns: u64,
    pub until_ns: u64,
}

/// The task or event that ended a sleep, or sent a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waker {
    /// A task of the recording, by its index.
    Task(u32),
    /// A process outside the recording, by pid; its name is in [`crate::Recording`]'s
    /// records only for signals.
    Outside(i32),
    /// A timer, a device or the network.
    Interrupt,
    /// It was not asleep.
    None,
    /// Not known.
    Unknown,
}

/// A signal that usually ends a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentSignal {
    pub time_ns: u64,
    /// Index of the process that receives it.
    pub process: u32,
    /// signal(7).
    pub signal: u16,
    /// `si_code` of sigaction(2); 0x80 (`SI_KERNEL`): by the kernel.
    pub code: i32,
    pub sender: Waker,
    /// Name of the sender; empty if it was an interrupt or is withheld.
    pub sender_name: String,
}

/// The waits of one task, in order of time.
pub fn of_task(waits: &[Wait], task: u32) -> &[Wait] {
    let begin = waits.partition_point(|wait| wait.task < task);
    let end = waits.partition_point(|wait| wait.task <= task);
    &waits[begin..end]
}
