//! Sums over the times between the marks of the payload.

use proctrace_findings::{MarkedPhase, PhaseMark};
use proctrace_recording::Recording;
use proctrace_recording::marks::Mark;
use proctrace_wire::Quantity;
use proctrace_wire::Quantity::{Argv, Cpu, Execs, Forks, Memory, Samples, Split};

use crate::passes::passes;

/// Quantities needed to know the marks.
pub const MARKS: &[Quantity] = &[Execs, Argv];
/// Quantities that CPU time within a phase needs; that of a long task is known at its samples only.
pub const CPU: &[Quantity] = &[Forks, Cpu, Samples];
pub const SPLIT: &[Quantity] = &[Forks, Cpu, Samples, Split];

/// The phases, in order of time; `None` if marks are not known, empty if there are none.
pub fn phases(recording: &Recording) -> Option<Vec<MarkedPhase>> {
    if !recording.knows().all(MARKS) {
        return None;
    }
    let peaks = peaks(recording);
    Some((0..recording.phases().len()).map(|at| phase(recording, at, peaks[at])).collect())
}

fn phase(recording: &Recording, at: usize, peak_pss_bytes: Option<u64>) -> MarkedPhase {
    let (phases, knows) = (recording.phases(), recording.knows());
    let sums = phases.sums[at];
    let since = |time_ns: u64| time_ns.saturating_sub(recording.first_ns());
    let (begin_ns, end_ns) = (since(phases.begins_ns[at]), since(phases.end_of_ns(at)));
    let mark = at.checked_sub(1).and_then(|at| recording.marks().all.get(at));
    let cpu = sums.cpu();
    let wall_ns = end_ns.saturating_sub(begin_ns);
    MarkedPhase {
        name: recording.phase_name(at).to_owned(),
        mark: mark.map(|mark| set_by(recording, mark)),
        begin_ns,
        end_ns,
        processes: knows.some(&[Forks], sums.processes),
        threads: knows.some(&[Forks], sums.threads),
        execs: Some(sums.execs),
        processes_ended: knows.some(&[Forks], sums.ended),
        failed_lookups: knows.some(&Quantity::LOOKUPS, sums.lookups_failed),
        cpu_ns: knows.some(CPU, sums.cpu_ns),
        user_ns: knows.some(SPLIT, cpu.user_ns),
        system_ns: knows.some(SPLIT, cpu.system_ns),
        cores_in_use: (wall_ns > 0 && knows.all(CPU)).then(|| sums.cpu_ns as f64 / wall_ns as f64),
        peak_pss_bytes,
    }
}

fn set_by(recording: &Recording, mark: &Mark) -> PhaseMark {
    let process = recording.processes().get(recording.setter_of(mark));
    PhaseMark {
        by: mark.by.name(),
        pid: process.map_or(0, |process| process.pid),
        program: process
            .map_or_else(String::new, |process| recording.program_of(process).name.clone()),
    }
}

/// The largest total PSS of each phase, where memory was read in it.
fn peaks(recording: &Recording) -> Vec<Option<u64>> {
    let mut peaks = vec![None; recording.phases().len()];
    if peaks.is_empty() || !recording.knows().all(&[Memory]) {
        return peaks;
    }
    for pass in passes(recording, |_| true) {
        let peak = &mut peaks[recording.phases().at(pass.time_ns)];
        *peak = Some(peak.map_or(pass.pss_bytes, |peak: u64| peak.max(pass.pss_bytes)));
    }
    peaks
}
