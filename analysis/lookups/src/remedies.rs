//! Remedies that would avoid failed look-ups: each is a changed list or a changed set of files, for which the model of
//! the dynamic linker searches again.

use proctrace_findings::{LookupCause, Remedy};
use proctrace_libsearch::Files;
use proctrace_wire::escape::to_bytes;

use crate::System;
use crate::farm::{FARM, Farm, FarmPlan};
use crate::lists::{Hits, ListChange, Values};
use crate::merge::merged;
use crate::needed::{Absolute, Rewrite};
use crate::starts::Starts;
use crate::uses::{Dlopened, Use, Uses};

/// Remedies for searches of libraries by their stable names: what each does, and what it risks.
const REMEDIES: [(&str, &str, &str); 9] = [
    ("none", "nothing: as recorded", ""),
    (
        "drop",
        "remove the entries of LD_LIBRARY_PATH in which no library was found",
        "a library that only another run needs, or dlopen(3), is not found there any more",
    ),
    (
        "reorder",
        "put the entries in which most libraries are found first",
        "of two libraries of one name another one may be found",
    ),
    ("clean", "drop and reorder; --env prints it", "those of both"),
    (
        "unset",
        "unset LD_LIBRARY_PATH for programs that take no library from it",
        "programs that they start no longer have it either",
    ),
    (
        "farm",
        "put one directory first, with links to all libraries that are found by LD_LIBRARY_PATH; \
         --farm makes it",
        "the links must be renewed when libraries are; one version of each name for all programs",
    ),
    (
        "farm-system",
        "the same with links to the libraries of the system as well; --farm with --with-system makes it",
        "as for farm, and links to libc must be renewed when the system is upgraded",
    ),
    (
        "merge",
        "put one directory in place of all others, with links to all libraries in them and to those of \
         the system; --farm with --merge makes it",
        "as for farm-system, and libraries that are added to these directories are not found before the \
         links are renewed; nor is what programs look for beside a library, or in LD_LIBRARY_PATH \
         themselves",
    ),
    (
        "needed",
        "name libraries by absolute paths in the application's own programs and libraries; \
         --patchelf prints the commands",
        "it changes files; they find their libraries nowhere else, and a new build must be changed \
         again",
    ),
];

/// Fixes that carry the remedies out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fixes {
    /// The directory of the remedy "farm".
    pub farm: FarmPlan,
    /// The directory of the remedy "farm-system".
    pub farm_system: FarmPlan,
    /// The directory of the remedy "merge".
    pub merge: FarmPlan,
    /// The values of LD_LIBRARY_PATH with the remedy "clean", the most common first.
    pub library_paths: Vec<ListChange>,
    /// The values of PATH with the remedy "path", the most common first.
    pub paths: Vec<ListChange>,
    /// The objects to change for the remedy "needed".
    pub rewrites: Vec<Rewrite>,
    pub(crate) hits: Hits,
}

impl Fixes {
    /// LD_LIBRARY_PATH with the remedy of this name, "drop", "reorder" or "clean"; `None` if nothing is
    /// left of it.
    pub fn library_path(&self, remedy: &str, was: &[u8]) -> Option<Vec<u8>> {
        self.hits.changed(remedy, was)
    }
}

/// Evidence of a recording about its remedies.
#[derive(Default)]
pub(crate) struct Evidence {
    pub(crate) dlopened: Dlopened,
    pub(crate) values: Values,
}

/// Remedies by what they leave, the most effective first; today's state is the last of equals. Those for
/// other searches come last.
pub(crate) fn remedies(
    starts: &Starts<'_>,
    evidence: &Evidence,
    causes: &[LookupCause],
) -> (Vec<Remedy>, Fixes) {
    let uses = Uses::of(starts, &evidence.dlopened);
    let mut model = Model {
        hits: Hits::of(&uses),
        farm: Farm::of(&uses, false),
        farm_system: Farm::of(&uses, true),
        merge: merged(&uses),
        absolute: Absolute::of(&uses),
        uses: &uses,
    };
    let has_list = uses.all().any(|used| used.start.library_path.is_some());
    let predictions = REMEDIES.map(|(name, ..)| model.predicted(name));
    let today = predictions[0].misses;
    let mut remedies = Vec::new();
    for ((name, does, risk), predicted) in REMEDIES.into_iter().zip(predictions) {
        match name {
            "farm" => model.farm.plan.failing = predicted.failing,
            "farm-system" => model.farm_system.plan.failing = predicted.failing,
            "merge" => model.merge.plan.failing = predicted.failing,
            _ => {}
        }
        let applies = match name {
            "none" => true,
            "needed" => !model.absolute.rewrites.is_empty(),
            _ => has_list,
        };
        if applies {
            remedies.push(Remedy {
                name,
                about: "libraries",
                does: does.to_owned(),
                risk,
                today_misses: today,
                predicted_misses: predicted.misses,
                saves_ns: None,
                predicted_dlopen_misses: Some(match name {
                    "none" => evidence.dlopened.misses(),
                    _ => predicted.later,
                }),
            });
        }
    }
    remedies.sort_by_key(|remedy| (remedy.predicted_misses, remedy.name == "none"));
    remedies.extend(shorter_path(&evidence.values, causes));
    let fixes = Fixes {
        library_paths: evidence.values.library_paths(&model.hits),
        paths: evidence.values.paths(),
        farm: model.farm.plan,
        farm_system: model.farm_system.plan,
        merge: model.merge.plan,
        rewrites: model.absolute.rewrites,
        hits: model.hits,
    };
    (remedies, fixes)
}

/// The remedy for searches of programs: the entries of PATH that remain keep their failed look-ups.
fn shorter_path(values: &Values, causes: &[LookupCause]) -> Option<Remedy> {
    let of_path = || causes.iter().filter(|cause| cause.kind == "PATH");
    let kept = of_path().filter(|cause| values.finds_programs(&to_bytes(&cause.entry)));
    values.has_path().then(|| Remedy {
        name: "path",
        about: "programs",
        does: "remove the entries of PATH in which no program was found; --env prints it"
            .to_owned(),
        risk: "a program that only another run starts, or that is only asked for (command -v), is \
               not found there any more",
        today_misses: of_path().map(|cause| cause.misses).sum(),
        predicted_misses: kept.map(|cause| cause.misses).sum(),
        saves_ns: None,
        predicted_dlopen_misses: None,
    })
}

/// Failed look-ups and failing programs that a remedy leaves.
#[derive(Default)]
struct Prediction {
    /// Failed look-ups of all starts.
    misses: u64,
    /// Failed look-ups by dlopen(3).
    later: u64,
    /// Programs that would not start. They count as today.
    failing: Vec<Vec<u8>>,
}

/// The changed lists and files.
struct Model<'a> {
    uses: &'a Uses<'a>,
    pub(crate) hits: Hits,
    farm: Farm<'a>,
    farm_system: Farm<'a>,
    merge: Farm<'a>,
    absolute: Absolute<'a>,
}

impl Model<'_> {
    fn predicted(&self, remedy: &str) -> Prediction {
        let system = self.uses.system();
        let files: &dyn Files = match remedy {
            "farm" => &self.farm,
            "farm-system" => &self.farm_system,
            "merge" => &self.merge,
            "needed" => &self.absolute,
            _ => system.files,
        };
        let changed = System { files, ..system };
        let mut predicted = Prediction::default();
        for used in self.uses.all() {
            let list = self.list(remedy, used);
            let (each, later) = used.misses_with(list.as_deref(), changed).unwrap_or_else(|| {
                predicted.failing.push(used.program().to_vec());
                (used.start.search.misses().count() as u64, used.later_misses())
            });
            let all = each.saturating_mul(used.times);
            predicted.misses = predicted.misses.saturating_add(all);
            predicted.later = predicted.later.saturating_add(later);
        }
        predicted.failing.sort();
        predicted.failing.dedup();
        predicted
    }

    /// LD_LIBRARY_PATH of a start with a remedy.
    fn list(&self, remedy: &str, used: &Use<'_>) -> Option<Vec<u8>> {
        let list = used.start.library_path.as_ref()?;
        match remedy {
            "unset" => used.takes_from_list().then(|| list.clone()),
            "farm" => Some(self.farm.plan.list(FARM, list)),
            "farm-system" => Some(self.farm_system.plan.list(FARM, list)),
            "merge" => Some(self.merge.plan.list(FARM, list)),
            _ => self.hits.changed(remedy, list),
        }
    }
}
