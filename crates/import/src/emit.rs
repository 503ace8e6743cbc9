//! Writing records: their layout, counts, and numbers for repeated look-ups.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash};
use std::io;

use proctrace_wire::layout::{
    ARGV_MAX, Again, EXEC_ENV_CUT, EnvFixed, ExecArgsFixed, ExecFixed, Head, MISS_PATH_CUT,
    MISS_PATH_FAULT, MOVED_UNKNOWN, MissFixed, MovedFixed, NAMED_SLOTS, Named,
};
use proctrace_wire::{IntoBytes, Kind, Stream};
use zerocopy::Immutable;

use crate::call::Asked;

/// Receives each record with its stream and time.
pub type Push<'a> = dyn FnMut(Stream, u64, &[u8]) -> io::Result<()> + 'a;

/// Maximum length of a path: those of the kernel are shorter.
pub(crate) const PATH_MAX: usize = 4095;
/// Bytes of an argv in the exec record itself.
const ARGV_FIRST: usize = 16384;
/// Bytes of an argv in a continuation.
const ARGV_NEXT: usize = 32768;
/// Bytes of an environment's search variables.
const ENV_MAX: usize = 32768;
/// Environments that are remembered as written.
const ENVIRONMENTS_MAX: usize = 1 << 16;

/// An environment's variables of interest.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    /// `NAME=value`, each with a NUL.
    pub(crate) block: Vec<u8>,
    pub(crate) is_cut: bool,
}

/// Writes records.
pub(crate) struct Emitter<'a> {
    push: &'a mut Push<'a>,
    records: [u64; Kind::ALL.len()],
    buffer: Vec<u8>,
    numbers: Numbers,
    renames: u64,
    environments: HashSet<u64>,
    /// The first error of `push`; nothing is written after it.
    error: Option<io::Error>,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(push: &'a mut Push<'a>) -> Self {
        Self {
            push,
            records: [0; Kind::ALL.len()],
            buffer: Vec::new(),
            numbers: Numbers::default(),
            renames: 0,
            environments: HashSet::new(),
            error: None,
        }
    }

    /// The first error so far.
    pub(crate) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    pub(crate) fn records(&self, kind: Kind) -> u64 {
        self.records[kind as usize - 1]
    }

    /// Writes a record: its fixed part, whose head lacks only the size, and what follows it.
    pub(crate) fn put<T: IntoBytes + Immutable>(
        &mut self,
        stream: Stream,
        head: Head,
        fixed: &T,
        parts: &[&[u8]],
    ) {
        self.buffer.clear();
        self.buffer.extend_from_slice(fixed.as_bytes());
        parts.iter().for_each(|part| self.buffer.extend_from_slice(part));
        self.buffer.resize(self.buffer.len().next_multiple_of(8), 0);
        let Ok(size) = u16::try_from(self.buffer.len()) else { return };
        self.buffer[2..4].copy_from_slice(&size.to_le_bytes());
        if let Some(count) = self.records.get_mut(usize::from(head.kind).wrapping_sub(1)) {
            *count = count.saturating_add(1);
        }
        if self.error.is_none() {
            self.error = (self.push)(stream, head.time_ns, &self.buffer).err();
        }
    }

    /// A failed look-up, or with `error` 0 an open.
    pub(crate) fn lookup(&mut self, task: u32, time_ns: u64, asked: &Asked, error: u16) {
        let (full, again) = match error {
            0 => (Kind::OpenedNamed, Kind::OpenedAgain),
            _ => (Kind::LookupNamed, Kind::LookupAgain),
        };
        let path = asked.path.as_deref().unwrap_or_default();
        let short = &path[..path.len().min(PATH_MAX)];
        let mut bits = if asked.path.is_none() { MISS_PATH_FAULT } else { 0 };
        if short.len() < path.len() {
            bits |= MISS_PATH_CUT;
        }
        // What is opened by a name after a rename may be another file.
        let renames = if error == 0 { self.renames } else { 0 };
        let call = asked.call as u16;
        let key = (full as u16, call, error, asked.dirfd, asked.flags, bits, short, renames);
        let number = match self.numbers.of(&key) {
            Numbered::Known(number) => {
                let head = head(again, task, time_ns);
                self.put(Stream::Lookups, head, &Again { head, number, pad: 0 }, &[]);
                return;
            }
            Numbered::New { number, slot } => (number, slot),
        };
        let head = head(full, task, time_ns);
        let named = Named {
            head,
            call: asked.call as u16,
            error,
            dirfd: asked.dirfd,
            flags: asked.flags,
            path_bytes: length(short),
            bits,
            number: number.0,
            slot: number.1,
        };
        self.put(Stream::Lookups, head, &named, &[short]);
    }

    /// A rename, with the paths before and since and these bits, if both paths are known.
    pub(crate) fn moved(
        &mut self,
        task: u32,
        time_ns: u64,
        paths: Option<(Vec<u8>, Vec<u8>)>,
        bits: u32,
    ) {
        // As long as those of the kernel, behind those of directories.
        let known = paths.filter(|(from, path)| from.len().max(path.len()) <= 2 * PATH_MAX);
        let bits = if known.is_some() { bits } else { MOVED_UNKNOWN };
        let (from, path) = known.unwrap_or_default();
        let head = head(Kind::Moved, task, time_ns);
        let (from_bytes, path_bytes) = (length(&from), length(&path));
        let moved = MovedFixed { head, from_bytes, path_bytes, bits };
        self.put(Stream::Lookups, head, &moved, &[&from, &path]);
        self.renames += 1;
    }

    pub(crate) fn exec_failed(&mut self, task: u32, time_ns: u64, asked: &Asked, error: u16) {
        let path = asked.path.as_deref().unwrap_or_default();
        let path = &path[..path.len().min(PATH_MAX)];
        let head = head(Kind::ExecFailed, task, time_ns);
        let miss = MissFixed {
            head,
            call: asked.call as u16,
            error,
            dirfd: asked.dirfd,
            flags: asked.flags,
            path_bytes: length(path),
            bits: if asked.path.is_none() { MISS_PATH_FAULT } else { 0 },
        };
        self.put(Stream::Lifecycle, head, &miss, &[path]);
    }

    /// An exec of which `fixed` lacks the lengths; `argv` is the block of all arguments.
    pub(crate) fn exec(&mut self, fixed: ExecFixed, paths: [&[u8]; 3], argv: &[u8]) {
        let [path, exe, cwd] = paths.map(|path| &path[..path.len().min(PATH_MAX)]);
        let whole = &argv[..argv.len().min(ARGV_MAX as usize)];
        let (first, mut rest) = whole.split_at(whole.len().min(ARGV_FIRST));
        let fixed = ExecFixed {
            argv_bytes: u32::try_from(argv.len()).unwrap_or(u32::MAX),
            argv_here: u32::try_from(first.len()).unwrap_or(0),
            path_bytes: length(path),
            exe_bytes: length(exe),
            cwd_bytes: length(cwd),
            ..fixed
        };
        self.put(Stream::Lifecycle, fixed.head, &fixed, &[path, exe, cwd, first]);
        let mut offset = first.len();
        while !rest.is_empty() {
            let (part, after) = rest.split_at(rest.len().min(ARGV_NEXT));
            let head = head(Kind::ExecArgs, fixed.head.task, fixed.head.time_ns);
            let args = ExecArgsFixed {
                head,
                offset: u32::try_from(offset).unwrap_or(u32::MAX),
                bytes: u32::try_from(part.len()).unwrap_or(0),
            };
            self.put(Stream::Lifecycle, head, &args, &[part]);
            offset += part.len();
            rest = after;
        }
    }

    /// Writes an environment unless it has been written; returns its id, 0 for none.
    pub(crate) fn environment(&mut self, time_ns: u64, environment: &Environment) -> u64 {
        let block = &environment.block[..environment.block.len().min(ENV_MAX)];
        let bits = if environment.is_cut { EXEC_ENV_CUT } else { 0 };
        let env_id = self.numbers.hasher.hash_one((block, bits)).max(1);
        if self.environments.len() >= ENVIRONMENTS_MAX {
            self.environments.clear();
        }
        if self.environments.insert(env_id) {
            let head = head(Kind::Env, 0, time_ns);
            let bytes = u32::try_from(block.len()).unwrap_or(0);
            self.put(Stream::Lifecycle, head, &EnvFixed { head, env_id, bytes, bits }, &[block]);
        }
        env_id
    }
}

/// The head of a record, without its size.
pub(crate) fn head(kind: Kind, task: u32, time_ns: u64) -> Head {
    Head { kind: kind as u16, size: 0, task, time_ns }
}

fn length(bytes: &[u8]) -> u16 {
    u16::try_from(bytes.len()).unwrap_or(0)
}

enum Numbered {
    Known(u32),
    New { number: u32, slot: u32 },
}

/// The look-ups that can be referred to by number: the last one of each slot
/// (docs/decisions/0005-lookups-by-number.md).
struct Numbers {
    /// Hasher with random seeds, so that nobody can construct two look-ups that are taken for one.
    hasher: foldhash::quality::RandomState,
    /// Hash and number by slot; number 0: none.
    slots: Vec<(u64, u32)>,
    last: u32,
}

impl Default for Numbers {
    fn default() -> Self {
        let slots = vec![(0, 0); NAMED_SLOTS as usize];
        Self { hasher: foldhash::quality::RandomState::default(), slots, last: 0 }
    }
}

impl Numbers {
    fn of(&mut self, key: &impl Hash) -> Numbered {
        let hash = self.hasher.hash_one(key);
        let slot = u32::try_from(hash % u64::from(NAMED_SLOTS)).unwrap_or(0);
        let at = &mut self.slots[slot as usize];
        if at.1 != 0 && at.0 == hash {
            return Numbered::Known(at.1);
        }
        // Numbers that have been used up are not used again.
        self.last = self.last.saturating_add(1);
        let number = if self.last == u32::MAX { 0 } else { self.last };
        *at = (hash, number);
        Numbered::New { number, slot }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_wire::{Call, Frames, Record};

    #[test]
    fn a_repeated_look_up_is_a_number() {
        let mut records = Vec::new();
        let mut push = |_: Stream, _: u64, record: &[u8]| {
            records.push(record.to_vec());
            Ok(())
        };
        let mut emitter = Emitter::new(&mut push);
        let asked = |path: &str| Asked {
            call: Call::Open,
            dirfd: -100,
            directory: None,
            path: Some(path.into()),
            flags: 0,
        };
        for (path, error) in [("/a", 2), ("/b", 2), ("/a", 2), ("/a", 13), ("/a", 0), ("/a", 0)] {
            emitter.lookup(1, 5, &asked(path), error);
        }
        let kinds: Vec<String> = records
            .iter()
            .map(|bytes| {
                match Record::decode(Frames::new(bytes).next().unwrap().unwrap()).unwrap() {
                    Record::LookupNamed(named, path) => {
                        format!(
                            "{} {} {}",
                            named.number,
                            String::from_utf8_lossy(path),
                            named.error
                        )
                    }
                    Record::LookupAgain(again) => format!("again {}", again.number),
                    Record::OpenedNamed(named, _) => format!("open {}", named.number),
                    Record::OpenedAgain(again) => format!("open again {}", again.number),
                    other => panic!("{other:?}"),
                }
            })
            .collect();
        assert_eq!(kinds, ["1 /a 2", "2 /b 2", "again 1", "3 /a 13", "open 4", "open again 4"]);
    }
}
