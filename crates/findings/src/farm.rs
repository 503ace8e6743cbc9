//! A directory of links to libraries that was made, and what came of trying a remedy.

use proctrace_wire::Outcome;
use serde::Serialize;

/// A directory of links that was made or renewed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Farm {
    /// Its absolute path.
    pub directory: String,
    /// The file that puts it into LD_LIBRARY_PATH, to be sourced by a shell.
    pub environment: String,
    /// The remedy that it carries out: "farm", "farm-system" or "merge".
    pub remedy: &'static str,
    /// All links, by name.
    pub links: Vec<FarmLink>,
    /// Links that were not there before, or led elsewhere.
    pub renewed: u64,
    /// Links of before that are no longer needed, and were removed.
    pub removed: u64,
    /// Libraries that are gone: of programs of the recording, and of links that were there before.
    pub dangling: Vec<DanglingLink>,
    /// Names for which different starts find different files.
    pub conflicts: Vec<FarmConflict>,
    /// Names that are not linked to, because no file can or may have them.
    pub left_out: Vec<String>,
    /// Programs that would not start with it, according to the model.
    pub failing: Vec<String>,
    /// Names that were found nowhere: a link to itself ends the search for them.
    pub stops: Vec<String>,
    /// Entries of LD_LIBRARY_PATH that it replaces.
    pub replaced: Vec<String>,
    /// Entries that it cannot replace, and which stay behind it.
    pub kept: Vec<KeptEntry>,
}

/// An entry of LD_LIBRARY_PATH that stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptEntry {
    /// Entry as it is written.
    pub entry: String,
    /// The reason it was kept.
    pub why: &'static str,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FarmLink {
    /// The name by which programs ask for the library.
    pub name: String,
    /// Target of the link.
    pub target: String,
}

/// A library that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DanglingLink {
    /// The name.
    pub name: String,
    /// Target of an earlier link, if there was one.
    pub target: Option<String>,
    /// State of that link: "removed", "replaced" or "dangling"; "none" if there was none.
    pub now: &'static str,
    /// Programs of the recording that asked for it and would not start today.
    pub programs: Vec<String>,
}

/// A name for which different starts find different files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FarmConflict {
    /// The name.
    pub name: String,
    /// The file that is linked to: that of the most common start.
    pub chosen: FarmCandidate,
    /// The others.
    pub lost: Vec<FarmCandidate>,
}

/// A file that starts find by a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FarmCandidate {
    /// The file.
    pub path: String,
    /// Starts that find it.
    pub starts: u64,
    /// Their programs.
    pub programs: Vec<String>,
}

/// A command without and with a remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trial {
    /// The stable name of the remedy.
    pub remedy: &'static str,
    /// The kind of look-ups it is about: "libraries" or "programs".
    pub about: &'static str,
    /// Runs on each side; all figures are their medians.
    pub runs: u64,
    /// `misses` with the remedy, as predicted from the first run.
    pub predicted_misses: u64,
    /// `dlopen_misses` with the remedy, likewise; `None` if it is not about libraries.
    pub predicted_dlopen_misses: Option<u64>,
    /// `lookups_failed` with the remedy, if it changes no others than these; `None` if they were not
    /// recorded, or it is not about libraries.
    pub predicted_lookups_failed: Option<u64>,
    /// Run without the remedy.
    pub before: TrialRun,
    /// Run with it.
    pub after: TrialRun,
    /// Starts of the last run that had a list without the remedy, because a program sets its own.
    pub unreached_starts: u64,
    /// Starts of the last run that had directories behind the remedy's which it replaces, because a program
    /// adds them to the list.
    pub repeated_starts: u64,
    /// Starts of the last run that were not modelled.
    pub starts_not_modelled: u64,
}

/// Resources used by one run of the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrialRun {
    /// Outcome of the command.
    pub outcome: Outcome,
    /// Failed look-ups that the remedy is about: of the dynamic linker in modelled starts, or in the
    /// entries of PATH.
    pub misses: u64,
    /// Failed look-ups by dlopen(3).
    pub dlopen_misses: u64,
    /// All failed look-ups of paths that do not exist.
    pub lookups_failed: Option<u64>,
    /// Successful opens.
    pub opens: Option<u64>,
    /// Look-ups: opens and failed look-ups.
    pub lookups: Option<u64>,
    /// CPU time.
    pub cpu_ns: Option<u64>,
    /// CPU time in the kernel, estimated.
    pub system_ns: Option<u64>,
    /// Time from the start of the command to its exit.
    pub wall_ns: u64,
}
