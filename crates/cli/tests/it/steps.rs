//! Steps of real coordinators: those that their own logs name, and files between steps against what the workflow declares.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::steps::{names, query, record_in, sorted};
use crate::common::{Recorded, proctrace, section, text, u64_of};
use serde_json::{Value, json};

#[test]
fn recipes_of_make_are_the_lines_that_it_echoes() {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| fs::write(place.path().join(name), content).unwrap();
    fs::create_dir(place.path().join("lib")).unwrap();
    write("a.c", "int f(void); int main(void) { return f(); }\n");
    write("lib/f.c", "int f(void) { return 0; }\n");
    write(
        "Makefile",
        "prog: a.o lib/f.o\n\tcc -o prog a.o lib/f.o\n%.o: %.c\n\tcc -c -o $@ $<\n\
         lib/f.o: lib/f.c\n\tmake --no-print-directory -C lib f.o\n",
    );
    write("lib/Makefile", "f.o: f.c\n\tcc -c -o f.o f.c\n\tsort f.c | uniq > f.txt\n");
    let recorded = record_in(place.path(), &[], "make -j2 --no-print-directory prog > log");
    recorded.sound(0);
    let log = fs::read_to_string(place.path().join("log")).unwrap();
    let echoed = log.lines().map(|line| match line.split_once(" -o ") {
        Some((_, rest)) => rest.split(' ').next().unwrap().to_owned(),
        None => line.to_owned(),
    });
    let echoed: Vec<String> = echoed.collect();
    assert_eq!(echoed.len(), 5, "{log}");
    assert_eq!(sorted(names(&recorded.trace(), "make")), sorted(echoed));
    // What a make within a recipe starts is a part of it.
    let inner =
        "select w.step from steps s join steps w on s.part_of_id = w.step_id where s.step = 'f.o'";
    assert_eq!(
        query(&recorded.trace(), &[], inner),
        [json!({"step": "make --no-print-directory -C lib f.o"})]
    );
    // The first process is all of the step for whoever waits for it, and sums go up.
    let steps = section(&recorded.trace(), "steps", &[]);
    let of = |name: &str| {
        let rows = steps["steps"].as_array().unwrap();
        rows.iter().find(|row| row["step"] == name).unwrap().clone()
    };
    let (outer, inner) = (of("make --no-print-directory -C lib f.o"), of("f.o"));
    assert!(u64_of(&outer["processes"]) > u64_of(&inner["processes"]), "{outer:#} {inner:#}");
    assert!(u64_of(&outer["cpu_ns"]) > u64_of(&inner["cpu_ns"]), "{outer:#} {inner:#}");
    assert!(u64_of(&outer["wall_ns"]) > u64_of(&inner["wall_ns"]), "{outer:#} {inner:#}");
    let gcc = query(
        &recorded.trace(),
        &[],
        "select count(*) as n from processes p join steps s on p.step_id = s.step_id where s.step = 'a.o'",
    );
    assert_eq!(u64_of(&gcc[0]["n"]), u64_of(&of("a.o")["processes"]));
}

#[test]
fn edges_of_ninja_are_those_in_its_log() {
    let place = tempfile::tempdir().unwrap();
    let rules = "rule cc\n command = cc -c -o $out $in\nrule link\n command = cc -o $out $in\n";
    let mut ninja = rules.to_owned();
    let mut objects = String::new();
    for n in 0..6 {
        let content = format!(
            "int {}(void) {{ return {n}; }}\n",
            if n == 0 { "main".into() } else { format!("f{n}") }
        );
        fs::write(place.path().join(format!("f{n}.c")), content).unwrap();
        ninja += &format!("build f{n}.o: cc f{n}.c\n");
        objects += &format!(" f{n}.o");
    }
    ninja += &format!("build prog: link{objects}\n");
    fs::write(place.path().join("build.ninja"), ninja).unwrap();
    let recorded = record_in(place.path(), &[], "ninja > /dev/null");
    recorded.sound(0);
    let log = fs::read_to_string(place.path().join(".ninja_log")).unwrap();
    let outputs = log.lines().filter(|line| !line.starts_with('#'));
    let outputs: Vec<String> =
        outputs.filter_map(|line| Some(line.split('\t').nth(3)?.to_owned())).collect();
    assert_eq!(outputs.len(), 7, "{log}");
    assert_eq!(sorted(names(&recorded.trace(), "ninja")), sorted(outputs));
}

#[test]
fn commands_of_xargs_and_tests_of_ctest_are_steps() {
    let place = tempfile::tempdir().unwrap();
    let tests: String =
        (0..4).map(|n| format!("add_test(t{n} /bin/sh -c \"exit {}\" t{n})\n", n / 3)).collect();
    fs::write(place.path().join("CTestTestfile.cmake"), tests).unwrap();
    let script = "ctest > log; printf 'a\\nb\\nc\\n' | xargs -n1 -P2 /bin/echo > /dev/null; \
                  echo a b | xargs /bin/echo > /dev/null";
    let recorded = record_in(place.path(), &[], script);
    recorded.sound(0);
    let trace = recorded.trace();
    let log = fs::read_to_string(place.path().join("Testing/Temporary/LastTest.log")).unwrap();
    let run = log.lines().filter(|line| line.contains(" Testing: ")).count();
    assert_eq!((run, names(&trace, "ctest").len()), (4, 4), "{log}");
    let failed = "select count(*) as n from steps where coordinator = 'ctest' and exit_code = 1";
    assert_eq!(query(&trace, &[], failed), [json!({"n": 1})]);
    // Not the command of an xargs that runs only one.
    assert_eq!(sorted(names(&trace, "xargs")), ["echo a", "echo b", "echo c"]);
}

#[test]
fn variables_and_marks_name_steps_and_a_job_without_any_has_none() {
    let place = tempfile::tempdir().unwrap();
    let script = "PROCTRACE_STEP=sim_1 sh -c '/bin/true; PROCTRACE_STEP=part PROCTRACE_STEP_GROUP=parts /bin/true; :'
        $P mark --step 'merge all'; /bin/true; sh -c '/bin/true; :'
        $P mark --step clean; /bin/true; $P mark --step ''; /bin/true; \
        PROCTRACE_STEP=\"$(printf 'a\\nb\\377')\" /bin/true";
    let recorded = record_in(place.path(), &[], script);
    recorded.sound(0);
    let trace = recorded.trace();
    let steps = query(
        &trace,
        &[],
        "select step, step_group, named_by, part_of_id, processes from steps order by step_id",
    );
    let told: Vec<_> = steps
        .iter()
        .map(|step| {
            (
                text(&step["step"]),
                text(&step["step_group"]),
                text(&step["named_by"]),
                u64_of(&step["processes"]),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("sim_1", "sim", "environment", 3),
            ("part", "parts", "environment", 1),
            // Each with the process that set the mark.
            ("merge all", "merge all", "mark", 4),
            ("clean", "clean", "mark", 2),
            ("a\nb\\xff", "a\nb\\xff", "environment", 1),
        ]
    );
    assert_eq!(steps[1]["part_of_id"], 0);
    let report = proctrace().args(["report", "--section", "steps"]).arg(&trace).output().unwrap();
    let report = String::from_utf8(report.stdout).unwrap();
    assert!(report.contains("merge all") && !report.contains("a\nb"), "{report}");

    let recorded = record_in(place.path(), &[], "/bin/true; /bin/true");
    recorded.sound(0);
    assert!(query(&recorded.trace(), &[], "select * from steps").is_empty());
    let report = proctrace().args(["report"]).arg(recorded.trace()).output().unwrap();
    let report = String::from_utf8(report.stdout).unwrap();
    assert!(!report.to_lowercase().contains("step"), "{report}");
}

/// A runner of workflows of the kind of O2DPG's: it starts each stage by bash in its directory when its needs are done.
const RUNNER: &str = "
import json, logging, os, subprocess, sys
logging.basicConfig(filename='pipeline_action_1.log', filemode='w', level='DEBUG',
    format='%(asctime)s %(levelname)s %(message)s')
stages = json.load(open(sys.argv[1]))['stages']
done, running = set(), {}
while len(done) < len(stages):
    for stage in stages:
        name = stage['name']
        if name not in done and name not in running and all(need in done for need in stage['needs']):
            os.makedirs(stage['cwd'], exist_ok=True)
            command = ['/bin/bash', '-c', stage['cmd']]
            logging.debug('Submitting tid=%d %s (nice=%d)', stages.index(stage), name, 0)
            running[name] = subprocess.Popen(command, cwd=stage['cwd'])
    name, process = next(iter(running.items()))
    assert process.wait() == 0, name
    logging.info('Task pid=%d tid=%d %s finished rc=%d', process.pid, 0, name, 0)
    del running[name]
    done.add(name)
";

/// Stages that pass on files in several ways, with the edges (file, reader or writer) that they make.
fn workflow(frames: usize) -> (Value, BTreeMap<String, [BTreeSet<String>; 2]>) {
    let mut edges: BTreeMap<String, [BTreeSet<String>; 2]> = BTreeMap::new();
    let mut edge = |kind: usize, file: &str, step: &str| {
        edges.entry(format!("./{file}")).or_default()[kind].insert(step.to_owned());
    };
    let mut stages =
        vec![json!({"name": "bkg", "cmd": "echo b > bkg.dat", "needs": [], "cwd": "./"})];
    edge(0, "bkg.dat", "bkg");
    for n in 1..=frames {
        let (sgn, digi, dir) = (format!("sgn_{n}"), format!("digi_{n}"), format!("tf{n}"));
        stages.push(json!({
            "name": sgn, "needs": ["bkg"], "cwd": format!("./{dir}"),
            "cmd": "cat ../bkg.dat > sgn.dat; python3 -c \"open('kine.dat', 'w').write('*')\"",
        }));
        edge(1, "bkg.dat", &sgn);
        edge(0, &format!("{dir}/sgn.dat"), &sgn);
        edge(0, &format!("{dir}/kine.dat"), &sgn);
        stages.push(json!({
            "name": digi, "needs": [sgn], "cwd": format!("./{dir}"),
            "cmd": "ls . > /dev/null; mkdir -p sub; awk '{print > \"sub/digi.tmp\"}' sgn.dat; \
                cat kine.dat >> sub/digi.tmp; mv sub/digi.tmp sub/digi.dat",
        }));
        edge(1, &format!("{dir}/sgn.dat"), &digi);
        edge(1, &format!("{dir}/kine.dat"), &digi);
        edge(0, &format!("{dir}/sub/digi.dat"), &digi);
        edge(1, &format!("{dir}/sub/digi.dat"), "merge");
    }
    let digis: Vec<String> = (1..=frames).map(|n| format!("digi_{n}")).collect();
    stages.push(json!({"name": "merge", "cmd": "cat tf*/sub/digi.dat > merged.dat", "needs": digis, "cwd": "./"}));
    edge(0, "merged.dat", "merge");
    (json!({ "stages": stages }), edges)
}

/// What a graph says of each file: who wrote and who read it.
fn edges_of(graph: &Value) -> BTreeMap<String, [BTreeSet<String>; 2]> {
    let names = |names: &Value| -> BTreeSet<String> {
        names.as_array().unwrap().iter().map(|name| text(name).to_owned()).collect()
    };
    let files = graph["file_report"].as_array().unwrap().iter();
    files
        .map(|file| {
            let by = [names(&file["written_by"]), names(&file["read_by"])];
            (text(&file["file"]).to_owned(), by)
        })
        .collect()
}

fn graph_of(place: &Path, trace: &Path) -> Value {
    let to = place.join("out");
    let output = proctrace()
        .args(["export", "--format", "o2dpg", "--steps"])
        .arg(place.join("workflow.json"))
        .arg(&to)
        .arg(trace)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let files: Vec<_> = fs::read_dir(&to).unwrap().map(|file| file.unwrap().path()).collect();
    let graph = files.iter().find(|path| path.to_string_lossy().contains("/filegraph_proctrace_"));
    let resources =
        files.iter().find(|path| path.to_string_lossy().contains("/resources_proctrace_"));
    let read = |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let resources = read(resources.unwrap());
    assert!(resources["digi"]["lifetime"]["mean"].as_f64().unwrap() > 0.0, "{resources:#}");
    assert!(resources["digi"]["cpu"]["max"].as_f64().unwrap() > 0.0, "{resources:#}");
    read(graph.unwrap())
}

fn run_workflow(place: &Path, workflow: &Value, backend: &str) -> Recorded {
    run_workflow_in("", place, workflow, backend)
}

/// With a command around the runner.
fn run_workflow_in(around: &str, place: &Path, workflow: &Value, backend: &str) -> Recorded {
    fs::write(place.join("workflow.json"), workflow.to_string()).unwrap();
    fs::write(place.join("o2dpg_workflow_runner.py"), RUNNER).unwrap();
    let recorded = record_in(
        place,
        &["--opens", "--backend", backend],
        &format!("{around}python3 o2dpg_workflow_runner.py workflow.json"),
    );
    recorded.sound(0);
    recorded
}

#[test]
fn a_table_that_is_none_is_refused_with_its_line() {
    let place = tempfile::tempdir().unwrap();
    let table = place.path().join("steps.csv");
    fs::write(&table, "name,command\na,x\n,y\n").unwrap();
    let script = place.path().join("job.sh");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    for (file, name, why) in [
        (&*table, "steps.csv", "a step needs a name"),
        (&*script, "job.sh", "no column \"name\""),
        (place.path(), "", "no record of Snakemake"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_proctrace"));
        command.args(["report", "--steps"]).arg(file).arg("absent.ptrace");
        let output = command.output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(name) && message.contains(why), "{message}");
    }
}

/// Pairs of a step that reads and one that writes without whom it does not wait.
fn missing(trace: &Path, declared: &Path) -> Vec<(String, String)> {
    let files = section(trace, "step-files", &["--steps", declared.to_str().unwrap()]);
    let rows = files["step_missing_needs"].as_array().unwrap();
    rows.iter()
        .map(|row| (text(&row["reader"]).to_owned(), text(&row["writer"]).to_owned()))
        .collect()
}

const SOURCES: [(&str, &str); 2] = [
    ("a.c", "#include \"gen.h\"\nint f(void); int main(void) { return f() - X; }\n"),
    ("b.c", "#include \"gen.h\"\nint f(void) { return X; }\n"),
];

#[test]
fn a_dependency_that_a_ninja_file_lacks_is_found() {
    for (of_b, expected) in [("", true), ("|| gen.h", false)] {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        let write = |name: &str, content: &str| fs::write(place.join(name), content).unwrap();
        SOURCES.iter().for_each(|(name, content)| write(name, content));
        write(
            "build.ninja",
            &format!(
                "rule gen\n  command = echo '#define X 1' > $out\nrule cc\n  command = cc -I. -c $in -o $out\n\
                 rule link\n  command = cc $in -o $out\nbuild gen.h: gen\nbuild a.o: cc a.c || gen.h\n\
                 build b.o: cc b.c {of_b}\nbuild app: link a.o b.o\n"
            ),
        );
        // One command at a time, the header comes first, whatever is declared.
        let script =
            "ninja -j1 app && ninja -t graph > graph.dot && ninja -t compdb > commands.json";
        let recorded = record_in(&place, &["--opens"], script);
        recorded.sound(0);
        let found = missing(&recorded.trace(), &place.join("graph.dot"));
        let pair = ("b.o".to_owned(), "echo '#define X 1' > gen.h".to_owned());
        assert_eq!(found, Vec::from_iter(expected.then_some(pair)));
        // The compilation database has the names of all edges with inputs.
        let commands = place.join("commands.json");
        let steps = query(
            &recorded.trace(),
            &["--steps", commands.to_str().unwrap()],
            "select step from steps where named_by = 'table' order by step",
        );
        let names: Vec<&str> = steps.iter().map(|step| text(&step["step"])).collect();
        assert_eq!(names, ["a.o", "app", "b.o"]);
    }
}

#[test]
fn a_dependency_that_a_makefile_lacks_is_found() {
    for (of_b, expected) in [("", true), ("gen.h", false)] {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        let write = |name: &str, content: &str| fs::write(place.join(name), content).unwrap();
        SOURCES.iter().for_each(|(name, content)| write(name, content));
        write(
            "Makefile",
            &format!(
                "app: a.o b.o\n\tcc $^ -o $@\ngen.h:\n\techo '#define X 1' > $@\na.o: a.c | gen.h\n\
                 \tcc -I. -c $< -o $@\nb.o: b.c | {of_b}\n\tcc -I. -c $< -o $@\n"
            ),
        );
        let script = "make app && LC_ALL=C make -pn > database";
        let recorded = record_in(&place, &["--opens"], script);
        recorded.sound(0);
        let found = missing(&recorded.trace(), &place.join("database"));
        let pair = ("b.o".to_owned(), "echo '#define X 1' > gen.h".to_owned());
        assert_eq!(found, Vec::from_iter(expected.then_some(pair)));
    }
}

#[test]
fn what_engines_would_have_measured_is_exported() {
    let place = tempfile::tempdir().unwrap();
    let script = "PROCTRACE_STEP_GROUP=align PROCTRACE_STEP='align:sample=A' sh -c 'cat Cargo.toml; exit 3'; \
        PROCTRACE_STEP_GROUP=align PROCTRACE_STEP='align:sample=B' sh -c 'i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done'; \
        PROCTRACE_STEP=sort sh -c true";
    let recorded = record_in(place.path(), &["--memory=10ms"], script);
    let export = |format: &str| {
        let output =
            proctrace().args(["export", "--format", format, "-"]).arg(recorded.trace()).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let table = |text: String| -> Vec<BTreeMap<String, String>> {
        let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned));
        let names: Vec<String> = lines.next().unwrap().collect();
        lines.map(|line| names.iter().cloned().zip(line).collect()).collect()
    };
    let trace = table(export("nextflow-trace"));
    let of = |name: &str| trace.iter().map(|row| row[name].clone()).collect::<Vec<_>>();
    assert_eq!(of("name"), ["align:sample=A", "align:sample=B", "sort"]);
    assert_eq!(
        (of("exit"), of("status")[0].as_str()),
        (vec!["3".into(), "0".into(), "0".into()], "FAILED")
    );
    // Of the second, both engines say the same as the tables.
    let sql = "select sum(cpu_ns) as cpu_ns from processes p join steps s on p.step_id = s.step_id \
               where s.step = 'align:sample=B'";
    let cpu_s = u64_of(&query(&recorded.trace(), &[], sql)[0]["cpu_ns"]) as f64 / 1e9;
    recorded.sound(0);
    let benchmark = table(export("snakemake-benchmark"));
    assert_eq!((&*benchmark[1]["rule_name"], &*benchmark[1]["wildcards"]), ("align", "sample=B"));
    let told_s: f64 = benchmark[1]["cpu_time"].parse().unwrap();
    assert!((told_s - cpu_s).abs() <= 0.005, "{told_s} of {cpu_s}");
    for (format, expected) in [
        ("snakemake-profile", "set-threads:\n  align: 1\n"),
        ("nextflow-config", "    withName: 'align' {\n        cpus = 1\n"),
        ("slurm", "#SBATCH --cpus-per-task=1\n#SBATCH --mem="),
    ] {
        let text = export(format);
        assert!(text.contains(expected), "{format}: {text}");
    }
}

mod root {
    use super::*;

    #[test]
    fn a_dependency_that_is_missing_is_found() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let (mut workflow, _) = workflow(2);
        // The merge no longer waits for the first frame, but comes after it, as this runner waits for stages in their order.
        let stages = workflow["stages"].as_array_mut().unwrap();
        let merge = stages.iter_mut().find(|stage| stage["name"] == "merge").unwrap();
        merge["needs"] = json!(["digi_2"]);
        merge["cmd"] = json!("cat tf*/sub/digi.dat > merged.dat");
        let recorded = run_workflow(&place, &workflow, "ebpf");
        let steps = place.join("workflow.json");
        let files = section(&recorded.trace(), "step-files", &["--steps", steps.to_str().unwrap()]);
        let graph = proctrace()
            .args(["export", "--format", "dot", "--steps", steps.to_str().unwrap(), "-"])
            .arg(recorded.trace())
            .output()
            .unwrap();
        let graph = String::from_utf8(graph.stdout).unwrap();
        assert_eq!(graph.matches("style=dashed").count(), 1, "{graph}");
        let missing = files["step_missing_needs"].as_array().unwrap();
        assert_eq!(missing.len(), 1, "{files:#}");
        assert_eq!(
            (&missing[0]["reader"], &missing[0]["writer"]),
            (&json!("merge"), &json!("digi_1"))
        );
        assert_eq!(missing[0]["example"], "tf1/sub/digi.dat");
    }

    #[test]
    fn files_between_stages_of_a_workflow_are_those_that_its_commands_imply() {
        for backend in ["ebpf", "ptrace"] {
            let place = tempfile::tempdir().unwrap();
            // Resolved, as the paths of files are.
            let place = place.path().canonicalize().unwrap();
            let (workflow, expected) = workflow(3);
            let recorded = run_workflow(&place, &workflow, backend);
            let trace = recorded.trace();
            let mut got = edges_of(&graph_of(&place, &trace));
            // The runner is no step, and what it reads no edge.
            got.remove("./workflow.json");
            assert_eq!(got, expected, "{backend}");
            let steps = place.join("workflow.json");
            let files = section(&trace, "step-files", &["--steps", steps.to_str().unwrap()]);
            assert_eq!(files["step_missing_needs"], json!([]), "{files:#}");
            assert_eq!(files["step_unused_needs"], json!([]), "{files:#}");
        }
    }

    /// Nothing but their processes tells these apart.
    #[test]
    fn stages_with_the_same_command_are_known_by_the_log_of_the_runner() {
        let place = tempfile::tempdir().unwrap();
        let stage = |name: &str, needs: &[&str]| json!({"name": name, "needs": needs, "cwd": "./", "cmd": "sleep 0.1; true"});
        let workflow = json!({"stages": [stage("a_1", &[]), stage("a_2", &[]), stage("last", &["a_1", "a_2"])]});
        // The second time in a pid namespace of the runner's own, whose numbers are in its log.
        for around in ["", "unshare --pid --fork --mount-proc "] {
            let recorded = run_workflow_in(around, place.path(), &workflow, "ebpf");
            let (workflow, log) =
                (place.path().join("workflow.json"), place.path().join("pipeline_action_1.log"));
            let sql =
                "select step, step_group from steps where named_by = 'table' order by begin_ns";
            let steps = |files: &[&Path]| {
                let options: Vec<&str> =
                    files.iter().flat_map(|file| ["--steps", file.to_str().unwrap()]).collect();
                query(&recorded.trace(), &options, sql)
            };
            assert!(steps(&[&workflow]).is_empty(), "none is certain");
            let expected = [
                json!({"step": "a_1", "step_group": "a"}),
                json!({"step": "a_2", "step_group": "a"}),
            ];
            for files in [&[&*log][..], &[&log, &workflow], &[&workflow, &log]] {
                let found = steps(files);
                assert_eq!(
                    (found.len(), &found[..2], &found[2]["step"]),
                    (3, &expected[..], &json!("last"))
                );
            }
        }
    }
}
