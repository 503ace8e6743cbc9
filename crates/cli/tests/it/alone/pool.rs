//! Worker pools and series of them, compared with the declarations of the fixture `pool`.

use crate::common::{
    Recorded, Recorder, fixture, header, payload, proctrace, report, text, u64_of,
};
use serde_json::Value;

/// The tables of a command's JSON output.
struct Tables(Vec<Value>);

impl Tables {
    fn of(command: &mut std::process::Command) -> Self {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self(serde_json::from_slice(&output.stdout).unwrap())
    }

    fn of_section(recorded: &Recorded, options: &[&str]) -> Self {
        let mut command = proctrace();
        command.args(["report", "--section", "pool", "--format", "json"]).args(options);
        Self::of(command.arg(recorded.trace()))
    }

    fn rows(&self, name: &str) -> &Vec<Value> {
        let table = self.0.iter().find(|table| table["name"] == name);
        table.unwrap_or_else(|| panic!("no table {name}"))["rows"].as_array().unwrap()
    }

    fn column(&self, name: &str, column: &str) -> Vec<f64> {
        self.rows(name)
            .iter()
            .map(|row| row[column].as_f64().unwrap_or_else(|| panic!("{column} in {row}")))
            .collect()
    }
}

const LOGS: [&str; 2] = ["--events-log", "worker_*/AthenaMP.log"];

#[test]
fn a_pool_is_as_the_program_declares() {
    let recorded = Recorder::new()
        .option(["--memory=30ms", "--interval", "10ms"])
        .fixture("pool", &["4", "64", "150", "500", "100", "120"]);
    let events = recorded.sound(0);
    let tables = Tables::of_section(&recorded, &LOGS);
    let pool = &tables.rows("pools")[0];
    assert_eq!((text(&pool["parent"]), text(&pool["workers_are"])), ("pool", "forks"));
    assert_eq!(pool["workers"], 4);

    // One event per 10 ms of CPU time.
    assert_eq!(tables.column("pool_workers", "events"), [50.0, 60.0, 70.0, 80.0]);
    assert_eq!(tables.column("pool_workers", "events_to_first"), [1.0, 1.2, 1.4, 1.6]);
    let cpu_ms = tables.column("pool_workers", "cpu_ns").into_iter().map(|ns| ns / 1e6);
    for (worker, cpu_ms) in cpu_ms.enumerate() {
        // By the worker's own clock; after that it writes to 32 MiB.
        let declared = 500.0 + 100.0 * worker as f64;
        assert!((declared..declared + 300.0).contains(&cpu_ms), "{worker}: {cpu_ms}");
    }
    let page_bytes = u64_of(&header(&recorded.trace())["header"]["page_bytes"]) as f64;
    let pages = f64::from(32 << 20) / page_bytes;
    for faults in tables.column("pool_resources", "minor_faults") {
        assert!((pages..pages + 1000.0).contains(&faults), "{faults} of {pages}");
    }

    let phases = tables.rows("pool_phases");
    let names: Vec<&str> = phases.iter().map(|phase| text(&phase["phase"])).collect();
    assert_eq!(names, ["init", "fork", "loop", "tail", "merge, finalise"]);
    let cpu = tables.column("pool_phases", "cpu_ns");
    assert!(cpu[0] >= 150e6, "{cpu:?}");
    // CPU time of the parent at the end, as far as samples tell its beginning: they are 10 ms apart, if the machine lets
    // them.
    let ticks: Vec<u64> = events.kind("tick").map(|tick| u64_of(&tick["time_ns"])).collect();
    let apart_ns = ticks.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap() as f64;
    assert!((120e6 - apart_ns..210e6 + apart_ns).contains(&cpu[4]), "{cpu:?} {apart_ns}");
    // Only the pool was recorded, and none of it is missing.
    let total = u64_of(&report(&recorded.trace())["summary"]["cpu_ns"]) as f64;
    let sum: f64 = cpu.iter().sum();
    assert!((sum / total - 1.0).abs() < 1e-3, "{sum} {total}");

    // All memory is shared at first, and at the end half of it is private to each worker.
    let shared = |when: &str| {
        let rows = tables.rows("pool_memory");
        let row = rows.iter().find(|row| row["phase"] == when).unwrap();
        (u64_of(&row["pss_bytes"]), row["shared_percent"].as_f64().unwrap())
    };
    let (calm, end) = (shared("loop, median"), shared("workers finalise"));
    assert!(calm.1 > 90.0, "{calm:?} {end:?}");
    assert!(end.1 < calm.1 - 10.0 && end.0 > calm.0 + (24 << 20), "{calm:?} {end:?}");
}

#[test]
fn programs_that_are_started_together_are_a_pool() {
    let burn = fixture("burn");
    let script = "for n in 1 2 3; do \"$0\" 300 & done; wait";
    let recorded = Recorder::new().run(["sh", "-c", script, burn.to_str().unwrap()]);
    recorded.sound(0);
    let tables = Tables::of_section(&recorded, &[]);
    let pool = &tables.rows("pools")[0];
    assert_eq!((text(&pool["workers_are"]), &pool["workers"]), ("burn", &Value::from(3)));
    assert_eq!(Tables::of_section(&recorded, &["--pool", "sh"]).rows("pools").len(), 1);
    let none = Tables::of_section(&recorded, &["--pool", "athena.py"]);
    assert_eq!(none.rows("pools").len(), 0);
    assert!(none.0[0]["notes"][0].as_str().unwrap().contains("athena.py"));
}

#[test]
fn threads_are_no_pool() {
    let recorded = Recorder::new().fixture("threads", &["4", "100"]);
    recorded.sound(0);
    assert_eq!(Tables::of_section(&recorded, &[]).rows("pools").len(), 0);
    // But they count as workers in a series.
    let mut command = proctrace();
    command.args(["series", "--format", "json", "--events", "7"]).arg(recorded.trace());
    let series = Tables::of(&mut command);
    assert_eq!(series.column("series", "workers"), [4.0]);
    assert_eq!(series.column("series", "events"), [7.0]);
}

#[test]
fn a_log_that_tells_nothing_is_an_error() {
    let recorded = Recorder::new().fixture("pool", &["2", "1", "10", "200", "0", "10"]);
    recorded.sound(0);
    let logs = "worker_*/AthenaMP.log";
    for (options, code, says) in [
        (&["--events-log", "no/such*"][..], 1, "no file"),
        // matches nothing in the logs
        (&["--events-log", logs, "--events-regex", "x(1)"], 1, "--events-regex"),
        (&["--events-log", logs, "--events-regex", "("], 2, "regular expression"),
    ] {
        let mut command = proctrace();
        command.args(["report", "--section", "pool"]).args(options).arg(recorded.trace());
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(says), "{stderr}");
    }
}

#[test]
fn a_series_finds_workers_and_events_of_each_run() {
    let runs: Vec<Recorded> = ["1", "2", "4"]
        .map(|workers| Recorder::new().fixture("pool", &[workers, "1", "50", "200", "0", "50"]))
        .into();
    let series = |options: &[String]| {
        let mut command = proctrace();
        Tables::of(command.args(["series", "--format", "json"]).args(LOGS).args(options))
    };
    let path = |run: &Recorded| run.trace().display().to_string();
    let found = series(&runs.iter().map(path).collect::<Vec<_>>());
    assert_eq!(found.column("series", "workers"), [1.0, 2.0, 4.0]);
    assert_eq!(found.column("series", "events"), [20.0, 40.0, 80.0]);
    assert!((found.column("series", "efficiency_percent")[0] - 100.0).abs() < 1e-9);
    let core_time: Vec<f64> = found
        .rows("series")
        .iter()
        .map(|row| u64_of(&row["wall_ns"]) as f64 * u64_of(&row["workers"]) as f64)
        .collect();

    // The same as variants: one job of four workers, against four jobs of one.
    let groups =
        [format!("--group=mp={}", path(&runs[2])), format!("--group=mj={}=1", path(&runs[0]))];
    let ratio = series(&groups).column("series_core_time", "to_first");
    assert!((ratio[1] - core_time[0] / core_time[2]).abs() < 1e-9, "{ratio:?}");
    let against = [path(&runs[0]), format!("--against={}", path(&runs[2]))];
    let ratio = series(&against).column("series_core_time", "to_first");
    assert!((ratio[1] - core_time[0] / core_time[2]).abs() < 1e-9, "{ratio:?}");
}

/// Events and seconds of the loop as reported by each worker of the payload.
fn said(stdout: &str) -> Vec<(u64, f64)> {
    let loops = stdout.lines().filter_map(|line| {
        let (_, events) = line.split_once("Number of events processed: ")?;
        let (events, seconds) = events.split_once(", Event Loop Time: ")?;
        Some((events.parse().ok()?, seconds.trim_end_matches("sec.").parse().ok()?))
    });
    loops.collect()
}

#[test]
fn the_payload_is_as_serial_and_as_parallel_as_it_says() {
    let arguments = ["run", "athena-mp", "--scale", "0.25", "--workers", "2"];
    let recorded = Recorder::new()
        .run([payload().as_os_str()].into_iter().chain(arguments.iter().map(std::ffi::OsStr::new)));
    recorded.sound(0);
    let workers = said(&String::from_utf8_lossy(&recorded.output.stdout));
    assert_eq!(workers.len(), 2);
    assert_eq!(workers.iter().map(|(events, _)| events).sum::<u64>(), 100);

    // Loop and tail are the workers' own loops and their finalisation.
    let tables = Tables::of_section(&recorded, &["--cores", "1"]);
    let phase = |name: &str| -> f64 {
        let row = tables.rows("pool_phases").iter().find(|row| row["phase"] == name).unwrap();
        row["wall_ns"].as_f64().unwrap() / 1e9
    };
    let parallel = phase("loop") + phase("tail");
    let longest = workers.iter().map(|(_, seconds)| *seconds).fold(0.0, f64::max);
    // The first worker may begin before the last one is forked.
    assert!(parallel + phase("fork") >= longest, "{parallel} {longest}");
    assert!(parallel <= longest * 1.5 + 0.5, "{parallel} {longest}");
    let wall = phase("init") + phase("fork") + parallel + phase("merge, finalise");
    let serial = tables.column("pool_scaling", "serial_percent")[0] / 100.0;
    let expected = 1.0 - (phase("fork") + parallel) / wall;
    assert!((serial - expected).abs() < 0.01, "{serial} {expected}");

    // If one core had been requested: CPU time beyond one core, by the kernel's accounting for the
    // whole time.
    let usage = &header(&recorded.trace())["trailer"]["payload"];
    let cpu = (u64_of(&usage["user_ns"]) + u64_of(&usage["system_ns"])) as f64 / 1e9;
    let lived = report(&recorded.trace())["run"]["wall_ns"].as_f64().unwrap() / 1e9;
    let excess = tables.column("pool_cores", "excess_ns")[0] / 1e9;
    assert!(excess >= cpu - lived - 0.05 * cpu, "{excess} {cpu} {lived}");
    // On a busy machine the workers together may get less than one core: then there is no excess.
    assert!(excess <= (cpu - 0.5 * parallel).max(0.0), "{excess} {cpu} {parallel}");
}
