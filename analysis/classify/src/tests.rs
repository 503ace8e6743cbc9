//! Tests of how the packs classify execs that occur in practice.

use proctrace_findings::Class;
use proctrace_wire::Exec;
use proctrace_wire::layout::ExecFixed;
use zerocopy::FromZeros;

use super::*;

fn argv(arguments: &[&str]) -> Vec<u8> {
    arguments.iter().flat_map(|argument| [argument.as_bytes(), b"\0"].concat()).collect()
}

/// An exec of one process, or a process that was forked and called none.
#[derive(Debug, Clone, Copy)]
struct Made {
    /// Number of the exec in which it was forked.
    spawned_in: Option<usize>,
    /// Number of the exec whose program it ran last.
    run: usize,
    program: u32,
    role: Option<u32>,
}

/// Processes by number; the exec of a process has its number.
struct Processes(Vec<Made>);

impl Runs for Processes {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn spawner(&self, run: u32) -> Option<u32> {
        self.0[run as usize].spawned_in.map(|at| self.0[at].program)
    }

    fn set_program(&mut self, run: u32, program: u32) {
        self.0[run as usize].program = program;
    }

    fn process(&self, run: u32) -> u32 {
        run
    }

    fn set_role(&mut self, process: u32, run: u32, role: u32) {
        let process = &mut self.0[process as usize];
        if process.run == run as usize {
            process.role = Some(role);
        }
    }
}

/// One exec: path, interpreter of `#!`, file, arguments.
type Given<'a> = (&'a str, &'a str, &'a str, &'a [&'a str]);

/// The classification of execs, made by one process each, with their roles. A spawner is given as
/// the index of another exec.
fn classify(rules: &Rules, execs: &[(Given<'_>, Option<usize>)]) -> Vec<(Program, Option<String>)> {
    let mut examiner = Examiner::new(rules);
    let mut processes = Vec::new();
    for (at, ((path, interp, exe, arguments), spawned_in)) in execs.iter().enumerate() {
        let argv = argv(arguments);
        examiner.exec(&Exec {
            fixed: ExecFixed::new_zeroed(),
            path: path.as_bytes(),
            interp: interp.as_bytes(),
            exe: exe.as_bytes(),
            cwd: b"/work",
            argv: &argv,
        });
        processes.push(Made { spawned_in: *spawned_in, run: at, program: 0, role: None });
    }
    let mut programs = Programs::default();
    let mut processes = Processes(processes);
    let (_, roles) = examiner.resolve(&mut processes, &mut programs);
    let programs = programs.into_inner();
    let roles = roles.into_inner();
    let found = processes.0.iter().map(|process| {
        let role = process.role.map(|role| roles[role as usize].clone());
        (programs[process.program as usize].clone(), role)
    });
    found.collect()
}

fn generic(path: &str, interp: &str, exe: &str, arguments: &[&str]) -> Program {
    classify(&Rules::generic(), &[((path, interp, exe, arguments), None)]).remove(0).0
}

fn of(class: Class, group: &str, name: &str) -> Program {
    Program { class, group: group.into(), name: name.into() }
}

fn command(group: &str, name: &str) -> Program {
    of(Class::Command, group, name)
}

fn framework(group: &str, name: &str) -> Program {
    of(Class::Framework, group, name)
}

#[path = "../../../fuzz/harness/rules.rs"]
mod harness;
#[path = "../../../fuzz/harness/regressions.rs"]
mod regressions;

#[test]
fn regressions_do_not_crash() {
    regressions::run("rules", harness::run);
}

#[test]
fn commands_of_the_system_have_a_group() {
    assert_eq!(generic("/bin/sed", "", "/usr/bin/sed", &["sed"]), command("text", "sed"));
    assert_eq!(generic("/bin/sh", "", "/usr/bin/dash", &["sh"]), command("shell", "sh"));
    for (group, name) in [
        ("text", "xzcat"),
        ("text", "hexdump"),
        ("file", "sha512sum"),
        ("file", "mountpoint"),
        ("info", "getopt"),
        ("process", "setpriv"),
    ] {
        let path = format!("/usr/bin/{name}");
        assert_eq!(generic(&path, "", &path, &[name]), command(group, name));
        // As something of a user may be called.
        let own = format!("/home/me/bin/{name}");
        assert_eq!(generic(&own, "", &own, &[name]), Program::unknown(name));
    }
    let cc1 = "/usr/lib/gcc/x/12/cc1";
    assert_eq!(generic(cc1, "", cc1, &["cc1"]), command("compiler", "cc1"));
    let gcc = "/usr/bin/x86_64-linux-gnu-gcc-12";
    assert_eq!(generic("/usr/bin/gcc", "", gcc, &["gcc"]), command("compiler", "gcc"));
    assert_eq!(generic(gcc, "", gcc, &[]), command("compiler", "x86_64-linux-gnu-gcc-12"));
    // A toolchain that belongs to a user is not of the system, but compiles, too.
    let rustc = "/opt/toolchain/bin/rustc";
    let of_user = Program { group: "compiler".into(), ..Program::unknown("rustc") };
    assert_eq!(generic(rustc, "", rustc, &["rustc"]), of_user);
}

#[test]
fn the_same_name_elsewhere_is_a_program() {
    let own = "/opt/x/bin/sed";
    assert_eq!(generic(own, "", own, &["sed"]), Program::unknown("sed"));
    let sim = generic("./o2-sim", "", "/opt/o2/bin/o2-sim", &["o2-sim"]);
    assert_eq!(sim, Program::unknown("o2-sim"));
}

#[test]
fn scripts_go_by_their_own_name() {
    let dash = "/usr/bin/dash";
    for (given, name) in [
        (("./prepare", "/bin/sh", dash, &["./prepare", "--prefix=/x"][..]), "prepare"),
        (("/bin/bash", "", "/usr/bin/bash", &["bash", "-e", "/job/run.sh", "x"]), "run.sh"),
        (("/usr/bin/python3", "", "/usr/bin/python3.11", &["python3", "-u", "run.py"]), "run.py"),
        (("/usr/bin/python3", "", "/usr/bin/python3.11", &["python3", "-m", "pytest"]), "pytest"),
    ] {
        let (path, interp, exe, argv) = given;
        assert_eq!(generic(path, interp, exe, argv), Program::unknown(name));
    }
    let ldd = generic("/usr/bin/ldd", "/bin/bash", "/usr/bin/bash", &["ldd", "x"]);
    assert_eq!(ldd, command("info", "ldd"));
}

/// Whoever draws other characters in every run is one program, and matches rules by the name that it has.
#[test]
fn scripts_with_a_random_name_are_one_program() {
    let python = ("/usr/bin/python3", "", "/usr/bin/python3.11");
    for copy in ["tmp7r8eesgm", "tmp_x0vjk2d", "tmpqwertyui"] {
        let script = format!("/w/.snakemake/scripts/{copy}.plot.py");
        let program = generic(python.0, python.1, python.2, &["python3", &script]);
        assert_eq!(program, Program::unknown("tmp#.plot.py"));
    }
    let (own, dash) = ("/tmp/tmp.aB3xQ9zzT1", "/usr/bin/dash");
    assert_eq!(generic(own, "/bin/sh", dash, &[own]), Program::unknown("tmp.#"));
    let mine = "[[rule]]\ngroup = \"plots\"\nname = [\"tmp*.plot.py\"]\n";
    let rules = Rules::built_in().with("mine.toml", mine).unwrap();
    let argv = ["python3", "/w/.snakemake/scripts/tmp7r8eesgm.plot.py"];
    let got = classify(&rules, &[((python.0, python.1, python.2, &argv), None)]);
    assert_eq!(got[0].0, of(Class::Program, "plots", "tmp#.plot.py"));
    let own = generic(python.0, python.1, python.2, &["python3", "/w/tmp_plot.py"]);
    assert_eq!(own, Program::unknown("tmp_plot.py"));
}

#[test]
fn java_is_what_it_runs() {
    let java = "/usr/lib/jvm/java-17-openjdk-amd64/bin/java";
    for (arguments, name) in [
        (&["java", "-Xmx1g", "-jar", "/opt/lib/x.jar", "a"][..], "x.jar"),
        (&["java", "-cp", "a.jar:b.jar", "org.apache.Main"], "org.apache.Main"),
        (&["java", "-p", "mods", "-m", "org.apache/org.apache.Main"], "org.apache.Main"),
        (&["java", "@arguments"], "java"),
        (&["java", "-version"], "java"),
    ] {
        assert_eq!(generic(java, "", java, arguments), Program::unknown(name), "{arguments:?}");
    }
    let helper = "/usr/lib/jvm/java-17-openjdk-amd64/lib/jspawnhelper";
    assert_eq!(
        generic(helper, "", helper, &[helper, "17:19"]),
        command("launcher", "jspawnhelper")
    );
}

#[test]
fn tools_that_build_and_test_have_a_group_wherever_they_lie() {
    let of_group = |group: &str, name: &str| of(Class::Program, group, name);
    for (file, expected) in [
        ("/home/anna/.rustup/toolchains/stable/bin/rustc", of_group("compiler", "rustc")),
        ("/home/anna/.cargo/bin/cargo", of_group("compiler", "cargo")),
        ("/home/anna/.cargo/bin/cargo-nextest", of_group("compiler", "cargo-nextest")),
        ("/opt/venv/bin/ninja", of_group("compiler", "ninja")),
        ("/opt/cmake/bin/cmake", of_group("compiler", "cmake")),
        ("/opt/cmake/bin/ctest", of_group("test", "ctest")),
        ("/usr/bin/ctest", command("test", "ctest")),
        ("/usr/bin/ninja", command("compiler", "ninja")),
        ("/w/node_modules/@esbuild/linux-x64/bin/esbuild", of_group("javascript", "esbuild")),
        ("/w/bin/cargonaut", Program::unknown("cargonaut")),
    ] {
        assert_eq!(generic(file, "", file, &[file]), expected);
    }
    let node = "/usr/bin/node";
    for (script, expected) in [
        ("/usr/lib/node_modules/npm/bin/npm-cli.js", of_group("javascript", "npm-cli.js")),
        ("/usr/bin/npx", of_group("javascript", "npx")),
        ("node_modules/.bin/tsc", of_group("javascript", "tsc")),
        ("node_modules/.bin/eslint", of_group("javascript", "eslint")),
        ("node_modules/vite/bin/vite.js", of_group("javascript", "vite.js")),
        ("node_modules/.bin/webpack", of_group("javascript", "webpack")),
        ("/usr/share/yarn/bin/yarn.js", of_group("javascript", "yarn.js")),
        ("build.js", Program::unknown("build.js")),
    ] {
        assert_eq!(generic(node, "", node, &["node", script]), expected);
    }
    assert_eq!(generic(node, "", node, &["node", "-e", "1"]), of_group("javascript", "node"));
}

#[test]
fn text_given_to_a_shell_is_the_shell() {
    for arguments in [&["sh", "-c", "sed x"][..], &["sh", "-ec", "x"], &["sh"], &["sh", "-"]] {
        let got = generic("/bin/sh", "", "/usr/bin/dash", arguments);
        assert_eq!(got, command("shell", "sh"), "{arguments:?}");
    }
    let perl = generic("/usr/bin/perl", "", "/usr/bin/perl", &["perl", "-e", "print 1;"]);
    assert_eq!(perl, Program::unknown("perl"));
}

#[test]
fn a_descriptor_goes_by_the_file_behind_it() {
    assert_eq!(generic("/dev/fd/5", "", "/opt/tool", &["tool"]), Program::unknown("tool"));
}

/// A polling shell of O2DPG, what it starts, and what its task starts.
#[test]
fn the_polls_of_a_taskwrapper_are_monitoring() {
    let bash = ("/bin/bash", "", "/usr/bin/bash");
    let wrapper = ". /o2/jobutils.sh; taskwrapper sgnsim_1.log o2-sim -n 5";
    let wrapper = ["bash", "-c", wrapper];
    let runner = ["python3", "/dpg/o2_dpg_workflow_runner.py"];
    let ps = ("/bin/ps", "", "/usr/bin/ps", &["ps", "-p", "7"][..]);
    let sed = ("/bin/sed", "", "/usr/bin/sed", &["sed", "-n"][..]);
    let probe = ["sh", "-c", "LD_DEBUG=libs LD_PRELOAD=DOESNOTEXIST ls /tmp/DOESNOTEXIST | sed x"];
    let sim = "/o2/bin/o2-sim";
    let runner_sim = "/o2/bin/o2-sim-device-runner";
    let got = classify(
        &Rules::built_in(),
        &[
            (("/usr/bin/python3", "", "/usr/bin/python3.11", &runner), None),
            ((bash.0, bash.1, bash.2, &wrapper), Some(0)),
            (ps, Some(1)),
            ((sim, "", sim, &["o2-sim", "-n", "5"]), Some(1)),
            ((runner_sim, "", runner_sim, &["x", "--id", "worker3"]), Some(3)),
            (("/bin/sh", "", "/usr/bin/dash", &probe), Some(3)),
            (sed, Some(5)),
            (sed, Some(3)),
        ],
    );
    let (programs, roles): (Vec<_>, Vec<_>) = got.into_iter().unzip();
    assert_eq!(
        programs,
        [
            framework("o2 runner", "o2_dpg_workflow_runner.py"),
            command("o2 task", "taskwrapper"),
            command("monitoring", "ps"),
            framework("o2 driver", "o2-sim"),
            framework("o2 sim", "o2-sim-device-runner"),
            command("root start-up", "sh"),
            command("root start-up", "sed"),
            command("text", "sed"),
        ]
    );
    let role = |name: &str| Some(name.to_owned());
    assert_eq!(roles, [None, role("sgnsim_1"), None, None, role("worker3"), None, None, None]);
}

#[test]
fn drivers_and_devices_are_told_apart() {
    let tpc = "/o2/bin/o2-tpc-reco-workflow";
    let got = classify(
        &Rules::built_in(),
        &[
            ((tpc, "", tpc, &["o2-tpc-reco-workflow", "--run"]), None),
            ((tpc, "", tpc, &["o2-tpc-reco-workflow", "--id", "tpc-tracker", "--run"]), Some(0)),
            ((tpc, "", tpc, &["o2-tpc-reco-workflow", "--id=writer"]), Some(0)),
        ],
    );
    assert_eq!(got[0], (framework("o2 driver", "o2-tpc-reco-workflow"), None));
    let device = |role: &str| (framework("o2 reco", "o2-tpc-reco-workflow"), Some(role.to_owned()));
    assert_eq!(got[1..], [device("tpc-tracker"), device("writer")]);
}

#[test]
fn every_experiment_knows_its_own() {
    let python = ("/usr/bin/python3", "", "/usr/bin/python3.11");
    for (name, expected) in [
        ("/x/Reco_tf.py", framework("athena transform", "Reco_tf.py")),
        ("/x/athena.py", framework("athena", "athena.py")),
        ("/x/gaudirun.py", framework("gaudi", "gaudirun.py")),
        ("/x/cmsDriver.py", framework("cms driver", "cmsDriver.py")),
    ] {
        let arguments = ["python", "-tt", name];
        let given = ((python.0, python.1, python.2, &arguments[..]), None);
        assert_eq!(classify(&Rules::built_in(), &[given])[0].0, expected);
        assert_eq!(classify(&Rules::generic(), &[given])[0].0.class, Class::Program);
    }
    let given = (("cmsRun", "", "/cms/bin/cmsRun", &["cmsRun", "x.py"][..]), None);
    assert_eq!(classify(&Rules::built_in(), &[given])[0].0, framework("cmsrun", "cmsRun"));
}

#[test]
fn generators_are_known_wherever_they_lie() {
    let (python, sherpa) = ("/usr/bin/python3.11", "/opt/sherpa/bin/Sherpa");
    let mg5 = "/opt/mg5/bin/mg5_aMC";
    let madevent = "/job/SubProcesses/P1_gg_ttx/madevent";
    for (given, group, name) in [
        ((sherpa, "", sherpa, &["Sherpa", "-f", "Run.dat"][..]), "sherpa", "Sherpa"),
        ((mg5, "/usr/bin/python3", python, &["python3", mg5]), "madgraph", "mg5_aMC"),
        ((python, "", python, &["python3", mg5, "ttbar.mg5"]), "madgraph", "mg5_aMC"),
        (("../madevent", "", madevent, &["../madevent"]), "madgraph", "madevent"),
    ] {
        let expected = of(Class::Program, group, name);
        assert_eq!(classify(&Rules::built_in(), &[(given, None)])[0].0, expected);
    }
    let config = "/opt/sherpa/bin/Sherpa-config";
    assert_eq!(generic(config, "", config, &["Sherpa-config"]), Program::unknown("Sherpa-config"));
    let script = ["python3", "/opt/mg5/bin/mg5_aMC.py"];
    assert_eq!(generic(python, "", python, &script), Program::unknown("mg5_aMC.py"));
    let cat = generic("/bin/cat", "", "/usr/bin/cat", &["cat", "Sherpa", "mg5_aMC"]);
    assert_eq!(cat, command("text", "cat"));
}

#[test]
fn a_pack_applies_only_where_a_program_of_it_occurs() {
    let java = (("/usr/bin/java", "", "/usr/bin/java", &["java", "alien.JobAgent"][..]), None);
    let sim = (("/o2/o2-sim", "", "/o2/o2-sim", &["o2-sim"][..]), None);
    let agent = "alien.JobAgent";
    assert_eq!(classify(&Rules::built_in(), &[java])[0].0, Program::unknown(agent));
    let asked = Rules::built_in().with_pack("alice-o2").unwrap();
    assert_eq!(classify(&asked, &[java])[0].0, framework("jalien", agent));
    // Even if that program runs later.
    assert_eq!(classify(&Rules::built_in(), &[java, sim])[0].0, framework("jalien", agent));
}

#[test]
fn a_users_rules_come_first() {
    let mine = "[[rule]]\ngroup = \"mine\"\nname = [\"sed\"]\nargv = [\"* -n*\"]\n\
                [[rule]]\ngroup = \"scripts\"\ninterpreter = [\"bash\"]\n\
                [[rule]]\ngroup = \"opt\"\nclass = \"framework\"\nfile = [\"/opt/*\"]\nas = \"tool\"\n";
    let rules = Rules::built_in().with("mine.toml", mine).unwrap();
    let got = classify(
        &rules,
        &[
            (("/bin/sed", "", "/usr/bin/sed", &["sed", "-n", "x"]), None),
            (("/bin/sed", "", "/usr/bin/sed", &["sed", "x"]), None),
            (("/bin/bash", "", "/usr/bin/bash", &["bash", "job.sh"]), None),
            (("o2-sim", "", "/opt/o2/o2-sim", &["o2-sim"]), None),
        ],
    );
    let programs: Vec<Program> = got.into_iter().map(|(program, _)| program).collect();
    // The class is the same as without that rule.
    assert_eq!(
        programs,
        [
            command("mine", "sed"),
            command("text", "sed"),
            of(Class::Program, "scripts", "job.sh"),
            framework("opt", "tool"),
        ]
    );
}

/// Roles of processes forked after one exec that never called exec themselves, by what is recorded
/// of them.
fn roles_of_forked(
    rules: &Rules,
    name: &str,
    tell: impl Fn(&mut Examiner<'_>, u32),
) -> Vec<Option<String>> {
    let mut examiner = Examiner::new(rules);
    let argv = argv(&["python", name]);
    examiner.exec(&Exec {
        fixed: ExecFixed::new_zeroed(),
        path: b"/usr/bin/python3",
        interp: b"",
        exe: b"/usr/bin/python3",
        cwd: b"/work",
        argv: &argv,
    });
    (1..4).for_each(|forked| tell(&mut examiner, forked));
    let made =
        |at: usize| Made { spawned_in: (at > 0).then_some(0), run: 0, program: 0, role: None };
    let mut processes = Processes((0..4).map(made).collect());
    let (_, roles) = examiner.resolve(&mut processes, &mut Programs::default());
    let roles = roles.into_inner();
    processes.0.iter().map(|made| made.role.map(|role| roles[role as usize].clone())).collect()
}

#[test]
fn forked_workers_are_known_by_their_directory() {
    let directories = ["/work", "/work/mp/worker_12", "/work/mp/shared_writer"];
    let roles = roles_of_forked(&Rules::built_in(), "athena.py", |examiner, process| {
        let directory = directories[process as usize - 1];
        examiner.directory(process, Some(0), directory.as_bytes());
    });
    assert_eq!(roles, [None, None, Some("worker 12".into()), Some("SharedWriter".into())]);
}

#[test]
fn forked_workers_are_known_by_the_name_they_take() {
    let mine = "[[rule]]\ngroup = \"pool\"\nname = [\"pool.py\"]\n\
                roles = [{ rename = \"eater-{}\", as = \"eater {}\" }]\n";
    let rules = Rules::built_in().with("mine.toml", mine).unwrap();
    let roles = roles_of_forked(&rules, "pool.py", |examiner, process| {
        examiner.rename(process, Some(0), &format!("eater-{process}"));
        if process == 3 {
            // A later name that does not match the rule leaves the role unchanged.
            examiner.rename(process, Some(0), "python3");
        }
        // In another program run it had a different name.
        examiner.rename(process, None, "eater-9");
    });
    let role = |text: &str| Some(text.to_owned());
    assert_eq!(roles, [None, role("eater 1"), role("eater 2"), role("eater 3")]);
}

#[test]
fn every_stage_of_o2_has_its_group() {
    for (name, group) in [
        ("o2-sim-hit-merger-runner", "o2 sim"),
        ("o2-sim-primary-server-device-runner", "o2 sim"),
        ("o2-sim-serial", "o2 sim"),
        ("o2-sim-digitizer-workflow", "o2 digi"),
        ("o2-sim-mctracks-to-aod", "o2 aod"),
        ("o2-aod-producer-workflow", "o2 aod"),
        ("o2-its-reco-workflow", "o2 reco"),
        ("o2-tpc-reco-workflow", "o2 reco"),
        ("o2-tof-entropy-encoder-workflow", "o2 reco"),
        ("o2-tpcits-match-workflow", "o2 match"),
        ("o2-tof-matcher-workflow", "o2 match"),
        ("o2-primary-vertexing-workflow", "o2 vertex"),
        ("o2-secondary-vertexing-workflow", "o2 vertex"),
        ("o2-ccdb-downloadccdbfile", "o2 ccdb"),
        ("o2-calibration-tof-calib-workflow", "o2 calib"),
        ("o2-tpc-cluster-qc", "o2 qc"),
        ("o2-eve", "o2 other"),
    ] {
        let path = format!("/o2/bin/{name}");
        let given = ((&*path, "", &*path, &[name, "--id", "x"][..]), None);
        let (program, _) = classify(&Rules::built_in(), &[given]).remove(0);
        assert_eq!(program, framework(group, name));
    }
}
