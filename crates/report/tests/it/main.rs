//! Tests of figures, and of text that a payload chose.

mod figures;
mod hostile;
mod regressions;
