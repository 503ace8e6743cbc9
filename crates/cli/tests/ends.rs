//! Processes that fail or are killed are counted and named.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Recorder, fixture, proctrace, report, text, u64_of};

#[test]
fn what_failed_and_what_was_killed_is_counted_and_named() {
    let killed = fixture("killed");
    let killed = killed.display();
    // `killed` exits with its child's waitpid(2) status: the signal, and 0x80 with a core dump.
    let script = format!(
        "{killed} 11; echo $?; {killed} 9; {killed} 9; grep -q x /dev/null; grep -q y /dev/null; \
         ls /no/such/file; /bin/true; exit 7"
    );
    let recorded = Recorder::new().run(["sh", "-c", &script]);
    assert_eq!(recorded.code(), 7, "{}", recorded.stderr());
    let segv = String::from_utf8_lossy(&recorded.output.stdout).trim().parse::<u64>().unwrap();
    let cores = u64::from(segv == 11 + 128);
    let ends = &report(&recorded.trace())["ends"];
    let of = |key: &str| u64_of(&ends[key]);
    assert_eq!((of("signalled"), of("failed")), (3, 7), "{ends}");
    assert_eq!((of("succeeded"), of("unknown")), (1, 0), "{ends}");
    assert_eq!(of("core_dumps"), cores);

    let all = ends["by_program"].as_array().unwrap();
    let lines: Vec<String> = all
        .iter()
        .map(|end| {
            format!("{} {} {}", text(&end["program"]), text(&end["how"]), u64_of(&end["processes"]))
        })
        .collect();
    assert_eq!(lines[..2], ["killed SIGSEGV 1", "killed SIGKILL 2"]);
    assert_eq!(*lines.last().unwrap(), "grep exit 1 2");
    let mut between = lines[2..lines.len() - 1].to_vec();
    between.sort();
    let segv = format!("killed exit {segv} 1");
    let mut expected = [segv.as_str(), "killed exit 9 2", "ls exit 2 1", "sh exit 7 1"];
    expected.sort_unstable();
    assert_eq!(between, expected);
    assert_eq!(all[0]["example_parent"], "killed");
    assert_eq!(u64_of(&all[0]["core_dumps"]), cores);
    // The pid is that of the process killed by the signal.
    let events = common::Events::of(&recorded.trace());
    assert_eq!(events.end_of(&all[0]["example_pid"])["signal"], 11);

    let shown = proctrace().arg("report").arg(recorded.trace()).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("Ends     3 killed by a signal (killed SIGSEGV"), "{shown}");
    assert!(shown.contains("7 exited with a non-zero status ("), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let section = proctrace()
        .args(["report", "--section", "ends", "--format", "csv"])
        .arg(recorded.trace())
        .output()
        .unwrap();
    let csv = String::from_utf8(section.stdout).unwrap();
    assert!(csv.contains("killed,SIGKILL,2,0,"), "{csv}");
}

#[test]
fn a_job_without_failures_has_no_line_for_them() {
    let recorded = Recorder::new().run(["sh", "-c", "ls / > /dev/null; exit 0"]);
    recorded.sound(0);
    let shown = proctrace().arg("report").arg(recorded.trace()).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(!shown.contains("Ends"), "{shown}");
}
