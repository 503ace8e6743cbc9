//! The recorder without the analysis, as anybody uses it: it records by ptrace, marks, shows and dumps what programs declare, and
//! says of what it does not have where that is.

use crate::common::{declared, recorder, renames};

#[test]
fn declared_processes_are_recorded() {
    declared("ptrace");
}

#[test]
fn renames_of_files_are_recorded() {
    renames("ptrace");
}

#[test]
fn what_only_the_analysis_has_is_named() {
    let refused = recorder().args(["report", "job.ptrace"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        said.contains("it is a command of proctrace; proctrace-recorder only records"),
        "{said}"
    );
    // A script must not take it for the command's own status.
    let unknown = recorder().args(["record", "--summary", "lake", "--", "true"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(125));
}

#[test]
fn a_view_that_is_not_here_is_said_to_be_elsewhere() {
    let refused = recorder().args(["record", "--live", "--", "true"]).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(125), "{said}");
    assert!(said.contains("--progress prints lines"), "{said}");
    let help = recorder().args(["record", "--help"]).output().unwrap();
    assert!(!String::from_utf8(help.stdout).unwrap().contains("--live"));
    let refused = recorder().args(["import", "strace", "job.log"]).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("it is a command of proctrace"), "{said}");
}

#[test]
fn only_what_proctrace_has_is_said_to_be_there() {
    // A word below a command is none of proctrace.
    for words in [["help", "report"], ["help", "import"], ["help", "nothing"]] {
        let refused = recorder().args(words).output().unwrap();
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(!said.contains("command of proctrace"), "{said}");
    }
}
