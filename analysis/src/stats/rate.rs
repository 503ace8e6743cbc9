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
            format!("Rates are per second of {seconds:.2} s, the wall time without recording.")
        } else {
            format!(
                "Rates are per second of {seconds:.2} s, the wall time while recording; \
                 --native-wall gives that without."
            )
        }
    }
}
