//! What steps used, in the files that engines of workflows would have written: Nextflow's trace, Snakemake's benchmarks.
//!
//! Sources: nextflow, TraceRecord.groovy (fields, and values as with `trace.raw`); snakemake, benchmark.py.

use std::fmt::Write;

use proctrace_findings::{Figure, Outcome, StepUsage};

const MILLISECOND_NS: u64 = 1_000_000;
const SECOND_NS: f64 = 1e9;
const MEBIBYTE: f64 = (1 << 20) as f64;

/// A file of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineFile {
    /// Nextflow's trace.txt: a line per task.
    NextflowTrace,
    /// The columns of Snakemake's benchmark files, and rule and wildcards: a line per job.
    SnakemakeBenchmark,
}

impl EngineFile {
    /// The coordinator whose steps it contains.
    pub fn coordinator(self) -> &'static str {
        match self {
            Self::NextflowTrace => "nextflow",
            Self::SnakemakeBenchmark => "snakemake",
        }
    }

    /// The file: tab-separated values with a line of names.
    pub fn write(self, steps: &[StepUsage], host: &str) -> String {
        match self {
            Self::NextflowTrace => nextflow_trace(steps, host),
            Self::SnakemakeBenchmark => snakemake_benchmark(steps),
        }
    }
}

/// Text in a column: its end and that of the line would be others.
fn cell(text: &str) -> String {
    text.replace(['\t', '\n', '\r'], " ")
}

/// A number, or what Nextflow writes for one that is not known.
fn number(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// The hash of a task in Nextflow's terms: the last two parts of its directory, of which the second one is cut.
fn task_hash(directory: &str) -> Option<String> {
    let mut parts = directory.rsplit('/');
    let (rest, bucket) = (parts.next()?, parts.next()?);
    let is_hex = |part: &str| part.bytes().all(|digit| digit.is_ascii_hexdigit());
    (bucket.len() == 2 && rest.len() >= 6 && is_hex(bucket) && is_hex(rest))
        .then(|| format!("{bucket}/{}", &rest[..6]))
}

fn nextflow_trace(steps: &[StepUsage], host: &str) -> String {
    const NAMES: &str = "task_id\thash\tnative_id\tname\tstatus\texit\tsubmit\tstart\tcomplete\tduration\trealtime\t%cpu\t\
        peak_rss\tpeak_vmem\trchar\twchar\tread_bytes\twrite_bytes\tvol_ctxt\tinv_ctxt\thostname\n";
    let mut text = String::from(NAMES);
    for (task, step) in (1_u64..).zip(steps) {
        let figure = |figure: Figure| number(step.figures[figure]);
        let exit = match step.outcome {
            Some(Outcome::Code(code)) => u64::try_from(code).ok(),
            // As a shell says it.
            Some(Outcome::Signal(signal)) => u64::try_from(signal).ok().map(|signal| 128 + signal),
            _ => None,
        };
        let status = match (step.has_ended, exit) {
            (false, _) => "RUNNING",
            (true, None) => "-",
            (true, Some(0)) => "COMPLETED",
            (true, Some(_)) => "FAILED",
        };
        let start_ms = step.begin_unix_ns / MILLISECOND_NS;
        let wall_ms = step.wall_ns / MILLISECOND_NS;
        let complete = step.has_ended.then(|| start_ms.saturating_add(wall_ms));
        let percent = step.figures[Figure::CpuNs].filter(|_| step.wall_ns > 0);
        let percent = percent.map_or_else(
            || "-".to_owned(),
            |cpu_ns| format!("{:.1}", cpu_ns as f64 * 100.0 / step.wall_ns as f64),
        );
        let hash = task_hash(&step.directory).unwrap_or_else(|| "-".to_owned());
        let peak = number(step.peaks_at_once_bytes);
        let _ = writeln!(
            text,
            "{task}\t{hash}\t{}\t{}\t{status}\t{}\t-\t{start_ms}\t{}\t-\t{wall_ms}\t{percent}\t\
             {peak}\t-\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            step.pid,
            cell(&step.name),
            number(exit),
            number(complete),
            figure(Figure::ReadCallBytes),
            figure(Figure::WriteCallBytes),
            figure(Figure::ReadBytes),
            figure(Figure::WriteBytes),
            figure(Figure::VoluntarySwitches),
            figure(Figure::InvoluntarySwitches),
            cell(host),
        );
    }
    text
}

fn snakemake_benchmark(steps: &[StepUsage]) -> String {
    const NAMES: &str = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\trule_name\t\
        wildcards\n";
    let real =
        |value: Option<f64>| value.map_or_else(|| "NA".to_owned(), |value| format!("{value:.2}"));
    let mebibytes = |value: Option<u64>| real(value.map(|bytes| bytes as f64 / MEBIBYTE));
    let mut text = String::from(NAMES);
    for step in steps.iter().filter(|step| step.has_ended) {
        let wall_s = step.wall_ns as f64 / SECOND_NS;
        let whole_s = step.wall_ns / 1_000_000_000;
        let cpu_s = step.figures[Figure::CpuNs].map(|cpu_ns| cpu_ns as f64 / SECOND_NS);
        let load = cpu_s.filter(|_| wall_s > 0.0).map(|cpu_s| cpu_s * 100.0 / wall_s);
        let (rule, wildcards) = step.name.split_once(':').unwrap_or((&step.name, ""));
        let _ = writeln!(
            text,
            "{wall_s:.4}\t{}:{:02}:{:02}\t{}\tNA\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            whole_s / 3600,
            whole_s / 60 % 60,
            whole_s % 60,
            mebibytes(step.peak_rss_bytes.or(step.peaks_at_once_bytes)),
            mebibytes(step.peak_uss_bytes),
            mebibytes(step.peak_pss_bytes),
            mebibytes(step.figures[Figure::ReadBytes]),
            mebibytes(step.figures[Figure::WriteBytes]),
            real(load),
            real(cpu_s),
            cell(rule),
            cell(wildcards),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::Figures;

    fn step(name: &str) -> StepUsage {
        let figures = Figures::of(|figure| match figure {
            Figure::CpuNs => Some(3_000_000_000),
            Figure::ReadCallBytes => Some(5 << 20),
            Figure::ReadBytes => Some(1 << 20),
            _ => None,
        });
        StepUsage {
            name: name.to_owned(),
            group: "align".to_owned(),
            coordinator: String::new(),
            directory: "/w/work/ab/0123456789abcdef".to_owned(),
            pid: 77,
            has_ended: true,
            outcome: Some(Outcome::Code(1)),
            begin_unix_ns: 1_700_000_000_000_000_000,
            wall_ns: 61_500_000_000,
            processes: 3,
            figures,
            peaks_at_once_bytes: Some(3 << 20),
            peak_rss_bytes: None,
            peak_pss_bytes: None,
            peak_uss_bytes: None,
        }
    }

    fn table(text: &str) -> Vec<(&str, &str)> {
        let mut lines = text.lines();
        let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
        let pairs: Vec<_> = names.split('\t').zip(values.split('\t')).collect();
        assert_eq!(names.split('\t').count(), values.split('\t').count());
        assert!(lines.next().is_none());
        pairs
    }

    #[test]
    fn a_trace_of_nextflow_has_raw_values_and_dashes() {
        let text = EngineFile::NextflowTrace.write(&[step("ALIGN (s\t1)")], "node\n1");
        let all = table(&text);
        let of = |name: &str| all.iter().find(|(key, _)| *key == name).unwrap().1;
        assert_eq!((of("hash"), of("name"), of("native_id")), ("ab/012345", "ALIGN (s 1)", "77"));
        assert_eq!((of("status"), of("exit")), ("FAILED", "1"));
        assert_eq!((of("start"), of("complete")), ("1700000000000", "1700000061500"));
        // When it was submitted is not known, and so how long it took from then on.
        assert_eq!((of("submit"), of("duration")), ("-", "-"));
        assert_eq!((of("realtime"), of("%cpu"), of("peak_rss")), ("61500", "4.9", "3145728"));
        assert_eq!((of("rchar"), of("wchar"), of("peak_vmem")), ("5242880", "-", "-"));
        assert_eq!(of("hostname"), "node 1");
        assert_eq!(
            (task_hash("/w/ab/0123"), task_hash("/w/xy/0123456"), task_hash("")),
            (None, None, None)
        );
    }

    #[test]
    fn a_benchmark_has_seconds_mebibytes_and_percent() {
        let text = EngineFile::SnakemakeBenchmark.write(&[step("align:sample=A\nB")], "");
        let all = table(&text);
        let of = |name: &str| all.iter().find(|(key, _)| *key == name).unwrap().1;
        assert_eq!((of("s"), of("h:m:s")), ("61.5000", "0:01:01"));
        assert_eq!((of("max_rss"), of("max_pss"), of("io_in")), ("3.00", "NA", "1.00"));
        assert_eq!((of("mean_load"), of("cpu_time")), ("4.88", "3.00"));
        assert_eq!((of("rule_name"), of("wildcards")), ("align", "sample=A B"));
    }
}
