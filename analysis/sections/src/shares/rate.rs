//! Rates per second of the time in which events were counted, with or without the recorder.

use proctrace_overview::options::Options;
use proctrace_recording::Recording;

/// Rates per second, of the recording or of an unrecorded run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    over_ns: u64,
    whose: Whose,
}

/// The time that a rate relates to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// The wall time of an unrecorded run.
    Native,
    /// The wall time of the command.
    Command,
    /// The whole recording: what its descendants did after the end of the command counts, too.
    Recording,
}

impl Rate {
    pub(crate) fn of(recording: &Recording, options: &Options) -> Self {
        match options.native_wall_ns {
            Some(wall_ns) => Self { over_ns: wall_ns, whose: Whose::Native },
            None if recording.recorded_ns() > recording.wall_ns() => {
                Self { over_ns: recording.recorded_ns(), whose: Whose::Recording }
            }
            None => Self { over_ns: recording.wall_ns(), whose: Whose::Command },
        }
    }

    /// `None` if that time is zero.
    pub(crate) fn per_second(&self, count: u64) -> Option<f64> {
        (self.over_ns > 0).then(|| count as f64 * 1e9 / self.over_ns as f64)
    }

    pub(crate) fn says(&self) -> String {
        let seconds = self.over_ns as f64 / 1e9;
        let native = "use --native-wall for the one without recording";
        match self.whose {
            Whose::Native => {
                format!("rate: per second of the wall time without recording, {seconds:.2} s.")
            }
            Whose::Command => {
                format!(
                    "rate: per second of the wall time while recording, {seconds:.2} s; {native}."
                )
            }
            Whose::Recording => {
                format!("rate: per second of the recording, {seconds:.2} s; {native}.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{S, Scene};

    /// The command ends after 1 s, what it left behind goes on to start processes.
    #[test]
    fn what_is_counted_to_the_end_is_related_to_all_of_the_time() {
        let mut scene = Scene::new(1, S);
        scene.fork(0, 1, 2).exit(S, 1, (0, 0));
        scene.fork(3 * S, 2, 3).exit(4 * S, 3, (0, 0)).exit(4 * S, 2, (0, 0));
        let recording = scene.load(Some((S, 0, 0)));
        assert_eq!(recording.wall_ns(), S);
        let options = Options::default();
        assert_eq!(Rate::of(&recording, &options).per_second(2), Some(0.5));
        let native = Options { native_wall_ns: Some(S / 2), ..options };
        assert_eq!(Rate::of(&recording, &native).per_second(2), Some(4.0));
    }
}
