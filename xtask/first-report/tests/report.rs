//! The first report is that of a recording, and fits a terminal.

use std::path::Path;
use std::process::Command;

#[test]
fn it_tells_of_the_recording() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces/tour-6.ptrace");
    let output = Command::new(env!("CARGO_BIN_EXE_proctrace-first-report"))
        .arg(&trace)
        .output()
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    for part in ["\nexit 3 · ", "\n  Tasks ", "\n  Wasted "] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}
