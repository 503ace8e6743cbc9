//! Advice: what to change, and what that is predicted to gain.

use serde::Serialize;

use crate::{CriticalPath, Mismatch};

/// All advice about a recording that pays.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Advised {
    /// Division of the wall time, where nothing surely gains something and the critical path is known.
    #[serde(skip)]
    pub path: Option<CriticalPath>,
    /// Wall time of the recorded command.
    pub wall_ns: u64,
    /// CPU time of all processes; 0 if it is not known (null in JSON).
    #[serde(serialize_with = "crate::null_if_not_known")]
    pub cpu_ns: u64,
    /// The most memory (PSS) of all processes in one reading; None without readings of memory.
    pub peak_bytes: Option<u64>,
    /// True if gains of wall time follow from the critical path; otherwise they are only bounded by the
    /// lifetimes of processes.
    pub has_path: bool,
    /// Advice that gains less than this part of the wall time, of the CPU time and of the peak of memory is left
    /// out.
    pub min_percent: f64,
    /// The advice that gains most wall time first, then the one that gains most CPU time, then memory.
    pub advice: Vec<Advice>,
    /// Gain of all advice if it is taken, which is not the sum of the gains; None without advice.
    pub together: Option<Together>,
    /// Requests to the batch system that are off by 2 or more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<Mismatch>,
}

/// Gains of several changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Together {
    /// Predicted reduction of wall time.
    pub wall_ns: Gain,
    /// Predicted reduction of CPU time.
    pub cpu_ns: Gain,
}

/// One change.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Advice {
    /// A stable name of what was found: "polling"; docs/advice.md lists all.
    pub kind: &'static str,
    /// The change to make.
    pub what: String,
    /// The programs that do it today, how often, and where it is started.
    pub evidence: String,
    /// Number of processes concerned, with their descendants.
    pub processes: u64,
    /// Groups of steps to which most of these belong, most processes first; empty if the job has no steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<AdvisedStep>,
    /// First words of the command lines concerned.
    pub commands: Vec<String>,
    /// Predicted reduction of wall time.
    pub wall_ns: Gain,
    /// Predicted reduction of CPU time.
    pub cpu_ns: Gain,
    /// Predicted reduction of the peak of memory; None where it is not about memory.
    pub memory_bytes: Option<Gain>,
    /// Method by which the gains were predicted.
    pub method: String,
    /// Risk of the change.
    pub risk: String,
    /// Way to find out whether it helped.
    pub check: String,
    /// The changed command line, where it can be written down.
    pub change: Option<String>,
    /// The same in words of the recording, before it is looked up how these were written.
    #[serde(skip)]
    pub proposed: Option<String>,
    /// The line of a script that is to be changed, where it is known.
    pub place: Option<ScriptLine>,
    /// Indexes of the processes that it is about, in order; empty if it is about all.
    #[serde(skip)]
    pub about: Vec<u32>,
    /// Index of the process whose start is to be changed.
    #[serde(skip)]
    pub started: Option<u32>,
    /// Place in the list, from 1, of better advice about mostly the same processes: only one of the two
    /// gains is to be had.
    pub part_of: Option<u64>,
}

/// A group of steps that advice is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AdvisedStep {
    /// Its name.
    pub group: String,
    /// Number of its processes that are concerned.
    pub processes: u64,
}

/// A line of a script.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ScriptLine {
    /// The script, as its interpreter was given it.
    pub file: String,
    /// Number of the line, from 1.
    pub line: u64,
    /// The line, without white space around it.
    pub text: String,
    /// The form after the change, where that can be written down.
    pub becomes: Option<String>,
}

/// Evidence for a piece of advice: what its processes did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Explained {
    /// The advice.
    #[serde(flatten)]
    pub advice: Advice,
    /// Its processes with the most time on the critical path, or else with the longest lives, in order of birth.
    pub rows: Vec<ExplainedProcess>,
    /// Number of other processes.
    pub others: u64,
}

/// Activity of one process of a piece of advice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExplainedProcess {
    /// Process id.
    pub pid: i32,
    /// Process id of its parent, if that is known.
    pub parent: Option<i32>,
    /// Time of its birth, since the begin of the recording.
    pub begin_ns: u64,
    /// Time from its birth to its end.
    pub wall_ns: u64,
    /// Its CPU time; None if it is not known.
    pub cpu_ns: Option<u64>,
    /// Its time on the critical path; None if that is not known.
    pub path_ns: Option<u64>,
    /// Objects and times of its waits, the longest first; None if it is not known.
    pub waited: Option<Vec<WaitedFor>>,
    /// Its command line.
    pub command: String,
}

/// Time in which a process waited for one kind of thing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct WaitedFor {
    /// Object of the waits, in words: "a child".
    pub what: &'static str,
    /// Length of the waits, until it had a CPU again.
    pub ns: u64,
}

impl Advice {
    /// True if it gains something at any rate: the lower end of one of its ranges is not 0.
    pub fn is_certain(&self) -> bool {
        let memory = self.memory_bytes.unwrap_or_default();
        [self.wall_ns, self.cpu_ns, memory].iter().any(|gain| gain.low > 0)
    }
}

/// A predicted gain in nanoseconds or bytes, with its range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Gain {
    /// Lower bound much.
    pub low: u64,
    /// The best estimate.
    pub middle: u64,
    /// Upper bound much.
    pub high: u64,
}

impl Gain {
    /// A range with this estimate, which is limited to it.
    pub fn new(low: u64, middle: u64, high: u64) -> Self {
        let high = high.max(low);
        Self { low, middle: middle.clamp(low, high), high }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            low: self.low.saturating_add(other.low),
            middle: self.middle.saturating_add(other.middle),
            high: self.high.saturating_add(other.high),
        }
    }

    /// The range limited to what there is.
    #[must_use]
    pub fn at_most(self, limit: u64) -> Self {
        Self {
            low: self.low.min(limit),
            middle: self.middle.min(limit),
            high: self.high.min(limit),
        }
    }
}

/// Predictions from one recording, compared with one of the changed job.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Observed {
    /// Wall time of the command before the change.
    pub wall_before_ns: u64,
    /// Wall time after it.
    pub wall_after_ns: u64,
    /// CPU time of all processes before the change.
    pub cpu_before_ns: u64,
    /// CPU time after it.
    pub cpu_after_ns: u64,
    /// Peak of memory before the change, if it was read: see [`Advised::peak_bytes`].
    pub peak_before_bytes: Option<u64>,
    /// Peak of memory after it, if it was read.
    pub peak_after_bytes: Option<u64>,
    /// See [`Advised::min_percent`].
    pub min_percent: f64,
    /// The advice of the recording before the change.
    pub advice: Vec<ObservedAdvice>,
    /// See [`Advised::together`].
    pub together: Option<Together>,
    /// Caches that the changed job seems to have filled, so that its next run gains more.
    pub caches_filled: Vec<String>,
}

/// Advice, and whether the recording after the change still gives it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ObservedAdvice {
    /// The advice of the first recording.
    #[serde(flatten)]
    pub advice: Advice,
    /// Remaining gain of the same advice after the change; None if it is not found any more.
    pub left: Option<Left>,
    /// The processes that it is about, where they are not started any more once it is taken.
    pub concerned: Option<Concerned>,
    /// Judgement: if it was followed, and what came of it.
    pub verdict: Verdict,
}

/// Judgement of advice: if it was followed, and what came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Degree to which it was followed.
    pub taken: Taken,
    /// Observation that shows this: "286 -> 34 processes".
    pub because: String,
    /// Outturn of the wall time; None if it was not followed, or cannot be told from other changes.
    pub wall: Option<Outturn>,
    /// Outturn of the CPU time, with that of the spawners for the processes; None if it was not
    /// followed.
    pub cpu: Option<Outturn>,
    /// Outturn of the peak of memory, where it is about memory.
    pub memory: Option<Outturn>,
}

/// Degree to which advice was followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Taken {
    /// Not followed: what it is about is as it was.
    #[default]
    No,
    /// Less than half of it is gone.
    InPart,
    /// At least half of it is gone.
    Yes,
    /// It is a cache, and this run has only filled it.
    OnlyFilled,
    /// The recording after the change does not have what would tell.
    Unknown,
}

/// Gain that was observed, beside the prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Outturn {
    /// The reduction in nanoseconds or bytes; below 0 if it has become more.
    pub observed: i64,
    /// Comparison with the predicted range.
    pub judged: Judged,
}

/// An observed gain, compared with the range that was predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judged {
    /// Below the range.
    Less,
    /// Within it.
    AsPredicted,
    /// Above it.
    More,
}

impl Outturn {
    /// A reduction, compared with the predicted range.
    pub fn of(observed: i64, predicted: Gain) -> Self {
        let judged = match u64::try_from(observed).unwrap_or(0) {
            gained if gained > predicted.high => Judged::More,
            gained if gained < predicted.low || (observed < 0 && predicted.high > 0) => {
                Judged::Less
            }
            _ => Judged::AsPredicted,
        };
        Self { observed, judged }
    }
}

impl Judged {
    /// The judgement in words.
    pub fn says(self) -> &'static str {
        match self {
            Self::Less => "less than predicted",
            Self::AsPredicted => "as predicted",
            Self::More => "more than predicted",
        }
    }
}

/// Remaining gain of advice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Wall time.
    pub wall_ns: Gain,
    /// CPU time.
    pub cpu_ns: Gain,
    /// The peak of memory, where it is about memory.
    pub memory_bytes: Option<Gain>,
}

/// Processes that advice is about, with all that they start, before the change and after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Concerned {
    /// Processes before the change.
    pub processes_before: u64,
    /// Processes after it.
    pub processes_after: u64,
    /// Their CPU time before the change.
    pub cpu_before_ns: u64,
    /// Their CPU time after it.
    pub cpu_after_ns: u64,
    /// Their time on the critical path before the change; None without waits.
    pub path_before_ns: Option<u64>,
    /// Their time on the critical path after it; None without waits.
    pub path_after_ns: Option<u64>,
    /// CPU time that their spawners save: to fork and to reap them, and to read what they print. Below 0 if it became
    /// more.
    pub spawners_cpu_ns: i64,
    /// Time of their spawners on the critical path that is saved for that; None without waits.
    pub spawners_path_ns: Option<i64>,
}
