//! Renders findings as text and pictures: pure functions from plain data to strings and bytes.
//!
//! Names of programs and files come from the recorded payload, which is untrusted: everything
//! rendered here passes through [`escape`] first.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod advice;
mod alive;
mod costs;
mod data;
mod ends;
mod engine;
pub mod escape;
pub mod figures;
pub mod fit;
mod head;

pub mod number;
mod o2dpg;
mod path;
mod prmon;
mod process;
mod program;
mod requests;
mod rows;
mod screen;
pub mod shell;
mod step_graph;
mod style;
mod table;
mod tables;
mod text;
mod tree;
mod usage;
mod words;

pub use advice::{advice_gain, advice_head, advice_text, explained_text, observed_text};
pub use alive::alive_text;
pub use data::{table_csv, table_json, table_markdown, table_text};
pub use engine::EngineFile;
pub use figures::{PictureFormat, PngError, chart_svg, gantt_svg};
pub use o2dpg::{o2dpg_filegraph, o2dpg_resources};
pub use prmon::{prmon_json, prmon_text};
pub use process::{candidates_text, process_text};
pub use program::program_text;
pub use requests::RequestSyntax;
pub use rows::{CsvDialect, rows_csv, rows_csv_names, rows_json, rows_ndjson, rows_text};
pub use screen::screen;
pub use step_graph::GraphLanguage;
pub use style::Style;
pub use text::full;
pub use tree::tree_text;
pub use usage::usage;
