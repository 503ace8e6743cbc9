//! What a recording could not see, as a report says it.

use std::collections::BTreeSet;

use proctrace_findings::BlindSpot;
use proctrace_trace::Quantity;

use crate::recording::Recording;

pub(crate) fn spots(recording: &Recording) -> Vec<BlindSpot> {
    let blind = &recording.blind;
    let mut spots = Vec::new();
    let mut add = |what, processes: &BTreeSet<usize>, says: &str| {
        if !processes.is_empty() {
            let programs: BTreeSet<&str> = processes
                .iter()
                .map(|process| &*recording.program_of(&recording.processes[*process]).name)
                .collect();
            spots.push(BlindSpot {
                what,
                says: says.to_owned(),
                processes: processes.len() as u64,
                programs: programs.into_iter().map(str::to_owned).collect(),
            });
        }
    };
    add("compat", &blind.compat, "failed look-ups of 32-bit programs are not seen");
    add("io_uring", &blind.io_uring, "what is opened through an io_uring is not seen");
    add(
        "systemd_run",
        &blind.systemd_run,
        "systemd-run starts things elsewhere, which are not in this recording",
    );
    if let Some(why) = recording.knows.why_not(&Quantity::LOOKUPS) {
        spots.push(BlindSpot {
            what: "misses",
            says: format!("not known: {why}"),
            processes: recording.processes.len() as u64,
            programs: Vec::new(),
        });
    }
    spots
}
