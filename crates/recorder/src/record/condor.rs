//! What HTCondor tells of a job in a file that its environment names: its number, and what was requested.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// The variable that names the file: "Environment variables for jobs" of HTCondor's manual.
pub(super) const JOB_AD: &str = "_CONDOR_JOB_AD";
/// The variable in which the number would be.
const JOB_ID: &str = "CONDOR_ID";
/// Attributes of what was requested, with the variables in which they would be: "Job ClassAd attributes" of HTCondor's
/// manual. RequestMemory is in MiB.
const REQUESTS: [(&str, &str); 2] =
    [("RequestCpus", "CONDOR_REQUEST_CPUS"), ("RequestMemory", "CONDOR_REQUEST_MEMORY")];
/// Maximum size of a description of a job, which has some kilobytes.
const AD_BYTES_MAX: u64 = 1 << 20;

/// Variables by the description of a job: its number, ClusterId.ProcId, as condor_q(1) shows it; and what was requested,
/// unless that is an expression, which may depend on what the job used before.
pub(super) fn variables(ad: &Path) -> Vec<(&'static str, String)> {
    let Some(text) = read(ad) else { return Vec::new() };
    let number = |name: &str| -> Option<u64> {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        // Names of attributes have no case.
        let (_, value) = lines.find(|(found, _)| found.trim().eq_ignore_ascii_case(name))?;
        value.trim().parse().ok()
    };
    let id = number("ClusterId").zip(number("ProcId"));
    let id = id.map(|(cluster, process)| (JOB_ID, format!("{cluster}.{process}")));
    let requests = REQUESTS
        .into_iter()
        .filter_map(|(name, variable)| Some((variable, number(name)?.to_string())));
    id.into_iter().chain(requests).collect()
}

fn read(ad: &Path) -> Option<String> {
    // Opening or reading a FIFO would not end.
    let mut options = OpenOptions::new();
    let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).ok()?;
    #[expect(clippy::disallowed_methods, reason = "it is read, and may be a FIFO of the job's")]
    let file = options.read(true).custom_flags(nonblocking).open(ad).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(AD_BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_called_by_cluster_and_process() {
        let directory = tempfile::tempdir().unwrap();
        let ad = directory.path().join(".job.ad");
        let id = |text: &str| {
            std::fs::write(&ad, text).unwrap();
            variables(&ad).into_iter().find(|(name, _)| *name == JOB_ID).map(|(_, id)| id)
        };
        let text = "Owner = \"alice\"\nClusterId = 4711\nprocid=3\nGlobalJobId = \"s#4711.3#17\"\n";
        assert_eq!(id(text).as_deref(), Some("4711.3"));
        for wrong in
            ["", "ClusterId = 4711\n", "ClusterId = x\nProcId = 1\n", "ClusterId = -1\nProcId = 0"]
        {
            assert_eq!(id(wrong), None, "{wrong}");
        }
        assert_eq!(variables(directory.path()), []);
        assert_eq!(variables(&directory.path().join("no")), []);
    }

    #[test]
    fn requests_are_told_if_they_are_numbers() {
        let directory = tempfile::tempdir().unwrap();
        let ad = directory.path().join(".job.ad");
        let expression =
            "ifThenElse(MemoryUsage =!= undefined,MemoryUsage,( ImageSize + 1023 ) / 1024)";
        let text =
            format!("RequestCpus = 8\nRequestMemory = {expression}\nRequestDisk = DiskUsage\n");
        std::fs::write(&ad, text).unwrap();
        assert_eq!(variables(&ad), [("CONDOR_REQUEST_CPUS", "8".to_owned())]);
        std::fs::write(&ad, "requestmemory=2000\n").unwrap();
        assert_eq!(variables(&ad), [("CONDOR_REQUEST_MEMORY", "2000".to_owned())]);
    }
}
