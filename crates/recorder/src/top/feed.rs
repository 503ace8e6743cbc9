//! The trace that is shown: read as far as it goes, and whether it will go on.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use proctrace_live::{Classify, Status, View};
use proctrace_trace::Follower;

use crate::live;

/// Time after which a file that has no lock and did not change is not being written. The recorder writes every second,
/// also on file systems without locks.
const QUIET: Duration = Duration::from_secs(3);

/// A trace and what it says so far.
pub struct Feed {
    follower: Follower<File>,
    /// What is known of the recording.
    pub view: View,
    /// Whether it goes on.
    pub status: Status,
}

impl Feed {
    pub(super) fn open(path: &Path, classify: Box<dyn Classify>) -> Result<Self> {
        let follower = Follower::open(path)?;
        let view = View::new(follower.header().clone(), classify);
        Ok(Self { follower, view, status: Status::Recording })
    }

    /// Position up to which it was read, and whether that is all.
    pub fn position(&self) -> (u64, Status) {
        (self.follower.position_bytes(), self.status)
    }

    /// Reads what is there, for about as long as `budget`. True if there is more.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn catch_up(&mut self, budget: Duration) -> Result<bool> {
        // Asked first: what the recorder writes before it ends is found below.
        let is_written = live::is_written(self.follower.input()) || !self.is_quiet();
        self.follower.refresh()?;
        let began = Instant::now();
        loop {
            while let Some((info, bytes)) = self.follower.next_block(View::wants)? {
                self.view.take(&info, bytes);
                if began.elapsed() >= budget {
                    return Ok(true);
                }
            }
            self.view.skipped = self.follower.skipped();
            self.view.trailer = self.follower.trailer().cloned();
            self.status = match (self.view.trailer.is_some(), is_written) {
                (true, _) => Status::Ended,
                (false, true) => Status::Recording,
                (false, false) => Status::Abandoned,
            };
            if self.status != Status::Abandoned || !self.follower.skip_incomplete() {
                return Ok(false);
            }
        }
    }

    fn is_quiet(&self) -> bool {
        let changed = self.follower.input().metadata().and_then(|file| file.modified());
        // A time in the future is that of another machine's clock.
        changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|since| since >= QUIET))
    }

    /// Note on what the user should know about the file.
    pub fn note(&self, is_behind: bool) -> Option<String> {
        if is_behind {
            let (at, len) = (self.follower.position_bytes(), self.follower.len_bytes());
            return Some(format!(" reading: {} ", proctrace_report::number::percent(at, len)));
        }
        (self.status == Status::Recording && self.follower.is_replaced())
            .then(|| " the file was renamed or removed ".to_owned())
    }
}
