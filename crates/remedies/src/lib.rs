//! What avoids failed look-ups, carried out: a directory of links, text for a shell, the environment of a trial, and the
//! tables that show all of it.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod farm;
mod machine;
mod shell;
mod tables;
mod trial;

pub use farm::{FarmError, make_farm};
pub use machine::{MachineError, found_here, path_of_linker};
pub use shell::{environment, patchelf};
pub use tables::{causes, farm as farm_tables, reasons, trial as trial_table};
pub use trial::{changed, figures, notes, variable};
