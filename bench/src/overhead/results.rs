//! The saved results: every pair of runs, the derived statistics, and the machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::counts::Counts;
use super::trial::Trial;
use proctrace_stats::{MedianInterval, median_interval};
use xtask::run::output;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    /// Tracers excluded from the comparison, with the reason.
    pub(crate) left_out: BTreeMap<String, String>,
    pub(crate) payloads: Vec<PayloadResults>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) kernel: String,
    pub(crate) processor: String,
    pub(crate) cpus: usize,
    /// Date of the measurement, in UTC.
    pub(crate) date: String,
    /// The version of each tracer.
    pub(crate) tracers: BTreeMap<String, String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PayloadResults {
    pub(crate) name: String,
    pub(crate) command: String,
    pub(crate) declared: Counts,
    pub(crate) rows: Vec<Row>,
}

/// The results of one tracer with one payload.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) tracer: String,
    pub(crate) pairs: Vec<Pair>,
    pub(crate) summary: Option<Summary>,
    /// Reason why there are no more pairs, if there was a failure.
    pub(crate) stopped: Option<String>,
}

/// A run without the tracer and one with it, back to back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pair {
    pub(crate) bare: Trial,
    pub(crate) traced: Trial,
    /// True if the bare run came first.
    pub(crate) bare_first: bool,
}

/// Ratios to the bare run of the same pair, except for fields whose name contains a unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) payload_wall: MedianInterval,
    /// CPU time of payload and tracer together, including the tracer's start and stop.
    pub(crate) all_cpu: MedianInterval,
    pub(crate) payload_cpu: MedianInterval,
    /// The tracer's own CPU time, relative to that of the bare payload.
    pub(crate) tracer_cpu: MedianInterval,
    /// The part of it used after the payload began: the part that grows with the payload.
    #[serde(default)]
    pub(crate) following_cpu: Option<MedianInterval>,
    /// The CPU time used up to that point.
    #[serde(default)]
    pub(crate) loading_ns: Option<MedianInterval>,
    /// From the tracer's start to the end of all its output.
    pub(crate) command_wall: MedianInterval,
    pub(crate) output_bytes: MedianInterval,
    pub(crate) bytes_per_record: Option<MedianInterval>,
    pub(crate) tracer_peak_bytes: Option<MedianInterval>,
}

impl Pair {
    pub(crate) fn wall(&self) -> f64 {
        ratio(self.traced.payload_wall_ns, self.bare.payload_wall_ns)
    }
}

fn ratio(traced: u64, bare: u64) -> f64 {
    traced as f64 / bare.max(1) as f64
}

/// Statistics of the pairs; None if there are none.
pub(super) fn summarise(pairs: &[Pair]) -> Option<Summary> {
    let over = |value: &dyn Fn(&Pair) -> Option<f64>| {
        median_interval(&pairs.iter().filter_map(value).collect::<Vec<_>>())
    };
    let of = |value: fn(&Pair) -> f64| over(&|pair| Some(value(pair)));
    Some(Summary {
        payload_wall: of(Pair::wall)?,
        all_cpu: of(|pair| ratio(pair.traced.all_cpu_ns, pair.bare.all_cpu_ns))?,
        payload_cpu: of(|pair| ratio(pair.traced.payload_cpu_ns, pair.bare.payload_cpu_ns))?,
        tracer_cpu: of(|pair| {
            let own = pair.traced.all_cpu_ns.saturating_sub(pair.traced.payload_cpu_ns);
            ratio(own, pair.bare.payload_cpu_ns)
        })?,
        following_cpu: over(&|pair| {
            let loading_ns = pair.traced.tracer_loading_ns?;
            let own = pair.traced.all_cpu_ns.saturating_sub(pair.traced.payload_cpu_ns);
            Some(ratio(own.saturating_sub(loading_ns), pair.bare.payload_cpu_ns))
        }),
        loading_ns: over(&|pair| Some(pair.traced.tracer_loading_ns? as f64)),
        command_wall: of(|pair| ratio(pair.traced.command_wall_ns, pair.bare.command_wall_ns))?,
        output_bytes: of(|pair| pair.traced.output_bytes as f64)?,
        bytes_per_record: over(&|pair| {
            let records = pair.traced.seen.records.filter(|records| *records > 0)?;
            Some(pair.traced.output_bytes as f64 / records as f64)
        }),
        tracer_peak_bytes: over(&|pair| Some(pair.traced.tracer_peak_bytes? as f64)),
    })
}

/// Description of this machine.
pub(super) fn machine(tracers: BTreeMap<String, String>) -> Result<Machine> {
    let say = |program: &str, arguments: &[&str]| -> Result<String> {
        let text = output(Command::new(program).args(arguments))?;
        Ok(String::from_utf8_lossy(&text).trim().to_owned())
    };
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    Ok(Machine {
        kernel: say("uname", &["-srm"])?,
        processor: model.map_or("unknown", |(_, model)| model).to_owned(),
        cpus: std::thread::available_parallelism()?.get(),
        date: say("date", &["-u", "+%Y-%m-%d %H:%M UTC"])?,
        tracers,
    })
}

pub(super) fn load(path: &Path) -> Result<Results> {
    let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).context("not a result file of this benchmark")
}

pub(super) fn save(path: &Path, results: &Results) -> Result<()> {
    let text = serde_json::to_vec_pretty(results)?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::counts::Seen;
    use super::*;

    pub(in super::super) fn pair(times: u64) -> Pair {
        let bare = Trial {
            payload_wall_ns: 1_000_000,
            payload_cpu_ns: 800_000,
            all_cpu_ns: 1_000_000,
            command_wall_ns: 1_000_000,
            output_bytes: 0,
            tracer_peak_bytes: None,
            tracer_loading_ns: None,
            seen: Seen::default(),
        };
        let traced = Trial {
            payload_wall_ns: 1_000_000 * times,
            payload_cpu_ns: 1_200_000,
            all_cpu_ns: 2_000_000,
            command_wall_ns: 4_000_000,
            output_bytes: 600,
            tracer_peak_bytes: Some(5 << 20),
            tracer_loading_ns: Some(100_000),
            seen: Seen { counts: Counts::all(2, 2, 2, 0), records: Some(6), lost: Some(0) },
        };
        Pair { bare, traced, bare_first: true }
    }

    #[test]
    fn a_summary_is_of_the_ratios_of_pairs() {
        let summary = summarise(&[pair(3), pair(2), pair(7)]).unwrap();
        assert_eq!(summary.payload_wall.median, 3.0);
        assert_eq!((summary.payload_wall.low, summary.payload_wall.high), (2.0, 7.0));
        assert_eq!(summary.all_cpu.median, 2.0);
        assert_eq!(summary.payload_cpu.median, 1.5);
        assert_eq!(summary.tracer_cpu.median, 1.0);
        assert_eq!(summary.following_cpu.unwrap().median, 0.875);
        assert_eq!(summary.command_wall.median, 4.0);
        assert_eq!(summary.bytes_per_record.unwrap().median, 100.0);
        assert_eq!(summarise(&[]), None);
    }
}
