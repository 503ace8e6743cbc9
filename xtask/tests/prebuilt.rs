//! The compiled BPF programs that are shipped.

use std::io::Write;

#[test]
fn they_are_what_the_sources_give() {
    let is_compared = xtask::prebuilt::check().unwrap_or_else(|error| panic!("{error:?}"));
    if !is_compared {
        // Shown by nextest, past the capture of tests: other versions of the tools give other bytes, which proves nothing.
        let _ = writeln!(
            std::io::stderr(),
            "bpf/prebuilt: only the list of sources was compared; clang or bpftool has another version"
        );
    }
}
