//! Simulation jobs of known counts, made of real processes: a scenario file becomes a plan, which
//! declares what a recording of it must show, and is staged in a directory, ready to run.
//!
//! Each process runs either the actor, a small C program (`actor/`), under the name of the program
//! it imitates, or a program of the machine. This crate only plans and stages, it runs nothing.

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
