//! The recorder without the analysis, by eBPF: it records, marks, shows and dumps what programs declare.

#[test]
fn declared_processes_are_recorded() {
    crate::common::declared("ebpf");
}

#[test]
fn renames_of_files_are_recorded() {
    crate::common::renames("ebpf");
}
