//! From findings to text and pictures: pure functions, given plain data and giving strings.
//!
//! Names of programs and files come from what was recorded, and whoever recorded it may have been
//! fooled: everything that is rendered here goes through [`escape`] first.

pub mod escape;
mod gantt;
mod layout;
pub mod number;
mod style;
mod table;
mod tables;
mod text;

pub use gantt::{GanttError, gantt_svg};
pub use style::Style;
pub use text::{full, summary};
