//! Failed look-ups by their cause, and what would avoid them.

use serde::Serialize;

/// Who searched what in vain, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Libs {
    /// Starts of programs whose library search was modelled.
    pub starts: u64,
    /// Starts of programs whose files no longer exist, or that are no programs of this machine: their
    /// look-ups are attributed by path only.
    pub starts_not_modelled: u64,
    /// Failed look-ups of modelled starts that the model predicts.
    pub predicted_library_misses: u64,
    /// Those of them that were recorded.
    pub confirmed_library_misses: u64,
    /// Failed look-ups of libraries by modelled starts that nothing explains.
    pub unexplained_library_misses: u64,
    /// All failed look-ups by cause, most first.
    pub causes: Vec<LookupCause>,
    /// What would avoid them, the most effective first.
    pub remedies: Vec<Remedy>,
}

/// A cause of failed look-ups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LookupCause {
    /// "LD_LIBRARY_PATH", "RPATH", "RUNPATH", "cache", "default", "ld-musl.path", "dlopen",
    /// "ld.so.preload", "PATH", "PYTHONPATH", "python", "locale", "not modelled", "unexplained" or "other".
    pub kind: &'static str,
    /// The directory, or the entry of a list as it was written.
    pub entry: String,
    /// Look-ups there by the dynamic linker, in modelled starts; `None` for other causes.
    pub probes: Option<u64>,
    /// Libraries that it found there; `None` likewise.
    pub hits: Option<u64>,
    /// Failed look-ups there.
    pub misses: u64,
    /// Processes that made them.
    pub processes: u64,
}

/// A change that avoids failed look-ups of the dynamic linker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// A stable name: "none", "drop", "reorder", "farm", "farm-system", "unset".
    pub name: &'static str,
    /// What it does.
    pub does: String,
    /// What it risks.
    pub risk: &'static str,
    /// Failed look-ups of all modelled starts with it; those of "none" are today's.
    pub predicted_misses: u64,
}
