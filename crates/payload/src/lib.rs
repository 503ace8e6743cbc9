//! Simulation jobs of known counts, made of real processes: a scenario file becomes a plan, the plan
//! says what a recording of it must show, and it is put into a directory, ready to be run.
//!
//! Each process is played by the actor, a small C program (`actor/`) under the name of what it plays,
//! or is a program of the machine. Nothing here runs anything.

mod alice;
mod athena;
pub mod catalog;
mod cmssw;
mod declare;
mod error;
mod field;
mod place;
mod plan;
mod random;
mod scenario;
mod stage;
mod step;
mod storm;

pub use declare::{Counts, Declaration, DeclaredEvents, FailedLookups, SUPERVISOR};
pub use error::{MOST_TASKS, PlanError, ScenarioError};
pub use plan::{Events, Libraries, Phase, Plan, Request};
pub use scenario::{About, MOST_BYTES, Scenario};
pub use stage::{StageError, Staged, stage};
