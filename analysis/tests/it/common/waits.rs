//! Waits for a trace of a version that did not record them.

use std::collections::HashMap;

use proctrace_trace::{Block, BlockInfo};
use proctrace_wire::layout::{EXIT_PROCESS, WAIT_BY_END, WAIT_BY_TASK, Wait};
use proctrace_wire::{Frames, IntoBytes, Kind, Record, Stream};
use zerocopy::FromZeros;

/// The threshold that the header of such a recording would have.
pub(crate) const WAITS_MIN_NS: u64 = 1_000_000;
/// wait4(2) on x86-64.
const WAIT4: i16 = 61;

/// The waits of forkers that do nothing but wait for their children, by real births and ends: until
/// each end, since the later of the child's birth and the end before.
pub(crate) fn waits_of(blocks: &[Block]) -> Block {
    let mut births: HashMap<u32, (u32, u32, u64)> = HashMap::new();
    let mut waited_until: HashMap<u32, u64> = HashMap::new();
    let (mut bytes, mut times) = (Vec::new(), Vec::new());
    let lifecycle = blocks.iter().filter(|block| block.info.stream == Stream::Lifecycle);
    for frame in lifecycle.flat_map(|block| Frames::new(&block.bytes)) {
        match Record::decode(frame.unwrap()).unwrap() {
            Record::Fork(fork) if !fork.is_thread() => {
                births.insert(fork.child, (fork.head.task, fork.process, fork.head.time_ns));
            }
            Record::Exit(exit) if exit.bits & EXIT_PROCESS != 0 => {
                let Some((forker, process, born_ns)) = births.get(&exit.process) else { continue };
                let until_ns = exit.head.time_ns;
                let since_ns =
                    waited_until.insert(*forker, until_ns).unwrap_or(0).clamp(*born_ns, until_ns);
                let mut wait = Wait::new_zeroed();
                (wait.head.kind, wait.head.task) = (Kind::Wait as u16, *forker);
                wait.head.size = u16::try_from(size_of::<Wait>()).unwrap();
                wait.head.time_ns = until_ns;
                (wait.process, wait.waker, wait.waker_tgid) = (*process, exit.head.task, exit.tgid);
                (wait.since_ns, wait.woken_ns) = (since_ns, until_ns);
                (wait.syscall, wait.waker_syscall) = (WAIT4, -1);
                (wait.state, wait.bits) = (b'S'.into(), WAIT_BY_TASK | WAIT_BY_END);
                bytes.extend_from_slice(wait.as_bytes());
                times.push(until_ns);
            }
            _ => {}
        }
    }
    let info = BlockInfo {
        stream: Stream::Waits,
        records: u32::try_from(times.len()).unwrap(),
        raw_bytes: u32::try_from(bytes.len()).unwrap(),
        stored_bytes: 0,
        first_ns: *times.iter().min().unwrap(),
        last_ns: *times.iter().max().unwrap(),
    };
    Block { info, bytes }
}
