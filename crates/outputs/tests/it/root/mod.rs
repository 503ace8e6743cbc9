//! Tests that need root: of several users.

mod planted;
