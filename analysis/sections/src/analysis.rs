//! A recording, and what several parts of its report need, each computed once, on first use.

use std::cell::OnceCell;
use std::sync::{Arc, OnceLock};

use proctrace_findings::{
    Advised, Category, Correlations, DirectoryMisses, Ends, Findings, Health, MarkedPhase, Memory,
    Spawner, Summary,
};
use proctrace_wire::Quantity;

use proctrace_advice::{AdviceRules, Search, helper_threads};
use proctrace_overview::path::{CriticalPath, Explained};
use proctrace_overview::sums::Sums;
use proctrace_overview::{
    blind_spots, ends, lookups, memory, path_findings, phases, programs, summary,
};
use proctrace_recording::Recording;
use proctrace_recording::at_once::{both, with_helpers};
use proctrace_recording::books::waits::Accounting;
use proctrace_recording::books::{detached, laws};

/// A recording that is reported on. Obtaining several sections, or findings and metrics, from one
/// of these saves passes over all processes.
#[derive(Debug)]
pub struct Analysis<'a> {
    /// The recording.
    pub recording: &'a Recording,
    accounting: OnceCell<Accounting>,
    sums: OnceCell<Sums<'a>>,
    categories: OnceCell<Vec<Category>>,
    spawners: OnceCell<Vec<Spawner>>,
    lookups: OnceCell<Vec<DirectoryMisses>>,
    ends: OnceCell<Arc<Ends>>,
    detached: OnceCell<Vec<usize>>,
    memory: OnceCell<Option<Memory>>,
    critical: OnceCell<Option<CriticalPath>>,
    path: OnceCell<Option<Explained>>,
    phases: OnceCell<Option<Vec<MarkedPhase>>>,
    pub(crate) correlations: OnceCell<Correlations>,
    summary: OnceCell<Summary>,
    advised: OnceCell<Option<Advised>>,
}

impl<'a> Analysis<'a> {
    /// An analysis of this recording. Nothing is computed yet.
    pub fn of(recording: &'a Recording) -> Self {
        Self {
            recording,
            accounting: OnceCell::new(),
            sums: OnceCell::new(),
            categories: OnceCell::new(),
            spawners: OnceCell::new(),
            lookups: OnceCell::new(),
            ends: OnceCell::new(),
            detached: OnceCell::new(),
            memory: OnceCell::new(),
            critical: OnceCell::new(),
            path: OnceCell::new(),
            phases: OnceCell::new(),
            correlations: OnceCell::new(),
            summary: OnceCell::new(),
            advised: OnceCell::new(),
        }
    }

    /// All findings about the recording.
    pub fn findings(&self) -> Findings {
        let recording = self.recording;
        let path = self.critical();
        if self.advised.get().is_some() || !recording.knows().all(ADVICE) {
            let found = self.without_advice();
            return Findings { advice: self.advised().map(best), ..found };
        }
        // It takes as long as all else, and needs nothing else of it: other threads look for it meanwhile.
        let (rules, search) = (OnceLock::new(), OnceLock::new());
        let search_along = || {
            let rules = rules.get_or_init(AdviceRules::built_in);
            Search::along(recording, path, rules, ADVICE_MIN_PERCENT)
        };
        let join = || search.get_or_init(search_along).join();
        let threads = helper_threads(recording).max(1);
        let found = with_helpers(threads, join, || self.without_advice());
        let _ = self.advised.set(search.into_inner().map(Search::advised));
        Findings { advice: self.advised().map(best), ..found }
    }

    /// Advice that gains one percent or more; `None` if what predictions need is not known.
    pub fn advised(&self) -> Option<&Advised> {
        let advise = || {
            let rules = AdviceRules::built_in();
            let search = Search::along(self.recording, self.critical(), &rules, ADVICE_MIN_PERCENT);
            with_helpers(helper_threads(self.recording), || search.join(), || ());
            search.advised()
        };
        let knows = || self.recording.knows().all(ADVICE);
        self.advised.get_or_init(|| knows().then(advise)).as_ref()
    }

    /// All findings but the advice, which takes as long as all else.
    pub fn without_advice(&self) -> Findings {
        self.prepare();
        let recording = self.recording;
        let health = self.health();
        Findings {
            run: summary::run(recording),
            known: recording.knows().findings(&health.losses),
            health,
            summary: self.summary().clone(),
            categories: self.categories().to_vec(),
            spawners: self.spawners().to_vec(),
            lookups: self.lookups().to_vec(),
            ends: recording.knows().some(&[Quantity::Forks, Quantity::Execs], self.ends()).cloned(),
            detached: detached::findings(recording, self.detached()),
            memory: self.memory().cloned(),
            critical_path: self.path().map(|path| path_findings::findings(recording, path)),
            phases: self.phases().map(<[MarkedPhase]>::to_vec),
            blind_spots: blind_spots::spots(recording),
            correlations: self.correlations().clone(),
            advice: None,
        }
    }

    /// Trustworthiness of the recording: losses, damage, and the conservation laws.
    pub fn health(&self) -> Health {
        laws::health(self.recording, self.accounting())
    }

    /// Computes what takes longest in two independent halves of about the same length.
    pub(crate) fn prepare(&self) {
        if self.sums.get().is_some() || self.summary.get().is_some() {
            return;
        }
        let recording = self.recording;
        let accounts = || {
            let accounting = Accounting::of(recording);
            let summary = summary::without_lives(recording, &accounting);
            (accounting, summary)
        };
        let (sums, (accounting, mut summary)) = both(|| Sums::of(recording), accounts);
        let life_ns = sums.life_median_ns();
        summary.median_life_ns = life_ns.filter(|_| summary::knows_lives(recording, &summary));
        // If a cell was set in the meantime, its value is the same.
        let _ = self.sums.set(sums);
        let _ = self.accounting.set(accounting);
        let _ = self.summary.set(summary);
    }

    pub(crate) fn accounting(&self) -> &Accounting {
        self.accounting.get_or_init(|| Accounting::of(self.recording))
    }

    pub(crate) fn summary(&self) -> &Summary {
        self.summary.get_or_init(|| summary::summary(self.recording, self.accounting()))
    }

    /// The sums over all processes.
    pub(crate) fn sums(&self) -> &Sums<'a> {
        self.sums.get_or_init(|| Sums::of(self.recording))
    }

    pub(crate) fn categories(&self) -> &[Category] {
        self.categories.get_or_init(|| programs::categories(self.recording, self.sums()))
    }

    pub(crate) fn spawners(&self) -> &[Spawner] {
        self.spawners.get_or_init(|| programs::spawners(self.recording, self.sums()))
    }

    pub(crate) fn lookups(&self) -> &[DirectoryMisses] {
        self.lookups.get_or_init(|| lookups::by_directory(self.recording))
    }

    pub(crate) fn ends(&self) -> &Arc<Ends> {
        self.ends.get_or_init(|| Arc::new(ends::ends(self.recording)))
    }

    /// Indices of processes that outlived their parent.
    pub(crate) fn detached(&self) -> &[usize] {
        self.detached.get_or_init(|| detached::detached(self.recording))
    }

    pub(crate) fn memory(&self) -> Option<&Memory> {
        self.memory.get_or_init(|| memory::memory(self.recording)).as_ref()
    }

    /// The critical path; `None` where it or its programs are not known.
    pub(crate) fn path(&self) -> Option<&Explained> {
        let known = self.recording.knows().all(&Quantity::WHO);
        let path = || self.critical().filter(|_| known).map(|it| Explained::of(self.recording, it));
        self.path.get_or_init(path).as_ref()
    }

    /// Sums over the times between the marks of the payload; `None` if they are not known.
    pub(crate) fn phases(&self) -> Option<&[MarkedPhase]> {
        self.phases.get_or_init(|| phases::phases(self.recording)).as_deref()
    }

    /// The critical path as such.
    pub fn critical(&self) -> Option<&CriticalPath> {
        self.critical.get_or_init(|| CriticalPath::of(self.recording)).as_ref()
    }
}

/// Quantities that the advice of the summary needs; without waits, `advise` can only bound what is
/// gained.
const ADVICE: &[Quantity] =
    &[Quantity::Forks, Quantity::Execs, Quantity::Argv, Quantity::Cpu, Quantity::Waits];

/// Advice that gains less, in percent of all, is left out.
const ADVICE_MIN_PERCENT: f64 = 1.0;

/// The advice that the summary names: what surely pays, without what is part of better advice.
fn best(advised: &Advised) -> Advised {
    const SHOWN: usize = 3;
    let advice = advised.advice.iter().filter(|one| one.part_of.is_none() && one.is_certain());
    Advised { advice: advice.take(SHOWN).cloned().collect(), ..advised.clone() }
}
