//! The search for advice: its detectors, asked by any number of threads, and what they found in their order.

use std::borrow::Cow;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use proctrace_findings::Advised;
use proctrace_overview::path::CriticalPath;
use proctrace_recording::Recording;
use proctrace_recording::at_once::with_helpers;

use super::evidence::Evidence;
use super::polling::Loops;
use super::rules::AdviceRules;
use super::{Found, advised_of, ranked};
use super::{
    commands, contention, cures, detached, failures, large_fork, memory_peak, polling, repeated,
    repeated_opens, searches, serial, serial_process, shared_writer, starts, straggler, timers,
    wrappers,
};

/// Maximum number of threads: the detector that takes longest takes as long as four others.
const THREADS_MAX: usize = 4;
/// Minimum number of processes for which threads are worth starting.
const PROCESSES_MIN: usize = 1 << 14;

/// A detector, given what is known of loops that sleep and look again.
type Detector = fn(&Evidence<'_>, &AdviceRules, &Loops) -> Vec<Found>;

/// All but that of loops, which comes first.
const DETECTORS: [Detector; 17] = [
    |evidence, rules, _| commands::find(evidence, rules),
    |evidence, rules, _| repeated::find(evidence, rules),
    |evidence, _, loops| timers::find(evidence, loops),
    |evidence, rules, _| serial::find(evidence, rules),
    |evidence, _, _| straggler::find(evidence),
    |evidence, _, _| contention::find(evidence),
    |evidence, rules, _| failures::find(evidence, rules),
    |evidence, _, _| starts::find(evidence),
    |evidence, _, _| wrappers::find(evidence),
    |evidence, rules, _| cures::find(evidence, rules),
    |evidence, _, _| serial_process::find(evidence),
    |evidence, _, _| shared_writer::find(evidence),
    |evidence, _, _| detached::find(evidence),
    |evidence, _, _| large_fork::find(evidence),
    |evidence, _, _| searches::find(evidence),
    |evidence, _, _| repeated_opens::find(evidence),
    |evidence, _, _| memory_peak::find(evidence),
];

/// Detectors that were asked, and those that are to be.
pub(crate) struct Asked {
    loops: Loops,
    next: AtomicUsize,
    found: Mutex<Vec<(usize, Vec<Found>)>>,
}

impl Asked {
    /// Asks the first. None finds anything if command lines are not known.
    pub(crate) fn first(evidence: &Evidence<'_>) -> Self {
        let knows = evidence.knows_argv();
        let loops = if knows { polling::find(evidence) } else { Loops::default() };
        let next = AtomicUsize::new(if knows { 0 } else { DETECTORS.len() });
        Self { loops, next, found: Mutex::default() }
    }

    /// Asks one after the other, until all are asked.
    pub(crate) fn ask(&self, evidence: &Evidence<'_>, rules: &AdviceRules) {
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(detector) = DETECTORS.get(at) else { return };
            let found = detector(evidence, rules, &self.loops);
            self.found.lock().unwrap_or_else(PoisonError::into_inner).push((at, found));
        }
    }

    /// What they found, whoever asked which first.
    pub(crate) fn found(self) -> Vec<Found> {
        let mut found = self.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_unstable_by_key(|(at, _)| *at);
        self.loops.found.into_iter().chain(found.into_iter().flat_map(|(_, found)| found)).collect()
    }
}

/// Asks all detectors, on several cores if the recording is large.
pub(crate) fn find(evidence: &Evidence<'_>, rules: &AdviceRules) -> Vec<Found> {
    let asked = Asked::first(evidence);
    with_helpers(helper_threads(evidence.recording), || asked.ask(evidence, rules), || ());
    asked.found()
}

/// Number of threads that are worth starting beside this one.
pub fn helper_threads(recording: &Recording) -> usize {
    if recording.processes().len() < PROCESSES_MIN {
        return 0;
    }
    available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX) - 1
}

/// A search that threads join when they have time for it.
pub struct Search<'a> {
    evidence: Evidence<'a>,
    rules: &'a AdviceRules,
    asked: Asked,
}

impl<'a> Search<'a> {
    /// Begins to look for what pays at least this part, in percent, in a recording with this critical path.
    pub fn along(
        recording: &'a Recording,
        path: Option<&'a CriticalPath>,
        rules: &'a AdviceRules,
        min_percent: f64,
    ) -> Self {
        let evidence = Evidence::along(recording, path.map(Cow::Borrowed), min_percent);
        let asked = Asked::first(&evidence);
        Self { evidence, rules, asked }
    }

    /// Looks for advice until nothing is left to be looked for; others may still be looking then.
    pub fn join(&self) {
        self.asked.ask(&self.evidence, self.rules);
    }

    /// The advice, best first. Whatever was not looked for is looked for now.
    pub fn advised(self) -> Advised {
        self.join();
        let Self { evidence, asked, .. } = self;
        advised_of(&evidence, ranked(asked.found(), &evidence))
    }
}
