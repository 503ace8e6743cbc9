//! The figures of a process while it runs, as far as the recording knows them.

use proctrace_findings::{Figure, Figures};
use proctrace_replay::Usage;

use super::{Divided, Process, View};

impl View {
    /// True if the recording contains a figure.
    pub fn knows(&self, figure: Figure) -> bool {
        !figure.needs().iter().any(|quantity| self.absent.contains_key(quantity))
    }

    /// True if the recording contains failed look-ups of any family of calls: they are counted, though they may not be all.
    pub fn knows_lookups(&self) -> bool {
        let families = Figure::FailedLookups.needs();
        families.iter().any(|family| !self.absent.contains_key(family))
    }

    /// A value of a figure, or a sum of values; `None` if the recording does not contain it.
    pub fn known<T>(&self, figure: Figure, value: T) -> Option<T> {
        self.knows(figure).then_some(value)
    }

    /// The figures of a process so far; those that are told only at its end are not among them.
    pub fn figures(&self, process: &Process, divided: &Divided) -> Figures {
        let split = divided.of_process(process);
        // Few ticks are no ratio.
        let has_split = divided.system_percent(split, process.used.ticks()).is_some();
        Figures::of(|figure| {
            let value = match figure {
                Figure::UserNs => has_split.then_some(split.user_ns),
                Figure::SystemNs => has_split.then_some(split.system_ns),
                Figure::PeakRssBytes => process.maxrss_bytes,
                // As in the lists: of those families of calls that are recorded.
                Figure::FailedLookups => {
                    return self.knows_lookups().then_some(process.lookups_failed);
                }
                _ => Usage::counter(figure).map(|of| of(&process.used)),
            };
            self.known(figure, value?)
        })
    }
}
