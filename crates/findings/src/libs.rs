//! Failed look-ups by their cause, and what would avoid them.

use serde::Serialize;

use crate::farm::Farm;

/// Analysis of failed look-ups: who searched what in vain, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Libs {
    /// Starts of programs whose library search was modelled.
    pub starts: u64,
    /// Starts of programs whose files no longer exist, or that are no programs of this machine: their
    /// look-ups are attributed by path only.
    pub starts_not_modelled: u64,
    /// Failed look-ups of modelled starts that the model predicts.
    pub predicted_library_misses: u64,
    /// Number of these that were recorded.
    pub confirmed_library_misses: u64,
    /// Failed look-ups of libraries by modelled starts that nothing explains.
    pub unexplained_library_misses: u64,
    /// Reasons why starts were not modelled, the most frequent reason first.
    pub not_modelled: Vec<NotModelled>,
    /// All failed look-ups by cause, most first.
    pub causes: Vec<LookupCause>,
    /// All failed look-ups by file system and call, most first; empty if the recording has no mount tables.
    pub file_systems: Vec<LookupPlace>,
    /// Libraries that modelled starts search for, those with most failed look-ups first.
    pub libraries: Vec<LibrarySearch>,
    /// Programs whose starts were modelled, those with most failed look-ups first.
    pub programs: Vec<ProgramSearch>,
    /// Remedies that would avoid them, the most effective first; those for searches of programs
    /// last.
    pub remedies: Vec<Remedy>,
    /// The directory of links that was made, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub farm: Option<Farm>,
}

/// A cause of failed look-ups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LookupCause {
    /// "LD_LIBRARY_PATH", "RPATH", "RUNPATH", "cache", "default", "ld-musl.path", "path", "dlopen",
    /// "dlopen by path", "ld.so.preload", "PATH", "PYTHONPATH", "python", "locale", "-I", "-isystem", "-iquote",
    /// "-idirafter", "include", "node_modules", "package.json", "not modelled", "unexplained" or "other".
    pub kind: &'static str,
    /// The directory, or the entry of a list as it was written.
    pub entry: String,
    /// The executable or library that contains the list; `None` for other kinds than RPATH and RUNPATH.
    pub object: Option<String>,
    /// Look-ups there by the dynamic linker, in modelled starts; headers that compilers looked for there, if that can be
    /// inferred; `None` for other causes.
    pub probes: Option<u64>,
    /// Libraries or headers that were found there; `None` likewise.
    pub hits: Option<u64>,
    /// Failed look-ups there.
    pub misses: u64,
    /// Processes that made them.
    pub processes: u64,
    /// Time that they took; `None` if fewer than two of them were timed.
    pub cost: Option<LookupCost>,
}

/// Time that failed look-ups took, estimated from those that were timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LookupCost {
    /// All of them together: the mean of those that were timed, times the number of all.
    pub total_ns: u64,
    /// The lower end of the 95 % confidence interval.
    pub low_ns: u64,
    /// Its upper end.
    pub high_ns: u64,
    /// Number of look-ups that were timed.
    pub timed: u64,
}

/// A reason why starts were not modelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotModelled {
    /// The reason.
    pub why: &'static str,
    /// Starts.
    pub starts: u64,
}

/// A mounted file system on which look-ups by one family of calls failed. The names are `None` for look-ups by a path that is
/// relative to an unknown directory, or in a mount namespace whose table was not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LookupPlace {
    /// Its type: "ext4", "nfs4", "fuse".
    pub fs_type: Option<String>,
    /// Source of the mount: a device, "server:/export", "cvmfs2".
    pub source: Option<String>,
    /// Directory on which it is mounted.
    pub mount_point: Option<String>,
    /// The calls: "open", "stat", "access", "readlink", "chdir" or "exec".
    pub call: &'static str,
    /// Failed look-ups on it.
    pub misses: u64,
    /// Processes that made them.
    pub processes: u64,
    /// Time that they took; `None` if fewer than two of them were timed.
    pub cost: Option<LookupCost>,
}

/// A library for which modelled starts searched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LibrarySearch {
    /// Its name, as it was asked for.
    pub name: String,
    /// Searches for it: once in each start, unless it was loaded already.
    pub searches: u64,
    /// Searches that found it.
    pub found: u64,
    /// Failed look-ups of all searches.
    pub misses: u64,
    /// Failed look-ups of the longest search.
    pub most_misses: u64,
    /// Path at which a search found it.
    pub path: Option<String>,
}

/// A program whose starts were modelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProgramSearch {
    /// Its executable.
    pub exe: String,
    /// Its starts.
    pub starts: u64,
    /// Failed look-ups of all of them for libraries.
    pub misses: u64,
    /// Failed look-ups of the start with fewest.
    pub fewest_misses: u64,
    /// Failed look-ups of the start with most: they differ where LD_LIBRARY_PATH does.
    pub most_misses: u64,
}

/// A change that avoids failed look-ups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// A stable name: "none", "drop", "reorder", "clean", "unset", "farm", "farm-system", "merge",
    /// "needed", "path".
    pub name: &'static str,
    /// The look-ups that it avoids and that `today_misses` and `predicted_misses` count: "libraries",
    /// those of the dynamic linker in all modelled starts, or "programs", those in the entries of
    /// PATH.
    pub about: &'static str,
    /// Description of its effect.
    pub does: String,
    /// Risk that it brings.
    pub risk: &'static str,
    /// These failed look-ups as they are today: for all remedies about libraries those of "none".
    pub today_misses: u64,
    /// These failed look-ups with it. For "none" they are today's.
    pub predicted_misses: u64,
    /// The time that it saves, at the mean duration of those of the linker's failed look-ups that were
    /// timed; less than 0 if it costs time, `None` if none was timed or it is not about libraries.
    pub saves_ns: Option<i64>,
    /// Failed look-ups by dlopen(3), after the starts, with it: an estimate, as libraries that it found
    /// at the first attempt are not recorded. Those of "none" are recorded. `None` if it is not about
    /// libraries.
    pub predicted_dlopen_misses: Option<u64>,
}
