//! What the steps of a workflow read, wrote and needed, for the program that runs it.

use proctrace_findings::{Request, StepNeed, StepUsage, WorkflowUse};
use proctrace_overview::requests::{AtOnce, is_step_of, job_request, step_requests};
use proctrace_overview::step_files::{Level, at_level, step_files};
use proctrace_overview::steps::{group_of, sums};
use proctrace_recording::Recording;
use proctrace_wire::escape::to_text;

/// What the steps of the workflow did: those that a table names, or the outermost ones.
pub fn workflow(recording: &Recording) -> WorkflowUse {
    let steps = &recording.steps;
    let name = |step: u32| steps.all[step as usize].named.name.clone();
    let mut used = WorkflowUse::default();
    let mut units: Vec<u32> = (0..steps.all.len())
        .filter_map(|at| u32::try_from(at).ok())
        .map(|step| at_level(steps, step, Level::Workflow))
        .collect();
    units.sort_unstable();
    units.dedup();
    if let Some(first) = units.first() {
        let run = &recording.runs[steps.all[*first as usize].run as usize];
        let runner = recording.processes[run.process as usize].parent();
        used.runner_pid = runner.map_or(0, |runner| recording.processes[runner].pid);
    }
    let sums = sums(recording);
    for unit in &units {
        let sum = &sums[*unit as usize];
        used.steps.insert(name(*unit));
        used.needed.entry(group_of(&steps.all[*unit as usize])).or_default().push(StepNeed {
            wall_ns: sum.wall_ns(),
            cores: sum.cores_in_use(),
            peak_pss_bytes: sum.peak_pss_bytes,
        });
    }
    for file in step_files(recording, Level::Workflow) {
        let path = to_text(file.path).into_owned();
        for (by, uses) in [
            (&mut used.written_by, file.writers().collect::<Vec<_>>()),
            (&mut used.read_by, file.readers().collect()),
        ] {
            if !uses.is_empty() {
                by.entry(path.clone()).or_default().extend(uses.iter().map(|used| name(used.step)));
            }
        }
    }
    used
}

/// What all steps of a coordinator did, in order of their beginnings.
pub fn steps_used(recording: &Recording, coordinator: &str) -> Vec<StepUsage> {
    let at_once = AtOnce::of(recording);
    let header = &recording.header;
    let unix_ns = |time_ns: u64| {
        header.started_unix_ns.saturating_add(time_ns.saturating_sub(header.started_ns))
    };
    let all = recording.steps.all.iter().zip(sums(recording)).enumerate();
    all.filter(|(_, (step, _))| is_step_of(step, coordinator))
        .map(|(at, (step, sum))| {
            let run = &recording.runs[step.run as usize];
            StepUsage {
                name: step.named.name.clone(),
                group: group_of(step),
                coordinator: step.named.coordinator.clone(),
                pid: recording.processes[run.process as usize].pid,
                has_ended: sum.has_ended,
                outcome: sum.outcome,
                begin_unix_ns: unix_ns(sum.begin_ns),
                wall_ns: sum.wall_ns(),
                processes: sum.processes,
                figures: sum.figures,
                peaks_at_once_bytes: at_once.as_ref().map(|of| of.steps[at]),
                peak_rss_bytes: sum.peak_rss_sum_bytes,
                peak_pss_bytes: sum.peak_pss_bytes,
                peak_uss_bytes: sum.peak_uss_bytes,
            }
        })
        .collect()
}

/// What to request for the job, first, and for the steps of each group.
pub fn requests(recording: &Recording, coordinator: Option<&str>) -> Vec<Request> {
    let mut all = vec![job_request(recording)];
    all.extend(step_requests(recording, &sums(recording), coordinator));
    all
}
