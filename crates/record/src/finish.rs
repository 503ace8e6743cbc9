//! The end of a recording: the last records, the losses and the totals.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use proctrace_trace::{
    CgroupUsage, Ended, HeldUp, LossCount, MachineUse, PayloadUsage, Program, RecorderUsage,
    Trailer,
};
use proctrace_wire::layout::{Head, LOSS_ANY_CPU, Loss};
use proctrace_wire::{IntoBytes, Kind, Stream};

use crate::clock::boot_ns;
use crate::count::Counts;
use crate::error::RecordError;
use crate::intake::Intake;
use crate::lives::{Origin, Straggler};
use crate::machine::Reading;
use crate::session::Session;

/// Maximum number of drains at the end: if there are always more records, they come from tasks that
/// keep running and are not waited for.
const DRAINS_AT_THE_END: usize = 1000;

/// Pause before a record that is still being written is looked at again.
const UNFINISHED_PAUSE: Duration = Duration::from_millis(1);

/// The result of a recording.
#[derive(Debug)]
pub struct Finished {
    /// Counts of the records received.
    pub counts: Counts,
    /// The reason it ended.
    pub ended: Ended,
    /// CLOCK_BOOTTIME at its end.
    pub ended_ns: u64,
    /// Status and usage of the command; None if there was none, or if it is still running.
    pub payload: Option<PayloadUsage>,
    /// Lost records.
    pub losses: Vec<LossCount>,
    /// Processes that were still alive.
    pub alive: Vec<Alive>,
    /// The process for which the recording went on last, where it did after the command had exited, and all ended.
    pub straggler: Option<Straggler>,
    /// The source's programs in the kernel.
    pub programs: Vec<Program>,
    /// The kernel's accounting of the recording's own cgroup, if it had one.
    pub cgroup: Option<CgroupUsage>,
    /// Work of all CPUs of the machine meanwhile; None if that is not known.
    pub machine: Option<MachineUse>,
    /// User and system time in nanoseconds of other processes of the source.
    pub helper_cpu_ns: (u64, u64),
    /// Waits of tasks for the recorder.
    pub held_up: Option<HeldUp>,
    /// Actions from which the source has kept the command, a sentence each.
    pub restraints: Vec<String>,
    /// The error after which records were no longer stored, if any.
    pub sink_error: Option<io::Error>,
}

/// A process that was still alive when the recording ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alive {
    /// Its pid, in the initial pid namespace.
    pub pid: i32,
    /// Its state, as the letter in /proc/PID/stat.
    pub state: char,
    /// Its serial in the recording.
    pub serial: u32,
    /// Origin of the process.
    pub origin: Origin,
}

impl Finished {
    /// The trailer of the trace; `recorder` is the recorder's own usage, without that of the source's
    /// other processes.
    pub fn trailer(&self, mut recorder: RecorderUsage) -> Trailer {
        recorder.user_ns = recorder.user_ns.saturating_add(self.helper_cpu_ns.0);
        recorder.system_ns = recorder.system_ns.saturating_add(self.helper_cpu_ns.1);
        Trailer {
            ended_ns: self.ended_ns,
            ended: self.ended,
            payload: self.payload.clone(),
            tasks: self.counts.tasks(),
            records: self.counts.by_name(),
            losses: self.losses.clone(),
            cgroup: self.cgroup.clone(),
            machine: self.machine,
            recorder,
            programs: self.programs.clone(),
            job: BTreeMap::new(),
            held_up: self.held_up,
            of_node: None,
        }
    }
}

impl Session<'_> {
    /// Collects the remaining records, detaches, and computes the totals.
    pub(crate) fn finish(mut self, ended: Ended) -> Result<Finished, RecordError> {
        // Taken before detaching, which takes time that is not part of the recording.
        let ended_ns = boot_ns();
        let machine = Reading::now().zip(self.machine).and_then(|(now, then)| now.since(then));
        let mut alive = match ended {
            Ended::TreeExited => Vec::new(),
            Ended::RootExited | Ended::Interrupted | Ended::TimeOver => self.last_samples()?,
        };
        let cgroup = self.own_cgroup.and_then(|cgroup| cgroup.usage().ok());
        let programs = self.source.detach()?;
        let helper_cpu_ns = self.source.helper_cpu_ns();
        let held_up = self.source.held_up();
        for _ in 0..DRAINS_AT_THE_END {
            if self.drain()? == 0 {
                if !self.source.has_unfinished() {
                    break;
                }
                // Whoever writes it has lost the CPU meanwhile.
                std::thread::sleep(UNFINISHED_PAUSE);
            }
        }
        self.intake.tell_changed_mounts();
        self.note_losses()?;
        self.intake.flush();
        // Records that were made before may have come only now.
        let lives = self.intake.lives.take().unwrap_or_default();
        for alive in &mut alive {
            alive.origin = lives.origin(alive.serial);
        }
        let exited_ns = self.payload.as_ref().map_or(u64::MAX, |payload| payload.exited_ns);
        let straggler = lives.last().filter(|last| {
            self.told_of_waiting && ended == Ended::TreeExited && last.ended_ns > exited_ns
        });
        Ok(Finished {
            counts: self.intake.counts,
            ended,
            ended_ns,
            payload: self.payload,
            losses: self.losses,
            alive,
            straggler,
            programs,
            cgroup,
            machine,
            helper_cpu_ns,
            held_up,
            restraints: self.source.restraints(),
            sink_error: self.intake.error,
        })
    }

    /// Records the losses since the last time.
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
