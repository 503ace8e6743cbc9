//! `proctrace export --format prmon`: the files agree with the report, and pandas reads them by the rules of
//! prmon's scripts. These scripts are in no package index; with PRMON_SCRIPTS naming their directory, they
//! are run as well.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Recorded, Recorder, fixture, proctrace, report, u64_of};
use proctrace_fixtures::python;
use serde_json::Value;

/// The name changes with the contents.
const ENVIRONMENT: &str = "prmon-1";
const PACKAGES: &[&str] = &["pandas<3", "numpy", "matplotlib"];

/// First steps of prmon's scripts with prmon.txt, and what they rely on.
const READ: &str = r#"
import json, sys
import pandas as pd

data = pd.read_csv(sys.argv[1], sep="\t", index_col="Time", engine="c", na_filter=False)
assert data.index.is_unique and data.index.is_monotonic_increasing
assert all(str(kind).startswith("int") for kind in data.dtypes), data.dtypes
assert pd.to_datetime(data.index, unit="s").year.min() > 2000
thin = data.iloc[::2].reindex(data.index).interpolate(method="index")
assert not thin.iloc[:-1].isna().any().any()
print(json.dumps({"rows": len(data), "last": data.iloc[-1].to_dict(), "max": data.max().to_dict()}, default=int))
"#;

/// Several seconds with children, threads, memory, and reading and writing.
fn recorded() -> Recorded {
    let script = "dd if=/dev/zero of=zeros bs=1M count=20 2>/dev/null; cat zeros > /dev/null
        $THREADS 3 200; for i in 1 2 3 4 5 6; do $BURN 300 200; /bin/sleep 0.6; done";
    let recorder = Recorder::new().option(["--memory=200ms", "--interval=50ms"]);
    let recorder = recorder.env("THREADS", fixture("threads").to_str().unwrap());
    let recorded =
        recorder.env("BURN", fixture("burn").to_str().unwrap()).run(["/bin/sh", "-c", script]);
    recorded.sound(0);
    recorded
}

/// Exports to a directory; returns the columns of prmon.txt and the contents of prmon.json.
fn export(trace: &Path, to: &Path) -> (BTreeMap<String, Vec<u64>>, Value) {
    let output =
        proctrace().args(["export", "--format", "prmon"]).arg(to).arg(trace).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(to.join("prmon.txt")).unwrap();
    let mut lines = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let rows: Vec<Vec<u64>> =
        lines.map(|cells| cells.iter().map(|cell| cell.parse().unwrap()).collect()).collect();
    assert!(rows.iter().all(|row| row.len() == names.len()));
    let column = |at: usize| rows.iter().map(|row| row[at]).collect();
    let columns = names.iter().enumerate().map(|(at, name)| ((*name).to_owned(), column(at)));
    let json = fs::read_to_string(to.join("prmon.json")).unwrap();
    (columns.collect(), serde_json::from_str(&json).unwrap())
}

#[test]
fn without_memory_those_columns_are_left_out() {
    let recorded = Recorder::new().run(["/bin/sh", "-c", "/bin/sleep 1.2"]);
    recorded.sound(0);
    let (columns, json) = export(&recorded.trace(), &recorded.directory.path().join("prmon"));
    assert!(!columns.contains_key("pss") && columns.contains_key("nprocs"), "{columns:?}");
    // A row for each second that has passed.
    let seconds = u64_of(&report(&recorded.trace())["run"]["recorded_ns"]) / 1_000_000_000;
    assert_eq!(columns["wtime"], (0..=seconds).collect::<Vec<_>>());
    assert!(json["Max"].get("vmem").is_none());
    let two = proctrace()
        .args(["export", "--format", "prmon"])
        .arg(recorded.directory.path())
        .args([recorded.trace(), recorded.trace().with_file_name("other.ptrace")])
        .output()
        .unwrap();
    assert_eq!(two.status.code(), Some(2));
}

mod root {
    use super::*;

    #[test]
    fn files_agree_with_the_report_and_the_machine() {
        let recorded = recorded();
        let directory = recorded.directory.path().join("prmon");
        let (columns, json) = export(&recorded.trace(), &directory);
        let names: Vec<&str> = columns.keys().map(String::as_str).collect();
        let expected = [
            "Time",
            "nprocs",
            "nthreads",
            "pss",
            "rchar",
            "read_bytes",
            "rss",
            "stime",
            "swap",
            "utime",
            "vmem",
            "wchar",
            "write_bytes",
            "wtime",
        ];
        assert_eq!(names, expected);
        let times = &columns["Time"];
        assert!(times.len() >= 4 && times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");

        let findings = report(&recorded.trace());
        let (run, summary) = (&findings["run"], &findings["summary"]);
        let max = |name: &str| json["Max"][name].as_u64().unwrap();
        let average = |name: &str| json["Avg"][name].as_f64().unwrap();
        for (name, total) in [
            ("wtime", run["recorded_ns"].as_u64().unwrap() / 1_000_000_000),
            ("utime", summary["user_ns"].as_u64().unwrap() / 1_000_000_000),
            ("stime", summary["system_ns"].as_u64().unwrap() / 1_000_000_000),
            ("read_bytes", summary["read_bytes"].as_u64().unwrap()),
            ("write_bytes", summary["write_bytes"].as_u64().unwrap()),
            ("pss", findings["memory"]["peak_pss_bytes"].as_u64().unwrap() / 1024),
        ] {
            assert_eq!(max(name), total, "{name}");
        }
        for name in ["wtime", "utime", "stime", "rchar", "wchar", "read_bytes", "write_bytes"] {
            let column = &columns[name];
            assert!(
                column.is_sorted() && *column.last().unwrap() <= max(name),
                "{name}: {column:?}"
            );
        }
        // 20 MiB were written and read by calls; an average is a rate.
        assert!(max("rchar") >= 40 << 20 && max("wchar") >= 20 << 20, "{json}");
        let seconds = run["recorded_ns"].as_u64().unwrap() as f64 / 1e9;
        let rate = max("rchar") as f64 / seconds;
        assert!((average("rchar") - rate).abs() < 0.01, "{json}");
        for (least, most) in [("pss", "rss"), ("rss", "vmem")] {
            let pairs = columns[least].iter().zip(&columns[most]);
            assert!(pairs.clone().all(|(least, most)| least <= most), "{least} {most}");
        }
        assert!(columns["nprocs"].iter().all(|n| (1..=4).contains(n)), "{columns:?}");
        for name in ["Time", "wtime", "utime", "stime"] {
            assert!(json["Avg"].get(name).is_none(), "{name}");
        }
        assert!(json["Max"].get("Time").is_none());

        // lscpu(1) and /proc/meminfo are the reference.
        let of_lscpu = Command::new("lscpu").env("LC_ALL", "C").output().unwrap();
        let lscpu = String::from_utf8(of_lscpu.stdout).unwrap();
        let told = |key: &str| {
            let value = |line: &str| Some(line.trim().strip_prefix(key)?.trim().to_owned());
            lscpu.lines().find_map(value).filter(|value| value != "-")
        };
        let cpu = &json["HW"]["cpu"];
        assert_eq!(cpu["ModelName"].as_str().map(str::to_owned), told("Model name:"));
        for (name, key) in [
            ("CPUs", "CPU(s):"),
            ("Sockets", "Socket(s):"),
            ("CoresPerSocket", "Core(s) per socket:"),
            ("ThreadsPerCore", "Thread(s) per core:"),
        ] {
            let told = told(key).and_then(|value| value.parse::<u64>().ok());
            assert_eq!(cpu[name].as_u64(), told, "{name}: {lscpu}");
        }
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
        let total = meminfo.lines().next().unwrap().split_whitespace().nth(1).unwrap().to_owned();
        assert_eq!(json["HW"]["mem"]["MemTotal"].to_string(), total);
    }
}

mod pypi {
    use super::*;

    #[test]
    #[ignore = "needs a Python package index"]
    fn pandas_and_prmons_own_scripts_read_them() {
        let recorded = recorded();
        let directory = recorded.directory.path().join("prmon");
        let (columns, json) = export(&recorded.trace(), &directory);
        let text = directory.join("prmon.txt");
        let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let python = python::environment(base, ENVIRONMENT, PACKAGES).join("bin/python");
        let printed = python::succeed(Command::new(&python).args(["-c", READ]).arg(&text));
        let found: Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(found["rows"].as_u64(), Some(columns["Time"].len() as u64));
        for (name, values) in columns.iter().filter(|(name, _)| *name != "Time") {
            assert_eq!(found["max"][name].as_u64(), values.iter().copied().max(), "{name}");
        }
        assert_eq!(found["max"]["nprocs"], json["Max"]["nprocs"]);

        let Some(scripts) = std::env::var_os("PRMON_SCRIPTS").map(PathBuf::from) else { return };
        let run = |script: &str, arguments: &[&str]| {
            let mut command = Command::new(&python);
            command.arg(scripts.join(script)).args(arguments).current_dir(&directory);
            python::succeed(&mut command)
        };
        run("prmon_plot.py", &["--yvar", "vmem,pss,rss,swap", "--yunit", "MB"]);
        run("prmon_plot.py", &["--yvar", "utime,stime", "--diff", "--stacked"]);
        let plots = fs::read_dir(&directory).unwrap().flatten();
        let plots = plots.filter(|file| file.file_name().to_string_lossy().ends_with(".png"));
        assert_eq!(plots.count(), 2);
        run("prmon_compress_output.py", &["--output", "small.txt", "--precision", "0.3"]);
        let lines = |name: &str| fs::read_to_string(directory.join(name)).unwrap().lines().count();
        assert!(lines("small.txt") <= lines("prmon.txt") && lines("small.txt") > 2);
    }
}
