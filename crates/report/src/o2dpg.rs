//! The files of O2DPG's workflow runner: who reads and writes which file, and what tasks need.
//!
//! Their source: AliceO2Group/O2DPG, UTILS/FileIOGraph/filegraph_report.py and update_resource_estimates() in
//! MC/workflow_runner/o2dpg_runner/workflow.py.

use std::collections::{BTreeMap, BTreeSet};

use proctrace_findings::{StepNeed, WorkflowUse};
use serde_json::{Map, Value, json};

/// A file that each time frame has.
#[derive(Default)]
struct Template {
    written_by: BTreeSet<String>,
    read_by: BTreeSet<String>,
    timeframes: BTreeSet<u64>,
}

/// The content of filegraph_*.json, which the runner reads for `--remove-files-early`.
///
/// # Errors
/// None known: all values are serialisable.
pub fn o2dpg_filegraph(used: &WorkflowUse) -> Result<String, serde_json::Error> {
    let paths: BTreeSet<&String> =
        used.written_by.keys().chain(used.read_by.keys()).filter(|path| is_data(path)).collect();
    let none = BTreeSet::new();
    let of = |path: &String| {
        (used.written_by.get(path).unwrap_or(&none), used.read_by.get(path).unwrap_or(&none))
    };
    let mut templates: BTreeMap<String, Template> = BTreeMap::new();
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let (written_by, read_by) = of(path);
        files.push(json!({
            "file": format!("./{path}"), "written_by": written_by, "read_by": read_by,
        }));
        if let Some((timeframe, rest)) = timeframe_of(path) {
            let template = templates.entry(format!("./tfX/{rest}")).or_default();
            let name = |task: &String| template_of(task, timeframe);
            template.written_by.extend(written_by.iter().map(name));
            template.read_by.extend(read_by.iter().map(name));
            template.timeframes.insert(timeframe);
        }
    }
    let templates: Vec<Value> = templates
        .into_iter()
        .map(|(file, template)| {
            json!({
                "file": file,
                "written_by": template.written_by,
                "read_by": template.read_by,
                "source_timeframes": template.timeframes,
            })
        })
        .collect();
    let files_of = |by: &BTreeMap<String, BTreeSet<String>>, step: &String| -> Vec<String> {
        let of_step = by.iter().filter(|(path, steps)| is_data(path) && steps.contains(step));
        of_step.map(|(path, _)| format!("./{path}")).collect()
    };
    let tasks: Vec<Value> = used
        .steps
        .iter()
        .map(|step| {
            json!({
                "task": step,
                "writes": files_of(&used.written_by, step),
                "reads": files_of(&used.read_by, step),
            })
        })
        .collect();
    let all = json!({
        "file_report": files, "file_template_report": templates, "task_report": tasks,
    });
    serde_json::to_string_pretty(&all).map(|text| text + "\n")
}

/// The content of the file for `--update-resources`: what the tasks of each name needed, time frames taken together.
///
/// # Errors
/// None known: all values are serialisable.
pub fn o2dpg_resources(used: &WorkflowUse) -> Result<String, serde_json::Error> {
    const MEGABYTE: f64 = (1 << 20) as f64;
    let mut all = Map::new();
    for (group, needed) in &used.needed {
        let mut of_group = Map::new();
        let mut add = |name: &str, value: fn(&StepNeed) -> Option<f64>| {
            // Memory is known only of those that were there when it was read.
            let values: Vec<f64> = needed.iter().filter_map(value).collect();
            if let Some(statistics) = statistics(&values) {
                of_group.insert(name.to_owned(), statistics);
            }
        };
        add("lifetime", |need| Some(need.wall_ns as f64 / 1e9));
        add("cpu", |need| need.cores);
        add("pss", |need| need.peak_pss_bytes.map(|bytes| bytes as f64 / MEGABYTE));
        all.insert(group.clone(), Value::Object(of_group));
    }
    let count = used.needed.values().map(Vec::len).max().unwrap_or(0);
    all.insert("count".to_owned(), count.into());
    serde_json::to_string_pretty(&all).map(|text| text + "\n")
}

fn statistics(values: &[f64]) -> Option<Value> {
    let rounded = |value: f64| (value * 1e6).round() / 1e6;
    let min = values.iter().copied().reduce(f64::min)?;
    let max = values.iter().copied().reduce(f64::max)?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    Some(json!({ "min": rounded(min), "max": rounded(max), "mean": rounded(mean) }))
}

/// False for what the runner takes for noise: logs and the configuration of the data processing layer.
fn is_data(path: &str) -> bool {
    !path.contains(".log") && !path.contains("dpl-config.json")
}

/// The time frame of a file, and its path below that: `tf3/x` is `x` of 3.
fn timeframe_of(path: &str) -> Option<(u64, &str)> {
    let (directory, rest) = path.split_once('/')?;
    let number = directory.strip_prefix("tf")?;
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    Some((number.parse().ok().filter(|_| is_number)?, rest))
}

/// The name of a task for any time frame, if it is one of this time frame.
fn template_of(task: &str, timeframe: u64) -> String {
    match task.strip_suffix(&format!("_{timeframe}")) {
        Some(name) => format!("{name}_X"),
        None => task.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used() -> WorkflowUse {
        let by = |pairs: &[(&str, &[&str])]| -> BTreeMap<String, BTreeSet<String>> {
            let steps = |steps: &[&str]| steps.iter().map(|&step| step.to_owned()).collect();
            pairs.iter().map(|(path, names)| ((*path).to_owned(), steps(names))).collect()
        };
        let need = |wall_ns, peak| StepNeed { wall_ns, cores: Some(0.5), peak_pss_bytes: peak };
        WorkflowUse {
            runner_pid: 7,
            steps: ["bkg", "sgn_1", "sgn_2"].map(str::to_owned).into(),
            written_by: by(&[
                ("bkg.dat", &["bkg"]),
                ("tf1/sgn.dat", &["sgn_1"]),
                ("tf2/sgn.dat", &["sgn_2"]),
                ("tf1/sgn_1.log", &["sgn_1"]),
            ]),
            read_by: by(&[("bkg.dat", &["sgn_1", "sgn_2"]), ("tf2/sgn.dat", &["bkg"])]),
            needed: [
                ("bkg".to_owned(), vec![need(1_000_000_000, None)]),
                (
                    "sgn".to_owned(),
                    vec![need(2_000_000_000, Some(3 << 20)), need(1_000_000_000, None)],
                ),
            ]
            .into(),
        }
    }

    #[test]
    fn a_graph_has_files_templates_and_tasks() {
        let graph: Value = serde_json::from_str(&o2dpg_filegraph(&used()).unwrap()).unwrap();
        assert_eq!(
            graph,
            json!({
                "file_report": [
                    {"file": "./bkg.dat", "written_by": ["bkg"], "read_by": ["sgn_1", "sgn_2"]},
                    {"file": "./tf1/sgn.dat", "written_by": ["sgn_1"], "read_by": []},
                    {"file": "./tf2/sgn.dat", "written_by": ["sgn_2"], "read_by": ["bkg"]},
                ],
                "file_template_report": [{
                    "file": "./tfX/sgn.dat", "written_by": ["sgn_X"], "read_by": ["bkg"],
                    "source_timeframes": [1, 2],
                }],
                "task_report": [
                    {"task": "bkg", "writes": ["./bkg.dat"], "reads": ["./tf2/sgn.dat"]},
                    {"task": "sgn_1", "writes": ["./tf1/sgn.dat"], "reads": ["./bkg.dat"]},
                    {"task": "sgn_2", "writes": ["./tf2/sgn.dat"], "reads": ["./bkg.dat"]},
                ],
            })
        );
    }

    #[test]
    fn resources_are_by_name_without_time_frame_and_only_of_what_is_known() {
        let resources: Value = serde_json::from_str(&o2dpg_resources(&used()).unwrap()).unwrap();
        assert_eq!(resources["sgn"]["lifetime"], json!({"min": 1.0, "max": 2.0, "mean": 1.5}));
        assert_eq!(resources["sgn"]["pss"]["max"], 3.0);
        assert_eq!(resources["sgn"]["cpu"]["mean"], 0.5);
        assert!(resources["bkg"].get("pss").is_none());
        assert_eq!(resources["count"], 2);
    }

    #[test]
    fn only_numbers_are_time_frames() {
        assert_eq!(timeframe_of("tf12/a/b"), Some((12, "a/b")));
        for other in ["tf/a", "tf1", "tfx/a", "a/tf1/b", "tf+1/a"] {
            assert_eq!(timeframe_of(other), None, "{other}");
        }
        assert_eq!((template_of("a_1", 1), template_of("a_11", 1)), ("a_X".into(), "a_11".into()));
    }
}
