//! `show`, `tree` and `ps` of recorded programs: compared with what these declare, and with wait4(2).

use std::path::Path;

use crate::common::{Recorded, Recorder, fixture, proctrace, text, u64_of};
use serde_json::Value;

/// The output of a command, after checking that no line of text is too wide.
fn printed(arguments: &[&str], trace: &Path, code: i32) -> String {
    let output = proctrace().args(arguments).arg(trace).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
    let out = String::from_utf8(output.stdout).unwrap();
    if !arguments.contains(&"json") {
        assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
        assert!(!out.contains('\x1b'), "{out:?}");
    }
    out
}

fn json(arguments: &[&str], trace: &Path) -> Value {
    let arguments = [arguments, &["--format", "json"]].concat();
    serde_json::from_str(&printed(&arguments, trace, 0)).unwrap()
}

/// A line of what the payload prints about itself: "name value".
fn told(recorded: &Recorded, name: &str) -> u64 {
    let stdout = String::from_utf8_lossy(&recorded.output.stdout).into_owned();
    let mut lines = stdout.lines().filter_map(|line| line.strip_prefix(name));
    lines.next().unwrap_or_else(|| panic!("no {name} in {stdout}")).trim().parse().unwrap()
}

#[test]
fn costs_are_those_of_wait4() {
    let burn = fixture("burn");
    let recorder = Recorder::new().option(["--memory=50ms"]);
    let recorded = recorder.fixture("rusage", &[burn.to_str().unwrap(), "300", "100"]);
    recorded.sound(0);
    // User and system time in microseconds, peak RSS, switches, minor and major faults.
    let stdout = String::from_utf8(recorded.output.stdout.clone()).unwrap();
    let usage: Vec<u64> = stdout.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let shown = json(&["show", "burn"], &recorded.trace());
    let of = |name: &str| u64_of(&shown["process"]["usage"][name]);
    let waited_ns = (usage[0] + usage[1]) * 1000;
    // The kernel may leave out the last time slice, of CONFIG_HZ = 100 at the longest.
    assert!(of("cpu_ns") >= waited_ns - 2_000, "{} {waited_ns}", of("cpu_ns"));
    assert!(of("cpu_ns") - waited_ns < 10_000_000, "{} {waited_ns}", of("cpu_ns"));
    assert_eq!((of("minor_faults"), of("major_faults")), (usage[5], usage[6]));
    let memory = shown["process"]["memory"].as_array().unwrap();
    assert!(memory.len() > 2, "{memory:#?}");
    let parent = json(&["show", "rusage"], &recorded.trace());
    let waited = &parent["process"]["usage"]["children_waited_cpu_ns"];
    assert!(u64_of(waited).abs_diff(waited_ns) <= 2_000, "{waited} {waited_ns}");
    let text = printed(&["show", "burn"], &recorded.trace(), 0);
    assert!(text.contains("Memory over time"), "{text}");
    // `burn` and `rusage` together.
    let tree = json(&["tree"], &recorded.trace());
    assert_eq!(tree["processes"], 2);
    assert!(u64_of(&tree["cpu_ns"]) >= of("cpu_ns"));
}

#[test]
fn mistakes_are_told() {
    let recorded = Recorder::new().run(["sh", "-c", "/bin/true; ls / > /dev/null"]);
    let trace = recorded.trace();
    let error = |arguments: &[&str], code: i32| {
        let output = proctrace().args(arguments).arg(&trace).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.stdout.is_empty());
        stderr
    };
    assert!(error(&["show", "treu"], 1).contains("did you mean \"true\"?"));
    assert!(error(&["show", "999999999"], 1).contains("no process of the recording had this pid"));
    assert!(error(&["show", "--serial", "77777"], 1).contains("no process has this serial"));
    assert!(error(&["show", "1@x"], 2).contains("1@x"));
    assert!(error(&["show"], 2).contains("is a file where a pid or a program is expected"));
    assert!(error(&["ps", "--at", "1h"], 1).contains("the recording is"));
    assert!(error(&["ps", "--from", "2s", "--to", "1s"], 2).contains("--to is before --from"));
    assert!(error(&["ps"], 2).contains("--at"));
    let missing = proctrace().args(["show", "1", "/no/such/file"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(1));
}

#[test]
fn a_trace_that_is_cut_off_before_its_first_process_has_no_tree() {
    let recorded = Recorder::new().run(["true"]);
    let trace = std::fs::read(recorded.trace()).unwrap();
    let cut = recorded.directory.path().join("cut.ptrace");
    // The header is intact as long as `dump --header` reads it; all records come after it.
    let header_alone = |bytes: usize| {
        std::fs::write(&cut, &trace[..bytes]).unwrap();
        let output = proctrace().args(["dump", "--header"]).arg(&cut).output().unwrap();
        output.status.success()
    };
    let bytes = (0..trace.len()).step_by(64).find(|bytes| header_alone(*bytes)).unwrap();
    assert!(bytes > 0);
    for format in ["text", "json"] {
        let output = proctrace().arg("tree").arg(&cut).args(["--format", format]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stdout.is_empty());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("has no processes: it is not complete"), "{said}");
    }
    let whole = proctrace().arg("tree").arg(recorded.trace()).output().unwrap();
    assert_eq!(whole.status.code(), Some(0));
}

mod root {
    use super::*;

    #[test]
    fn a_process_is_shown_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        let script = "echo pid $$; cd \"$1\"; cat a/none b/none a/none 2> /dev/null; \
                      PATH=/bin:/usr/bin:/nowhere; /bin/true 'x y' \"$(printf 'a\\033[31mb')\"; \
                      kill -TERM $$";
        let outer = "sh -c \"$0\" sh \"$1\"; exit 3";
        let recorded = Recorder::new().run(["sh", "-c", outer, script, place.to_str().unwrap()]);
        recorded.sound(3);
        let (trace, pid) = (recorded.trace(), told(&recorded, "pid"));
        let shown = json(&["show", &pid.to_string()], &trace);
        let one = &shown["process"];
        assert_eq!((text(&one["outcome"]), text(&one["sent_by"])), ("SIGTERM", "itself"));
        assert_eq!(u64_of(&one["ended_ns"]) - u64_of(&one["born_ns"]), u64_of(&one["life_ns"]));
        assert_eq!(one["parents"].as_array().unwrap().len(), 1);
        assert_eq!(one["commands"][0]["arguments"][2], script);
        let counts: Vec<u64> = one["children"]
            .as_array()
            .unwrap()
            .iter()
            .map(|group| u64_of(&group["processes"]))
            .collect();
        assert_eq!(
            counts.iter().sum::<u64>(),
            3,
            "cat, the substitution and true: {}",
            one["children"]
        );

        let cat = &json(&["show", "cat"], &trace)["process"];
        assert_eq!(text(&cat["commands"][0]["directory"]), place.to_str().unwrap());
        let paths = cat["missed_paths"].as_array().unwrap();
        let of =
            |name: &str| u64_of(&paths.iter().find(|path| path["name"] == name).unwrap()["count"]);
        assert_eq!((of("a/none"), of("b/none")), (2, 1));
        assert!(paths.iter().all(|path| text(&path["errno"]).starts_with('E')));
        assert_eq!(cat["outcome"], "exit 1");
        let family: Vec<&str> =
            cat["parents"].as_array().unwrap().iter().map(|one| text(&one["program"])).collect();
        assert_eq!(family.len(), 2, "{family:?}");

        let run = &json(&["show", "true"], &trace)["process"]["commands"][0];
        assert_eq!(run["arguments"], serde_json::json!(["/bin/true", "x y", "a\u{1b}[31mb"]));
        let variables = run["environment"].as_array().unwrap();
        assert!(variables.iter().any(|it| it[0] == "PATH" && it[1] == "/bin:/usr/bin:/nowhere"));
        let shown = printed(&["show", "true"], &trace, 0);
        assert!(shown.contains("/bin/true 'x y' 'a\\u{1b}[31mb'"), "{shown}");
        assert!(printed(&["show", "cat"], &trace, 0).contains("a/none"));
    }

    #[test]
    fn siblings_are_counted_and_who_was_alive_is_told() {
        // Ten of one kind, then three at once that sleep.
        let script = "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true $i; done; \
                      sleep 1 & sleep 1 & echo shell $$; sleep 1; wait";
        let recorded = Recorder::new().run(["sh", "-c", script]);
        recorded.sound(0);
        let (trace, shell) = (recorded.trace(), told(&recorded, "shell"));
        let tree = json(&["tree"], &trace);
        let rows = tree["rows"].as_array().unwrap();
        let row = |command: &str| rows.iter().find(|row| row["command"] == command).unwrap();
        assert_eq!((u64_of(&tree["processes"]), rows.len()), (14, 3));
        // Numbers are left out only where siblings differ in them.
        assert_eq!(
            (u64_of(&row("true #")["siblings"]), u64_of(&row("sleep 1")["siblings"])),
            (10, 3)
        );
        assert_eq!(u64_of(&rows[0]["pid"]), shell);
        let shown = printed(&["tree", "--min", "0"], &trace, 0);
        assert!(shown.contains("true # ×10") && shown.contains("sleep 1 ×3"), "{shown}");

        let sleeps = json(&["show", "sleep"], &trace);
        let first = &sleeps["program"]["slowest"][0];
        // Between the latest birth and the earliest end of the three.
        let slowest = sleeps["program"]["slowest"].as_array().unwrap();
        let born_ns = slowest.iter().map(|one| u64_of(&one["born_ns"]));
        let ended_ns = slowest.iter().map(|one| u64_of(&one["born_ns"]) + u64_of(&one["life_ns"]));
        let middle_ns = born_ns.max().unwrap().midpoint(ended_ns.min().unwrap());
        let at = format!("{}ms", middle_ns / 1_000_000);
        let alive = json(&["ps", "--at", &at, "--sort", "pid"], &trace);
        let alive = alive["processes"].as_array().unwrap();
        let of = |pid: u64| alive.iter().find(|one| u64_of(&one["pid"]) == pid).unwrap();
        assert_eq!(alive.len(), 4, "{alive:#?}");
        assert_eq!((text(&of(shell)["state"]), text(&of(shell)["waits_for"])), ("S", "a child"));
        let sleeping =
            alive.iter().filter(|one| one["ppid"] == shell && one["waits_for"] == "a timer");
        assert_eq!(sleeping.count(), 3, "{alive:#?}");
        assert!(printed(&["ps", "--at", &at], &trace, 0).contains("4 processes alive at"));
        let whole = json(&["ps", "--from", "0s", "--to", "500ms"], &trace);
        assert!(whole["processes"].as_array().unwrap().len() > 10);
        let at_time = json(&["tree", "--at", &at], &trace);
        assert_eq!(at_time["processes"], 4);
        let pid = u64_of(&first["pid"]).to_string();
        assert_eq!(json(&["tree", "--pid", &pid], &trace)["processes"], 1);
    }
}
