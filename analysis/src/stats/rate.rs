//! Rates per second of wall time, with or without the recorder.

use crate::options::Options;
use crate::recording::Recording;

/// Rates per second, of the recording or of an unrecorded run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    wall_ns: u64,
    native: bool,
}

impl Rate {
    pub(crate) fn of(recording: &Recording, options: &Options) -> Self {
        match options.native_wall_ns {
            Some(wall_ns) => Self { wall_ns, native: true },
            None => Self { wall_ns: recording.wall_ns(), native: false },
        }
    }

    /// `None` if the wall time is zero.
    pub(crate) fn per_second(&self, count: u64) -> Option<f64> {
        (self.wall_ns > 0).then(|| count as f64 * 1e9 / self.wall_ns as f64)
    }

    pub(crate) fn says(&self) -> String {
        let seconds = self.wall_ns as f64 / 1e9;
        if self.native {
            format!("rate: per second of the wall time without recording, {seconds:.2} s.")
        } else {
            format!(
                "rate: per second of the wall time while recording, {seconds:.2} s; use \
                 --native-wall for the one without recording."
            )
        }
    }
}
