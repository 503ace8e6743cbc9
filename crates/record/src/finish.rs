//! The end of a recording: the last records, what was lost, and the sums.

use std::io;

use proctrace_trace::{CgroupUsage, Ended, PayloadUsage, Program, RecorderUsage, Trailer};
use proctrace_wire::layout::{Head, LOSS_ANY_CPU, Loss};
use proctrace_wire::{IntoBytes, Kind, Stream};

use crate::clock::boot_ns;
use crate::count::Counts;
use crate::error::RecordError;
use crate::intake::Intake;
use crate::loss::LossCount;
use crate::session::Session;

/// At the end records are drained at most so often: if there are always more, they come from tasks
/// that go on, and nobody waits for these.
const DRAINS_AT_THE_END: usize = 1000;

/// A recording that is over.
#[derive(Debug)]
pub struct Finished {
    /// What came in.
    pub counts: Counts,
    /// Why it ended.
    pub ended: Ended,
    /// CLOCK_BOOTTIME then.
    pub ended_ns: u64,
    /// What became of the command; None if there was none, or if it is still running.
    pub payload: Option<PayloadUsage>,
    /// What did not make it.
    pub losses: Vec<LossCount>,
    /// Processes that were still there.
    pub alive: Vec<Alive>,
    /// The source's programs in the kernel.
    pub programs: Vec<Program>,
    /// What the kernel counted for the recording's own cgroup, if it had one.
    pub cgroup: Option<CgroupUsage>,
    /// Why records stopped being kept, if they did.
    pub sink_error: Option<io::Error>,
}

/// A process that was still there when the recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alive {
    /// Its pid, in the initial pid namespace.
    pub pid: i32,
    /// Its state, as the letter in /proc/PID/stat.
    pub state: char,
}

impl Finished {
    /// What the trace says of its end; `recorder` is what the recorder itself has used.
    pub fn trailer(&self, recorder: RecorderUsage) -> Trailer {
        Trailer {
            ended_ns: self.ended_ns,
            ended: self.ended,
            payload: self.payload.clone(),
            tasks: self.counts.tasks(),
            records: self.counts.by_name(),
            losses: self.losses.iter().copied().map(Into::into).collect(),
            cgroup: self.cgroup.clone(),
            recorder,
            programs: self.programs.clone(),
        }
    }
}

impl Session<'_> {
    /// Collects the rest, detaches, and sums up.
    pub(crate) fn finish(mut self, ended: Ended) -> Result<Finished, RecordError> {
        // Detaching takes its time, which is no part of the recording.
        let ended_ns = boot_ns();
        let alive = match ended {
            Ended::TreeExited => Vec::new(),
            Ended::RootExited | Ended::Interrupted | Ended::TimeOver => self.last_samples()?,
        };
        let cgroup = self.own_cgroup.and_then(|cgroup| cgroup.usage().ok());
        let programs = self.source.detach()?;
        for _ in 0..DRAINS_AT_THE_END {
            if self.drain()? == 0 {
                break;
            }
        }
        self.note_losses()?;
        self.intake.flush();
        Ok(Finished {
            counts: self.intake.counts,
            ended,
            ended_ns,
            payload: self.payload,
            losses: self.losses,
            alive,
            programs,
            cgroup,
            sink_error: self.intake.error,
        })
    }

    /// Makes records of what was lost since the last time.
    pub(crate) fn note_losses(&mut self) -> Result<(), RecordError> {
        let losses = self.source.losses()?;
        for loss in losses.iter().filter(|loss| !self.losses.contains(loss)) {
            push_loss(&mut self.intake, *loss);
        }
        self.losses = losses;
        Ok(())
    }
}

fn push_loss(intake: &mut Intake<'_>, loss: LossCount) {
    let record = Loss {
        head: Head {
            kind: Kind::Loss as u16,
            size: u16::try_from(size_of::<Loss>()).expect("it is 32 bytes"),
            task: 0,
            time_ns: boot_ns(),
        },
        kind: loss.kind as u16,
        reason: loss.reason as u16,
        cpu: loss.cpu.unwrap_or(LOSS_ANY_CPU),
        count: loss.count,
    };
    intake.take_own(Stream::Lifecycle, record.as_bytes());
}
