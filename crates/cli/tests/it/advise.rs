//! The advice of real recordings, as text and JSON, and compared with recordings of changed jobs.

use crate::common::{Events, Recorded, Recorder, proctrace, text, u64_of};
use serde_json::Value;

fn record(script: &str) -> Recorded {
    let recorded = Recorder::new().run(["bash", "-c", script]);
    assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
    recorded
}

fn of_kind<'a>(advised: &'a Value, kind: &str) -> Option<&'a Value> {
    advised["advice"].as_array().unwrap().iter().find(|advice| text(&advice["kind"]) == kind)
}

#[test]
fn the_gain_is_compared_with_a_recording_of_the_changed_job() {
    let before = record("for i in {1..100}; do a=$(basename /x/$i); done");
    let after = record("for i in {1..100}; do a=$i; done");
    let run = |json: &[&str]| {
        let mut command = proctrace();
        command.args(["advise", "--against"]).arg(before.trace()).args(json).arg(after.trace());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let observed: Value = serde_json::from_str(&run(&["--json"])).unwrap();
    let advice = of_kind(&observed, "short-commands").unwrap();
    assert!(advice["left"].is_null(), "{advice}");
    let concerned = &advice["concerned"];
    let number = |name: &str| u64_of(&concerned[name]);
    // $(…) forks a shell, which executes the command.
    assert_eq!((number("processes_before"), number("processes_after")), (100, 0));
    // The advice is about all processes but the command itself.
    let events = Events::of(&before.trace());
    let shell = &events.root()["pid"];
    let children = events.kind("exit").filter(|exit| exit["pid"] != *shell);
    let cpu_ns: u64 = children.map(|exit| u64_of(&exit["run_ns"])).sum();
    assert_eq!((number("cpu_before_ns"), number("cpu_after_ns")), (cpu_ns, 0));
    // And about what the shell itself uses for them, which is all that it uses less.
    let all_ns = |trace: &std::path::Path| -> i64 {
        Events::of(trace).kind("exit").map(|exit| u64_of(&exit["run_ns"]) as i64).sum()
    };
    let less_ns = all_ns(&before.trace()) - all_ns(&after.trace());
    let verdict = &advice["verdict"];
    assert_eq!(text(&verdict["taken"]), "yes");
    assert_eq!(verdict["cpu"]["observed"].as_i64().unwrap(), less_ns);
    let range = &advice["cpu_ns"];
    let judged = match less_ns as u64 {
        less_ns if less_ns < u64_of(&range["low"]) => "less",
        less_ns if less_ns > u64_of(&range["high"]) => "more",
        _ => "as-predicted",
    };
    assert_eq!(text(&verdict["cpu"]["judged"]), judged);
    let says = run(&[]);
    assert!(says.contains("   followed (100 -> 0 processes)\n   wall    predicted -"), "{says}");
    assert_eq!(says.matches("           observed  -").count(), 2, "{says}");

    // What is left of it, and what is not about processes that go.
    let after = record("for i in {1..20}; do a=$(basename /x/$i); done");
    let mut command = proctrace();
    command.args(["advise", "--json", "--against"]).arg(before.trace()).arg(after.trace());
    let observed: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let advice = of_kind(&observed, "short-commands").unwrap();
    assert_eq!(u64_of(&advice["concerned"]["processes_after"]), 20);
    assert!(u64_of(&advice["left"]["cpu_ns"]["middle"]) > 0, "{advice}");
    assert_eq!(text(&advice["verdict"]["because"]), "100 -> 20 processes");
}

/// Verdict of `advise --against` on the advice of a kind.
fn verdict(before: &Recorded, after: &Recorded, kind: &str) -> Value {
    let mut command = proctrace();
    command.args(["advise", "--json", "--against"]).arg(before.trace()).arg(after.trace());
    let observed: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    of_kind(&observed, kind).unwrap_or_else(|| panic!("{kind}: {observed}"))["verdict"].clone()
}

#[test]
fn advice_that_nobody_followed_is_told_from_advice_that_was() {
    let before = record("for i in {1..100}; do a=$(basename /x/$i); done");
    let verdict_of = |after: &Recorded| verdict(&before, after, "short-commands");
    let same = verdict_of(&before);
    assert_eq!((text(&same["taken"]), same["cpu"].is_null()), ("no", true), "{same}");
    assert_eq!(text(&same["because"]), "100 -> 100 processes");
    // Too few to be advised on again, but most of them.
    let fewer = record("for i in {1..7}; do a=$(basename /x/$i); done");
    assert_eq!(text(&verdict_of(&fewer)["because"]), "100 -> 7 processes");
    let some = record("for i in {1..70}; do a=$(basename /x/$i); done");
    assert_eq!(text(&verdict_of(&some)["taken"]), "in-part");
}

/// All verdicts: kind, what was to be done, and whether it was.
fn verdicts(before: &Recorded, after: &Recorded) -> Vec<(String, String, String)> {
    let mut command = proctrace();
    command.args(["advise", "--json", "--against"]).arg(before.trace()).arg(after.trace());
    let observed: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let of = |one: &Value| {
        let taken = text(&one["verdict"]["taken"]).to_owned();
        (text(&one["kind"]).to_owned(), text(&one["what"]).to_owned(), taken)
    };
    observed["advice"].as_array().unwrap().iter().map(of).collect()
}

/// Advice is told apart by who is to follow it: recipes that a shell got as arguments, and lines that differ in numbers.
#[test]
fn what_one_part_of_the_job_follows_is_not_done_by_the_other() {
    let recipe =
        |name: &str| format!("bash -c 'for i in {{1..60}}; do {name} /x/a; done >/dev/null; true'");
    let fixed = "bash -c 'for i in {1..60}; do echo a; done >/dev/null; true'";
    let before = record(&format!("{}; {}; true", recipe("basename"), recipe("dirname")));
    let after = record(&format!("{fixed}; {}; true", recipe("dirname")));
    let all = verdicts(&before, &after);
    let of = |word: &str| {
        let is_it = |(kind, what, _): &&(String, String, String)| {
            kind == "short-commands" && what.contains(word)
        };
        all.iter().find(is_it).unwrap_or_else(|| panic!("{all:#?}")).2.clone()
    };
    assert_eq!((&*of("basename"), &*of("dirname")), ("yes", "no"), "{all:#?}");
    // What failed and does not any more still runs.
    let failing = "for i in {1..6}; do ls ./there 2>/dev/null; done; true";
    let (before, after) = (record(failing), record(&format!(": > there; {failing}")));
    assert_eq!(text(&verdict(&before, &after, "failed-again")["taken"]), "yes");
}

/// A configure whose answers come from a compiler, or from its cache.
const CONFIGURE: &str = "#!/bin/bash
[ \"$1\" = -C ] && [ -e config.cache ] && exit 0
echo 'int main(void) { return 0; }' > conftest.c
for i in {1..24}; do cc -c conftest.c -o conftest.o; done
echo : > config.status; bash ./config.status
[ \"$1\" != -C ] || touch config.cache\n";

#[test]
fn the_run_that_fills_a_cache_is_not_taken_for_the_one_that_uses_it() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("configure"), CONFIGURE).unwrap();
    let configure = |arguments: &str| {
        let script = format!("cd {} && bash ./configure {arguments}", place.path().display());
        record(&script)
    };
    let (before, filling, filled) = (configure(""), configure("-C"), configure("-C"));
    let of = |after: &Recorded| verdict(&before, after, "known-cure");
    assert_eq!(text(&of(&filling)["taken"]), "only-filled");
    let verdict = of(&filled);
    assert_eq!((text(&verdict["taken"]), text(&verdict["because"])), ("yes", "24 -> 0 processes"));
    // With what cc starts, and what it costs the shell to start cc.
    let cpu_ns = |recorded: &Recorded| -> i64 {
        let events = Events::of(&recorded.trace());
        events.kind("exit").map(|exit| u64_of(&exit["run_ns"]) as i64).sum()
    };
    let (less_ns, of_cc_ns) =
        (cpu_ns(&before) - cpu_ns(&filled), verdict["cpu"]["observed"].as_i64().unwrap());
    assert!((less_ns - of_cc_ns).abs() * 20 < less_ns, "{less_ns} {verdict}");
}

#[test]
fn cures_of_the_user_are_looked_for() {
    let recorded = record("for i in {1..20}; do getconf ARG_MAX $i; done > /dev/null 2>&1; true");
    let cures = recorded.directory.path().join("cures.toml");
    let rule = "[[cure]]\nname = 'ours'\ncommand = ['getconf']\nat-least = 5\n\
                saves-percent = [10, 50, 100]\nwhat = 'Ask once'\nrisk = 'none'\n";
    std::fs::write(&cures, rule).unwrap();
    let mut command = proctrace();
    command.args(["advise", "--json", "--cures"]).arg(&cures).arg(recorded.trace());
    let output = command.output().unwrap();
    let advised: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(text(&of_kind(&advised, "known-cure").unwrap()["what"]), "Ask once");
    std::fs::write(&cures, "[[cure]]\nname = 1\n").unwrap();
    let mut command = proctrace();
    let output = command.args(["advise", "--cures"]).arg(&cures).arg(recorded.trace()).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let says = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(says.contains("cures.toml:2:"), "{says}");
}

mod root {
    use super::*;

    #[test]
    fn advice_names_the_command_that_it_is_about() {
        let recorded = record(
            "sleep 0.05; tool=expr; $tool 1 + 0 >/dev/null; \
                               for i in {1..30}; do $tool 2 + 2 >/dev/null; done; sleep 0.4",
        );
        let mut command = proctrace();
        let output = command.args(["advise", "--json"]).arg(recorded.trace()).output().unwrap();
        let advised: Value = serde_json::from_slice(&output.stdout).unwrap();
        let timer = text(&of_kind(&advised, "timer-in-path").unwrap()["what"]);
        assert!(timer.contains("`sleep 0.") && timer.contains(" and 1 like it"), "{timer}");
        let repeated = text(&of_kind(&advised, "repeated-command").unwrap()["what"]);
        assert!(repeated.contains("Run `expr 2 + 2` once"), "{repeated}");
    }

    #[test]
    fn advice_names_the_line_of_the_script_and_what_it_becomes() {
        let place = tempfile::tempdir().unwrap();
        let (script, makefile) = (place.path().join("job.sh"), place.path().join("job.mk"));
        let busy = "i=0; while [ $$i -lt 60000 ]; do i=$$((i+1)); done";
        std::fs::write(&makefile, format!("all: a b c d\na b c d:\n\t@sh -c '{busy}' $@\n"))
            .unwrap();
        let make = format!("make -f {} all", makefile.display());
        std::fs::write(&script, format!("#!/bin/sh\n# {make}\nset -e\nif true; then {make}; fi\n"))
            .unwrap();
        let recorded = Recorder::new().run([std::ffi::OsStr::new("sh"), script.as_os_str()]);
        assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
        let advise = |more: &[&str]| {
            let mut command = proctrace();
            command.args(["advise", "--cores", "2"]).args(more).arg(recorded.trace());
            let output = command.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let advised: Value = serde_json::from_str(&advise(&["--json"])).unwrap();
        let advice = of_kind(&advised, "make-without-j").unwrap();
        let changed = make.replacen("make", "make -j2", 1);
        assert_eq!(text(&advice["change"]), changed);
        let place = &advice["place"];
        assert_eq!(text(&place["file"]), script.to_str().unwrap());
        assert_eq!(u64_of(&place["line"]), 4);
        assert_eq!(text(&place["becomes"]), format!("if true; then {changed}; fi"));
        // The children of make, each with the time that it took.
        let explained: Value =
            serde_json::from_str(&advise(&["--json", "--explain", "1"])).unwrap();
        assert_eq!(text(&explained["kind"]), "make-without-j");
        let rows = explained["rows"].as_array().unwrap();
        assert_eq!(rows.len() as u64, u64_of(&explained["processes"]));
        let events = Events::of(&recorded.trace());
        for row in rows {
            let exit = events.kind("exit").find(|exit| exit["pid"] == row["pid"]).unwrap();
            assert_eq!(exit["run_ns"], row["cpu_ns"]);
            assert!(row["waited"].is_array() && u64_of(&row["path_ns"]) > 0, "{row}");
        }
        let says = advise(&["--explain", "1"]);
        assert!(says.starts_with("1. make-without-j: ") && says.contains("on path"), "{says}");
        assert!(says.lines().all(|line| line.chars().count() <= 80), "{says}");
        // Who has changed the script since is not shown a line of another one.
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
        std::fs::File::options().append(true).open(&script).unwrap().set_modified(later).unwrap();
        let advised: Value = serde_json::from_str(&advise(&["--json"])).unwrap();
        assert!(of_kind(&advised, "make-without-j").unwrap()["place"].is_null());
        // There is no such advice.
        let mut command = proctrace();
        let output =
            command.args(["advise", "--explain", "99"]).arg(recorded.trace()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains("there is no advice 99"));
    }

    /// A job compared with itself: whatever was advised, nothing was done.
    #[test]
    fn a_recording_follows_no_advice_about_itself() {
        for script in [
            "for i in {1..60}; do a=$(basename /x/$i); done; sleep 0.2; sleep 0.3",
            // Eight at once, then five one after the other.
            "for i in {1..8}; do timeout 0.30$i tail -f /dev/null & done; wait; \
             for i in {1..5}; do timeout 0.20$i tail -f /dev/null; done; true",
            "for i in {1..6}; do ls /no/such/file 2>/dev/null; done; true",
            "for i in {1..40}; do expr 1 + 1; done >/dev/null; for i in {1..40}; do expr 2 + 2; done >/dev/null",
        ] {
            let recorded = record(script);
            let all = verdicts(&recorded, &recorded);
            assert!(!all.is_empty(), "{script}");
            assert!(all.iter().all(|(.., taken)| taken == "no"), "{script}: {all:#?}");
        }
    }

    #[test]
    fn children_at_once_are_told_from_children_one_after_the_other() {
        let serial = record("for i in 1 2 3 4 5; do timeout 0.20$i tail -f /dev/null; done; true");
        let at_once =
            record("for i in 1 2 3 4 5; do timeout 0.20$i tail -f /dev/null & done; wait; true");
        assert_eq!(text(&verdict(&serial, &serial, "serial-stretch")["taken"]), "no");
        assert_eq!(text(&verdict(&serial, &at_once, "serial-stretch")["taken"]), "yes");
    }

    #[test]
    fn the_screen_has_the_best_advice_whole() {
        let summary = |script: &str| {
            let recorded = record(script);
            let output =
                proctrace().args(["report", "--summary"]).arg(recorded.trace()).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let fault = summary("for i in {1..100}; do a=$(basename /x/$i); done");
        assert!(fault.contains("\n\n  Advice   -"), "{fault}");
        let (_, advice) = fault.split_once("\n  Advice ").unwrap();
        assert!(advice.lines().nth(1).unwrap().contains("basename → ${path##*/}"), "{fault}");
        assert!(fault.lines().count() <= 24, "{fault}");
        assert!(fault.lines().all(|line| line.chars().count() <= 80), "{fault}");
        let cure = summary("for i in {1..100}; do a=$i; done");
        assert!(!cure.contains("Advice"), "{cure}");
    }

    /// A recording that lacks what advice is found by does not show that the advice was followed.
    #[test]
    fn what_the_second_recording_lacks_is_not_taken_for_done() {
        let script = "sleep 0.3; true";
        let before = record(script);
        let after = Recorder::new().option(["--backend", "ptrace"]).run(["bash", "-c", script]);
        assert_eq!(after.code(), 0, "{}", after.stderr());
        let verdict = verdict(&before, &after, "timer-in-path");
        assert_eq!(text(&verdict["taken"]), "unknown", "{verdict}");
        assert!(text(&verdict["because"]).contains("who waited for whom"), "{verdict}");
    }

    #[test]
    fn a_healthy_job_needs_no_advice() {
        // One process that computes.
        let recorded = record("for ((i = 0; i < 300000; i++)); do :; done");
        let output = proctrace().arg("advise").arg(recorded.trace()).output().unwrap();
        assert!(output.status.success());
        let says = String::from_utf8_lossy(&output.stdout);
        let says = says.split_whitespace().collect::<Vec<_>>().join(" ");
        let begins = "No change that proctrace knows pays more than 1 %; the wall time of ";
        assert!(says.starts_with(begins) && says.contains(" went to: "), "{says}");
    }
}
