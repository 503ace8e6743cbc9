//! The clock of the records of an imported log.

use crate::header::START_NS;
use crate::line::Stamp;

/// Maps the times of lines to the clock of the records, on which each line has its own time: so that
/// what happened in one task stays in order.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// The time of the first line, as logged.
    pub(crate) origin: Option<u64>,
    /// The same since 1970, if the log has dates.
    pub(crate) unix_ns: Option<u64>,
    last_ns: u64,
}

impl Clock {
    /// The time of the next line, logged at `moment_ns`.
    pub(crate) fn at(&mut self, stamp: Option<Stamp>, moment_ns: u64) -> u64 {
        if let (None, Some(stamp)) = (self.origin, stamp) {
            self.origin = Some(moment_ns);
            self.unix_ns = matches!(stamp, Stamp::Unix(_)).then_some(moment_ns);
        }
        let since_ns = moment_ns.saturating_sub(self.origin.unwrap_or(moment_ns));
        let next_ns = self.next();
        self.last_ns = next_ns.max(START_NS.saturating_add(since_ns));
        self.last_ns
    }

    /// The earliest time of another line. One nanosecond is left free for a birth.
    pub(crate) fn next(&self) -> u64 {
        self.last_ns.max(START_NS).saturating_add(2)
    }
}
