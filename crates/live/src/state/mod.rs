//! State of a recording: what is known of it so far.

mod classify;
mod directories;
mod ended;
mod figures;
mod lives;
mod losses;
mod process;
mod programs;
mod rates;
mod readings;
mod split;
mod steps;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod view;

pub use classify::{ByFile, Classify, ProgramName, StepName};
pub use directories::Directories;
pub use losses::Losses;
pub use process::{Life, Process};
pub use programs::{Program, Programs};
pub use rates::{History, Recent, Second};
pub use split::Divided;
pub use steps::{Step, Steps};
pub use view::{Totals, View};

/// A table that is looked up for every record.
type FastMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
