//! What the steps of a workflow read, wrote and needed, for the program that runs it.

use std::collections::{BTreeMap, BTreeSet};

use proctrace_findings::{Request, StepEdge, StepGraph, StepNeed, StepUsage, WorkflowUse};
use proctrace_overview::disk::disk_space_of;
use proctrace_overview::requests::{AtOnce, is_step_of, job_request, step_requests};
use proctrace_overview::step_files::{Level, at_level, step_files};
use proctrace_overview::step_order::{Order, step_flows};
use proctrace_overview::steps::{group_of, sums};
use proctrace_recording::Recording;
use proctrace_wire::escape::to_text;

/// What the steps of the workflow did: those that a table names, or the outermost ones.
pub fn workflow(recording: &Recording) -> WorkflowUse {
    let steps = recording.steps();
    let name = |step: u32| steps.all[step as usize].named.name.clone();
    let mut used = WorkflowUse::default();
    let mut units: Vec<u32> = (0..steps.all.len())
        .filter_map(|at| u32::try_from(at).ok())
        .map(|step| at_level(steps, step, Level::Workflow))
        .collect();
    units.sort_unstable();
    units.dedup();
    if let Some(first) = units.first() {
        let run = &recording.runs()[steps.all[*first as usize].run as usize];
        let runner = recording.processes()[run.process as usize].parent();
        used.runner_pid = runner.map_or(0, |runner| recording.processes()[runner].pid);
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

/// Of more steps, a graph has groups.
const DRAWN_MAX: usize = 100;

/// Which steps read what others write. Each name is one node, as a step may run more than once.
pub fn step_graph(recording: &Recording) -> StepGraph {
    let steps = &recording.steps().all;
    let flows = step_flows(recording, &step_files(recording, Level::Innermost));
    let used: BTreeSet<u32> = flows.iter().flat_map(|flow| [flow.writer, flow.reader]).collect();
    let mut graph = StepGraph { is_of_groups: used.len() > DRAWN_MAX, ..StepGraph::default() };
    let mut nodes: BTreeMap<String, usize> = BTreeMap::new();
    let mut node_of: BTreeMap<u32, usize> = BTreeMap::new();
    for at in used {
        let step = &steps[at as usize];
        let name = if graph.is_of_groups { group_of(step) } else { step.named.name.clone() };
        let node = *nodes.entry(name.clone()).or_insert_with(|| {
            graph.nodes.push((name, 0));
            graph.nodes.len() - 1
        });
        graph.nodes[node].1 += 1;
        node_of.insert(at, node);
    }
    let mut edges: BTreeMap<(usize, usize), StepEdge> = BTreeMap::new();
    for flow in flows {
        let (writer, reader) = (node_of[&flow.writer], node_of[&flow.reader]);
        let new = StepEdge { writer, reader, files: 0, is_missing: false };
        let edge = edges.entry((writer, reader)).or_insert(new);
        edge.files += flow.files;
        edge.is_missing |= flow.order == Order::Missing;
    }
    graph.edges = edges.into_values().collect();
    graph
}

/// What all steps of a coordinator did, in order of their beginnings.
pub fn steps_used(recording: &Recording, coordinator: &str) -> Vec<StepUsage> {
    let at_once = AtOnce::of(recording);
    let header = recording.header();
    let unix_ns = |time_ns: u64| {
        header.started_unix_ns.saturating_add(time_ns.saturating_sub(header.started_ns))
    };
    let all = recording.steps().all.iter().zip(sums(recording)).enumerate();
    all.filter(|(_, (step, _))| is_step_of(step, coordinator))
        .map(|(at, (step, sum))| {
            let run = &recording.runs()[step.run as usize];
            StepUsage {
                name: step.named.name.clone(),
                group: group_of(step),
                coordinator: step.named.coordinator.clone(),
                directory: to_text(&step.directory).into_owned(),
                pid: recording.processes()[run.process as usize].pid,
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
    let sums = sums(recording);
    let disk = disk_space_of(recording, &sums);
    let mut all = vec![job_request(recording, disk.as_ref())];
    all.extend(step_requests(recording, &sums, disk.as_ref(), coordinator));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_classify::Rules;
    use proctrace_scenes::{MS, Scene};

    const WRITE: u32 = 0o1101;

    /// A generator and so many users of its file, none of which is declared to wait.
    fn recording(users: u32) -> Recording {
        let mut scene = Scene::new(1, 100 * MS);
        scene.exec(0, 1, "/bin/runner", (0, 0)).fork(MS, 1, 2);
        scene.exec_with(2 * MS, 2, "/bin/sh", &["sh", "-c", "gen"], (0, 0));
        scene.open(3 * MS, 2, 1, "/work/gen.dat", WRITE);
        for task in 3..3 + users {
            scene.fork(10 * MS, 1, task);
            scene.exec_with(
                11 * MS,
                task,
                "/bin/sh",
                &["sh", "-c", &format!("use {task}")],
                (0, 0),
            );
            scene.open(12 * MS, task, 1, "/work/gen.dat", 0);
        }
        scene.exit(50 * MS, 1, (0, 0));
        let mut rows = vec![r#"{"name": "gen", "command": "gen", "needs": []}"#.to_owned()];
        rows.extend((3..3 + users).map(|task| {
            format!(r#"{{"name": "use_{task}", "command": "use {task}", "needs": []}}"#)
        }));
        let json = format!("[{}]", rows.join(","));
        let rules = Rules::generic().with_steps("steps.json", json.as_bytes()).unwrap();
        scene.launched_in("/work").load_by(&rules, None)
    }

    #[test]
    fn a_graph_has_steps_or_groups_of_them() {
        let graph = step_graph(&recording(2));
        let nodes = [("gen".to_owned(), 1), ("use_3".to_owned(), 1), ("use_4".to_owned(), 1)];
        assert_eq!((graph.nodes, graph.is_of_groups), (nodes.to_vec(), false));
        let edge = |reader| StepEdge { writer: 0, reader, files: 1, is_missing: true };
        assert_eq!(graph.edges, [edge(1), edge(2)]);
        let graph = step_graph(&recording(150));
        assert_eq!(graph.nodes, [("gen".to_owned(), 1), ("use".to_owned(), 150)]);
        assert_eq!(graph.edges, [StepEdge { files: 150, ..edge(1) }]);
    }
}
