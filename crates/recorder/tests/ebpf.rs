//! The recorder without the analysis, by eBPF: it records, marks, shows and dumps what programs declare.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

#[test]
fn declared_processes_are_recorded() {
    common::declared("ebpf");
}
