//! Keepers of the attached programs of a recording.

use std::io;
use std::os::fd::AsFd;

use crate::detach;
use crate::loaded::Attachments;
use crate::program_info::{ProgramStatistics, program_statistics};

/// Keeper of the programs of a recording attached: the recorder itself, or somebody who does it for a recorder that
/// must not have their descriptors.
pub trait Keeper: Send {
    /// The kernel's statistics of each program, sorted by name.
    ///
    /// # Errors
    /// When they cannot be had; the recording is incomplete then, because the programs have been detached.
    fn statistics(&mut self) -> io::Result<Vec<ProgramStatistics>>;

    /// Detaches the programs, and returns their last statistics. No record is created after this, except by tasks that
    /// outlive the recording.
    ///
    /// # Errors
    /// As above.
    fn detach(&mut self) -> io::Result<Vec<ProgramStatistics>>;
}

impl Keeper for Attachments {
    fn statistics(&mut self) -> io::Result<Vec<ProgramStatistics>> {
        Ok(self.known_statistics())
    }

    fn detach(&mut self) -> io::Result<Vec<ProgramStatistics>> {
        let statistics = self.known_statistics();
        // From here on no lifecycle record can be added, and look-ups only by tasks that outlive
        // the recording: the programs are detached or about to be, their maps remain open.
        self.links.clear();
        self.programs.clear();
        detach::in_background(std::mem::take(&mut self.tracepoints));
        Ok(statistics)
    }
}

impl Attachments {
    /// The statistics of those programs that the kernel still has.
    #[must_use]
    pub fn known_statistics(&self) -> Vec<ProgramStatistics> {
        let programs = self.programs.iter();
        let mut programs: Vec<_> = programs
            .filter_map(|(name, program)| program_statistics(name, program.as_fd()).ok())
            .collect();
        programs.sort_by(|a, b| a.program.name.cmp(&b.program.name));
        programs
    }
}
