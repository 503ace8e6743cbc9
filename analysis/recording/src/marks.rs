//! Marks of the payload, and the phases between them.

use std::collections::BTreeSet;

use proctrace_classify::fast::FastMap;
use proctrace_replay::CpuTime;

use crate::Recording;

/// The origin of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarkedBy {
    /// `proctrace mark`: its time is that of the exec.
    Command,
    /// A failed look-up: its time is that of a tick, so up to one tick early.
    Lookup,
}

impl MarkedBy {
    pub fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Lookup => "look-up",
        }
    }
}

/// A moment that the payload named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub time_ns: u64,
    /// Index of the process: that of `proctrace mark`, or the one that looked up.
    pub process: u32,
    pub by: MarkedBy,
    /// Text as the payload wrote it.
    pub text: String,
    /// The same, made unique by a number if other marks have it too.
    pub name: String,
}

/// The marks of a recording, in order of time.
#[derive(Debug, Default)]
pub struct Marks {
    pub all: Vec<Mark>,
    /// Marks beyond the limit.
    pub left_out: u64,
}

/// Maximum number of marks: a payload that marks each of millions of events has no phases that anybody reads.
const MARKS_MAX: usize = 10_000;

impl Marks {
    pub fn add(&mut self, time_ns: u64, process: u32, by: MarkedBy, text: &[u8]) {
        if self.all.len() >= MARKS_MAX {
            self.left_out += 1;
            return;
        }
        let text = proctrace_classify::names::text(text);
        self.all.push(Mark { time_ns, process, by, text, name: String::new() });
    }

    pub fn append(&mut self, other: Self) {
        self.all.extend(other.all);
        self.left_out = self.left_out.saturating_add(other.left_out);
    }

    /// Brings them in order of time and names them.
    pub fn finish(&mut self) {
        // Stable: the marks of one process that have the time of one tick stay in their order.
        self.all.sort_by_key(|mark| mark.time_ns);
        let over = self.all.len().saturating_sub(MARKS_MAX);
        self.left_out = self.left_out.saturating_add(over as u64);
        self.all.truncate(MARKS_MAX);
        let mut taken: BTreeSet<String> = BTreeSet::from([BEFORE, AFTER].map(str::to_owned));
        let mut times: FastMap<String, u64> = FastMap::default();
        for mark in &mut self.all {
            let n = times.entry(mark.text.clone()).or_insert(0);
            loop {
                *n += 1;
                let name = if *n == 1 { mark.text.clone() } else { format!("{} #{n}", mark.text) };
                if taken.insert(name.clone()) {
                    mark.name = name;
                    break;
                }
            }
        }
    }
}

/// The name of the time before the first mark.
pub const BEFORE: &str = "(before)";
/// The name of the time after the command's end.
pub const AFTER: &str = "(after)";

/// Sums over the time between two marks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PhaseSums {
    /// Processes and threads born.
    pub processes: u64,
    pub threads: u64,
    pub execs: u64,
    /// Ends of processes.
    pub ended: u64,
    pub lookups_failed: u64,
    pub cpu_ns: u64,
    /// Estimates, like everywhere.
    pub user_ns: f64,
    pub system_ns: f64,
}

/// The same for one program.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProgramSums {
    pub processes: u64,
    pub lookups_failed: u64,
    pub cpu_ns: u64,
    pub user_ns: f64,
    pub system_ns: f64,
}

/// The time of the recording, divided by its marks. Without marks there are no phases.
///
/// What outlives the command noticeably has a phase of its own, the last one, which begins at the command's end: it is not
/// what the last mark is about. A payload that sets marks after that goes on without the command that started it.
#[derive(Debug, Default)]
pub struct Phases {
    /// Begin of each phase; the first with the recording.
    pub begins_ns: Vec<u64>,
    pub end_ns: u64,
    pub sums: Vec<PhaseSums>,
    /// Sums by phase and number of the program that each process ran last.
    pub programs: FastMap<(u32, u32), ProgramSums>,
    /// Failed look-ups by phase and number of the directory.
    pub directories: FastMap<(u32, u32), u64>,
}

impl Phases {
    /// Phases of a recording, which have no contents yet.
    pub fn of(recording: &Recording) -> Self {
        let marks = &recording.marks.all;
        if marks.is_empty() {
            return Self::default();
        }
        let (first_ns, last_ns) = (recording.first_ns, recording.last_ns);
        // Not clamp(), which panics if a damaged recording ends before it begins.
        let within = |time_ns: u64| time_ns.min(last_ns).max(first_ns);
        let last_mark_ns = marks.last().map(|mark| mark.time_ns);
        let left_since_ns = recording.left_since_ns.filter(|since| Some(*since) >= last_mark_ns);
        let begins_ns: Vec<u64> = [first_ns]
            .into_iter()
            .chain(marks.iter().map(|mark| within(mark.time_ns)))
            .chain(left_since_ns.map(within))
            .collect();
        Self {
            sums: vec![PhaseSums::default(); begins_ns.len()],
            begins_ns,
            end_ns: last_ns.max(first_ns),
            ..Self::default()
        }
    }

    pub fn len(&self) -> usize {
        self.begins_ns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// End of a phase: where the next one begins.
    pub fn end_of_ns(&self, phase: usize) -> u64 {
        self.begins_ns.get(phase + 1).copied().unwrap_or(self.end_ns)
    }

    /// The phase of a time; times before the recording belong to the first.
    #[inline]
    pub fn at(&self, time_ns: u64) -> usize {
        self.begins_ns.partition_point(|begin_ns| *begin_ns <= time_ns).saturating_sub(1)
    }

    /// The phase of a birth. A mark by look-up has the time of the last event of its process, so the time of a fork if
    /// it comes right after it.
    pub(crate) fn of_birth(&self, born_ns: u64) -> usize {
        self.at(born_ns.saturating_sub(1))
    }

    /// The phases that an interval overlaps, with the part of an amount that falls into each when
    /// it is spread evenly; the parts add up to it.
    pub fn spread(
        &self,
        (from_ns, to_ns): (u64, u64),
        amount: u64,
        mut each: impl FnMut(usize, u64),
    ) {
        let (first, last) = (self.at(from_ns), self.at(to_ns.max(from_ns)));
        let length = u128::from(to_ns.saturating_sub(from_ns).max(1));
        let mut done = 0;
        for phase in first..last {
            let until = u128::from(self.end_of_ns(phase).saturating_sub(from_ns));
            // Below the amount, because the phase ends before the interval does.
            let sum = (u128::from(amount) * until.min(length) / length) as u64;
            each(phase, sum.saturating_sub(done));
            done = sum.max(done);
        }
        each(last, amount.saturating_sub(done));
    }
}

impl Recording {
    /// The name of a phase.
    pub fn phase_name(&self, phase: usize) -> &str {
        match phase.checked_sub(1) {
            None => BEFORE,
            Some(mark) => self.marks.all.get(mark).map_or(AFTER, |mark| &mark.name),
        }
    }

    /// The phase of that name, or of that number as `#N`.
    pub fn phase_named(&self, name: &str) -> Option<usize> {
        let phases = 0..self.phases.len();
        phases.clone().find(|phase| self.phase_name(*phase) == name).or_else(|| {
            let number: usize = name.strip_prefix('#')?.parse().ok()?;
            phases.contains(&number).then_some(number)
        })
    }

    /// The index of the process that set a mark: the one that started the command, or looked up.
    pub fn setter_of(&self, mark: &Mark) -> usize {
        let own = mark.process as usize;
        match mark.by {
            MarkedBy::Lookup => own,
            MarkedBy::Command => {
                self.processes.get(own).and_then(|process| process.parent()).unwrap_or(own)
            }
        }
    }
}

impl PhaseSums {
    pub fn cpu(&self) -> CpuTime {
        split(self.cpu_ns, self.system_ns)
    }
}

impl ProgramSums {
    pub fn cpu(&self) -> CpuTime {
        split(self.cpu_ns, self.system_ns)
    }
}

/// CPU time in whole nanoseconds that add up to the exact total.
fn split(cpu_ns: u64, system_ns: f64) -> CpuTime {
    let system_ns = if system_ns > 0.0 { (system_ns.round() as u64).min(cpu_ns) } else { 0 };
    CpuTime { user_ns: cpu_ns - system_ns, system_ns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn named(texts: &[&str]) -> Vec<String> {
        let mut marks = Marks::default();
        for (at, text) in texts.iter().enumerate() {
            marks.add(at as u64, 0, MarkedBy::Command, text.as_bytes());
        }
        marks.finish();
        marks.all.into_iter().map(|mark| mark.name).collect()
    }

    #[test]
    fn repeated_texts_are_numbered_and_no_name_is_given_twice() {
        assert_eq!(named(&["a", "b", "a", "a"]), ["a", "b", "a #2", "a #3"]);
        assert_eq!(named(&["a #2", "a", "a"]), ["a #2", "a", "a #3"]);
        assert_eq!(named(&[BEFORE]), [format!("{BEFORE} #2")]);
    }

    #[test]
    fn a_flood_of_marks_is_counted() {
        let mut marks = Marks::default();
        for at in 0..2 * MARKS_MAX {
            marks.add(at as u64, 0, MarkedBy::Lookup, b"event");
        }
        let mut more = Marks::default();
        more.add(0, 0, MarkedBy::Command, b"first");
        marks.append(more);
        marks.finish();
        assert_eq!((marks.all.len(), marks.left_out), (MARKS_MAX, MARKS_MAX as u64 + 1));
    }

    proptest! {
        #[test]
        fn parts_add_up_and_lie_where_the_interval_does(
            mut begins_ns in proptest::collection::vec(any::<u64>(), 1..6),
            from_ns in any::<u64>(),
            to_ns in any::<u64>(),
            amount in any::<u64>(),
        ) {
            begins_ns.sort_unstable();
            let phases = Phases { begins_ns, end_ns: u64::MAX, ..Phases::default() };
            let mut sum = 0_u128;
            phases.spread((from_ns, to_ns), amount, |phase, part| {
                sum += u128::from(part);
                assert!((phases.at(from_ns)..=phases.at(to_ns.max(from_ns))).contains(&phase));
            });
            prop_assert_eq!(sum, u128::from(amount));
        }
    }
}
