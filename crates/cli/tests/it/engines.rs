//! Steps of real engines of workflows, builds and tests: those that they themselves say they ran.
//!
//! Engines in Python are installed once from PyPI into an environment below cargo's target directory; Nextflow is fetched by
//! `cargo xtask test`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proctrace_fixtures::python;

use crate::common::steps::{names, query, record_in, sorted};
use crate::common::{Recorded, section, text};
use serde_json::json;

/// The name changes with the contents.
const ENVIRONMENT: &str = "engines-1";
const PACKAGES: &[&str] = &[
    "snakemake==9.27.1",
    "pytest==9.2.0",
    "pytest-xdist==3.8.0",
    "cwltool==3.3.20260925135507",
    "tox==4.30.2",
];

/// The Python that has these packages. Their own scripts name one that has been renamed since.
fn python() -> String {
    let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
    python::environment(base, ENVIRONMENT, PACKAGES).join("bin/python").display().to_string()
}

/// A directory with these files.
fn place(files: &[(&str, &str)]) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = place.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    place
}

/// Records a script that writes a log, which is returned too.
fn run(place: &Path, options: &[&str], script: &str) -> (Recorded, String) {
    let recorded = record_in(place, options, &format!("{{ {script}; }} > log 2>&1"));
    let log = fs::read_to_string(place.join("log")).unwrap_or_default();
    assert_eq!(recorded.code(), 0, "{log}\n{}", recorded.stderr());
    recorded.sound(0);
    (recorded, log)
}

/// The same of an engine in Python, for a user whose caches are empty: what engines do to fill them is no step.
fn run_engine(place: &Path, options: &[&str], arguments: &str) -> (Recorded, String) {
    run(place, options, &as_new_user(&format!("{} -m {arguments}", python())))
}

/// A script for a user whose caches are empty.
fn as_new_user(script: &str) -> String {
    let unset = "unset XDG_CACHE_HOME XDG_DATA_HOME VIRTUALENV_OVERRIDE_APP_DATA";
    format!("{unset}; export HOME=$PWD/home; {script}")
}

/// The rest of each line behind a word.
fn behind<'a>(log: &'a str, word: &str) -> Vec<&'a str> {
    log.lines().filter_map(|line| Some(line.split_once(word)?.1.trim())).collect()
}

fn owned(words: &[&str]) -> Vec<String> {
    sorted(words.iter().map(|word| (*word).to_owned()).collect())
}

const SNAKEFILE: &str = r#"
rule all:
    input: "out/all", "out/early"

rule gen:
    output: "out/{n}.raw"
    shell: "sleep 0.2; echo {wildcards.n} > {output}"

rule sort:
    input: "out/{n}.raw"
    output: "out/{n}.sorted"
    shell:
        """
        sort {input} > {output}
        echo "sorted {wildcards.n}"
        """

rule py:
    input: "out/{n}.sorted"
    output: "out/{n}.py"
    run:
        shell("cp {input} {output}")

rule merge:
    input: expand("out/{n}.py", n=range(2))
    output: "out/all", "out/also"
    shell: "cat {input} > {output[0]}; touch {output[1]}"

# What it reads besides its input is there by chance.
rule early:
    input: "out/all"
    output: "out/early"
    shell: "cat {input} $(ls out/*.raw) > {output}"
"#;

const WORKFLOW: &str = "cwlVersion: v1.2
class: Workflow
inputs: {word: string}
outputs: {result: {type: File, outputSource: count/out}}
steps:
  write:
    in: {word: word}
    out: [out]
    run:
      class: CommandLineTool
      baseCommand: [echo, hello]
      inputs: {word: {type: string, inputBinding: {position: 1}}}
      outputs: {out: stdout}
      stdout: words
  count:
    in: {file: write/out}
    out: [out]
    run:
      class: CommandLineTool
      baseCommand: [wc, -w]
      inputs: {file: {type: File, inputBinding: {position: 1}}}
      outputs: {out: stdout}
      stdout: number
";

const PIPELINE: &str = r#"
process ALIGN {
    tag "$sample"
    errorStrategy 'retry'
    input: val sample
    output: path "${sample}.bam"
    script: "echo $sample > ${sample}.bam; sleep 0.2; test $sample != B -o $task.attempt -gt 1"
}
process MERGE {
    input: path bams
    output: path "all"
    script: "cat $bams > all"
}
workflow { ALIGN(Channel.of('A', 'B', 'C')); MERGE(ALIGN.out.collect()) }
"#;

/// Packages that this version's own script opens to it where Java is 17.
const OPENED: &str = "java.lang java.io java.nio java.net java.util java.util.concurrent.locks \
    java.util.concurrent.atomic java.util.regex sun.nio.ch sun.nio.fs sun.net.www.protocol.http \
    sun.net.www.protocol.https sun.net.www.protocol.ftp sun.net.www.protocol.file jdk.internal.misc jdk.internal.vm";

#[test]
fn jobs_of_parallel_are_those_in_its_log() {
    let place = place(&[]);
    let script = "parallel --joblog jobs -j2 'echo {} > out{}; wc -c out{}' ::: 1 2 'a b'; true";
    let (recorded, log) = run(place.path(), &[], script);
    let jobs = fs::read_to_string(place.path().join("jobs")).unwrap_or_else(|_| panic!("{log}"));
    let commands = jobs.lines().skip(1).filter_map(|line| line.split('\t').nth(8));
    let said: Vec<String> = commands.map(str::to_owned).collect();
    assert_eq!(said.len(), 3, "{jobs}");
    assert_eq!(sorted(names(&recorded.trace(), "parallel")), sorted(said));
}

#[test]
fn scripts_of_npm_are_those_that_it_prints() {
    let package = r#"{"name": "x", "version": "1.0.0", "scripts": {"prebuild": "true 1",
        "build": "npm run inner && true 2", "inner": "true 3", "postbuild": "true 4"}}"#;
    let place = place(&[("package.json", package)]);
    let (recorded, log) =
        run(place.path(), &["--env", "npm_lifecycle_event"], "HOME=$PWD npm run build");
    // Older versions add the directory.
    let said: Vec<&str> = behind(&log, "> x@1.0.0 ")
        .into_iter()
        .filter_map(|said| said.split_whitespace().next())
        .collect();
    assert_eq!(said, ["prebuild", "build", "inner", "postbuild"], "{log}");
    assert_eq!(names(&recorded.trace(), "npm"), said);
}

/// Each process that cargo says it runs is a step.
#[test]
fn crates_of_cargo_are_those_that_it_says_it_runs() {
    let place = place(&[
        ("Cargo.toml", "[workspace]\nmembers = [\"basis\", \"front-end\"]\nresolver = \"2\"\n"),
        (
            "basis/Cargo.toml",
            "[package]\nname = \"basis\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
        ),
        ("basis/src/lib.rs", "pub fn one() -> u32 { 1 }\n"),
        (
            "front-end/Cargo.toml",
            "[package]\nname = \"front-end\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
             [dependencies]\nbasis = { path = \"../basis\" }\n",
        ),
        ("front-end/src/main.rs", "fn main() { println!(\"{}\", basis::one()); }\n"),
        ("front-end/build.rs", "fn main() { println!(\"cargo:rerun-if-changed=build.rs\"); }\n"),
        ("front-end/tests/adds.rs", "#[test] fn adds() { assert_eq!(basis::one(), 1); }\n"),
    ]);
    // Not the target directory and the options of the cargo that runs this test, nor what the user has configured.
    let script = "unset $(env | sed -n 's/^\\(CARGO_[A-Z_]*\\|RUST[A-Z_]*\\)=.*/\\1/p' | grep -v RUSTUP_) CARGO; \
        export RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup}; CARGO_HOME=$PWD/home cargo test -v --offline --target-dir target";
    let (recorded, log) = run(place.path(), &[], script);
    // "Running `/path/rustc --crate-name basis …`", "Running `/job/target/debug/deps/adds-2bf243ea71b91b49`"
    let mut said: BTreeMap<String, usize> = BTreeMap::new();
    for command in behind(&log, "Running `") {
        let words: Vec<&str> = command.trim_end_matches('`').split(' ').collect();
        let program = words.iter().find(|word| !word.contains('=')).unwrap();
        let program = program.rsplit('/').next().unwrap();
        let named = words.iter().position(|word| *word == "--crate-name").map(|at| words[at + 1]);
        let name = match (program, named) {
            (_, Some("build_script_build")) => "rustc build script",
            ("rustdoc", _) => "rustdoc",
            (_, Some(name)) => name,
            ("build-script-build", None) => "build script",
            (program, None) => program,
        };
        *said.entry(name.to_owned()).or_default() += 1;
    }
    assert_eq!(said.values().sum::<usize>(), 11, "{log}");
    let sql = "select step, step_group from steps where coordinator = 'cargo'";
    let mut got: BTreeMap<String, usize> = BTreeMap::new();
    for row in query(&recorded.trace(), &[], sql) {
        let name = match text(&row["step_group"]) {
            group @ ("rustc build script" | "rustdoc" | "build script") => group,
            _ => text(&row["step"]),
        };
        *got.entry(name.to_owned()).or_default() += 1;
    }
    assert_eq!(got, said, "{log}");
}

mod pypi {
    use super::*;

    /// Where Snakemake runs a command itself, its own records name rule and output; where it starts itself, its arguments do.
    #[test]
    #[ignore = "needs a Python package index"]
    fn jobs_of_snakemake_are_those_in_its_log() {
        let place = place(&[("Snakefile", SNAKEFILE)]);
        let (recorded, log) = run_engine(place.path(), &["--opens"], "snakemake -j2");
        // "localrule sort:", and then its properties, the output among them.
        let mut said: BTreeSet<(String, String)> = BTreeSet::new();
        let mut rule = "";
        for line in log.lines() {
            if let Some(name) = line.strip_prefix("localrule ").or(line.strip_prefix("rule ")) {
                rule = name.trim_end_matches(':');
            } else if let Some(output) = line.trim().strip_prefix("output: ") {
                let first = output.split(", ").min().unwrap();
                let name = match rule {
                    "py" => first.replace("out/", "py:n=").replace(".py", ""),
                    _ => first.to_owned(),
                };
                said.insert((rule.to_owned(), name));
            }
        }
        assert_eq!(said.len(), 8, "{log}");
        let records = place.path().join(".snakemake/metadata");
        let options = ["--steps", records.to_str().unwrap()];
        let steps = query(&recorded.trace(), &options, "select step, step_group from steps");
        let name = |row: &serde_json::Value, key: &str| text(&row[key]).to_owned();
        let got: BTreeSet<_> =
            steps.iter().map(|row| (name(row, "step_group"), name(row, "step"))).collect();
        assert_eq!(got, said);
        assert_eq!(steps.len(), said.len());
        // Its rule does not say that it needs them, but through others it does: nothing is missing.
        let files = section(&recorded.trace(), "step-files", &options);
        assert_eq!(files["step_missing_needs"], json!([]), "{files:#}");
    }

    /// A rule reads what it does not declare.
    #[test]
    #[ignore = "needs a Python package index"]
    fn an_input_that_a_rule_of_snakemake_lacks_is_found() {
        let lacking = SNAKEFILE.replace(
            "input: \"out/all\"\n    output: \"out/early\"\n    shell: \"cat {input} $(ls out/*.raw)",
            "input: \"out/0.raw\"\n    output: \"out/early\"\n    shell: \"while ! [ -e out/1.raw ]; do sleep 0.1; done; cat {input} out/1.raw",
        );
        assert_ne!(lacking, SNAKEFILE);
        let place = place(&[("Snakefile", &lacking)]);
        let (recorded, _) = run_engine(place.path(), &["--opens"], "snakemake -j2");
        let records = place.path().join(".snakemake/metadata");
        let options = ["--steps", records.to_str().unwrap()];
        let files = section(&recorded.trace(), "step-files", &options);
        let missing = files["step_missing_needs"].as_array().unwrap();
        assert_eq!(missing.len(), 1, "{files:#}");
        assert_eq!(
            (&missing[0]["reader"], &missing[0]["writer"]),
            (&json!("out/early"), &json!("out/1.raw"))
        );
    }

    #[test]
    #[ignore = "needs a Python package index"]
    fn tests_of_pytest_are_those_that_it_names() {
        let test = "import subprocess, pytest\n\
            @pytest.mark.parametrize('n', ['a b', 'c'])\n\
            def test_run(n): subprocess.run(['/bin/true', n], check=True)\n\
            def test_other(): subprocess.run(['/bin/true'], check=True)\n\
            def test_alone(): pass\n";
        let place = place(&[("test_a.py", test)]);
        let (recorded, log) =
            run_engine(place.path(), &["--env", "PYTEST_CURRENT_TEST"], "pytest -v -n 2");
        let said: Vec<&str> = behind(&log, " PASSED ");
        assert_eq!(said.len(), 4, "{log}");
        // One that starts no process is none.
        let said: Vec<&str> =
            said.into_iter().filter(|name| !name.ends_with("test_alone")).collect();
        let got = names(&recorded.trace(), "pytest");
        let (workers, tests): (Vec<String>, Vec<String>) =
            got.into_iter().partition(|name| name == "worker");
        assert_eq!((workers.len(), sorted(tests)), (2, owned(&said)), "{log}");
        assert!(log.contains("created: 2/2 workers"), "{log}");
    }

    #[test]
    #[ignore = "needs a Python package index"]
    fn commands_of_tox_are_those_that_it_prints() {
        let ini = "[tox]\nenv_list = a,b\n[testenv]\nskip_install = true\nallowlist_externals = true, sh\ncommands =\n  \
            true one\n  b: sh -c \"true && true\"\n";
        let place = place(&[("tox.ini", ini)]);
        let freeze = ["python -m pip freeze --all"; 2];
        let commands = ["true && true", "true one", "true one"];
        // First with empty caches, then without what tox made but with what it has cached, and as in a CI job, where tox asks
        // pip for what is installed.
        for (variable, further) in [("unset CI", &[] as &[&str]), ("export CI=true", &freeze)] {
            let tox = format!("{variable}; {} -m tox", python());
            let (recorded, log) = run(place.path(), &["--env", "TOX_ENV_NAME"], &as_new_user(&tox));
            // "b: commands[1]> sh -c 'true && true'", "a: freeze> python -m pip freeze --all"
            let said = log
                .lines()
                .filter(|line| line.contains("> "))
                .filter_map(|line| line.split_once(": "));
            let mut said: Vec<String> =
                said.map(|(environment, _)| environment.to_owned()).collect();
            said.sort();
            assert_eq!(said.len(), commands.len() + further.len(), "{log}");
            let sql = "select step_group from steps where coordinator = 'tox' order by 1";
            let groups = query(&recorded.trace(), &[], sql);
            let groups: Vec<&str> = groups.iter().map(|row| text(&row["step_group"])).collect();
            assert_eq!(groups, said, "{log}");
            assert_eq!(sorted(names(&recorded.trace(), "tox")), [further, &commands].concat());
            fs::remove_dir_all(place.path().join(".tox")).unwrap();
        }
    }

    #[test]
    #[ignore = "needs a Python package index"]
    fn tools_of_cwltool_are_those_in_its_log() {
        let place = place(&[("wf.cwl", WORKFLOW)]);
        let (recorded, log) =
            run_engine(place.path(), &[], "cwltool --no-container wf.cwl --word world");
        // "[job write] /tmp/x$ echo \", then an argument in each line, then "> file"
        let joined = log.replace("\\\n", "");
        let said = joined
            .lines()
            .filter_map(|line| line.split_once("$ ").filter(|_| line.contains("[job ")));
        let said: Vec<String> = said
            .map(|(_, command)| {
                let command = command.split(" > ").next().unwrap();
                command.split_whitespace().collect::<Vec<_>>().join(" ")
            })
            .collect();
        assert_eq!(said.len(), 2, "{log}");
        assert_eq!(names(&recorded.trace(), "cwltool"), said);
    }
}

mod nextflow {
    use super::*;

    /// One of them fails and is run again.
    #[test]
    #[ignore = "needs Java, and Nextflow's archives in the directory NEXTFLOW_JARS"]
    fn nextflow_runs_the_tasks_in_its_trace() {
        let jars = std::env::var("NEXTFLOW_JARS").expect("the directory of Nextflow's archives");
        let place = place(&[("main.nf", PIPELINE)]);
        let script = format!(
            "export HOME=$PWD NXF_HOME=$PWD/home NXF_OFFLINE=true
            java $(printf -- '--add-opens=java.base/%s=ALL-UNNAMED ' {OPENED}) -cp '{jars}/*' \
                nextflow.cli.Launcher run main.nf -with-trace trace.txt -ansi-log false"
        );
        let (recorded, log) = run(place.path(), &[], &script);
        let table = place.path().join("trace.txt");
        let said = fs::read_to_string(&table).unwrap();
        let column = |name: &str| -> Vec<String> {
            let at = said.lines().next().unwrap().split('\t').position(|it| it == name).unwrap();
            said.lines().skip(1).map(|line| line.split('\t').nth(at).unwrap().to_owned()).collect()
        };
        let (tasks, codes, places) = (column("name"), column("exit"), column("hash"));
        assert_eq!(tasks.len(), 5, "{said}{log}");
        let sql = "select step, step_group, exit_code from steps";
        let steps = query(&recorded.trace(), &["--steps", table.to_str().unwrap()], sql);
        let found = steps.iter().map(|row| format!("{} {}", text(&row["step"]), row["exit_code"]));
        let expected = tasks.iter().zip(codes).map(|(task, code)| format!("{task} {code}"));
        assert_eq!(sorted(found.collect()), sorted(expected.collect()), "{said}");
        let groups: Vec<String> =
            steps.iter().map(|row| text(&row["step_group"]).to_owned()).collect();
        assert_eq!(sorted(groups), ["ALIGN", "ALIGN", "ALIGN", "ALIGN", "MERGE"]);
        // Without its trace, the directories of the tasks, whose beginnings its trace has.
        let found = sorted(names(&recorded.trace(), "nextflow"));
        assert_eq!(found.len(), 5, "{found:?}");
        for (found, place) in found.iter().zip(sorted(places)) {
            assert!(found.starts_with(&place), "{found} {place}");
        }
    }
}
