//! Builds a long recording from a short one: the same job repeated by the same command.
//!
//! The recorded command is a shell that starts a mixture of programs and waits for them. It is kept
//! as the single root of the longer recording, and its descendants are repeated: in each repetition
//! every task has a new serial and a new pid, and all times are shifted. So the result is what a
//! shell would produce that ran its list of commands in a loop:
//!
//! * the root's own records (attach, exec, look-ups) occur once, at the beginning, its exit once,
//!   at the end, and the environments once, as they do in any recording;
//! * the root forks anew in each repetition, and its exit accounts for having waited for all
//!   tasks: that CPU time, and the kernel's value for the command in the trailer, grow by the
//!   contribution of one repetition;
//! * the root's samples are repeated with the counters of its last one, since it was asleep;
//! * look-up numbers, by which later records refer to a look-up, are new in each repetition, as for
//!   a job that looks for other files each time; a look-up recorded in full by the root is recorded
//!   in full again by the first task that repeats it;
//! * the header states in `recorder` that this is a repetition of a recording.
//!
//! Limitations: the root's own CPU time and memory do not grow, and the directories of failed
//! look-ups are those of the short recording, however long the long one is.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use proctrace_trace::{Header, Reader, Spool, Trailer, Writer};
use proctrace_wire::layout::{ATTACH_ROOT, Exit, Head, Named, Sample};
use proctrace_wire::{Frames, IntoBytes, Kind, Record, Stream};

use super::fields::{Plan, Rewrite, plans};
use super::pids::Pids;

/// The pause between two repetitions: the overhead of a shell's loop.
const PAUSE_NS: u64 = 1_000_000;

/// Repetitions in which a record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The root's own records and environments: in the first repetition only.
    First,
    /// In every repetition.
    Each,
    /// A sample of the root.
    RootSample,
    /// The root's exit.
    Last,
}

#[derive(Debug)]
struct Entry {
    stream: Stream,
    kind: Kind,
    time_ns: u64,
    role: Role,
    bytes: Vec<u8>,
    /// The replacement in every repetition but the first.
    later: Option<Later>,
}

/// A look-up in full, where the recording refers to one by its number.
#[derive(Debug)]
struct Later {
    kind: Kind,
    bytes: Vec<u8>,
}

impl Entry {
    fn of_copy(&self, copy: u64) -> (Kind, &[u8]) {
        match &self.later {
            Some(later) if copy > 0 => (later.kind, &later.bytes),
            _ => (self.kind, &self.bytes),
        }
    }
}

/// A short recording, prepared for repetition.
#[derive(Debug)]
pub(crate) struct Template {
    header: Header,
    trailer: Trailer,
    entries: Vec<Entry>,
    plans: HashMap<Kind, Plan>,
    root: u32,
    root_exit: Exit,
    /// Serials used per repetition.
    tasks: u32,
    /// Look-up numbers used per repetition.
    numbers: u32,
    pids: Pids,
    /// The time shift between repetitions.
    period_ns: u64,
}

/// The totals of a repeated recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replica {
    pub(crate) copies: u64,
    pub(crate) records: u64,
    pub(crate) tasks: u64,
    pub(crate) trace_bytes: u64,
    pub(crate) kinds: BTreeMap<String, u64>,
}

impl Template {
    /// Reads the recording at `path`; pids of repetitions are below `pid_max`.
    pub(crate) fn load(path: &Path, pid_max: i32) -> Result<Self> {
        let mut reader = Reader::open(path)?;
        let mut records = Vec::new();
        while let Some(block) = reader.next_block() {
            for frame in Frames::new(&block.bytes) {
                records.push((block.info.stream, frame?.bytes.to_vec()));
            }
        }
        ensure!(reader.damage().is_empty(), "{} is damaged", path.display());
        let trailer = reader.trailer().cloned().context("the recording has no trailer")?;
        Self::new(reader.header().clone(), trailer, records, pid_max)
    }

    fn new(
        header: Header,
        trailer: Trailer,
        records: Vec<(Stream, Vec<u8>)>,
        pid_max: i32,
    ) -> Result<Self> {
        ensure!(trailer.losses.is_empty(), "the recording has lost records");
        ensure!(trailer.cgroup.is_none(), "a cgroup's own CPU time cannot be repeated");
        let plans = plans()?;
        let facts = Facts::of(&records)?;
        let (root, root_exit) = (facts.root, facts.root_exit);
        let mut entries = records
            .into_iter()
            .map(|(stream, bytes)| facts.entry(stream, bytes))
            .collect::<Result<Vec<_>>>()?;
        tell_again(&mut entries)?;
        let repeated = || entries.iter().filter(|entry| entry.role == Role::Each);
        let ended_ns = repeated().map(|entry| entry.time_ns).max().context("nothing to repeat")?;
        let highest = entries.iter().flat_map(|entry| plans[&entry.kind].serials(&entry.bytes));
        let highest = highest.max().unwrap_or(root);
        let numbers = entries.iter().flat_map(|entry| plans[&entry.kind].numbers(&entry.bytes));
        let numbers = numbers.max().unwrap_or(0);
        let all_pids = entries.iter().flat_map(|entry| plans[&entry.kind].pids(&entry.bytes));
        let pids = Pids::new(&facts.born, all_pids, pid_max)?;
        Ok(Self {
            header,
            trailer,
            period_ns: ended_ns - facts.first_fork_ns + PAUSE_NS,
            root,
            root_exit,
            tasks: highest - root,
            numbers,
            pids,
            entries,
            plans,
        })
    }

    /// Number of records in the short recording.
    pub(crate) fn records(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Duration of a repetition.
    pub(crate) fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// The number of repetitions closest to this many records; at least one.
    pub(crate) fn copies_for(&self, records: u64) -> u64 {
        let once = |entry: &&Entry| matches!(entry.role, Role::First | Role::Last);
        let once = self.entries.iter().filter(once).count() as u64;
        let each = self.records() - once;
        ((records.saturating_sub(once) + each / 2) / each).max(1)
    }

    /// Writes the recording `copies` times; returns its totals and the output.
    pub(crate) fn write<W>(&self, copies: u64, out: W) -> Result<(Replica, W)>
    where
        W: Write + Send + 'static,
    {
        let last = copies.checked_sub(1).context("a recording needs at least one repetition")?;
        let serials = last * u64::from(self.tasks) + u64::from(self.root);
        ensure!(u32::try_from(serials).is_ok(), "{serials} tasks exceed the range of serials");
        let numbers = copies * u64::from(self.numbers);
        ensure!(
            u32::try_from(numbers).is_ok(),
            "{numbers} look-ups exceed the range of look-up numbers"
        );
        let mut header = self.header.clone();
        header.recorder =
            format!("{}, {copies} times over by cargo xtask bench analyze", header.recorder);
        let mut spool = Spool::new(Writer::new(out, &header)?)?;
        let mut kinds = BTreeMap::<String, u64>::new();
        let mut root_seen: Option<Sample> = None;
        let mut buffer = Vec::new();
        for copy in 0..copies {
            let later_ns = copy * self.period_ns;
            for entry in &self.entries {
                match entry.role {
                    Role::First if copy > 0 => continue,
                    Role::Last if copy < last => continue,
                    _ => {}
                }
                let (kind, bytes) = entry.of_copy(copy);
                buffer.clear();
                buffer.extend_from_slice(bytes);
                if let Some(sample) = self.root_sample(entry)? {
                    // It has been asleep since the first repetition.
                    let seen = if copy == 0 { sample } else { root_seen.unwrap_or(sample) };
                    root_seen = Some(seen);
                    buffer.copy_from_slice(Sample { head: sample.head, ..seen }.as_bytes());
                }
                if entry.role == Role::Last {
                    let mut exit = self.root_exit;
                    exit.waited_utime_ns *= copies;
                    exit.waited_stime_ns *= copies;
                    // That of an older version was shorter.
                    buffer.clear();
                    buffer.extend_from_slice(exit.as_bytes());
                }
                self.plans[&kind].rewrite(&mut buffer, &Repetition { template: self, copy });
                *kinds.entry(kind.name().to_owned()).or_default() += 1;
                spool.push(entry.stream, entry.time_ns + later_ns, &buffer)?;
            }
        }
        let trailer = self.trailer(copies, kinds.clone());
        let (out, trace_bytes) = spool.finish(&trailer)?;
        let (records, tasks) = (kinds.values().sum(), trailer.tasks);
        Ok((Replica { copies, records, tasks, trace_bytes, kinds }, out))
    }

    fn root_sample(&self, entry: &Entry) -> Result<Option<Sample>> {
        if entry.role != Role::RootSample {
            return Ok(None);
        }
        match decode(&entry.bytes)? {
            Record::Sample(sample) => Ok(Some(sample)),
            _ => bail!("not a sample"),
        }
    }

    fn trailer(&self, copies: u64, records: BTreeMap<String, u64>) -> Trailer {
        let mut trailer = self.trailer.clone();
        let later_ns = (copies - 1) * self.period_ns;
        trailer.ended_ns += later_ns;
        trailer.records = records;
        trailer.tasks = 1 + copies * u64::from(self.tasks);
        if let Some(payload) = &mut trailer.payload {
            payload.exited_ns += later_ns;
            payload.user_ns += (copies - 1) * self.root_exit.waited_utime_ns;
            payload.system_ns += (copies - 1) * self.root_exit.waited_stime_ns;
        }
        trailer.recorder.user_ns *= copies;
        trailer.recorder.system_ns *= copies;
        trailer
    }
}

/// One repetition. `Template::write` has checked that its shifted numbers do not overflow.
struct Repetition<'a> {
    template: &'a Template,
    copy: u64,
}

impl Repetition<'_> {
    /// The number in this repetition, with `each` numbers per repetition.
    fn counted_up(&self, number: u32, each: u32) -> u32 {
        number + u32::try_from(self.copy * u64::from(each)).unwrap_or(u32::MAX)
    }
}

impl Rewrite for Repetition<'_> {
    /// The root keeps its serial, and "no task" is unchanged.
    fn serial(&self, serial: u32) -> u32 {
        let Template { root, tasks, .. } = *self.template;
        if serial <= root { serial } else { self.counted_up(serial, tasks) }
    }

    fn pid(&self, pid: i32) -> i32 {
        self.template.pids.of_copy(pid, self.copy)
    }

    /// The root's birth time is constant in all records.
    fn time_ns(&self, time_ns: u64) -> u64 {
        let Template { period_ns, root_exit, .. } = self.template;
        if time_ns == root_exit.start_ns { time_ns } else { time_ns + self.copy * period_ns }
    }

    fn number(&self, number: u32) -> u32 {
        if number == 0 { 0 } else { self.counted_up(number, self.template.numbers) }
    }
}

/// Look-ups recorded in full only in the first repetition are recorded in full once in each later
/// one, at their first reference.
fn tell_again(entries: &mut [Entry]) -> Result<()> {
    let mut told_once: HashMap<u32, Vec<u8>> = HashMap::new();
    for entry in &*entries {
        if entry.role == Role::First
            && let Record::LookupNamed(named, _) = decode(&entry.bytes)?
            && named.number != 0
        {
            told_once.insert(named.number, entry.bytes.clone());
        }
    }
    for entry in entries.iter_mut().filter(|entry| entry.role == Role::Each) {
        let Record::LookupAgain(again) = decode(&entry.bytes)? else { continue };
        let Some(mut bytes) = told_once.remove(&again.number) else { continue };
        let Record::LookupNamed(mut named, _) = decode(&bytes)? else { bail!("not a look-up") };
        named.head = Head { task: again.head.task, time_ns: again.head.time_ns, ..named.head };
        bytes[..size_of::<Named>()].copy_from_slice(named.as_bytes());
        entry.later = Some(Later { kind: Kind::LookupNamed, bytes });
    }
    Ok(())
}

fn decode(bytes: &[u8]) -> Result<Record<'_>> {
    let frame = Frames::new(bytes).next().context("an empty record")??;
    Ok(Record::decode(frame)?)
}

/// Facts about a recording that are needed to classify its records.
struct Facts {
    root: u32,
    root_exit: Exit,
    /// The first fork of the root, where the repeated part begins.
    first_fork_ns: u64,
    /// Ids of the repeated tasks, in birth order.
    born: Vec<i32>,
}

impl Facts {
    fn of(records: &[(Stream, Vec<u8>)]) -> Result<Self> {
        let (mut roots, mut exits, mut ended) = (Vec::new(), 0, HashMap::new());
        let (mut forks, mut born) = (Vec::new(), Vec::new());
        for (_, bytes) in records {
            match decode(bytes)? {
                Record::Attach(attach) => {
                    ensure!(attach.bits & ATTACH_ROOT != 0, "a task existed before the recording");
                    roots.push(attach.head.task);
                }
                Record::Fork(fork) => {
                    born.extend([fork.child_tgid, fork.child_tid]);
                    forks.push(fork);
                }
                Record::Exit(exit) => {
                    exits += 1;
                    ended.insert(exit.head.task, exit);
                }
                Record::Loss(_) => bail!("the recording has lost records"),
                Record::Unknown(head) => bail!("a record of unknown kind {}", head.kind),
                _ => {}
            }
        }
        let &[root] = roots.as_slice() else {
            bail!("the recording has {} commands instead of one", roots.len())
        };
        let root_exit = *ended.get(&root).context("the command has not ended")?;
        ensure!(exits == forks.len() + 1 && ended.len() == exits, "tasks are still alive");
        // The usage of its threads would be added to totals that occur once, in its exit.
        let is_thread = |fork: &proctrace_wire::layout::Fork| fork.child_process == root;
        ensure!(!forks.iter().any(is_thread), "the command has threads");
        let of_root = forks.iter().filter(|fork| fork.head.task == root);
        let first_fork_ns = of_root.map(|fork| fork.head.time_ns).min();
        let first_fork_ns = first_fork_ns.context("the command has not started any task")?;
        born.retain(|pid| *pid != root_exit.tgid);
        Ok(Self { root, root_exit, first_fork_ns, born })
    }

    fn entry(&self, stream: Stream, bytes: Vec<u8>) -> Result<Entry> {
        let frame = Frames::new(&bytes).next().context("an empty record")??;
        let head = frame.head;
        let kind = Kind::from_number(head.kind).context("a record of an unknown kind")?;
        let of_root = head.task == self.root;
        let role = match kind {
            Kind::Exit if of_root => Role::Last,
            Kind::Sample if of_root && head.time_ns >= self.first_fork_ns => Role::RootSample,
            Kind::Fork => Role::Each,
            // An environment is recorded on first occurrence, whichever task has it.
            Kind::Env => Role::First,
            _ if of_root || head.time_ns < self.first_fork_ns => Role::First,
            _ => Role::Each,
        };
        Ok(Entry { stream, kind, time_ns: head.time_ns, role, bytes, later: None })
    }
}

#[cfg(test)]
mod tests;
