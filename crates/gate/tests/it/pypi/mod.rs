//! Tests that need a Python package index.

mod readers;
