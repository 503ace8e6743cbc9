//! Assembling events from records: argv from its parts, environments from their ids.

use std::collections::{HashMap, VecDeque};
use std::mem::size_of;
use std::sync::Arc;

use proctrace_wire::layout::{EXEC_ARGV_CAPPED, EXEC_ARGV_FAULT, ExecArgsFixed};
use proctrace_wire::{Exec as ExecRecord, Record};

use crate::event::{Body, Environment, Event, Exec, Miss, Place, Workdir};
use crate::mounts::Parts;

/// Assembles the events of the lifecycle stream, except exits.
#[derive(Debug, Default)]
pub struct Assembler {
    environments: Environments,
    /// Execs whose argv is still incomplete, by task.
    pending: HashMap<u32, Pending>,
    mounts: Parts,
}

/// Maximum size of all environments together: that of some tens of thousands, which a job with as many different ones
/// has at most at a time. A block of the file can hold a thousand times its size of them.
const ENVIRONMENTS_BYTES_MAX: usize = 64 << 20;
/// Least size of an allocation, besides the bytes in it: malloc(3) rounds up, and has a header.
const ALLOCATION_BYTES: usize = 24;

/// The latest environments, by their ids; of an earlier one, no more is known than of one that was lost.
#[derive(Debug, Default)]
struct Environments {
    known: HashMap<u64, Arc<Environment>>,
    /// Ids, and what their environments take, the oldest first.
    order: VecDeque<(u64, usize)>,
    bytes: usize,
}

impl Environments {
    fn insert(&mut self, id: u64, environment: Environment) {
        let of = |(name, value): &(Vec<u8>, Vec<u8>)| {
            let allocated = name.capacity() + value.capacity() + 2 * ALLOCATION_BYTES;
            size_of::<(Vec<u8>, Vec<u8>)>() + allocated
        };
        let bytes = environment.iter().map(of).sum::<usize>() + size_of::<(u64, usize)>();
        self.known.insert(id, Arc::new(environment));
        self.order.push_back((id, bytes));
        self.bytes += bytes;
        while self.bytes > ENVIRONMENTS_BYTES_MAX
            && let Some((oldest, bytes)) = self.order.pop_front()
        {
            self.bytes -= bytes;
            self.known.remove(&oldest);
        }
    }

    fn get(&self, id: u64) -> Option<Arc<Environment>> {
        self.known.get(&id).cloned()
    }
}

#[derive(Debug)]
struct Pending {
    exec: Box<Exec>,
    argv: Vec<u8>,
}

impl Assembler {
    /// Processes a record and emits the events that it completes.
    pub fn take(&mut self, record: Record<'_>, emit: &mut impl FnMut(Event)) {
        match record {
            Record::Env(env, bytes) => {
                self.environments.insert(env.env_id, variables(bytes));
            }
            Record::Exec(exec) => {
                self.give_up_on(exec.fixed.head.task, emit);
                self.begin_exec(&exec, emit);
            }
            Record::ExecArgs(args, bytes) => self.continue_argv(args, bytes, emit),
            Record::Attach(attach) => {
                let pids = Some((attach.tgid, attach.tid));
                emit(event(attach.head, pids, Body::Attach(attach)));
            }
            Record::Fork(fork) => {
                let pids = Some((fork.tgid, fork.tid));
                emit(event(fork.head, pids, Body::Fork(fork)));
            }
            Record::Rename(rename) => {
                let pids = Some((rename.tgid, rename.tid));
                emit(event(rename.head, pids, Body::Rename(rename)));
            }
            Record::Workdir(record, path) => {
                let body = Body::Workdir(Workdir { record, path: path.to_vec() });
                emit(event(record.head, Some((record.tgid, record.tid)), body));
            }
            Record::ExecFailed(miss, path) => {
                self.give_up_on(miss.head.task, emit);
                let body = Body::ExecFailed(Miss { record: miss, path: path.to_vec() });
                emit(event(miss.head, None, body));
            }
            Record::Place(record, root) => {
                let body = Body::Place(Place { record, root: root.to_vec() });
                emit(event(record.head, None, body));
            }
            Record::Mounts(part, bytes) => {
                if let Some(table) = self.mounts.take(&part, bytes) {
                    emit(event(part.head, None, Body::Mounts(table)));
                }
            }
            Record::Blind(blind) => {
                let pids = Some((blind.tgid, blind.tid));
                emit(event(blind.head, pids, Body::Blind(blind)));
            }
            Record::Signal(signal) => {
                let pids = Some((signal.tgid, signal.tgid));
                emit(event(signal.head, pids, Body::Signal(Box::new(signal))));
            }
            Record::Loss(loss) => emit(event(loss.head, None, Body::Loss(loss))),
            // Exits are sorted separately; the others are not lifecycle records.
            Record::Exit(_)
            | Record::LookupFailed(..)
            | Record::LookupNamed(..)
            | Record::LookupAgain(_)
            | Record::LookupTime(_)
            | Record::Wait(_)
            | Record::OpenedNamed(..)
            | Record::OpenedAgain(_)
            | Record::Moved(..)
            | Record::Written(..)
            | Record::Sample(_)
            | Record::Tick(_)
            | Record::Memory(_)
            | Record::Unknown(_) => {}
        }
    }

    /// Emits the events that are still waiting for missing records.
    pub fn finish(&mut self, emit: &mut impl FnMut(Event)) {
        let mut tasks: Vec<u32> = self.pending.keys().copied().collect();
        tasks.sort_unstable();
        for task in tasks {
            self.give_up_on(task, emit);
        }
    }

    fn begin_exec(&mut self, record: &ExecRecord<'_>, emit: &mut impl FnMut(Event)) {
        let fixed = record.fixed;
        let exec = Box::new(Exec {
            record: fixed,
            path: record.path.to_vec(),
            interpreter: (!record.interp.is_empty()).then(|| record.interp.to_vec()),
            exe: record.exe.to_vec(),
            cwd: record.cwd.to_vec(),
            argv: Vec::new(),
            argv_truncated: fixed.bits & (EXEC_ARGV_CAPPED | EXEC_ARGV_FAULT) != 0,
            environment: self.environments.get(fixed.env_id),
        });
        let pending = Pending { exec, argv: record.argv.to_vec() };
        if record.argv.len() < expected_argv_bytes(&pending) {
            self.pending.insert(fixed.head.task, pending);
        } else {
            emit(pending.into_event());
        }
    }

    fn continue_argv(&mut self, args: ExecArgsFixed, bytes: &[u8], emit: &mut impl FnMut(Event)) {
        let Some(pending) = self.pending.get_mut(&args.head.task) else { return };
        if args.offset as usize != pending.argv.len() {
            // An earlier part was lost.
            self.give_up_on(args.head.task, emit);
            return;
        }
        pending.argv.extend_from_slice(bytes);
        if pending.argv.len() >= expected_argv_bytes(pending)
            && let Some(pending) = self.pending.remove(&args.head.task)
        {
            emit(pending.into_event());
        }
    }

    fn give_up_on(&mut self, task: u32, emit: &mut impl FnMut(Event)) {
        if let Some(mut pending) = self.pending.remove(&task) {
            pending.exec.argv_truncated = true;
            emit(pending.into_event());
        }
    }
}

/// The argv bytes that the recorder intended to write. An argv longer than that is kept unchanged.
fn expected_argv_bytes(pending: &Pending) -> usize {
    let record = &pending.exec.record;
    if record.bits & EXEC_ARGV_FAULT != 0 {
        return 0;
    }
    record.argv_bytes.min(proctrace_wire::layout::ARGV_MAX) as usize
}

impl Pending {
    fn into_event(mut self) -> Event {
        self.exec.argv = strings(&self.argv);
        let record = self.exec.record;
        event(record.head, Some((record.tgid, record.tid)), Body::Exec(self.exec))
    }
}

/// The NUL-terminated strings of a block; the last may be truncated.
fn strings(block: &[u8]) -> Vec<Vec<u8>> {
    let mut strings: Vec<_> = block.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
    if strings.last().is_some_and(Vec::is_empty) {
        strings.pop();
    }
    strings
}

/// The variables of an environment, as names and values, from a block of NUL-terminated
/// `NAME=value` strings.
pub fn variables(block: &[u8]) -> Environment {
    strings(block)
        .into_iter()
        .filter_map(|variable| {
            let at = variable.iter().position(|byte| *byte == b'=')?;
            Some((variable[..at].to_vec(), variable[at + 1..].to_vec()))
        })
        .collect()
}

pub(crate) fn event(
    head: proctrace_wire::layout::Head,
    pids: Option<(i32, i32)>,
    body: Body,
) -> Event {
    Event {
        time_ns: head.time_ns,
        task: head.task,
        pid: pids.map(|(tgid, _)| tgid),
        tid: pids.map(|(_, tid)| tid),
        body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    fn exec(task: u32, announced: u32, argv: &[u8]) -> ExecRecord<'_> {
        let mut fixed = proctrace_wire::layout::ExecFixed::new_zeroed();
        fixed.head.task = task;
        fixed.argv_bytes = announced;
        ExecRecord { fixed, path: b"p", interp: b"", exe: b"", cwd: b"", argv }
    }

    fn args(task: u32, offset: u32) -> ExecArgsFixed {
        let mut args = ExecArgsFixed::new_zeroed();
        args.head.task = task;
        args.offset = offset;
        args
    }

    fn run(records: &[Record<'_>]) -> Vec<(u32, Vec<Vec<u8>>, bool)> {
        let mut assembler = Assembler::default();
        let mut out = Vec::new();
        let mut emit = |event: Event| {
            if let Body::Exec(exec) = event.body {
                out.push((event.task, exec.argv, exec.argv_truncated));
            }
        };
        for record in records {
            assembler.take(*record, &mut emit);
        }
        assembler.finish(&mut emit);
        out
    }

    #[test]
    fn a_long_argv_is_put_together_across_other_tasks_records() {
        let got = run(&[
            Record::Exec(exec(1, 9, b"ab\0c")),
            Record::Exec(exec(2, 2, b"x\0")),
            Record::ExecArgs(args(1, 4), b"de\0\0"),
            Record::ExecArgs(args(1, 8), b"\0"),
        ]);
        let whole = vec![b"ab".to_vec(), b"cde".to_vec(), b"".to_vec(), b"".to_vec()];
        assert_eq!(got, [(2, vec![b"x".to_vec()], false), (1, whole, false)]);
    }

    #[test]
    fn a_lost_piece_truncates_and_says_so() {
        let cut = vec![b"ab".to_vec(), b"c".to_vec()];
        let missing_middle =
            run(&[Record::Exec(exec(1, 9, b"ab\0c")), Record::ExecArgs(args(1, 8), b"\0")]);
        assert_eq!(missing_middle, [(1, cut.clone(), true)]);
        let missing_end = run(&[Record::Exec(exec(1, 9, b"ab\0c"))]);
        assert_eq!(missing_end, [(1, cut, true)]);
    }

    #[test]
    fn environments_take_no_more_memory_than_they_may() {
        let mut environments = Environments::default();
        let block = b"A=1\0".repeat(16_000);
        for id in 1..=200 {
            environments.insert(id, variables(&block));
            assert!(environments.bytes <= ENVIRONMENTS_BYTES_MAX);
            assert!(environments.get(id).is_some());
        }
        // The latest are known.
        let known: Vec<u64> = (1..=200).filter(|id| environments.get(*id).is_some()).collect();
        assert_eq!(known.first().map(|first| first + known.len() as u64), Some(201));
        assert!(known.len() < 100, "{}", known.len());
        assert_eq!(
            (environments.known.len(), environments.order.len()),
            (known.len(), known.len())
        );
    }

    #[test]
    fn an_argv_can_be_empty_or_hold_empty_strings() {
        assert_eq!(run(&[Record::Exec(exec(1, 0, b""))]), [(1, vec![], false)]);
        assert_eq!(run(&[Record::Exec(exec(1, 1, b"\0"))]), [(1, vec![vec![]], false)]);
    }

    #[test]
    fn environments_are_split_at_the_first_equals_sign() {
        let got = variables(b"PATH=/a:/b\0X=y=z\0odd\0E=\0");
        let pair = |name: &[u8], value: &[u8]| (name.to_vec(), value.to_vec());
        assert_eq!(got, [pair(b"PATH", b"/a:/b"), pair(b"X", b"y=z"), pair(b"E", b"")]);
    }
}
