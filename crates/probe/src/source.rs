//! Implements the source of records with the BPF programs.

use std::io;
use std::os::fd::AsFd;

use proctrace_record::{Hold, Intake, Pass, Source, SourceError, TaskCounts, Waker};
use proctrace_trace::{Header, HeldUp, Knowledge, LossCount, Program};
use proctrace_wire::{LossReason, Quantity, Stream};

use crate::error::ProbeError;
use crate::hooks::{ADOPT_PROGRAM, REMOVALS, SAMPLE_PROGRAM, SIGNALS, SIZES, SIZES_AT_ENDS, TIMES};
use crate::object::{Orders, Probe, kind_of_program};
use crate::options::OnFull;
use crate::preemption;
use crate::program_info::ProgramStatistics;
use crate::rights;

impl Source for Probe {
    fn name(&self) -> &'static str {
        self.name
    }

    fn describe(&self, header: &mut Header) {
        header.hooks = self.hooks().to_vec();
        if !header.hooks.iter().any(|hook| hook.event == TIMES) {
            header.lookups_timed_one_in = None;
        }
        let has = |event| header.hooks.iter().any(|hook| hook.event == event);
        let (signals, sizes) = (has(SIGNALS), has(SIZES) && has(SIZES_AT_ENDS) && has(REMOVALS));
        let mut absent = |quantity: Quantity, reason: &str| {
            header.knowledge.insert(quantity.name().to_owned(), Knowledge::absent(reason));
        };
        if !signals {
            absent(Quantity::Signals, "this kernel does not report signals");
        }
        if header.opens && !sizes {
            absent(Quantity::FileSizes, "this kernel does not report where files are closed");
        }
        if preemption::skips_silently() {
            for quantity in Quantity::ALL {
                if header.was_asked_for(quantity) == Knowledge::Exact {
                    let method = "lower bound: this kernel may skip programs without counting that";
                    let estimate = Knowledge::Estimate { method: method.to_owned() };
                    header.knowledge.entry(quantity.name().to_owned()).or_insert(estimate);
                }
            }
        }
        header.ring_bytes = u64::from(self.options.ring_bytes);
        header.on_full = match self.options.on_full {
            OnFull::Drop => "drop",
            OnFull::Block => "block",
        }
        .to_owned();
        if self.options.empty_programs {
            header.knows_nothing("recorded with --empty-programs");
        }
    }

    fn is_restricted(&self) -> bool {
        self.rights.restricted
    }

    fn why_nobody(&self, pids: &[u32]) -> Option<SourceError> {
        Some(rights::hidden(pids, self.rights.restricted)?.into())
    }

    fn wakers(&self) -> Vec<Waker<'_>> {
        // A ring is readable as long as it contains anything. Under load that is always, and the
        // recorder would never sleep; the programs wake it when necessary.
        [&self.lifecycle, &self.lookups, &self.waits]
            .into_iter()
            .map(|ring| Waker { descriptor: ring.as_fd(), edge_triggered: true })
            .collect()
    }

    fn arm(&mut self) -> Result<Hold, SourceError> {
        self.maps.give_orders(Orders { launch_armed: 1, pass: pass_number(Pass::Changed) })?;
        // The program at task_newtask sees it before it has run.
        Ok(Hold::No)
    }

    fn adopt(&mut self) -> Result<(), SourceError> {
        if let Some(jobs) = &mut self.jobs {
            jobs.refresh()?;
        }
        // The programs write the tasks they find to the rings.
        self.pass(ADOPT_PROGRAM, &mut Vec::new())?;
        Ok(())
    }

    fn drain(&mut self, intake: &mut Intake<'_>) -> Result<usize, SourceError> {
        // These positions are read first: what lies before them was written by tasks whose births are in the
        // ring of the lifecycle, which is read to its end.
        let (looked_up, waited) = (self.lookups.end(), self.waits.end());
        let lifecycle_end = self.lifecycle.end();
        let lifecycle =
            self.lifecycle.drain(lifecycle_end, |frame| intake.take(Stream::Lifecycle, frame));
        let lookups = self.lookups.drain(looked_up, |frame| intake.take(Stream::Lookups, frame));
        let waits = self.waits.drain(waited, |frame| intake.take(Stream::Waits, frame));
        Ok(lifecycle + lookups + waits)
    }

    /// Smaller amounts are left to the next tick, or to the programs, which wake the recorder above
    /// a quarter of the ring.
    fn is_behind(&self) -> bool {
        let rings = [&self.lifecycle, &self.lookups, &self.waits];
        rings.into_iter().any(|ring| ring.waiting_bytes() > ring.len_bytes() / 8)
    }

    fn has_unfinished(&self) -> bool {
        [&self.lifecycle, &self.lookups, &self.waits]
            .into_iter()
            .any(|ring| ring.waiting_bytes() > 0)
    }

    fn sample(&mut self, pass: Pass, samples: &mut Vec<u8>) -> Result<(), SourceError> {
        let orders = |pass| Orders { launch_armed: 0, pass: pass_number(pass) };
        if pass != Pass::Changed {
            self.maps.give_orders(orders(pass))?;
        }
        self.pass(SAMPLE_PROGRAM, samples)?;
        if pass != Pass::Changed {
            self.maps.give_orders(orders(Pass::Changed))?;
        }
        Ok(())
    }

    fn task_counts(&mut self) -> TaskCounts {
        let counts = self.maps.task_counts();
        TaskCounts { born: counts.born, ended: counts.ended }
    }

    fn held_up(&mut self) -> Option<HeldUp> {
        let counts = self.maps.task_counts();
        (counts.held_up > 0)
            .then_some(HeldUp { times: counts.held_up, total_ns: counts.held_up_ns })
    }

    fn losses(&mut self) -> Result<Vec<LossCount>, SourceError> {
        let mut losses = self.maps.losses()?;
        let skipped = match &self.skipped {
            // If they cannot be had, the end of the recording says so: until then the command is followed, whose
            // status is not to be lost.
            None => skipped(&self.keeper.statistics().unwrap_or_default()).collect(),
            Some(skipped) => skipped.clone(),
        };
        for loss in skipped {
            // Several programs record one kind.
            let same = |other: &&mut LossCount| {
                (other.kind, other.reason, other.cpu) == (loss.kind, loss.reason, loss.cpu)
            };
            match losses.iter_mut().find(same) {
                Some(other) => other.count += loss.count,
                None => losses.push(loss),
            }
        }
        Ok(losses)
    }

    fn detach(&mut self) -> Result<Vec<Program>, SourceError> {
        let programs = self.keeper.detach().map_err(kept)?;
        self.skipped = Some(skipped(&programs).collect());
        Ok(programs.into_iter().map(|statistics| statistics.program).collect())
    }
}

/// The error of a keeper that has ended before the recording has.
fn kept(source: io::Error) -> ProbeError {
    ProbeError::Detached(source)
}

impl Probe {
    /// Runs a program over all tasks; its output replaces `buffer`.
    fn pass(&self, program: &str, buffer: &mut Vec<u8>) -> Result<(), ProbeError> {
        match self.iterator(program) {
            Some(iterator) => iterator.pass(buffer),
            None => {
                buffer.clear();
                Ok(())
            }
        }
    }
}

/// `enum pass` of recorder.bpf.h.
fn pass_number(pass: Pass) -> u32 {
    match pass {
        Pass::Changed => 0,
        Pass::Final => 1,
        Pass::Every => 2,
    }
}

/// Runs that the kernel skipped.
fn skipped(programs: &[ProgramStatistics]) -> impl Iterator<Item = LossCount> {
    programs.iter().filter(|statistics| statistics.recursion_misses > 0).map(|statistics| {
        LossCount {
            kind: kind_of_program(&statistics.program.name),
            reason: LossReason::Recursion,
            cpu: None,
            count: statistics.recursion_misses,
        }
    })
}
