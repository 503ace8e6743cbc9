//! Tests of rules and tables for steps.

use proctrace_wire::layout::ExecFixed;
use proptest::prelude::*;
use zerocopy::FromZeros;

use super::*;
use crate::Rules;

fn argv(words: &[&str]) -> Vec<u8> {
    words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect()
}

fn run_of(
    rules: &Rules,
    words: &[&str],
    cwd: &str,
    (pid, ns, started_by): (i32, u64, Coordinating),
    variables: &[(&str, &str)],
) -> RunOf {
    let (argv, path) = (argv(words), words[0].as_bytes());
    let fixed = ExecFixed::new_zeroed();
    let exec = Exec { fixed, path, interp: b"", exe: path, cwd: cwd.as_bytes(), argv: &argv };
    let variables: Vec<(Vec<u8>, Vec<u8>)> =
        variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let candidates = rules.steps.candidates(&exec, &rules.interpreters);
    let at = RunBy { pid, own_pid: pid, unix_ns: ns };
    rules.steps.step_of(&exec, &rules.interpreters, candidates, at, started_by, &variables)
}

/// What a command in this directory is, started by such a program.
fn step_with(
    rules: &Rules,
    by: &[&str],
    command: &[&str],
    cwd: &str,
    variables: &[(&str, &str)],
) -> Option<Named> {
    let started_by = run_of(rules, by, cwd, (1, 0, 0), &[]).coordinating;
    run_of(rules, command, cwd, (7, 5_000_000_000, started_by), variables).step
}

fn step(by: &[&str], command: &[&str], cwd: &str) -> Option<(String, String)> {
    let named = step_with(&Rules::built_in(), by, command, cwd, &[])?;
    Some((named.name, named.group.unwrap_or_default()))
}

#[test]
fn built_in_rules_are_well_formed_and_name_their_steps() {
    let rules = StepRules::built_in();
    assert_eq!(rules.coordinators.len(), StepRules::names().count());
    let is = |name: &str, group: &str| Some((name.to_owned(), group.to_owned()));
    let sh = |text| ["/bin/sh", "-c", text];
    for (by, command, cwd, expected) in [
        (
            &["make", "-j4"][..],
            &["/usr/bin/gcc", "-c", "-o", "a.o", "a.c"][..],
            "/w",
            is("a.o", "gcc"),
        ),
        (&["make"], &sh("cd sub && cc -o 'x/b.o' -c b.c; true"), "/w", is("x/b.o", "cc")),
        (&["make"], &["/usr/bin/make", "-C", "sub", "all"], "/w", is("make -C sub all", "make")),
        (
            &["make"],
            &sh("set -o pipefail; sort a | uniq > b"),
            "/w",
            is("sort a | uniq > b", "sort"),
        ),
        (&["bash", "x.sh"], &["/usr/bin/gcc", "-o", "a.o", "a.c"], "/w", None),
        (&["tox"], &["/usr/bin/true", "one"], "/w", is("true one", "true")),
        (&["tox"], &["python3", "/lib/python_discovery/_py_info_collect.py", "x"], "/w", None),
        (&["ninja"], &sh(": && /usr/bin/c++ a.o -o prog && :"), "/w", is("prog", "c++")),
        (&["ctest", "-j2"], &["/w/b/unit", "--fast"], "/w", is("unit --fast", "unit")),
        (
            &["cargo", "build"],
            &[
                "rustc",
                "--crate-name",
                "serde",
                "src/lib.rs",
                "--crate-type",
                "lib",
                "--out-dir",
                "/t/deps",
            ],
            "/w",
            is("serde", "rustc lib"),
        ),
        (
            &["cargo", "build"],
            &[
                "rustc",
                "--crate-name",
                "build_script_build",
                "build.rs",
                "--crate-type",
                "bin",
                "--out-dir",
                "/t/build/serde-12ab",
                "-C",
                "x",
            ],
            "/w",
            is("serde-12ab (build script)", "rustc build script"),
        ),
        (
            &["cargo", "build"],
            &["rustc", "-", "--crate-name", "___", "--print=file-names"],
            "/w",
            None,
        ),
        (&["cargo", "build"], &["rustc", "-vV"], "/w", None),
        (
            &["cargo", "build"],
            &["/t/build/serde-12ab/build-script-build"],
            "/r/serde-1.0",
            is("serde-1.0 build script", "build script"),
        ),
        (&["cargo", "test"], &["/t/debug/deps/unit-0f1e"], "/w", is("unit-0f1e", "test")),
        (
            &["go", "build"],
            &["/go/pkg/tool/compile", "-o", "$WORK/b001/_pkg_.a", "-p", "fmt"],
            "/w",
            is("fmt", "compile"),
        ),
        (&["go", "build"], &["/go/pkg/tool/compile", "-V=full"], "/w", None),
        (
            &["go", "vet"],
            &["/go/pkg/tool/vet", "-unsafeptr=false", "/tmp/go-build1/b006/vet.cfg"],
            "/go/src/fmt",
            is("fmt", "vet"),
        ),
        (&["go", "vet"], &["/go/pkg/tool/vet", "-flags"], "/w", None),
        (&["go", "test"], &["/tmp/go-build1/b001/x.test", "-test.v"], "/w", is("x.test", "test")),
        (
            &["java", "-jar", "mvn"],
            &["/usr/bin/java", "-jar", "/t/surefirebooter123.jar"],
            "/w/core",
            is("surefire core", "surefire"),
        ),
        // With a module path, and of the compiler plugin: Maven 3.8.
        (
            &["java"],
            &[
                "java",
                "@/w/m3/target/surefire/surefireargs-20261128023233450_9",
                "/w/m3/target/surefire",
            ],
            "/w/m3",
            is("surefire m3", "surefire"),
        ),
        (
            &["java"],
            &["javac", "@/w/m1/target/org.codehaus.plexus.compiler.javac.JavacCompiler7arguments"],
            "/w/m1",
            is("javac m1", "javac"),
        ),
        (&["java"], &["java", "-jar", "x.jar"], "/w", None),
        // Gradle 4.4: the class path is in a file, and the quotes are a part of the argument.
        (
            &["java", "-cp", "launcher.jar", "org.gradle.launcher.GradleMain", "test"],
            &[
                "/usr/bin/java",
                "@/tmp/gradle-worker-classpath42txt",
                "-ea",
                "worker.org.gradle.process.internal.worker.GradleWorkerMain",
                "'Gradle Test Executor 3'",
            ],
            "/w",
            is("Gradle Test Executor 3", "Gradle Test Executor"),
        ),
        (
            &["java", "-cp", "launcher.jar", "org.gradle.launcher.GradleMain", "x"],
            &["/usr/bin/false"],
            "/w",
            is("false", "false"),
        ),
        // bazel 4.2: without a slash, {} is no path.
        (
            &["bazel"],
            &[
                "/root/install/linux-sandbox",
                "-t",
                "15",
                "-w",
                "/b/execroot/m",
                "--",
                "/usr/bin/gcc",
                "-c",
                "l.cc",
                "-o",
                "bazel-out/bin/l.o",
            ],
            "/b/execroot/m",
            is("bazel-out/bin/l.o", "gcc"),
        ),
        (&["bazel"], &["/root/install/linux-sandbox", "--", "/bin/true"], "/b/execroot/m", None),
        (
            &["bazel"],
            &["/root/install/process-wrapper", "--timeout=600", "--kill_delay=15", "uname", "-m"],
            "/b/external/local_config_cc",
            None,
        ),
        // As later versions have it by default.
        (
            &["bazel"],
            &[
                "/root/install/process-wrapper",
                "--timeout=0",
                "--kill_delay=15",
                "--stats=/root/x/stats.out",
                "/usr/bin/ar",
                "rcs",
                "bazel-out/bin/libl.a",
            ],
            "/b/execroot/m",
            is("ar", "ar"),
        ),
        (
            &["process-wrapper"],
            &["/b/external/bazel_tools/tools/test/test-setup.sh", "pkg/t2"],
            "/b/execroot/m",
            is("t2", "test"),
        ),
        (
            &["process-wrapper"],
            &[
                "/bin/bash",
                "-c",
                "source external/bazel_tools/tools/genrule/genrule-setup.sh; echo x > bazel-out/bin/g",
            ],
            "/b/execroot/m",
            is("echo x > bazel-out/bin/g", "genrule"),
        ),
        (
            &["/usr/bin/python3", "/usr/bin/scons", "-j2"],
            &sh("gcc -o f.o -c f.c"),
            "/w",
            is("f.o", "gcc"),
        ),
        (&["scons"], &["gcc", "--version"], "/w", None),
        (&["just", "all"], &["bash", "-cu", "echo x"], "/w", is("echo x", "echo")),
        (&["meson", "test", "-C", "b"], &["/w/b/t1", "x"], "/w/b", is("t1 x", "test")),
        (&["meson", "test"], &["/w/b/t1", "--version"], "/w/b", is("t1 --version", "test")),
        (&["meson", "test"], &["/usr/bin/ninja", "--version"], "/w/b", None),
        (&["meson", "setup", "build", "test"], &["cc", "--print-search-dirs"], "/w/b", None),
        (&["meson", "compile"], &["/usr/bin/ninja"], "/w/b", None),
        (&["npm", "run", "build"], &sh("tsc -b"), "/w", is("tsc -b", "tsc")),
        (
            &["pytest", "-n2"],
            &["/usr/bin/python3", "-u", "-c", "import sys;exec(eval(sys.stdin.readline()))"],
            "/w",
            is("worker", "worker"),
        ),
        (&["xargs", "-P", "2", "-n1", "gzip"], &["/bin/gzip", "a"], "/w", is("gzip a", "gzip")),
        (
            &["/usr/bin/perl", "/usr/bin/parallel", "-j2", "x"],
            &["/bin/bash", "-c", "echo a | sort"],
            "/w",
            is("echo a | sort", "echo"),
        ),
        (&["/usr/bin/perl", "/usr/bin/parallel", "-j2", "x"], &["sh", "-c", "tput el"], "/w", None),
        (&["/usr/bin/perl", "/usr/bin/parallel", "-j2", "x"], &["/bin/hostname"], "/w", None),
        (&["xargs", "rm"], &["/bin/rm", "a"], "/w", None),
        (
            &["/usr/bin/python3", "-m", "snakemake", "-c2"],
            &["/bin/bash", "-c", "set -euo pipefail;  bwa mem a.fq > a.bam"],
            "/w",
            is("bwa mem a.fq > a.bam", "bwa"),
        ),
        (
            &["/usr/bin/python3", "-m", "snakemake", "-c2"],
            &[
                "/usr/bin/python3",
                "-m",
                "snakemake",
                "--target-jobs",
                "align:sample=A",
                "--cores",
                "1",
            ],
            "/w",
            is("align:sample=A", "align"),
        ),
        (
            &["python3", "/usr/bin/snakemake"],
            &sh(
                "cd /w && python3 -m snakemake --snakefile '/w/Snakefile' --target-jobs 'py:n=0' --cores 2",
            ),
            "/w",
            is("py:n=0", "py"),
        ),
        (&["java"], &["/bin/bash", ".command.run"], "/w/work/ab/cdef01", is("ab/cdef01", "task")),
        (
            &["/usr/bin/python3", "/o/MC/workflow_runner/o2dpg_workflow_runner.py", "-f", "w.json"],
            &["/bin/bash", "-c", ". jobutils.sh; taskwrapper sgnsim_3.log 'o2-sim'"],
            "/w/tf3",
            is("sgnsim_3", ""),
        ),
    ] {
        assert_eq!(step(by, command, cwd), expected, "{command:?} of {by:?}");
    }
}

#[test]
fn variables_name_steps_where_they_are_recorded() {
    let rules = Rules::built_in();
    let of = |by: &[&str], variables: &[(&str, &str)]| {
        let named = step_with(&rules, by, &["/bin/sh", "-c", "true; x"], "/w", variables)?;
        Some((named.name, named.group))
    };
    let is = |name: &str, group: Option<&str>| Some((name.to_owned(), group.map(str::to_owned)));
    assert_eq!(of(&["npm", "run"], &[("npm_lifecycle_event", "build")]), is("build", Some("x")));
    let of_workspace = [("npm_lifecycle_event", "build"), ("npm_package_name", "@org/a")];
    assert_eq!(of(&["pnpm", "-r", "run"], &of_workspace), is("build", Some("@org/a")));
    let test = [("PYTEST_CURRENT_TEST", "tests/test_a.py::test_b (call)")];
    assert_eq!(of(&["python3"], &test), is("tests/test_a.py::test_b", Some("test")));
    let spaces = [("PYTEST_CURRENT_TEST", "t/a.py::b[a (b] (call)")];
    assert_eq!(of(&["python3"], &spaces), is("t/a.py::b[a (b]", Some("test")));
    assert_eq!(of(&["slurmstepd"], &[("SLURM_STEP_ID", "3")]), is("srun 3", Some("srun")));
    assert_eq!(of(&["bash"], &[]), None);
    // Yarn 4 has a shell of its own, and its packages below .yarn.
    let yarn = |command: &[&str]| {
        let build = [("npm_lifecycle_event", "build")];
        let by = ["node", "/x/.yarn/releases/yarn-4.18.1.cjs", "run", "build"];
        step_with(&rules, &by, command, "/x", &build).map(|named| named.name)
    };
    assert_eq!(yarn(&["/bin/sleep", "1"]).as_deref(), Some("build"));
    assert_eq!(yarn(&["node", "/x/.yarn/cache/t.zip/bin/tsc", "-b"]).as_deref(), Some("build"));
    assert_eq!(yarn(&["node", "/x/.yarn/releases/yarn-4.18.1.cjs", "run", "a"]), None);
    assert!(rules.steps.variables().contains(&b"GITHUB_ACTION"[..]));
    // A recipe within a step of Slurm is a recipe.
    assert_eq!(of(&["make"], &[("SLURM_STEP_ID", "3")]), is("x", Some("x")));
}

#[test]
fn rules_from_outside_come_before_others_and_say_what_is_wrong() {
    let mine = "coordinator = [\"make\"]\n[[step]]\ncalled = [{ as = \"x{}\", program = true }]\n";
    let rules = Rules::built_in().with_steps("mine/steps.toml", mine.as_bytes()).unwrap();
    let named = step_with(&rules, &["make"], &["/bin/cc", "-o", "a.o"], "/", &[]).unwrap();
    assert_eq!((&*named.name, &*named.coordinator), ("xcc", "steps.toml"));
    for (toml, says) in [
        ("coordinator = 1\n", "m.toml:1:15: "),
        ("coordinator = [\"x\"]\nstep = []\n", "m.toml:1:1: a coordinator needs a [[step]]"),
        ("coordinator = [\"x\"]\n[[step]]\ncalled = []\n", "m.toml:2:1: a step needs a name"),
        ("[[step]]\ncalled = [{ as = \"x\" }]\n", "m.toml:1:1: no `coordinator` can have"),
        (
            "coordinator = [\"x\"]\n[[step]]\ncalled = [{ line = \"a\" }]\n",
            "m.toml:2:1: a pattern of a name needs a {}",
        ),
        (
            "coordinator = [\"x\"]\n[[step]]\ncalled = [{ line = \"{}\", program = true }]\n",
            "m.toml:2:1: a part of a name is one of",
        ),
        (
            "coordinator = [\"x\"]\n[[step]]\ncalled = [{ program = true, value = \"{}\" }]\n",
            "m.toml:2:1: only a variable",
        ),
    ] {
        let error = Rules::built_in().with_steps("m.toml", toml.as_bytes()).unwrap_err();
        assert!(error.to_string().starts_with(says), "{error} is not {says}");
    }
}

#[test]
fn tables_name_steps_by_command_directory_and_process() {
    let csv = "name,group,pid,begin,command,directory\n\
               a,g,,,run *,/w/a\n\
               b,,,,\"run x\",\n\
               c,,7,5.5,,\n\
               d,,9,,,\n";
    let of = |rules: &Rules, command: &[&str], cwd: &str| {
        step_with(rules, &["bash"], command, cwd, &[]).map(|named| named.name)
    };
    let rules = Rules::built_in().with_steps("t.csv", csv.as_bytes()).unwrap();
    assert_eq!(of(&rules, &["sh", "-c", "run y"], "/w/a").as_deref(), Some("c"));
    let without = csv.replace("c,,7,5.5,,\n", "c,,7,9.5,,\n");
    let rules = Rules::built_in().with_steps("t.csv", without.as_bytes()).unwrap();
    assert_eq!(of(&rules, &["sh", "-c", "run y"], "/w/a").as_deref(), Some("a"));
    assert_eq!(of(&rules, &["sh", "-c", " run x "], "/w/b").as_deref(), Some("b"));
    assert_eq!(of(&rules, &["run", "x"], "/w/b").as_deref(), Some("b"));
    assert_eq!(of(&rules, &["sh", "-c", "run y"], "/w/b"), None);

    let json = br#"{"stages": [
        {"name": "digi_1", "cmd": "echo *; cp a b", "cwd": "./tf1", "needs": ["sgn_1"], "labels": []},
        {"name": "digi_2", "cmd": "echo *; cp a b", "cwd": "./tf2", "needs": ["sgn_2"]}]}"#;
    let rules = Rules::built_in().with_steps("workflow.json", json).unwrap();
    let bash = ["bash", "-c", "echo *; cp a b"];
    assert_eq!(of(&rules, &bash, "/job/tf2").as_deref(), Some("digi_2"));
    assert_eq!(of(&rules, &bash, "/job/tf3"), None);
    // One that may run anywhere comes after those of a directory.
    let json = br#"[{"name": "any", "command": "c", "directory": "./"},
                    {"name": "one", "command": "c", "directory": "tf1"}]"#;
    let both = Rules::built_in().with_steps("steps.json", json).unwrap();
    assert_eq!(of(&both, &["sh", "-c", "c"], "/job/tf1").as_deref(), Some("one"));
    assert_eq!(of(&both, &["sh", "-c", "c"], "/job").as_deref(), Some("any"));
    let named = rules.steps.declared.named("digi_1").unwrap();
    assert_eq!(
        (named.group.as_deref(), named.needs.as_deref()),
        (Some("digi"), Some(&["sgn_1".to_owned()][..]))
    );
    let array = br#"[{"name": "n", "pid": 7, "needs": []}]"#;
    let rules = Rules::built_in().with_steps("steps.json", array).unwrap();
    assert_eq!(of(&rules, &["x"], "/").as_deref(), Some("n"));
}

#[test]
fn what_coordinators_write_names_steps() {
    let of = |file: &str, content: &str, command: &[&str], cwd: &str| {
        let rules = Rules::built_in().with_steps(file, content.as_bytes()).unwrap();
        let named =
            step_with(&rules, &["ninja"], command, cwd, &[]).filter(|it| it.by == NamedBy::Table);
        named.map(|named| (named.name, named.group.unwrap_or_default()))
    };
    let is = |name: &str, group: &str| Some((name.to_owned(), group.to_owned()));
    // As ninja 1.11 -t compdb prints it.
    let commands = r#"[{"directory": "/b", "command": "gcc -c a.c -o out/a.o", "file": "a.c", "output": "out/a.o"},
        {"directory": "/b", "command": "cd /b && gen > out/g*", "file": "", "output": "out/g*"},
        {"directory": "/b", "command": "", "file": "out/a.o", "output": "all"}]"#;
    let shell = |text| ["/bin/sh", "-c", text];
    let gcc = shell("gcc -c a.c -o out/a.o");
    assert_eq!(of("c.json", commands, &gcc, "/b"), is("out/a.o", "gcc"));
    assert_eq!(of("c.json", commands, &shell("cd /b && gen > out/g*"), "/b"), is("out/g*", "gen"));
    assert_eq!(of("c.json", commands, &gcc, "/c"), None);
    // An edge that is phony runs nothing.
    assert_eq!(of("c.json", commands, &["ninja", "-v"], "/b"), None);
    // As ctest 3.25 --show-only=json-v1 prints it; of a test whose program is missing, there is no command.
    let tests = r#"{"kind": "ctestInfo", "version": {"major": 1}, "tests": [
        {"config": "", "name": "not_built"},
        {"command": ["/b/t", "--gtest_filter=A.*"], "config": "", "name": "fast",
         "properties": [{"name": "WORKING_DIRECTORY", "value": "/b"}, {"name": "LABELS", "value": ["x"]}]},
        {"command": ["/bin/sh", "-c", "exit 1"], "name": "shell"},
        {"command": ["/b/env"], "name": "env1"}, {"command": ["/b/env"], "name": "env2"}]}"#;
    assert_eq!(of("t.json", tests, &["/b/t", "--gtest_filter=A.*"], "/b"), is("fast", ""));
    assert_eq!(of("t.json", tests, &["/b/t", "--gtest_filter=A.x"], "/b"), None);
    assert_eq!(of("t.json", tests, &["/bin/sh", "-c", "exit 1"], "/b"), is("shell", ""));
    // Which of two tests with one command it is, nobody knows.
    assert_eq!(of("t.json", tests, &["/b/env"], "/b"), None);
    // Nextflow's trace, of which only two columns are read.
    let trace = "task_id\thash\tnative_id\tname\tstatus\n1\t3f/a01b2c\t77\tRNASEQ:ALIGN (sample A)\tCOMPLETED\n";
    let run = ["bash", ".command.run"];
    let directory = "/w/work/3f/a01b2c99887766554433221100ffee";
    assert_eq!(
        of("trace.txt", trace, &run, directory),
        is("RNASEQ:ALIGN (sample A)", "RNASEQ:ALIGN")
    );
    assert_eq!(of("trace.txt", trace, &run, "/w/work/3f/b01b2c99887766554433221100ffee"), None);
}

#[test]
fn tables_say_what_is_wrong() {
    for (file, content, says) in [
        ("t.csv", "name,command\n,x\n", "a step needs a name"),
        ("t.csv", "name,command\nx,\n", "a step needs a pid, a command or a directory"),
        ("t.csv", "name,colour\nx,red\n", "unknown field `colour`"),
        ("t.json", "{\"stages\": 3}", "neither an array of steps, a workflow"),
        ("t.json", "[{\"name\": 3}]", "invalid type: integer"),
        ("t.json", "[", "EOF while parsing"),
        ("t.toml", "\u{0}", "m"),
        ("trace.txt", "hash\tname\nx\n", "expected field"),
        ("g.dot", "digraph x {\n}", "a graph without nodes"),
        ("m.txt", "# Make data base, printed on x\n", "no files in it"),
    ] {
        let error = Rules::built_in().with_steps(file, content.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(says), "{error} does not say {says}");
    }
}

proptest! {
    #[test]
    fn any_table_is_read_or_refused(file in "t\\.(csv|json|toml)", content in "([a-z,\"{}\\[\\]:=\n*]|name|pid|-1|stages){0,60}") {
        let _ = Rules::generic().with_steps(&file, content.as_bytes());
    }

    #[test]
    fn any_exec_is_a_step_or_none(text in "[ a-c;&|\n=({'\"o-]{0,60}", cwd in "[/a-c]{0,9}") {
        let _ = step(&["make"], &["/bin/sh", "-c", &text], &cwd);
    }
}

#[test]
fn long_names_are_cut_between_characters() {
    let long = "\u{e4}".repeat(NAME_BYTES_MAX);
    assert_eq!(name_of(long.as_bytes()).unwrap(), "\u{e4}".repeat(NAME_BYTES_MAX / 2));
    let odd = format!("x{long}");
    let cut = name_of(odd.as_bytes()).unwrap();
    assert_eq!((cut.len(), cut.contains('\\')), (NAME_BYTES_MAX - 1, false));
    assert_eq!(name_of(&[0x80; 300]).unwrap().len(), 4 * (NAME_BYTES_MAX - 3));
    assert_eq!((name_of(b" \n"), name_of(b"a ").as_deref()), (None, Some("a")));
}

/// The shell gets more than the record has: what is set for every command, and that of an environment.
#[test]
fn shell_commands_of_snakemake_are_known_by_their_records() {
    let record = |output: &str, command: &str, hash: i64| {
        SnakemakeRecord {
        path: base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE, output).into(),
        content: serde_json::json!({ "rule": "sort", "input": ["a.raw"], "shellcmd": command, "job_hash": hash })
            .to_string()
            .into(),
    }
    };
    let command = "\n        sort a.raw > a.sorted 2> log\n        echo \"done\"\n        ";
    let records = [
        record("a.sorted", command, 1),
        record("x", "touch x", 2),
        record("same", "touch -c y", 3),
        record("again", "touch -c y", 4),
        record("both", "make z; touch x", 5),
    ];
    let rules = Rules::built_in().with_snakemake("metadata", &records).unwrap();
    let named = |by: &[&str], text: &str| {
        let named = step_with(&rules, by, &["/usr/bin/bash", "-c", text], "/w", &[])?;
        Some((named.by, named.name, named.group.unwrap_or_default()))
    };
    let main = ["python3", "/usr/bin/snakemake", "-j2"];
    let is = |name: &str| Some((NamedBy::Table, name.to_owned(), "sort".to_owned()));
    assert_eq!(
        named(&main, &format!("set -euo pipefail;  {}", command.trim_end())),
        is("a.sorted")
    );
    assert_eq!(named(&main, "source activate '/env' && set -euo pipefail; touch x"), is("x"));
    let by = |named: Option<(NamedBy, String, String)>| named.map(|named| named.0);
    // A command that ends like another one.
    assert_eq!(named(&main, "set -euo pipefail; make z; touch x"), is("both"));
    assert_eq!(by(named(&main, "set -euo pipefail; make v; touch x")), Some(NamedBy::Rule));
    // Commands that are equal are not told apart.
    assert_eq!(by(named(&main, "set -euo pipefail;  touch -c y")), Some(NamedBy::Rule));
    assert_eq!(by(named(&main, "set -euo pipefail;  touch xy")), Some(NamedBy::Rule));
    // A Snakemake that runs one job for another one is that job.
    let single = ["python3", "-m", "snakemake", "--target-jobs", "sort:n=a", "--cores", "2"];
    assert_eq!(named(&single, "set -euo pipefail;  touch x"), None);
}
