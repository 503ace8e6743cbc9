//! Passes over all tasks: their samples, their memory, and those still alive at the end.

use proctrace_wire::layout::{SAMPLE_FINAL, Sample};
use proctrace_wire::{Frames, Record, Stream};

use crate::error::RecordError;
use crate::finish::Alive;
use crate::lives::Origin;
use crate::memory;
use crate::session::Session;
use crate::source::Pass;

impl Session<'_> {
    /// Makes one pass, whose records also remain in `samples`.
    pub(crate) fn sample(&mut self, pass: Pass) -> Result<(), RecordError> {
        self.source.sample(pass, &mut self.samples)?;
        for frame in Frames::new(&self.samples).flatten() {
            self.intake.take(Stream::Samples, frame);
        }
        Ok(())
    }

    /// Reads the memory of every process that is alive.
    pub(crate) fn sample_memory(&mut self) -> Result<(), RecordError> {
        self.sample(Pass::Every)?;
        let looks: Vec<Vec<u8>> = leaders(&self.samples)
            .filter(|leader| leader.rss_pages > 0)
            .filter_map(|leader| memory::look(&leader))
            .collect();
        for record in looks {
            self.intake.take_own(Stream::Samples, &record);
        }
        Ok(())
    }

    /// Samples every task still alive, and returns their processes.
    pub(crate) fn last_samples(&mut self) -> Result<Vec<Alive>, RecordError> {
        self.sample(Pass::Final)?;
        Ok(leaders(&self.samples)
            .filter(|leader| leader.bits & SAMPLE_FINAL != 0)
            .map(|leader| {
                let state = u8::try_from(leader.state).map_or('?', char::from);
                Alive {
                    pid: leader.tgid,
                    state,
                    serial: leader.head.task,
                    origin: Origin::default(),
                }
            })
            .collect())
    }
}

/// The samples of thread-group leaders in a pass.
fn leaders(samples: &[u8]) -> impl Iterator<Item = Sample> + '_ {
    Frames::new(samples).flatten().filter_map(|frame| match Record::decode(frame) {
        Ok(Record::Sample(sample)) if sample.tid == sample.tgid => Some(sample),
        _ => None,
    })
}
