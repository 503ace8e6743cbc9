//! Marks of real payloads: their times and order against the payload's own clock, phases that add up, marks
//! with hostile names, and phases before and after a change.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{Recorded, Recorder, fixture, header, proctrace, report, text, u64_of};
use serde_json::Value;

const BEFORE: &str = "(before)";

/// Records a script of sh in which $M is the fixture and $P is proctrace.
fn record(options: &[&str], script: &str) -> Recorded {
    let recorder = Recorder::new().option(options);
    recorder
        .env("M", fixture("moments").to_str().unwrap())
        .env("P", env!("CARGO_BIN_EXE_proctrace"))
        .run(["/bin/sh", "-c", script])
}

fn run(arguments: &[&str], trace: &Path) -> Output {
    let output = proctrace().args(arguments).arg(trace).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn printed(arguments: &[&str], trace: &Path) -> String {
    String::from_utf8(run(arguments, trace).stdout).unwrap()
}

/// The rows of the table of marks.
fn marks(trace: &Path) -> Vec<Value> {
    let sql = "select * from marks order by mark";
    serde_json::from_str(&printed(&["query", "--format", "json", sql], trace)).unwrap()
}

fn names(trace: &Path) -> Vec<String> {
    marks(trace).iter().map(|mark| text(&mark["phase"]).to_owned()).collect()
}

fn phases(trace: &Path) -> Vec<Value> {
    report(trace)["phases"].as_array().unwrap().clone()
}

fn sum(phases: &[Value], key: &str) -> u64 {
    phases.iter().map(|phase| u64_of(&phase[key])).sum()
}

/// Every way to set a mark; each prints the time before and after it, and its text.
const ALL_WAYS: &str = "
    set -e
    $M 30 'from C' 'again' 'again'
    before=$($M); $P mark 'by command'; echo $before $($M) by command
    before=$($M); [ ! -e '/proc/proctrace-mark/from sh' ]; echo $before $($M) from sh
    $M 0 'again'
    before=$($M); $P mark two words; echo $before $($M) two words
    for i in 1 2 3; do /bin/true; done
    ls /no/such/directory || :";

#[test]
fn marks_have_the_times_that_the_payload_wrote_down() {
    let recorded = record(&[], ALL_WAYS);
    recorded.sound(0);
    let trace = recorded.trace();
    let header = &header(&trace)["header"];
    let (began_ns, tick_ns) = (u64_of(&header["started_ns"]), u64_of(&header["tick_ns"]));
    let stdout = String::from_utf8(recorded.output.stdout.clone()).unwrap();
    let declared: Vec<(u64, u64, &str)> = stdout
        .lines()
        .map(|line| {
            let mut parts = line.splitn(3, ' ');
            let mut number = || parts.next().unwrap().parse().unwrap();
            (number(), number(), parts.next().unwrap())
        })
        .collect();
    assert_eq!(declared.len(), 7, "{stdout}");
    let found = marks(&trace);
    // The clock of the table begins with the first record.
    let first_ns = crate::common::Events::of(&trace).0[0]["time_ns"].as_u64().unwrap();
    assert!(first_ns >= began_ns);
    assert_eq!(found.len(), declared.len());
    for (mark, (before_ns, after_ns, name)) in found.iter().zip(&declared) {
        assert_eq!(text(&mark["text"]), *name);
        let by_command = matches!(*name, "by command" | "two words");
        assert_eq!(text(&mark["set_by"]), if by_command { "command" } else { "look-up" });
        let time_ns = first_ns + u64_of(&mark["time_ns"]);
        // An exec has its own time, a look-up that of the last tick.
        let early_ns = if by_command { 0 } else { tick_ns };
        assert!((before_ns - early_ns..=*after_ns).contains(&time_ns), "{mark} {before_ns}");
    }
    let setters: Vec<&str> = found.iter().map(|mark| text(&mark["setter"])).collect();
    let (c, sh) = ("moments", "sh");
    assert_eq!(setters, [c, c, c, sh, sh, c, sh]);
    let expected =
        ["from C", "again", "again #2", "by command", "from sh", "again #3", "two words"];
    assert_eq!(names(&trace), expected);
}

/// The pid that a script printed.
fn printed_pid(recorded: &Recorded) -> u64 {
    String::from_utf8(recorded.output.stdout.clone()).unwrap().trim().parse().unwrap()
}

#[test]
fn the_wait_for_what_is_left_behind_belongs_to_no_mark() {
    // Both ways to set marks: the fork comes right before the third.
    let ways = [
        "$P mark one; $P mark two; sleep 0.7 > /dev/null & echo $!; $P mark three; /bin/true",
        "for m in one two; do [ -e /proc/proctrace-mark/$m ]; done; sleep 0.7 > /dev/null & pid=$!
         [ -e /proc/proctrace-mark/three ]; echo $pid; /bin/true",
    ];
    for script in ways {
        let recorded = record(&["--grace", "10m"], script);
        recorded.sound(0);
        let (pid, trace) = (printed_pid(&recorded), recorded.trace());
        let named = format!("until `sleep 0.7` (pid {pid}, started in phase `two`) ended");
        let said = String::from_utf8_lossy(&recorded.output.stderr);
        let line = said.lines().find(|line| line.starts_with("proctrace: then "));
        assert!(line.is_some_and(|line| line.ends_with(&named)), "{said}");
        let shown = printed(&["report"], &trace);
        let head = shown.lines().nth(2).unwrap();
        assert!(head.starts_with("then ") && head.ends_with(&named), "{shown}");
        let findings = report(&trace);
        let run = &findings["run"];
        let after = &run["after"];
        assert_eq!((text(&after["last"]["command"]), u64_of(&after["others"])), ("sleep 0.7", 0));
        let phases = phases(&trace);
        let names: Vec<_> = phases.iter().map(|phase| text(&phase["name"])).collect();
        assert_eq!(names, [BEFORE, "one", "two", "three", "(after)"]);
        assert_eq!(u64_of(&phases[3]["end_ns"]), u64_of(&run["wall_ns"]));
        assert_eq!(u64_of(&phases[4]["end_ns"]), u64_of(&run["recorded_ns"]));
        let wall_ns: u64 =
            phases.iter().map(|it| u64_of(&it["end_ns"]) - u64_of(&it["begin_ns"])).sum();
        assert_eq!(wall_ns, u64_of(&run["recorded_ns"]));
        let alone = printed(&["report", "--phase", "(after)"], &trace);
        assert!(alone.contains("(after)"), "{alone}");
    }
}

#[test]
fn what_runs_on_is_named_with_its_phase() {
    let script = "sh -c 'sleep 600; :' > /dev/null 2>&1 & echo $!; $P mark later; /bin/true";
    let recorded = record(&["--grace", "100ms"], script);
    let pid = printed_pid(&recorded);
    let said = String::from_utf8_lossy(&recorded.output.stderr);
    let named = format!("`sh -c sleep 600; :` (pid {pid}, started before the first mark)");
    let line = said.lines().find(|line| line.contains("still running at the end")).unwrap();
    assert!(line.contains(&named) && line.contains("`sleep 600` (pid "), "{said}");
    let after = &report(&recorded.trace())["run"]["after"];
    assert_eq!(u64_of(&after["last"]["pid"]), pid);
    assert!(after["last"]["life_ns"].is_null(), "{after}");
    let shown = printed(&["report"], &recorded.trace());
    assert!(shown.lines().nth(2).unwrap().ends_with(" still running"), "{shown}");
    let sleep = line.split("`sleep 600` (pid ").nth(1).unwrap().split([',', ')']).next().unwrap();
    for pid in [pid, sleep.parse().unwrap()] {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    }
}

#[test]
fn phases_add_up_to_the_whole() {
    let recorded = record(&["--memory=20ms"], ALL_WAYS);
    recorded.sound(0);
    let trace = recorded.trace();
    let findings = report(&trace);
    let (run, summary) = (&findings["run"], &findings["summary"]);
    let phases = phases(&trace);
    assert_eq!(phases.len(), 8);
    assert_eq!((text(&phases[0]["name"]), u64_of(&phases[0]["begin_ns"])), (BEFORE, 0));
    for pair in phases.windows(2) {
        assert_eq!(pair[0]["end_ns"], pair[1]["begin_ns"]);
    }
    assert_eq!(phases[7]["end_ns"], run["recorded_ns"]);
    assert_eq!(sum(&phases, "processes"), u64_of(&summary["processes"]));
    assert_eq!(sum(&phases, "processes_ended"), u64_of(&summary["processes"]));
    assert_eq!(sum(&phases, "threads"), u64_of(&summary["threads"]));
    assert_eq!(sum(&phases, "execs"), u64_of(&summary["execs"]));
    assert_eq!(sum(&phases, "cpu_ns"), u64_of(&summary["cpu_ns"]));
    assert_eq!(sum(&phases, "failed_lookups"), u64_of(&summary["lookups_in_vain"]));
    // The last phase has three /bin/true and an ls, and the clock of the line before.
    assert_eq!(text(&phases[7]["name"]), "two words");
    assert_eq!(phases[7]["processes"], 5);
    // 30 ms of CPU time were declared between these marks, by one process.
    for phase in &phases[1..3] {
        assert!(u64_of(&phase["cpu_ns"]) >= 15_000_000, "{phase}");
        assert_eq!(phase["processes"], 0);
    }
    // Neither marks nor what looked for them counts as failed.
    let paths = "select count(*) as n from lookups where path like '/proc/proctrace-mark/%'";
    assert_eq!(printed(&["query", "--format", "csv", paths], &trace).lines().nth(1), Some("5"));
    let sections = printed(&["report", "--section", "lookups", "--all"], &trace);
    assert!(sections.contains("/no/such") && !sections.contains("proctrace-mark"), "{sections}");
}

#[test]
fn phases_are_in_the_exports() {
    let recorded = record(&[], ALL_WAYS);
    recorded.sound(0);
    let trace = recorded.trace();
    let expected: Vec<(String, u64)> = phases(&trace)
        .iter()
        .map(|phase| {
            let lasted_ns = u64_of(&phase["end_ns"]) - u64_of(&phase["begin_ns"]);
            (text(&phase["name"]).to_owned(), lasted_ns)
        })
        .collect();
    let export = |format: &str| {
        let output =
            proctrace().args(["export", "--format", format, "-"]).arg(&trace).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let spans: Vec<Value> = export("otlp")
        .lines()
        .flat_map(|line| {
            let request: Value = serde_json::from_str(line).unwrap();
            request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
        })
        .collect();
    let is_phase = |span: &&Value| {
        let attributes = span["attributes"].as_array().unwrap();
        attributes.iter().any(|attribute| attribute["key"] == "proctrace.phase")
    };
    let time = |value: &Value| text(value).parse::<u64>().unwrap();
    let found: Vec<(String, u64)> = spans
        .iter()
        .filter(is_phase)
        .map(|span| {
            let times = (time(&span["startTimeUnixNano"]), time(&span["endTimeUnixNano"]));
            (text(&span["name"]).to_owned(), times.1 - times.0)
        })
        .collect();
    assert_eq!(found, expected);
    let profile: Value = serde_json::from_str(&export("speedscope")).unwrap();
    let profiles = profile["profiles"].as_array().unwrap();
    let of_phases = profiles.iter().find(|profile| profile["name"] == "phases").unwrap();
    let frames = &profile["shared"]["frames"];
    let found: Vec<(String, u64)> = of_phases["events"]
        .as_array()
        .unwrap()
        .chunks(2)
        .map(|events| {
            let frame = usize::try_from(u64_of(&events[0]["frame"])).unwrap();
            let lasted_ns = u64_of(&events[1]["at"]) - u64_of(&events[0]["at"]);
            (text(&frames[frame]["name"]).to_owned(), lasted_ns)
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_report_of_one_phase_has_what_happened_in_it() {
    let recorded = record(&[], ALL_WAYS);
    recorded.sound(0);
    let trace = recorded.trace();
    let arguments = ["report", "--phase", "two words", "--format", "json"];
    let tables: Vec<Value> = serde_json::from_str(&printed(&arguments, &trace)).unwrap();
    let rows = |name: &str| {
        let table = tables.iter().find(|table| table["name"] == name).unwrap();
        table["rows"].as_array().unwrap().clone()
    };
    assert_eq!(rows("phases").len(), 1);
    let programs = rows("phase_programs");
    assert!(programs.iter().all(|row| row["phase"] == "two words"));
    let of = |program: &str| programs.iter().find(|row| row["program"] == program).unwrap();
    assert_eq!((&of("true")["processes"], &of("ls")["processes"]), (&3.into(), &1.into()));
    let directories = rows("phase_directories");
    assert!(directories.iter().any(|row| row["directory"] == "/no/such"), "{directories:?}");
    // By number, and only its time in a chart.
    let text_of = |name: &str| printed(&["report", "--phase", name], &trace);
    assert_eq!(text_of("#7"), text_of("two words"));
    let chart = recorded.directory.path().join("phase.svg");
    let chart = chart.to_str().unwrap();
    run(&["report", "--phase", "two words", "--gantt", chart], &trace);
    let svg = std::fs::read_to_string(chart).unwrap();
    // The title has the whole script.
    let has = |label: &str| svg.contains(&format!(">{label}</text>"));
    assert!(has("two words") && !has("by command"), "{svg}");
    // An unknown name is an error that lists the known ones.
    let output = proctrace().args(["report", "--phase", "none"]).arg(&trace).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("\"two words\"") && error.contains("\"again #3\""), "{error}");
}

#[test]
fn repeated_look_ups_are_as_many_marks() {
    let recorded = record(&[], "exec $M 0 $(yes event | head -n 200)");
    recorded.sound(0);
    let found = marks(&recorded.trace());
    assert_eq!(found.len(), 200);
    assert!(found.iter().all(|mark| mark["text"] == "event"));
    assert_eq!(text(&found[199]["phase"]), "event #200");
    assert!(found.is_sorted_by_key(|mark| u64_of(&mark["time_ns"])));
}

#[test]
fn without_look_ups_the_command_still_marks() {
    let recorded = record(&["--misses", "none"], ALL_WAYS);
    assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
    assert_eq!(names(&recorded.trace()), ["by command", "two words"]);
}

#[test]
fn nothing_is_printed_and_nothing_fails_where_nothing_is_recorded() {
    let run = |words: &[&str]| proctrace().arg("mark").args(words).output().unwrap();
    for words in [&["x"][..], &["a", "b"], &["--", "-x"], &[&"x".repeat(200)], &["ü\n"]] {
        let output = run(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{words:?}");
    }
    for words in [&[][..], &[""], &[" "], &[&"x".repeat(201)], &["-x"]] {
        let output = run(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{words:?}");
    }
    assert_eq!(run(&["--help"]).status.code(), Some(0));
}

#[test]
fn refused_texts_and_other_commands_are_no_marks() {
    let script = "$P mark ''; $P mark; $P mark --help; $P mark -x; $P report mark x
        [ -e /proc/proctrace-mark ]; [ -e /proc/proctrace-mark/ ]; echo mark x; $P mark real";
    let recorded = record(&[], script);
    assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
    assert_eq!(names(&recorded.trace()), ["real"]);
}

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn hostile_names_are_escaped_wherever_they_are_printed() {
    let script =
        "$M 0 '<script>alert(1)</script>' '=cmd()' \"$(printf 'a\\033[31m\\n\\377\\202b')\"
        $P mark \"$(printf '\\033]0;x\\007')\" ; $P mark '](http://x) | `x`'";
    let recorded = record(&[], script);
    assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
    let trace = recorded.trace();
    assert_eq!(marks(&trace).len(), 5);
    let out = recorded.directory.path().join("out");
    let html = recorded.directory.path().join("out.html");
    run(&["report", "--out", out.to_str().unwrap()], &trace);
    run(&["report", "--html", html.to_str().unwrap()], &trace);
    let mut printed: Vec<Vec<u8>> = [
        &["report"][..],
        &["report", "--section", "phases", "--format", "csv"],
        &["report", "--section", "phases", "--format", "json"],
        &["report", "--phase", "#3"],
        &["report", "--json"],
        &["query", "--format", "csv", "select phase from marks"],
    ]
    .iter()
    .map(|arguments| run(arguments, &trace).stdout)
    .collect();
    printed.push(std::fs::read(html).unwrap());
    printed.extend(files(&out).iter().map(|path| std::fs::read(path).unwrap()));
    assert!(printed.len() > 20);
    for bytes in printed {
        let text = String::from_utf8(bytes).expect("every output is UTF-8");
        let harmless = |c: char| !c.is_control() || c == '\n' || c == '\r' || c == '\t';
        assert!(text.chars().all(harmless), "{text}");
        let is_markup = text.starts_with("<svg") || text.starts_with("<!");
        assert!(!(is_markup && text.contains("<script>alert")), "{text}");
        assert!(!text.contains("\n=cmd"), "{text}");
    }
}

#[test]
fn phases_are_compared_by_name() {
    let payload = |processes: u32, lookups: u32| {
        let script = format!(
            "$P mark setup; $P mark work; for i in $(seq {processes}); do /bin/true; done
             for i in $(seq {lookups}); do [ -e /no/such/file ]; done; $P mark $LAST; :"
        );
        let last = if processes > 5 { "end" } else { "finish" };
        let recorder = Recorder::new().env("P", env!("CARGO_BIN_EXE_proctrace"));
        let recorded = recorder.env("LAST", last).run(["/bin/sh", "-c", &script]);
        recorded.sound(0);
        recorded
    };
    let (before, after) = (payload(9, 40), payload(4, 10));
    let output = proctrace()
        .args(["diff", "--format", "json"])
        .args([before.trace(), after.trace()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let diff: Value = serde_json::from_slice(&output.stdout).unwrap();
    let phases = diff["phases"].as_array().unwrap();
    let names: Vec<&str> = phases.iter().map(|phase| text(&phase["phase"])).collect();
    // In the order of the side after; what it does not have comes last.
    assert_eq!(names, [BEFORE, "setup", "work", "finish", "end"]);
    let change = |name: &str, of: &str| {
        let phase = phases.iter().find(|phase| phase["phase"] == name).unwrap();
        phase[of]["change"].as_f64().unwrap()
    };
    assert_eq!((change("work", "processes"), change("setup", "processes")), (-5.0, 0.0));
    // Those of five starts of /bin/true come on top.
    assert!(change("work", "failed_lookups") <= -30.0);
    assert_eq!(change("setup", "failed_lookups"), 0.0);
    assert!(change("end", "wall_seconds") < 0.0 && change("finish", "wall_seconds") > 0.0);
    let output = proctrace().arg("diff").args([before.trace(), after.trace()]).output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let start = table.find("Phases between marks").unwrap();
    assert!(table[start..].lines().take(9).all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn exported_timelines_have_the_phases() {
    let recorded = record(&[], "$P mark one; /bin/true; $P mark two");
    let trace = recorded.trace();
    let chrome = printed_export(&trace);
    let shown: Vec<(&str, f64)> = chrome["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["cat"] == "phase")
        .map(|event| (text(&event["name"]), event["dur"].as_f64().unwrap()))
        .collect();
    let names: Vec<&str> = shown.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, [BEFORE, "one", "two"]);
    for ((_, wall_us), phase) in shown.iter().zip(phases(&trace)) {
        let wall_ns = u64_of(&phase["end_ns"]) - u64_of(&phase["begin_ns"]);
        assert!((wall_us * 1e3 - wall_ns as f64).abs() < 1.0, "{wall_us} µs, {wall_ns} ns");
    }
}

fn printed_export(trace: &Path) -> Value {
    serde_json::from_str(&printed(&["export", "--format", "chrome", "-"], trace)).unwrap()
}

mod root {
    use super::*;

    #[test]
    fn another_root_without_proc_has_marks() {
        let script = "unshare -m /bin/sh -c '
            umount -l /proc; $M 0 \"no proc\"; [ -e \"/proc/proctrace-mark/from sh\" ]
            $P mark \"by command\"'";
        let recorded = record(&[], script);
        assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
        assert_eq!(names(&recorded.trace()), ["no proc", "from sh", "by command"]);
    }
}
