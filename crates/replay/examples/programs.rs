//! Lists the programs of a recording with their number of runs: an example of reading a trace.

#![expect(clippy::print_stdout, reason = "it is what it does")]

use proctrace_replay::{Body, Replay};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: programs FILE.ptrace")?;
    let mut counts = std::collections::BTreeMap::new();
    for event in Replay::open(path)? {
        if let Body::Exec(exec) = event.body {
            *counts.entry(String::from_utf8_lossy(&exec.exe).into_owned()).or_insert(0) += 1;
        }
    }
    for (program, count) in counts {
        println!("{count:7}  {program}");
    }
    Ok(())
}
