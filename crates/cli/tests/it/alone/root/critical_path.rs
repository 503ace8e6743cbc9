//! The critical path of real commands, which is known by construction.

use std::path::Path;

use crate::common::{Events, Recorded, Recorder, cpus, proctrace, report, text, u64_of};
use serde_json::Value;

const S: u64 = 1_000_000_000;

fn record(script: &str) -> Recorded {
    let recorded = Recorder::new().run(["/bin/sh", "-c", script]);
    recorded.sound(0);
    recorded
}

/// The rows of a table of the section.
fn rows(trace: &Path, name: &str) -> Vec<Value> {
    let mut command = proctrace();
    command.args(["report", "--section", "critical-path", "--format", "json"]).arg(trace);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tables: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let table = tables.iter().find(|table| table["name"] == name).unwrap();
    table["rows"].as_array().unwrap().clone()
}

fn sum(rows: &[Value], column: &str) -> u64 {
    rows.iter().map(|row| u64_of(&row[column])).sum()
}

/// The wall time, after checking that every table accounts for all of it without gap or overlap.
fn wall_ns(trace: &Path) -> u64 {
    let path = &report(trace)["critical_path"];
    let wall_ns = u64_of(&path["wall_ns"]);
    let by_kind = ["running_ns", "waiting_for_cpu_ns", "waiting_ns"];
    assert_eq!(by_kind.map(|kind| u64_of(&path[kind])).iter().sum::<u64>(), wall_ns);
    for table in ["path_phases", "path_programs", "path_categories", "path_stretches"] {
        assert_eq!(sum(&rows(trace, table), "path_ns"), wall_ns, "{table}");
    }
    let parts = rows(trace, "critical_path");
    let mut now_ns = 0;
    for part in &parts {
        assert_eq!(u64_of(&part["begin_ns"]), now_ns, "{part}");
        now_ns += u64_of(&part["duration_ns"]);
    }
    assert_eq!(now_ns, wall_ns);
    wall_ns
}

/// The arguments of the `sleep`s on the path, in order of time.
fn sleeps(trace: &Path) -> Vec<String> {
    let events = Events::of(trace);
    let argument = |pid: &Value| {
        let is_sleep = |exec: &&Value| exec["pid"] == *pid && exec["argv"][0] == "/bin/sleep";
        let exec = events.kind("exec").find(is_sleep);
        text(&exec.unwrap()["argv"][1]).to_owned()
    };
    let stretches = rows(trace, "path_stretches");
    let of_sleep = stretches.iter().filter(|row| row["program"] == "sleep");
    of_sleep.map(|row| argument(&row["pid"])).collect()
}

/// Time on the path that a program waited for a timer.
fn timers_ns(trace: &Path, program: &str) -> u64 {
    let parts = rows(trace, "critical_path");
    let timers = parts.iter().filter(|part| part["waits_for"] == "timer");
    timers.filter(|part| part["program"] == program).map(|part| u64_of(&part["duration_ns"])).sum()
}

#[test]
fn what_a_script_waits_for_is_on_its_path_and_nothing_else() {
    // The first is not waited for; the third is, by the other end of the pipe.
    // Where the machine stands still meanwhile, as virtual ones do, the order may be another one.
    let (recorded, wall_ns) = (0..10)
        .map(|_| {
            let recorded = record(
                "/bin/sleep 0.11 & /bin/sleep 0.3; \
                 (/bin/sleep 0.2; echo x) | (read x; /bin/sleep 0.15; :); :",
            );
            let wall_ns = wall_ns(&recorded.trace());
            (recorded, wall_ns)
        })
        .find(|(_, wall_ns)| *wall_ns < 8 * S / 10)
        .expect("0.65 s of sleep end within 0.8 s");
    let trace = recorded.trace();
    assert_eq!(sleeps(&trace), ["0.3", "0.2", "0.15"]);
    // A timer runs from before the process has left its CPU.
    let slept_ns = timers_ns(&trace, "sleep");
    assert!((6 * S / 10..=wall_ns).contains(&slept_ns), "{slept_ns} of {wall_ns}");
    let phases = rows(&trace, "path_phases");
    let longest = phases.iter().map(|phase| u64_of(&phase["path_ns"])).max().unwrap();
    assert!(longest >= 27 * S / 100, "{phases:?}");
}

#[test]
fn only_the_last_of_several_at_once_is_on_the_path() {
    let recorded = record("/bin/sleep 0.1 & /bin/sleep 0.4 & /bin/sleep 0.2 & wait");
    let trace = recorded.trace();
    wall_ns(&trace);
    assert_eq!(sleeps(&trace), ["0.4"]);
    // The timer runs from before the process has left its CPU.
    assert!(timers_ns(&trace, "sleep") >= 35 * S / 100);
}

#[test]
fn without_the_straggler_a_command_is_shorter_by_what_the_path_says() {
    // The least of a few: whatever else the machine does only adds.
    let least = |straggler: &str| -> (u64, u64) {
        let script = format!("for s in 0.1 0.1 {straggler} 0.1; do /bin/sleep $s & done; wait");
        let runs = (0..4).map(|_| {
            let recorded = record(&script);
            (wall_ns(&recorded.trace()), timers_ns(&recorded.trace(), "sleep"))
        });
        runs.min().unwrap()
    };
    let (with_ns, slept_with_ns) = least("0.4");
    let (without_ns, slept_without_ns) = least("0.1");
    let predicted_ns = slept_with_ns.abs_diff(slept_without_ns);
    assert!(slept_with_ns > slept_without_ns && predicted_ns >= S / 4, "{predicted_ns}");
    // Half of the straggler.
    let wrong_ns = with_ns.abs_diff(without_ns).abs_diff(predicted_ns);
    assert!(wrong_ns < 3 * S / 20, "{with_ns} with, {without_ns} without, {predicted_ns} said");
}

#[test]
fn a_command_that_is_starved_waits_for_a_cpu() {
    // Both on one CPU, the first of them with the least weight: it waits as long as the other runs.
    let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let script = format!("(nice -n 19 /bin/sh -c '{spin}') & /bin/sh -c '{spin}; {spin}'; wait");
    let recorded = Recorder::new().run(["taskset", "-c", &cpus()[0], "/bin/sh", "-c", &script]);
    recorded.sound(0);
    let trace = recorded.trace();
    wall_ns(&trace);
    let programs = rows(&trace, "path_programs");
    assert!(sum(&programs, "path_waiting_for_cpu_ns") > 0, "{programs:?}");
}

#[test]
fn without_waits_nothing_is_invented() {
    let recorded =
        Recorder::new().option(["--waits", "none"]).run(["/bin/sh", "-c", "/bin/sleep 0.1; :"]);
    recorded.sound(0);
    let trace = recorded.trace();
    assert_eq!(report(&trace)["critical_path"], Value::Null);
    assert_eq!(rows(&trace, "critical_path"), [] as [Value; 0]);
    let mut command = proctrace();
    let output =
        command.args(["report", "--section", "critical-path"]).arg(&trace).output().unwrap();
    let says = String::from_utf8(output.stdout).unwrap();
    assert!(says.contains("Not known: who waited for whom: recorded without --waits"), "{says}");
}
