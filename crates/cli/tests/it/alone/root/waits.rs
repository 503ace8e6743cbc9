//! Tests of who waited for whom: compared with what a program says that it did.

use crate::common::stalls::unless_stalled;
use crate::common::{Events, Recorded, Recorder, cpus, fixture, proctrace, text, u64_of};
use serde_json::Value;

/// A wait as the fixture `waits` declares it.
struct Declared {
    what: String,
    /// The process that ends it; 0 for none of the program.
    by: u64,
    begin_ns: u64,
    end_ns: u64,
}

fn declared(recorded: &Recorded) -> Vec<Declared> {
    let stdout = String::from_utf8(recorded.output.stdout.clone()).unwrap();
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words[at].parse().unwrap();
        Declared {
            what: words[0].to_owned(),
            by: number(1),
            begin_ns: number(2),
            end_ns: number(3),
        }
    };
    stdout.lines().map(line).collect()
}

/// The waits of the command's first thread.
fn waits(events: &Events) -> Vec<&Value> {
    let root = &events.root()["pid"];
    events.kind("wait").filter(|wait| wait["tid"] == *root).collect()
}

#[test]
fn each_wait_has_its_reason_and_who_ended_it() {
    let recorded = Recorder::new().fixture("waits", &[]);
    let events = recorded.sound(0);
    let waits = waits(&events);
    let declared = declared(&recorded);
    assert_eq!(declared.len(), 13);
    for told in &declared {
        let here = |wait: &&&Value| {
            told.begin_ns <= u64_of(&wait["since_ns"]) && u64_of(&wait["time_ns"]) <= told.end_ns
        };
        // The longest is the one that is meant: the program may also wait for a CPU, or to be copied.
        let asleep = |wait: &&Value| {
            wait["woken_ns"].as_u64().unwrap_or(0).saturating_sub(u64_of(&wait["since_ns"]))
        };
        let wait = waits.iter().filter(here).copied().max_by_key(|wait| asleep(wait));
        let Some(wait) = wait else { panic!("no {} among {waits:#?}", told.what) };
        let said = &told.what;
        assert_eq!(text(&wait["waits_for"]), *said, "{wait}");
        assert!(asleep(&wait) > 20_000_000, "{said}: {wait}");
        match told.by {
            0 => assert_eq!(text(&wait["woken_by"]), "interrupt", "{said}: {wait}"),
            by => {
                assert_eq!(text(&wait["woken_by"]), "task", "{said}: {wait}");
                assert_eq!(u64_of(&wait["waker_pid"]), by, "{said}: {wait}");
            }
        }
        let by_end = ["child", "vfork"].contains(&said.as_str());
        assert_eq!(wait["waker_ended"], by_end, "{said}: {wait}");
    }
}

#[test]
fn short_waits_are_recorded_only_if_the_end_of_a_task_ended_them() {
    // Each child ends when the shell waits for it, and not before.
    let child = "until grep -q do_wait /proc/$PPID/wchan; do sleep 0.01; done; exec sleep 0.1";
    let script = format!("for i in 1 2 3 4 5; do sh -c '{child}'; done; true");
    let of = |waits: &str| {
        let recorded = Recorder::new().option(["--waits", waits]).run(["sh", "-c", &script]);
        let events = recorded.sound(0);
        let is_long = |exec: &&Value| exec["argv"] == serde_json::json!(["sleep", "0.1"]);
        let long: Vec<&Value> = events.kind("exec").filter(is_long).map(|it| &it["pid"]).collect();
        let lasts =
            |wait: &&Value| u64_of(&wait["time_ns"]) - u64_of(&wait["since_ns"]) > 90_000_000;
        let sleeps = events.kind("wait").filter(|wait| long.contains(&&wait["pid"]));
        let sleeps = sleeps.filter(|wait| wait["state"] == "S").filter(lasts).count();
        let shell = &events.root()["pid"];
        let ends = events.kind("wait").filter(|wait| wait["waker_ended"] == true);
        (sleeps, ends.filter(|wait| wait["pid"] == *shell).count())
    };
    assert_eq!(of("1ms"), (5, 5));
    // Longer than any of these sleeps, and than what a busy machine adds to it.
    assert_eq!(of("1min"), (0, 5));
    assert_eq!(of("none"), (0, 0));
}

#[test]
fn a_task_that_is_ready_waits_for_a_cpu() {
    // Two that never sleep, on one CPU: each waits while the other runs.
    let burn = fixture("burn");
    let both = format!("{0} 300 0 & {0} 300 0 & wait", burn.display());
    let recorded = Recorder::new().run(["taskset", "--cpu-list", &cpus()[0], "sh", "-c", &both]);
    let events = recorded.sound(0);
    let waits: Vec<&Value> =
        events.kind("wait").filter(|wait| wait["waits_for"] == "cpu").collect();
    assert!(waits.len() > 4, "{waits:#?}");
    for wait in &waits {
        assert_eq!(wait["woken_by"], "none", "{wait}");
        assert_eq!(wait["since_ns"], wait["woken_ns"], "{wait}");
        assert_eq!(wait["state"], "R", "{wait}");
    }
    // The kernel's own figure has the shorter ones as well, and those after sleeps.
    for exit in events.kind("exit").filter(|exit| exit["comm"] == "burn") {
        let mine = waits.iter().filter(|wait| wait["tid"] == exit["tid"]);
        let waited_ns: u64 =
            mine.map(|wait| u64_of(&wait["time_ns"]) - u64_of(&wait["since_ns"])).sum();
        let kernels_ns = u64_of(&exit["run_delay_ns"]);
        assert!(waited_ns <= kernels_ns + kernels_ns / 10, "{waited_ns} {kernels_ns}");
        assert!(waited_ns >= kernels_ns / 2, "{waited_ns} {kernels_ns}");
    }
}

/// More than a million sleeps, each recorded: two processes that wait for each other.
#[test]
fn a_storm_of_sleeps_loses_nothing() {
    // On one CPU: each sleeps until the other has done its part there, which takes longer than a microsecond. On two, fast
    // ones that poll before they idle make some sleeps shorter, and those are not recorded.
    let waits = fixture("waits");
    // Short ones, in most of which no host takes the CPU away from the recorder.
    let all: u64 = (0..24)
        .map(|_| {
            sleeps_of(&unless_stalled(|| {
                let command =
                    ["taskset", "--cpu-list", &cpus()[0], waits.to_str().unwrap(), "50000"];
                Recorder::new().option(["--waits", "1us"]).run(command)
            }))
        })
        .sum();
    assert!(all > 1_000_000, "{all}");
}

/// The sleeps of two processes, of which nearly all must have been recorded.
fn sleeps_of(recorded: &Recorded) -> u64 {
    assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
    assert!(recorded.stderr().contains(" · 0 lost · "), "{}", recorded.stderr());
    let sql = "SELECT process_id, count(*) AS waits FROM waits WHERE waits_for <> 'cpu' \
               GROUP BY process_id ORDER BY process_id";
    let waits = rows(recorded, sql);
    let sql = "SELECT process_id, voluntary_switches FROM threads ORDER BY process_id";
    let switches = rows(recorded, sql);
    assert_eq!((waits.len(), switches.len()), (2, 2));
    let mut all = 0;
    for ((process, asleep), (same, switches)) in waits.iter().zip(&switches) {
        assert_eq!(process, same);
        // The last switch of a task is its end; a sleep of less than a microsecond is not recorded.
        let slept = switches - 1;
        assert!(*asleep <= slept, "{asleep} {slept}");
        assert!(*asleep >= slept - slept / 20, "{asleep} {slept}");
        all += asleep;
    }
    all
}

/// The rows of two numbers that a query answers.
fn rows(recorded: &Recorded, sql: &str) -> Vec<(u64, u64)> {
    let mut query = proctrace();
    let output = query.args(["query", "--format", "ndjson", sql]).arg(recorded.trace()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let row = |line: &str| {
        let row: serde_json::Map<String, Value> = serde_json::from_str(line).unwrap();
        let number = |name: &str| row.iter().find(|(key, _)| *key == name).map(|(_, n)| u64_of(n));
        let figure = number("waits").or_else(|| number("voluntary_switches"));
        (number("process_id").unwrap(), figure.unwrap())
    };
    lines.lines().map(row).collect()
}

#[test]
fn a_signal_has_its_sender() {
    let script = "sleep 60 & kill -TERM $!; wait $!; sleep 60 & timeout -s KILL 0.1 sleep 60; \
                  kill -9 $!; wait $!; true";
    let events = Recorder::new().run(["sh", "-c", script]).sound(0);
    let root = &events.root()["pid"];
    let signals: Vec<(&str, &Value, &Value)> = events
        .kind("signal")
        .map(|signal| (text(&signal["signal_name"]), &signal["pid"], &signal["sender_pid"]))
        .collect();
    // A child may be killed before it executes its program, while it still has the shell's name.
    let ended = |name: &str| -> Vec<&Value> {
        let number = if name == "SIGTERM" { 15 } else { 9 };
        events
            .kind("exit")
            .filter(|exit| exit["signal"] == number)
            .map(|exit| &exit["pid"])
            .collect()
    };
    for name in ["SIGTERM", "SIGKILL"] {
        let killed = ended(name);
        assert!(!killed.is_empty(), "{name}: {signals:?}");
        for pid in killed {
            let sent = signals.iter().find(|(sent, to, _)| *sent == name && *to == pid);
            let Some((_, _, sender)) = sent else { panic!("{name} to {pid}: {signals:?}") };
            let by_shell = *sender == root;
            let exec = events.kind("exec").find(|exec| exec["pid"] == **sender);
            let by_timeout = exec.is_some_and(|exec| text(&exec["exe"]).ends_with("timeout"));
            assert!(by_shell || by_timeout, "{name} to {pid} by {sender}");
        }
    }
}
