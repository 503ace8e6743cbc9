//! Times of tasks off the CPU, the objects of their waits and who ended them; signals and their
//! senders.

use std::ops::Range;

use proctrace_wire::WaitFor;

/// A duration of up to two years, in nanoseconds and seven bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SevenBytes([u8; 7]);

impl SevenBytes {
    fn new(ns: u64) -> Self {
        let [number @ .., high] = ns.to_le_bytes();
        Self(if high == 0 { number } else { [u8::MAX; 7] })
    }

    #[inline]
    fn ns(self) -> u64 {
        let Self([a, b, c, d, e, f, g]) = self;
        u64::from_le_bytes([a, b, c, d, e, f, g, 0])
    }
}

/// A time that a task spent off the CPU: asleep from `since_ns` to `woken_ns`, then waiting for a CPU
/// until `until_ns`. These are in order: `since_ns <= woken_ns <= until_ns`.
///
/// There are as many of them as tasks, and more, so that it takes 32 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    until_ns: u64,
    /// Index of the task.
    pub task: u32,
    /// Index or pid of the waker, where it has one.
    waker: u32,
    asleep: SevenBytes,
    for_cpu: SevenBytes,
    pub waits_for: WaitFor,
    kind: Kind,
}

/// Who ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Task,
    TaskThatEnded,
    Outside,
    OutsideThatEnded,
    Interrupt,
    None,
    Unknown,
}

impl Wait {
    /// A wait between three times in this order, and its waker, with whether that was ending.
    pub fn new(
        task: u32,
        waits_for: WaitFor,
        waker: (Waker, bool),
        [since_ns, woken_ns, until_ns]: [u64; 3],
    ) -> Self {
        let (waker, kind) = match waker {
            (Waker::Task(task), false) => (task, Kind::Task),
            (Waker::Task(task), true) => (task, Kind::TaskThatEnded),
            (Waker::Outside(pid), false) => (pid.cast_unsigned(), Kind::Outside),
            (Waker::Outside(pid), true) => (pid.cast_unsigned(), Kind::OutsideThatEnded),
            (Waker::Interrupt, _) => (0, Kind::Interrupt),
            (Waker::None, _) => (0, Kind::None),
            (Waker::Unknown, _) => (0, Kind::Unknown),
        };
        let asleep = SevenBytes::new(woken_ns.saturating_sub(since_ns));
        let for_cpu = SevenBytes::new(until_ns.saturating_sub(woken_ns));
        Self { until_ns, task, waker, asleep, for_cpu, waits_for, kind }
    }

    #[inline]
    pub fn since_ns(&self) -> u64 {
        self.woken_ns().saturating_sub(self.asleep.ns())
    }

    /// `since_ns` if it was not asleep (preempted, or just created), or if this is not known.
    #[inline]
    pub fn woken_ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.for_cpu.ns())
    }

    #[inline]
    pub fn until_ns(&self) -> u64 {
        self.until_ns
    }

    #[inline]
    pub fn waker(&self) -> Waker {
        match self.kind {
            Kind::Task | Kind::TaskThatEnded => Waker::Task(self.waker),
            Kind::Outside | Kind::OutsideThatEnded => Waker::Outside(self.waker.cast_signed()),
            Kind::Interrupt => Waker::Interrupt,
            Kind::None => Waker::None,
            Kind::Unknown => Waker::Unknown,
        }
    }

    /// The waker is a task or process that was ending; such waits are recorded whatever their duration.
    pub fn waker_ended(&self) -> bool {
        matches!(self.kind, Kind::TaskThatEnded | Kind::OutsideThatEnded)
    }
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
    &waits[indices_of(waits, task)]
}

/// Indices of the waits of one task.
pub fn indices_of(waits: &[Wait], task: u32) -> Range<usize> {
    let begin = waits.partition_point(|wait| wait.task < task);
    let end = waits.partition_point(|wait| wait.task <= task);
    begin..end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_wait_is_as_it_was_made(
            (task, number, ended) in any::<(u32, u32, bool)>(),
            kind in 0..5_u8,
            since_ns in prop_oneof![0_u64..100, Just(1_u64 << 62)],
            (asleep_ns, for_cpu_ns) in (0_u64..1 << 56, prop_oneof![0_u64..100, 0_u64..1 << 56]),
        ) {
            let waker = match kind {
                0 => Waker::Task(number),
                1 => Waker::Outside(number.cast_signed()),
                2 => Waker::Interrupt,
                3 => Waker::None,
                _ => Waker::Unknown,
            };
            let woken_ns = since_ns + asleep_ns;
            let times = [since_ns, woken_ns, woken_ns + for_cpu_ns];
            let wait = Wait::new(task, WaitFor::Pipe, (waker, ended), times);
            prop_assert_eq!([wait.since_ns(), wait.woken_ns(), wait.until_ns()], times);
            prop_assert_eq!((wait.task, wait.waker()), (task, waker));
            prop_assert_eq!(wait.waker_ended(), ended && kind < 2);
        }

        /// Durations that no recording has are cut, and the times stay in order.
        #[test]
        fn no_time_is_too_large(mut times: [u64; 3]) {
            times.sort_unstable();
            let wait = Wait::new(0, WaitFor::Cpu, (Waker::None, false), times);
            prop_assert_eq!(wait.until_ns(), times[2]);
            prop_assert!(wait.since_ns() <= wait.woken_ns() && wait.woken_ns() <= times[2]);
            prop_assert!(times[0] <= wait.since_ns());
        }
    }

    #[test]
    fn it_takes_32_bytes() {
        assert_eq!(size_of::<Wait>(), 32);
    }
}
