//! Tests that need root: they record by eBPF.

mod ebpf;
