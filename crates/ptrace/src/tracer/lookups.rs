//! Failed look-ups, failed execs and successful opens.
//!
//! The filter stops a task before the call; it goes on until the call returns. Only then is it known whether
//! the path is needed, and only then is it read.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering;

use proctrace_wire::layout::{
    Again, Blind, MISS_PATH_CUT, MISS_PATH_FAULT, MissFixed, NAMED_SLOTS, Named, Rename,
};
use proctrace_wire::{BlindSpot, Call, Family, Kind, Stream};

use super::Tracer;
use crate::arch::{FIRST_ARGUMENT_IS_LOST, Registers};
use crate::procfs::{comm_of, link};
use crate::records::{assemble, head};
use crate::sys::{self, Go, Tid};

/// Maximum length of a path that gets a number: look-ups of longer ones are recorded in full each time, as wire.h says.
const NAMED_PATH_MAX: usize = 512;
const PATH_MAX: usize = 4096;

/// The kernel's own errors, which no program sees: the call will be repeated.
const LARGEST_ERRNO: u16 = 511;

/// O_CREAT | O_WRONLY | O_TRUNC
const CREAT_FLAGS: u32 = 0o1101;

/// Numbers of look-ups that have been recorded in full.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// Numbers by hash of the path.
    known: HashMap<u64, u32>,
    seed: RandomState,
    last: u32,
    renames: u64,
}

impl Numbers {
    fn hash(&self, fixed: &Named, path: &[u8]) -> u64 {
        let Named { head, call, error, dirfd, flags, .. } = fixed;
        let renames = if head.kind == Kind::OpenedNamed as u16 { self.renames } else { 0 };
        self.seed.hash_one((head.kind, call, error, dirfd, flags, path, renames))
    }

    /// A file or directory has been renamed: what is opened by a name since may be another file, so it gets another
    /// number.
    pub(super) fn moved(&mut self) {
        self.renames += 1;
    }

    /// A number and a slot for one that is not known. When all slots are taken, they are all given
    /// away again.
    fn next(&mut self) -> (u32, u32) {
        if self.known.len() >= NAMED_SLOTS as usize {
            self.known.clear();
        }
        (self.last.wrapping_add(1).max(1), self.known.len() as u32)
    }

    fn publish(&mut self, hash: u64, number: u32) {
        self.known.insert(hash, number);
        self.last = number;
    }
}

/// A call with its arguments, in the form of records.
#[derive(Debug, Clone, Copy)]
struct Arguments {
    dirfd: i32,
    flags: u32,
    path: u64,
}

impl Arguments {
    fn of(tid: Tid, call: Call, registers: &Registers, first: u64) -> Self {
        let argument = |n| if n == 0 { first } else { registers.argument(n) };
        let low = |n| argument(n) as u32;
        let flags = match call {
            Call::Openat | Call::Statx | Call::Faccessat | Call::Faccessat2 => low(2),
            Call::Newfstatat => low(3),
            Call::Execveat => low(4),
            Call::Openat2 => {
                // open_how.flags comes first.
                let mut flags = [0; 8];
                sys::read_memory(tid, argument(2), &mut flags);
                u64::from_le_bytes(flags) as u32
            }
            Call::Open | Call::Access => low(1),
            Call::Creat => CREAT_FLAGS,
            _ => 0,
        };
        match call {
            Call::Openat
            | Call::Openat2
            | Call::Statx
            | Call::Faccessat
            | Call::Faccessat2
            | Call::Newfstatat
            | Call::Execveat
            | Call::Readlinkat => Self { dirfd: low(0).cast_signed(), flags, path: argument(1) },
            _ => Self { dirfd: libc::AT_FDCWD, flags, path: argument(0) },
        }
    }
}

impl Tracer<'_> {
    /// A task enters a call that the filter stops at; returns how far it goes.
    pub(super) fn enters(&mut self, tid: Tid) -> Go {
        let Some(mut registers) = Registers::of(tid) else { return Go::On };
        if let libc::SYS_clone | libc::SYS_clone3 = registers.number() {
            return self.creates(tid, &mut registers);
        }
        if FIRST_ARGUMENT_IS_LOST && let Some(task) = self.tasks.get_mut(&tid) {
            task.first_argument = registers.argument(0);
        }
        Go::ToReturn
    }

    /// A task returns from such a call; whether it goes on now.
    pub(super) fn returns(&mut self, tid: Tid) -> bool {
        let Some(registers) = Registers::of(tid) else { return true };
        if self.gives_back_flags(tid) {
            return true;
        }
        if registers.number() == libc::SYS_ptrace {
            return self.returns_from_ptrace(tid, &registers);
        }
        match registers.lookup() {
            Some(call) => self.returns_from_lookup(tid, call, &registers),
            None if registers.renames() => self.renamed(tid, &registers),
            None if registers.result() >= 0 => self.returns_from_other(tid, &registers),
            None => {}
        }
        true
    }

    fn returns_from_lookup(&mut self, tid: Tid, call: Call, registers: &Registers) {
        let result = registers.result();
        let is_open = Family::of(call) == Some(Family::Open);
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        if result >= 0 {
            if is_open {
                task.opens = task.opens.saturating_add(1);
                if self.settings.wanted.opens {
                    self.opened(tid, call, registers, result);
                }
            }
            return;
        }
        let error = u16::try_from(result.unsigned_abs()).unwrap_or(u16::MAX);
        if error > LARGEST_ERRNO || !self.settings.wanted.misses.contains(call) {
            return;
        }
        let first = match FIRST_ARGUMENT_IS_LOST {
            true => task.first_argument,
            false => registers.argument(0),
        };
        let is_exec = Family::of(call) == Some(Family::Exec);
        let count = if is_exec { &mut task.execs_failed } else { &mut task.lookups_failed };
        *count = count.saturating_add(1);
        let serial = task.serial;
        let Arguments { dirfd, flags, path } = Arguments::of(tid, call, registers, first);
        let mut buffer = [0; PATH_MAX];
        let (len, bits) = match sys::read_string(tid, path, &mut buffer) {
            None => (0, MISS_PATH_FAULT),
            Some(PATH_MAX) => (PATH_MAX - 1, MISS_PATH_CUT),
            Some(len) => (len, 0),
        };
        let kind = if is_exec { Kind::ExecFailed } else { Kind::LookupNamed };
        let miss = MissFixed {
            head: head(kind, serial, self.now()),
            call: call as u16,
            error,
            dirfd,
            flags,
            path_bytes: len as u16,
            bits,
        };
        if is_exec {
            assemble(&mut self.record, &miss, &[&buffer[..len]]);
            self.write(Stream::Lifecycle);
        } else {
            self.tell_named(&miss, &buffer[..len], Kind::LookupAgain);
        }
    }

    /// Records a look-up or an open: by number if it has one, otherwise in full.
    fn tell_named(&mut self, miss: &MissFixed, path: &[u8], again: Kind) {
        let MissFixed { head: first, call, error, dirfd, flags, path_bytes, bits } = *miss;
        let mut named =
            Named { head: first, call, error, dirfd, flags, path_bytes, bits, number: 0, slot: 0 };
        if path.len() > NAMED_PATH_MAX || bits != 0 {
            assemble(&mut self.record, &named, &[path]);
            self.write(Stream::Lookups);
            return;
        }
        let hash = self.numbers.hash(&named, path);
        if let Some(number) = self.numbers.known.get(&hash) {
            let head = head(again, first.task, first.time_ns);
            let again = Again { head, number: *number, pad: 0 };
            assemble(&mut self.record, &again, &[]);
            self.write(Stream::Lookups);
            return;
        }
        (named.number, named.slot) = self.numbers.next();
        assemble(&mut self.record, &named, &[path]);
        if self.write(Stream::Lookups) {
            self.numbers.publish(hash, named.number);
        }
    }

    fn opened(&mut self, tid: Tid, call: Call, registers: &Registers, descriptor: i64) {
        let Some(serial) = self.tasks.get(&tid).map(|task| task.serial) else { return };
        let arguments = Arguments::of(tid, call, registers, 0);
        let path = link(tid, &format!("fd/{descriptor}"));
        let (path, bits) = match path {
            Some(path) => (path, 0),
            None => (Vec::new(), MISS_PATH_FAULT),
        };
        let path = &path[..path.len().min(PATH_MAX - 1)];
        let miss = MissFixed {
            head: head(Kind::OpenedNamed, serial, self.now()),
            call: call as u16,
            error: 0,
            dirfd: libc::AT_FDCWD,
            flags: arguments.flags,
            path_bytes: path.len() as u16,
            bits,
        };
        self.tell_named(&miss, path, Kind::OpenedAgain);
    }

    /// A task wanted to be traced, or to trace another one: a task has one tracer only, ptrace(2). Returns whether it
    /// goes on now.
    fn returns_from_ptrace(&mut self, tid: Tid, registers: &Registers) -> bool {
        let Some(task) = self.tasks.get(&tid) else { return true };
        if registers.result() != -i64::from(libc::EPERM) {
            return true;
        }
        let request =
            if FIRST_ARGUMENT_IS_LOST { task.first_argument } else { registers.argument(0) };
        let other = Tid::try_from(registers.argument(1)).ok();
        // Which type the constants have depends on the C library.
        let goes = match (request.try_into(), other) {
            (Ok(libc::PTRACE_TRACEME), _) => self.lets_itself_go(tid, registers, request),
            (Ok(libc::PTRACE_ATTACH | libc::PTRACE_SEIZE), Some(other))
                if self.tasks.contains_key(&other) =>
            {
                self.lets_other_go((tid, registers, request), other)
            }
            _ => return true,
        };
        if !goes {
            self.tell_refused(tid);
        }
        !goes
    }

    /// A task cannot have another tracer.
    pub(super) fn tell_refused(&mut self, tid: Tid) {
        self.shared.board().refused.fetch_add(1, Ordering::Relaxed);
        self.tell_blind(tid, BlindSpot::RefusedTracer);
    }

    pub(super) fn tell_blind(&mut self, tid: Tid, what: BlindSpot) {
        let now = self.now();
        let Some(task) = self.tasks.get(&tid) else { return };
        let blind = Blind {
            head: head(Kind::Blind, task.serial, now),
            process: task.process,
            tgid: task.tgid,
            tid,
            what: what as u32,
        };
        assemble(&mut self.record, &blind, &[]);
        self.write(Stream::Lifecycle);
    }

    /// A task has changed its name, or created an io_uring.
    fn returns_from_other(&mut self, tid: Tid, registers: &Registers) {
        if registers.number() == libc::SYS_io_uring_setup {
            return self.tell_blind(tid, BlindSpot::IoUring);
        }
        let now = self.now();
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        let (serial, process, tgid) = (task.serial, task.process, task.tgid);
        if registers.number() == libc::SYS_prctl {
            let mut name = [0; 16];
            let len = sys::read_string(tid, registers.argument(1), &mut name).unwrap_or(0);
            task.comm = comm_of(&name[..len]);
            let rename = Rename {
                head: head(Kind::Rename, serial, now),
                process,
                tgid,
                tid,
                pad: 0,
                comm: task.comm,
            };
            assemble(&mut self.record, &rename, &[]);
        } else {
            return;
        }
        self.write(Stream::Lifecycle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_refer_to_slots_that_are_not_reused_while_they_are_known() {
        let mut numbers = Numbers::default();
        let mut in_slot = vec![0; NAMED_SLOTS as usize];
        for hash in 0..100_000_u64 {
            let (number, slot) = numbers.next();
            assert!(number > 0 && slot < NAMED_SLOTS);
            in_slot[slot as usize] = number;
            numbers.publish(hash, number);
            assert_eq!(in_slot[slot as usize], numbers.known[&hash]);
        }
        assert!(numbers.known.values().all(|number| in_slot.contains(number)));
    }
}
