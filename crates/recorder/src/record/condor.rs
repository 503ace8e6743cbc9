//! The number of a job of HTCondor, which is in a file that its environment names.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// The variable that names the file: "Environment variables for jobs" of HTCondor's manual.
pub(super) const JOB_AD: &str = "_CONDOR_JOB_AD";
/// The variable in which the number would be.
pub(super) const JOB_ID: &str = "CONDOR_ID";
/// Maximum size of a description of a job, which has some kilobytes.
const AD_BYTES_MAX: u64 = 1 << 20;

/// The number of a job by its description: ClusterId.ProcId, as condor_q(1) shows it.
pub(super) fn job_id(ad: &Path) -> Option<String> {
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
    let text = String::from_utf8_lossy(&text);
    let number = |name: &str| -> Option<u64> {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        // Names of attributes have no case.
        let (_, value) = lines.find(|(found, _)| found.trim().eq_ignore_ascii_case(name))?;
        value.trim().parse().ok()
    };
    Some(format!("{}.{}", number("ClusterId")?, number("ProcId")?))
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
            job_id(&ad)
        };
        let text = "Owner = \"alice\"\nClusterId = 4711\nprocid=3\nGlobalJobId = \"s#4711.3#17\"\n";
        assert_eq!(id(text).as_deref(), Some("4711.3"));
        for wrong in
            ["", "ClusterId = 4711\n", "ClusterId = x\nProcId = 1\n", "ClusterId = -1\nProcId = 0"]
        {
            assert_eq!(id(wrong), None, "{wrong}");
        }
        assert_eq!(job_id(directory.path()), None);
        assert_eq!(job_id(&directory.path().join("no")), None);
    }
}
