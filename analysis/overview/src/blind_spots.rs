//! Blind spots of a recording, in the wording of the report.

use std::collections::BTreeSet;

use proctrace_findings::BlindSpot;
use proctrace_wire::Quantity;

use proctrace_recording::Recording;

pub fn spots(recording: &Recording) -> Vec<BlindSpot> {
    let blind = recording.blind();
    let mut spots = Vec::new();
    let mut add = |what, processes: &BTreeSet<usize>, says: &str| {
        if !processes.is_empty() {
            let programs: BTreeSet<&str> = processes
                .iter()
                .map(|process| &*recording.program_of(&recording.processes()[*process]).name)
                .collect();
            spots.push(BlindSpot {
                what,
                says: says.to_owned(),
                processes: processes.len() as u64,
                programs: programs.into_iter().map(str::to_owned).collect(),
            });
        }
    };
    add("compat", &blind.compat, "failed look-ups of 32-bit programs are not recorded");
    add("io_uring", &blind.io_uring, "files opened through io_uring are not recorded");
    add(
        "refused_tracer",
        &blind.refused_tracer,
        "their calls of ptrace(2) failed because the recorder traced the processes itself (--backend ptrace)",
    );
    add(
        "let_go",
        &blind.let_go,
        "a debugger or tracer of the command took them over: from then on, they and what they started are not \
         recorded (--backend ptrace)",
    );
    add(
        "systemd_run",
        &blind.systemd_run,
        "processes started by systemd-run run outside the tree and are not recorded",
    );
    let withheld = blind.withheld.len();
    add(
        "withheld",
        &blind.withheld,
        &format!(
            "arguments, paths, failed look-ups and I/O of {withheld} {} that the recording user \
             may not trace, such as set-user-ID programs",
            if withheld == 1 { "process" } else { "processes" }
        ),
    );
    if recording.header().restricted && recording.header().command.is_empty() {
        spots.push(BlindSpot {
            what: "restricted",
            says: "processes that the recording user may not trace, such as those of other users"
                .to_owned(),
            processes: 0,
            programs: Vec::new(),
        });
    }
    if let Some(why) = recording.knows().why_not(&Quantity::LOOKUPS) {
        spots.push(BlindSpot {
            what: "misses",
            says: why,
            processes: recording.processes().len() as u64,
            programs: Vec::new(),
        });
    }
    spots
}
